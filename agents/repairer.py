"""Repairer: the fact a failed probe shows to be missing, from the session's own turns (MemMA 3.4).

Where it fails nothing is added for that probe.
"""

from typing import Literal

from pydantic import AwareDatetime, Field, field_validator

from memcycle.agents.views import MemoryView, RoleInput, RoleOutput, TurnView, reply_time
from memcycle.core.entry import Kind
from memcycle.core.language.date_forms import Precision


class RepairerInput(RoleInput):
    """A failed probe, the turns around its source, and what memory holds.

    Attributes:
        answer: The answer memory gave. gold: the one it should have given.
        turns: Turns of the session, numbered from 1; only human turns are evidence.
        source: Number of the turn that supports the gold answer.
        memories: Facts stored from that turn and those the answer was looked for in, numbered from 0.
    """

    question: str
    gold: str
    answer: str
    turns: list[TurnView]
    source: int
    memories: list[MemoryView] = []
    now: AwareDatetime


class RepairFact(RoleOutput):
    """One self-contained statement in the language of the conversation."""

    text: str = Field(description="names instead of pronouns; relative time words kept as said")
    turn: int = Field(description="number of the turn that states it")
    quote: str = Field(description="the words of that turn that support it, copied exactly")
    speaker: str | None = Field(None, description="who the fact is about; default the turn's speaker")
    kind: Kind = "episodic"
    event_time: AwareDatetime | None = Field(
        None, description="when it happened, read against the turn's time"
    )
    event_precision: Precision | None = None
    persons: list[str] = []
    keywords: list[str] = []
    confidence: float = Field(1.0, ge=0, le=1)

    _read_time = field_validator("event_time", mode="before")(reply_time)


class RepairerOutput(RoleOutput):
    """ADD_FACT with the fact, or NOOP.

    Attributes:
        cause: `missing`: no stored memory says it; `hard to find`: one does, and was not found or not used.
    """

    op: Literal["ADD_FACT", "NOOP"]
    cause: Literal["missing", "hard to find", "unknown"] = "unknown"
    fact: RepairFact | None = None
    why: str = ""
