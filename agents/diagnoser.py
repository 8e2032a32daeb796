"""Diagnoser: from failed questions to changes of the retrieval configuration (EvolveMem 3.3).

It sees failures of the training questions alone, with what the data say about them; nothing it says reaches
a memory but through the configuration. Where it fails the round is explored without it.
"""

from typing import Literal

from pydantic import Field

from memcycle.agents.views import RoleInput, RoleOutput, View

Pattern = Literal[
    "nothing retrieved",
    "drowned",
    "too little context",
    "view blind",
    "wrong time",
    "wrong entity",
    "outranked",
    "abstained wrongly",
    "answer format",
    "unexplained",
]
"""How a question failed. `drowned`: the budget went to episodes or long entries; `view blind`: only a view
without weight finds what was wanted; `outranked`: views with weight find it, others stood before it."""

KEPT, TAKEN_BACK = "kept", "taken back"
"""Outcomes of what was tried."""
Value = bool | int | float | str | None
Cut = Literal["entries", "tokens", "not found"]


class DimensionView(View):
    """A dimension of the configuration: its range, and what it is now."""

    path: str
    type: str
    low: float | None = None
    high: float | None = None
    choices: list[str | None] = []
    value: Value = None
    description: str = ""


class MissedView(View):
    """A turn that was wanted and not shown.

    Attributes:
        rank: Its place in the order of what was found, from 1; None where nothing found it.
        cut: What ended before it: places for entries, tokens, or the search.
        views: Its place in each view, from 1; a view that gives it nothing is left out.
        edges: By signal, how much more it has of it than the best others that were found, -1 to 1.
        facts: Facts that were read from it.
    """

    rank: int | None = None
    cut: Cut
    views: dict[str, int] = {}
    edges: dict[str, float] = {}
    facts: int = 0


class ShownView(View):
    """What was shown instead: entries and tokens by granularity, and the most there could have been."""

    entries: dict[str, int] = {}
    tokens: dict[str, int] = {}
    k: int = 0
    token_budget: int = 0


class FailureView(View):
    """A question that failed, under the number `n` it has in this call (1-based).

    Attributes:
        wanted: Turns that hold the answer. missed: those of them that were not shown.
        answer, gold: What was answered and what is right; None where nothing was answered.
    """

    n: int
    pattern: Pattern
    question: str
    category: str | None = None
    score: float = 0.0
    wanted: int = 0
    missed: list[MissedView] = []
    shown: ShownView = ShownView()
    answer: str | None = None
    gold: str | None = None


class HeldView(View):
    """What a signal gets right: how much more of it shown wanted turns have than the best others.

    Attributes:
        edge: Mean, -1 to 1. count: turns.
    """

    signal: str
    edge: float
    count: int


class PatternView(View):
    """How many of the asked questions failed in one way, and their share."""

    name: Pattern
    count: int
    share: float


class AttemptView(View):
    """What an earlier round changed, and what became of it."""

    round: int
    changes: dict[str, Value]
    outcome: str


class DiagnoserInput(RoleInput):
    """The failures of one round, the configuration they happened under, and what was tried before.

    Attributes:
        objective: What is to grow, in words. score: what it is now. token_budget: tokens that may be shown at
            most, whatever the configuration says.
    """

    objective: str
    score: float
    token_budget: int
    dimensions: list[DimensionView]
    patterns: list[PatternView] = []
    failures: list[FailureView] = []
    held: list[HeldView] = []
    tried: list[AttemptView] = []


class Change(RoleOutput):
    """One dimension, its new value, and the failures that ask for it."""

    path: str = Field(description="a path of the dimensions shown; a new name proposes a new dimension")
    value: Value = None
    reason: str = ""
    pattern: str = Field("", description="the failure pattern it answers")


class DiagnoserOutput(RoleOutput):
    """Changes, the most needed first; none where the failures ask for none."""

    changes: list[Change] = []
    missing_coverage: str = Field(
        "", description="what the stored memory lacks altogether, so that it must be read again; else empty"
    )
