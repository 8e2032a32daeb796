"""`export` and `import`: all of a user's memory as JSON Lines, one entry a line, with all fields."""

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from memcycle.cli.ids import only_user
from memcycle.cli.options import (
    AnyUser,
    ChromaUrl,
    Embedder,
    Home,
    Json,
    Redact,
    Workspace,
    open_memory,
    settings_of,
)
from memcycle.cli.output import note, print_json, say
from memcycle.core.errors import BadInput
from memcycle.core.jsonl import read_file, read_records


def export(
    *,
    user: AnyUser = None,
    home: Home = None,
    workspace: Workspace = "default",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to a file, whole or not at all.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write every entry of a user with all fields, one JSON object a line (one list with --json)."""
    with open_memory(settings_of(home), read_only=True) as memory:
        owner = only_user(memory) if user is None else user
        rows = memory.export(user=owner, workspace=workspace)
    if output is not None:
        _write(output, rows)
        note(f"{len(rows)} entries of user {owner!r} written to {output}.")
        if as_json:
            print_json({"entries": len(rows), "file": str(output)})
    elif as_json:
        print_json(rows)
    else:
        for row in rows:
            typer.echo(json.dumps(row, ensure_ascii=False))
    if not rows:
        note(f"User {owner!r} has no memories in workspace {workspace!r}.")


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    try:
        # A new file of its owner's alone: nobody can lay a link in its place that is written through.
        handle, part = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(part).replace(path)
        except OSError:
            Path(part).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from None


def import_(
    *,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="What `export` wrote.", show_default=False)],
    user: Annotated[
        str | None,
        typer.Option("--user", "-u", metavar="NAME", help="Whose memory; by default as in the file."),
    ] = None,
    home: Home = None,
    workspace: Annotated[
        str | None, typer.Option("--workspace", "-w", metavar="NAME", help="By default as in the file.")
    ] = None,
    embedder: Embedder = None,
    chroma_url: ChromaUrl = None,
    redact: Redact = None,
    as_json: Json = False,
) -> None:
    """Store exported entries; those already stored stay as they are. All of a file or nothing of it."""
    rows = _rows(read_file(path))
    if not rows:
        raise BadInput(f"{path} holds no entries")
    owner = user or _same(rows, "user", "--user")
    where = workspace or _same(rows, "workspace", "--workspace")
    settings = settings_of(home, embedder=embedder, chroma_url=chroma_url, redact=redact)
    with open_memory(settings, user=owner, workspace=where, new=True) as memory:
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
