"""Searches a scope: what the request may see, the signals of each entry, one score, hits with reasons.

A scope of up to some thousands of entries is scanned whole, in a copy kept in memory (`copies`): that takes
less time than asking an index for candidates, and no filter can empty a candidate list. Of a larger scope the
lexical view and the vector index hand over `theta.candidates` each (`handed`), and only those are looked at.
Staged entries of the request's session are in neither index; they are always looked at.
"""

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from memcycle.core.entry import GRANULARITIES, Entry
from memcycle.core.scope import Scope
from memcycle.core.theta import Theta
from memcycle.stores.ledger import changes, plain_entries
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.request import Filters, Hit, Ranked, SearchRequest, Why
from memcycle.stores.search import handed, maxsim, ranker, reading, scan
from memcycle.stores.search.asked import Asked, TextEmbedder, prepare
from memcycle.stores.search.bm25 import Flags, Floats, Ints
from memcycle.stores.search.copies import Copies, Copy, Kept
from memcycle.stores.search.depth import narrowed
from memcycle.stores.search.handed import VectorIndex
from memcycle.stores.search.ranker import Measured
from memcycle.stores.search.scan import Lexical
from memcycle.stores.search.signals import Seen
from memcycle.stores.word_index import WordIndex

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

    def __init__(
        self, ledger: Ledger, index: VectorIndex, embedder: TextEmbedder, words: WordIndex | None = None
    ) -> None:
        self._ledger, self._index, self._embedder, self._words = ledger, index, embedder, words
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
            read = plain_entries.by_rows(conn, {one.row for ranking in rankings for one in ranking.found})
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
            seen = scan.visible(copy, request)
            found = [scan.words(copy, request, seen, query) for query in asked]
        else:
            copy, found = self._handed(request, asked, scope.allowed)
            seen = scan.visible(copy, request)
        now = self._ledger.world.now().timestamp()
        places = scan.candidates(copy, request, seen, scope.allowed, now)
        mass = copy.idf_mass(scan.recallable(copy, request))
        half_life, reference = request.theta.half_life_days, request.theta.reference_date
        asked_at = now if reference is None else reference.timestamp()
        first = [
            Looked(
                copy,
                places,
                ranker.measure(
                    Seen(copy, seen, mass, query, one.views, one.known, asked_at, half_life), places
                ),
            )
            for query, one in zip(asked, found, strict=True)
        ]
        if self._words is None or not request.theta.weights.maxsim:
            return first
        return self._again(self._words, request.theta, first, seen, [query.text for query in asked])

    def _again(
        self, index: WordIndex, theta: Theta, first: Sequence[Looked], seen: Flags, texts: Sequence[str]
    ) -> list[Looked]:
        """A second look at the first candidates of each query, word by word (see `maxsim`)."""
        queries = index.asked(texts)
        chosen = [np.array(_best(theta, one, maxsim.LOOKED_AT)[2], dtype=np.int64) for one in first]
        rows = [one.copy.rows[one.places[places]] for one, places in zip(first, chosen, strict=True)]
        with self._ledger.read() as conn:
            read = index.of(conn, np.unique(np.concatenate(rows)).tolist())
        near = [
            maxsim.nearness(words, maxsim.weights(one.copy, seen, words.words), read, own.tolist())
            for one, words, own in zip(first, queries, rows, strict=True)
        ]
        return [
            one._replace(measured=one.measured.with_maxsim(places, own))
            for one, places, own in zip(first, chosen, near, strict=True)
        ]

    def _scope(self, conn: sqlite3.Connection, request: SearchRequest) -> _Scope:
        copy = self._copy(conn, request.scope)
        narrowed = request.filters != Filters()
        allowed = reading.allowed(conn, request.scope, request.filters) if narrowed else None
        if copy is None:
            speakers, last = reading.speakers(conn, request.scope), reading.last_said(conn, request.scope)
            return _Scope(None, allowed, speakers, last)
        own = scan.recallable(copy, request)
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
        near = handed.nearest(self._index, request, asked)
        with self._ledger.read() as conn:
            rows, found = handed.worded(conn, request, asked)
            rows.update(() if allowed is None else allowed.tolist())
            copy = reading.named(
                conn, request.scope, self._embedder.id, self._embedder.dim, rows=rows, ids=near
            )
        return copy, [handed.aligned(copy, scores) for scores in found]


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
