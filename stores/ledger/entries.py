"""Tables `entries` and `sources`: entries with their rows and vectors, and which turns each rests on.

All reads are inside one base scope, but for those of the whole home that keep derived data in step.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from memcycle.core.entry import STATUSES, Entry, Granularity, Kind, Status
from memcycle.core.language.tokens import per_text
from memcycle.core.scope import Scope, Visibility
from memcycle.core.turn import sound
from memcycle.stores.ledger.columns import (
    IN,
    LISTS,
    PLAIN,
    TIMES,
    Vector,
    entry_columns,
    json_list,
    same_hash,
    to_blob,
    to_entry,
    to_vector,
)

T = TypeVar("T")

RECALLABLE: tuple[Status, ...] = ("active", "staged")
"""Statuses of what may be found."""
_FOUND = "status IN ('active', 'staged')"

SEEN = "(status = 'active' OR (status = 'staged' AND session = coalesce(:wall, session)))"
"""What of a base scope may be found from inside a wall, see `wall_of`."""


def wall_of(scope: Scope, visibility: Visibility) -> str | None:
    """The one session whose staged entries the scope may see; None where it sees those of all.

    Blank, which no session is called, where it sees none.
    """
    return None if visibility == "user" else scope.session or ""


class StoredEntry(NamedTuple):
    """An entry with its integer key and its vector; None where the embedder gave none."""

    row: int
    entry: Entry
    vector: Vector | None


_TEXT = 10
"""Where the text stands in a row of the table."""


def _where(conn: sqlite3.Connection, condition: str, *values: object) -> list[StoredEntry]:
    """Entries as the rest of a query says, which is a constant of ours."""
    found = conn.execute(f"SELECT * FROM entries {condition}", values)  # noqa: S608
    names = tuple(column[0] for column in found.description)
    return [_own(tuple(row), names) for row in found]


_STAGED = "INDEXED BY entries_staged WHERE scope_key = ? AND status = 'staged'"
_IN_ORDER = "ORDER BY session, position, granularity, id"


def _own(values: tuple[Any, ...], names: tuple[str, ...]) -> StoredEntry:
    """Metadata are all of an entry that its reader could change; reading them again is the fastest copy."""
    stored = _parsed(values, names)
    if not stored.entry.metadata:
        return stored
    own = stored.entry.model_copy(update={"metadata": json.loads(values[names.index("metadata")])})
    return stored._replace(entry=own)


@per_text(2_048, lambda values: len(values[_TEXT]))
def _parsed(values: tuple[Any, ...], names: tuple[str, ...]) -> StoredEntry:
    """The nodes of a run read the same entries one after another, and parsing is most of a read.

    The key is all that is told of an entry, so that nothing here can be out of date.
    """
    held = dict(zip(names, values, strict=True))
    return StoredEntry(held["row"], to_entry(held), to_vector(held["vector"]))


def by_rows(conn: sqlite3.Connection, rows: Iterable[int]) -> dict[int, StoredEntry]:
    """Entries by integer key. Unknown keys are left out; the caller has made sure of the scope."""
    return {one.row: one for one in _where(conn, f"WHERE row {IN}", json_list(map(int, rows)))}


def by_ids(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> dict[str, StoredEntry]:
    """Entries by id, of any status; ids unknown in this base scope are left out."""
    # The plus keeps SQLite from reading the whole scope to find a few ids in it.
    found = _where(conn, f"WHERE id {IN} AND +scope_key = ?", json_list(ids), scope.key)
    return {one.entry.id: one for one in found}


def one(conn: sqlite3.Connection, scope: Scope, entry_id: str) -> StoredEntry | None:
    """The entry with this id in this base scope, of any status."""
    found = _where(conn, "WHERE id = ? AND scope_key = ?", sound(entry_id), scope.key)
    return found[0] if found else None


def staged(conn: sqlite3.Connection, scope: Scope, session: str | None) -> list[StoredEntry]:
    """The staged entries of a session of the scope, of all sessions without one; in conversation order."""
    return _where(conn, f"{_STAGED} AND session = coalesce(?, session) {_IN_ORDER}", scope.key, session)


def bare(conn: sqlite3.Connection, scope: Scope) -> list[StoredEntry]:
    """The staged entries of the scope's session that were not embedded yet; the first written first."""
    rest = f"{_STAGED} AND session = ? AND embedder IS NULL ORDER BY row"
    return _where(conn, rest, scope.key, scope.session)


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
    resting = f"(SELECT row FROM sources WHERE scope_key = ? AND turn {IN})"  # noqa: S608 - a constant of ours
    rest = f"WHERE row IN {resting} AND granularity = coalesce(?, granularity) AND status {IN} {_IN_ORDER}"
    return _where(conn, rest, scope.key, json_list(turns), granularity, json_list(statuses))


