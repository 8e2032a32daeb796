"""Many users at once for minutes, against a model that takes its time, and what must be there in the end.

    python -m benchmarks.soak --users 32 --minutes 5 --latency-ms 300
    python -m benchmarks.soak --users 32 --minutes 5 --latency-ms 300 --processes 4

Each user lives through sessions (see `benchmarks.soak.plan`): says things, some of them twice at the same
time, asks, ends the session, says something late, forgets something, and after five sessions is forgotten.
All of that through the awaitable methods of `Memory`, every role asked over HTTP. One process keeps its index
embedded; several share the ledger and a `chroma run` server, and each session may be another process's.

In the end what is stored (by the public API, in the ledger's tables, in Chroma, and for one process in every
file) is compared with what must be, and the exit code is 1 if anything was lost, doubled, crossed or not
forgotten, or an operation failed.
"""

import json
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.soak.findings import FAULTS
from benchmarks.soak.meters import LATE, slope
from benchmarks.soak.plan import KINDS
from benchmarks.soak.pool import Soak, soak, totals
from memcycle.core.errors import StoreError

TARGET = 0.6
WARM_UP = 1 / 3
"""Of the time, left out where growth is measured."""
SHOWN = 10


def figures(result: Soak) -> dict[str, Any]:
    """Everything measured, as plain JSON data."""
    counted = totals(result)
    kinds = {}
    for kind in KINDS:
        times = [one for done in result.done for one in done.seconds.get(kind, ())]
        if times:
            spent = sum(measured.kinds.get(kind, 0.0) for measured in result.measured)
            metered = sum(done.metered[kind] for done in result.done)
            kinds[kind] = {
                "operations": len(times),
                "calls": counted["calls"][kind] / len(times),
                "median_s": median(times),
                "cpu_ms": 1000 * spent / metered if metered else None,
            }
    whole = sum(measured.processor for measured in result.measured)
    return {
        "users": result.users,
        "processes": result.processes,
        "latency_ms": 1000 * result.latency,
        "seconds": result.seconds,
        "sessions": len(result.done),
        "operations": counted["operations"].total(),
        "calls": result.calls,
        "calls_per_s": result.full_calls / result.full_seconds,
        "share_of_latency": result.share,
        "served_ms": 1000 * result.served_s,
        "cpu_ms_per_call": 1000 * whole / max(1, result.calls),
        "cpu_share_of_a_core": whole / result.seconds,
        "cpu_ms_per_operation": 1000 * whole / max(1, counted["operations"].total()),
        "kinds": kinds,
        "memory_mb": [_memory(measured.resident) for measured in result.measured],
        "server_memory_mb": _memory(result.server_resident) if result.server_resident else None,
        "loop": [
            {
                "worst_ms": measured.lag.worst[0].ms if measured.lag.worst else 0.0,
                "over_100_ms": measured.lag.over,
                "over_100_ms_by_itself": measured.lag.over_by_itself,
                "looks": measured.lag.looks,
                "collector_worst_ms": measured.lag.collector_ms,
                "collector_worst_cpu_ms": measured.lag.collector_cpu_ms,
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
        "warnings": [measured.warnings for measured in result.measured],
    }


def _memory(samples: list[tuple[float, float]]) -> dict[str, float | None]:
    """Memory at the start, in the middle and at the end, and its growth a minute after the warm-up."""
    settled = samples[int(WARM_UP * len(samples)) :]
    start, middle, end = (samples[at][1] for at in (0, len(samples) // 2, -1))
    return {"start": start, "middle": middle, "end": end, "growth_per_minute": slope(settled)}


def _grown(memory: dict[str, float | None]) -> str:
    grown = memory["growth_per_minute"]
    return (
        f"memory MB {memory['start']:.0f}, {memory['middle']:.0f}, {memory['end']:.0f}; growth a minute"
        f" after the warm-up: {'-' if grown is None else f'{grown:+.1f}'}"
    )


def _show(console: Console, told: dict[str, Any]) -> None:
    table = Table("operation", title=f"{told['users']} users, {told['processes']} process(es)")
    for heading in ("done", "model calls each", "median s", "own CPU ms each"):
        table.add_column(heading, justify="right")
    for kind, row in told["kinds"].items():
        cpu = "-" if row["cpu_ms"] is None else f"{row['cpu_ms']:.0f}"
        numbers = (f"{row['calls']:.1f}", f"{row['median_s']:.2f}", cpu)
        table.add_row(kind, str(row["operations"]), *numbers)
    table.add_section()
    calls = told["calls"] / max(1, told["operations"])
    all_ = (f"{calls:.1f}", "", f"{told['cpu_ms_per_operation']:.0f}")
    table.add_row("all, with what counts for none", str(told["operations"]), *all_)
    console.print(table)
    lines = [
        f"{told['operations']} operations of {told['sessions']} sessions, {told['calls']} model calls in"
        f" {told['seconds']:.0f} s; {told['calls_per_s']:.1f} calls a second while all users were there",
        f"calls x latency / users / seconds: {told['share_of_latency']:.2f} (target {TARGET} or more);"
        f" a reply took {told['served_ms']:.0f} ms",
        f"own CPU: {told['cpu_ms_per_call']:.1f} ms a call, {told['cpu_share_of_a_core']:.2f} cores",
        f"evidence showed what was asked for: {told['shown']} of {told['asked']}; entries at the end:"
        f" {told['entries']}",
    ]
    if told["server_memory_mb"]:
        lines.append(f"Chroma server: {_grown(told['server_memory_mb'])}")
    for memory, loop in zip(told["memory_mb"], told["loop"], strict=True):
        lines.append(_grown(memory))
        lines.append(
            f"event loop: longest block {loop['worst_ms']:.0f} ms, {loop['over_100_ms']} of {loop['looks']}"
            f" looks over {1000 * LATE:.0f} ms, in {loop['over_100_ms_by_itself']} of them the process worked"
            f" that long; garbage collector at most {loop['collector_worst_ms']:.0f} ms"
            f" ({loop['collector_worst_cpu_ms']:.0f} of CPU)"
        )
        lines += [
            f"  {one['ms']:.0f} ms, {one['cpu_ms']:.0f} of CPU: {one['running']}" for one in loop["worst"][:3]
        ]
    faults = ", ".join(f"{fault} {count}" for fault, count in told["faults"].items())
    lines.append(f"{faults}; errors {len(told['errors'])}")
    lines += [
        f"  {one['fault']}: {one['user']}, {one['where']}: {one['what']}" for one in told["findings"][:SHOWN]
    ]
    lines += [f"  {error}" for error in told["errors"][:SHOWN]]
    lines += [f"  warned {count} times: {what}" for own in told["warnings"] for what, count in own.items()]
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def _made(keep: Path) -> Path:
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise typer.BadParameter(f"{keep} is not empty: name a new folder", param_hint="--keep")
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = f"{keep} cannot be made: {error.strerror}; name another folder"
        raise typer.BadParameter(why, param_hint="--keep") from None
    return keep


def main(
    *,
    users: Annotated[int, typer.Option(min=1, max=999, help="Users at the same time.")] = 32,
    minutes: Annotated[float, typer.Option(min=0, help="How long new sessions are begun.")] = 5,
    latency_ms: Annotated[float, typer.Option(min=0, help="What a model call takes.")] = 300,
    processes: Annotated[int, typer.Option(min=1, help="1: embedded index; more share a Chroma server.")] = 1,
    seed: Annotated[int, typer.Option(help="What users do is drawn by it.")] = 1,
    keep: Annotated[
        Path | None, typer.Option(help="Folder, new or empty, in which what is stored stays; else none does.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object with everything.")] = False,
) -> None:
    """Runs a soak and says what came of it; exit code 1 where something is wrong."""
    errors = Console(stderr=True)
    place = tempfile.TemporaryDirectory() if keep is None else nullcontext(_made(keep))
    with place as folder, errors.status("") as status:
        try:
            home = Path(folder) / "home"
            result = soak(
                home,
                users=users,
                processes=processes,
                seconds=60 * minutes,
                latency=latency_ms / 1000,
                seed=seed,
                tell=status.update,
            )
        except StoreError as error:
            sys.stderr.write(f"{error}\n")
            raise typer.Exit(1) from None
    told = figures(result)
    if json_:
        sys.stdout.write(json.dumps(told) + "\n")
    else:
        _show(Console(), told)
    if result.findings or result.errors:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
