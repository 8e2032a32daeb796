"""Searches a scope: what the request may see, the signals of each entry, one score, hits with reasons.

A scope of up to some thousands of entries is scanned whole, in a snapshot kept in memory: that takes less
time than asking an index for candidates, and no filter can empty a candidate list. Of a larger scope the
lexical view and the vector index hand over `theta.candidates` each, and only those are looked at; but where
another process has the embedded index, a larger scope is scanned whole as well. Staged entries are in neither
index; those that the request may see are always looked at.

The facts that rest on a turn are not known in a larger scope, so there `facts` says what `window` says.
"""

import copy
import sqlite3
import threading
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memcycle.core.entry import GRANULARITIES, Entry
from memcycle.core.errors import EmbeddingFailed, StoreError
from memcycle.core.scope import Scope, Visibility
from memcycle.core.theta import RELEVANCE
from memcycle.stores.ledger import entries, events
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.ledger.entries import StoredEntry, wall_of
from memcycle.stores.search import lexical, ranker
from memcycle.stores.search import snapshot as snapshots
from memcycle.stores.search.bm25 import VIEWS, Flags, Ints, Scores, Stats, weigh
from memcycle.stores.search.lexical import Kept
from memcycle.stores.search.ranker import Measured
from memcycle.stores.search.request import (
    Filters,
    Hit,
    NoEmbedder,
    PreparedQuery,
    Ranked,
    SearchRequest,
    Why,
    prepare,
)
from memcycle.stores.search.signals import Comparison
from memcycle.stores.search.snapshot import Snapshot, Snapshots

if TYPE_CHECKING:
    from memcycle.stores.chroma.mirror import Mirror
    from memcycle.stores.embedders import Embedder

SCANNED_WHOLE = 10_000
"""Entries up to which a scope is read and scanned whole."""
VECTOR_BYTES = 128 * 1024 * 1024
"""Of snapshots kept, about half of what they take: those of some 120,000 entries of 256 dimensions."""


SCOPES_KEPT = 4
"""Large scopes of which what was read last is kept."""


class Candidates(NamedTuple):
    """What one query may find, and what the signals say about it.

    Attributes:
        snapshot: Entries.
        places: Places of the candidates among them, (candidates,).
        measured: Their signals.
        query: What is asked. fitted: whether `RELEVANCE` may judge it.
    """

    snapshot: Snapshot
    places: Ints
    measured: Measured
    query: PreparedQuery
    fitted: bool


class Ranking(NamedTuple):
    """What one query found, best first, at most k.

    Attributes:
        measured: What the views say of the candidates. depth: how many of each view are told of.
        likely: How likely it bears on what was asked, 0 to 1; 1 where that cannot be told.
        by_words: Kind of the embedder's error, where it was searched by words alone since it failed.
    """

    found: list[Ranked]
    measured: Measured
    depth: int
    likely: float
    by_words: str = ""

    def why(self, chosen: Sequence[Ranked]) -> list[tuple[Why, ...]]:
        """Which views found each of these, and how."""
        return ranker.reasons(self.measured, [one.place for one in chosen], self.depth)


class _Looked(NamedTuple):
    """A scope: its snapshot unless it is too large, who speaks, when last, and what the filters allow."""

    snapshot: Snapshot | None
    speakers: frozenset[str]
    last: float
    allowed: Ints | None


class _Last(NamedTuple):
    """What a request found as of a change of its scope, and from when until when it finds that."""

    asked: SearchRequest
    change: int | None
    since: float
    until: float
    found: list[Candidates]


