"""The operations of a LangGraph store on a bank's ledger: a batch of them in one read and one write."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)
from pydantic_core import to_jsonable_python

from memcycle.core.errors import BadInput
from memcycle.stores.bank import Bank
from memcycle.stores.item_index import drop_collections
from memcycle.stores.item_reembedding import reembed_items
from memcycle.stores.item_search import Found, Likeness, listed
from memcycle.stores.item_texts import ItemEmbedder, Texts, paths_of, texts_at
from memcycle.stores.ledger import item_vectors, items, meta
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.ledger.items import Namespace, StoredItem

Vectors = dict[str, Vector]
"""By text."""


class _Write(NamedTuple):
    """A put or, where `value` is None, a delete."""

    op: PutOp
    value: str | None
    texts: Texts


class Items:
    """Reads and writes items. Thread-safe; several processes may use one home.

    Args:
        embedder: None makes and searches no vectors.
        fields: Paths of a value that are embedded, unless a put names its own.
        omit_expired: Whether an item whose time is over is gone at once, or when it is swept.
    """

    def __init__(
        self, bank: Bank, embedder: ItemEmbedder | None, fields: Sequence[str] | None, *, omit_expired: bool
    ) -> None:
        self._bank, self._fields, self._omit_expired = bank, fields, omit_expired
        self._likeness = Likeness(bank, embedder) if embedder is not None else None

    def run(self, ops: Sequence[Op]) -> list[Result]:
        """The results of operations, in their order. Reads see what was there before the batch's writes.

        Raises:
            InvalidNamespaceError: a label that is empty, no text, or has a period or NUL.
            BadInput: a value that is no JSON. Nothing was written, as after any error.
        """
        for op in ops:
            validate_op_namespace(op)
        writes = self._writes(ops)
        vectors = self._vectors(writes, ops)
        now = self._bank.world.now()
        results, read = self._read(ops, vectors, now)
        if writes or read:
            self._write(writes, read, vectors, now)
        if self._likeness is not None and any(one.texts for one in writes):
            self._likeness.catch_up()
        return results

    def sweep(self) -> int:
        """Removes the items whose time is over; returns how many."""
        now = self._bank.world.now()
        with self._bank.ledger.read() as conn:
            if not items.expired(conn, now):
                return 0
        with self._bank.ledger.write() as conn:
            return _sweep(conn, now)

    def erase(self, prefix: Namespace) -> int:
        """Removes all items at or below a namespace, and wipes them from all files; returns how many.

        Raises:
            StoreError: all is removed, but the files cannot be wiped now; repeat.
        """
        validate_op_namespace(GetOp(prefix, ""))
        if not prefix:
            raise InvalidNamespaceError("name the namespace to delete; an empty one would be the whole store")
        with self._bank.ledger.write() as conn:
            rows = items.rows_below(conn, prefix)
            _remove(conn, rows)
            meta.owe_scrub(conn, [])
        drop_collections(self._bank.ledger, self._bank.views.mirror)
        self._bank.views.mirror.wipe()
        return len(rows)

    def reembed(self) -> int:
        """Makes the vectors of other embedders anew; returns of how many items."""
        if self._likeness is None:
            return 0
        return reembed_items(self._bank.ledger, self._likeness.embedder, self._bank.settings.bulk_batch)

    def close(self) -> None:
        """Ends what the embedder runs. The bank stays open."""
        if self._likeness is not None:
            self._likeness.embedder.close()

    def _writes(self, ops: Iterable[Op]) -> list[_Write]:
        last = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        return [self._prepared(op) for op in last.values()]

    def _prepared(self, op: PutOp) -> _Write:
        if op.value is None:
            return _Write(op, None, [])
        value = self._redacted(_to_json(op))
        paths = paths_of(op, self._fields) if self._likeness is not None else []
        return _Write(op, value, texts_at(json.loads(value), paths))

    def _redacted(self, value: str) -> str:
        """The same without secrets; left as it is, down to its spaces, where there are none."""
        parsed = json.loads(value)
        kept = self._bank.redactor.data(parsed)
        return value if kept == parsed else json.dumps(kept)

    def _query(self, op: SearchOp) -> str | None:
        """The question, unless it is blank: that is like nothing, so all is listed."""
        return self._bank.redactor.text(op.query) if op.query and op.query.strip() else None

    def _vectors(self, writes: Iterable[_Write], ops: Iterable[Op]) -> Vectors:
        if self._likeness is None:
            return {}
        texts = [text for one in writes for _, text in one.texts]
        texts += [query for op in ops if isinstance(op, SearchOp) and (query := self._query(op))]
        return self._likeness.embedder.of(texts)

    def _read(
        self, ops: Sequence[Op], vectors: Vectors, now: datetime
    ) -> tuple[list[Result], list[StoredItem]]:
        """The results, and the items among them whose time runs anew."""
        results: list[Result] = []
        read: list[StoredItem] = []
        alive = now if self._omit_expired else None
        with self._bank.ledger.read() as conn:
            for op in ops:
                found: list[Found] = []
                if isinstance(op, GetOp):
                    item = items.get(conn, op.namespace, op.key, alive)
                    found = [Found(item, None)] if item else []
                    results.append(_item(item) if item else None)
                elif isinstance(op, SearchOp):
                    found = self._searched(conn, op, vectors, alive)
                    results.append([_search_item(one) for one in found])
                elif isinstance(op, ListNamespacesOp):
                    results.append(_namespaces(conn, op, alive))
                else:
                    results.append(None)
                if isinstance(op, GetOp | SearchOp) and op.refresh_ttl:
                    read += [one.item for one in found if one.item.ttl is not None]
        return results, read

    def _searched(
        self, conn: sqlite3.Connection, op: SearchOp, vectors: Vectors, alive: datetime | None
    ) -> list[Found]:
        query = self._query(op)
        if self._likeness is None or query is None:
            return listed(conn, op, alive)
        return self._likeness.nearest(conn, op, vectors[query], alive)

    def _write(
        self, writes: Sequence[_Write], read: Sequence[StoredItem], vectors: Vectors, now: datetime
    ) -> None:
        with self._bank.ledger.write() as conn:
            items.refresh(conn, read, now)
            _sweep(conn, now)
            for op, value, texts in writes:
                if value is None:
                    _remove(conn, items.row_of(conn, op.namespace, op.key))
                    continue
                row = items.put(conn, op.namespace, op.key, value, now=now, ttl=op.ttl)
                made = [(path, vectors[text]) for path, text in texts]
                item_vectors.put(conn, row, made, self._likeness.embedder.id if self._likeness else "")


def _to_json(op: PutOp) -> str:
    try:
        # What JSON does not know (times, UUIDs, data classes, pydantic models) is written as pydantic does.
        return json.dumps(dict(op.value or {}), default=to_jsonable_python)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(
            f"the value for the key {op.key!r} in {op.namespace} cannot be written as JSON"
            f" ({type(error).__name__})"
        ) from error


def _remove(conn: sqlite3.Connection, rows: Sequence[int]) -> None:
    item_vectors.discard(conn, rows)
    items.delete(conn, rows)


def _sweep(conn: sqlite3.Connection, now: datetime) -> int:
    rows = items.expired(conn, now)
    _remove(conn, rows)
    return len(rows)


def _item(stored: StoredItem) -> Item:
    created, updated = stored.times
    return Item(
        value=stored.parsed(),
        key=stored.key,
        namespace=stored.labels,
        created_at=created,
        updated_at=updated,
    )


def _search_item(found: Found) -> SearchItem:
    created, updated = found.item.times
    return SearchItem(found.item.labels, found.item.key, found.item.parsed(), created, updated, found.score)


def _namespaces(conn: sqlite3.Connection, op: ListNamespacesOp, alive: datetime | None) -> list[Namespace]:
    found = [
        namespace
        for namespace in items.namespaces(conn, (), alive)
        if all(_fits(namespace, condition) for condition in op.match_conditions or ())
    ]
    cut = sorted({namespace[: op.max_depth] for namespace in found})
    return cut[op.offset : op.offset + op.limit]


def _fits(namespace: Namespace, condition: MatchCondition) -> bool:
    """Whether a namespace begins or ends as the condition's path says, where `*` is any one label."""
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"unknown match type {condition.match_type!r}; there are prefix and suffix")
    if len(namespace) < len(condition.path):
        return False
    start = 0 if condition.match_type == "prefix" else len(namespace) - len(condition.path)
    return all(
        wanted in ("*", label) for label, wanted in zip(namespace[start:], condition.path, strict=False)
    )
