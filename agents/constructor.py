"""Constructor: atomic facts from the turns of a chunk (AMA 3.1, MemMA construction).

Where it fails the chunk's turns stay unextracted: found as they were said, and read by the next run.
"""

from typing import Any, Literal

from pydantic import AwareDatetime, Field, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

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
    """One self-contained statement in the language of the conversation.

    A model is asked for what only it can tell; the rest is read from the words by code, or set by rules.
    """

    text: str = Field(description="names instead of pronouns; relative time words kept as said")
    turn: int = Field(0, description="number of the turn that states it")
    kind: Kind = "episodic"
    event_time: AwareDatetime | None = Field(
        None, description="when it happened, read against the turn's time"
    )
    pattern: SkipJsonSchema[Pattern | None] = None
    quote: SkipJsonSchema[str] = ""
    speaker: SkipJsonSchema[str | None] = None
    related_turns: SkipJsonSchema[list[int]] = []
    event_precision: SkipJsonSchema[Precision | None] = None
    persons: SkipJsonSchema[list[str]] = []
    locations: SkipJsonSchema[list[str]] = []
    entities: SkipJsonSchema[list[str]] = []
    topics: SkipJsonSchema[list[str]] = []
    keywords: SkipJsonSchema[list[str]] = []
    importance: SkipJsonSchema[float] = Field(0.5, ge=0, le=1)
    confidence: SkipJsonSchema[float] = Field(1.0, ge=0, le=1)
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