class Search:
    """Ranks the entries of a scope for queries. Thread-safe as far as its parts are."""

    def __init__(
        self,
        ledger: Ledger,
        index: "Mirror",
        embedder: "Embedder | NoEmbedder",
        visibility: Visibility = "user",
    ) -> None:
        self._ledger, self._index, self._embedder = ledger, index, embedder
        self._visibility, self._walls = visibility, visibility == "session"
        self._snapshots = Snapshots(VECTOR_BYTES)
        self._kept, self._keeping = dict[str, Kept](), threading.Lock()
        self._last: _Last | None = None

    def run(self, request: SearchRequest) -> list[list[Hit]]:
        """For each query of the request its hits, best first, at most k; equal scores in order of id.

        Scores are on a scale that means the same for every request (see `memcycle.stores.search.ranker`).
        Entries that share no word with the query and have no cosine with it are no hits, so a blank query has
        none. Expired entries are left out.

        Raises:
            EmbeddingFailed: the queries cannot be embedded.
            StoreError: the ledger or the index cannot be read.
        """
        rankings = self.rank(request)
        # Read anew: what left recall since it was ranked is no hit.
        with self._ledger.look() as conn:
            read = entries.by_rows(conn, {one.row for ranking in rankings for one in ranking.found})
        wall = wall_of(request.scope, self._visibility)
        shown = {row: one.entry for row, one in read.items() if _is_shown(request, one.entry, wall)}
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
        try:
            return [_ranked(request, one) for one in self.candidates(request)]
        except Exception as error:
            # What an embedder raises is of any kind; what the store raises is not about it.
            if not request.lenient or (
                isinstance(error, StoreError) and not isinstance(error, EmbeddingFailed)
            ):
                raise
            looked = self._without_embedder().candidates(request)
            found = [_ranked(request, one)._replace(by_words=type(error).__name__) for one in looked]
            if any(len(one.places) for one in looked) and not any(ranking.found for ranking in found):
                raise  # nothing found by half a search would look like an empty memory
            return found

    def _without_embedder(self) -> "Search":
        other = copy.copy(self)
        other._embedder, other._snapshots, other._kept, other._last = (
            NoEmbedder(),
            Snapshots(VECTOR_BYTES),
            {},
            None,
        )
        return other

    def candidates(self, request: SearchRequest) -> list[Candidates]:
        """For each query of the request what it may find, and what every signal says about it.

        What was found last is given again where nothing changed and only more of it is wanted, as by a Retry.

        Raises:
            EmbeddingFailed: the queries cannot be embedded.
            StoreError: the ledger or the index cannot be read.
        """
        minute = request.asked_at and request.asked_at.replace(second=0, microsecond=0)
        asked = request.model_copy(update={"k": 1, "asked_at": minute})
        with self._ledger.read() as conn:
            change = events.last_change(conn, request.scope)
        now, last = self._ledger.world.now().timestamp(), self._last
        if (
            last is not None
            and last.since <= now < last.until
            and (last.change, last.asked) == (change, asked)
        ):
            return last.found
        found = self._candidates(request, now)
        ends = [one.snapshot.expires[one.snapshot.expires >= now] for one in found]
        until = min(end.min(initial=now + 60.0) for end in ends) if ends else now
        self._last = _Last(asked, change, now, until, found)
        return found

    def _candidates(self, request: SearchRequest, now: float) -> list[Candidates]:
        looked = self._look(request)
        while looked.snapshot is None and not self._index.at_hand():
            looked = self._look(request)
        snapshot, allowed = looked.snapshot, looked.allowed
        queries = prepare(
            request.queries,
            self._embedder,
            speakers=looked.speakers,
            last=looked.last,
            asked_at=request.asked_at,
        )
        if snapshot is not None:
            visible = _visible(snapshot, request)
            scores = [_scanned(snapshot, request, visible, query) for query in queries]
        else:
            snapshot, scores = self._from_indexes(request, queries, allowed)
            visible = _visible(snapshot, request)
        places = _places(snapshot, request, visible, allowed, now)
        mass = snapshot.idf_mass(_recallable(snapshot, request))
        theta = request.theta
        asked_at = now if theta.reference_date is None else theta.reference_date.timestamp()
        compared = [
            Comparison(snapshot, visible, mass, query, one.views, one.known, asked_at, theta.half_life_days)
            for query, one in zip(queries, scores, strict=True)
        ]
        fitted = looked.snapshot is not None and self._embedder.id.startswith(RELEVANCE.embedder)
        return [
            Candidates(snapshot, places, ranker.measure(one, places), one.query, fitted) for one in compared
        ]

    def _look(self, request: SearchRequest) -> "_Looked":
        """What the ledger says of the request's scope, in one view of it."""
        scope, wall = request.scope, wall_of(request.scope, self._visibility)
        with self._ledger.read() as conn:
            snapshot = self._snapshot(conn, scope)
            if snapshot is not None:
                own = _recallable(snapshot, request)
                speakers, last = snapshot.speaking(own), snapshot.last_said(own)
            else:
                speakers, last = snapshots.spoken(conn, scope, wall)
            allowed = None
            if request.filters != Filters():
                allowed = snapshots.allowed(conn, scope, request.filters)
        return _Looked(snapshot, speakers, last, allowed)

    def _snapshot(self, conn: sqlite3.Connection, scope: Scope) -> Snapshot | None:
        """Of the whole scope, as of now; None where it is too large, and another does not have the index."""
        change, known = events.last_change(conn, scope) or 0, self._snapshots.get(scope)
        if known is not None and known.change == change:
            return known.snapshot
        if not self._index.elsewhere and snapshots.holds_more(conn, scope, SCANNED_WHOLE):
            self._snapshots.drop(scope)
            return None
        rows = events.changed_since(conn, scope, known.change) if known is not None else None
        embedder = self._embedder
        if known is None or rows is None:
            self._snapshots.drop(scope)
            snapshot = snapshots.read_whole(conn, scope, embedder.id, embedder.dim, walls=self._walls)
        else:
            snapshot = snapshots.renew(
                conn, scope, embedder.id, embedder.dim, old=known.snapshot, rows=rows, walls=self._walls
            )
        self._snapshots.put(scope, change, snapshot)
        return snapshot

    def _from_indexes(
        self, request: SearchRequest, queries: Sequence[PreparedQuery], allowed: Ints | None
    ) -> tuple[Snapshot, list[Scores]]:
        """A snapshot of what the indexes hand over, and the BM25 of each query.

        With filters all that they allow is in it, since they could allow none of what is handed over.
        """
        near = self._nearest(request, queries)
        embedder, scope = self._embedder, request.scope
        with self._ledger.read() as conn:
            kept = self._kept_of(conn, scope)
            staged = entries.staged(conn, scope, wall_of(scope, self._visibility))
            rows, found = _worded(conn, request, queries, staged, kept)
            rows.update(() if allowed is None else allowed.tolist())
            rows.update(snapshots.keep(conn, scope, embedder.id, kept, ids=near).values())
            snapshot = snapshots.read_some(
                conn, scope, embedder.id, embedder.dim, rows=rows, kept=kept, walls=self._walls
            )
        return snapshot, [_aligned(snapshot, scores) for scores in found]

    def _nearest(self, request: SearchRequest, queries: Sequence[PreparedQuery]) -> set[str]:
        """The ids the vector index holds nearest to any query, with and without names."""
        if isinstance(self._embedder, NoEmbedder):
            return set()

        def own(ids: set[str]) -> Collection[str]:
            with self._ledger.read() as conn:
                kept = self._kept_of(conn, request.scope)
                return snapshots.keep(conn, request.scope, self._embedder.id, kept, ids=ids)

        vectors = np.array([vector for query in queries for vector in (query.named, query.nameless)])
        only = request.granularities[0] if len(request.granularities) == 1 else None
        found = self._index.query(request.scope.base, vectors, request.theta.candidates, only, own)
        return {entry_id for near in found for entry_id, _ in near}

    def _kept_of(self, conn: sqlite3.Connection, scope: Scope) -> Kept:
        """What is kept of a large scope as of now."""
        change = events.last_change(conn, scope) or 0
        with self._keeping:
            kept = self._kept.get(scope.key, Kept(change))
            if kept.change > change:  # another has read a later one meanwhile
                return Kept(change)
            if kept.change < change:
                rows = events.changed_since(conn, scope, kept.change)
                kept = Kept(change) if rows is None else kept.at(change, rows)
            self._kept.pop(scope.key, None)
            kept = self._kept[scope.key] = kept.bounded()
            if len(self._kept) > SCOPES_KEPT:
                self._kept.pop(next(iter(self._kept)))
        return kept


