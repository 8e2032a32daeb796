"""Candidates of a scope too large to be copied whole: what the lexical view and the vector index hand over.

The facts that rest on a turn are not known here, so `facts` says what `window` says.
"""

import sqlite3
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from memcycle.core.entry import GRANULARITIES, Granularity
from memcycle.core.scope import Scope
from memcycle.stores.ledger import entries
from memcycle.stores.request import SearchRequest
from memcycle.stores.search import lexical
from memcycle.stores.search.asked import Asked
from memcycle.stores.search.bm25 import VIEWS, Scores
from memcycle.stores.search.copies import Copy, Vectors
from memcycle.stores.search.scan import Lexical
from memcycle.stores.writer import lexical_rows


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
