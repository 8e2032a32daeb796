"""Table `links`: named, directed relations between entries of one base scope."""

import sqlite3
from collections.abc import Iterable
from typing import Literal

from memcycle.core.scope import Scope
from memcycle.stores.ledger.columns import json_list

LinkKind = Literal["related", "elaborates", "contradicts", "supersedes"]


def put(conn: sqlite3.Connection, scope: Scope, source: str, kind: LinkKind, target: str) -> None:
    """Notes that `source` relates to `target`; once."""
    conn.execute(
        "INSERT OR IGNORE INTO links (scope_key, source, target, kind) VALUES (?, ?, ?, ?)",
        (scope.key, source, target, kind),
    )


def neighbours(conn: sqlite3.Connection, scope: Scope, entry_id: str, kind: LinkKind) -> set[str]:
    """Ids directly linked with an entry, in either direction."""
    found = conn.execute(
        "SELECT target AS id FROM links WHERE scope_key = :scope AND source = :id AND kind = :kind"
        " UNION SELECT source FROM links WHERE scope_key = :scope AND target = :id AND kind = :kind",
        {"scope": scope.key, "id": entry_id, "kind": kind},
    )
    return {row["id"] for row in found}


def chain(conn: sqlite3.Connection, scope: Scope, entry_id: str) -> set[str]:
    """The entry and everything it replaced or was replaced by, over any number of steps."""
    seen, frontier = {entry_id}, [entry_id]
    while frontier:
        fresh = neighbours(conn, scope, frontier.pop(), "supersedes") - seen
        seen |= fresh
        frontier.extend(fresh)
    return seen


def erase(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> None:
    """Removes the links of entries."""
    conn.execute(
        "DELETE FROM links WHERE scope_key = :scope AND (source IN (SELECT value FROM json_each(:ids))"
        " OR target IN (SELECT value FROM json_each(:ids)))",
        {"scope": scope.key, "ids": json_list(ids)},
    )
