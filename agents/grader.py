"""Grader: whether an answer says what the probe's answer says. It sees nothing else (MemMA 3.4).

Where it fails the probes are ungraded, not failed.
"""

from typing_extensions import override

from memcycle.agents.views import RoleInput, RoleOutput, View, escape, mark


class GradeItem(View):
    """An answer to grade, under the number `n` it has in this call (1-based)."""

    n: int
    question: str
    gold: str
    answer: str

    @override
    def markup(self) -> str:
        parts = (("question", self.question), ("gold", self.gold), ("answer", self.answer))
        inner = "\n".join(mark(name, {}, escape(text)) for name, text in parts)
        return mark("item", {"n": str(self.n)}, f"\n{inner}\n")


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
