"""Table `outbox`: entries whose copy in the vector index is out of date.

A row says only that an entry changed; what the index shall hold is read from the entry when the row is worked
off. So replaying rows, in any number, always ends in the ledger's present state.
"""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from memcycle.core.scope import Scope
from memcycle.stores.ledger.columns import IN, json_list, scope_of


class Pending(NamedTuple):
    """An entry to be brought up to date in the index; `scope` is its base scope."""

    seq: int
    scope: Scope
    entry: str


def put(conn: sqlite3.Connection, changed: Iterable[tuple[Scope, str]]) -> None:
    """Notes that entries changed."""
    conn.executemany(
        "INSERT INTO outbox (user, workspace, entry) VALUES (?, ?, ?)",
        [(scope.user, scope.workspace, entry) for scope, entry in changed],
    )


_SELECTED = "INSERT INTO outbox (user, workspace, entry) SELECT user, workspace, id FROM entries"


def put_active(conn: sqlite3.Connection, scope: Scope) -> None:
    """Notes all active entries of a base scope."""
    conn.execute(f"{_SELECTED} WHERE scope_key = ? AND status = 'active' ORDER BY row", (scope.key,))


def put_ids(conn: sqlite3.Connection, ids: Iterable[str]) -> None:
    """Notes entries of any scope by id; unknown ids are left out."""
    conn.execute(f"{_SELECTED} WHERE id {IN} ORDER BY row", (json_list(ids),))


def head(conn: sqlite3.Connection, size: int) -> list[Pending]:
    """The oldest rows."""
    found = conn.execute("SELECT seq, user, workspace, entry FROM outbox ORDER BY seq LIMIT ?", (size,))
    return [Pending(seq, scope_of(user, workspace), entry) for seq, user, workspace, entry in found]


def done(conn: sqlite3.Connection, worked: Iterable[Pending]) -> None:
    """Removes rows."""
    conn.executemany("DELETE FROM outbox WHERE seq = ?", [(one.seq,) for one in worked])


def erase(conn: sqlite3.Connection, scope: Scope) -> None:
    """Removes the rows of a base scope."""
    conn.execute("DELETE FROM outbox WHERE user = ? AND workspace = ?", (scope.user, scope.workspace))


def size(conn: sqlite3.Connection) -> int:
    """How many rows wait."""
    return int(conn.execute("SELECT count(*) FROM outbox").fetchone()[0])
