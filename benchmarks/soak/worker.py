"""A process of a soak: one memory, and several users' stints at the same time on one event loop."""

import asyncio
import gc
import logging
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.queues import Queue

from benchmarks.soak.drive import Done, Driver
from benchmarks.soak.meters import Lag, Processor, Watchdog, resident_mb
from benchmarks.soak.plan import Kind, Stint
from memcycle.core.settings import Settings
from memcycle.evals.run import die_with_parent
from memcycle.memory import Memory
from tests.loopback import MODEL

SAMPLE_SECONDS = 1.0
GARBAGE = 10_000
"""Objects made, at least, before Python looks for garbage."""


@dataclass(frozen=True)
class Measured:
    """What one process measured.

    Attributes:
        processor: Seconds in all. kinds: seconds by kind, of the operations that are metered.
        resident: MB, by seconds since the process was ready.
        lag: The event loop's.
        warnings: How often each warning was logged.
    """

    processor: float
    kinds: dict[Kind, float]
    resident: list[tuple[float, float]]
    lag: Lag
    warnings: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Ready:
    """A process has opened its memory."""


Told = Ready | Done | Measured


def serve(
    settings: Settings, url: str, slots: int, tasks: "Queue[Stint | None]", told: "Queue[Told]"
) -> None:
    """A worker's life: stints until None comes, `slots` of them at a time.

    Args:
        url: Base URL of the model's server.
    """
    # Ctrl-C reaches the whole group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=die_with_parent, daemon=True).start()
    asyncio.run(_serve(settings, url, slots, tasks, told))


async def _serve(
    settings: Settings, url: str, slots: int, tasks: "Queue[Stint | None]", told: "Queue[Told]"
) -> None:
    loop = asyncio.get_running_loop()
    processor, watchdog, warned = Processor(), Watchdog(), _Warnings()
    processor.install(loop)
    logging.getLogger("memcycle").addHandler(warned)
    async with Memory.open(settings=settings, model=MODEL, base_url=url, api_key="none") as memory:
        # What is loaded once is not what is measured.
        await memory.aadd("I open the window.", user="user-999", session="warm")
        await memory.aend_session("warm", user="user-999")
        await memory.aask("What did I open?", user="user-999")
        await memory.aforget_user("user-999")
        # As a service does once it is up: a full collection would look at every object of every library, some
        # 100 ms each time, and each reply of a model makes more objects than Python collects after by itself.
        gc.collect()
        gc.freeze()
        gc.set_threshold(GARBAGE)
        told.put(Ready())
        before, started = processor.seconds(), time.perf_counter()
        whole = time.process_time()
        resident: list[tuple[float, float]] = []
        beside = [
            loop.create_task(watchdog.watch()),
            loop.create_task(_sample(lambda: (time.perf_counter() - started, resident_mb()), resident)),
        ]
        await _Feeder(Driver(memory), slots, tasks, told).run()
        for task in beside:
            task.cancel()
        spent = time.process_time() - whole
        kinds = {kind: value - before.get(kind, 0.0) for kind, value in processor.seconds().items()}
    told.put(Measured(spent, kinds, resident, watchdog.lag, warned.counts))


class _Feeder:
    """Takes a stint whenever a slot is free."""

    def __init__(self, driver: Driver, slots: int, tasks: "Queue[Stint | None]", told: "Queue[Told]") -> None:
        self._driver, self._tasks, self._told = driver, tasks, told
        self._slots, self._free = slots, threading.Semaphore(slots)

    async def run(self) -> None:
        """Until None comes and all stints are done."""
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        threading.Thread(target=self._feed, args=(loop, over), daemon=True).start()
        await over.wait()

    def _feed(self, loop: asyncio.AbstractEventLoop, over: asyncio.Event) -> None:
        while True:
            self._free.acquire()
            stint = self._tasks.get()
            if stint is None:
                break
            asyncio.run_coroutine_threadsafe(self._one(stint), loop)
        for _ in range(self._slots - 1):
            self._free.acquire()
        loop.call_soon_threadsafe(over.set)

    async def _one(self, stint: Stint) -> None:
        try:
            self._told.put(await self._driver.run(stint))
        finally:
            self._free.release()


class _Warnings(logging.Handler):
    """Counts warnings by the text they are made of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.counts: dict[str, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.counts[record.getMessage()[:200]] = self.counts.get(record.getMessage()[:200], 0) + 1


async def _sample(look: Callable[[], tuple[float, float]], into: list[tuple[float, float]]) -> None:
    while True:
        into.append(look())
        await asyncio.sleep(SAMPLE_SECONDS)
