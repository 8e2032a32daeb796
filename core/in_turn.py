"""Work that may block, done off the event loop: piece by piece, unless a piece takes long.

What the graphs do between two model calls takes a few milliseconds, most of it in Python. Threads that do
such work at the same time do not get it done sooner: they hand the interpreter to and fro, at each row that
SQLite reads, and keep the event loop waiting for it. What waits for something else, such as a lock of another
process, keeps nobody up.
"""

import asyncio
import contextvars
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE = 0.02
"""Seconds after which the next piece begins although the one before is not done."""

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def in_turn(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """As `asyncio.to_thread`, begun when the piece before is done or slow; in the order of the calls."""
    loop = asyncio.get_running_loop()
    turn = _turns.get(loop)
    if turn is None:
        turn = _turns[loop] = asyncio.Semaphore(1)
    await turn.acquire()
    with ExitStack() as held:
        held.callback(turn.release)
        held.callback(loop.call_later(PATIENCE, held.close).cancel)
        call = partial(contextvars.copy_context().run, work, *args, **kwargs)
        return await loop.run_in_executor(None, call)
