"""Probes as people read them: question, answer before, repair, answer after."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from memcycle.cli.ids import SHORT
from memcycle.cli.output import one_line, screen, shown

if TYPE_CHECKING:
    from memcycle.core.probe import Probe, Repair, Tried
    from memcycle.core.turn import Turn

_VERDICT = {"passed": "green", "failed": "red", "ungraded": "yellow"}
_LABELS = 8
"""Columns for the names of the lines."""


def sources(probes: "Iterable[Probe]") -> list[str]:
    """Ids of the turns that probes and their repairs rest on."""
    return [
        turn
        for probe in probes
        for turn in (probe.turn, probe.repair.turn if probe.repair is not None else None)
        if turn is not None
    ]


def say_probes(probes: "Sequence[Probe]", turns: "Iterable[Turn]") -> None:
    """Probes, one after another, under a rule for each session and part where there are several.

    Args:
        probes: By session, part and number.
        turns: The turns they and their repairs rest on.
    """
    said = {turn.id: f"{turn.speaker}: {turn.text}" for turn in turns}
    groups = [
        (place, list(group)) for place, group in groupby(probes, key=lambda one: (one.session, one.part))
    ]
    for (name, part), group in groups:
        if len(groups) > 1:
            screen().print(Rule(Text(f"session {one_line(name)}, part {part}"), style="dim", align="left"))
        for probe in group:
            screen().print(_told(probe, said))


def _told(probe: "Probe", said: dict[str, str]) -> Table:
    lines = Table.grid(padding=(0, 2))
    lines.add_column(justify="right", width=_LABELS, style="cyan", no_wrap=True)
    lines.add_column(overflow="fold")
    lines.add_row(
        f"probe {probe.n}", _of((probe.verdict, _VERDICT[probe.verdict]), (f"  {probe.kind}", "dim"))
    )
    lines.add_row("asked", Text(one_line(probe.question), style="bold"))
    lines.add_row("gold", Text(one_line(probe.gold)))
    lines.add_row("turn", _source(probe.turn, said))
    if probe.before is not None:
        lines.add_row("before", _answer(probe.before))
    if probe.repair is not None:
        lines.add_row("repair", _repair(probe.repair))
        if probe.repair.turn is not None and probe.repair.turn != probe.turn:
            lines.add_row("from", _source(probe.repair.turn, said))
    if probe.after is not None:
        lines.add_row("after", _answer(probe.after))
    if probe.as_before:
        lines.add_row("", Text("stands as before: what it was answered from was rolled back", style="yellow"))
    lines.add_row("", "")
    return lines


def _source(turn: str, said: dict[str, str]) -> Text:
    return _of((shown(turn), "cyan"), (f"  {one_line(said.get(turn, 'is no longer there'))}", ""))


def _answer(tried: "Tried") -> Text:
    answer = one_line(tried.answer) or "no answer"
    style = "dim" if tried.abstained or not tried.answer else ""
    why = f"  ({one_line(tried.why)})" if tried.why else ""
    return _of((f"{tried.verdict}  ", _VERDICT[tried.verdict]), (answer, style), (why, "dim"))


def _repair(repair: "Repair") -> Text:
    told = _of((repair.decision or "not decided", "bold" if repair.wrote else "yellow"))
    if repair.entry is not None:
        told.append(f" {repair.entry[:SHORT]}", "cyan")
    if repair.draft is not None:
        told.append(f"  {one_line(str(repair.draft.get('text', '')))}")
    told.append(f"  (information {repair.cause})" if repair.cause != "unknown" else "", "dim")
    if repair.rolled_back:
        told.append("  ROLLED BACK", "bold red")
    return told.append(
        f"  {one_line(repair.why)}" if repair.why else "", "red" if repair.rolled_back else "dim"
    )


def _of(*parts: tuple[str, str]) -> Text:
    return Text.assemble(*parts)
