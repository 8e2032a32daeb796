"""`MemcycleStore`: LangGraph's long-term store (`BaseStore`) on the home of a memory.

Items live in tables of their own in the home's ledger, beside the entries of the memory and apart from them.
Any number of processes may use the store of a home at once.

Erasing: `Bank.forget_user` and `memcycle forget --user` know the entries of a user; a namespace is any tuple,
and which one is a person's only the application knows: `delete_namespace(("memories", "ann"))` removes all at
or below it and wipes it from all files. What a user asks in words to forget goes from items, too, whose
namespace names that user and nobody else who has memories here. `delete` alone leaves no text in the tables,
but old copies may stay in the write-ahead log for a while.
"""

import asyncio
import json
import operator
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self

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

from memcycle.core.errors import BadInput
from memcycle.core.settings import Settings
from memcycle.core.turn import sound_data
from memcycle.core.world import World
from memcycle.stores.bank import Bank, shared_bank
from memcycle.stores.langgraph_store.vectors import (
    WHOLE,
    ItemEmbedder,
    Texts,
    item_embedder,
    nearest,
    reembed_items,
    texts_at,
)
from memcycle.stores.ledger import items, meta
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.ledger.items import Namespace, StoredItem

_ORDER = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {"$eq": operator.eq, "$ne": operator.ne, **_ORDER}
_WORDS = ("namespace", "namespace_prefix", "key", "query", "filter")
"""Fields of operations that hold names or words."""


@dataclass(frozen=True)
class _Home:
    """What the first operation opens. `embedder` is None where no vectors are made."""

    bank: Bank
    embedder: "ItemEmbedder | None"
    close: Callable[[], None]


_Write = tuple[PutOp, str | None, Texts]
"""A put or, where there is no value, a delete; and the texts of the value that are embedded."""

