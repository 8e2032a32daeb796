"""Retriever: rewrites each text so that it stands alone and routes it by intent (AMA 3.2).

Where it fails the texts are searched as they are.
"""

from pydantic import AwareDatetime, Field

from memcycle.agents.views import Purpose, RoleInput, RoleOutput, TurnView
from memcycle.core.entry import Granularity


class RetrieverInput(RoleInput):
    """Texts to plan searches for: the turns of a chunk, or one question.

    Attributes:
        items: What to search memory for; `n` is 1-based.
        window: The short-term window W_t, oldest first, not itself searched for.
        parts: Sub-questions at most that an item is to be taken apart into; 0: it is left whole.
    """

    purpose: Purpose
    items: list[TurnView]
    window: list[TurnView] = []
    parts: int = Field(0, ge=0)
    now: AwareDatetime


class Intent(RoleOutput):
    """AMA's intent vector, each 0 or 1: exact wording, overview, event, single fact."""

    fine: bool = Field(description="needs exact wording, numbers, code or a quotation")
    abs: bool = Field(description="asks for an overview, a summary or a pattern")
    event: bool = Field(description="asks what happened in an event or over a period")
    atomic: bool = Field(description="asks for one self-contained fact")


class Plan(RoleOutput):
    """How to search for item `n`."""

    n: int
    query: str = Field(description="self-contained rewrite: pronouns and relative words resolved")
    intent: Intent
    k: int = Field(ge=1, le=100, description="how many entries this needs (K_dyn)")
    speaker: str | None = Field(None, description="the person whose words are asked about, if one is named")
    parts: list[str] = Field([], description="sub-questions that stand alone, where they are asked for")


class RetrieverOutput(RoleOutput):
    """One plan an item; a missing item is searched as is."""

    plans: list[Plan]


def operator(intent: Intent) -> Granularity:
    """AMA's routing: raw if fine, else episode if abs or event, else fact."""
    if intent.fine:
        return "raw"
    return "episode" if intent.abs or intent.event else "fact"
