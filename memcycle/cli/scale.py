"""`eval scale`: measures memcycle in a made-up home of any size."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from memcycle.cli.options import Embedder, Json, settings_of
from memcycle.cli.output import note, print_json, say, screen

if TYPE_CHECKING:
    from memcycle.evals.scale import Scale, Tell

_SAID = {
    "insert": "storing entries",
    "index": "bringing the vector index up to date",
    "search": "searching, groups of users",
    "open": "opening the home in a new process",
}


def scale(
    *,
    entries: Annotated[
        int, typer.Option("--entries", "-n", metavar="N", min=1, help="Entries of all users together.")
    ] = 100_000,
    users: Annotated[
        int,
        typer.Option(
            "--users", metavar="U", min=1, help="Users; one has a twentieth of all entries, at most 5,000."
        ),
    ] = 1_000,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Decides what is made up.")] = 1,
    embedder: Embedder = None,
    as_json: Json = False,
) -> None:
    """Measure import, search, memory, disk and opening in a made-up home, which is removed afterwards.

    Search times include the embedding of the query; each question is asked once.
    """
    from memcycle.evals.scale import measure

    with tempfile.TemporaryDirectory(prefix="memcycle-scale-") as folder, _progress() as tell:
        settings = settings_of(Path(folder) / "home", embedder=embedder)
        # A server would keep what is made up here.
        settings = settings.model_copy(update={"chroma_url": None})
        measured = measure(settings, entries, users, seed, tell)
    if as_json:
        print_json(measured.figures())
    else:
        _show(measured)


@contextmanager
def _progress() -> "Iterator[Tell]":
    """A bar a step on a terminal, a line a step elsewhere."""
    told: dict[str, object] = {}
    if not sys.stderr.isatty():
        yield lambda step, _, total: None if step in told else _line(told, step, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen(error=True), transient=True) as bars:

        def moved(step: str, done: int, total: int) -> None:
            for task in bars.tasks:
                bars.update(task.id, completed=task.total, visible=step == task.fields["step"])
            if step not in told:
                told[step] = bars.add_task(_SAID[step], total=total, step=step)
            bars.update(told[step], completed=done)  # type: ignore[arg-type]

        yield moved


def _line(told: dict[str, object], step: str, total: int) -> None:
    told[step] = True
    note(f"{_SAID[step]} ({total:,})" if total > 1 else _SAID[step])


def _show(measured: "Scale") -> None:
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("search, ms")
    for name in ("entries", "searches", "p50", "p95", "a user's first"):
        table.add_column(name, justify="right")
    for group, times in measured.search.items():
        table.add_row(
            f"{group} users" if group != "largest" else "largest user",
            f"{times.entries:,}",
            str(times.searches),
            *(f"{value:.1f}" for value in times[2:]),
        )
    screen().print(table)
    say(f"Largest user, just after a write: {measured.after_write_ms:.1f} ms.")
    stored = measured.entries / measured.insert_s
    indexed = measured.entries / (measured.insert_s + measured.index_s)
    say(
        ("Import: ", "bold"),
        f"{stored:,.0f} entries/s until stored and searchable, {indexed:,.0f} with the vector index.",
    )
    say(
        f"{measured.entries:,} entries, {measured.users:,} users, {measured.embedder}, "
        f"{os.cpu_count()} processors: ",
        f"{measured.rss_mb:,.0f} MB of memory, {measured.disk_mb:,.0f} MB on disk, ",
        f"opened and searched in {measured.open_s:.2f} s.",
    )
