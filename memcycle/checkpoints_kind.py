"""What the kinds of checkpointers share: each is opened by `with` or by `async with`, one at a time."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from langgraph.checkpoint.base import BaseCheckpointSaver

from memcycle.core.errors import StoreError

S = TypeVar("S", bound=BaseCheckpointSaver[Any])
A = TypeVar("A", bound=BaseCheckpointSaver[Any])


class Checkpointer(ABC, Generic[S, A]):
    """Where checkpoints are kept; see `memcycle.checkpointer`.

    Entering raises StoreError for a place that cannot be used and StoreBusy for one that another process
    holds. The saver may be used from several threads; the async one by its own event loop, and from other
    threads through its sync methods.

    Attributes:
        place: Where that is, in words that may be shown: without a password.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self._guard = threading.Lock()
        self._entered = False
        self._saver: S | None = None
        self._async_saver: A | None = None

    @abstractmethod
    def _open(self) -> S: ...

    @abstractmethod
    def _close(self, saver: S) -> None: ...

    @abstractmethod
    async def _aopen(self) -> A: ...

    @abstractmethod
    async def _aclose(self, saver: A) -> None: ...

    def __enter__(self) -> S:
        with self._entering():
            self._saver = self._open()
            return self._saver

    def __exit__(self, *_: object) -> None:
        saver, self._saver, self._entered = self._saver, None, False
        if saver is not None:
            self._close(saver)

    async def __aenter__(self) -> A:
        with self._entering():
            self._async_saver = await self._aopen()
            return self._async_saver

    async def __aexit__(self, *_: object) -> None:
        saver, self._async_saver, self._entered = self._async_saver, None, False
        if saver is not None:
            await self._aclose(saver)

    @contextmanager
    def _entering(self) -> Iterator[None]:
        with self._guard:
            if self._entered:
                raise StoreError(f"this checkpointer of {self.place} is in use: make a second one")
            self._entered = True
        try:
            yield
        except BaseException:
            self._entered = False
            raise
