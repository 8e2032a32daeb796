"""Theta: the whole retrieval configuration as data (EvolveMem eq. 2)."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

Fusion = Literal["linear", "weighted_sum", "sum", "rrf"]


def _weight(default: float, description: str) -> float:
    weight: float = Field(default, ge=0, le=10, description=description)
    return weight


class Weights(BaseModel):
    """Weight of each signal in the order of what is found; any scale, only ratios matter.

    The signals are functions of these names in `memcycle.stores.search.signals`. Defaults: fitted on LoCoMo
    conversations 1-5 (`python -m memcycle.evals.fit`) and rounded; where those hardly decide, towards what
    holds on chats of another make (design section 7). Those that are 0 help nothing there; they are for
    memories that grow old or are asked for the latest.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bm25: float = _weight(1.0, "BM25 over the entry's own stemmed, dated, named text")
    window: float = _weight(1.0, "BM25 over the entry with the two turns before it")
    facts: float = _weight(2.0, "the same with the words of the facts that rest on the turn")
    dense: float = _weight(0.0, "cosine of query and entry")
    dense_nameless: float = _weight(0.5, "cosine with the asked person's name removed")
    context: float = _weight(2.5, "the same with the turns around the entry")
    speaker: float = _weight(2.5, "the asked person speaks")
    date: float = _weight(3.0, "of a time that the query names")
    time_expression: float = _weight(2.0, "for a when-question: names a time")
    number: float = _weight(1.0, "for a how-many-question: holds a number")
    capital: float = _weight(1.5, "for a who- or where-question: names something")
    statement: float = _weight(0.75, "tells, does not ask")
    first_person: float = _weight(0.25, "its speaker tells of themselves")
    idf_mass: float = _weight(1.5, "how much it says at all")
    session: float = _weight(4.0, "the three best of its session")
    answer: float = _weight(1.5, "follows somebody else's question that matches")
    neighbours: float = _weight(0.0, "the turns beside it match")
    importance: float = _weight(0.0, "how important it was found")
    recency: float = _weight(0.0, "how lately it was said")
    reinforcement: float = _weight(0.0, "how often questions named what it names")

    @classmethod
    def only(cls, **weights: float) -> Self:
        """These weights, and 0 for every other signal."""
        return cls.model_validate(dict.fromkeys(cls.model_fields, 0.0) | weights)


class Shares(BaseModel):
    """Share of each granularity among the candidates, for one routed operator."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    raw: float = Field(ge=0, le=1)
    fact: float = Field(ge=0, le=1)
    episode: float = Field(ge=0, le=1)


class Routing(BaseModel):
    """What AMA's operator (raw, fact, episode) means for the candidates.

    `exclusive` is the paper's form: only the routed granularity, the others on Retry. `shares` keeps
    some of each, which loses less when the route is wrong.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Literal["shares", "exclusive"] = "shares"
    raw: Shares = Shares(raw=0.7, fact=0.25, episode=0.05)
    fact: Shares = Shares(raw=0.5, fact=0.4, episode=0.1)
    episode: Shares = Shares(raw=0.4, fact=0.35, episode=0.25)


class Theta(BaseModel):
    """Every dimension of retrieval, with its range.

    `k_r`, `h`, `k_m` and `density` are AMA's and MemMA's round limits, minimum K and Judge threshold.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str = Field("2", description="name of this configuration, recorded on results")
    k: int = Field(30, ge=1, le=200, description="entries kept for answering")
    k_m: int = Field(8, ge=1, le=100, description="least K whatever the Retriever asks (AMA K_m)")
    k_r: int = Field(2, ge=0, le=5, description="Retry rounds at most (AMA K_r)")
    h: int = Field(3, ge=0, le=10, description="refinement rounds at most (MemMA H)")
    density: float = Field(0.2, ge=0, le=1, description="least share of relevant candidates for a Pass")
    token_budget: int = Field(4000, ge=50, le=100_000, description="tokens of evidence shown to the Answerer")
    turns_first: float = Field(
        0.2, ge=0, le=1, description="share of these tokens for the best finds as they were said"
    )
    window: int = Field(6, ge=0, le=50, description="turns of short-term window W_t")
    candidates: int = Field(200, ge=10, le=5000, description="candidates a view hands to fusion")
    duplicate: float = Field(
        0.92, ge=0, le=1, description="cosine above which two facts are compared by a role"
    )
    near_duplicate: float = Field(
        0.8, gt=0, le=1, description="share of their words from which two facts are one (Jaccard)"
    )
    saturation_turns: int = Field(20, ge=2, le=500, description="an episode closes at this many turns")
    saturation_tokens: int = Field(2000, ge=50, le=100_000, description="or at this many tokens")
    routing: Routing = Field(default_factory=Routing)
    weights: Weights = Field(default_factory=Weights)
    fusion: Fusion = Field("linear", description="how the signals become an order")
    half_life_days: float = Field(30.0, gt=0, le=36_500, description="days in which recency halves")


class Switches(BaseModel):
    """Ablations, each a real edge of the graphs. True is the full cycle."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    guidance: bool = Field(True, description="Meta-Thinker guides construction (off: MemMA/C)")
    iterative: bool = Field(True, description="refine evidence over rounds (off: one-shot, MemMA/R)")
    refresher: bool = Field(True, description="conflicts go to the Refresher (off: AMA without Refresher)")
    verify: bool = Field(True, description="examine and repair memory at a session's end (off: MemMA/E)")
    granularity: Literal["all", "raw", "fact", "episode"] = Field("all", description="AMA single granularity")
    always_think: bool = Field(False, description="ask the Meta-Thinker also after a sufficient Pass (MemMA)")
    recall_refresh: bool = Field(
        False, description="apply a conflict met in recall at once, not at the next write"
    )
