"""Search of a LangGraph store: by namespace and filter, and by likeness to a query."""

import logging
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import NamedTuple

import numpy as np
from langgraph.store.base import SearchOp

from memcycle.core.errors import EmbedderMismatch, StoreError
from memcycle.stores.bank import Bank
from memcycle.stores.item_filter import matches
from memcycle.stores.item_index import ItemIndex
from memcycle.stores.item_texts import ItemEmbedder
from memcycle.stores.ledger import item_vectors, items
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.ledger.items import StoredItem

_log = logging.getLogger(__name__)

EXACT_UP_TO = 5_000
"""Vectors at or below the searched namespace that are compared one by one, which is exact. Measured with 256
dimensions on two busy cores, a whole search, against Chroma with its condition on the namespace: 5,000
vectors 28 against 39 ms, 10,000 122 against 48. To compare 100 of 10,000 vectors takes 0.5 ms, where Chroma
takes 8; to compare 50,000 takes 970, where it takes 290."""

INDEXED_UP_TO = 200
"""Results, with those skipped, that Chroma is asked for; deeper pages are compared one by one."""

SPARE = 4
"""Times as many vectors as results are asked for: an item may have several, and some may be gone."""


class Found(NamedTuple):
    """An item, and the cosine of its nearest vector with the query, -1 to 1; None without a query."""

    item: StoredItem
    score: float | None


def listed(conn: sqlite3.Connection, op: SearchOp, now: datetime | None) -> list[Found]:
    """What is at or below a namespace, alive at `now`, and passes the filter; the last written first."""
    passed = (
        Found(item, None)
        for item in items.latest(conn, op.namespace_prefix, now)
        if not op.filter or matches(item.parsed(), op.filter)
    )
    return list(islice(passed, op.offset, op.offset + op.limit))


class Likeness:
    """Finds items by the vectors that one embedder made of them.

    Attributes:
        embedder: Makes the vectors.
    """

    def __init__(self, bank: Bank, embedder: ItemEmbedder) -> None:
        self.embedder, self._ledger = embedder, bank.ledger
        self._index = ItemIndex(bank.ledger, bank.views.mirror, embedder.id, bank.settings.serving_batch)

    def catch_up(self) -> None:
        """Brings Chroma up to date where a search may need it; if it cannot be used, what it lacks waits."""
        with self._ledger.read() as conn:
            needed = item_vectors.exceed(conn, self.embedder.id, EXACT_UP_TO)
        if needed:
            try:
                self._index.drain()
            except StoreError as error:
                _log.warning("the index of the items is behind the ledger: %s", error)

    def nearest(
        self, conn: sqlite3.Connection, op: SearchOp, query: Vector, now: datetime | None
    ) -> list[Found]:
        """What is nearest to the query, shape (dim,), of what the filter lets through and has a vector.

        Raises:
            EmbedderMismatch: there are vectors of another embedder.
        """
        prefix, wanted = op.namespace_prefix, op.offset + op.limit
        counted = item_vectors.sample(conn, prefix, now, EXACT_UP_TO + 1)
        if set(counted) - {self.embedder.id}:
            others = ", ".join(sorted(set(counted) - {self.embedder.id}))
            raise EmbedderMismatch(
                f"items in the store have vectors of the embedder {others}, not of {self.embedder.id}: use"
                " that one, or make the vectors anew with `MemcycleStore.reembed`"
            )
        ranked: list[tuple[int, float]] | None = None
        if op.filter:
            ranked = self._ranked(conn, self._passing(conn, op, now), query)
        elif sum(counted.values()) > EXACT_UP_TO and wanted <= INDEXED_UP_TO and query.any():
            ranked = self._from_index(conn, op, query, now)
        if ranked is None:
            owners, vectors = item_vectors.under(conn, prefix, now, self.embedder.id)
            ranked = _best(owners, vectors, query)
        chosen = ranked[op.offset : wanted]
        found = items.by_rows(conn, [row for row, _ in chosen])
        return [Found(found[row], score) for row, score in chosen]

    def _passing(self, conn: sqlite3.Connection, op: SearchOp, now: datetime | None) -> Iterator[int]:
        return (
            item.row
            for item in items.latest(conn, op.namespace_prefix, now)
            if matches(item.parsed(), op.filter)
        )

    def _ranked(
        self, conn: sqlite3.Connection, rows: Iterator[int] | set[int], query: Vector
    ) -> list[tuple[int, float]]:
        owners, vectors = item_vectors.of_items(conn, rows, self.embedder.id)
        return _best(owners, vectors, query)

    def _from_index(
        self, conn: sqlite3.Connection, op: SearchOp, query: Vector, now: datetime | None
    ) -> list[tuple[int, float]] | None:
        """The nearest items by Chroma, with exact scores; None when it cannot be used now."""
        wanted = op.offset + op.limit
        k = SPARE * wanted
        try:
            while True:
                near = self._index.query(op.namespace_prefix, query, k)
                owners = item_vectors.owners(conn, near, op.namespace_prefix, now)
                if len(owners) >= wanted or len(near) < k:
                    return self._ranked(conn, owners, query)
                k *= SPARE
        except StoreError as error:
            _log.warning("items are compared one by one, the index cannot be used: %s", error)
            return None


def _best(owners: list[int], vectors: Vector, query: Vector) -> list[tuple[int, float]]:
    """Items by the score of their nearest vector; equal ones as they were created."""
    if not owners:
        return []
    best: dict[int, float] = {}
    for owner, score in zip(owners, (vectors @ query).tolist(), strict=True):
        best[owner] = max(score, best.get(owner, -np.inf))
    return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))
