"""Tables `item_vectors`, `item_index` and `item_gone`: the vectors of items, and which of them Chroma has.

A vector is never changed: an item that is written again gets new ones under numbers never used before. So
Chroma lacks those above the highest number it was given, and has too many those that are in `item_gone`.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np

from memcycle.stores.ledger.columns import Vector, json_list, to_blob
from memcycle.stores.ledger.items import MATCHED, Namespace, matched

SCHEMA = """
CREATE TABLE item_vectors (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    item INTEGER NOT NULL REFERENCES items (row) ON DELETE CASCADE,
    path TEXT NOT NULL, embedder TEXT NOT NULL, vector BLOB NOT NULL
);
CREATE INDEX item_vectors_item ON item_vectors (item, embedder);
CREATE INDEX item_vectors_embedder ON item_vectors (embedder);

CREATE TABLE item_index (
    embedder TEXT PRIMARY KEY, collection TEXT NOT NULL, upto INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE item_gone (vector INTEGER PRIMARY KEY, embedder TEXT NOT NULL);
"""

Indexed = tuple[str, Vector]
"""The path of an item's text, and the text's vector, shape (dim,)."""


class Pending(NamedTuple):
    """A vector that Chroma lacks, with the namespace of its item as it stands in the column."""

    row: int
    namespace: str
    vector: bytes


def put(conn: sqlite3.Connection, item: int, vectors: Iterable[Indexed], embedder: str) -> None:
    """Gives an item its vectors in place of those it had. A zero one has no direction and is left out."""
    discard(conn, [item])
    conn.execute("DELETE FROM item_vectors WHERE item = ?", (item,))
    conn.executemany(
        "INSERT INTO item_vectors (item, path, embedder, vector) VALUES (?, ?, ?, ?)",
        [(item, path, embedder, blob) for path, vector in vectors if (blob := to_blob(vector)) is not None],
    )


def discard(conn: sqlite3.Connection, items: Iterable[int]) -> None:
    """Notes that vectors of these items must leave Chroma; those it never had need no note."""
    conn.execute(
        "INSERT OR IGNORE INTO item_gone (vector, embedder)"
        " SELECT v.row, v.embedder FROM item_vectors v JOIN item_index x USING (embedder)"
        " WHERE v.item IN (SELECT value FROM json_each(?)) AND v.row <= x.upto",
        (json_list(items),),
    )


def sample(conn: sqlite3.Connection, prefix: Namespace, now: datetime | None, most: int) -> dict[str, int]:
    """How many vectors there are at or below a namespace, by embedder; counts to `most` and no further."""
    found = conn.execute(
        "SELECT embedder, count(*) AS number FROM (SELECT v.embedder FROM items i JOIN item_vectors v"  # noqa: S608
        f" ON v.item = i.row WHERE {MATCHED} LIMIT :most) GROUP BY embedder",
        matched(prefix, now) | {"most": most},
    )
    return {row["embedder"]: row["number"] for row in found}


def under(
    conn: sqlite3.Connection, prefix: Namespace, now: datetime | None, embedder: str
) -> tuple[list[int], Vector]:
    """The items at or below a namespace, once for each vector, and the vectors, shape (n, dim)."""
    found = conn.execute(
        f"SELECT v.item, v.vector FROM items i JOIN item_vectors v ON v.item = i.row WHERE {MATCHED}"  # noqa: S608
        " AND v.embedder = :embedder",
        matched(prefix, now) | {"embedder": embedder},
    ).fetchall()
    return _stacked(found)


def of_items(conn: sqlite3.Connection, items: Iterable[int], embedder: str) -> tuple[list[int], Vector]:
    """These items, once for each vector, and the vectors, shape (n, dim)."""
    found = conn.execute(
        "SELECT item, vector FROM item_vectors"
        " WHERE item IN (SELECT value FROM json_each(?)) AND embedder = ?",
        (json_list(items), embedder),
    ).fetchall()
    return _stacked(found)


def owners(
    conn: sqlite3.Connection, vectors: Iterable[int], prefix: Namespace, now: datetime | None
) -> set[int]:
    """The items that vectors belong to, of those at or below a namespace."""
    found = conn.execute(
        "SELECT DISTINCT v.item FROM item_vectors v JOIN items i ON i.row = v.item"  # noqa: S608
        f" WHERE v.row IN (SELECT value FROM json_each(:rows)) AND {MATCHED}",
        matched(prefix, now) | {"rows": json_list(vectors)},
    )
    return {row["item"] for row in found}


def exceed(conn: sqlite3.Connection, embedder: str, most: int) -> bool:
    """Whether there are more than `most` vectors of an embedder."""
    row = conn.execute(
        "SELECT 1 FROM item_vectors WHERE embedder = ? LIMIT 1 OFFSET ?", (embedder, most)
    ).fetchone()
    return row is not None


def foreign(
    conn: sqlite3.Connection, embedder: str, old: str | None, after: int, most: int
) -> dict[int, list[str]]:
    """Items above a row with vectors of another embedder, and the paths these come from; in order of row.

    Args:
        old: The other embedder; None is any.
    """
    found = conn.execute(
        "SELECT item, path FROM item_vectors WHERE item IN (SELECT DISTINCT item FROM item_vectors"
        " WHERE item > :after AND embedder <> :embedder AND embedder = coalesce(:old, embedder)"
        " ORDER BY item LIMIT :most) ORDER BY item, row",
        {"embedder": embedder, "old": old, "after": after, "most": most},
    )
    paths: dict[int, list[str]] = {}
    for row in found:
        of_item = paths.setdefault(row["item"], [])
        if row["path"] not in of_item:
            of_item.append(row["path"])
    return paths


def adopt(conn: sqlite3.Connection, embedder: str, collection: str) -> None:
    """Notes which collection Chroma has for an embedder; another one than before is empty."""
    row = conn.execute("SELECT collection FROM item_index WHERE embedder = ?", (embedder,)).fetchone()
    if row is None or row["collection"] != collection:
        conn.execute("INSERT OR REPLACE INTO item_index VALUES (?, ?, 0)", (embedder, collection))
        conn.execute("DELETE FROM item_gone WHERE embedder = ?", (embedder,))


def adopted(conn: sqlite3.Connection, embedder: str, collection: str) -> bool:
    """Whether this is the collection that `adopt` noted."""
    row = conn.execute("SELECT collection FROM item_index WHERE embedder = ?", (embedder,)).fetchone()
    return row is not None and row["collection"] == collection


def embedders(conn: sqlite3.Connection) -> list[str]:
    """The embedders that Chroma has a collection for."""
    return [row["embedder"] for row in conn.execute("SELECT embedder FROM item_index ORDER BY embedder")]


def abandon(conn: sqlite3.Connection, embedder: str) -> None:
    """Notes that Chroma has nothing of an embedder."""
    conn.execute("DELETE FROM item_index WHERE embedder = ?", (embedder,))
    conn.execute("DELETE FROM item_gone WHERE embedder = ?", (embedder,))


def lacking(conn: sqlite3.Connection, embedder: str, most: int) -> list[Pending]:
    """Vectors that Chroma lacks, the oldest first."""
    found = conn.execute(
        "SELECT v.row, i.namespace, v.vector FROM item_index x JOIN item_vectors v"
        " ON v.embedder = x.embedder AND v.row > x.upto JOIN items i ON i.row = v.item"
        " WHERE x.embedder = ? ORDER BY v.row LIMIT ?",
        (embedder, most),
    )
    return [Pending(*row) for row in found]


def gone(conn: sqlite3.Connection, embedder: str, most: int) -> list[int]:
    """Vectors that Chroma has too many."""
    found = conn.execute("SELECT vector FROM item_gone WHERE embedder = ? LIMIT ?", (embedder, most))
    return [row["vector"] for row in found]


def given(conn: sqlite3.Connection, embedder: str, rows: Sequence[int]) -> None:
    """Notes that Chroma was given these vectors; one that was removed meanwhile must leave it again."""
    conn.execute("UPDATE item_index SET upto = max(upto, ?) WHERE embedder = ?", (rows[-1], embedder))
    conn.execute(
        "INSERT OR IGNORE INTO item_gone (vector, embedder) SELECT value, ? FROM json_each(?)"
        " WHERE value NOT IN (SELECT row FROM item_vectors)",
        (embedder, json_list(rows)),
    )


def taken(conn: sqlite3.Connection, rows: Iterable[int]) -> None:
    """Notes that these vectors left Chroma."""
    conn.execute("DELETE FROM item_gone WHERE vector IN (SELECT value FROM json_each(?))", (json_list(rows),))


def _stacked(found: Sequence[sqlite3.Row]) -> tuple[list[int], Vector]:
    vectors = np.frombuffer(b"".join(row["vector"] for row in found), dtype=np.float32)
    return [row["item"] for row in found], vectors.reshape(len(found), -1) if found else vectors.reshape(0, 0)


def counts(conn: sqlite3.Connection) -> dict[str, int]:
    """How many vectors the home's items have, by embedder."""
    found = conn.execute(
        "SELECT embedder, count(*) AS n FROM item_vectors GROUP BY embedder ORDER BY embedder"
    )
    return {row["embedder"]: row["n"] for row in found}


def orphans(conn: sqlite3.Connection) -> int:
    """How many vectors belong to no item."""
    return int(
        conn.execute(
            "SELECT count(*) FROM item_vectors WHERE item NOT IN (SELECT row FROM items)"
        ).fetchone()[0]
    )


def drop_orphans(conn: sqlite3.Connection) -> None:
    """Removes the vectors that belong to no item, noting that they must leave Chroma."""
    found = conn.execute("SELECT DISTINCT item FROM item_vectors WHERE item NOT IN (SELECT row FROM items)")
    gone = [row["item"] for row in found]
    discard(conn, gone)
    conn.execute(
        "DELETE FROM item_vectors WHERE item IN (SELECT value FROM json_each(?))", (json_list(gone),)
    )


def known_to_chroma(conn: sqlite3.Connection, embedder: str) -> set[int]:
    """Vectors that Chroma was given and shall still hold; those it shall drop are left out."""
    found = conn.execute(
        "SELECT v.row FROM item_vectors v JOIN item_index x USING (embedder)"
        " WHERE v.embedder = ? AND v.row <= x.upto",
        (embedder,),
    )
    return {row["row"] for row in found}
