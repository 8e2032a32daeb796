"""Table `items`: what a LangGraph store keeps under a namespace (a tuple of labels) and a key.

A namespace stands as a JSON array. All arrays that begin with the same labels lie together in the index, so
what is at or below a namespace is one range of it; a label that merely begins alike lies outside.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from memcycle.stores.ledger.columns import json_list, to_time

SCHEMA = """
CREATE TABLE items (
    row INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    ttl REAL, expires_at TEXT,
    UNIQUE (namespace, key)
);
CREATE INDEX items_expiry ON items (expires_at) WHERE expires_at IS NOT NULL;
"""

Namespace = tuple[str, ...]


class StoredItem(NamedTuple):
    """A row of the table, its value still JSON text.

    Attributes:
        ttl: Minutes it lives after it was last written or read; None for ever.
    """

    row: int
    namespace: str
    key: str
    value: str
    created_at: str
    updated_at: str
    ttl: float | None

    @property
    def labels(self) -> Namespace:
        """The namespace as a tuple."""
        return to_labels(self.namespace)

    def parsed(self) -> Any:
        """The value."""
        return json.loads(self.value)

    @property
    def times(self) -> tuple[datetime, datetime]:
        """When it was first and last written, in UTC."""
        return datetime.fromisoformat(self.created_at), datetime.fromisoformat(self.updated_at)


def to_column(namespace: Namespace) -> str:
    """A namespace as it stands in the column: ASCII, so that the order of bytes is that of characters."""
    return json.dumps(namespace, separators=(",", ":"))


def to_labels(column: str) -> Namespace:
    """The namespace a column holds."""
    return tuple(json.loads(column))


def span(prefix: Namespace) -> tuple[str, str]:
    """The range of the column, from the first to before the second, that is at or below a namespace.

    After the array's last label only a comma or the closing bracket can follow, and `^` is the character
    after that bracket.
    """
    head = to_column(prefix)[:-1]
    return head, head + "^"


_COLUMNS = "i.row, i.namespace, i.key, i.value, i.created_at, i.updated_at, i.ttl"
_ALIVE = "(i.expires_at IS NULL OR i.expires_at > :now)"
MATCHED = f"i.namespace >= :low AND i.namespace < :high AND {_ALIVE}"


def matched(prefix: Namespace, now: datetime | None) -> dict[str, Any]:
    """Parameters of the condition `MATCHED`: at or below the namespace, and not expired at `now` if given."""
    low, high = span(prefix)
    return {"low": low, "high": high, "now": to_time(now) or ""}


def get(conn: sqlite3.Connection, namespace: Namespace, key: str, now: datetime | None) -> StoredItem | None:
    """The item, unless there is none or it expired by `now`."""
    row = conn.execute(
        f"SELECT {_COLUMNS} FROM items i WHERE i.namespace = :namespace AND i.key = :key AND {_ALIVE}",  # noqa: S608
        {"namespace": to_column(namespace), "key": key, "now": to_time(now) or ""},
    ).fetchone()
    return StoredItem(*row) if row else None


def latest(conn: sqlite3.Connection, prefix: Namespace, now: datetime | None) -> Iterator[StoredItem]:
    """Items at or below a namespace, the last written first."""
    found = conn.execute(
        f"SELECT {_COLUMNS} FROM items i WHERE {MATCHED} ORDER BY i.updated_at DESC, i.row DESC",  # noqa: S608
        matched(prefix, now),
    )
    return (StoredItem(*row) for row in found)


def by_rows(conn: sqlite3.Connection, rows: Iterable[int]) -> dict[int, StoredItem]:
    """Items by row; those gone are left out."""
    found = conn.execute(
        f"SELECT {_COLUMNS} FROM items i WHERE i.row IN (SELECT value FROM json_each(?))",  # noqa: S608
        (json_list(rows),),
    )
    return {row["row"]: StoredItem(*row) for row in found}


def namespaces(conn: sqlite3.Connection, prefix: Namespace, now: datetime | None) -> list[Namespace]:
    """The namespaces at or below one that hold an item."""
    found = conn.execute(f"SELECT DISTINCT i.namespace FROM items i WHERE {MATCHED}", matched(prefix, now))  # noqa: S608
    return [to_labels(row["namespace"]) for row in found]


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
            "namespace": to_column(namespace),
            "key": key,
            "value": value,
            "now": to_time(now),
            "ttl": ttl,
            "expires": _expiry(now, ttl),
        },
    ).fetchone()
    return int(row["row"])


def row_of(conn: sqlite3.Connection, namespace: Namespace, key: str) -> list[int]:
    """The row of an item, expired or not; none for an unknown one."""
    found = conn.execute("SELECT row FROM items WHERE namespace = ? AND key = ?", (to_column(namespace), key))
    return [row["row"] for row in found]


def rows_below(conn: sqlite3.Connection, prefix: Namespace) -> list[int]:
    """Rows of all items at or below a namespace, expired or not."""
    found = conn.execute("SELECT row FROM items WHERE namespace >= ? AND namespace < ?", span(prefix))
    return [row["row"] for row in found]


def expired(conn: sqlite3.Connection, now: datetime) -> list[int]:
    """Rows of the items whose time is over."""
    return [
        row["row"] for row in conn.execute("SELECT row FROM items WHERE expires_at <= ?", (to_time(now),))
    ]


def delete(conn: sqlite3.Connection, rows: Iterable[int]) -> None:
    """Removes items, and with them their vectors: see `item_vectors.discard`, which must come before."""
    conn.execute("DELETE FROM items WHERE row IN (SELECT value FROM json_each(?))", (json_list(rows),))


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
    row = conn.execute(
        "SELECT count(*), count(*) FILTER (WHERE expires_at <= ?) FROM items", (to_time(now),)
    ).fetchone()
    return int(row[0]), int(row[1])
