"""`sessions`, its `end` and `verify`, and `session`: how sessions ended, and what they were examined with."""

import functools
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.rule import Rule
from rich.table import Column, Table
from rich.text import Text

from memcycle.cli import options as opt
from memcycle.cli.options import SHORT, open_memory, settings_of
from memcycle.cli.output import (
    counted,
    listing,
    note,
    one_line,
    print_json,
    say,
    say_refused,
    say_usage,
    screen,
    shown,
)
from memcycle.cli.runs import RunOptions, begin_or_resume, exit_if_waiting
from memcycle.core.errors import BadInput

if TYPE_CHECKING:
    from memcycle.core.probe import Attempt, Probe, Repair, SessionReport
    from memcycle.core.turn import Turn
    from memcycle.memory import Memory
    from memcycle.results import Ended, SessionDetail, SessionSummary

_VERDICT = {"passed": "green", "failed": "red", "ungraded": "yellow"}
_NOTHING_TO_ASK = "nothing in it says enough to be asked for"
_WIDE = 100
"""Columns that the list of sessions takes with all words on one line."""
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
        f"probe {probe.n}",
        Text.assemble((probe.verdict, _VERDICT[probe.verdict]), (f"  {probe.kind}", "dim")),
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
    return Text.assemble((shown(turn), "cyan"), (f"  {one_line(said.get(turn, 'is no longer there'))}", ""))


def _answer(tried: "Attempt") -> Text:
    answer = one_line(tried.answer) or "no answer"
    style = "dim" if tried.abstained or not tried.answer else ""
    why = f"  ({one_line(tried.why)})" if tried.why else ""
    return Text.assemble((f"{tried.verdict}  ", _VERDICT[tried.verdict]), (answer, style), (why, "dim"))


def _repair(repair: "Repair") -> Text:
    back = repair.state == "rolled_back"
    told = Text.assemble((repair.decision or "not decided", "bold" if repair.stands or back else "yellow"))
    if repair.entry is not None:
        told.append(f" {repair.entry[:SHORT]}", "cyan")
    if repair.draft is not None:
        told.append(f"  {one_line(str(repair.draft.get('text', '')))}")
    told.append(f"  (information {repair.cause})" if repair.cause != "unknown" else "", "dim")
    if back:
        told.append("  ROLLED BACK", "bold red")
    return told.append(f"  {one_line(repair.why)}" if repair.why else "", "red" if back else "dim")


SessionId = Annotated[
    str, typer.Argument(metavar="ID", help="Its id, as `sessions` lists it.", show_default=False)
]

_STATUS = {"open": "cyan", "verifying": "yellow", "committed": "green", "committed_unverified": "red"}


def sessions(context: typer.Context, *, whose: opt.Whose, as_json: opt.Json = False) -> None:
    """List sessions: how far each is, and what its examination found and repaired.

    Examples:
        memcycle sessions --user ann
        memcycle sessions verify 3 --user ann
    """
    if context.invoked_subcommand is not None:
        context.obj = whose, as_json
        return
    with open_memory(settings_of(whose.home), whose, read_only=True) as memory:
        found = memory.sessions()
    if as_json:
        print_json([one.model_dump(mode="json") for one in found])
        return
    if not found:
        note(f"No sessions of user {memory.user!r} in workspace {memory.workspace!r}.")
        return
    screen().print(_table(found))
    if any(one.status == "committed" and not one.probes for one in found):
        say((f"no probes: {_NOTHING_TO_ASK}", "dim"))
    for one in found:
        if one.reason:
            command = verify_command(one.session, str(memory.user), memory.workspace, memory.settings.home)
            say(
                (f"session {one_line(one.session)}: ", "bold"),
                (one_line(one.reason), "yellow"),
                f"; {command}",
            )


@dataclass(frozen=True)
class Own:
    """As `opt.Whose`, after the name of a subcommand: what is not said was said before it, or nowhere."""

    user: opt.AnyUser = None
    # `sessions` reads the environment: read here too, that would win over a `--home` before `verify`.
    home: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the memory lives.", show_default="that of `sessions`"),
    ] = None
    workspace: Annotated[
        str | None,
        typer.Option("--workspace", "-w", metavar="NAME", help="A second wall inside one user's memory."),
    ] = None