def same(conn: sqlite3.Connection, scope: Scope, granularity: Granularity, text: str) -> list[StoredEntry]:
    """Recallable entries of the base scope whose text counts as the same; the first written first."""
    rest = f"WHERE scope_key = ? AND same = ? AND granularity = ? AND {_FOUND} ORDER BY row"
    return _where(conn, rest, scope.key, same_hash(text), granularity)


_REPEATING = f"""
WITH said (turn) AS (
    SELECT s.turn FROM entries e JOIN sources s ON s.row = e.row WHERE e.scope_key = :scope
        AND e.same IN (SELECT value FROM json_each(:hashes)) AND e.granularity = 'raw'
    UNION
    SELECT id FROM turns WHERE scope_key = :scope AND identity IN (SELECT value FROM json_each(:identities))
)
SELECT id FROM entries e
WHERE row IN (SELECT row FROM sources WHERE scope_key = :scope AND turn IN (SELECT turn FROM said))
AND {_FOUND}
AND NOT (actor = 'user' AND supersedes <> '[]')
AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.row = e.row AND s.turn NOT IN (SELECT turn FROM said))
"""  # noqa: S608 - a constant of ours


def repeating(
    conn: sqlite3.Connection, scope: Scope, hashes: Iterable[str], identities: Iterable[str]
) -> list[str]:
    """Ids of the recallable turns with these hashes of words or identities, and of what rests on such turns
    alone; a person's correction is none of them."""
    given = {"scope": scope.key, "hashes": json_list(hashes), "identities": json_list(identities)}
    return [row[0] for row in conn.execute(_REPEATING, given)]


_OF_KIND = f"AND granularity = coalesce(?, granularity) AND kind = coalesce(?, kind) AND status {IN}"
_SAID_ORDER = "session, position, CASE granularity WHEN 'raw' THEN 0 WHEN 'fact' THEN 1 ELSE 2 END, id"


def ids_of(
    conn: sqlite3.Connection,
    scope: Scope,
    *,
    granularity: Granularity | None = None,
    kind: Kind | None = None,
    statuses: Sequence[Status] = RECALLABLE,
) -> list[str]:
    """Ids in an order that does not depend on when they were written: session, turn, granularity, id.

    A scope's session narrows to that session; None narrows nothing.
    """
    found = conn.execute(
        f"SELECT id FROM entries WHERE scope_key = ? {_OF_KIND} AND session = coalesce(?, session)"  # noqa: S608
        f" ORDER BY {_SAID_ORDER}",
        (scope.key, granularity, kind, json_list(statuses), scope.session),
    )
    return [row["id"] for row in found]


def summaries(conn: sqlite3.Connection, scope: Scope) -> list[StoredEntry]:
    """Recallable working summaries, in conversation order; a scope's session narrows to that session."""
    rest = (
        "INDEXED BY entries_summaries WHERE scope_key = ? AND kind = 'working_summary'"
        f" AND session = coalesce(?, session) AND {_FOUND} {_IN_ORDER}"
    )
    return _where(conn, rest, scope.key, scope.session)


def by_time(
    conn: sqlite3.Connection,
    scope: Scope,
    *,
    granularity: Granularity | None,
    kind: Kind | None,
    statuses: Sequence[Status],
) -> Iterator[tuple[str, str]]:
    """Id and text in the order they were said, what has no time last; read as far as they are asked for."""
    return iter(
        conn.execute(
            f"SELECT id, text FROM entries INDEXED BY entries_said WHERE scope_key = ? {_OF_KIND}"  # noqa: S608
            f" ORDER BY observed_at NULLS LAST, {_SAID_ORDER}",
            (scope.key, granularity, kind, json_list(statuses)),
        )
    )


