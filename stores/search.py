"""Searches a scope: candidates from the lexical view and the vectors, one score, hits with reasons.

A small scope, and any filtered search, is scanned whole: up to some two thousand entries that takes less time
than asking Chroma for candidates, and a filter can never empty a candidate list. Otherwise the lexical view
and Chroma hand over `theta.candidates` each, and all views score all of them: a candidate of one view is
scored by the others too, from the ledger. Staged entries of the request's session are in neither index; they
are always scanned, and scored in the same BM25 statistics.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from memcycle.core.entry import GRANULARITIES, Granularity
from memcycle.core.language.tokens import content_stems, stems, strip_names, tokenize
from memcycle.core.scope import Scope
from memcycle.stores import lexical
from memcycle.stores.bm25 import Floats, Scores
from memcycle.stores.candidates import Candidates, Reader
from memcycle.stores.fusion import VIEWS, View, ViewScores, best, fuse, reasons
from memcycle.stores.ledger import entries
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.lexical import LexicalRow
from memcycle.stores.request import Filters, Hit, Query, SearchRequest, Why
from memcycle.stores.writer import lexical_row

Vectors = NDArray[np.float32]
_Staged = dict[Granularity, list[LexicalRow]]

SCANNED_WHOLE = 2000
"""Entries up to which a scope is read whole. CPU time of a search, whole against through Chroma (measured,
256 dimensions): 5 against 11 ms at 419 entries, 8 against 13 at 788, 21 against 27 at 2,080."""


class VectorIndex(Protocol):
    """What search asks of the vector index."""

    def query(
        self, scope: Scope, vectors: Vectors, k: int, granularity: Granularity | None
    ) -> list[list[tuple[str, float]]]:
        """For each vector the k nearest active entries of the base scope: id and cosine."""


class TextEmbedder(Protocol):
    """What search asks of the embedder."""

    @property
    def id(self) -> str:
        """Recorded with every stored vector."""

    @property
    def dim(self) -> int:
        """Length of its vectors."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts, (n, dim); a zero row for a blank one."""


@dataclass(frozen=True)
class _Asked:
    """A query made ready.

    Attributes:
        terms: Its stems, without function words unless it has no others.
        speakers: Who is asked about, casefolded: the query's speaker and those its text names.
        named, nameless: Unit vectors of the text, and of it without those names.
    """

    terms: list[str]
    speakers: frozenset[str]
    named: Vectors
    nameless: Vectors


class _Ranked(NamedTuple):
    """A hit by its ledger row."""

    row: int
    score: float
    why: tuple[Why, ...]


