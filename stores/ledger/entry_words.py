"""Table `entry_words`: the vectors of the words of entries, and up to which entry a model has read them."""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from memcycle.stores.ledger.columns import json_list

_UPTO = "words of "

# Rows after the last one are given again.
SCHEMA = f"""
CREATE TABLE entry_words (
    row INTEGER PRIMARY KEY REFERENCES entries (row) ON DELETE CASCADE,
    model TEXT NOT NULL, vectors BLOB NOT NULL
);
CREATE TRIGGER entry_words_upto AFTER DELETE ON entries BEGIN
    UPDATE meta SET value = min(CAST(value AS INTEGER), coalesce((SELECT max(row) FROM entries), 0))
        WHERE key GLOB '{_UPTO}*';
END;
"""  # noqa: S608 - a constant of ours


class Unread(NamedTuple):
    """An entry whose words a model has not read yet."""

    row: int
    text: str


def unread(conn: sqlite3.Connection, model: str, size: int) -> list[Unread]:
    """The next entries of the home, by integer key, after the last one that the model has read."""
    found = conn.execute(
        "SELECT row, text FROM entries WHERE row > coalesce("
        "  (SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?), 0) ORDER BY row LIMIT ?",
        (_UPTO + model, size),
    )
    return [Unread(row["row"], row["text"]) for row in found]


def put(conn: sqlite3.Connection, model: str, blobs: Mapping[int, bytes], upto: int) -> None:
    """Stores what a model read, as blobs by row, of all entries up to a row; none of deleted ones."""
    conn.executemany(
        "INSERT OR REPLACE INTO entry_words (row, model, vectors)"
        " SELECT row, ?, ? FROM entries WHERE row = ?",
        [(model, blob, row) for row, blob in blobs.items()],
    )
    conn.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (_UPTO + model, str(upto)))


def of(conn: sqlite3.Connection, model: str, rows: Iterable[int]) -> dict[int, bytes]:
    """What the model read, as blobs by row; rows without are left out."""
    found = conn.execute(
        "SELECT row, vectors FROM entry_words WHERE row IN (SELECT value FROM json_each(?)) AND model = ?",
        (json_list(rows), model),
    )
    return {row["row"]: row["vectors"] for row in found}
