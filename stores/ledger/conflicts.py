"""Table `conflicts`: contradicting entries that recall met, waiting for the next write to settle them."""

import sqlite3
from collections.abc import Iterable

from memcycle.core.scope import Scope
from memcycle.stores.ledger.columns import json_list


def put(conn: sqlite3.Connection, scope: Scope, a: str, b: str, why: str) -> None:
    """Queues a pair, once."""
    conn.execute(
        "INSERT INTO conflicts (scope_key, a, b, why) SELECT :scope, :a, :b, :why WHERE NOT EXISTS ("
        " SELECT 1 FROM conflicts WHERE scope_key = :scope AND a = :a AND b = :b)",
        {"scope": scope.key, "a": a, "b": b, "why": why},
    )


def queued(conn: sqlite3.Connection, scope: Scope) -> list[tuple[str, str, str]]:
    """The queue of the base scope, oldest first."""
    found = conn.execute("SELECT a, b, why FROM conflicts WHERE scope_key = ? ORDER BY seq", (scope.key,))
    return [(row["a"], row["b"], row["why"]) for row in found]


def settle(conn: sqlite3.Connection, scope: Scope, pairs: Iterable[tuple[str, str]]) -> None:
    """Removes pairs from the queue."""
    conn.executemany(
        "DELETE FROM conflicts WHERE scope_key = ? AND a = ? AND b = ?", [(scope.key, a, b) for a, b in pairs]
    )


def erase(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> None:
    """Removes the pairs that name any of the entries."""
    conn.execute(
        "DELETE FROM conflicts WHERE scope_key = :scope AND (a IN (SELECT value FROM json_each(:ids))"
        " OR b IN (SELECT value FROM json_each(:ids)))",
        {"scope": scope.key, "ids": json_list(ids)},
    )
