"""Episode trigger and Episode writer: where a topic ends, and its third-person summary (AMA 3.1)."""

from typing import Literal

from pydantic import Field

from memcycle.agents.views import RoleInput, RoleOutput, TurnView


class TriggerInput(RoleInput):
    """The open segment: the turns since the last episode. `new` of them (the last ones) are of this chunk.

    Boundaries may only be put before or inside the new turns.
    """

    turns: list[TurnView]
    new: int


class Boundary(RoleOutput):
    """An episode ends with turn `after`."""

    after: int = Field(description="number of the last turn of the episode")
    reason: Literal["topic_shift", "request", "saturation", "gap", "farewell"]


class TriggerOutput(RoleOutput):
    """Boundaries in order; empty when the topic goes on. When unsure, split."""

    boundaries: list[Boundary]


class WriterInput(RoleInput):
    """The turns of one finished episode."""

    turns: list[TurnView]


class WriterOutput(RoleOutput):
    """The episode in the language of the conversation."""

    title: str = Field(description="a few words")
    text: str = Field(description="third-person summary: who, what, when, outcome")
    topics: list[str] = []
    persons: list[str] = []
    locations: list[str] = []
    keywords: list[str] = []
    importance: float = Field(0.5, ge=0, le=1)