@contextmanager
def _to_end(
    context: typer.Context, own: Own, running: RunOptions, model: opt.Model, index: opt.Index
) -> "Iterator[tuple[Memory, bool]]":
    """The memory in which sessions end, and whether JSON was asked for before the subcommand's name."""
    before, as_json = context.obj
    said = {name: value for name, value in vars(own).items() if value is not None}
    whose = replace(before, **said)
    settings = settings_of(whose.home, index, approval=running.to_approve())
    with open_memory(settings, whose, model=model, checkpoints=running.checkpoints) as memory:
        yield memory, as_json


def verify(
    context: typer.Context,
    *,
    session_id: SessionId,
    own: Own,
    running: RunOptions,
    model: opt.Model,
    index: opt.Index,
    as_json: opt.Json = False,
) -> None:
    """Examine a session again: ask memory about it, repair what it cannot answer, commit the rest of it.

    Exits with 3 where a person's approval is waited for.

    Examples:
        memcycle sessions verify 3 --user ann
        memcycle sessions verify 3 -u ann -m openai:gpt-4o-mini
        memcycle sessions verify 3 -u ann --checkpoints runs.sqlite3 --resume THREAD
    """
    with _to_end(context, own, running, model, index) as (memory, json_before):
        ended = _end(memory, running, session_id, memory.verify_session)
    if as_json or json_before:
        print_json(ended.model_dump(mode="json"))
    else:
        _say_ended(ended, memory)
    exit_if_waiting(ended)


def end(
    context: typer.Context,
    *,
    session_id: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="Its id, as `sessions` lists it.", show_default=False),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="End every session that is open.")] = False,
    own: Own,
    running: RunOptions,
    model: opt.Model,
    index: opt.Index,
    as_json: opt.Json = False,
) -> None:
    """End a session, or all that are open: examine what is new of it, repair that, and commit it.

    Programs end a session after half an hour of silence; this does not wait for it. Exits with 3 where a
    person's approval is waited for. With --all, --json prints a list.

    Examples:
        memcycle sessions end monday --user ann
        memcycle sessions end --all -u ann -m openai:gpt-4o-mini
        memcycle sessions end monday -u ann --checkpoints runs.sqlite3 --resume THREAD
    """
    if (session_id is None) != every:
        raise BadInput("name a session to end, or give --all to end every open one")
    if every and running.resume is not None:
        raise BadInput("--resume goes on with the end of one session: name it in place of --all")
    done: list[Ended] = []
    with _to_end(context, own, running, model, index) as (memory, json_before):
        waiting = memory.bank.open_sessions(memory.scope()) if every else []
        names = [str(one.session) for one in waiting] if session_id is None else [session_id]
        for n, name in enumerate(names, 1):
            if every:
                note(f"Ending session {one_line(name)} ({n} of {len(names)}) ...")
            done.append(_end(memory, running, name, memory.end_session))
            if not (as_json or json_before):
                _say_ended(done[-1], memory)
    if as_json or json_before:
        told = [one.model_dump(mode="json") for one in done]
        print_json(told if every else told[0])
    elif not done:
        note(f"No session of user {memory.user!r} in workspace {memory.workspace!r} is open.")
    for ended in done:
        exit_if_waiting(ended)


def _end(memory: "Memory", running: RunOptions, session_id: str, how: "Callable[..., Ended]") -> "Ended":
    begin: Callable[..., Ended] = functools.partial(how, session_id)
    return begin_or_resume(memory, running, "end_session", begin, session=session_id)


def _say_ended(ended: "Ended", memory: "Memory") -> None:
    _say_session(ended)
    for warning in dict.fromkeys(ended.warnings):
        note(f"Note: {warning}", "yellow")
    say_refused(ended.rejected)
    say_usage(ended.usage)
    if ended.probes:
        words = _command(["session"], ended.session, str(memory.user), memory.workspace, memory.settings.home)
        say((f"Each of its probes: {words}", "dim"))


def session(*, session_id: SessionId, whose: opt.Whose, as_json: opt.Json = False) -> None:
    """Show a session and each probe it was examined with: question, answers, repair, decision.

    Examples:
        memcycle session 3 --user ann
    """
    with open_memory(settings_of(whose.home), whose, read_only=True) as memory:
        found = memory.session(session_id)
        turns = memory.bank.turns(memory.scope(), sources(found.examined))
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    _say_session(found)
    say((_extent(found), "dim"))
    say_usage(found.usage)
    say_probes(found.examined, turns)


