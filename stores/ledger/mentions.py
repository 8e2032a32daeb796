"""Table `mentions`: names that questions named, waiting to reinforce the entries that hold them."""

import sqlite3
from collections.abc import Iterable

from memcycle.core.scope import Scope

SCHEMA = """
CREATE TABLE mentions (
    scope_key TEXT NOT NULL, name TEXT NOT NULL, times INTEGER NOT NULL,
    PRIMARY KEY (scope_key, name)
) WITHOUT ROWID;
"""


def put(conn: sqlite3.Connection, scope: Scope, names: Iterable[str]) -> None:
    """Counts names, casefolded; each once a call."""
    folded = sorted({name.strip().casefold() for name in names} - {""})
    conn.executemany(
        "INSERT INTO mentions (scope_key, name, times) VALUES (?, ?, 1)"
        " ON CONFLICT (scope_key, name) DO UPDATE SET times = times + 1",
        [(scope.key, name) for name in folded],
    )


def waiting(conn: sqlite3.Connection, scope: Scope) -> dict[str, int]:
    """How often each name was named since the last `clear`, by casefolded name."""
    found = conn.execute("SELECT name, times FROM mentions WHERE scope_key = ?", (scope.key,))
    return {row["name"]: row["times"] for row in found}


def clear(conn: sqlite3.Connection, scope: Scope) -> None:
    """Removes the names of a base scope."""
    conn.execute("DELETE FROM mentions WHERE scope_key = ?", (scope.key,))
