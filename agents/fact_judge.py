"""Fact judge: whether a new fact is supported by its turn, and new (AMA 3.3).

Where it fails the facts are stored as they were read, unchecked.
"""

from typing import Literal

from pydantic import AwareDatetime, Field
from typing_extensions import override

from memcycle.agents.views import MemoryView, RoleInput, RoleOutput, TurnView, View, escape, mark, time_text


class NewFact(View):
    """A fact about to be stored, beside the turn it cites and its nearest stored facts."""

    n: int
    text: str
    speaker: str | None
    turn: TurnView
    event_time: AwareDatetime | None = None
    near: list[MemoryView] = []

    @override
    def markup(self) -> str:
        about = {
            "n": str(self.n),
            "speaker": self.speaker,
            "happened": time_text(self.event_time) if self.event_time else None,
        }
        near = [memory.markup("near") for memory in self.near]
        return mark("fact", about, "\n".join([escape(self.text), self.turn.markup("cites"), *near]))


class FactJudgeInput(RoleInput):
    """New facts to check once more before they are stored."""

    facts: list[NewFact]
    now: AwareDatetime


class FactVerdict(RoleOutput):
    """Verdict on new fact `n`; `near` is the number of the stored fact it speaks of."""

    n: int
    supported: bool = Field(description="the cited turn states it, of that person")
    relation: Literal["new", "duplicate", "conflict"] = "new"
    near: int | None = None
    why: str = ""


class FactJudgeOutput(RoleOutput):
    """One verdict a fact; a missing fact counts as supported and new."""

    verdicts: list[FactVerdict]
