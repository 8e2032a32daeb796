"""Many users at once for minutes, against a model that takes its time, and what must be there in the end.

    python -m benchmarks.soak --users 32 --minutes 5 --latency-ms 300
    python -m benchmarks.soak --users 32 --minutes 5 --latency-ms 300 --processes 4

Each user lives through sessions (see `benchmarks.soak.plan`): says things, some of them twice at the same
time, asks, ends the session, says something late, forgets something, and after five sessions is forgotten.
All of that through the awaitable methods of `Memory`, every role asked over HTTP. One process keeps its index
embedded; several share the ledger and a `chroma run` server, and each session may be another process's.

In the end what is stored (by the public API, in the ledger's tables, in Chroma, and for one process in every
file) is compared with what must be, and the exit code is 1 if anything was lost, doubled, crossed or not
forgotten, or an operation failed. Everything measured is printed as one JSON object.
"""

import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from multiprocessing.context import SpawnProcess
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty
from statistics import median
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from benchmarks.soak.check import FAULTS, Finding, compare, in_files
from benchmarks.soak.meters import resident_mb, slope
from benchmarks.soak.plan import KINDS, Person, Stint
from benchmarks.soak.worker import SAMPLE_SECONDS, Done, Measured, Told, serve
from memcycle.core.errors import StoreError
from memcycle.core.settings import Settings
from memcycle.evals.run import running
from memcycle.memory import Memory
from tests.chroma_server import chroma_server
from tests.loopback import served, served_so_far

PATIENCE = 300.0
"""Seconds without a word of any process, after which a soak is given up."""
LOOK_SECONDS = 0.5
WARM_UP = 1 / 3
"""Of the time, left out where growth of memory is measured."""
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
    errors: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Throughput, with all users there, against what latency allows: calls x latency / users / seconds.

        1 where every user always waits for exactly one call of the model, which is all that users who call
        one after another can do; what is missing is time that memcycle took.
        """
        return self.full_calls * self.latency / self.users / self.full_seconds if self.full_seconds else 0.0

    def left(self, user: str) -> set[str]:
        """Ids of a user's facts and episodes that must be stored in the end."""
        kept: set[str] = set()
        for done in self.done:
            if done.user == user:
                kept = set() if done.erased_all else (kept | done.made) - done.erased
        return kept


def soak(settings: Settings, result: Soak, *, seconds: float, seed: int, tell: Callable[[str], None]) -> Soak:
    """Runs it in an empty home; several processes share a Chroma server.

    Raises:
        StoreError: a process died or says nothing any more.
    """
    persons = [Person(number, seed) for number in range(result.users)]
    server_folder = settings.home.parent / "chroma-server"
    with (
        served(result.latency) as url,
        chroma_server(server_folder) if result.processes > 1 else nullcontext(None) as server,
    ):
        if server is not None:
            settings = settings.model_copy(update={"chroma_url": server.url})
        tell("starting")
        process = server and server.process.pid
        _run(settings, url, persons, result, seconds=seconds, server=process, tell=tell)
        tell("comparing")
        result.findings = [finding for done in result.done for finding in done.findings]
        result.findings += compare(settings, persons, {one.user: result.left(one.user) for one in persons})
    if result.processes == 1:
        result.findings += in_files(settings.home, {mark for person in persons for mark in person.gone})
    with Memory.open(settings.home, read_only=True) as memory:
        result.entries = sum(len(memory.memories(user=person.user)) for person in persons)
    return result


def _run(
    settings: Settings,
    url: str,
    persons: Sequence[Person],
    result: Soak,
    *,
    seconds: float,
    server: int | None,
    tell: Callable[[str], None],
) -> None:
    """Starts the processes, has the users live, and notes what was measured.

    Args:
        seconds: How long new stints are begun.
        server: The process of the Chroma server.
    """
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
        before, started, stints = served_so_far(url), time.perf_counter(), {one.user: one for one in persons}
        for person in persons:
            tasks.put(person.next_stint())
        while stints:
            said = _next(told, workers)
            assert isinstance(said, Done)  # noqa: S101 - nothing else is told while users live
            over = time.perf_counter() - started
            _note(result, said, over, server)
            tell(f"{over:4.0f} s, {len(result.done)} sessions, {len(result.errors)} errors")
            if over < seconds and not said.errors:
                tasks.put(stints[said.user].next_stint())
                continue
            if len(stints) == result.users:
                result.full_seconds, result.full_calls = over, served_so_far(url).calls - before.calls
            del stints[said.user]
        result.seconds, after = time.perf_counter() - started, served_so_far(url)
        result.calls = after.calls - before.calls
        result.served_s = (after.seconds - before.seconds) / max(1, result.calls)
        for _ in range(slots * len(workers)):
            tasks.put(None)
        while len(result.measured) < len(workers):
            said = _next(told, workers)
            result.measured += [said] if isinstance(said, Measured) else []


