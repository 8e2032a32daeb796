"""What a worker measures beside its work: processor time by kind, the event loop's lag, memory.

Processor time by kind is counted where it is spent: each step of a task on the event loop, and each job of
the loop's thread pool, counts for the kind of operation that it was begun for. The loop itself, the garbage
collector between steps and threads of libraries count for none, only in the time of the whole process.
"""

import asyncio
import gc
import resource
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from benchmarks.soak.plan import Kind

T = TypeVar("T")
OF_KIND: ContextVar[Kind | None] = ContextVar("of_kind", default=None)
"""The kind of operation that runs now, None for one not counted; threads and tasks begun by it inherit it."""
TICK, LATE = 0.05, 0.1
"""Seconds: how often the loop is looked at; from when on it counts as blocked."""
WORST = 10
MB = 1_000_000


class Processor:
    """Processor seconds by kind of operation."""

    def __init__(self) -> None:
        self._seconds: dict[Kind, float] = {}
        self._counting = threading.Lock()

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        """Counts what tasks and the thread pool of this loop do from now on."""
        loop.set_task_factory(self._task)
        loop.set_default_executor(_CountedPool(self))

    def seconds(self) -> dict[Kind, float]:
        """So far."""
        with self._counting:
            return dict(self._seconds)

    def count(self, kind: Kind | None, work: Callable[[], T]) -> T:
        """Does work of a kind in this thread."""
        if kind is None:
            return work()
        started = time.thread_time()
        try:
            return work()
        finally:
            spent = time.thread_time() - started
            with self._counting:
                self._seconds[kind] = self._seconds.get(kind, 0.0) + spent

    def _task(
        self,
        loop: asyncio.AbstractEventLoop,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        **more: Any,
    ) -> asyncio.Task[T]:
        context = more.get("context")
        kind = context.get(OF_KIND) if context is not None else OF_KIND.get()
        counted: Any = _Counted(coro, kind, self) if kind is not None else coro
        return asyncio.Task(counted, loop=loop, **more)


class _CountedPool(ThreadPoolExecutor):
    def __init__(self, processor: Processor) -> None:
        super().__init__(thread_name_prefix="soak")
        self._processor = processor

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        return super().submit(self._processor.count, OF_KIND.get(), partial(fn, *args, **kwargs))


class _Counted(Coroutine[Any, Any, T]):
    """A coroutine whose steps are counted."""

    def __init__(self, coro: Any, kind: Kind, processor: Processor) -> None:
        self._coro, self._kind, self._processor = coro, kind, processor

    def send(self, value: Any) -> Any:
        return self._processor.count(self._kind, partial(self._coro.send, value))

    def throw(
        self,
        typ: Any,
        val: BaseException | object = None,
        tb: TracebackType | None = None,
    ) -> Any:
        given = [typ] if val is None and tb is None else [typ, val, tb]
        return self._processor.count(self._kind, partial(self._coro.throw, *given))

    def close(self) -> None:
        self._coro.close()

    def __await__(self) -> Any:
        return self._coro.__await__()

    def __getattr__(self, name: str) -> Any:
        """Its state (`cr_running` and the like), which libraries look at."""
        return getattr(self._coro, name)


class Block(NamedTuple):
    """One time the event loop was late.

    Attributes:
        ms: How late. cpu_ms: processor time of the whole process meanwhile; what is missing to `ms` the
            machine gave to others.
        running: What ran.
    """

    ms: float
    cpu_ms: float
    running: str


@dataclass
class Lag:
    """How late the event loop was.

    Attributes:
        looks: How often it was looked at. over: how often it was later than 100 ms; over_by_itself: those in
            which the process had as much processor time.
        collector_ms, collector_cpu_ms: The garbage collector's longest run, and its processor time.
        worst: The longest.
    """

    looks: int = 0
    over: int = 0
    over_by_itself: int = 0
    collector_ms: float = 0.0
    collector_cpu_ms: float = 0.0
    worst: list[Block] = field(default_factory=list)

    def add(self, seconds: float, cpu: float, running: Callable[[], str]) -> None:
        """One look, with the processor seconds since the last."""
        self.looks += 1
        self.over += seconds > LATE
        self.over_by_itself += min(seconds, cpu) > LATE
        if len(self.worst) < WORST or 1000 * seconds > self.worst[-1].ms:
            block = Block(1000 * seconds, 1000 * cpu, running())
            self.worst = sorted([*self.worst, block], reverse=True)[:WORST]


