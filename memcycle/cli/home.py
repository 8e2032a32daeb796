"""`users`, `doctor`, `scrub`, `maintain`, `graph`: who is in a home, it kept in order, the graphs drawn."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Column

from memcycle.cli import options as opt
from memcycle.cli.options import SHORT, open_memory, require_home, settings_of
from memcycle.cli.output import (
    FAILED,
    confirm,
    listing,
    note,
    one_line,
    print_json,
    print_text,
    say,
    screen,
    shown,
)
from memcycle.cli.sessions import verify_command
from memcycle.core.errors import BadInput, LedgerDamaged

if TYPE_CHECKING:
    from memcycle.core.entry import Entry, Granularity, Kind
    from memcycle.core.settings import Settings
    from memcycle.stores.duplicates import United
    from memcycle.stores.maintenance import Maintenance

_LISTED = 20
"""Unverified sessions told in full."""

_FACTS = (
    "home", "integrity", "entries", "items", "embedder", "outbox", "stuck_sessions", "wipes_owed",
    "index", "index_trouble", "operator_note", "rebuilt", "reembedded",
)  # fmt: skip
"""What a person is told of a home, wrong or not."""


def users(*, home: opt.Home = None, as_json: opt.Json = False) -> None:
    """List who has memory in a home, by workspace, and how much.

    Examples:
        memcycle users
        memcycle users --home notes --json
    """
    from memcycle.memory import Memory

    settings = settings_of(home)
    require_home(settings)
    with Memory.open(settings=settings, read_only=True) as memory:
        found = memory.users()
    if as_json:
        print_json([one.model_dump(mode="json") for one in found])
        return
    if not found:
        note(f"Nobody has memory in {settings.home}.")
        return
    counts = ("sessions", "turns", "facts", "episodes")
    right = (Column(name, justify="right", no_wrap=True) for name in counts)
    named = (Column("user", style="cyan", overflow="fold"), Column("workspace", overflow="fold"))
    table = listing(*named, *right, Column("last turn", style="dim", no_wrap=True))
    for one in found:
        numbers = (str(getattr(one, name)) for name in counts)
        last = f"{one.last:%Y-%m-%d}" if one.last else ""
        table.add_row(one_line(one.user), one_line(one.workspace), *numbers, last)
    screen().print(table)


def doctor(
    *,
    home: opt.Home = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what is wrong, and change nothing.")
    ] = False,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Make the index anew from the ledger.")] = False,
    reembed: Annotated[
        bool,
        typer.Option("--reembed", help="Make all vectors anew with --embedder; ids, texts and dates stay."),
    ] = False,
    index: opt.Index,
    as_json: opt.Json = False,
) -> None:
    """Check a home and mend what needs no person. Exit code 1 when something is left.

    Examples:
        memcycle doctor
        memcycle doctor --dry-run --json
        memcycle doctor --rebuild
        memcycle doctor --reembed --embedder minilm
    """
    if dry_run and (rebuild or reembed):
        raise BadInput("--dry-run changes nothing: leave out --rebuild and --reembed")
    settings = settings_of(home, index)
    require_home(settings)
    report = _looked_after(settings, dry_run=dry_run, rebuild=rebuild, reembed=reembed)
    if as_json:
        print_json(report)
    else:
        _say_report(dict(report), settings.home)
    if report["left"]:
        raise typer.Exit(FAILED)


def scrub(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="What `chroma run --path` was given.", show_default=False)
    ],
    *,
    yes: opt.Yes = False,
    as_json: opt.Json = False,
) -> None:
    """Free the files of a stopped Chroma server of deleted text.

    Run `memcycle doctor --rebuild` before you stop it: what held forgotten text is made anew then.

    Examples:
        memcycle scrub chroma-data
        memcycle scrub chroma-data --yes --json
    """
    from memcycle.stores.chroma.files import free_server

    confirm(f"Rewrite the files in {folder}? The Chroma server that has them must be stopped.", yes=yes)
    left = free_server(folder)
    if as_json:
        print_json({"folder": str(folder), "left": left})
    elif left is None:
        say(("Freed ", "green"), shown(f"{folder} of deleted text."))
    else:
        say(("left: ", "red"), shown(left))
    if left is not None:
        raise typer.Exit(FAILED)


def _looked_after(settings: "Settings", *, dry_run: bool, rebuild: bool, reembed: bool) -> dict[str, Any]:
    """What the home holds, what was done, and what was found, mended and left."""
    from memcycle.stores.bank import LEDGER_FILE, Bank
    from memcycle.stores.doctor import damaged, found
    from memcycle.stores.ledger.connection import Ledger

    done: dict[str, Any] = {}
    alone = not Ledger.in_use(settings.home / LEDGER_FILE)
    try:
        with Bank.open(settings, repair=True) as bank:
            if reembed:
                done["reembedded"] = bank.reembed()
            if rebuild:
                done["rebuilt"] = bank.rebuild()
            if dry_run:
                report = bank.check(alone=alone)
                before, mended, left = found(report), [], found(report)
            else:
                result = bank.mend(alone=alone)
                report, before, mended, left = result.report, result.found, result.mended, result.left
    except LedgerDamaged as error:
        report, mended = {"home": str(settings.home)}, []
        before = left = [damaged(str(error))]
    return {
        **report,
        **done,
        "found": [{"name": one.name, "count": one.count, "what": one.words} for one in before],
        "mended": [one.name for one in mended],
        "left": [
            {"name": one.name, "count": one.count, "what": one.words, "to_do": one.remedy} for one in left
        ],
    }


def _say_report(report: dict[str, Any], home: Path) -> None:
    findings, mended, left = (report.pop(name) for name in ("found", "mended", "left"))
    unverified = report.pop("unverified_sessions", [])
    shown_facts = {key: value for key, value in report.items() if key in _FACTS}
    for key, value in {**shown_facts, "unverified": len(unverified)}.items():
        if value is not None:
            say((f"{key.replace('_', ' '):<18}", "bold"), shown(_plain(value)))
    _say_unverified(unverified, home)
    for one in findings:
        if one["name"] in mended:
            say(("mended: ", "green"), f"{one['count']} {one['what']}")
    for one in left:
        say(("left: ", "red"), shown(f"{one['count']} {one['what']}; {one['to_do']}"))
    if not findings:
        say(("Nothing is wrong.", "green"))


def _say_unverified(found: Sequence[Mapping[str, str]], home: Path) -> None:
    """The sessions that were committed without an examination, each with the command that makes up for it."""
    for one in found[:_LISTED]:
        command = verify_command(one["session"], one["user"], one["workspace"], home)
        say(
            ("unverified: ", "yellow"),
            f"session {one_line(one['session'])} of user {one_line(one['user'])}, {one_line(one['reason'])}; "
            f"to examine it: {command}",
        )
    if len(found) > _LISTED:
        say((f"  ... and {len(found) - _LISTED} more (see --json)", "dim"))


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(inner)}" for key, inner in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value)) or "none"
    return str(value)


def graph(
    *,
    name: Annotated[
        Literal["memory", "remember", "recall", "session"],
        typer.Argument(metavar="NAME", help="memory, remember, recall or session.", show_default=False),
    ],
    as_json: opt.Json = False,
    home: opt.Home = None,
) -> None:
    """Draw a graph as Mermaid, nested graphs inside it.

    Examples:
        memcycle graph memory
        memcycle graph recall > recall.mmd
    """
    import memcycle

    # A graph opens its home when it runs: drawing it opens nothing.
    graph = getattr(memcycle, f"build_{name}")(settings=settings_of(home))
    drawing = graph.get_graph(xray=True).draw_mermaid()
    if as_json:
        print_json({"name": name, "mermaid": drawing})
    else:
        print_text(drawing)


_LIMIT = "Limit"


def maintain(
    *,
    whose: opt.Named,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")
    ] = False,
    max_age_days: Annotated[
        float | None,
        typer.Option(
            metavar="DAYS", help="Let expire what was last said longer ago.", rich_help_panel=_LIMIT
        ),
    ] = None,
    max_entries: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Let the least important expire beyond N entries.", rich_help_panel=_LIMIT
        ),
    ] = None,
    kind: Annotated["Kind | None", typer.Option(help="Limit only this kind.", rich_help_panel=_LIMIT)] = None,
    granularity: Annotated[
        "Granularity | None",
        typer.Option("--granularity", "-g", help="Limit only these.", rich_help_panel=_LIMIT),
    ] = None,
    index: opt.Index,
    as_json: opt.Json = False,
) -> None:
    """Unite what is said twice and let expire what is past a limit. `undo` takes each of it back.

    Examples:
        memcycle maintain --user ann --dry-run
        memcycle maintain --user ann --granularity raw --max-age-days 365
    """
    rule = {
        "max_age_days": max_age_days,
        "max_entries": max_entries,
        "kind": kind,
        "granularity": granularity,
    }
    limits = [] if all(value is None for value in rule.values()) else [rule]
    if limits and max_age_days is None and max_entries is None:
        raise BadInput("--kind and --granularity say what is limited: add --max-age-days or --max-entries")
    settings = settings_of(whose.home, index, retention=limits)
    with open_memory(settings, whose, read_only=dry_run) as memory:
        done = memory.maintain(dry_run=dry_run)
    if as_json:
        told = {"user": whose.user, "workspace": whose.workspace, "dry_run": dry_run}
        print_json({**told, **_maintenance_json(done)})
    else:
        _show(done, dry_run=dry_run)


def _maintenance_json(done: "Maintenance") -> dict[str, Any]:
    def entry(one: "Entry") -> dict[str, Any]:
        return {"id": one.id, "granularity": one.granularity, "kind": one.kind, "text": one.text}

    def pair(one: "United") -> dict[str, Any]:
        return {"kept": entry(one.keep), "dropped": entry(one.drop)}

    return {
        "united": [pair(one) for one in done.united],
        "renewed": [pair(one) for one in done.renewed],
        "expired": [{**entry(one.entry), "why": one.why} for one in done.expired],
        "reinforced": done.reinforced,
    }


def _show(done: "Maintenance", *, dry_run: bool) -> None:
    for verb, pairs in (("united", done.united), ("renewed", done.renewed)):
        for pair in pairs:
            say(*_line(verb, pair.drop))
            say(("         into  ", "dim"), (pair.keep.id[:SHORT], "cyan"), f"  {one_line(pair.keep.text)}")
    for one in done.expired:
        say(*_line("expired", one.entry), (f"  ({one.why})", "dim"))
    told = (
        f"{len(done.united)} united, {len(done.renewed)} renewed, {len(done.expired)} expired,"
        f" {done.reinforced} reinforced"
    )
    say(("Would be: " if dry_run else "Done: ", "bold"), told)
    if not dry_run and (done.united or done.renewed or done.expired):
        note("`memcycle undo ID` takes one back, and it is left alone from then on.")


def _line(verb: str, entry: "Entry") -> list[str | tuple[str, str]]:
    return [(f"{verb:<9}", "bold"), (entry.id[:SHORT], "cyan"), f"  {one_line(entry.text)}"]


COMMANDS = {"users": users, "doctor": doctor, "scrub": scrub, "maintain": maintain, "graph": graph}
