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

For `langgraph.json`: `{"store": {"path": "memcycle.stores.langgraph_store.served_store"}}`, with the settings
from `MEMCYCLE_*`. LangGraph's server calls no factory with arguments, and does not hand on its `index` and
`ttl`: a store with those is a variable or a function of a file of your own, `"./store.py:store"`.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, Self

from langgraph.store.base import BaseStore, IndexConfig, Op, Result, TTLConfig

from memcycle.core.clock import World
from memcycle.core.settings import Settings
from memcycle.stores.bank import Bank
from memcycle.stores.item_batch import Items
from memcycle.stores.item_sweeper import Sweeper
from memcycle.stores.item_texts import item_embedder
from memcycle.stores.ledger.items import Namespace
from memcycle.stores.registry import shared_bank

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
