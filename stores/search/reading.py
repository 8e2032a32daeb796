"""Reads from the ledger what a search needs: the copy of a scope, which of its entries a filter allows."""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from itertools import repeat
from typing import TypeVar

import numpy as np

from memcycle.core.entry import GRANULARITIES
from memcycle.core.scope import Scope
from memcycle.stores.ledger import entries
from memcycle.stores.ledger.columns import json_list, to_time
from memcycle.stores.request import Filters
from memcycle.stores.search import lexical
from memcycle.stores.search.bm25 import FIELDS, Documents, Ints
from memcycle.stores.search.copies import Copy, Vectors
from memcycle.stores.search.lexical import Held
from memcycle.stores.search.merging import merged
from memcycle.stores.search.resting import with_facts
from memcycle.stores.writer import lexical_rows

A = TypeVar("A")
B = TypeVar("B")

# A vector of another embedder says nothing beside the query's.
_COPIED = """
SELECT e.row, e.id, granularity, status, session, position, e.speaker, observed_at, expires_at,
    CASE granularity WHEN 'episode' THEN '[]' ELSE turns END AS turns,
    CASE granularity WHEN 'raw' THEN observed_at ELSE coalesce(event_time, observed_at) END AS time,
    importance, reinforcement, CASE WHEN embedder = :embedder THEN vector END AS vector,
    own, dated, before, words, traits
FROM entries e LEFT JOIN lexical_words w ON w.row = e.row
WHERE {scope} = :scope AND status IN ('active', 'staged')
"""
_WHOLE = _COPIED.format(scope="scope_key") + " ORDER BY e.row"
# The plus keeps SQLite from reading the whole scope to find a few rows in it.
_FEW = _COPIED.format(scope="+scope_key")
_COLUMNS = (
    "row", "id", "granularity", "status", "session", "position", "speaker", "observed_at", "expires_at",
    "turns", "time", "importance", "reinforcement", "vector",
)  # fmt: skip
"""Those of the entry, in the order of the query."""
# The words of turns that wait for their commit are read from the texts, and so depend on the turns before.
_CHANGED = """
AND e.row IN (SELECT value FROM json_each(:rows) UNION
    SELECT row FROM entries INDEXED BY entries_staged WHERE scope_key = :scope AND status = 'staged'
    AND granularity = 'raw' AND session IN (SELECT session FROM entries
        WHERE row IN (SELECT value FROM json_each(:rows)) AND granularity = 'raw'))
"""
_NAMED = """
AND e.row IN (SELECT value FROM json_each(:rows) UNION
    SELECT row FROM entries WHERE id IN (SELECT value FROM json_each(:ids)))
"""
_ALLOWED = """
SELECT row FROM entries WHERE scope_key = :scope AND status IN ('active', 'staged')
AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
AND (:speakers IS NULL OR speaker IN (SELECT value FROM json_each(:speakers)))
AND (:sessions IS NULL OR session IN (SELECT value FROM json_each(:sessions)))
AND (:since IS NULL OR coalesce(event_time, observed_at) >= :since)
AND (:until IS NULL OR coalesce(event_time, observed_at) <= :until)
AND (:persons IS NULL OR EXISTS (
    SELECT 1 FROM json_each(persons) p JOIN json_each(:persons) q ON p.value = q.value COLLATE NOCASE))
AND (:entities IS NULL OR EXISTS (
    SELECT 1 FROM json_each(entities) p JOIN json_each(:entities) q ON p.value = q.value COLLATE NOCASE))
AND (:locations IS NULL OR EXISTS (
    SELECT 1 FROM json_each(locations) p JOIN json_each(:locations) q ON p.value = q.value COLLATE NOCASE))
"""
_LISTS = ("kinds", "speakers", "sessions", "persons", "entities", "locations")
_CODES = {name: code for code, name in enumerate(GRANULARITIES)}


def whole(conn: sqlite3.Connection, scope: Scope, embedder: str, dim: int) -> Copy:
    """A copy of everything recallable in the base scope, with vectors of this embedder and dimension."""
    found = conn.execute(_WHOLE, {"scope": scope.key, "embedder": embedder}).fetchall()
    return _copy(conn, found, dim)


def named(
    conn: sqlite3.Connection,
    scope: Scope,
    embedder: str,
    dim: int,
    *,
    rows: Collection[int],
    ids: Collection[str],
) -> Copy:
    """The same of these ledger rows and ids only."""
    parameters = {
        "scope": scope.key,
        "embedder": embedder,
        "rows": json_list(rows),
        "ids": json_list(ids),
    }
    return _copy(conn, conn.execute(_FEW + _NAMED + " ORDER BY e.row", parameters).fetchall(), dim)


def renewed(
    conn: sqlite3.Connection, scope: Scope, embedder: str, dim: int, *, copy: Copy, rows: Collection[int]
) -> Copy:
    """A copy brought up to date, after which these ledger rows changed: what `whole` gives now."""
    parameters = {"scope": scope.key, "embedder": embedder, "rows": json_list(rows)}
    new = _copy(conn, conn.execute(_FEW + _CHANGED + " ORDER BY e.row", parameters).fetchall(), dim)
    return merged(copy, [*rows, *new.rows.tolist()], new)


