"""Blanks the freed memory that Chroma's vector index writes into its files.

hnswlib allocates room for at least 100 vectors, does not clear it, and writes all of it when it makes a
collection's files: whatever the process freed before, conversations too, then stands after the vectors in
`data_level0.bin` and after their lengths in `length.bin`. A vector's own room is cleared before use, and
later writes only add vectors, so that a blanked file stays blank until Chroma makes it anew. It does that
with every collection that was never synced (fewer than 1,000 writes) at its first use in a process.

The layout is that of hnswlib in chromadb 1.x, persistence version 1: `header.bin` of 100 bytes begins with
the version and, as 64-bit numbers, offset of level 0, capacity, vectors in use, bytes a vector.
"""

import os
import struct
from pathlib import Path

VERSION = 1
HEADER_BYTES = 100
LENGTH_BYTES = 4
CHUNK = 1 << 20
VECTORS, LENGTHS, HEADER = "data_level0.bin", "length.bin", "header.bin"

_START = struct.Struct("=i4Q")

Stamp = tuple[int, int, int]


class Slack:
    """The unused ends of the vector files under a Chroma directory. Not thread-safe.

    Blank only while Chroma writes nothing there: between calls, or when it is closed.
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
        """Blanks all files, whenever they were written.

        Raises:
            OSError: a file cannot be read or written.
        """
        self._seen.clear()
        self._unknown.clear()
        self.blank_changed()

    def blank_changed(self) -> None:
        """Blanks the files that were written since the last look; 0.3 ms where 32 collections have none.

        Raises:
            OSError: a file cannot be read or written.
        """
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
    if (version, offset) != (VERSION, 0) or not used <= room <= capacity:
        return False
    if vectors != room * size or lengths != room * LENGTH_BYTES:
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
