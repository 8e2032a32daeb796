"""Empties a base scope in every table."""

import sqlite3

from memcycle.core.scope import Scope
from memcycle.stores.ledger import changes, mentions, outbox, tombstones


def erase_scope(conn: sqlite3.Connection, scope: Scope) -> list[int]:
    """Removes all rows of a base scope.

    Returns:
        Integer keys of the entries there were, for what is derived from them.
    """
    rows = [row["row"] for row in conn.execute("SELECT row FROM entries WHERE scope_key = ?", (scope.key,))]
    conn.execute("DELETE FROM entries WHERE scope_key = ?", (scope.key,))
    conn.execute("DELETE FROM turns WHERE scope_key = ?", (scope.key,))
    conn.execute("DELETE FROM probes WHERE scope_key = ?", (scope.key,))
    conn.execute("DELETE FROM sessions WHERE scope_key = ?", (scope.key,))
    conn.execute("DELETE FROM events WHERE scope_key = ?", (scope.key,))
    conn.execute("DELETE FROM links WHERE scope_key = ?", (scope.key,))
    conn.execute("DELETE FROM conflicts WHERE scope_key = ?", (scope.key,))
    mentions.clear(conn, scope)
    outbox.erase(conn, scope)
    tombstones.erase(conn, scope)
    changes.erase(conn, scope)
    return rows
