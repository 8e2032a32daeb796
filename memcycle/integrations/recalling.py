"""Recall within a set time: a slow or failing memory costs a reply no more than that."""

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memcycle.core.errors import BadInput
from memcycle.idle import told
from memcycle.integrations.apart import apart, task_apart
from memcycle.integrations.asked import Asked
from memcycle.integrations.block import Recalled
from memcycle.memory import Memory
from memcycle.results import Answer

_log = logging.getLogger(__name__)

KEPT = 64
"""Recalls that are kept for the further model calls of their turn."""

KEPT_FOR = 300.0
"""Seconds after which one is not used again, where its turn broke off and nobody dropped it."""

MOST_LATE = 4
"""Recalls past their time that may still run; while so many do, memory is not asked again."""


@dataclass
class _Attempt:
    """One recall: what it will give, and until when it is waited for (by the monotonic clock)."""

    started: float
    until: float
    future: "concurrent.futures.Future[Answer]" = field(default_factory=concurrent.futures.Future)

    @property
    def left(self) -> float:
        return max(0.0, self.until - time.monotonic())


class Recalling:
    """Recalls for a conversation, once for each message, and never waits longer than `limit`.

    A recall runs apart from the run that wants it: nothing of it is streamed or checkpointed there. One that
    is late is not broken off; the next model call of the same turn may find it done. Thread-safe, and for
    any event loop.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        limit: float,
        k: int | None = None,
        token_budget: int | None = None,
    ) -> None:
        """Starts nothing yet.

        Args:
            memory: Where is looked.
            limit: Seconds that one message waits for it at most, over all its model calls.
            k: Entries at most. token_budget: their tokens at most.
        """
        if not limit > 0:
            raise BadInput("the time limit of a recall must be above 0 seconds")
        self.memory, self.limit = memory, limit
        self._k, self._token_budget = k, token_budget
        self._lock = threading.Lock()
        self._kept: OrderedDict[Asked, _Attempt] = OrderedDict()
        self._late: set[concurrent.futures.Future[Answer]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def recall(self, asked: Asked) -> Recalled:
        """What memory holds on what was asked."""
        attempt = self._attempt(asked, self._in_thread)
        if attempt is None:
            return Recalled("unavailable", why="late")
        concurrent.futures.wait([attempt.future], timeout=attempt.left)
        return self._read(attempt)

    async def arecall(self, asked: Asked) -> Recalled:
        """Awaitable `recall`: models are awaited natively."""
        attempt = self._attempt(asked, self._in_task)
        if attempt is None:
            return Recalled("unavailable", why="late")
        if not attempt.future.done():
            await _settled(attempt)
        return self._read(attempt)

    def _attempt(self, asked: Asked, start: Callable[[Asked, _Attempt], None]) -> _Attempt | None:
        """The recall of this message, begun if it is not; None while too many late ones still run."""
        with self._lock:
            known = self._kept.get(asked)
            if known is not None and time.monotonic() < known.started + KEPT_FOR:
                return known
            if len(self._late) >= MOST_LATE:
                _log.warning("memory is not asked: %d recalls are late and still run", len(self._late))
                return None
            now = time.monotonic()
            attempt = _Attempt(now, now + self.limit)
            if asked.message_id is not None:
                self._kept[asked] = attempt
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        start(asked, attempt)
        return attempt

    def drop(self, asked: Asked) -> None:
        """The turn is over: asked again, this is another recall."""
        with self._lock:
            self._kept.pop(asked, None)

    def _read(self, attempt: _Attempt) -> Recalled:
        future, seconds = attempt.future, min(time.monotonic() - attempt.started, self.limit)
        if not future.done():
            self._note_late(future)
            _log.warning("memory is unavailable: no recall within %.3g seconds", self.limit)
            return Recalled("unavailable", why="late", seconds=seconds)
        error = future.exception()
        if error is not None:
            why = told(error) if isinstance(error, Exception) else type(error).__name__
            _log.warning("memory is unavailable: %s", why)
            return Recalled("unavailable", why=why, seconds=seconds)
        return Recalled.of(future.result().evidence, seconds)

    def _note_late(self, future: "concurrent.futures.Future[Answer]") -> None:
        with self._lock:
            if future in self._late:
                return
            self._late.add(future)
        future.add_done_callback(self._no_longer_late)

    def _no_longer_late(self, future: "concurrent.futures.Future[Answer]") -> None:
        with self._lock:
            self._late.discard(future)

    def _named(self, asked: Asked) -> dict[str, Any]:
        return {
            **asked.scope.model_dump(),
            "k": self._k if asked.k is None else asked.k,
            "token_budget": self._token_budget,
        }

    def _in_thread(self, asked: Asked, attempt: _Attempt) -> None:
        """Runs it in a thread of its own. A daemon: recall writes no memory, and may hang for good."""

        def run() -> None:
            try:
                attempt.future.set_result(self.memory.recall(asked.question, **self._named(asked)))
            except BaseException as error:  # noqa: BLE001 - handed to whoever waits, whatever it is
                attempt.future.set_exception(error)

        try:
            threading.Thread(target=apart, args=(run,), name="memcycle-recall", daemon=True).start()
        except RuntimeError as error:  # no thread to be had
            attempt.future.set_exception(error)

    def _in_task(self, asked: Asked, attempt: _Attempt) -> None:
        async def run() -> None:
            try:
                attempt.future.set_result(await self.memory.arecall(asked.question, **self._named(asked)))
            except BaseException as error:
                attempt.future.set_exception(error)
                if not isinstance(error, Exception):
                    raise

        task = task_apart(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _settled(attempt: _Attempt) -> None:
    """Waits until the recall is done or its time is over, on whatever loop or thread it runs."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def wake(_: object) -> None:
        # The loop may be gone by now, and nobody waits on it any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(done.set)

    attempt.future.add_done_callback(wake)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(done.wait(), attempt.left)
