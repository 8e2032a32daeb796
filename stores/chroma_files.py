"""The files under a Chroma directory, freed of deleted text while no process has them open."""

import shutil
import sqlite3
import uuid
from contextlib import closing, suppress
from pathlib import Path

from memcycle.core.errors import BadInput, StoreError
from memcycle.stores import full_text
from memcycle.stores.chroma_slack import VECTORS, Slack

DATABASE = "chroma.sqlite3"
SQLITE_PATIENCE = 30.0


def free(path: Path, slack: Slack) -> None:
    """Rewrites Chroma's database without its free pages and removes dropped collections' files.

    A plain delete leaves documents in Chroma's queue for as long as their collection stands, so drop the
    collection first. (`chroma vacuum` rewrites the database only, and leaves trigrams of what was deleted.)

    Raises:
        StoreError: it cannot be done now.
    """
    try:
        with closing(
            sqlite3.connect(path / DATABASE, timeout=SQLITE_PATIENCE, isolation_level=None)
        ) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            # A deleted row's trigrams stay in the full-text index until its segments are merged.
            full_text.merge(connection, "embedding_fulltext_search")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            standing = {str(row[0]) for row in connection.execute("SELECT id FROM segments")}
        for folder in path.iterdir():
            if folder.name not in standing and _is_collections(folder):
                shutil.rmtree(folder)
        slack.blank()
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"could not scrub {path} ({error}); deleted text may remain in its free space: see that its disk"
            " has room and that nothing else uses it, and try again"
        ) from error


def free_server(path: Path) -> str | None:
    """Frees the directory of a `chroma run` server that was stopped.

    Returns:
        Which files could not be cleaned, and what to do; else None.

    Raises:
        BadInput: no Chroma database is there, or a process has it open. Names its pid.
        StoreError: it cannot be done now.
    """
    if not (path / DATABASE).is_file():
        raise BadInput(f"{path} holds no {DATABASE}: name the folder that `chroma run --path` was given")
    pid = _opened_by(path / DATABASE)
    if pid is not None:
        raise BadInput(f"process {pid} has {path / DATABASE} open: stop the server first")
    slack = Slack(path)
    free(path, slack)
    return slack.note


def _is_collections(folder: Path) -> bool:
    """Whether Chroma made a folder: a server may keep its data among what else a person has."""
    if (folder / VECTORS).is_file():
        return True
    with suppress(ValueError):
        return folder.is_dir() and str(uuid.UUID(folder.name)) == folder.name
    return False


def _opened_by(file: Path) -> int | None:
    """A process that has a file open; None without any, or where the system does not tell."""
    wanted = file.resolve()
    for opened in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if opened.readlink() == wanted:
                return int(opened.parts[2])
    return None
