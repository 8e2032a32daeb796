"""Prober by rules."""

from memcycle.agents.prober import ProberInput, ProberOutput


def prober(value: ProberInput) -> ProberOutput:
    """No probes yet."""
    return ProberOutput(probes=[])