class Search:
    """Ranks the entries of a scope for queries. Thread-safe as far as its parts are."""

    def __init__(self, ledger: Ledger, index: VectorIndex, embedder: TextEmbedder) -> None:
        self._ledger, self._index, self._embedder = ledger, index, embedder

    def run(self, request: SearchRequest) -> list[list[Hit]]:
        """For each query of the request its hits, best first, at most k; equal scores in order of id.

        Hits score at least `min_score`, on a scale that means the same for every request (see
        `memcycle.stores.fusion`). Entries that share no word with the query and have no cosine with it are no
        hits, so a blank query has none. Expired entries are left out.

        Raises:
            EmbeddingFailed: the queries cannot be embedded.
            StoreError: the ledger or the index cannot be read.
        """
        with self._ledger.read() as conn:
            staged = _staged_rows(conn, request)
            counts = lexical.population(conn, request.scope.key, request.granularities)
        asked = self._prepare(request.queries, _speakers(counts, staged))
        reader = Reader(request, self._ledger.world.now(), self._embedder.id, self._embedder.dim)
        whole = sum(counts.values()) <= SCANNED_WHOLE or request.filters != Filters()
        near = [set[str]() for _ in asked] if whole else self._nearest(request, asked)
        with self._ledger.read() as conn:
            everything = reader.all(conn) if whole else None
            results = []
            for query, found, ids in zip(
                asked, _lexical_scores(conn, request, asked, staged), near, strict=True
            ):
                candidates = everything or reader.named(
                    conn, _rows(found, staged, request.theta.candidates), ids
                )
                results.append(_ranked(request, candidates, _view_scores(candidates, query, found)))
            whole_entries = entries.by_rows(conn, {one.row for ranked in results for one in ranked})
        return [
            [Hit(entry=whole_entries[one.row].entry, score=one.score, why=one.why) for one in ranked]
            for ranked in results
        ]

    def _prepare(self, queries: Sequence[Query], speakers: Iterable[str]) -> list[_Asked]:
        """Stems, speakers and vectors of all queries, in one embedding batch."""
        named = [[name for name in speakers if _names(query.text, name)] for query in queries]
        asked = [
            frozenset(name.casefold() for name in [*names, query.speaker] if name)
            for query, names in zip(queries, named, strict=True)
        ]
        nameless = [_nameless(query.text, names) for query, names in zip(queries, named, strict=True)]
        vectors = self._embedder.embed([query.text for query in queries] + nameless)
        return [
            _Asked(
                content_stems(query.text) or stems(query.text),
                asked[at],
                vectors[at],
                vectors[at + len(queries)],
            )
            for at, query in enumerate(queries)
        ]

    def _nearest(self, request: SearchRequest, asked: Sequence[_Asked]) -> list[set[str]]:
        """For each query the ids the vector index holds nearest to it, with and without names."""
        vectors = np.array([vector for query in asked for vector in (query.named, query.nameless)])
        everything = set(request.granularities) == set(GRANULARITIES)
        ids: list[set[str]] = [set() for _ in asked]
        for granularity in [None] if everything else request.granularities:
            found = self._index.query(request.scope.base, vectors, request.theta.candidates, granularity)
            for at, nearest in enumerate(found):
                ids[at // 2].update(entry_id for entry_id, _ in nearest)
        return ids


def _speakers(counts: Mapping[str | None, int], staged: _Staged) -> list[str]:
    """Who speaks in what is searched."""
    names = {*counts, *(row.speaker for rows in staged.values() for row in rows)}
    return sorted(name for name in names if name)


def _names(text: str, name: str) -> bool:
    return strip_names(text, [name]) != " ".join(text.split())


def _nameless(text: str, names: Iterable[str]) -> str:
    """The text without these names; the text itself where nothing else is in it."""
    stripped = strip_names(text, names)
    return stripped if tokenize(stripped) else text


def _staged_rows(conn: sqlite3.Connection, request: SearchRequest) -> _Staged:
    """What the lexical view would hold of the session's staged entries, by granularity."""
    rows: _Staged = {granularity: [] for granularity in request.granularities}
    for one in entries.staged(conn, request.scope) if request.scope.session else []:
        if one.entry.granularity in rows:
            rows[one.entry.granularity].append(lexical_row(conn, one))
    return rows


def _lexical_scores(
    conn: sqlite3.Connection, request: SearchRequest, asked: Sequence[_Asked], staged: _Staged
) -> list[Scores]:
    """For each query BM25 in each granularity's own statistics, together."""
    terms = [query.terms for query in asked]
    found = [
        lexical.score(conn, request.scope.key, granularity, terms, rows)
        for granularity, rows in staged.items()
    ]
    return [_together(scores) for scores in zip(*found, strict=True)]


def _together(scores: Sequence[Scores]) -> Scores:
    return Scores(
        np.concatenate([one.rows for one in scores]),
        np.concatenate([one.views for one in scores]),
        max(one.known for one in scores),
    )


def _rows(found: Scores, staged: _Staged, depth: int) -> set[int]:
    """Ledger rows to look at: the first `depth` of either lexical view, and everything staged."""
    rows = {row.row for rows in staged.values() for row in rows}
    for view in found.views.T:
        rows.update(found.rows[np.lexsort((found.rows, -view))[:depth]].tolist())
    return rows


def _view_scores(candidates: Candidates, query: _Asked, found: Scores) -> ViewScores:
    pairs = np.zeros((len(candidates.rows), 2))
    _, at, place = np.intersect1d(found.rows, candidates.rows, assume_unique=True, return_indices=True)
    pairs[place] = found.views[at]
    speaks = np.array([name in query.speakers for name in candidates.speakers], dtype=float)
    said: dict[View, tuple[Floats, float]] = {
        "bm25": (pairs[:, 0], found.known),
        "window": (pairs[:, 1], found.known),
        "dense": (_cosines(candidates.vectors, query.named), float(query.named.any())),
        "dense_nameless": (_cosines(candidates.vectors, query.nameless), float(query.nameless.any())),
        "speaker": (speaks, float(speaks.any())),
    }
    return ViewScores(
        values=np.array([said[view][0] for view in VIEWS]),
        applies=np.array([said[view][1] for view in VIEWS]),
    )


def _cosines(vectors: Vectors, query: Vectors) -> Floats:
    """Cosines clipped to [0, 1], (candidates,). Row by row: a matrix product may round a row differently
    beside other rows, and nobody's entries may change another's scores."""
    cosines: Floats = (vectors * query).sum(axis=1).astype(np.float64)
    return np.clip(cosines, 0.0, 1.0)


def _ranked(request: SearchRequest, candidates: Candidates, scores: ViewScores) -> list[_Ranked]:
    """The best candidates of a query, not read whole yet: the queries of a request share many."""
    fused = fuse(scores, request.theta.weights)
    chosen = [
        at
        for at in best(fused, candidates.ids, request.k)
        if fused[at] > 0 and fused[at] >= request.min_score
    ]
    return [
        _Ranked(candidates.rows[at], float(fused[at]), why)
        for at, why in zip(chosen, reasons(scores, chosen, request.theta.candidates), strict=True)
    ]
