"""Tables `changes` and `changed`: a number for each base scope that grows with every change to its entries,
and which entries the last changes of the home were made to.

Triggers keep them, so that no write can forget to: whoever holds a copy of a scope's entries, in whatever
process, sees that the number is the same and the copy good, or which entries to read anew. Numbers are never
given twice, so a scope that was emptied and filled again is another one. What a search never reads (access
counts) does not count.

After a deletion no copy can be brought up to date any more: what stood around the entry has changed with it,
and what was forgotten shall not depend on a copy being mended rightly.
"""

import sqlite3

from memcycle.core.scope import Scope

KEPT = 10_000
"""Changes of the home whose entries are known."""

SCHEMA = f"""
CREATE TABLE changed (
    n INTEGER PRIMARY KEY AUTOINCREMENT, scope_key TEXT NOT NULL, row INTEGER NOT NULL
);
CREATE TABLE changes (scope_key TEXT PRIMARY KEY, n INTEGER NOT NULL, since INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO changes (scope_key, n, since) SELECT DISTINCT scope_key, 0, 0 FROM entries;
CREATE TRIGGER changes_insert AFTER INSERT ON entries BEGIN
    INSERT INTO changed (scope_key, row) VALUES (new.scope_key, new.row);
    INSERT INTO changes (scope_key, n, since) VALUES (new.scope_key, last_insert_rowid(), last_insert_rowid())
        ON CONFLICT (scope_key) DO UPDATE SET n = excluded.n;
    DELETE FROM changed WHERE n <= last_insert_rowid() - {KEPT};
END;
CREATE TRIGGER changes_update
AFTER UPDATE OF status, turns, importance, reinforcement, vector, embedder ON entries BEGIN
    INSERT INTO changed (scope_key, row) VALUES (new.scope_key, new.row);
    UPDATE changes SET n = last_insert_rowid() WHERE scope_key = new.scope_key;
    DELETE FROM changed WHERE n <= last_insert_rowid() - {KEPT};
END;
CREATE TRIGGER changes_delete AFTER DELETE ON entries BEGIN
    INSERT INTO changed (scope_key, row) VALUES (old.scope_key, old.row);
    UPDATE changes SET n = last_insert_rowid(), since = last_insert_rowid() WHERE scope_key = old.scope_key;
    DELETE FROM changed WHERE n <= last_insert_rowid() - {KEPT};
END;
"""  # noqa: S608 - a constant of ours


def number(conn: sqlite3.Connection, scope: Scope) -> int | None:
    """The number of the base scope's last change; None where nothing was ever written, or all erased."""
    found = conn.execute("SELECT n FROM changes WHERE scope_key = ?", (scope.key,)).fetchone()
    return int(found[0]) if found else None


def after(conn: sqlite3.Connection, scope: Scope, change: int) -> list[int] | None:
    """Integer keys of the base scope's entries that are new or other since its change of that number.

    None where that cannot be told: too much was changed since, or something was deleted.
    """
    told = conn.execute(
        "SELECT 1 FROM changes WHERE scope_key = ? AND since <= ?"
        " AND coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changed'), 0) <= ?",
        (scope.key, change, change + KEPT),
    ).fetchone()
    if told is None:
        return None
    found = conn.execute(
        "SELECT DISTINCT row FROM changed WHERE n > ? AND scope_key = ?", (change, scope.key)
    )
    return [int(row[0]) for row in found]


def erase(conn: sqlite3.Connection, scope: Scope) -> None:
    """Forgets the base scope, after its entries are gone."""
    conn.execute("DELETE FROM changes WHERE scope_key = ?", (scope.key,))
    conn.execute("DELETE FROM changed WHERE scope_key = ?", (scope.key,))
