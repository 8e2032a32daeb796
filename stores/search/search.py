"""Searches a scope: what the request may see, the signals of each entry, one score, hits with reasons.

A scope of up to some thousands of entries is scanned whole, in a copy kept in memory (`copies`): that takes
less time than asking an index for candidates, and no filter can empty a candidate list. Of a larger scope the
lexical view and the vector index hand over `theta.candidates` each (`handed`), and only those are looked at.
Staged entries of the request's session are in neither index; they are always looked at.

The facts that rest on a turn are not known here, so `facts` says what `window` says.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from memcycle.core.entry import GRANULARITIES, Entry, Granularity
from memcycle.core.scope import Scope
from memcycle.core.theta import Theta, Views, Weights
from memcycle.stores.ledger import changes, entries
from memcycle.stores.ledger import entries as plain_entries
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.search import lexical, ranker
from memcycle.stores.search import snapshot as reading
from memcycle.stores.search.bm25 import VIEWS, Flags, Floats, Ints, Scores, Stats, weigh
from memcycle.stores.search.query import Asked, TextEmbedder, prepare
from memcycle.stores.search.ranker import EVIDENCE, LEXICAL, NAMES, Measured
from memcycle.stores.search.request import Filters, Hit, Ranked, SearchRequest, Why
from memcycle.stores.search.signals import Seen
from memcycle.stores.search.snapshot import Copies, Copy, Kept, Vectors
from memcycle.stores.writer import lexical_rows


class Lexical(NamedTuple):
    """BM25 of one query.

    Attributes:
        views: Of each entry of a copy in each view, (entries, 3), 0 to 1.
        known: Share of the query's idf mass whose words some entry holds, 0 to 1.
    """

    views: Floats
    known: float


def recallable(copy: Copy, request: SearchRequest) -> Flags:
    """What the request's session may see: active, or staged in it."""
    own = np.zeros(len(copy.rows), dtype=bool)
    if request.scope.session in copy.sessions:
        own = copy.session == copy.sessions.index(request.scope.session)
    return np.asarray(~copy.staged | own)


def visible(copy: Copy, request: SearchRequest) -> Flags:
    """What the request may see at all: of its granularities, active, or staged in its own session."""
    kinds = [GRANULARITIES.index(granularity) for granularity in request.granularities]
    return np.asarray(recallable(copy, request) & np.isin(copy.granularity, kinds))


def candidates(copy: Copy, request: SearchRequest, seen: Flags, allowed: Ints | None, now: float) -> Ints:
    """Places of what of it may become a hit.

    Args:
        seen: What the request may see, see `visible`.
        allowed: Ledger rows that pass the request's filters; None without filters.
        now: Seconds; what expired before is no hit.
    """
    pool = seen & ~(copy.expires < now)
    if allowed is not None:
        pool &= np.isin(copy.rows, allowed)
    if request.exclude:
        pool &= np.array([entry_id not in request.exclude for entry_id in copy.ids], dtype=bool)
    return np.flatnonzero(pool)


def words(copy: Copy, request: SearchRequest, seen: Flags, query: Asked) -> Lexical:
    """BM25 over a whole scope, each granularity in the statistics of what the request may see: `seen`."""
    postings = copy.index.postings(query.terms)
    views, known = np.zeros((len(copy.rows), VIEWS)), 0.0
    for granularity in request.granularities:
        docs = seen & (copy.granularity == GRANULARITIES.index(granularity))
        stats = Stats(int(docs.sum()), copy.lengths[docs].sum(axis=0))
        own, share = weigh(postings.of(docs), copy.lengths, stats, len(query.terms))
        views, known = views + own, max(known, share)
    return Lexical(views, known)


class VectorIndex(Protocol):
    """What search asks of the vector index."""

    def query(
        self, scope: Scope, vectors: Vectors, k: int, granularity: Granularity | None
    ) -> list[list[tuple[str, float]]]:
        """For each vector the k nearest active entries of the base scope: id and cosine."""


Found = list[tuple[Scores, ...]]
"""BM25 of each query in each granularity."""


def nearest(index: VectorIndex, request: SearchRequest, asked: Sequence[Asked]) -> set[str]:
    """The ids the vector index holds nearest to any query, with and without names."""
    vectors = np.array([vector for query in asked for vector in (query.named, query.nameless)])
    everything = set(request.granularities) == set(GRANULARITIES)
    return {
        entry_id
        for granularity in ([None] if everything else request.granularities)
        for near in index.query(request.scope.base, vectors, request.theta.candidates, granularity)
        for entry_id, _ in near
    }


