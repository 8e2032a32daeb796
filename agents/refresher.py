"""Refresher: settles conflicts by updating or deleting what is stored (AMA 3.4).

Where it fails nothing stored is changed.
"""

from typing import Literal

from pydantic import AwareDatetime, Field, field_validator
from typing_extensions import override

from memcycle.agents.views import MemoryView, RoleInput, RoleOutput, TurnView, View, mark, reply_time


class ConflictView(View):
    """One conflict: the stored memory, and the turn or other memory that contradicts it."""

    memory: MemoryView
    turn: TurnView | None = None
    other: MemoryView | None = None
    why: str = ""

    @override
    def markup(self) -> str:
        inner = [
            self.memory.markup(),
            *([self.turn.markup("against")] if self.turn else []),
            *([self.other.markup("other")] if self.other else []),
        ]
        return mark("conflict", {"why": self.why or None}, "\n" + "\n".join(inner) + "\n")


class RefresherInput(RoleInput):
    """The conflict set. Only memories numbered in it may be touched."""

    conflicts: list[ConflictView]
    turns: list[TurnView] = []
    now: AwareDatetime


class Refresh(RoleOutput):
    """What to do with stored memory `memory`. In doubt NONE."""

    op: Literal["UPDATE", "DELETE", "NONE"]
    memory: int
    text: str = Field("", description="UPDATE: the statement that is true now, self-contained")
    turn: int | None = Field(None, description="number of the turn the new text rests on")
    event_time: AwareDatetime | None = Field(None, description="when the new state began")
    quote: str = Field("", description="DELETE: the user's own words that ask for it")
    why: str = ""

    _read_time = field_validator("event_time", mode="before")(reply_time)


class RefresherOutput(RoleOutput):
    """At most one edit a memory."""

    edits: list[Refresh]
