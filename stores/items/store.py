"""`MemcycleStore`: LangGraph's long-term store (`BaseStore`) on the home of a memory.

Items live in tables of their own in the home's ledger, beside the entries of the memory and apart from them:
the namespace as a JSON array, the value as JSON, one vector for each text that is embedded. Up to 5,000
vectors at or below a namespace are compared one by one, which is exact, and faster there than Chroma; above
that Chroma finds them, in a collection of its own on the bank's client (see `item_search` for the figures).

Any number of processes may use the store of a home at once. While one of them holds the embedded Chroma,
the others compare one by one.

Erasing: `Bank.forget_user` and `memcycle forget --user` know the entries of a user; a namespace is any tuple,
and which one is a person's only the application knows: `delete_namespace(("memories", "ann"))` removes all at
or below it and wipes it from all files. `delete` alone leaves no text in the tables, but old copies may
stay in the write-ahead log for a while.

For `langgraph.json`: `{"store": {"path": "memcycle.stores.items.store.served_store"}}`, with the settings
from `MEMCYCLE_*`. LangGraph's server calls no factory with arguments, and does not hand on its `index` and
`ttl`: a store with those is a variable or a function of a file of your own, `"./store.py:store"`.

User text never becomes SQL: values are compared here, in Python.
"""

import asyncio
import json
import logging
import operator
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)
from pydantic_core import to_jsonable_python

from memcycle.core.errors import BadInput, EmbedderMismatch, StoreError
from memcycle.core.settings import Settings
from memcycle.core.world import World
from memcycle.stores.bank import Bank
from memcycle.stores.items.index import ItemIndex, drop_collections
from memcycle.stores.items.texts import ItemEmbedder, Texts, item_embedder, paths_of, reembed_items, texts_at
from memcycle.stores.ledger import item_vectors, items, meta
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.ledger.items import Namespace, StoredItem
from memcycle.stores.registry import shared_bank

_log = logging.getLogger(__name__)


class Sweeper:
    """Calls `sweep` again and again. Started and stopped from any thread."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, minutes: float) -> None:
        """Sweeps every so many minutes from now on. Nothing where it does already."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._stopped = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(self._stopped, minutes * 60), name="memcycle-sweeper", daemon=True
            )
            self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Ends it, waiting at most so many seconds; whether it has ended."""
        with self._lock:
            thread = self._thread
            self._stopped.set()
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _run(self, stopped: threading.Event, seconds: float) -> None:
        while not stopped.wait(seconds):
            try:
                self._sweep()
            except StoreError as error:
                _log.warning("expired items could not be removed: %s", error)


_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = ("$eq", "$ne", *_ORDER)


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value has all that a filter names.

    A plain wanted value must be equal; of an object, each named part; of a list, each element in its place. A
    missing key counts as None, which has no order. Numbers are ordered as numbers, also when one of the two
    is written as text; two texts, such as dates, as texts.

    Raises:
        ValueError: unknown operator; names those there are.
    """
    return all(_agrees(value.get(key), part) for key, part in (wanted or {}).items())


