"""How answers, their evidence and what they cost are shown."""

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from memcycle.cli.output import say, screen, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memcycle.core.usage import Usage
    from memcycle.results import Answer, Evidence, Refused

_SHOWN_REFUSALS = 5


def say_answer(answer: "Answer", *, limit: int = 10) -> None:
    """An answer and its sources, as people read them."""
    if answer.answer is not None:
        style = "bold green" if answer.answerable else "yellow"
        sure = (
            f"  {answer.confidence:.0%} sure" if answer.answerable and answer.confidence is not None else ""
        )
        kind = ", extractive" if answer.mode == "extractive" and answer.answerable else ""
        say((shown(answer.answer), style), (f"{sure}{kind}", "dim"))
    elif not answer.evidence:
        say(("Nothing in memory bears on that.", "yellow"))
    if answer.evidence:
        screen().print(evidence_table(answer.evidence[:limit]))
    if len(answer.evidence) > limit:
        say((f"  ... and {len(answer.evidence) - limit} more (see --json)", "dim"))


def evidence_table(evidence: "list[Evidence]") -> Table:
    """Evidence, a row a piece: source turns, granularity, date, text."""
    table = Table(box=None, padding=(0, 1), show_header=False, pad_edge=True)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for item in evidence:
        said = item.event_time or item.time
        speaker = f"{item.speaker}: " if item.speaker and item.granularity == "raw" else ""
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
        say((f"{calls} model calls, {read} tokens read, {written} written", "dim"))
