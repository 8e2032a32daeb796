"""What no write of ours leaves in the ledger's tables: found, counted, and put right from the entries."""

import sqlite3
from typing import NamedTuple

from memcycle.stores.search import lexical

SHOWN = 5
"""Complaints of SQLite that are told."""


class Rows(NamedTuple):
    """Rows that do not fit the entries.

    Attributes:
        links: Between entries of which one is not there.
        sources: Of entries that are not there or do not name that turn, and those that an entry lacks.
        lexical: Of entries that are not active, and those that an active one lacks.
    """

    links: int
    sources: int
    lexical: int


_LOST_LINKS = """
FROM links AS l
WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.id = l.source AND e.scope_key = l.scope_key)
    OR NOT EXISTS (SELECT 1 FROM entries e WHERE e.id = l.target AND e.scope_key = l.scope_key)
"""
_NAMED = "SELECT e.scope_key, t.value, e.row FROM entries e, json_each(e.turns) t"
_LOST_SOURCES = f"(SELECT scope_key, turn, row FROM sources EXCEPT {_NAMED})"  # noqa: S608 - constants of ours, as below
_LACKED_SOURCES = f"({_NAMED} EXCEPT SELECT scope_key, turn, row FROM sources)"  # noqa: S608
_ACTIVE = "SELECT row FROM entries WHERE status = 'active'"


def integrity(conn: sqlite3.Connection) -> tuple[list[str], list[str]]:
    """What SQLite finds wrong with the lexical view, and with the rest of the file; tells no text.

    At most `SHOWN` complaints. From version 3.44 on SQLite looks into the lexical view too.
    """
    found = [str(row[0]) for row in conn.execute(f"PRAGMA integrity_check({SHOWN})")]
    return parted([] if found == ["ok"] else found)


def parted(complaints: list[str]) -> tuple[list[str], list[str]]:
    """Complaints of FTS5, whose one table is the lexical view, and all others."""
    of_words = [one for one in complaints if "fts5" in one.casefold()]
    return of_words, [one for one in complaints if one not in of_words]


def index_only(complaints: list[str]) -> bool:
    """Whether only indexes of SQLite's are wrong, which it can make anew from the rows."""
    return bool(complaints) and all(
        one.startswith("wrong # of entries in index") or "missing from index" in one for one in complaints
    )


def reindex(conn: sqlite3.Connection) -> None:
    """Makes SQLite's own indexes anew."""
    conn.execute("REINDEX")


def misfits(conn: sqlite3.Connection) -> Rows:
    """How many rows do not fit the entries."""
    return Rows(
        links=_count(conn, f"SELECT count(*) {_LOST_LINKS}"),
        sources=_count(conn, f"SELECT count(*) FROM {_LOST_SOURCES}")  # noqa: S608
        + _count(conn, f"SELECT count(*) FROM {_LACKED_SOURCES}"),  # noqa: S608
        lexical=_lexical_misfits(conn),
    )


def _lexical_misfits(conn: sqlite3.Connection) -> int:
    if lexical.broken(conn):
        return max(1, _count(conn, f"SELECT count(*) FROM ({_ACTIVE})"))  # noqa: S608
    return sum(
        _count(conn, f"SELECT count(*) FROM ({one} EXCEPT {other})")  # noqa: S608
        for words in ("SELECT row FROM lexical_words", "SELECT rowid FROM lexical")
        for one, other in ((_ACTIVE, words), (words, _ACTIVE))
    )


def drop_lost_links(conn: sqlite3.Connection) -> None:
    """Removes links of which one end is not there."""
    conn.execute(f"DELETE {_LOST_LINKS}")


def put_sources_right(conn: sqlite3.Connection) -> None:
    """Makes the sources what the entries say they are."""
    conn.execute(f"DELETE FROM sources WHERE (scope_key, turn, row) IN {_LOST_SOURCES}")  # noqa: S608
    conn.execute(f"INSERT INTO sources (scope_key, turn, row) SELECT * FROM {_LACKED_SOURCES}")  # noqa: S608


def _count(conn: sqlite3.Connection, query: str) -> int:
    return int(conn.execute(query).fetchone()[0])