_Found = tuple[StoredItem, float | None]
"""An item, and the cosine of its nearest vector with the query, -1 to 1; None without a query."""


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
            `omit_expired` is False; any write removes them from the tables, and `sweep_ttl` does it now, so
            that no thread has to (`sweep_interval_minutes` is not read).

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
        self._home: _Home | None = None

    # Operations

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The results of operations, in their order. Reads see what was there before the batch's writes.

        Raises:
            InvalidNamespaceError: a label that is empty, no text, or has a period or NUL.
            BadInput: a value that is no JSON. Nothing was written, as after any error.
        """
        ops = list(ops)
        for op in ops:
            validate_op_namespace(op)
        ops = [_sound(op) for op in ops]
        home = self._opened()
        last = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        writes = [self._prepared(home, op) for op in last.values()]
        vectors: dict[str, Vector] = {}
        if home.embedder is not None:
            texts = [text for _, _, of_item in writes for _, text in of_item]
            asked = [_question(home, op) for op in ops if isinstance(op, SearchOp)]
            vectors = home.embedder.of([*texts, *filter(None, asked)])
        now = home.bank.world.now()
        results, read = self._read(home, ops, vectors, now)
        if writes or read:
            with home.bank.ledger.write() as conn:
                items.refresh(conn, read, now)
                items.delete_expired(conn, now)
                for one in writes:
                    _write(conn, one, vectors, home.embedder.id if home.embedder else "", now)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch` off the event loop."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _prepared(self, home: _Home, op: PutOp) -> _Write:
        if op.value is None:
            return op, None, []
        value = home.bank.redactor.data(json.loads(_to_json(op)))
        if home.embedder is None or op.index is False:
            return op, json.dumps(value), []
        paths = op.index if op.index is not None else (self.index_config or {}).get("fields") or [WHOLE]
        return op, json.dumps(value), texts_at(value, paths)

    def _read(
        self, home: _Home, ops: Sequence[Op], vectors: dict[str, Vector], now: datetime
    ) -> tuple[list[Result], list[StoredItem]]:
        """The results, and the items among them whose time runs anew."""
        results: list[Result] = []
        read: list[StoredItem] = []
        alive = now if (self.ttl_config or {}).get("omit_expired", True) else None
        with home.bank.ledger.read() as conn:
            for op in ops:
                if isinstance(op, GetOp):
                    item = items.get(conn, op.namespace, op.key, alive)
                    found: list[_Found] = [(item, None)] if item else []
                    results.append(Item(**_fields(item)) if item else None)
                elif isinstance(op, SearchOp):
                    found = _searched(conn, op, alive, home, vectors)
                    results.append([SearchItem(**_fields(item), score=score) for item, score in found])
                else:
                    results.append(_namespaces(conn, op, alive) if isinstance(op, ListNamespacesOp) else None)
                    continue
                if op.refresh_ttl:
                    read += [item for item, _ in found if item.ttl is not None]
        return results, read

    def delete_namespace(self, prefix: Namespace) -> int:
        """Deletes all items at or below a namespace for good, and wipes them from all files.

        Returns:
            How many items. Safe to repeat.

        Raises:
            InvalidNamespaceError: the namespace is empty.
            StoreError: all is deleted, but the files cannot be wiped now; repeat.
        """
        validate_op_namespace(GetOp(prefix, ""))
        if not prefix:
            raise InvalidNamespaceError("name the namespace to delete; an empty one would be the whole store")
        bank = self._opened().bank
        with bank.ledger.write() as conn:
            deleted = items.delete_below(conn, sound_data(prefix))
            meta.owe_scrub(conn, [])
        bank.indexes.mirror.wipe()
        return deleted

    async def adelete_namespace(self, prefix: Namespace) -> int:
        """`delete_namespace` off the event loop."""
        return await asyncio.to_thread(self.delete_namespace, prefix)

    def reembed(self) -> int:
        """Makes the vectors that come from another embedder anew; returns of how many items."""
        home = self._opened()
        if home.embedder is None:
            return 0
        return reembed_items(home.bank.ledger, home.embedder, home.bank.settings.bulk_batch)

    # Lifetimes

    def sweep_ttl(self) -> int:
        """Removes the items whose time is over; returns how many."""
        bank = self._opened().bank
        with bank.ledger.write() as conn:
            return items.delete_expired(conn, bank.world.now())

    async def asweep_ttl(self) -> int:
        """`sweep_ttl` off the event loop."""
        return await asyncio.to_thread(self.sweep_ttl)

    # Opening and closing

    def close(self) -> None:
        """Frees the home. Idempotent; the next operation opens it again."""
        with self._opening:
            home, self._home = self._home, None
        if home is not None:
            home.close()

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

    def _opened(self) -> _Home:
        with self._opening:
            if self._home is None:
                self._home = self._open()
            return self._home

    def _open(self) -> _Home:
        memory, index = self._memory, self.index_config
        with ExitStack() as stack:
            if isinstance(memory, Bank):
                bank = memory
            else:
                bank = shared_bank(_settings(memory), world=self._world)
                stack.callback(bank.close)
            embedder = None
            if index is not False:
                embedder, close = item_embedder(bank.indexes, index, bank.world)
                stack.callback(close)
            return _Home(bank, embedder, stack.pop_all().close)


@asynccontextmanager
async def served_store() -> AsyncIterator[MemcycleStore]:
    """The store of `langgraph.json`: settings from `MEMCYCLE_*`, open as long as the server runs."""
    async with MemcycleStore() as store:
        yield store


def _settings(memory: Settings | Path | str | None) -> Settings:
    if isinstance(memory, Settings):
        return memory
    settings = Settings.from_env()
    if not isinstance(memory, str | Path | None):
        raise BadInput(f"memory must be a bank, Settings or the home's folder, not a {type(memory).__name__}")
    return settings if memory is None else settings.model_copy(update={"home": Settings(home=memory).home})


def _sound(op: Op) -> Op:
    """The operation with names and words that can be kept; the value's are looked at as JSON."""
    return op._replace(**{name: sound_data(getattr(op, name)) for name in _WORDS if hasattr(op, name)})


