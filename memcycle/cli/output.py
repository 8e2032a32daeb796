"""What a command prints: results on standard output, messages on standard error, text always as it stands."""

import codecs
import functools
import json
import os
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from memcycle.core.errors import KEPT, BadInput, MemcycleError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memcycle.core.probe import Usage
    from memcycle.results import Answer, Evidence, Refused

P = ParamSpec("P")
T = TypeVar("T")

FAILED, BAD_USE, WAITS = 1, 2, 3
"""Exit codes beside 0; the last one where a run waits for a person's approval."""

_WIDE = 160
"""Columns of a listing that goes into a file or a pipe, where no terminal gives a width."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def screen(*, error: bool = False) -> Console:
    """A console on standard output, or standard error, that reads no markup in what it prints."""
    stream = sys.stderr if error else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _WIDE
    return Console(stderr=error, markup=False, highlight=False, emoji=False, width=width)


def shown(text: str) -> str:
    """Text as a terminal may show it: stored words must not steer the terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """Text as a terminal may show it, on one line."""
    return shown(" ".join(text.split()))


def note(message: str, style: str = "") -> None:
    """A message to the person, on standard error."""
    screen(error=True).print(Text(shown(message), style=style), soft_wrap=True)


def listing(*columns: Column | str) -> Table:
    """A table without lines, of columns by name or in full."""
    return Table(*columns, box=None, padding=(0, 1), pad_edge=False, header_style="bold")


def counted(number: int, noun: str, many: str | None = None) -> str:
    """A number with its noun: "1 turn", "2 turns"."""
    return f"{number} {noun}" if number == 1 else f"{number} {many or noun + 's'}"


def say(*parts: str | Text | tuple[str, str]) -> None:
    """A line of the result, of plain and of `(text, style)` parts."""
    screen().print(Text.assemble(*parts), soft_wrap=True)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """JSON as data: the one value of a command called with `--json`, or a line without `indent`.

    Whole on any stream: letters as they are in UTF-8, which JSON is read in, escaped on any other.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if codecs.lookup(sys.stdout.encoding or "utf-8").name != "utf-8" or _SURROGATE.search(text):
        text = json.dumps(value, indent=indent)
    typer.echo(text)


def print_text(text: str, style: str = "") -> None:
    """A text as data: in UTF-8 as it stands, on a terminal as that can show it."""
    if sys.stdout.isatty():
        say((shown(text), style))
    else:
        typer.echo(text.encode("utf-8", "replace"))


def confirm(question: str, *, yes: bool) -> None:
    """Asks before something is destroyed.

    Raises:
        BadInput: nobody is there to be asked. typer.Exit: the answer is no.
    """
    if yes:
        return
    if not is_asked():
        raise BadInput(f"{question} Nobody is here to answer: repeat the command with --yes")
    if not typer.confirm(question, err=True):
        note("Nothing was changed.")
        raise typer.Exit(FAILED)


def is_asked() -> bool:
    """Whether a person sits at the other end."""
    return sys.stdin.isatty()


def documented(command: Callable[..., None], name: str, about: str, *examples: str) -> Callable[..., None]:
    """A command made for several things, named and described for one of them as by its own docstring."""
    command.__name__ = name
    lines = "".join(f"\n    {example}" for example in examples)
    command.__doc__ = about + (f"\n\nExamples:{lines}" if examples else "")
    return command


def explained(command: Callable[P, T]) -> Callable[P, T]:
    """The command with its errors in one line on standard error and an exit code.

    `MEMCYCLE_DEBUG=1` shows the traceback instead.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            note("Stopped. What was acknowledged is stored.", "yellow")
            raise typer.Exit(FAILED) from None
        except Exception as error:
            if os.environ.get("MEMCYCLE_DEBUG"):
                raise
            note(f"Error: {_one_line(error)}", "bold red")
            raise typer.Exit(BAD_USE if isinstance(error, BadInput) else FAILED) from None

    return run


