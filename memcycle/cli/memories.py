"""`memories`, `history`, `edit`, `undo`, `forget`, `export`, `import`: what is stored, seen and changed."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.table import Column, Table
from rich.text import Text

from memcycle.cli import options as opt
from memcycle.cli.options import SHORT, find_entry, open_memory, settings_of
from memcycle.cli.output import confirm, listing, note, print_json, say, screen, shown, spoken_by, turn_range
from memcycle.core.errors import BadInput

if TYPE_CHECKING:
    from memcycle.core.edit import Event
    from memcycle.core.entry import Entry, Granularity, Kind
    from memcycle.core.probe import Probe
    from memcycle.memory import Memory

_LIMIT = 50

EntryId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Its id, or the first letters of it (6 or more) as `memories` shows.",
        show_default=False,
    ),
]


def memories(
    *,
    whose: opt.Named,
    granularity: Annotated[
        "Granularity | None", typer.Option("--granularity", "-g", help="Only these.")
    ] = None,
    kind: Annotated["Kind | None", typer.Option(help="Only this kind.")] = None,
    search: Annotated[
        str | None,
        typer.Option("--search", "-s", metavar="WORDS", help="Only those that hold all these words."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="N", min=1, show_default="50, all with --json")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also what was superseded or forgotten by request.")
    ] = False,
    as_json: opt.Json = False,
) -> None:
    """List what is stored, in the order it was said.

    Examples:
        memcycle memories --user ann
        memcycle memories --user ann --granularity fact --search "bowl"
    """
    from memcycle.core.entry import Status

    statuses: tuple[Status, ...] = get_args(Status) if every else ("active", "staged")
    with open_memory(settings_of(whose.home), whose, read_only=True) as memory:
        found = memory.memories(granularity=granularity, kind=kind, search=search, statuses=statuses)
    listed = found[: limit or (None if as_json else _LIMIT)]
    if as_json:
        print_json([entry.model_dump(mode="json") for entry in listed])
        return
    if not found:
        note(f"No such memories of user {whose.user!r} in workspace {whose.workspace!r}.")
        return
    screen().print(_entry_table(listed))
    if len(found) > len(listed):
        say((f"  {len(listed)} of {len(found)}; see more with --limit, or narrow with --search", "dim"))


def _entry_table(entries: "list[Entry]") -> Table:
    styles = {"id": "cyan", "granularity": "", "kind": "dim", "status": "", "turns": "cyan", "when": "dim"}
    fixed = (Column(name, style=style, no_wrap=True) for name, style in styles.items())
    table = listing(*fixed, Column("text", overflow="fold"))
    for entry in entries:
        said = entry.event_time or entry.observed_at
        speaker = spoken_by(entry.speaker, entry.granularity, entry.text)
        table.add_row(
            entry.id[:SHORT],
            entry.granularity,
            entry.kind,
            Text(entry.status, style="" if entry.status == "active" else "yellow"),
            shown(turn_range(list(entry.turns))),
            f"{said:%Y-%m-%d}" if said else "",
            Text(shown(speaker + entry.text)),
        )
    return table


def history(*, entry_id: EntryId, whose: opt.Whose, as_json: opt.Json = False) -> None:
    """Show every change of a memory: when, by whom, before, after, why.

    Examples:
        memcycle history 3fa85f64
    """
    with open_memory(settings_of(whose.home), whose, read_only=True) as memory:
        events = memory.history(find_entry(memory, entry_id).id)
    if as_json:
        print_json([event.model_dump(mode="json") for event in events])
        return
    for event in events:
        say(*_event_line(event))


def _event_line(event: "Event") -> list[str | tuple[str, str]]:
    before, after = ((state or {}).get("text") for state in (event.before, event.after))
    parts: list[str | tuple[str, str]] = [
        (f"{event.at:%Y-%m-%d %H:%M:%S}  ", "dim"),
        (f"{event.entry_id[:SHORT]}  ", "cyan"),
        (f"{event.action:<9}  ", "bold"),
        f"{event.actor}  ",
    ]
    if before and before != after:
        parts.append((shown(before), "red"))
        parts.append(" -> " if after else "")
    if after:
        parts.append((shown(after), "green"))
    if event.why:
        parts.append((f"  ({shown(event.why)})", "dim"))
    return parts


_PROBES = 5
"""Probes told in full."""


def edit(
    *,
    entry_id: EntryId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is true instead.", show_default=False)],
    whose: opt.Whose,
    why: Annotated[str, typer.Option(help="A reason, kept in its history.")] = "",
    index: opt.Index,
    redact: opt.Redact = None,
    as_json: opt.Json = False,
) -> None:
    """Correct a memory. The old text stays in its history, `undo` brings it back.

    Examples:
        memcycle edit 3fa85f64 "Ann lives in Graz."
    """
    with open_memory(settings_of(whose.home, index, redact=redact), whose) as memory:
        new = memory.edit(find_entry(memory, entry_id).id, text, why=why)
    _say_changed("Edited", new, as_json=as_json)


def undo(
    *,
    entry_id: EntryId,
    whose: opt.Whose,
    index: opt.Index,
    as_json: opt.Json = False,
) -> None:
    """Take back the last change of a memory.

    Examples:
        memcycle undo 3fa85f64
    """
    with open_memory(settings_of(whose.home, index), whose) as memory:
        restored = memory.undo(find_entry(memory, entry_id).id)
    _say_changed("Restored", restored, as_json=as_json)


def _say_changed(verb: str, entry: "Entry", *, as_json: bool) -> None:
    if as_json:
        print_json(entry.model_dump(mode="json"))
    else:
        say((f"{verb} ", "bold"), (entry.id[:SHORT], "cyan"), f"  {shown(entry.text)}")


def forget(
    *,
    entry_id: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Which memory; without it, all of a user's.", show_default=False),
    ] = None,
    user: opt.AnyUser = None,
    home: opt.Home = None,
    workspace: Annotated[
        str | None,
        typer.Option(
            "--workspace",
            "-w",
            metavar="NAME",
            help="Whose second wall; without it, `default` or, for all, every one.",
        ),
    ] = None,
    only: Annotated[
        bool, typer.Option("--only", help="Leave its turns, and what else holds its words, in place.")
    ] = False,
    yes: opt.Yes = False,
    checkpoints: opt.Checkpoints = None,
    index: opt.Index,
    as_json: opt.Json = False,
) -> None:
    """Erase a memory with what else holds its words, or all of a user's. This cannot be undone.

    With --checkpoints the runs that are kept there of a user who is forgotten go too.

    Examples:
        memcycle forget 3fa85f64
        memcycle forget 3fa85f64 --only
        memcycle forget --user ann --yes
    """
    if entry_id is None and user is None:
        raise BadInput("forget what? name a memory by its id, or a user with --user to erase all of it")
    whose = opt.Whose(user, home, workspace or "default")
    with open_memory(settings_of(home, index), whose, checkpoints=checkpoints) as memory:
        if entry_id is None:
            gone: dict[str, object] = _forget_user(memory, str(user), workspace, yes=yes)
        else:
            gone = _forget_one(memory, entry_id, only=only, yes=yes)
        left = memory.bank.operator_note
    if left:
        note(left, "yellow")
    if as_json:
        print_json(gone)
    else:
        probes = f" and {gone['probes']} probes" if gone.get("probes") else ""
        say(("Erased ", "bold"), f"{gone['forgotten']} memories{probes}.")


def _forget_user(memory: "Memory", user: str, workspace: str | None, *, yes: bool) -> dict[str, object]:
    where = f"in workspace {workspace!r}" if workspace else "in every workspace"
    confirm(f"Erase all memories of user {user!r} {where}, for good?", yes=yes)
    return {"user": user, "forgotten": memory.forget_user(user, workspace=workspace)}


def _forget_one(memory: "Memory", prefix: str, *, only: bool, yes: bool) -> dict[str, object]:
    entry = find_entry(memory, prefix)
    others = [] if only else memory.holders(entry.id)
    note(f"{entry.id[:SHORT]}  {entry.text}")
    if others:
        note("Its words are also held by, and go with it:")
    for other in others:
        note(f"  {other.id[:SHORT]}  {other.granularity}  {other.text}")
    probes = memory.probes_over([entry, *others])
    _note_probes(probes)
    also = f" and {len(probes)} probes" if probes else ""
    confirm(f"Erase {1 + len(others)} memories{also} for good?", yes=yes)
    ids = memory.forget(entry.id, only=only)
    return {"user": entry.scope.user, "forgotten": len(ids), "ids": ids, "probes": len(probes)}


def _note_probes(probes: "Sequence[Probe]") -> None:
    """The questions of examinations that were answered from what is erased."""
    if probes:
        note("Probes of sessions that may hold its words go with it:")
    for probe in probes[:_PROBES]:
        note(f"  session {probe.session}, probe {probe.n}  {probe.question}")
    if len(probes) > _PROBES:
        note(f"  ... and {len(probes) - _PROBES} more")


def export(
    *,
    whose: opt.Whose,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to a file, whole or not at all.", show_default=False
        ),
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Write every entry of a user with all fields and its history, one JSON object a line (--json: one list).

    Examples:
        memcycle export --user ann > ann.jsonl
    """
    with open_memory(settings_of(whose.home), whose, read_only=True) as memory:
        rows = memory.export()
    if output is not None:
        from memcycle.core.jsonl import write_file

        write_file(output, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        note(f"{len(rows)} entries of user {memory.user!r} written to {output}.")
        if as_json:
            print_json({"entries": len(rows), "file": str(output)})
    elif as_json:
        print_json(rows)
    else:
        for row in rows:
            print_json(row, indent=None)
    if not rows:
        note(f"User {memory.user!r} has no memories in workspace {memory.workspace!r}.")


def import_(
    *,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="What `export` wrote.", show_default=False)],
    user: Annotated[
        str | None,
        typer.Option("--user", "-u", metavar="NAME", help="Whose memory; by default as in the file."),
    ] = None,
    home: opt.Home = None,
    workspace: Annotated[
        str | None, typer.Option("--workspace", "-w", metavar="NAME", help="By default as in the file.")
    ] = None,
    index: opt.Index,
    redact: opt.Redact = None,
    as_json: opt.Json = False,
) -> None:
    """Store exported entries; those already stored stay as they are. All of a file or nothing of it.

    Examples:
        memcycle import ann.jsonl
        memcycle import ann.jsonl --user ben
    """
    from memcycle.core.jsonl import read_file

    rows = _rows(read_file(path))
    if not rows:
        raise BadInput(f"{path} holds no entries")
    owner = user or _same(rows, "user", "--user")
    where = workspace or _same(rows, "workspace", "--workspace")
    whose = opt.Whose(owner, home, where)
    with open_memory(settings_of(home, index, redact=redact), whose, new=True) as memory:
        count = memory.import_(rows)
    if as_json:
        print_json({"imported": count, "entries": len(rows), "user": owner, "workspace": where})
    else:
        say(("Imported ", "bold"), f"{count} of {len(rows)} entries for user {owner!r}.")


