"""What a search is asked, how its queries are made ready, and what it gives back."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from memcycle.core.entry import GRANULARITIES, Entry, Granularity, Kind
from memcycle.core.language.dates import read_dates
from memcycle.core.language.questions import Slot, asked_slot, question_language
from memcycle.core.language.small_talk import is_small_talk
from memcycle.core.language.tokens import LONG, STOPWORDS, content_stems, stems, strip_names, tokenize
from memcycle.core.scope import Scope
from memcycle.core.theta import Theta
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.search import lexical
from memcycle.stores.search.bm25 import Ints

if TYPE_CHECKING:
    from memcycle.stores.embedders import Embedder


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
        scope: Searched is its base scope: what is active, and what is staged in any session; where the
            settings' visibility is `session`, in that of the scope alone.
        granularities: Which granularities to search.
        k: Hits a query at most.
        exclude: Entry ids to leave out (the turns of the chunk itself, say).
        asked_at: When it is asked, in the zone of whose days the queries speak. Their time words are read
            from there and from when the last of what is searched was said; None is the latter alone.
        telling: Whether turns that tell nothing, as questions and thanks do, are left out.
        lenient: Whether words alone are looked for where the embedder fails, if they find anything; else that
            is raised.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scope: Scope
    queries: tuple[Query, ...]
    granularities: tuple[Granularity, ...] = GRANULARITIES
    k: int = Field(default=30, ge=1, le=1000)
    filters: Filters = Filters()
    theta: Theta = Theta()
    exclude: frozenset[str] = frozenset()
    asked_at: AwareDatetime | None = None
    telling: bool = False
    lenient: bool = False


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


DAY = 86_400.0
_SLACK = {"minute": 1, "day": 1, "week": 3, "month": 5, "season": 10, "year": 10}
"""Days before and after a period in which what happened in it is also told."""


@dataclass(frozen=True)
class PreparedQuery:
    """A query made ready to be compared with entries.

    Attributes:
        stems: Of its words, without function words unless it has no others.
        terms: The same as numbers, ascending, each once.
        people: Who is asked about, casefolded: the query's speaker and those its text names.
        periods: The times it names, with some slack: first and last second of each.
        slot: What it asks for.
        small_talk: Whether nothing can bear on it.
        form: What `form_of` reads of it. Empty where what it finds is taken to bear on it: who names somebody
            known or a time, asks of themselves, or by keywords alone, looks for what was said.
        named, nameless: Unit vectors of the whole text, and of it without those names.
    """

    stems: list[str]
    terms: Ints
    people: frozenset[str]
    periods: tuple[tuple[float, float], ...]
    slot: Slot
    small_talk: bool
    form: tuple[float, ...]
    named: Vector
    nameless: Vector


class NoEmbedder:
    """Stands in for one that fails: no entry has a vector of it, and its queries are like nothing."""

    id, dim = "", 1

    def embed(self, texts: Sequence[str]) -> Vector:
        """All of them zero."""
        return np.zeros((len(texts), self.dim), dtype=np.float32)


def prepare(
    queries: Sequence[Query],
    embedder: "Embedder | NoEmbedder",
    *,
    speakers: Iterable[str],
    last: float,
    asked_at: datetime | None = None,
) -> list[PreparedQuery]:
    """All queries, in one embedding batch.

    Args:
        speakers: Who speaks in what is searched.
        last: When the last of it was said, in seconds. "In May" is read from there, and from `asked_at`.

    Raises:
        EmbeddingFailed: they cannot be embedded.
    """
    known = sorted(speakers)
    texts = [" ".join(query.text.split()) for query in queries]
    named = [[name for name in known if strip_names(text, [name]) != text] for text in texts]
    bare = [strip_names(query.text, names) for query, names in zip(queries, named, strict=True)]
    nameless = [own if tokenize(own) else query.text for query, own in zip(queries, bare, strict=True)]
    vectors = embedder.embed([query.text for query in queries] + nameless)
    zone = asked_at.tzinfo if asked_at else UTC
    moments = [datetime.fromtimestamp(last, zone), *filter(None, [asked_at])] if np.isfinite(last) else []
    return [
        _prepared(query, named[at], moments, vectors[at :: len(queries)]) for at, query in enumerate(queries)
    ]


def _prepared(
    query: Query, names: Sequence[str], moments: Sequence[datetime], vectors: Vector
) -> PreparedQuery:
    periods = _periods(query.text, moments)
    words = content_stems(query.text) or stems(query.text)
    return PreparedQuery(
        stems=words,
        terms=np.unique(lexical.numbers(words)),
        people=frozenset(name.casefold() for name in [*names, query.speaker] if name),
        periods=periods,
        slot=asked_slot(query.text),
        small_talk=is_small_talk(query.text),
        form=() if names or query.speaker or periods else form_of(query.text),
        named=vectors[0],
        nameless=vectors[1],
    )


_FORMS = (
    re.compile(r"\d|[^\w\s.,?!'’-]"),
    re.compile(r"(?:(?<=[^\W\d_A-Z] )|(?<=[,;] ))[A-Z](?!\w*days?\b)"),
    re.compile(r"(?i)\bthe\b"),
    re.compile(r"(?i)\bthe (?:\w+ ){1,3}(?:of|between)\b"),
    re.compile(r"(?i)^what(?: is|['’]?s| are) (?:an? |(?!the\b|\w+(?:ed|en|ing)\b)\w+(?: \w+)?\W*$)"),
)
"""A figure or sign; a name inside; something known; the same as part of something; what a word means."""


def form_of(text: str) -> tuple[float, ...]:
    """Marks of a question of general knowledge; none of keywords, other languages, and of one's own."""
    text = text[:LONG]
    words = tokenize(text)
    own = STOPWORDS.isdisjoint(words) or not {"user", "users", *lexical.SELF}.isdisjoint(words)
    if own or question_language(text) != "en":
        return ()
    found = [float(form.search(text) is not None) for form in _FORMS]
    return (*found, float(asked_slot(text) == "yes_no"), float(np.log1p(len(words))))


def _periods(text: str, moments: Sequence[datetime]) -> tuple[tuple[float, float], ...]:
    """The times a text names, read from each of these moments."""
    return tuple(
        (
            reading.start.timestamp() - _SLACK[reading.precision] * DAY,
            reading.over.timestamp() + _SLACK[reading.precision] * DAY,
        )
        for moment in moments
        for reading in read_dates(text, moment)
    )