def verify_command(session_id: str, user: str, workspace: str, home: Path) -> str:
    """The command that examines a session again, as a shell takes it."""
    return _command(["sessions", "verify"], session_id, user, workspace, home)


def _command(names: list[str], session_id: str, user: str, workspace: str, home: Path) -> str:
    from memcycle.core.settings import DEFAULT_HOME

    # An id that looks like an option is read as an id only after the end of options.
    odd = session_id.startswith("-")
    words = ["memcycle", *names, *([] if odd else [session_id]), "--user", user]
    words += ["--workspace", workspace] if workspace != "default" else []
    words += ["--home", str(home)] if home != DEFAULT_HOME else []
    words += ["--", session_id] if odd else []
    return one_line(shlex.join(words))


def _table(found: "list[SessionSummary]") -> Table:
    waiting = any(one.staged for one in found)
    counts = ("turns", "staged") if waiting else ("turns",)
    # In 80 columns words go to a second line, and no column is lost: only the name gives way.
    narrow = screen().width < _WIDE
    table = listing(
        Column("session", style="cyan", overflow="fold"),
        Column("status", width=10 if narrow else None),
        Column("last turn", style="dim", no_wrap=True),
        *(Column(name, justify="right", no_wrap=True) for name in counts),
        Column("passed", width=(8 if waiting else 11) if narrow else None),
        Column("repairs", justify="right", no_wrap=True),
        Column("rolled back", justify="right", width=6 if narrow else None),
        *(Column(name, justify="right", no_wrap=True) for name in ("merged", "calls")),
    )
    table.padding = (0, 1, 0, 0)
    for one in found:
        table.add_row(
            one_line(one.session),
            Text(one.status.replace("_", " "), style=_STATUS[one.status]),
            f"{one.last:%Y-%m-%d}" if one.last else "",
            str(one.turns),
            *([Text(str(one.staged), style="yellow" if one.staged else "dim")] if waiting else []),
            _passed(one)
            if one.probes or one.status.startswith("committed")
            else Text("not yet", style="dim"),
            str(one.repairs),
            Text(str(one.rolled_back), style="yellow" if one.rolled_back else ""),
            str(one.merged),
            str(sum(count["calls"] for count in one.usage.values())),
        )
    return table


def _passed(report: "SessionReport") -> Text:
    if not report.probes:
        return Text("no probes", style="dim")
    style = "green" if report.passed_after == report.probes else "yellow"
    return Text(f"{report.passed_before} -> {report.passed_after} of {report.probes}", style=style)


def _say_session(found: "SessionDetail | SessionSummary | Ended") -> None:
    """Status, and what the examination found, in words."""
    say(
        (f"session {one_line(found.session)}  ", "bold cyan"),
        (found.status, _STATUS[found.status]),
        (f"  {one_line(found.reason)}" if found.reason else "", "yellow"),
    )
    say(_examined(found))


def _examined(report: "SessionDetail | SessionSummary | Ended") -> Text:
    """What an examination found and did, in words."""
    words = Text("Passed: ").append_text(_passed(report))
    if not report.probes and report.status == "committed":
        words.append(f", {_NOTHING_TO_ASK}")
    if report.ungraded:
        words.append(f", {report.ungraded} ungraded", "yellow")
    words.append(f". Repairs: {report.repairs} kept, {report.rolled_back} rolled back. ")
    return words.append(f"Merged: {report.merged}. Memories made active: {report.committed}.")


def _extent(found: "SessionDetail") -> str:
    """How much of a conversation it is."""
    days = sorted({f"{time:%Y-%m-%d}" for time in (found.first, found.last) if time})
    parts = f", {found.part} parts" if found.part > 1 else ""
    staged = f", {found.staged} entries staged" if found.staged else ""
    return f"{counted(found.turns, 'turn')}{parts}{staged}" + (f", {' to '.join(days)}" if days else "")


COMMANDS = {"session": session, "sessions": opt.Group(sessions, {"end": end, "verify": verify})}
