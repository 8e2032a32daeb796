"""`edit`, `undo` and `forget`: a person's word over memory."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from memcycle.cli.ids import SHORT, the_entry
from memcycle.cli.inspect import EntryId
from memcycle.cli.options import (
    AnyUser,
    Checkpoints,
    ChromaUrl,
    Embedder,
    Home,
    Json,
    Redact,
    Workspace,
    Yes,
    open_memory,
    settings_of,
)
from memcycle.cli.output import confirm, note, print_json, say, shown
from memcycle.core.errors import BadInput

if TYPE_CHECKING:
    from memcycle.core.entry import Entry
    from memcycle.core.probe import Probe
    from memcycle.memory import Memory

_PROBES = 5
"""Probes told in full."""


def edit(
    *,
    entry_id: EntryId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is true instead.", show_default=False)],
    user: AnyUser = None,
    home: Home = None,
    workspace: Workspace = "default",
    why: Annotated[str, typer.Option("--why", help="A reason, kept in its history.")] = "",
    embedder: Embedder = None,
    chroma_url: ChromaUrl = None,
    redact: Redact = None,
    as_json: Json = False,
) -> None:
    """Correct a memory. The old text stays in its history, `undo` brings it back."""
    with open_memory(settings_of(home, embedder=embedder, chroma_url=chroma_url, redact=redact)) as memory:
        old = the_entry(memory, entry_id, user, workspace)
        new = memory.edit(old.id, text, user=old.scope.user, workspace=workspace, why=why)
    _say_changed("Edited", new, as_json=as_json)


def undo(
    *,
    entry_id: EntryId,
    user: AnyUser = None,
    home: Home = None,
    workspace: Workspace = "default",
    embedder: Embedder = None,
    chroma_url: ChromaUrl = None,
    as_json: Json = False,
) -> None:
    """Take back the last change of a memory."""
    with open_memory(settings_of(home, embedder=embedder, chroma_url=chroma_url)) as memory:
        entry = the_entry(memory, entry_id, user, workspace)
        restored = memory.undo(entry.id, user=entry.scope.user, workspace=workspace)
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
    user: AnyUser = None,
    home: Home = None,
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
    yes: Yes = False,
    checkpoints: Checkpoints = None,
    embedder: Embedder = None,
    chroma_url: ChromaUrl = None,
    as_json: Json = False,
) -> None:
    """Erase a memory with what else holds its words, or all of a user's. This cannot be undone.

    With --checkpoints the runs that are kept there of a user who is forgotten go too.
    """
    if entry_id is None and user is None:
        raise BadInput("forget what? name a memory by its id, or a user with --user to erase all of it")
    settings = settings_of(home, embedder=embedder, chroma_url=chroma_url)
    with open_memory(settings, checkpoints=checkpoints) as memory:
        if entry_id is None:
            gone: dict[str, object] = _forget_user(memory, str(user), workspace, yes=yes)
        else:
            gone = _forget_one(memory, entry_id, user, workspace or "default", only=only, yes=yes)
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


def _forget_one(
    memory: "Memory", prefix: str, user: str | None, workspace: str, *, only: bool, yes: bool
) -> dict[str, object]:
    entry = the_entry(memory, prefix, user, workspace)
    owner = {"user": entry.scope.user, "workspace": workspace}
    others = [] if only else memory.holders(entry.id, **owner)
    note(f"{entry.id[:SHORT]}  {entry.text}")
    if others:
        note("Its words are also held by, and go with it:")
    for other in others:
        note(f"  {other.id[:SHORT]}  {other.granularity}  {other.text}")
    probes = memory.probes_over([entry, *others], **owner)
    _note_probes(probes)
    also = f" and {len(probes)} probes" if probes else ""
    confirm(f"Erase {1 + len(others)} memories{also} for good?", yes=yes)
    ids = memory.forget(entry.id, only=only, **owner)
    return {"user": entry.scope.user, "forgotten": len(ids), "ids": ids, "probes": len(probes)}


def _note_probes(probes: "Sequence[Probe]") -> None:
    """The questions of examinations that were answered from what is erased."""
    if probes:
        note("Probes of sessions that may hold its words go with it:")
    for probe in probes[:_PROBES]:
        note(f"  session {probe.session}, probe {probe.n}  {probe.question}")
    if len(probes) > _PROBES:
        note(f"  ... and {len(probes) - _PROBES} more")
