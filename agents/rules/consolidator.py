"""Consolidator by rules."""

from memcycle.agents.consolidator import ConsolidatorInput, ConsolidatorOutput


def consolidator(value: ConsolidatorInput) -> ConsolidatorOutput:
    """INSERT, yet."""
    return ConsolidatorOutput(decision="INSERT")
