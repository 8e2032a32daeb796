"""Table `entries`, read: entries with their rows and vectors, always inside one base scope.

For what changes them; what only reads them takes `plain_entries`.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from memcycle.core.entry import STATUSES, Entry, Granularity, Kind, Status
from memcycle.core.scope import Scope
from memcycle.stores.ledger.columns import Vector, json_list, same_hash, to_entry, to_vector

T = TypeVar("T")


class StoredEntry(NamedTuple):
    """An entry with its integer key and its vector; None where the embedder gave none."""

    row: int
    entry: Entry
    vector: Vector | None


class Listing(NamedTuple):
    """Which entries of a scope to list; None does not narrow. A scope's session narrows to that session."""

    granularity: Granularity | None = None
    kind: Kind | None = None
    statuses: tuple[Status, ...] = ("active", "staged")


OF_ROWS = "row IN (SELECT value FROM json_each(?))"
# The plus keeps SQLite from reading the whole scope to find a few ids in it.
OF_IDS = "id IN (SELECT value FROM json_each(?)) AND +scope_key = ?"
OF_TURNS = (
    "row IN (SELECT row FROM sources WHERE scope_key = ? AND turn IN (SELECT value FROM json_each(?)))"
    " AND granularity = coalesce(?, granularity) AND status IN (SELECT value FROM json_each(?))"
)


def _stored(rows: sqlite3.Cursor) -> list[StoredEntry]:
    return [StoredEntry(row["row"], to_entry(row), to_vector(row["vector"])) for row in rows]


def by_rows(conn: sqlite3.Connection, rows: Iterable[int]) -> dict[int, StoredEntry]:
    """Entries by integer key. Unknown keys are left out; the caller has made sure of the scope."""
    found = conn.execute(f"SELECT * FROM entries WHERE {OF_ROWS}", (json_list(map(int, rows)),))  # noqa: S608
    return {stored.row: stored for stored in _stored(found)}


