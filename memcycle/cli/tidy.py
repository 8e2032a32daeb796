"""`maintain`: keeps a user's memory in order, or says what that would do."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memcycle.cli.ids import SHORT
from memcycle.cli.options import ChromaUrl, Embedder, Home, Json, User, Workspace, open_memory, settings_of
from memcycle.cli.output import note, one_line, print_json, say
from memcycle.core.entry import Granularity, Kind
from memcycle.core.errors import BadInput

if TYPE_CHECKING:
    from memcycle.core.entry import Entry
    from memcycle.stores.duplicates import United
    from memcycle.stores.tidying import Maintenance

_LIMIT = "Limit"


def maintain(
    *,
    user: User,
    home: Home = None,
    workspace: Workspace = "default",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")
    ] = False,
    max_age_days: Annotated[
        float | None,
        typer.Option(
            "--max-age-days",
            metavar="DAYS",
            help="Let expire what was last said longer ago.",
            rich_help_panel=_LIMIT,
        ),
    ] = None,
    max_entries: Annotated[
        int | None,
        typer.Option(
            "--max-entries",
            metavar="N",
            help="Let the least important expire beyond N entries.",
            rich_help_panel=_LIMIT,
        ),
    ] = None,
    kind: Annotated[
        Kind | None, typer.Option("--kind", help="Limit only this kind.", rich_help_panel=_LIMIT)
    ] = None,
    granularity: Annotated[
        Granularity | None,
        typer.Option("--granularity", "-g", help="Limit only these.", rich_help_panel=_LIMIT),
    ] = None,
    embedder: Embedder = None,
    chroma_url: ChromaUrl = None,
    as_json: Json = False,
) -> None:
    """Unite what is said twice and let expire what is past a limit. `undo` takes each of it back."""
    rule = {
        "max_age_days": max_age_days,
        "max_entries": max_entries,
        "kind": kind,
        "granularity": granularity,
    }
    limits = [] if all(value is None for value in rule.values()) else [rule]
    if limits and max_age_days is None and max_entries is None:
        raise BadInput("--kind and --granularity say what is limited: add --max-age-days or --max-entries")
    settings = settings_of(home, embedder=embedder, chroma_url=chroma_url, retention=limits)
    with open_memory(settings, user=user, workspace=workspace, read_only=dry_run) as memory:
        done = memory.maintain(dry_run=dry_run)
    if as_json:
        print_json({"user": user, "workspace": workspace, "dry_run": dry_run, **_plain(done)})
    else:
        _show(done, dry_run=dry_run)


def _plain(done: "Maintenance") -> dict[str, Any]:
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
