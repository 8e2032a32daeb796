"""Grader: whether an answer says what the probe's answer says. It sees nothing else (MemMA 3.4)."""

from memcycle.agents.views import RoleInput, RoleOutput


class GradeItem(RoleInput):
    """An answer to grade, under the number `n` it has in this call (1-based)."""

    n: int
    question: str
    gold: str
    answer: str


class GraderInput(RoleInput):
    """Answers to grade, in one call; each is graded on its own."""

    items: list[GradeItem]


class Grade(RoleOutput):
    """Whether answer `n` gives the gold answer's information, whatever its wording."""

    n: int
    correct: bool
    why: str = ""


class GraderOutput(RoleOutput):
    """One grade an item; a missing one leaves its probe ungraded."""

    grades: list[Grade]
