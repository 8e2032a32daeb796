"""Episode writer: the third-person summary of a finished topic (AMA 3.1).

Where it fails the episode is put together from its own sentences, as without a model.
"""

from pydantic import Field

from memcycle.agents.views import RoleInput, RoleOutput, TurnView


class EpisodeWriterInput(RoleInput):
    """The turns of one finished episode."""

    turns: list[TurnView]


class EpisodeWriterOutput(RoleOutput):
    """The episode in the language of the conversation."""

    title: str = Field(description="a few words")
    text: str = Field(description="third-person summary: who, what, when, outcome")
    topics: list[str] = []
    persons: list[str] = []
    locations: list[str] = []
    keywords: list[str] = []
    importance: float = Field(0.5, ge=0, le=1)
