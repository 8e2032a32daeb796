"""Work that may block, done off the event loop: piece by piece, unless a piece takes long.

What the graphs do between two model calls takes a few milliseconds, most of it in Python. Threads that do
such work at the same time do not get it done sooner: they hand the interpreter to and fro, at each row that
SQLite reads, and keep the event loop waiting for it. What waits for something else, such as a lock of another
process, keeps nobody up.
"""

import asyncio
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE = 0.02
"""Seconds after which the next piece begins although the one before is not done."""


class _Piece(NamedTuple):
    call: Callable[[], Any]
    done: "asyncio.Future[Any]"


class Lane:
    """The pieces of one event loop. A thread of the loop's pool takes one after another.

    So the next begins at once: were each handed over by the loop, which has other things to do, nothing would
    run for as long as that takes.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[_Piece] = deque()
        self._worker: object | None = None
        self._since: float | None = None
        self._watched = False

    def put(self, call: Callable[[], T], loop: asyncio.AbstractEventLoop) -> "asyncio.Future[T]":
        """Queues a piece; from the loop's thread."""
        piece = _Piece(call, loop.create_future())
        with self._guard:
            # Begun first: where the pool takes nothing any more, no piece is left behind for ever.
            if self._worker is None:
                self._begin(loop)
            self._waiting.append(piece)
        self._watch(loop)
        return piece.done

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        worker = object()
        loop.run_in_executor(None, self._work, worker)  # waits for the guard, which is held here
        self._worker, self._since = worker, None

    def _work(self, me: object) -> None:
        """Takes pieces until there are none, or until another was begun with since one took long."""
        while True:
            with self._guard:
                if self._worker is not me:
                    return
                if not self._waiting:
                    self._worker = None
                    return
                piece, self._since = self._waiting.popleft(), time.monotonic()
            if piece.done.cancelled():
                continue
            try:
                outcome = piece.call()
            except BaseException as error:  # noqa: BLE001 - raised where it is awaited
                _tell(piece.done, None, error)
            else:
                _tell(piece.done, outcome, None)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Looks after the piece that runs while others wait for it."""
        if not self._watched and self._waiting:
            self._watched = True
            loop.call_later(PATIENCE, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._watched = False
        with self._guard:
            slow = self._since is not None and time.monotonic() - self._since >= PATIENCE
            if slow and self._waiting:
                self._begin(loop)
        self._watch(loop)


lanes: WeakKeyDictionary[asyncio.AbstractEventLoop, Lane] = WeakKeyDictionary()
"""By event loop."""


async def in_turn(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """As `asyncio.to_thread`, begun when the piece before is done or slow; in the order of the calls."""
    loop = asyncio.get_running_loop()
    lane = lanes.get(loop)
    if lane is None:
        lane = lanes[loop] = Lane()
    return await lane.put(partial(contextvars.copy_context().run, work, *args, **kwargs), loop)


def _tell(done: "asyncio.Future[Any]", outcome: Any, error: BaseException | None) -> None:
    loop = done.get_loop()
    if not loop.is_closed():
        loop.call_soon_threadsafe(_settle, done, outcome, error)


def _settle(done: "asyncio.Future[Any]", outcome: Any, error: BaseException | None) -> None:
    if done.done():
        return
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(outcome)