def _agrees(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(key).startswith("$") for key in wanted):
            return all(_holds(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, Mapping) and matches(value, wanted)
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(_agrees(one, other) for one, other in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def _holds(value: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(value == operand)
    if name == "$ne":
        return bool(value != operand)
    if name not in _ORDER:
        raise ValueError(f"unsupported operator {name!r} in a filter; there are {', '.join(OPERATORS)}")
    if isinstance(value, str) and isinstance(operand, str):
        return _ORDER[name](value, operand)
    left, right = _number(value), _number(operand)
    return left is not None and right is not None and _ORDER[name](left, right)


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


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


SWEEP_MINUTES = 5.0


class MemcycleStore(BaseStore):
    """A LangGraph store on a memory's home. Thread-safe; its async methods do not block the loop.

    The home is opened by the first operation, and shared with all else in the process that uses it. Use the
    store as a context manager, sync or async, or close it.

    Args:
        memory: A bank (which stays the caller's to close), settings, or the home directory; by default
            `MEMCYCLE_HOME`, else `.memcycle`.
        index: LangGraph's index configuration. `embed` and `dims` are by default those of the bank's
            embedder, `fields` the value as a whole. False makes and searches no vectors.
        ttl: LangGraph's configuration of lifetimes, in minutes. Expired items are gone at once unless
            `omit_expired` is False; any write removes them from the tables, `sweep_ttl` does it now, and with
            `sweep_interval_minutes` a thread does it.

    Example:
        >>> with MemcycleStore("my-home") as store:
        ...     store.put(("memories", "ann"), "1", {"content": "Ann plays the cello"})
        ...     store.search(("memories",), query="Who plays an instrument?")[0].key
        '1'
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Bank | Settings | Path | str | None = None,
        *,
        index: IndexConfig | Literal[False] | None = None,
        ttl: TTLConfig | None = None,
        world: World | None = None,
    ) -> None:
        super().__init__()
        self.index_config, self.ttl_config = index, ttl
        self._memory, self._world = memory, world
        self._opening = threading.Lock()
        self._own: Bank | None = None
        self._items: Items | None = None
        self._sweeper = Sweeper(self.sweep_ttl)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs operations; see `Items.run`."""
        return self._opened().run(list(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch` off the event loop."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Removes the items whose time is over; returns how many."""
        return self._opened().sweep()

    async def asweep_ttl(self) -> int:
        """`sweep_ttl` off the event loop."""
        return await asyncio.to_thread(self.sweep_ttl)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> None:
        """Sweeps in a thread from now on, every so many minutes; by default as configured, else 5."""
        configured = (self.ttl_config or {}).get("sweep_interval_minutes")
        self._sweeper.start(sweep_interval_minutes or configured or SWEEP_MINUTES)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Ends that thread, waiting at most so many seconds; whether it has ended."""
        return self._sweeper.stop(timeout)

    def delete_namespace(self, prefix: Namespace) -> int:
        """Deletes all items at or below a namespace for good, and wipes them from all files.

        Returns:
            How many items. Safe to repeat.

        Raises:
            InvalidNamespaceError: the namespace is empty.
            StoreError: all is deleted, but the files cannot be wiped now; repeat.
        """
        return self._opened().erase(prefix)

    async def adelete_namespace(self, prefix: Namespace) -> int:
        """`delete_namespace` off the event loop."""
        return await asyncio.to_thread(self.delete_namespace, prefix)

    def reembed(self) -> int:
        """Makes the vectors that come from another embedder anew; returns of how many items."""
        return self._opened().reembed()

    def close(self) -> None:
        """Ends the sweeper and frees the home. Idempotent; the next operation opens it again."""
        self._sweeper.stop()
        with self._opening:
            own, made, self._own, self._items = self._own, self._items, None, None
        if made is not None:
            made.close()
        if own is not None:
            own.close()

    async def aclose(self) -> None:
        """`close` off the event loop."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _opened(self) -> Items:
        with self._opening:
            if self._items is None:
                self._items = self._open()
                if (self.ttl_config or {}).get("sweep_interval_minutes"):
                    self.start_ttl_sweeper()
            return self._items

    def _open(self) -> Items:
        if isinstance(self._memory, Bank):
            bank = self._memory
        else:
            bank = self._own = shared_bank(_settings(self._memory), world=self._world)
        try:
            index = self.index_config
            return Items(
                bank,
                None if index is False else item_embedder(bank.views, index, bank.world),
                (index or {}).get("fields"),
                omit_expired=(self.ttl_config or {}).get("omit_expired", True),
            )
        except BaseException:
            own, self._own = self._own, None
            if own is not None:
                own.close()
            raise


@asynccontextmanager
async def served_store() -> AsyncIterator[MemcycleStore]:
    """The store of `langgraph.json`: settings from `MEMCYCLE_*`, open as long as the server runs."""
    async with MemcycleStore() as store:
        yield store


def _settings(memory: Settings | Path | str | None) -> Settings:
    if isinstance(memory, Settings):
        return memory
    settings = Settings.from_env()
    return settings if memory is None else settings.model_copy(update={"home": Path(memory)})
