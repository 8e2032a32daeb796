"""Parts of theta that are switched on as a whole: views, mechanisms of recall, guards of extraction."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

AnswerStyle = Literal["concise", "explanatory", "verifying", "strict", "inferential", "choice"]
"""EvolveMem's six ways of phrasing an answer: shortest phrase; with the reason; with who said it and when;
in a fixed form (digits, dates, lists with commas); the likely conclusion; one of the alternatives offered."""
VerificationStyle = Literal["off", "strict", "multi_candidate"]

WIDEST = 10_000
"""Entries a view keeps where it is not narrowed: as many as a scope that is scanned whole may have."""


class Shares(BaseModel):
    """Share of each granularity among the candidates, for one routed operator."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    raw: float = Field(ge=0, le=1, description="share of turns")
    fact: float = Field(ge=0, le=1, description="share of facts")
    episode: float = Field(ge=0, le=1, description="share of episodes")


class Routing(BaseModel):
    """What AMA's operator (raw, fact, episode) means for the candidates.

    `exclusive` is the paper's form: only the routed granularity, the others on Retry. `shares` keeps
    some of each, which loses less when the route is wrong.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Literal["shares", "exclusive"] = Field(
        "shares", description="what is searched: some of each granularity, or the routed one alone"
    )
    raw: Shares = Shares(raw=0.7, fact=0.25, episode=0.05)
    fact: Shares = Shares(raw=0.5, fact=0.4, episode=0.1)
    episode: Shares = Shares(raw=0.4, fact=0.35, episode=0.25)


class Views(BaseModel):
    """How many entries each view speaks for (EvolveMem's top-k a view); 0 switches a view off.

    The evidence of a view counts for the first so many entries of that view, in its own order, whether a
    scope is scanned whole or its candidates are handed over by the indexes; beyond them it says nothing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    lexical: int = Field(WIDEST, ge=0, le=WIDEST, description="entries that BM25 speaks for")
    dense: int = Field(WIDEST, ge=0, le=WIDEST, description="entries that vectors speak for")
    structured: int = Field(
        WIDEST, ge=0, le=WIDEST, description="entries that speaker, date and kind of answer speak for"
    )


class Swap(BaseModel):
    """Entity swap: the query without the names of persons is searched beside the query (EvolveMem 3.2).

    It finds what was said of a matter by, or of, somebody else than the question names.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    on: bool = Field(False, description="search the query without names too")
    original: int = Field(15, ge=1, le=200, description="entries kept of the query as asked")
    swapped: int = Field(10, ge=1, le=200, description="entries kept of the query without names")


class Decomposition(BaseModel):
    """A question for several things is searched as sub-questions, merged by rank (EvolveMem 3.2)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    on: bool = Field(False, description="ask the Retriever for sub-questions")
    parts: int = Field(3, ge=1, le=6, description="sub-questions at most")
    k: int = Field(12, ge=1, le=200, description="entries each sub-question finds")


class Reflection(BaseModel):
    """An answer that is unknown or unsure is looked for once more, with a new query (EvolveMem 3.2)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rounds: int = Field(0, ge=0, le=3, description="further searches after an unsure answer, at most")
    unsure: float = Field(
        0.3, ge=0, le=1, description="an answer below this confidence is unsure, here and for the verifier"
    )


class Extraction(BaseModel):
    """How bulk import reads a conversation, and how it guards what is read (EvolveMem 3.1).

    A window is `overlap` turns that were read before, shown again, and new ones. What a model cannot take
    is tried again, then read in smaller windows; turns of whose words the facts hold too little are read
    once more. Online, where somebody waits, a chunk is read once.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    window: int = Field(40, ge=2, le=500, description="turns of a window")
    overlap: int = Field(6, ge=0, le=50, description="of these, turns shared with the window before")
    retries: int = Field(2, ge=0, le=10, description="tries more, where a model or its server fails")
    wait: float = Field(1.0, ge=0, le=60, description="seconds before the first; doubled for each further")
    split: int = Field(15, ge=1, le=200, description="turns of the windows a failed window is split into")
    coverage: float = Field(
        0.25, ge=0, le=1, description="share of its keywords that facts must hold of a turn; 0: unchecked"
    )

    @property
    def new_turns(self) -> int:
        """Turns of a window that were not read before."""
        return max(1, self.window - self.overlap)
