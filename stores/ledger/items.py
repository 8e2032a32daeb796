"""Tables `items` and `item_vectors`: what a LangGraph store keeps under a namespace and a key, with vectors.

A namespace (a tuple of labels) stands as a JSON array. All arrays that begin with the same labels lie
together in the index, so what is at or below a namespace is one range of it; a label that merely begins alike
lies outside.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

from memcycle.stores.ledger.columns import IN, Vector, json_list, to_blob, to_json, to_time

Namespace = tuple[str, ...]


class StoredItem(NamedTuple):
    """A row of the table.

    Attributes:
        value: JSON text.
        ttl: Minutes it lives after it was last written or read; None for ever.
    """

    row: int
    namespace: Namespace
    key: str
    value: str
    created_at: datetime
    updated_at: datetime
    ttl: float | None


def _stored(row: sqlite3.Row) -> StoredItem:
    number, namespace, key, value, *times, ttl = row
    created, updated = map(datetime.fromisoformat, times)
    return StoredItem(number, tuple(json.loads(namespace)), key, value, created, updated, ttl)


def _column(namespace: Namespace) -> str:
    """A namespace as it stands in the column: ASCII, so that the order of bytes is that of characters."""
    return json.dumps(namespace, separators=(",", ":"))


_COLUMNS = "i.row, i.namespace, i.key, i.value, i.created_at, i.updated_at, i.ttl"
_ALIVE = "(i.expires_at IS NULL OR i.expires_at > :now)"
_BELOW = f"i.namespace >= :low AND i.namespace < :high AND {_ALIVE}"


def _range(prefix: Namespace, now: datetime | None) -> dict[str, Any]:
    """Parameters of the condition `_BELOW`: at or below the namespace, and not expired at `now` if given.

    After the array's last label only a comma or the closing bracket can follow, and `^` is the character
    after that bracket.
    """
    head = _column(prefix)[:-1]
    return {"low": head, "high": head + "^", "now": to_time(now) or ""}


def get(conn: sqlite3.Connection, namespace: Namespace, key: str, now: datetime | None) -> StoredItem | None:
    """The item, unless there is none or it expired by `now`."""
    row = conn.execute(
        f"SELECT {_COLUMNS} FROM items i WHERE i.namespace = :namespace AND i.key = :key AND {_ALIVE}",  # noqa: S608
        {"namespace": _column(namespace), "key": key, "now": to_time(now) or ""},
    ).fetchone()
    return _stored(row) if row else None


def latest(conn: sqlite3.Connection, prefix: Namespace, now: datetime | None) -> Iterator[StoredItem]:
    """Items at or below a namespace, the last written first."""
    found = conn.execute(
        f"SELECT {_COLUMNS} FROM items i WHERE {_BELOW} ORDER BY i.updated_at DESC, i.row DESC",  # noqa: S608
        _range(prefix, now),
    )
    return map(_stored, found)


def by_rows(conn: sqlite3.Connection, rows: Iterable[int]) -> dict[int, StoredItem]:
    """Items by row; those gone are left out."""
    found = conn.execute(f"SELECT {_COLUMNS} FROM items i WHERE i.row {IN}", (json_list(rows),))  # noqa: S608
    return {one.row: one for one in map(_stored, found)}


def namespaces(conn: sqlite3.Connection, now: datetime | None) -> list[Namespace]:
    """All namespaces that hold an item."""
    found = conn.execute(f"SELECT DISTINCT i.namespace FROM items i WHERE {_BELOW}", _range((), now))  # noqa: S608
    return [tuple(json.loads(row["namespace"])) for row in found]


def put(
    conn: sqlite3.Connection, namespace: Namespace, key: str, value: str, *, now: datetime, ttl: float | None
) -> int:
    """Writes an item, keeping the time it was created at; returns its row."""
    row = conn.execute(
        "INSERT INTO items (namespace, key, value, created_at, updated_at, ttl, expires_at)"
        " VALUES (:namespace, :key, :value, :now, :now, :ttl, :expires)"
        " ON CONFLICT (namespace, key) DO UPDATE SET value = :value, updated_at = :now, ttl = :ttl,"
        " expires_at = :expires RETURNING row",
        {
            "namespace": _column(namespace),
            "key": key,
            "value": value,
            "now": to_time(now),
            "ttl": ttl,
            "expires": _expiry(now, ttl),
        },
    ).fetchone()
    return int(row["row"])


def delete(conn: sqlite3.Connection, namespace: Namespace, key: str) -> None:
    """Removes an item and its vectors; nothing for an unknown one."""
    conn.execute("DELETE FROM items WHERE namespace = ? AND key = ?", (_column(namespace), key))


def erase_of(conn: sqlite3.Connection, user: str, holds: Callable[[str], bool]) -> None:
    """Removes a user's items of which a text holds something.

    A user's are those whose namespace names them, and nobody else who has memories here.
    """
    others = {row["user"] for row in conn.execute("SELECT DISTINCT user FROM entries")} - {user}
    found = conn.execute(
        "SELECT row, namespace, value FROM items WHERE instr(namespace, ?)", (to_json(user),)
    )
    doomed = [
        row["row"]
        for row in found
        if user in (names := json.loads(row["namespace"]))
        and others.isdisjoint(names)
        and any(map(holds, _texts(json.loads(row["value"]))))
    ]
    conn.executemany("DELETE FROM items WHERE row = ?", [(row,) for row in doomed])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(one)


def delete_below(conn: sqlite3.Connection, prefix: Namespace) -> int:
    """Removes all items at or below a namespace, expired or not; returns how many."""
    return conn.execute(f"DELETE FROM items AS i WHERE {_BELOW}", _range(prefix, None)).rowcount  # noqa: S608


def delete_expired(conn: sqlite3.Connection, now: datetime) -> int:
    """Removes the items whose time is over; returns how many."""
    return conn.execute("DELETE FROM items WHERE expires_at <= ?", (to_time(now),)).rowcount


def refresh(conn: sqlite3.Connection, read: Iterable[StoredItem], now: datetime) -> None:
    """Lets the time of items that were read run anew, of those that have one."""
    conn.executemany(
        "UPDATE items SET expires_at = ? WHERE row = ? AND ttl IS NOT NULL",
        [(_expiry(now, one.ttl), one.row) for one in read],
    )


def _expiry(now: datetime, ttl: float | None) -> str | None:
    return to_time(now + timedelta(minutes=ttl)) if ttl is not None else None


def count(conn: sqlite3.Connection, now: datetime) -> tuple[int, int]:
    """How many items the home holds, and how many of them are past their time at `now`."""
    query = "SELECT count(*), count(*) FILTER (WHERE expires_at <= ?) FROM items"
    stored, expired = conn.execute(query, (to_time(now),)).fetchone()
    return stored, expired


# Vectors


def put_vectors(
    conn: sqlite3.Connection, item: int, vectors: Iterable[tuple[str, Vector]], embedder: str
) -> None:
    """Gives an item vectors, by path, in place of those it had. A zero one has no direction: none is kept."""
    conn.execute("DELETE FROM item_vectors WHERE item = ?", (item,))
    conn.executemany(
        "INSERT INTO item_vectors (item, path, embedder, vector) VALUES (?, ?, ?, ?)",
        [(item, path, embedder, blob) for path, vector in vectors if (blob := to_blob(vector)) is not None],
    )


def vectors_below(
    conn: sqlite3.Connection, prefix: Namespace, now: datetime | None
) -> dict[str, tuple[list[int], Vector]]:
    """The vectors of items at or below a namespace, by embedder: the item of each, and they, (n, dim)."""
    # CROSS: from a thousand items on SQLite would begin at the vectors, and read those of all namespaces.
    found = conn.execute(
        "SELECT v.item, v.embedder, v.vector FROM items i CROSS JOIN item_vectors v ON v.item = i.row"  # noqa: S608
        f" WHERE {_BELOW}",
        _range(prefix, now),
    )
    of_embedder: dict[str, tuple[list[int], list[bytes]]] = {}
    for item, embedder, vector in found:
        own, blobs = of_embedder.setdefault(embedder, ([], []))
        own.append(item)
        blobs.append(vector)
    return {
        embedder: (own, np.frombuffer(b"".join(blobs), dtype=np.float32).reshape(len(own), -1))
        for embedder, (own, blobs) in of_embedder.items()
    }


def foreign_paths(
    conn: sqlite3.Connection, embedder: str, old: str | None, after: int, most: int
) -> dict[int, list[str]]:
    """The first items above a row with vectors of another embedder, and the paths these come from.

    Args:
        old: The other embedder; None is any.
    """
    found = conn.execute(
        "SELECT item, path FROM item_vectors WHERE item IN (SELECT DISTINCT item FROM item_vectors"
        " WHERE item > :after AND embedder <> :embedder AND embedder = coalesce(:old, embedder)"
        " ORDER BY item LIMIT :most) GROUP BY item, path ORDER BY min(row)",
        {"embedder": embedder, "old": old, "after": after, "most": most},
    )
    paths: dict[int, list[str]] = {}
    for row in found:
        paths.setdefault(row["item"], []).append(row["path"])
    return paths


def count_vectors(conn: sqlite3.Connection) -> dict[str, int]:
    """How many vectors the home's items have, by embedder."""
    found = conn.execute("SELECT embedder, count(*) FROM item_vectors GROUP BY embedder ORDER BY embedder")
    return dict(found.fetchall())
