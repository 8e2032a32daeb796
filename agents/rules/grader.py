"""Grader by rules."""

from memcycle.agents.grader import Grade, GraderInput, GraderOutput


def grader(value: GraderInput) -> GraderOutput:
    """Equal words only, yet."""
    return GraderOutput(grades=[Grade(n=item.n, correct=item.answer == item.gold) for item in value.items])
