"""Repairer by rules."""

from memcycle.agents.repairer import RepairerInput, RepairerOutput


def repairer(value: RepairerInput) -> RepairerOutput:
    """NOOP, yet."""
    return RepairerOutput(op="NOOP")