def size(conn: sqlite3.Connection, scope: Scope) -> int:
    """How many entries of any status the base scope has."""
    return int(conn.execute("SELECT count(*) FROM entries WHERE scope_key = ?", (scope.key,)).fetchone()[0])


def speakers(conn: sqlite3.Connection, scope: Scope) -> frozenset[str]:
    """Who speaks in what the scope's session may see."""
    found = conn.execute(
        "SELECT DISTINCT speaker FROM entries WHERE scope_key = ?"
        " AND (status = 'active' OR (status = 'staged' AND session = ?))",
        (scope.key, scope.session),
    )
    return frozenset(row[0] for row in found if row[0])


def last_said(conn: sqlite3.Connection, scope: Scope) -> float:
    """When the last entry that the scope's session may see was said, in seconds; NaN where unknown."""
    found = conn.execute(
        "SELECT max(observed_at) FROM entries WHERE scope_key = ?"
        " AND (status = 'active' OR (status = 'staged' AND session = ?))",
        (scope.key, scope.session),
    )
    return _seconds(found.fetchone()[0])


def allowed(conn: sqlite3.Connection, scope: Scope, filters: Filters) -> Ints:
    """Ledger rows of the base scope's recallable entries that pass the filters, of any session and age."""
    lists = {name: getattr(filters, name) for name in _LISTS}
    parameters = {name: None if values is None else json_list(values) for name, values in lists.items()}
    parameters |= {"scope": scope.key, "since": to_time(filters.since), "until": to_time(filters.until)}
    return np.array([row[0] for row in conn.execute(_ALLOWED, parameters)], dtype=np.int64)


def _copy(conn: sqlite3.Connection, found: Sequence[sqlite3.Row], dim: int) -> Copy:
    # Column by column: asking each row for each name is the larger part of reading a scope.
    column = dict(zip(_COLUMNS, zip(*found, strict=True) if found else repeat(()), strict=False))
    session, sessions = _coded(column["session"])
    speaker, speakers = _coded(column["speaker"])
    granularity = _ints(map(_CODES.__getitem__, column["granularity"]))
    staged = np.array([status == "staged" for status in column["status"]], dtype=bool)
    turns = _each(column["turns"], lambda text: tuple(json.loads(text)))
    kept = _held(conn, found)
    return Copy(
        rows=_ints(column["row"]),
        ids=list(column["id"]),
        granularity=granularity,
        session=session,
        sessions=sessions,
        staged=staged,
        position=_ints(column["position"]),
        speaker=speaker,
        speakers=speakers,
        time=np.array(_each(column["time"], _seconds)),
        said=np.array(_each(column["observed_at"], _seconds)),
        expires=np.array(_each(column["expires_at"], _seconds)),
        traits=_ints(one.traits for one in kept),
        turns=turns,
        importance=np.array(column["importance"], dtype=float),
        reinforcement=np.array(column["reinforcement"], dtype=float),
        vectors=_vectors(column["vector"], dim),
        documents=with_facts(_documents(column["row"], kept), turns, granularity, session, staged),
    )


def _held(conn: sqlite3.Connection, found: Sequence[sqlite3.Row]) -> list[Held]:
    """The words and traits of each: as kept, or read from the text where the lexical view has none of it."""
    lacking = [row["row"] for row in found if row["traits"] is None]
    stored = entries.by_rows(conn, lacking).values()
    read = {row.row: lexical.held(row) for row in lexical_rows(conn, list(stored))}
    return [read[row["row"]] if row["traits"] is None else lexical.stored(row) for row in found]


def _documents(rows: Sequence[int], kept: Sequence[Held]) -> Documents:
    return Documents(
        rows=_ints(rows),
        fields=np.array([(*one.fields, 0) for one in kept], dtype=np.int64).reshape(-1, FIELDS),
        words=np.concatenate([lexical.numbers(()), *(one.words for one in kept)]),
    )


def _coded(names: Sequence[str | None]) -> tuple[Ints, list[str]]:
    """Places in the names there are, in order of appearance; -1 for no name."""
    known = list(dict.fromkeys(name for name in names if name))
    codes = {name: code for code, name in enumerate(known)}
    return _ints(codes.get(name or "", -1) for name in names), known


def _each(values: Sequence[A], of: Callable[[A], B]) -> list[B]:
    """A function of each, asked once for equal ones: the facts of a turn share its time and its id."""
    known = {value: of(value) for value in set(values)}
    return [known[value] for value in values]


def _vectors(blobs: Sequence[bytes | None], dim: int) -> Vectors:
    blank = bytes(dim * np.dtype(np.float32).itemsize)
    joined = b"".join(blob or blank for blob in blobs)
    return np.frombuffer(joined, dtype=np.float32).reshape(len(blobs), dim)


def _seconds(stored: str | None) -> float:
    return datetime.fromisoformat(stored).timestamp() if stored else float("nan")


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)
