"""The words of entries: a row of numbers each, and a full-text index that finds rows by them.

FTS5 is given each word as a term of its own scope, so that a search reads what its scope holds and nothing of
others, and the index holds no text. It keeps no copy of what it was given either: `lexical_words` has it.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memcycle.stores.ledger.columns import json_list

NUMBER = np.dtype("<i8")
"""A word, as `lexical_words` keeps it."""
WORN = 1024
"""Bytes of an index's list of levels, which has two for each, from which on it is made anew."""
_INDEX = "CREATE VIRTUAL TABLE lexical USING fts5(terms, content = '', detail = none)"
_PARTS = ("data", "idx", "content", "docsize", "config")
"""The tables in which FTS5 keeps the table `lexical`."""
_BROKEN = (sqlite3.SQLITE_CORRUPT_VTAB, sqlite3.SQLITE_ERROR)


def terms(scope: str, words: bytes) -> list[str]:
    """What stands for these words of a scope in the index, each once.

    Args:
        scope: The scope's token: a letter and hexadecimal digits.
        words: As `NUMBER`.
    """
    own = np.array(int(scope[1:16], 16), dtype=NUMBER)
    mixed: NDArray[np.int64] = np.unique(np.frombuffer(words, dtype=NUMBER)) ^ own
    return re.findall(".{16}", mixed.tobytes().hex())


def match(terms: Iterable[str]) -> str:
    """The FTS5 query for rows that hold all of these terms."""
    return " AND ".join(f'"{term}"' for term in terms)


def put(conn: sqlite3.Connection, rows: Sequence[Sequence[Any]]) -> None:
    """Adds rows, or replaces those already there.

    Args:
        rows: Each a row, its scope's token, its speaker, and `LexicalTerms`.
    """
    remove(conn, [row[0] for row in rows])
    conn.executemany(
        "INSERT INTO lexical_words (row, scope, speaker, own, dated, before, words, traits)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    _fill(conn, ((row[0], row[1], row[6]) for row in rows))


def remove(conn: sqlite3.Connection, row_ids: Iterable[int]) -> None:
    """Takes rows out; unknown ones are ignored. Their terms stay in FTS5's segments until `merge`."""
    some = (json_list(row_ids),)
    which = "FROM lexical_words WHERE row IN (SELECT value FROM json_each(?))"
    found = conn.execute(f"SELECT row, scope, words {which}", some)
    conn.executemany("INSERT INTO lexical (lexical, rowid, terms) VALUES ('delete', ?, ?)", _indexed(found))
    conn.execute(f"DELETE {which}", some)


def broken(conn: sqlite3.Connection) -> bool:
    """Whether FTS5 cannot read the index; the rest of the file may be sound."""
    try:
        conn.execute("SELECT rowid FROM lexical WHERE lexical MATCH 'x' LIMIT 1").fetchone()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode in _BROKEN:
            return True
        raise
    return False


def empty(conn: sqlite3.Connection) -> None:
    """Takes all rows out, also of an index that is broken."""
    _begin_anew(conn)
    conn.execute("DELETE FROM lexical_words")


def index_anew(conn: sqlite3.Connection) -> None:
    """Makes the index anew from the rows."""
    _begin_anew(conn)
    _fill(conn, conn.execute("SELECT row, scope, words FROM lexical_words"))


def merge(conn: sqlite3.Connection) -> None:
    """Merges the index so that no removed term remains in it; a VACUUM must follow to clear free pages."""
    if worn(conn, "lexical"):
        index_anew(conn)
    else:
        conn.execute("INSERT INTO lexical (lexical) VALUES ('optimize')")


def worn(conn: sqlite3.Connection, table: str) -> bool:
    """Whether a full-text index must be made anew, not merged, which costs about eight times as much.

    In SQLite 3.40 (no longer in 3.51) each merge of everything adds two levels to the index, and none can be
    opened that has more than 2,000.

    Args:
        table: Its name, a constant.
    """
    levels = f"SELECT 1 FROM {table}_data WHERE id = 10 AND length(block) > ?"  # noqa: S608 - a constant
    return conn.execute(levels, (WORN,)).fetchone() is not None


def _begin_anew(conn: sqlite3.Connection) -> None:
    # FTS5 would have to open the table in order to drop it.
    conn.execute("PRAGMA writable_schema = ON")
    conn.execute("DELETE FROM sqlite_master WHERE name = 'lexical'")
    conn.execute("PRAGMA writable_schema = RESET")
    for part in _PARTS:
        conn.execute(f"DROP TABLE IF EXISTS lexical_{part}")
    conn.execute(_INDEX)


def _fill(conn: sqlite3.Connection, rows: Iterable[Sequence[Any]]) -> None:
    conn.executemany("INSERT INTO lexical (rowid, terms) VALUES (?, ?)", _indexed(rows))


def _indexed(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[int, str]]:
    return ((row, " ".join(terms(scope, words))) for row, scope, words in rows)