def texts(conn: sqlite3.Connection, scope: Scope) -> list[tuple[int, str, str]]:
    """Integer key, id and text of every entry of the base scope, of any status."""
    found = conn.execute("SELECT row, id, text FROM entries WHERE scope_key = ? ORDER BY row", (scope.key,))
    return [tuple(row) for row in found]


def counts(
    conn: sqlite3.Connection, scope: Scope, statuses: Sequence[Status] = RECALLABLE
) -> dict[Granularity, int]:
    """How many entries there are, by granularity; granularities without any are left out."""
    found = conn.execute(
        "SELECT granularity, count(*) FROM entries WHERE scope_key = ? AND session = coalesce(?, session)"  # noqa: S608
        f" AND status {IN} GROUP BY granularity",
        (scope.key, scope.session, json_list(statuses)),
    )
    return dict(found.fetchall())


def is_empty(conn: sqlite3.Connection, scope: Scope) -> bool:
    """Whether nothing of the base scope may be found."""
    one = f"SELECT 1 FROM entries WHERE scope_key = ? AND {_FOUND} LIMIT 1"  # noqa: S608 - a constant of ours
    return conn.execute(one, (scope.key,)).fetchone() is None


def in_order(found: Mapping[str, T], ids: Iterable[str]) -> list[T]:
    """What was found by id in the order of ids, once each; missing ones left out."""
    return [found[one] for one in dict.fromkeys(ids) if one in found]


def page(conn: sqlite3.Connection, after: int, size: int, *, active_only: bool = True) -> list[StoredEntry]:
    """The next entries of the whole home by integer key, for rebuilding what is derived from them."""
    rest = "WHERE row > ? AND (status = 'active' OR NOT ?) ORDER BY row LIMIT ?"
    return _where(conn, rest, after, active_only, size)


def anywhere(conn: sqlite3.Connection, ids: Iterable[str]) -> dict[str, StoredEntry]:
    """Entries of any scope by id, for keeping derived indexes in step; never for a caller's own ids."""
    return {one.entry.id: one for one in _where(conn, f"WHERE id {IN}", json_list(ids))}


def indexed_ids(conn: sqlite3.Connection, embedder: str) -> set[str]:
    """Ids of all entries of the home that the vector index shall hold."""
    found = conn.execute(
        "SELECT id FROM entries WHERE status = 'active' AND vector IS NOT NULL AND embedder = ?", (embedder,)
    )
    return {row["id"] for row in found}


def totals(conn: sqlite3.Connection) -> dict[Status, int]:
    """Entries of the whole home by status."""
    counted = dict.fromkeys(STATUSES, 0)
    return counted | dict(conn.execute("SELECT status, count(*) FROM entries GROUP BY status").fetchall())


def beginning(conn: sqlite3.Connection, scope: Scope, prefix: str) -> list[StoredEntry]:
    """Entries of the base scope, of any status, whose id begins so; in order of id."""
    rest = "WHERE scope_key = ? AND substr(id, 1, ?) = ? ORDER BY id"
    return _where(conn, rest, scope.key, len(prefix), sound(prefix))


def users(conn: sqlite3.Connection) -> list[str]:
    """Every user of the home who has entries."""
    return [row["user"] for row in conn.execute("SELECT DISTINCT user FROM entries ORDER BY user")]


def users_counted(conn: sqlite3.Connection) -> list[sqlite3.Row]:
    """Every user and workspace with entries: what may be recalled counted, sessions and turns, last time."""
    return conn.execute(
        "SELECT user, workspace, max(observed_at) AS last,"  # noqa: S608 - a constant of ours
        " (SELECT count(*) FROM sessions WHERE scope_key = held.scope_key) AS sessions,"
        " (SELECT count(*) FROM turns WHERE scope_key = held.scope_key) AS turns,"
        f" sum({_FOUND}) AS entries, sum({_FOUND} AND granularity = 'fact') AS facts,"
        f" sum({_FOUND} AND granularity = 'episode') AS episodes"
        " FROM entries AS held GROUP BY scope_key ORDER BY user, workspace"
    ).fetchall()


