"""The files under a Chroma directory, freed of deleted text while no process has them open.

hnswlib allocates room for at least 100 vectors, does not clear it, and writes all of it when it makes a
collection's files: whatever the process freed before, conversations too, then stands after the vectors in
`data_level0.bin` and after their lengths in `length.bin`. A vector's own room is cleared before use, and
later writes only add vectors, so that a blanked file stays blank until Chroma makes it anew. It does that
with every collection that was never synced (fewer than 1,000 writes) at its first use in a process.

The layout is that of hnswlib in chromadb 1.x, persistence version 1: `header.bin` of 100 bytes begins with
the version and, as 64-bit numbers, offset of level 0, capacity, vectors in use, bytes a vector.
"""

import os
import shutil
import sqlite3
import struct
import uuid
from contextlib import closing, suppress
from pathlib import Path

from memcycle.core.errors import BadInput, StoreError
from memcycle.stores.ledger import full_text

VERSION = 1
HEADER_BYTES = 100
LENGTH_BYTES = 4
CHUNK = 1 << 20
VECTORS, LENGTHS, HEADER = "data_level0.bin", "length.bin", "header.bin"

_START = struct.Struct("=i4Q")

Stamp = tuple[int, int, int]


class Slack:
    """The unused ends of the vector files under a Chroma directory. Not thread-safe.

    Blank only while Chroma writes nothing there: between calls, or when it is closed. May raise OSError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: dict[str, Stamp] = {}
        self._unknown: set[str] = set()

    @property
    def note(self) -> str | None:
        """Names files of unknown layout, which were left as they are, and what to do; else None."""
        if not self._unknown:
            return None
        return (
            f"deleted text may remain at the end of vector files in {self._path}: the layout of"
            f" {', '.join(sorted(self._unknown))} is not known, so they were left as they are; run `memcycle"
            " doctor --rebuild`, and if this stays, use the chromadb release that memcycle was tested with"
        )

    def blank(self) -> None:
        """Blanks all files, whenever they were written."""
        self._seen.clear()
        self._unknown.clear()
        self.blank_changed()

    def blank_changed(self) -> None:
        """Blanks the files that were written since the last look; 0.3 ms where 32 collections have none."""
        if not self._path.is_dir():
            return
        for folder in os.scandir(self._path):
            vectors = Path(folder.path, VECTORS)
            stamp = _stamp(vectors)
            if stamp is None or self._seen.get(folder.name) == stamp:
                continue
            if _blank_folder(Path(folder.path)):
                self._unknown.discard(folder.name)
            else:
                self._unknown.add(folder.name)
            # Blanking may have changed it.
            self._seen[folder.name] = _stamp(vectors) or stamp


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _blank_folder(folder: Path) -> bool:
    """Blanks what no vector uses; False where the files do not fit together, which are then left alone."""
    try:
        header = (folder / HEADER).read_bytes()
        vectors, lengths = (folder / VECTORS).stat().st_size, (folder / LENGTHS).stat().st_size
    except FileNotFoundError:
        return False
    if len(header) != HEADER_BYTES:
        return False
    version, offset, capacity, used, size = _START.unpack_from(header)
    room = lengths // LENGTH_BYTES
    fits = (vectors, lengths) == (room * size, room * LENGTH_BYTES)
    if (version, offset) != (VERSION, 0) or not used <= room <= capacity or not fits:
        return False
    _blank_from(folder / VECTORS, used * size)
    _blank_from(folder / LENGTHS, used * LENGTH_BYTES)
    return True


def _blank_from(path: Path, start: int) -> None:
    """Writes zeros over what is not zero after `start`; the size stays."""
    with path.open("r+b") as file:
        file.seek(start)
        while chunk := file.read(CHUNK):
            zeros = bytes(len(chunk))
            if chunk != zeros:
                file.seek(-len(chunk), os.SEEK_CUR)
                file.write(zeros)


DATABASE = "chroma.sqlite3"
_FULL_TEXT = "embedding_fulltext_search"
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
            command = "rebuild" if full_text.worn(connection, _FULL_TEXT) else "optimize"
            # Chroma's own index, which keeps its texts itself; its name is a constant.
            connection.execute(f"INSERT INTO {_FULL_TEXT} ({_FULL_TEXT}) VALUES (?)", (command,))  # noqa: S608
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
    """Frees the directory of a `chroma run` server that was stopped; gives `Slack.note`.

    Raises:
        BadInput: no Chroma database is there, or a process has it open. Names its pid.
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