def _one_line(error: Exception) -> str:
    """What went wrong and what to do, in one line."""
    kept = [KEPT] if KEPT in getattr(error, "__notes__", ()) else []
    if "openai" in sys.modules:  # loading it takes a second, and who has not loaded it had no error of its
        from memcycle.agents.provider_errors import explain_model_error

        error = explain_model_error(error) or error
    words = " ".join(". ".join([str(error), *kept]).split())
    if isinstance(error, MemcycleError):
        return words
    return f"{type(error).__name__}: {words} (set MEMCYCLE_DEBUG=1 to see where)"


_SHOWN_REFUSALS = 5


def say_answer(answer: "Answer", *, limit: int = 10) -> None:
    """An answer and its sources, as people read them."""
    if answer.answer is not None:
        style = "bold green" if answer.answerable else "yellow"
        quoted = answer.mode == "extractive" and answer.answerable
        say((shown(answer.answer), style), ("  extractive", "dim") if quoted else "")
    elif not answer.evidence:
        say(("Nothing in memory bears on that.", "yellow"))
    if answer.evidence:
        screen().print(evidence_table(answer.evidence[:limit]))
    if len(answer.evidence) > limit:
        say((f"  ... and {len(answer.evidence) - limit} more (see --json)", "dim"))


def spoken_by(speaker: str | None, granularity: str, text: str) -> str:
    """Who said it, where the words do not name them: before a turn, and before a fact as it was said."""
    if not speaker or granularity == "episode":
        return ""
    named = re.search(rf"(?<!\w){re.escape(speaker)}(?!\w)", text, re.IGNORECASE)
    return "" if granularity == "fact" and named else f"{speaker}: "


def evidence_table(evidence: "list[Evidence]") -> Table:
    """Evidence, a row a piece: source turns, granularity, date, text."""
    dim = Column(style="dim", no_wrap=True)
    columns = (Column(style="cyan", no_wrap=True), dim, dim.copy(), Column(overflow="fold"))
    table = Table(*columns, box=None, padding=(0, 1), show_header=False, pad_edge=True)
    for item in evidence:
        said = item.event_time or item.time
        speaker = spoken_by(item.speaker, item.granularity, item.text)
        table.add_row(
            shown(turn_range(item.turns)),
            item.granularity,
            f"{said:%Y-%m-%d}" if said else "",
            Text(shown(speaker + item.text)),
        )
    return table


def turn_range(turns: list[str]) -> str:
    """Source turns in few letters: one id, or the first and the last."""
    if len(turns) < 2:  # noqa: PLR2004 - a range has two ends
        return "".join(turns)
    (session, _, _), (other, _, last) = turns[0].rpartition(":"), turns[-1].rpartition(":")
    return f"{turns[0]}-{last}" if session == other else f"{turns[0]} .. {turns[-1]}"


def say_refused(rejected: "Sequence[Refused]") -> None:
    """What was proposed and not stored, the first of it."""
    for refused in rejected[:_SHOWN_REFUSALS]:
        say(("  not stored: ", "dim"), shown(refused.text), (f"  {shown(refused.why)}", "dim"))
    if len(rejected) > _SHOWN_REFUSALS:
        say((f"  ... and {len(rejected) - _SHOWN_REFUSALS} more (see --json)", "dim"))


def say_usage(usage: "Usage") -> None:
    """Model calls and tokens, where there were any."""
    if usage:
        calls = sum(count["calls"] for count in usage.values())
        read = sum(count["input_tokens"] for count in usage.values())
        written = sum(count["output_tokens"] for count in usage.values())
        cached = sum(count.get("cached", 0) for count in usage.values())
        known = f" ({cached} from the provider's cache)" if cached else ""
        say((f"{calls} model calls, {read} tokens read{known}, {written} written", "dim"))


def bars() -> Progress:
    """Bars on standard error, gone when all is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=screen(error=True), transient=True)