def _note(result: Soak, done: Done, over: float, server: int | None) -> None:
    result.done.append(done)
    result.errors += done.errors
    if server and over >= SAMPLE_SECONDS * len(result.server_resident):
        result.server_resident.append((over, resident_mb(server) or 0.0))


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


def figures(result: Soak) -> dict[str, Any]:
    """Everything measured, as plain JSON data."""
    kinds = {}
    for kind in KINDS:
        times = [one for done in result.done for one in done.seconds.get(kind, ())]
        if times:
            calls = sum(done.calls[kind] for done in result.done) / len(times)
            kinds[kind] = {"operations": len(times), "calls": calls, "median_s": median(times)}
    operations = sum(int(row["operations"]) for row in kinds.values())
    whole = sum(measured.processor for measured in result.measured)
    return {
        "users": result.users,
        "processes": result.processes,
        "latency_ms": 1000 * result.latency,
        "seconds": result.seconds,
        "sessions": len(result.done),
        "operations": operations,
        "calls": result.calls,
        "calls_per_s": result.full_calls / result.full_seconds,
        "share_of_latency": result.share,
        "served_ms": 1000 * result.served_s,
        "cpu_ms_per_call": 1000 * whole / max(1, result.calls),
        "cpu_ms_per_operation": 1000 * whole / max(1, operations),
        "cpu_share_of_a_core": whole / result.seconds,
        "kinds": kinds,
        "memory_mb": [_memory(measured.resident) for measured in result.measured],
        "server_memory_mb": _memory(result.server_resident) if result.server_resident else None,
        "loop": [
            {
                "over_100_ms": measured.lag.over,
                "over_100_ms_by_itself": measured.lag.over_by_itself,
                "looks": measured.lag.looks,
                "worst": [block._asdict() for block in measured.lag.worst],
            }
            for measured in result.measured
        ],
        "entries": result.entries,
        "asked": sum(done.asked for done in result.done),
        "shown": sum(done.shown for done in result.done),
        "faults": {fault: sum(one.fault == fault for one in result.findings) for fault in FAULTS},
        "findings": [one._asdict() for one in result.findings[:100]],
        "errors": result.errors,
        "warnings": [dict(measured.warnings) for measured in result.measured],
    }


def _memory(samples: list[tuple[float, float]]) -> dict[str, float | None]:
    """Memory at the start, in the middle and at the end, and its growth a minute after the warm-up."""
    start, middle, end = (samples[at][1] for at in (0, len(samples) // 2, -1))
    grown = slope(samples[int(WARM_UP * len(samples)) :])
    return {"start": start, "middle": middle, "end": end, "growth_per_minute": grown}


def main(
    *,
    users: Annotated[int, typer.Option(min=1, max=999, help="Users at the same time.")] = 32,
    minutes: Annotated[float, typer.Option(min=0, help="How long new sessions are begun.")] = 5,
    latency_ms: Annotated[float, typer.Option(min=0, help="What a model call takes.")] = 300,
    processes: Annotated[int, typer.Option(min=1, help="1: embedded index; more share a Chroma server.")] = 1,
    profile: Annotated[
        Literal["lean", "paper"], typer.Option(help="paper: every role asked, which is most to do at once.")
    ] = "paper",
    seed: Annotated[int, typer.Option(help="What users do is drawn by it.")] = 1,
    keep: Annotated[
        Path | None, typer.Option(help="Folder, new or empty, in which what is stored stays; else none does.")
    ] = None,
) -> None:
    """Runs a soak and prints what came of it; exit code 1 where something is wrong."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.iterdir()):
            raise typer.BadParameter(f"{keep} is not empty: name a new folder", param_hint="--keep")
    place = tempfile.TemporaryDirectory() if keep is None else nullcontext(str(keep))
    with place as folder, Console(stderr=True).status("") as status:
        result = Soak(users, processes, latency_ms / 1000)
        try:
            settings = Settings(home=Path(folder) / "home", profile=profile)
            soak(settings, result, seconds=60 * minutes, seed=seed, tell=status.update)
        except StoreError as error:
            sys.stderr.write(f"{error}\n")
            raise typer.Exit(1) from None
    sys.stdout.write(json.dumps(figures(result), indent=1) + "\n")
    if result.findings or result.errors:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
