"""`memories` and `history`: what is stored, and how it came to be so. They work beside a writing process."""

from typing import TYPE_CHECKING, Annotated, get_args

import typer
from rich.table import Table
from rich.text import Text

from memcycle.cli.answers import turn_range
from memcycle.cli.ids import SHORT, the_entry
from memcycle.cli.options import AnyUser, Home, Json, User, Workspace, open_memory, settings_of
from memcycle.cli.output import note, print_json, say, screen, shown
from memcycle.core.entry import Granularity, Kind, Status

if TYPE_CHECKING:
    from memcycle.core.edit import Event
    from memcycle.core.entry import Entry

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
    user: User,
    home: Home = None,
    workspace: Workspace = "default",
    granularity: Annotated[
        Granularity | None, typer.Option("--granularity", "-g", help="Only these.")
    ] = None,
    kind: Annotated[Kind | None, typer.Option("--kind", help="Only this kind.")] = None,
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
    as_json: Json = False,
) -> None:
    """List what is stored, in the order it was said."""
    statuses: tuple[Status, ...] = get_args(Status) if every else ("active", "staged")
    with open_memory(settings_of(home), user=user, workspace=workspace, read_only=True) as memory:
        found = memory.memories(
            granularity=granularity,
            kind=kind,
            search=search,
            statuses=statuses,
        )
    listed = found[: limit or (None if as_json else _LIMIT)]
    if as_json:
        print_json([entry.model_dump(mode="json") for entry in listed])
        return
    if not found:
        note(f"No such memories of user {user!r} in workspace {workspace!r}.")
        return
    screen().print(_entry_table(listed))
    if len(found) > len(listed):
        say((f"  {len(listed)} of {len(found)}; see more with --limit, or narrow with --search", "dim"))


def _entry_table(entries: "list[Entry]") -> Table:
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name, style in (
        ("id", "cyan"),
        ("granularity", ""),
        ("kind", "dim"),
        ("status", ""),
        ("turns", "cyan"),
    ):
        table.add_column(name, style=style, no_wrap=True)
    table.add_column("when", style="dim", no_wrap=True)
    table.add_column("text", overflow="fold")
    for entry in entries:
        said = entry.event_time or entry.observed_at
        speaker = f"{entry.speaker}: " if entry.speaker and entry.granularity == "raw" else ""
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


def history(
    *,
    entry_id: EntryId,
    user: AnyUser = None,
    home: Home = None,
    workspace: Workspace = "default",
    as_json: Json = False,
) -> None:
    """Show every change of a memory: when, by whom, before, after, why."""
    with open_memory(settings_of(home), read_only=True) as memory:
        entry = the_entry(memory, entry_id, user, workspace)
        events = memory.history(entry.id, user=entry.scope.user, workspace=entry.scope.workspace)
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