def _to_json(op: PutOp) -> str:
    try:
        # What JSON does not know (times, UUIDs, data classes, pydantic models) is written as pydantic does.
        return json.dumps(dict(op.value or {}), default=to_jsonable_python)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(
            f"the value for the key {op.key!r} in {op.namespace} cannot be written as JSON"
            f" ({type(error).__name__})"
        ) from error


def _write(
    conn: sqlite3.Connection, write: _Write, vectors: dict[str, Vector], embedder: str, now: datetime
) -> None:
    op, value, texts = write
    if value is None:
        items.delete(conn, op.namespace, op.key)
        return
    row = items.put(conn, op.namespace, op.key, value, now=now, ttl=op.ttl)
    items.put_vectors(conn, row, [(path, vectors[text]) for path, text in texts], embedder)


def _question(home: _Home, op: SearchOp) -> str | None:
    """What is asked, unless it is blank: that is like nothing, so all is listed."""
    return home.bank.redactor.text(op.query) if op.query and op.query.strip() else None


def _searched(
    conn: sqlite3.Connection, op: SearchOp, alive: datetime | None, home: _Home, vectors: dict[str, Vector]
) -> list[_Found]:
    """What is at or below a namespace and passes the filter.

    The nearest first, of what has a vector; without a question, or an embedder, the last written.
    """
    passed = (
        item
        for item in items.latest(conn, op.namespace_prefix, alive)
        if not op.filter or _matches(json.loads(item.value), op.filter)
    )
    page = slice(op.offset, op.offset + op.limit)
    question = _question(home, op)
    if home.embedder is None or question is None:
        return [(item, None) for item in islice(passed, page.start, page.stop)]
    ranked = nearest(conn, op.namespace_prefix, alive, home.embedder.id, vectors[question])
    if op.filter:
        rows = {item.row for item in passed}
        ranked = [one for one in ranked if one[0] in rows]
    found = items.by_rows(conn, [row for row, _ in ranked[page]])
    return [(found[row], score) for row, score in ranked[page]]


def _matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value has all that a filter names. Compared here: user text never becomes SQL.

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
        return isinstance(value, Mapping) and _matches(value, wanted)
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(_agrees(one, other) for one, other in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def _holds(value: Any, name: str, operand: Any) -> bool:
    if name not in _OPERATORS:
        raise ValueError(f"unsupported operator {name!r} in a filter; there are {', '.join(_OPERATORS)}")
    if name not in _ORDER or (isinstance(value, str) and isinstance(operand, str)):
        return bool(_OPERATORS[name](value, operand))
    left, right = _number(value), _number(operand)
    return left is not None and right is not None and _OPERATORS[name](left, right)


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _fields(found: StoredItem) -> dict[str, Any]:
    names = ("namespace", "key", "created_at", "updated_at")
    return {name: getattr(found, name) for name in names} | {"value": json.loads(found.value)}


def _namespaces(conn: sqlite3.Connection, op: ListNamespacesOp, alive: datetime | None) -> list[Namespace]:
    found = {
        namespace[: op.max_depth]
        for namespace in items.namespaces(conn, alive)
        if all(_fits(namespace, condition) for condition in op.match_conditions or ())
    }
    return sorted(found)[op.offset : op.offset + op.limit]


def _fits(namespace: Namespace, condition: MatchCondition) -> bool:
    """Whether a namespace begins or ends as the condition's path says, where `*` is any one label."""
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"unknown match type {condition.match_type!r}; there are prefix and suffix")
    if len(namespace) < len(condition.path):
        return False
    start = 0 if condition.match_type == "prefix" else len(namespace) - len(condition.path)
    pairs = zip(namespace[start:], condition.path, strict=False)
    return all(wanted in ("*", label) for label, wanted in pairs)
