"""Constructor: atomic facts from the turns of a chunk (AMA 3.1, MemMA construction).

Where it fails the chunk's turns stay unextracted: found as they were said, and read by the next run.
"""

from typing import Any, Literal

from pydantic import AwareDatetime, Field, field_validator, model_validator

from memcycle.agents.guide import GuideOutput
from memcycle.agents.views import MemoryView, RoleInput, RoleOutput, TurnView, reply_time
from memcycle.core.entry import Kind, Pattern
from memcycle.core.language.date_forms import Precision


class ConstructorInput(RoleInput):
    """The chunk.

    Attributes:
        turns: The turns to read, numbered from 1; only human turns are evidence for facts about people.
        window: Turns just before, for reference only.
        memories: Stored facts near the chunk, numbered from 0, that an edit may name.
        guidance: The Meta-Thinker's, None when switched off or failed.
    """

    turns: list[TurnView]
    window: list[TurnView] = []
    memories: list[MemoryView] = []
    guidance: GuideOutput | None = None
    now: AwareDatetime


class FactDraft(RoleOutput):
    """One self-contained statement in the language of the conversation."""

    text: str = Field(description="names instead of pronouns; relative time words kept as said")
    turn: int = Field(0, description="number of the turn that states it")
    pattern: Pattern | None = Field(None, description="sentence pattern: SV, SVO, SVC, SVOO, SVOC")
    quote: str = Field("", description="the words of that turn that support it, copied exactly")
    speaker: str | None = Field(
        None, description="who the fact is about or said by; default the turn's speaker"
    )
    kind: Kind = "episodic"
    related_turns: list[int] = Field([], description="other turns of the chunk or window it refers to")
    event_time: AwareDatetime | None = Field(
        None, description="when it happened, read against the turn's time"
    )
    event_precision: Precision | None = None
    persons: list[str] = []
    locations: list[str] = []
    entities: list[str] = []
    topics: list[str] = []
    keywords: list[str] = []
    importance: float = Field(0.5, ge=0, le=1)
    confidence: float = Field(1.0, ge=0, le=1)
    edit: Literal["ADD", "UPDATE", "DELETE", "NONE"] = Field(
        "ADD", description="what it does to memory `target`"
    )
    target: int | None = Field(None, description="number of the stored memory, for UPDATE, DELETE and NONE")

    _read_time = field_validator("event_time", mode="before")(reply_time)

    @model_validator(mode="before")
    @classmethod
    def _plain_statement(cls, value: Any) -> Any:
        """A bare string is a fact. Where its turn is not known, 0, that is found by its words."""
        return {"text": value} if isinstance(value, str) else value


class ConstructorOutput(RoleOutput):
    """The facts of the chunk, in order of their turns. May be empty."""

    facts: list[FactDraft]