class Watchdog:
    """Looks at the event loop from inside, and from a thread at what runs while it is late."""

    def __init__(self) -> None:
        self.lag = Lag()
        self._beat, self._over = time.perf_counter(), threading.Event()
        self._seen: deque[tuple[float, str]] = deque(maxlen=100)
        self._collecting = (0.0, 0.0)

    async def watch(self) -> None:
        """Runs until it is cancelled."""
        loop_thread = threading.get_ident()
        gc.callbacks.append(self._collector)
        threading.Thread(target=self._look_from_outside, args=(loop_thread,), daemon=True).start()
        try:
            while True:
                self._beat = asked = time.perf_counter()
                spent = time.process_time()
                await asyncio.sleep(TICK)
                late = time.perf_counter() - asked - TICK
                self.lag.add(late, time.process_time() - spent, partial(self._running_since, asked))
        finally:
            self._over.set()
            gc.callbacks.remove(self._collector)

    def _look_from_outside(self, loop_thread: int) -> None:
        while not self._over.wait(TICK):
            if time.perf_counter() - self._beat > LATE / 2:
                self._seen.append((time.perf_counter(), running(sys._current_frames(), loop_thread)))

    def _running_since(self, since: float) -> str:
        return next((what for at, what in reversed(self._seen) if at > since), "not seen")

    def _collector(self, phase: str, info: dict[str, int]) -> None:
        now = (time.perf_counter(), time.thread_time())
        if phase == "start":
            self._collecting = now
            return
        took, cpu = (1000 * (end - start) for start, end in zip(self._collecting, now, strict=True))
        self.lag.collector_ms = max(self.lag.collector_ms, took)
        self.lag.collector_cpu_ms = max(self.lag.collector_cpu_ms, cpu)
        if took > 1000 * LATE / 2:
            self._seen.append((now[0], f"garbage collector, generation {info['generation']}"))


_WAITS = {"wait", "select", "_worker", "get", "_look_from_outside", "acquire", "_recv", "join", "accept"}


def running(frames: dict[int, FrameType], loop_thread: int) -> str:
    """What the loop's thread and the others that do not just wait are at."""
    told = [f"loop at {_place(frames[loop_thread])}"] if loop_thread in frames else []
    busy = Counter(
        _place(frame)
        for thread, frame in frames.items()
        if thread != loop_thread and frame.f_code.co_name not in _WAITS
    )
    return "; ".join([*told, *(f"{count} thread(s) at {place}" for place, count in busy.most_common(3))])


def _place(frame: FrameType) -> str:
    """The innermost function of ours, and the one it waits in."""
    inner, ours = frame, frame
    while ours.f_back is not None and "memcycle" not in ours.f_globals.get("__name__", ""):
        ours = ours.f_back
    names = [f"{one.f_globals.get('__name__')}.{one.f_code.co_name}" for one in (ours, inner)]
    return names[0] if ours is inner else f"{names[0]} in {names[1]}"


def resident_mb() -> float:
    """Memory of this process now; its peak where the system has no /proc."""
    now = resident_of("self")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MB if now is None else now


def resident_of(process: int | str) -> float | None:
    """Memory of a process now, in MB; None of one that has ended, or where the system has no /proc."""
    try:
        pages = int(Path("/proc", str(process), "statm").read_text().split()[1])
    except OSError:
        return None
    return pages * resource.getpagesize() / MB if pages else None


def slope(samples: Sequence[tuple[float, float]]) -> float | None:
    """Growth a minute of (seconds, value), by least squares; None for too few to tell."""
    if len({at for at, _ in samples}) < 2:  # noqa: PLR2004 - a line
        return None
    at, values = np.array(samples).T
    return float(60 * np.polyfit(at, values, 1)[0])
