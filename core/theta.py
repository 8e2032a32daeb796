"""Theta: the whole retrieval configuration as data (EvolveMem eq. 2)."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Weights(BaseModel):
    """Weight of each view in the fused score; any scale, only ratios matter.

    Defaults: round values near the optimum for raw turns and for facts of LoCoMo conversations 1-5. The
    window's own optimum there is higher still, but does not carry over to other chats (design section 7).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bm25: float = Field(0.5, ge=0, le=10, description="BM25 over the entry's own stemmed, dated, named text")
    window: float = Field(1.0, ge=0, le=10, description="BM25 over the entry with the two turns before it")
    dense: float = Field(0.25, ge=0, le=10, description="cosine of query and entry vectors")
    dense_nameless: float = Field(1.0, ge=0, le=10, description="cosine with the asked person's name removed")
    speaker: float = Field(0.5, ge=0, le=10, description="soft boost where the asked person speaks")


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

    version: str = Field("1", description="name of this configuration, recorded on results")
    k: int = Field(30, ge=1, le=200, description="entries kept for answering")
    k_m: int = Field(8, ge=1, le=100, description="least K whatever the Retriever asks (AMA K_m)")
    k_r: int = Field(2, ge=0, le=5, description="Retry rounds at most (AMA K_r)")
    h: int = Field(3, ge=0, le=10, description="refinement rounds at most (MemMA H)")
    density: float = Field(0.2, ge=0, le=1, description="least share of relevant candidates for a Pass")
    token_budget: int = Field(4000, ge=50, le=100_000, description="tokens of evidence shown to the Answerer")
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
