"""Tables `meta` and `scrubs`: what holds for the whole home."""

import sqlite3
from collections.abc import Iterable

from memcycle.core.scope import Scope


def embedder(conn: sqlite3.Connection) -> tuple[str, int] | None:
    """Id and dimension of the embedder all vectors come from; None before the first one."""
    found = {
        row["key"]: row["value"]
        for row in conn.execute("SELECT * FROM meta WHERE key IN ('embedder', 'dimension')")
    }
    return (found["embedder"], int(found["dimension"])) if len(found) == 2 else None  # noqa: PLR2004 - both keys


def set_embedder(conn: sqlite3.Connection, name: str, dimension: int) -> None:
    """Records the embedder all vectors come from."""
    conn.executemany(
        "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
        [("embedder", name), ("dimension", str(dimension))],
    )


def store_id(conn: sqlite3.Connection) -> str | None:
    """Id of this memory among those that share a Chroma server; None before the index was first needed."""
    row = conn.execute("SELECT value FROM meta WHERE key = 'store'").fetchone()
    return str(row["value"]) if row else None


def put_store_id(conn: sqlite3.Connection, new: str) -> str:
    """Gives the memory an id, unless another process just did, and returns the one it has."""
    conn.execute("INSERT OR IGNORE INTO meta (key, value) VALUES ('store', ?)", (new,))
    return store_id(conn) or new


def owe_scrub(conn: sqlite3.Connection, scopes: Iterable[Scope]) -> None:
    """Notes that deleted text of these base scopes may still lie in free pages and in the vector index."""
    conn.executemany(
        "INSERT OR IGNORE INTO scrubs (user, workspace) VALUES (?, ?)",
        [(scope.user, scope.workspace) for scope in scopes],
    )
    conn.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('compaction', 'owed')")


def owed_scrubs(conn: sqlite3.Connection) -> list[Scope]:
    """Base scopes whose deleted text was not wiped from the vector index yet."""
    found = conn.execute("SELECT user, workspace FROM scrubs ORDER BY user, workspace")
    return [Scope(user=row["user"], workspace=row["workspace"]) for row in found]


def index_scrubbed(conn: sqlite3.Connection, scopes: Iterable[Scope]) -> None:
    """Notes that the deleted text of base scopes is gone from the vector index."""
    conn.executemany(
        "DELETE FROM scrubs WHERE user = ? AND workspace = ?",
        [(scope.user, scope.workspace) for scope in scopes],
    )


def owes_compaction(conn: sqlite3.Connection) -> bool:
    """Whether deleted text may still lie in the ledger's own file."""
    return conn.execute("SELECT 1 FROM meta WHERE key = 'compaction'").fetchone() is not None


def compacted(conn: sqlite3.Connection) -> None:
    """Notes that no deleted text lies in the ledger's file."""
    conn.execute("DELETE FROM meta WHERE key = 'compaction'")
