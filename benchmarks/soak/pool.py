"""The soak itself: persons hand stints to the processes until the time is over; then all is compared."""

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from multiprocessing.context import SpawnProcess
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty

from benchmarks.soak.drive import Done, left
from benchmarks.soak.findings import Finding, findings
from benchmarks.soak.holdings import API, INDEX, LEDGER, by_api, in_chroma, in_files, in_ledger
from benchmarks.soak.meters import resident_of
from benchmarks.soak.plan import Person, Stint
from benchmarks.soak.worker import SAMPLE_SECONDS, Measured, Told, serve
from memcycle.core.errors import StoreError
from memcycle.core.settings import Settings
from memcycle.evals.run import running
from memcycle.memory import Memory
from memcycle.stores.bank import LEDGER_FILE
from tests.chroma_server import Server, chroma_server
from tests.loopback import served, served_so_far

PATIENCE = 300.0
"""Seconds without a word of any process, after which a soak is given up."""
LOOK_SECONDS = 0.5
GLIBC = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "262144", "MALLOC_TRIM_THRESHOLD_": "1048576"}
"""As a service has it that stays up: else each thread of many gets an arena, which is hardly given back, nor
are large blocks once one of their size was freed."""


@dataclass
class Soak:
    """What came of it.

    Attributes:
        seconds: From the first stint to the last one's end. calls: model calls meanwhile; served_s: what the
            server took for one, the mean.
        full_seconds, full_calls: The same until no new stints were begun, while all users were there.
        entries: Stored at the end.
        server_resident: MB of the Chroma server, by seconds; none where there is no server, or no /proc.
    """

    users: int
    processes: int
    latency: float
    seconds: float = 0.0
    calls: int = 0
    full_seconds: float = 0.0
    full_calls: int = 0
    served_s: float = 0.0
    entries: int = 0
    done: list[Done] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    server_resident: list[tuple[float, float]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def errors(self) -> list[str]:
        """Operations that failed."""
        return [error for done in self.done for error in done.errors]

    @property
    def share(self) -> float:
        """Throughput, with all users there, against what latency allows: calls x latency / users / seconds.

        1 where every user always waits for exactly one call of the model, which is all that users who call
        one after another can do; what is missing is time that memcycle took.
        """
        return self.full_calls * self.latency / self.users / self.full_seconds if self.full_seconds else 0.0


def soak(
    home: Path,
    *,
    users: int,
    processes: int,
    seconds: float,
    latency: float,
    seed: int,
    tell: Callable[[str], None],
) -> Soak:
    """Runs it in an empty home; several processes share a Chroma server.

    Raises:
        StoreError: a process died or says nothing any more.
    """
    persons = [Person(number, seed) for number in range(users)]
    result = Soak(users, processes, latency)
    chroma = home.parent / "chroma-server"
    with served(latency) as url, chroma_server(chroma) if processes > 1 else nullcontext(None) as server:
        settings = Settings(home=home, chroma_url=server and server.url)
        tell("starting")
        _run(settings, url, persons, result, seconds=seconds, server=server, tell=tell)
        tell("comparing")
        made = {person.user: left(set(), _of(result, person)) for person in persons}
        result.findings = [finding for done in result.done for finding in done.findings]
        result.findings += compare(settings, persons, made)
    if processes == 1:
        gone = {mark for person in persons for mark in person.gone}
        result.findings += [
            Finding("not forgotten", mark, f"file {name}", mark) for name, mark in in_files(home, gone)
        ]
    with Memory.open(home, read_only=True) as memory:
        result.entries = sum(len(memory.memories(user=person.user)) for person in persons)
    return result


def compare(settings: Settings, persons: Sequence[Person], made: dict[str, set[str]]) -> list[Finding]:
    """Ends what is open, then compares what is stored with what must be, in every place.

    Args:
        made: By user the ids of facts and episodes that must be stored.
    """
    with Memory.open(settings=settings) as memory:
        for person in persons:
            for session in memory.sessions(user=person.user):
                if session.status == "open":
                    memory.end_session(session.session, user=person.user, verify=False)
        memory.bank.drain()
        held = [one for person in persons for one in by_api(memory, person.user)]
        held += in_ledger(settings.home / LEDGER_FILE)
        with memory.bank.views.mirror.index().client() as (client, _):
            held += in_chroma(client)
        lost = [
            Finding("lost", user, "history", entry)
            for user, ids in made.items()
            for entry in sorted(ids)
            if not memory.bank.get(memory.scope(user), [entry])
        ]
    return [*findings(persons, held, (API, LEDGER, INDEX)), *lost]


def _of(result: Soak, person: Person) -> list[Done]:
    return [done for done in result.done if done.user == person.user]


def _run(
    settings: Settings,
    url: str,
    persons: Sequence[Person],
    result: Soak,
    *,
    seconds: float,
    server: Server | None,
    tell: Callable[[str], None],
) -> None:
    os.environ.update(GLIBC | dict(os.environ))
    context = multiprocessing.get_context("spawn")
    tasks: Queue[Stint | None] = context.Queue()
    told: Queue[Told] = context.Queue()
    slots = -(-result.users // result.processes)
    workers = [
        context.Process(target=serve, args=(settings, url, slots, tasks, told), daemon=True, name=f"soak-{n}")
        for n in range(1, result.processes + 1)
    ]
    with running(workers):
        for _ in workers:
            _next(told, workers)
        before, started = served_so_far(url), time.perf_counter()
        known = {person.user: person for person in persons}
        for person in persons:
            tasks.put(person.next_stint())
        waiting = len(persons)
        while waiting:
            said = _next(told, workers)
            if not isinstance(said, Done):
                continue
            result.done.append(said)
            over = time.perf_counter() - started
            _look_at(server, over, result)
            tell(f"{over:4.0f} s, {len(result.done)} sessions, {len(result.errors)} errors")
            if over < seconds and not said.errors:
                tasks.put(known[said.user].next_stint())
            else:
                if not result.full_seconds:
                    result.full_seconds = over
                    result.full_calls = served_so_far(url).calls - before.calls
                waiting -= 1
        result.seconds = time.perf_counter() - started
        after = served_so_far(url)
        result.calls = after.calls - before.calls
        result.served_s = (after.seconds - before.seconds) / max(1, result.calls)
        for _ in workers:
            tasks.put(None)
        while len(result.measured) < len(workers):
            said = _next(told, workers)
            if isinstance(said, Measured):
                result.measured.append(said)


def _look_at(server: Server | None, over: float, result: Soak) -> None:
    is_due = over >= SAMPLE_SECONDS * len(result.server_resident)
    resident = resident_of(server.process.pid) if server is not None and is_due else None
    if resident is not None:
        result.server_resident.append((over, resident))


def _next(told: "Queue[Told]", workers: Sequence[SpawnProcess]) -> Told:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            return told.get(timeout=LOOK_SECONDS)
        except Empty:
            died = [worker for worker in workers if worker.exitcode not in (None, 0)]
            if died:
                raise StoreError(f"process {died[0].name} died (exit code {died[0].exitcode})") from None
    raise StoreError(f"no process said anything for {PATIENCE:.0f} s: something waits for ever")


def totals(result: Soak) -> dict[str, Counter[str]]:
    """Operations and model calls by kind."""
    operations: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for done in result.done:
        operations.update({kind: len(times) for kind, times in done.seconds.items()})
        calls.update(done.calls)
    return {"operations": operations, "calls": calls}
