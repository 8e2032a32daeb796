"""Table `tombstones`: hashes of what was forgotten, so that it is not stored again. They hold no content."""

import sqlite3
from collections.abc import Iterable

from memcycle.core.scope import Scope
from memcycle.stores.ledger.columns import digest, same_hash


def _turn_hash(scope: Scope, identity: str) -> str:
    return digest(scope.key, "turn", identity)


def _text_hash(scope: Scope, text: str) -> str:
    return digest(scope.key, "text", same_hash(text))


def _put(conn: sqlite3.Connection, scope: Scope, hashes: Iterable[str]) -> None:
    owner = digest(scope.key)
    conn.executemany("INSERT OR IGNORE INTO tombstones VALUES (?, ?)", [(value, owner) for value in hashes])


def _has(conn: sqlite3.Connection, value: str) -> bool:
    return conn.execute("SELECT 1 FROM tombstones WHERE hash = ?", (value,)).fetchone() is not None


def put_turns(conn: sqlite3.Connection, scope: Scope, identities: Iterable[str]) -> None:
    """Keeps messages from being ingested again."""
    _put(conn, scope, (_turn_hash(scope, identity) for identity in identities))


def put_texts(conn: sqlite3.Connection, scope: Scope, texts: Iterable[str]) -> None:
    """Keeps facts and episodes with these texts from being stored again."""
    _put(conn, scope, (_text_hash(scope, text) for text in texts))


def has_turn(conn: sqlite3.Connection, scope: Scope, identity: str) -> bool:
    """Whether the message with this identity was forgotten."""
    return _has(conn, _turn_hash(scope, identity))


def has_text(conn: sqlite3.Connection, scope: Scope, text: str) -> bool:
    """Whether a fact or an episode that says this was forgotten."""
    return _has(conn, _text_hash(scope, text))


def any_there(conn: sqlite3.Connection) -> bool:
    """Whether anything was forgotten in this home: where not, many texts need not be looked up one by one."""
    return conn.execute("SELECT 1 FROM tombstones LIMIT 1").fetchone() is not None


def erase(conn: sqlite3.Connection, scope: Scope) -> None:
    """Removes the tombstones of a base scope."""
    conn.execute("DELETE FROM tombstones WHERE owner = ?", (digest(scope.key),))