def _is_shown(request: SearchRequest, entry: Entry, wall: str | None) -> bool:
    own = entry.status == "staged" and wall in (None, entry.scope.session)
    return entry.scope.key == request.scope.key and (entry.status == "active" or own)


def _recallable(snapshot: Snapshot, request: SearchRequest) -> Flags:
    """What the request's session may see: all but what another session alone may."""
    own = np.zeros(len(snapshot.rows), dtype=bool)
    if request.scope.session in snapshot.sessions:
        own = snapshot.session == snapshot.sessions.index(request.scope.session)
    return np.asarray(~snapshot.walled | own)


def _visible(snapshot: Snapshot, request: SearchRequest) -> Flags:
    """What of it is of the request's granularities."""
    kinds = [GRANULARITIES.index(granularity) for granularity in request.granularities]
    return np.asarray(_recallable(snapshot, request) & np.isin(snapshot.granularity, kinds))


def _places(
    snapshot: Snapshot, request: SearchRequest, visible: Flags, allowed: Ints | None, now: float
) -> Ints:
    """Places of what may become a hit.

    Args:
        allowed: Ledger rows that pass the request's filters; None without filters.
        now: Seconds; what expired before is no hit.
    """
    pool = visible & ~(snapshot.expires < now)
    if allowed is not None:
        pool &= np.isin(snapshot.rows, allowed)
    if request.telling:
        pool &= (snapshot.traits & lexical.SILENT) == 0
    if request.exclude:
        pool &= np.array([entry_id not in request.exclude for entry_id in snapshot.ids], dtype=bool)
    return np.flatnonzero(pool)