def worded(
    conn: sqlite3.Connection, request: SearchRequest, asked: Sequence[Asked]
) -> tuple[set[int], Found]:
    """Ledger rows of the first candidates of each lexical view and of all that is staged, and their BM25.

    The statistics are those of the whole scope.
    """
    waiting = entries.staged(conn, request.scope) if request.scope.session else []
    staged = [(row.granularity, row) for row in lexical_rows(conn, waiting)]
    found = [
        lexical.score(
            conn,
            request.scope.key,
            granularity,
            [query.stems for query in asked],
            [row for name, row in staged if name == granularity],
        )
        for granularity in request.granularities
    ]
    rows = {row.row for name, row in staged if name in request.granularities}
    for scores in (one for of_granularity in found for one in of_granularity):
        for view in scores.views.T:
            rows.update(scores.rows[np.lexsort((scores.rows, -view))[: request.theta.candidates]].tolist())
    return rows, list(zip(*found, strict=True))


def aligned(copy: Copy, scores: Sequence[Scores]) -> Lexical:
    """BM25 of one query, in the order of the copy."""
    views = np.zeros((len(copy.rows), VIEWS))
    for one in scores:
        _, at, place = np.intersect1d(one.rows, copy.rows, assume_unique=True, return_indices=True)
        views[place] = one.views[at]
    return Lexical(views, max(one.known for one in scores))


STRUCTURED = np.array([name in {"speaker", "date", "time_expression", "number", "capital"} for name in NAMES])
_SIGNALS: dict[str, Flags] = {
    "lexical": LEXICAL,
    "dense": EVIDENCE & ~LEXICAL,
    "structured": STRUCTURED,
}
"""The signals of each view; the others are of none, and only move what a view found."""


def narrowed(measured: Measured, weights: Weights, views: Views, order: Ints) -> Measured:
    """What the signals say where each view speaks for its first entries alone; beyond them it says nothing.

    A view orders by the weighted sum of its own signals, equal entries by `order`. One that may not speak at
    all takes no part in how good a match is.

    Args:
        measured: What the signals say, whole.
        order: A rank of each candidate, (candidates,), the same whatever is asked.
    """
    values, applies = measured.values, measured.applies
    for view, own in _SIGNALS.items():
        k = getattr(views, view)
        if k >= values.shape[1] and k:
            continue
        weight = np.array([getattr(weights, name) for name in NAMES]) * own
        kept = _first(_summed(weight, measured), k, order)
        values = np.where(own[:, None] & ~kept[None, :], 0.0, values)
        applies = applies if k else np.where(own, 0.0, applies)
    return measured if values is measured.values else replace(measured, values=values, applies=applies)


def _summed(weight: Floats, measured: Measured) -> Floats:
    return np.asarray((weight[:, None] * measured.relative()).sum(axis=0))


def _first(scores: Floats, k: int, order: Ints) -> Flags:
    """Which candidates are among the k best that have a score at all."""
    kept = np.zeros(len(scores), dtype=bool)
    kept[np.lexsort((order, -scores))[:k]] = True
    return np.asarray(kept & (scores > 0))


SCANNED_WHOLE = 10_000
"""Entries up to which a scope is copied and scanned whole."""
COPIES = 256 * 1024 * 1024
"""Bytes of copies kept: those of about 100,000 entries of 256 dimensions, of the scopes searched last."""


class Looked(NamedTuple):
    """What one query was asked of, and what the signals say about it.

    Attributes:
        copy: Entries.
        places: Places of the candidates among them, (candidates,).
        measured: Their signals.
    """

    copy: Copy
    places: Ints
    measured: Measured


class _Scope(NamedTuple):
    """What is read before the queries are embedded.

    Attributes:
        copy: Of the whole scope; None where it is too large.
        allowed: Ledger rows that pass the request's filters; None without filters.
        speakers: Who speaks in the scope.
        last: When the last of it was said, in seconds, not finite where unknown.
    """

    copy: Copy | None
    allowed: Ints | None
    speakers: frozenset[str]
    last: float


class Ranking(NamedTuple):
    """What one query found, best first, at most k.

    Attributes:
        measured: What the views say of the candidates. depth: how many of each view are told of.
    """

    found: list[Ranked]
    measured: Measured
    depth: int

    def why(self, chosen: Sequence[Ranked]) -> list[tuple[Why, ...]]:
        """Which views found each of these, and how."""
        return ranker.reasons(self.measured, [one.place for one in chosen], self.depth)


