"""Tables `links` and `conflicts`: which entry replaced which, and pairs that contradict each other."""

import sqlite3
from collections.abc import Iterable

from memcycle.core.scope import Scope
from memcycle.stores.ledger.columns import IN, json_list


def put(conn: sqlite3.Connection, scope: Scope, successor: str, predecessor: str) -> None:
    """Notes that one entry replaced another; once."""
    conn.execute(
        "INSERT OR IGNORE INTO links (scope_key, source, target, kind) VALUES (?, ?, ?, 'supersedes')",
        (scope.key, successor, predecessor),
    )


def neighbours(conn: sqlite3.Connection, scope: Scope, entry_id: str) -> set[str]:
    """Ids of what an entry replaced or was replaced by, in one step."""
    found = conn.execute(
        "SELECT target AS id FROM links WHERE scope_key = :scope AND source = :id AND kind = 'supersedes'"
        " UNION SELECT source FROM links WHERE scope_key = :scope AND target = :id AND kind = 'supersedes'",
        {"scope": scope.key, "id": entry_id},
    )
    return {row["id"] for row in found}


def chain(conn: sqlite3.Connection, scope: Scope, entry_id: str) -> set[str]:
    """The entry and everything it replaced or was replaced by, over any number of steps."""
    seen, frontier = {entry_id}, [entry_id]
    while frontier:
        fresh = neighbours(conn, scope, frontier.pop()) - seen
        seen |= fresh
        frontier.extend(fresh)
    return seen


def queue_conflict(conn: sqlite3.Connection, scope: Scope, a: str, b: str, why: str) -> None:
    """Queues a pair that contradicts itself for the next write to settle, once."""
    conn.execute(
        "INSERT INTO conflicts (scope_key, a, b, why) SELECT :scope, :a, :b, :why WHERE NOT EXISTS ("
        " SELECT 1 FROM conflicts WHERE scope_key = :scope AND a = :a AND b = :b)",
        {"scope": scope.key, "a": a, "b": b, "why": why},
    )


def conflicts(conn: sqlite3.Connection, scope: Scope) -> list[tuple[str, str, str]]:
    """The queue of the base scope, oldest first."""
    found = conn.execute("SELECT a, b, why FROM conflicts WHERE scope_key = ? ORDER BY seq", (scope.key,))
    return [tuple(row) for row in found]


def settle_conflicts(conn: sqlite3.Connection, scope: Scope, pairs: Iterable[tuple[str, str]]) -> None:
    """Removes pairs from the queue."""
    conn.executemany(
        "DELETE FROM conflicts WHERE scope_key = ? AND a = ? AND b = ?", [(scope.key, a, b) for a, b in pairs]
    )


def erase(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> None:
    """Removes the links and the waiting pairs that name any of the entries."""
    named = json_list(ids)
    for table, one, other in (("links", "source", "target"), ("conflicts", "a", "b")):
        conn.execute(
            f"DELETE FROM {table} WHERE scope_key = ? AND ({one} {IN} OR {other} {IN})",  # noqa: S608
            (scope.key, named, named),
        )
