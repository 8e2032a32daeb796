"""Tables `meta`, `scrubs`, `tombstones` and `spent`: what holds for the whole home, what deletions leave
behind, and what models were asked for.

A tombstone is a hash of what was forgotten, so that it is not stored again; it holds no content.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Literal

from memcycle.core.scope import Scope
from memcycle.core.settings import Spent
from memcycle.stores.ledger.columns import digest, same_hash, scope_of

Forgotten = Literal["turn", "text", "change"]
"""What a tombstone stands for; a change is one that a person rejected."""

_MARK = "lower(hex(randomblob(8)))"


CUTTING = "cutting"
"""Key of the way of cutting texts into words that the whole index of words was made with."""
STORE = "store"
"""Key of this memory's id among those that share a Chroma server; none before the index was first needed."""


def get(conn: sqlite3.Connection, key: str) -> str | None:
    """What is kept under a key, if anything is."""
    row = conn.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(row["value"]) if row else None


def put(conn: sqlite3.Connection, key: str, value: str) -> None:
    """Keeps a value under a key, in place of what was there."""
    conn.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))


def embedder(conn: sqlite3.Connection) -> tuple[str, int] | None:
    """Id and dimension of the embedder all vectors come from; None before the first one."""
    name, dimension = get(conn, "embedder"), get(conn, "dimension")
    return (name, int(dimension)) if name and dimension else None


def set_embedder(conn: sqlite3.Connection, name: str, dimension: int) -> None:
    """Records the embedder all vectors come from."""
    put(conn, "embedder", name)
    put(conn, "dimension", str(dimension))


def owe_scrub(conn: sqlite3.Connection, scopes: Iterable[Scope]) -> None:
    """Notes that deleted text of these base scopes may still lie in free pages and in the vector index."""
    conn.executemany(
        f"INSERT OR REPLACE INTO scrubs (user, workspace, mark) VALUES (?, ?, {_MARK})",  # noqa: S608 - a constant
        [(scope.user, scope.workspace) for scope in scopes],
    )
    conn.execute(f"INSERT OR REPLACE INTO meta (key, value) VALUES ('compaction', {_MARK})")  # noqa: S608 - as above


def owed_scrubs(conn: sqlite3.Connection) -> dict[Scope, str]:
    """Base scopes whose deleted text was not wiped from the vector index yet; each with a mark of the last
    deletion there."""
    found = conn.execute("SELECT user, workspace, mark FROM scrubs ORDER BY user, workspace")
    return {scope_of(user, workspace): mark for user, workspace, mark in found}


def index_scrubbed(conn: sqlite3.Connection, owed: Mapping[Scope, str]) -> None:
    """Notes that this deleted text is gone from the vector index; what was deleted meanwhile stays owed."""
    conn.executemany(
        "DELETE FROM scrubs WHERE user = ? AND workspace = ? AND mark = ?",
        [(scope.user, scope.workspace, mark) for scope, mark in owed.items()],
    )


def owed_compaction(conn: sqlite3.Connection) -> str | None:
    """The mark of the last deletion whose text may still lie in the ledger's own file, if any may."""
    return get(conn, "compaction")


def compacted(conn: sqlite3.Connection, mark: str) -> None:
    """Notes that no text deleted until then lies in the ledger's file; a deletion since stays owed."""
    conn.execute("DELETE FROM meta WHERE key = 'compaction' AND value = ?", (mark,))


def _tombstone(scope: Scope, kind: Forgotten, value: str) -> str:
    return digest(scope.key, kind, same_hash(value) if kind == "text" else value)


def bury(conn: sqlite3.Connection, scope: Scope, kind: Forgotten, values: Iterable[str]) -> None:
    """Keeps messages, by their identities, or facts and episodes, by their texts, from being stored again."""
    owner = digest(scope.key)
    conn.executemany(
        "INSERT OR IGNORE INTO tombstones VALUES (?, ?)",
        [(_tombstone(scope, kind, value), owner) for value in values],
    )


def is_forgotten(conn: sqlite3.Connection, scope: Scope, kind: Forgotten, value: str) -> bool:
    """Whether the message with this identity, or a fact or an episode with this text, was forgotten, or this
    change rejected."""
    found = conn.execute("SELECT 1 FROM tombstones WHERE hash = ?", (_tombstone(scope, kind, value),))
    return found.fetchone() is not None


def decline(conn: sqlite3.Connection, scope: Scope, changes: Iterable[str]) -> None:
    """Keeps in mind, as hashes, changes that a person rejected."""
    bury(conn, scope, "change", changes)


def declined(conn: sqlite3.Connection, scope: Scope, changes: Iterable[str]) -> bool:
    """Whether a person rejected one of these changes."""
    return any(is_forgotten(conn, scope, "change", change) for change in changes)


def erase_tombstones(conn: sqlite3.Connection, scope: Scope) -> None:
    """Removes the tombstones of a base scope."""
    conn.execute("DELETE FROM tombstones WHERE owner = ?", (digest(scope.key),))


def spent(conn: sqlite3.Connection, user: str, day: str) -> Spent:
    """What models were asked for on a day (YYYY-MM-DD), in all workspaces of a user."""
    found = conn.execute(
        "SELECT coalesce(sum(calls), 0), coalesce(sum(tokens), 0) FROM spent WHERE user = ? AND day = ?",
        (user, day),
    )
    return Spent(*found.fetchone())


def spend(conn: sqlite3.Connection, scope: Scope, day: str, more: Spent) -> None:
    """Adds to what models were asked for on a day, in this base scope; that of another day is dropped."""
    conn.execute(
        "INSERT INTO spent VALUES (?, ?, ?, ?, max(?, 0), ?) ON CONFLICT (scope_key) DO UPDATE SET"
        " calls = iif(day = excluded.day, max(calls + ?, 0), excluded.calls),"
        " tokens = iif(day = excluded.day, tokens, 0) + excluded.tokens, day = excluded.day",
        (scope.key, scope.user, scope.workspace, day, *more, more.calls),
    )
