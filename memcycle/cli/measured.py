"""What an evaluation shows: bars while it runs, and the main figures at its end."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from memcycle.cli.output import note, one_line, say, screen, shown

if TYPE_CHECKING:
    from memcycle.evals.conversation import Event, Tell
    from memcycle.evals.dataset import Sample


@contextmanager
def progress(samples: "list[Sample]") -> "Iterator[Tell]":
    """Bars on a terminal, a line a conversation elsewhere."""
    if not sys.stderr.isatty():
        yield _told
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen(error=True), transient=True) as bars:
        yield _Bars(bars, samples).told


class _Bars:
    """A bar for all questions, and one for each conversation that is being stored."""

    def __init__(self, bars: Progress, samples: "list[Sample]") -> None:
        self._bars = bars
        self._asked = bars.add_task("questions", total=sum(len(sample.questions) for sample in samples))
        self._storing: dict[str, TaskID] = {}

    def told(self, event: "Event") -> None:
        """Moves the bars."""
        from memcycle.evals.conversation import Storing
        from memcycle.evals.record import Record, StoredConversation

        if isinstance(event, Record):
            self._bars.advance(self._asked)
        elif isinstance(event, Storing):
            if event.conversation not in self._storing:
                words = f"storing {one_line(event.conversation)}"
                self._storing[event.conversation] = self._bars.add_task(words, total=event.total)
            self._bars.update(self._storing[event.conversation], completed=event.done)
        elif isinstance(event, StoredConversation) and event.conversation in self._storing:
            self._bars.remove_task(self._storing.pop(event.conversation))


def _told(event: "Event") -> None:
    from memcycle.evals.conversation import Finished
    from memcycle.evals.record import StoredConversation

    if isinstance(event, StoredConversation):
        note(f"stored {event.conversation}: {event.turns} turns, {event.facts} facts ({event.seconds:.1f} s)")
    elif isinstance(event, Finished):
        note(f"asked {event.conversation}")
    sys.stderr.flush()


def show(figures: Mapping[str, Any], out: Path | None) -> None:
    """The main figures; all of them stand in the report."""
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("share of gold turns")
    ks, budgets = figures["recall"], figures["recall_at_tokens"]
    for name in (*(f"at {k}" for k in ks), *(f"{int(budget):,} tokens" for budget in budgets)):
        table.add_column(name, justify="right")
    ways = {"memcycle": figures, **figures["baselines"]}
    for name, own in ways.items():
        if own is not None and any(value is not None for value in own["recall"].values()):
            cells = (*own["recall"].values(), *own["recall_at_tokens"].values())
            table.add_row(name, *map(_share, cells))
    screen().print(table)
    abstained = figures["abstained"]
    say(
        f"{figures['n']} questions, {figures['n_evidence']} with gold turns. ",
        f"F1 {_share(figures['f1'])}, BLEU-1 {_share(figures['bleu1'])}, ",
        f"accuracy {_share(figures['accuracy'])}; ",
        f"abstained rightly {_share(abstained['right'])}, wrongly {_share(abstained['wrong'])}. ",
        (f"({figures['seconds']:.0f} s)", "dim"),
    )
    if figures["failed"]:
        note(f"{figures['failed']} questions crashed and count as wrong: the records say why", "yellow")
    if out is not None:
        say(("Report: ", "bold"), shown(str(out / "report.md")))


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