def _scanned(snapshot: Snapshot, request: SearchRequest, visible: Flags, query: PreparedQuery) -> Scores:
    """BM25 of a whole scope, each granularity in the statistics of what the request may see."""
    postings = snapshot.postings(query.terms)
    views, known = np.zeros((len(snapshot.rows), VIEWS)), 0.0
    for granularity in request.granularities:
        docs = visible & (snapshot.granularity == GRANULARITIES.index(granularity))
        stats = Stats(int(docs.sum()), snapshot.lengths[docs].sum(axis=0))
        own, share = weigh(postings.of(docs), snapshot.lengths, stats, len(query.terms))
        views, known = views + own, max(known, share)
    return Scores(snapshot.rows, views, known)


def _worded(
    conn: sqlite3.Connection,
    request: SearchRequest,
    queries: Sequence[PreparedQuery],
    waiting: Sequence[StoredEntry],
    kept: Kept,
) -> tuple[set[int], list[tuple[Scores, ...]]]:
    """Ledger rows of the first candidates of each lexical view and of all that waits, and the BM25.

    That of each query in each granularity, in the statistics of the whole scope.
    """
    staged = [(row.granularity, row) for row in lexical.rows_of(conn, waiting)]
    found = [
        lexical.score(
            conn,
            request.scope.key,
            granularity,
            [query.stems for query in queries],
            [row for name, row in staged if name == granularity],
            kept=kept,
        )
        for granularity in request.granularities
    ]
    rows = {row.row for name, row in staged if name in request.granularities}
    of_queries = list(zip(*found, strict=True))
    for of_query in of_queries:
        held = np.concatenate([one.rows for one in of_query])
        for view in np.concatenate([one.views for one in of_query]).T[: VIEWS - 1]:
            rows.update(held[np.lexsort((held, -view))[: request.theta.candidates]].tolist())
    return rows, of_queries


def _aligned(snapshot: Snapshot, scores: Sequence[Scores]) -> Scores:
    """The BM25 of one query in all granularities, in the order of the snapshot."""
    views = np.zeros((len(snapshot.rows), VIEWS))
    for one in scores:
        _, at, place = np.intersect1d(one.rows, snapshot.rows, assume_unique=True, return_indices=True)
        views[place] = one.views[at]
    return Scores(snapshot.rows, views, max(one.known for one in scores))


def _ranked(request: SearchRequest, candidates: Candidates) -> Ranking:
    """The best candidates of a query."""
    snapshot, places, theta = candidates.snapshot, candidates.places, request.theta
    order = snapshot.order[places]
    measured = ranker.narrowed(candidates.measured, theta.weights, theta.views, order)
    scores = ranker.rank(measured, theta.weights, theta.fusion)
    found = []
    for place in ranker.best(scores, order, request.k):
        if scores[place] > 0:
            at = int(places[place])
            granularity = GRANULARITIES[snapshot.granularity[at]]
            score, row = float(scores[place]), int(snapshot.rows[at])
            found.append(Ranked(snapshot.ids[at], granularity, score, row, place))
    return Ranking(found, measured, theta.candidates, _likely(candidates, found, theta.k))


def _likely(candidates: Candidates, found: Sequence[Ranked], k: int) -> float:
    """How likely what was found bears on the query; in doubt it does.

    In a memory no larger than what is shown anyway, small talk that shares a word with it may ask for it.
    """
    measured, query = candidates.measured, candidates.query
    if query.small_talk:
        shares = measured.values[ranker.NAMES.index("bm25")].any()
        return float(bool(shares) and len(candidates.places) <= k)
    if not (query.form and found and candidates.fitted):
        return 1.0
    told = ranker.told_of(measured, [one.place for one in found], query.form)
    return ranker.bears(told, RELEVANCE.intercept, RELEVANCE.weights)