def by_ids(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> dict[str, StoredEntry]:
    """Entries by id, of any status; ids unknown in this base scope are left out."""
    found = conn.execute(f"SELECT * FROM entries WHERE {OF_IDS}", (json_list(ids), scope.key))  # noqa: S608
    return {stored.entry.id: stored for stored in _stored(found)}


def one(conn: sqlite3.Connection, scope: Scope, entry_id: str) -> StoredEntry | None:
    """The entry with this id in this base scope, of any status."""
    found = conn.execute("SELECT * FROM entries WHERE id = ? AND scope_key = ?", (entry_id, scope.key))
    return next(iter(_stored(found)), None)


def staged(conn: sqlite3.Connection, scope: Scope) -> list[StoredEntry]:
    """The staged entries of the scope's session, of all sessions without one; in conversation order."""
    found = conn.execute(
        "SELECT * FROM entries INDEXED BY entries_staged"
        " WHERE scope_key = ? AND status = 'staged' AND session = coalesce(?, session)"
        " ORDER BY session, position, granularity, id",
        (scope.key, scope.session),
    )
    return _stored(found)


def staged_after(conn: sqlite3.Connection, scope: Scope, position: int) -> set[int]:
    """Integer keys of the session's staged entries whose turns of that session all stand after a place."""
    found = conn.execute(
        "SELECT e.row FROM entries e INDEXED BY entries_staged JOIN sources s ON s.row = e.row"
        " JOIN turns t ON t.scope_key = s.scope_key AND t.id = s.turn AND t.session = e.session"
        " WHERE e.scope_key = ? AND e.session = ? AND e.status = 'staged'"
        " GROUP BY e.row HAVING min(t.position) > ?",
        (scope.key, scope.session, position),
    )
    return {row["row"] for row in found}


def by_turns(
    conn: sqlite3.Connection,
    scope: Scope,
    turns: Iterable[str],
    granularity: Granularity | None = None,
    statuses: Sequence[Status] = STATUSES,
) -> list[StoredEntry]:
    """Entries of these statuses that rest on any of the turns; in conversation order."""
    found = conn.execute(
        f"SELECT * FROM entries WHERE {OF_TURNS} ORDER BY session, position, granularity, id",  # noqa: S608
        (scope.key, json_list(turns), granularity, json_list(statuses)),
    )
    return _stored(found)


def same(conn: sqlite3.Connection, scope: Scope, granularity: Granularity, text: str) -> list[StoredEntry]:
    """Recallable entries of the base scope whose text counts as the same; the first written first."""
    found = conn.execute(
        "SELECT * FROM entries WHERE scope_key = ? AND same = ? AND granularity = ?"
        " AND status IN ('active', 'staged') ORDER BY row",
        (scope.key, same_hash(text), granularity),
    )
    return _stored(found)


def ids_of(conn: sqlite3.Connection, scope: Scope, listing: Listing) -> list[str]:
    """Ids in an order that does not depend on when they were written: session, turn, granularity, id."""
    found = conn.execute(
        "SELECT id FROM entries WHERE scope_key = ? AND session = coalesce(?, session)"
        " AND granularity = coalesce(?, granularity) AND kind = coalesce(?, kind)"
        " AND status IN (SELECT value FROM json_each(?))"
        " ORDER BY session, position, CASE granularity WHEN 'raw' THEN 0 WHEN 'fact' THEN 1 ELSE 2 END, id",
        (scope.key, scope.session, listing.granularity, listing.kind, json_list(listing.statuses)),
    )
    return [row["id"] for row in found]


def counts(conn: sqlite3.Connection, scope: Scope, listing: Listing) -> dict[Granularity, int]:
    """How many entries `ids_of` would list, by granularity."""
    found = conn.execute(
        "SELECT granularity, count(*) AS n FROM entries"
        " WHERE scope_key = ? AND session = coalesce(?, session)"
        " AND granularity = coalesce(?, granularity) AND kind = coalesce(?, kind)"
        " AND status IN (SELECT value FROM json_each(?)) GROUP BY granularity",
        (scope.key, scope.session, listing.granularity, listing.kind, json_list(listing.statuses)),
    )
    return {row["granularity"]: row["n"] for row in found}


def in_order(found: Mapping[str, T], ids: Iterable[str]) -> list[T]:
    """What was found by id in the order of ids, once each; missing ones left out."""
    return [found[one] for one in dict.fromkeys(ids) if one in found]


def page(conn: sqlite3.Connection, after: int, size: int, *, active_only: bool = True) -> list[StoredEntry]:
    """The next entries of the whole home by integer key, for rebuilding what is derived from them."""
    found = conn.execute(
        "SELECT * FROM entries WHERE row > ? AND (status = 'active' OR NOT ?) ORDER BY row LIMIT ?",
        (after, active_only, size),
    )
    return _stored(found)


def anywhere(conn: sqlite3.Connection, ids: Iterable[str]) -> dict[str, StoredEntry]:
    """Entries of any scope by id, for keeping derived indexes in step; never for a caller's own ids."""
    found = conn.execute(
        "SELECT * FROM entries WHERE id IN (SELECT value FROM json_each(?))", (json_list(ids),)
    )
    return {stored.entry.id: stored for stored in _stored(found)}


def indexed_ids(conn: sqlite3.Connection, embedder: str) -> set[str]:
    """Ids of all entries of the home that the vector index shall hold."""
    found = conn.execute(
        "SELECT id FROM entries WHERE status = 'active' AND vector IS NOT NULL AND embedder = ?", (embedder,)
    )
    return {row["id"] for row in found}


def without_vector(conn: sqlite3.Connection, after: int, size: int) -> list[StoredEntry]:
    """The next recallable entries of the home, by integer key, that were not embedded yet."""
    found = conn.execute(
        "SELECT * FROM entries WHERE row > ? AND embedder IS NULL AND status IN ('active', 'staged')"
        " ORDER BY row LIMIT ?",
        (after, size),
    )
    return _stored(found)


def totals(conn: sqlite3.Connection) -> dict[str, int]:
    """Entries of the whole home: by status, and the recallable ones `without_vector`."""
    found = conn.execute("SELECT status, count(*) AS n FROM entries GROUP BY status")
    counted = {row["status"]: row["n"] for row in found}
    bare = conn.execute(
        "SELECT count(*) FROM entries WHERE embedder IS NULL AND status IN ('active', 'staged')"
    ).fetchone()[0]
    return {status: counted.get(status, 0) for status in ("active", "staged", "superseded", "forgotten")} | {
        "without_vector": int(bare)
    }


def beginning(conn: sqlite3.Connection, scope: Scope, prefix: str) -> list[StoredEntry]:
    """Entries of the base scope, of any status, whose id begins so; in order of id."""
    found = conn.execute(
        "SELECT * FROM entries WHERE scope_key = ? AND substr(id, 1, ?) = ? ORDER BY id",
        (scope.key, len(prefix), prefix),
    )
    return _stored(found)


def users(conn: sqlite3.Connection) -> list[str]:
    """Every user of the home who has entries."""
    return [row["user"] for row in conn.execute("SELECT DISTINCT user FROM entries ORDER BY user")]


_UNFIT = "embedder IS NOT NULL AND (embedder <> :embedder OR vector IS NOT NULL AND length(vector) <> :bytes)"


def unfit_vectors(conn: sqlite3.Connection, embedder: str, dimension: int) -> int:
    """How many entries of the home, of any status, have a vector of another embedder or length."""
    query = f"SELECT count(*) FROM entries WHERE {_UNFIT}"  # noqa: S608 - a constant of ours
    found = conn.execute(query, {"embedder": embedder, "bytes": 4 * dimension}).fetchone()
    return int(found[0])


def with_unfit_vector(
    conn: sqlite3.Connection, embedder: str, dimension: int, *, after: int, size: int
) -> list[tuple[int, str, str]]:
    """Integer key, id and text of the next of them. Their vectors may be none at all, and are not read."""
    found = conn.execute(
        f"SELECT row, id, text FROM entries WHERE row > :after AND {_UNFIT} ORDER BY row LIMIT :size",  # noqa: S608
        {"embedder": embedder, "bytes": 4 * dimension, "after": after, "size": size},
    )
    return [(row["row"], row["id"], row["text"]) for row in found]
