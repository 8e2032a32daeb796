"""A process of a soak: one memory, and several users' stints at the same time on one event loop."""

import asyncio
import gc
import logging
import signal
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.queues import Queue
from typing import Any

from benchmarks.soak.check import Finding
from benchmarks.soak.meters import Lag, Watchdog, resident_mb
from benchmarks.soak.plan import Kind, Message, Op, Stint, marks, strangers
from memcycle.core.settings import Settings
from memcycle.evals.run import die_with_parent
from memcycle.memory import Memory
from tests.loopback import MODEL

SAMPLE_SECONDS = 1.0
GARBAGE = 10_000
"""Objects made, at least, before Python looks for garbage."""


@dataclass
class Done:
    """A stint that is done.

    Attributes:
        seconds: Of each operation, by kind. calls: model calls by kind.
        made, erased: Ids of the facts and episodes that were reported as stored, and as forgotten.
        erased_all: Whether the user was forgotten as a whole, of which no ids are told.
        asked, shown: Questions about something that is there, and those whose evidence showed it.
        errors: Operations that failed, each in one line.
    """

    user: str
    seconds: dict[Kind, list[float]] = field(default_factory=dict)
    calls: Counter[Kind] = field(default_factory=Counter)
    made: set[str] = field(default_factory=set)
    erased: set[str] = field(default_factory=set)
    erased_all: bool = False
    asked: int = 0
    shown: int = 0
    findings: list[Finding] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Measured:
    """What a process measured: processor seconds, memory as (seconds, MB), lag, how often what was warned."""

    processor: float
    resident: list[tuple[float, float]]
    lag: Lag
    warnings: Counter[str]


@dataclass(frozen=True)
class Ready:
    """A process has opened its memory."""


Told = Ready | Done | Measured


class Driver:
    """Does stints with one memory, several at the same time."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._does: dict[Kind, Callable[[Op, Done], Awaitable[None]]] = {
            "add": self._add,
            "ask": self._ask,
            "end_session": self._end_session,
            "forget": self._forget,
            "forget_user": self._forget_user,
        }

    async def run(self, stint: Stint) -> Done:
        """One stint; an operation that fails is noted, and the next is done."""
        done = Done(stint.user)
        for op in stint.ops:
            started = time.perf_counter()
            try:
                await self._does[op.kind](op, done)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
                done.errors.append(f"{op.kind} of {stint.user}: {type(error).__name__}: {error}"[:300])
            done.seconds.setdefault(op.kind, []).append(time.perf_counter() - started)
        return done

    async def _add(self, op: Op, done: Done) -> None:
        sent = [_sent(message) for message in op.messages]
        again = 2 if op.twice else 1
        added = await asyncio.gather(
            *(self._memory.aadd(sent, user=done.user, session=op.session) for _ in range(again))
        )
        for one in added:
            done.made.update(one.facts, one.episodes)
            _count(done, op, one.usage)

    async def _ask(self, op: Op, done: Done) -> None:
        question = f"What about {op.mark}?" if op.mark else "What did I adopt?"
        answer = await self._memory.aask(question, user=done.user, session=op.session or None)
        _count(done, op, answer.usage)
        texts = [one.text for one in answer.evidence]
        done.asked += bool(op.mark)
        done.shown += bool(op.mark) and any(op.mark in marks(text) for text in texts)
        for text in [answer.answer or "", *texts]:
            others = strangers(text, done.user)
            done.findings += [Finding("crossed", done.user, "answer", mark) for mark in others]
            gone = [mark for mark in marks(text) - others if mark in op.without]
            done.findings += [Finding("not forgotten", done.user, "answer", mark) for mark in gone]

    async def _end_session(self, op: Op, done: Done) -> None:
        ended = await self._memory.aend_session(op.session, user=done.user)
        done.made.update(ended.episodes)
        _count(done, op, ended.usage)

    async def _forget(self, op: Op, done: Done) -> None:
        found = await self._memory.amemories(user=done.user, search=op.mark, granularity="raw")
        if len(found) != 1:
            done.findings.append(Finding("doubled" if found else "lost", done.user, "forget", op.mark))
        for entry in found:
            done.erased.update(await self._memory.aforget(entry.id, user=done.user))

    async def _forget_user(self, _: Op, done: Done) -> None:
        await self._memory.aforget_user(done.user)
        done.erased_all = True


def _sent(message: Message) -> dict[str, str]:
    return {"role": message.role, "content": message.text, "id": message.id}


def _count(done: Done, op: Op, usage: Any) -> None:
    done.calls[op.kind] += sum(count["calls"] for count in usage.values())


def serve(
    settings: Settings, url: str, slots: int, tasks: "Queue[Stint | None]", told: "Queue[Told]"
) -> None:
    """A worker's life: stints, `slots` of them at a time, until a None came for each slot.

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
    loop, watchdog, warned = asyncio.get_running_loop(), Watchdog(), _Warnings()
    logging.getLogger("memcycle").addHandler(warned)
    with ThreadPoolExecutor(slots, thread_name_prefix="soak") as waiting:
        async with Memory.open(settings=settings, model=MODEL, base_url=url, api_key="none") as memory:
            # What is loaded once is not what is measured.
            await memory.aadd("I open the window.", user="user-999", session="warm")
            await memory.aend_session("warm", user="user-999")
            await memory.aask("What did I open?", user="user-999")
            await memory.aforget_user("user-999")
            # As a service does once it is up: a full collection would look at every object of every library,
            # some 100 ms each time, and each reply of a model makes more objects than Python collects after.
            gc.collect()
            gc.freeze()
            gc.set_threshold(GARBAGE)
            told.put(Ready())
            before, resident = time.process_time(), list[tuple[float, float]]()
            beside = [loop.create_task(watchdog.watch()), loop.create_task(_sample(resident))]
            driver = Driver(memory)

            async def slot() -> None:
                while (stint := await loop.run_in_executor(waiting, tasks.get)) is not None:
                    told.put(await driver.run(stint))

            await asyncio.gather(*(slot() for _ in range(slots)))
            for task in beside:
                task.cancel()
            spent = time.process_time() - before
    told.put(Measured(spent, resident, watchdog.lag, warned.counts))


class _Warnings(logging.Handler):
    """Counts warnings by their text."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.counts: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        self.counts[record.getMessage()[:200]] += 1


async def _sample(into: list[tuple[float, float]]) -> None:
    started = time.perf_counter()
    while True:
        into.append((time.perf_counter() - started, resident_mb() or 0.0))
        await asyncio.sleep(SAMPLE_SECONDS)