def unfit(conn: sqlite3.Connection, recorded: tuple[str, int] | None) -> list[tuple[str, str]]:
    """Id and text of the home's entries that have a vector of another embedder or length, or are recalled
    without. Their vectors may be none at all, and are not read.

    A vector of None with an embedder is that of a text without any word.
    """
    embedder, dimension = recorded or (None, None)
    found = conn.execute(
        "SELECT id, text FROM entries WHERE (embedder IS NULL AND status IN ('active', 'staged')"
        " OR embedder <> :embedder OR length(vector) <> 4 * :dimension) ORDER BY row",
        {"embedder": embedder, "dimension": dimension},
    )
    return [tuple(row) for row in found]


_COLUMNS = (
    "row", "scope_key", "user", "workspace", "session", "same", "zone", "vector", *PLAIN, *LISTS, *TIMES,
)  # fmt: skip
_INSERT = (
    f"INSERT INTO entries ({', '.join(_COLUMNS)}, position) VALUES (:{', :'.join(_COLUMNS)},"  # noqa: S608
    f" coalesce((SELECT position FROM turns WHERE scope_key = :scope_key AND id = :first), {1 << 40}))"
)
"""The place is that of the first source turn; without a known one, after all that have one."""

_CHANGING = (
    "turns", "related_turns", "status", "supersedes", "superseded_by", "valid_until", "quote", "importance",
    "reinforcement", "metadata",
)  # fmt: skip
_UPDATE = f"UPDATE entries SET {', '.join(f'{name} = :{name}' for name in _CHANGING)} WHERE row = :row"  # noqa: S608


def insert(conn: sqlite3.Connection, given: Sequence[tuple[Entry, Vector | None]]) -> list[StoredEntry]:
    """Adds entries whose ids are new, in order, with their vectors. Their scopes must carry the session.

    A vector of None with `entry.embedder` of None means: not embedded yet.
    """
    after = conn.execute("SELECT coalesce(max(row), 0) FROM entries").fetchone()[0]
    stored = [StoredEntry(row, *one) for row, one in enumerate(given, start=after + 1)]
    conn.executemany(
        _INSERT,
        (
            entry_columns(entry)
            | {"row": row, "vector": to_blob(vector), "first": next(iter(entry.turns), None)}
            for row, entry, vector in stored
        ),
    )
    _put_sources(conn, stored)
    return stored


def change(conn: sqlite3.Connection, stored: StoredEntry, **changes: Any) -> StoredEntry:
    """Changes the state of an entry: status, valid_until, supersedes, superseded_by; its sources, turns,
    related_turns and quote; its weight, importance and reinforcement; its metadata.

    The text and everything else is immutable: another text is another entry.
    """
    fixed = changes.keys() - set(_CHANGING)
    assert not fixed, f"{sorted(fixed)} of an entry cannot change"  # noqa: S101 - it would not be stored
    entry = stored.entry.model_copy(update=changes)
    conn.execute(_UPDATE, entry_columns(entry) | {"row": stored.row})
    if entry.turns != stored.entry.turns:
        conn.execute("DELETE FROM sources WHERE row = ?", (stored.row,))
        _put_sources(conn, [stored._replace(entry=entry)])
    return stored._replace(entry=entry)


def set_vectors(conn: sqlite3.Connection, vectors: Iterable[tuple[str, Vector]], embedder: str) -> None:
    """Stores vectors by id, with the embedder they come from: one may be gone, and its row another's now."""
    conn.executemany(
        "UPDATE entries SET vector = ?, embedder = ? WHERE id = ?",
        [(to_blob(vector), embedder, entry) for entry, vector in vectors],
    )


def delete(conn: sqlite3.Connection, rows: Iterable[int]) -> None:
    """Removes entries for good, with what points at their rows."""
    conn.execute(f"DELETE FROM entries WHERE row {IN}", (json_list(rows),))  # noqa: S608


def _put_sources(conn: sqlite3.Connection, stored: Iterable[StoredEntry]) -> None:
    conn.executemany(
        "INSERT OR IGNORE INTO sources (scope_key, turn, row) VALUES (?, ?, ?)",
        [(one.entry.scope.key, turn, one.row) for one in stored for turn in one.entry.turns],
    )
