"""What an evolution shows: bars while it runs, and the main figures at its end."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from memcycle.cli.output import note, one_line, say, screen, shown

if TYPE_CHECKING:
    from memcycle.evolution.lab import Progress as Done
    from memcycle.evolution.lab import Watch


@contextmanager
def evolving() -> "Iterator[Watch]":
    """Bars on a terminal, a line for each thing that is done elsewhere."""
    if not sys.stderr.isatty():
        yield _told
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen(error=True), transient=True) as bars:
        yield _Bars(bars).told


class _Bars:
    """A bar for what is being done."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task: TaskID | None = None
        self._name = ""

    def told(self, done: "Done") -> None:
        """Moves the bar, or begins the next one."""
        name = f"{done.what} {one_line(done.name)}"
        if self._task is None or name != self._name or done.done <= 1:
            if self._task is not None:
                self._bars.remove_task(self._task)
            self._task, self._name = self._bars.add_task(name, total=done.total), name
        self._bars.update(self._task, completed=done.done)


def _told(done: "Done") -> None:
    if done.done == done.total:
        note(f"{done.what} {done.name}: {done.total}")
        sys.stderr.flush()


def show(figures: Mapping[str, Any], out: Path) -> None:
    """The rounds and the held-out figures; all else stands in the report."""
    rounds = Table("round", "train", "guard", "decision", "why", box=None, padding=(0, 1), pad_edge=False)
    for row in figures["rounds"]:
        rounds.add_row(
            str(row["round"]), _share(row["train"]), _share(row["guard"]), row["decision"], row["why"]
        )
    screen().print(rounds)
    held = Table("held out", "score", "95 % interval", box=None, padding=(0, 1), pad_edge=False)
    named = {f"start ({figures['start']['name']})": figures["start"], "best": figures["best"]}
    for name, own in {**named, **figures["beside"], "random search": figures["random"]}.items():
        if own is not None:
            held.add_row(name, _share(own["held_out"]), _interval(own["interval"]))
    screen().print(held)
    if figures["ablation"] is not None:
        screen().print(_ablated(figures["ablation"]))
    say(("Report: ", "bold"), shown(str(out / "report.md")))
    say(("Theta: ", "bold"), shown(str(out / "best_theta.json")))


def _ablated(ablation: Mapping[str, Any]) -> Table:
    table = Table("mechanism", "switched", "score", "change", box=None, padding=(0, 1), pad_edge=False)
    for row in ablation["rows"]:
        gain = "-" if row["gain"] is None else f"{row['gain']:+.3f}"
        table.add_row(row["mechanism"], row["switched"], _share(row["score"]), gain)
    return table


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(ends: Sequence[float] | None) -> str:
    return "" if ends is None else f"{ends[0]:.3f} to {ends[1]:.3f}"
