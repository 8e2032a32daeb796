"""What a search is asked and what it gives back."""

from typing import NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from memcycle.core.entry import GRANULARITIES, Entry, Granularity, Kind
from memcycle.core.scope import Scope
from memcycle.core.theta import Theta


class Query(BaseModel):
    """One query of a request. `speaker`: the person whose words are asked about (a soft boost)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    speaker: str | None = None


class Filters(BaseModel):
    """Hard filters, all of which must hold. They narrow the scope, they can never widen it.

    Attributes:
        kinds, speakers: Allowed values; None allows all.
        since, until: Time window on event time, else on the time it was said; both inclusive.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kinds: tuple[Kind, ...] | None = None
    speakers: tuple[str, ...] | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None


class SearchRequest(BaseModel):
    """Several queries over one scope in one call: one embedding batch, one pass a view.

    Attributes:
        scope: Searched is its base scope's active entries, and, where `session` is set, that
            session's staged entries (exactly).
        granularities: Which granularities to search.
        k: Hits a query at most.
        exclude: Entry ids to leave out (the turns of the chunk itself, say).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scope: Scope
    queries: tuple[Query, ...]
    granularities: tuple[Granularity, ...] = GRANULARITIES
    k: int = Field(default=30, ge=1, le=1000)
    filters: Filters = Filters()
    theta: Theta = Theta()
    exclude: frozenset[str] = frozenset()


class Why(NamedTuple):
    """That a view found an entry: its 1-based rank there and its score in that view, 0 to 1."""

    view: str
    rank: int
    score: float


class Hit(NamedTuple):
    """A found entry, best first in its list. `score` 0 to 1, higher is better."""

    entry: Entry
    score: float
    why: tuple[Why, ...]


class Ranked(NamedTuple):
    """A found entry that was not read.

    Attributes:
        score: As a hit's.
        row: Its integer key. place: its place among the candidates of the query.
    """

    id: str
    granularity: Granularity
    score: float
    row: int
    place: int