def _rows(text: str) -> list[dict[str, Any]]:
    """Entries from lines, or from one JSON list as `export --json` gives it."""
    if text.lstrip().startswith("["):
        try:
            rows = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"the file is not JSON: {error}") from None
        wrong = next((n for n, row in enumerate(rows, start=1) if not isinstance(row, dict)), None)
        if wrong is not None:
            raise BadInput(f"record {wrong} is {type(rows[wrong - 1]).__name__}, not an entry")
        return list(rows)
    from memcycle.core.jsonl import read_records

    return [record for _, record in read_records(text)]


def _same(rows: Sequence[dict[str, Any]], key: str, option: str) -> str:
    """What all rows name as `scope.key`."""
    for number, row in enumerate(rows, start=1):
        scope = row.get("scope")
        if not isinstance(scope, dict) or not isinstance(scope.get(key), str):
            raise BadInput(f"record {number}: field 'scope.{key}' is missing; an exported entry has one")
    named = sorted({row["scope"][key] for row in rows})
    if len(named) > 1:
        raise BadInput(
            f"the file holds entries of several {key}s ({', '.join(named[:5])}): say which with {option}"
        )
    return str(named[0])


COMMANDS = {
    "memories": memories,
    "history": history,
    "edit": edit,
    "undo": undo,
    "forget": forget,
    "export": export,
    "import": import_,
}