class Search:
    """Ranks the entries of a scope for queries. Thread-safe as far as its parts are."""

    def __init__(self, ledger: Ledger, index: VectorIndex, embedder: TextEmbedder) -> None:
        self._ledger, self._index, self._embedder = ledger, index, embedder
        self._copies = Copies(COPIES)

    def run(self, request: SearchRequest) -> list[list[Hit]]:
        """For each query of the request its hits, best first, at most k; equal scores in order of id.

        Hits score at least `min_score`, on a scale that means the same for every request (see
        `memcycle.stores.search.ranker`). Entries that share no word with the query and have no cosine with it
        are no hits, so a blank query has none. Expired entries are left out.

        Raises:
            EmbeddingFailed: the queries cannot be embedded.
            StoreError: the ledger or the index cannot be read.
        """
        rankings = self.rank(request)
        # Read anew: what left recall since it was ranked is no hit.
        with self._ledger.look() as conn:
            read = plain_entries.by_rows_plain_entries(
                conn, {one.row for ranking in rankings for one in ranking.found}
            )
        shown = {row: one for row, one in read.items() if _is_shown(request, one)}
        return [
            [
                Hit(entry=shown[one.row], score=one.score, why=why)
                for one, why in zip(ranking.found, ranking.why(ranking.found), strict=True)
                if one.row in shown
            ]
            for ranking in rankings
        ]

    def rank(self, request: SearchRequest) -> list[Ranking]:
        """As `run`, without reading any entry: it may have left recall meanwhile."""
        return [_ranked(request, looked) for looked in self.look(request)]

    def look(self, request: SearchRequest) -> list[Looked]:
        """For each query of the request what it may find, and what every signal says about it.

        Raises:
            EmbeddingFailed: the queries cannot be embedded.
            StoreError: the ledger or the index cannot be read.
        """
        with self._ledger.read() as conn:
            scope = self._scope(conn, request)
        asked = prepare(request.queries, self._embedder, speakers=scope.speakers, last=scope.last)
        if scope.copy is not None:
            copy = scope.copy
            seen = visible(copy, request)
            found = [words(copy, request, seen, query) for query in asked]
        else:
            copy, found = self._handed(request, asked, scope.allowed)
            seen = visible(copy, request)
        now = self._ledger.world.now().timestamp()
        places = candidates(copy, request, seen, scope.allowed, now)
        mass = copy.idf_mass(recallable(copy, request))
        half_life, reference = request.theta.half_life_days, request.theta.reference_date
        asked_at = now if reference is None else reference.timestamp()
        return [
            Looked(
                copy,
                places,
                ranker.measure(
                    Seen(copy, seen, mass, query, one.views, one.known, asked_at, half_life), places
                ),
            )
            for query, one in zip(asked, found, strict=True)
        ]

    def _scope(self, conn: sqlite3.Connection, request: SearchRequest) -> _Scope:
        copy = self._copy(conn, request.scope)
        narrowed = request.filters != Filters()
        allowed = reading.allowed(conn, request.scope, request.filters) if narrowed else None
        if copy is None:
            speakers, last = reading.speakers(conn, request.scope), reading.last_said(conn, request.scope)
            return _Scope(None, allowed, speakers, last)
        own = recallable(copy, request)
        return _Scope(copy, allowed, copy.speaking(own), copy.last_said(own))

    def _copy(self, conn: sqlite3.Connection, scope: Scope) -> Copy | None:
        change, kept = changes.number(conn, scope) or 0, self._copies.get(scope)
        if kept is not None and kept.change == change:
            return kept.copy
        if reading.size(conn, scope) > SCANNED_WHOLE:
            self._copies.drop(scope)
            return None
        copy = self._read(conn, scope, kept)
        self._copies.put(scope, change, copy)
        return copy

    def _read(self, conn: sqlite3.Connection, scope: Scope, kept: Kept | None) -> Copy:
        own = (conn, scope, self._embedder.id, self._embedder.dim)
        rows = changes.after(conn, scope, kept.change) if kept is not None else None
        if kept is None or rows is None:
            self._copies.drop(scope)
            return reading.whole(*own)
        return reading.renewed(*own, copy=kept.copy, rows=rows)

    def _handed(
        self, request: SearchRequest, asked: Sequence[Asked], allowed: Ints | None
    ) -> tuple[Copy, list[Lexical]]:
        """What is handed over; with filters all that they allow, since they could allow none of that."""
        near = nearest(self._index, request, asked)
        with self._ledger.read() as conn:
            rows, found = worded(conn, request, asked)
            rows.update(() if allowed is None else allowed.tolist())
            copy = reading.named(
                conn, request.scope, self._embedder.id, self._embedder.dim, rows=rows, ids=near
            )
        return copy, [aligned(copy, scores) for scores in found]


def _is_shown(request: SearchRequest, entry: Entry) -> bool:
    own = entry.status == "staged" and entry.scope.session == request.scope.session
    return entry.scope.key == request.scope.key and (entry.status == "active" or own)


def _best(theta: Theta, looked: Looked, k: int) -> tuple[Measured, Floats, list[int]]:
    """What the views say of the candidates of a query, their scores, and the k best of them."""
    order = looked.copy.order[looked.places]
    measured = narrowed(looked.measured, theta.weights, theta.views, order)
    scores = ranker.rank(measured, theta.weights, theta.fusion)
    return measured, scores, ranker.best(scores, order, k)


def _ranked(request: SearchRequest, looked: Looked) -> Ranking:
    """The best candidates of a query."""
    measured, scores, best = _best(request.theta, looked, request.k)
    copy, found = looked.copy, []
    for place in best:
        if scores[place] > 0 and scores[place] >= request.min_score:
            at = int(looked.places[place])
            granularity = GRANULARITIES[copy.granularity[at]]
            found.append(Ranked(copy.ids[at], granularity, float(scores[place]), int(copy.rows[at]), place))
    return Ranking(found, measured, request.theta.candidates)
