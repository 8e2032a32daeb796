"""Snapshots of scopes in memory: what a search looks through, read from the ledger and kept in step with it.

Everything that ranking needs of an entry is computed once, when it is written or when the snapshot is read,
and never from text during a search. A snapshot is kept with the number of its scope's last change
(table `changes`): after any write, also of another process, the next search renews it or reads another. So
what is forgotten is forgotten here too.
"""

import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from memcycle.core.entry import GRANULARITIES
from memcycle.core.scope import Scope
from memcycle.stores.ledger import entries
from memcycle.stores.ledger.columns import Vector, json_list, to_time
from memcycle.stores.search import lexical
from memcycle.stores.search.bm25 import (
    FIELDS,
    Documents,
    Flags,
    Floats,
    Ints,
    Postings,
    Words,
    chosen,
    idf,
    places,
    postings,
    with_facts,
)
from memcycle.stores.search.lexical import Kept, LexicalTerms
from memcycle.stores.search.request import Filters

CLOSE = 600.0
"""Seconds between two turns that still belong to one stretch of talk."""
SHARES = (0.6, 0.3, 0.3)
"""How much the turn before, the one before that, and the next one add to a turn's context."""


class Around(NamedTuple):
    """Places of the turns around each entry in its session, (entries,) each, -1 where there is none near."""

    before: Ints
    earlier: Ints
    after: Ints


@dataclass(frozen=True)
class Snapshot:
    """The active and staged entries of one base scope, in the order of their ledger rows, (entries,) each.

    Attributes:
        ids: Their ids.
        granularity, session: Places in `GRANULARITIES` and `sessions`.
        walled: Whether it is seen in its own session alone: staged, where the settings wall that in.
        position: Place of the first source turn in its session.
        speaker: Place in `speakers`, -1 where nobody speaks.
        time: When it was said or happened; said: when it was said; expires. Seconds, NaN where unknown.
        traits: See `memcycle.stores.search.lexical`.
        turns: Ids of the turns that a raw entry or a fact rests on.
        vectors: (entries, dim), a zero row where an entry has none of the present embedder.
        vocabulary: The words that are used, as numbers, ascending.
        own: Their words, as places in it, without those of facts that rest on a turn.
        once: The words of their own texts, each once.
    """

    rows: Ints
    ids: list[str]
    granularity: Ints
    session: Ints
    sessions: list[str]
    walled: Flags
    position: Ints
    speaker: Ints
    speakers: list[str]
    time: Floats
    said: Floats
    expires: Floats
    traits: Ints
    turns: list[tuple[str, ...]]
    importance: Floats
    reinforcement: Floats
    vectors: Vector
    vocabulary: Ints
    own: Documents
    once: Documents

    @cached_property
    def documents(self) -> Documents:
        """Their words, those of the facts that rest on a turn among its own."""
        return with_facts(self.own, self.turns, self.granularity, self.session, self.walled)

    def postings(self, terms: Ints) -> Postings:
        """Where these terms, as numbers, ascending and each once, stand."""
        return postings(self.documents, places(self.vocabulary, terms)[self.documents.words], len(terms))

    @cached_property
    def lengths(self) -> Floats:
        """Words in each view, (entries, 3)."""
        return self.documents.lengths

    def idf_mass(self, among: Flags) -> Floats:
        """The idf of each entry's own words, each once, summed; the statistics are those of these entries."""
        words, docs = self.once.words, np.repeat(np.arange(len(self.rows)), self.once.fields[:, 0])
        weight = idf(np.bincount(words, weights=among[docs]), int(among.sum()))
        return np.bincount(docs, weights=weight[words], minlength=len(self.rows)).astype(np.float64)

    @cached_property
    def order(self) -> Ints:
        """Each entry's place among the ids in order: what decides between equal scores."""
        order = np.empty(len(self.ids), dtype=np.int64)
        order[sorted(range(len(self.ids)), key=self.ids.__getitem__)] = np.arange(len(self.ids))
        return order

    def speaking(self, among: Flags) -> frozenset[str]:
        """Who speaks in these entries."""
        return frozenset(self.speakers[code] for code in np.unique(self.speaker[among]).tolist() if code >= 0)

    def last_said(self, among: Flags) -> float:
        """When the last of these entries was said, in seconds; not finite where no time is known."""
        return float(np.fmax.reduce(self.said[among], initial=-np.inf))

    @cached_property
    def around(self) -> Around:
        """The raw entries around each raw entry, of the same session and stretch of talk."""
        raw = np.flatnonzero(self.granularity == 0)
        raw = raw[np.lexsort((self.position[raw], self.session[raw]))]
        # Turns of an unknown place all stand at the same one: nothing is beside them.
        beside = (np.diff(self.session[raw]) == 0) & (np.diff(self.position[raw]) > 0)
        # What its session alone sees must not weigh on what others see.
        beside &= np.diff(self.walled[raw].astype(np.int8)) == 0
        near = beside & ~(np.abs(np.diff(self.said[raw])) > CLOSE)
        before, after = (np.full(len(self.rows), -1) for _ in range(2))
        before[raw[1:][near]], after[raw[:-1][near]] = raw[:-1][near], raw[1:][near]
        return Around(before, at(before, before, -1), after)

    @cached_property
    def norms(self) -> Floats:
        """Length of each entry's context vector: its own and the shares of those around it; at least 1e-9."""
        total = self.vectors.copy()
        for share, near in zip(SHARES, self.around, strict=True):
            total[near >= 0] += np.float32(share) * self.vectors[near[near >= 0]]
        return np.asarray(np.maximum(np.linalg.norm(total, axis=1), 1e-9), dtype=np.float64)


def begins(values: NDArray[Any]) -> Flags:
    """Where a value differs from the one before it; the first does."""
    return np.append(True, np.diff(values) != 0)[: len(values)]


def at(values: NDArray[Any], places: Ints, missing: float) -> NDArray[Any]:
    """The values at these places; `missing` where a place is negative."""
    return np.where(places >= 0, values[places] if len(values) else missing, missing)


class SnapshotAt(NamedTuple):
    """A snapshot as of a change of its scope."""

    change: int
    snapshot: Snapshot


class Snapshots:
    """The snapshots used last, within a bound of bytes of their vectors. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most, self.nbytes = most, 0
        self._lock = threading.Lock()
        self._of_scope: OrderedDict[str, SnapshotAt] = OrderedDict()

    def get(self, scope: Scope) -> SnapshotAt | None:
        """That of the base scope, and of which change it is."""
        with self._lock:
            found = self._of_scope.get(scope.key)
            if found is not None:
                self._of_scope.move_to_end(scope.key)
            return found

    def put(self, scope: Scope, change: int, snapshot: Snapshot) -> None:
        """Keeps a snapshot, unless there is one of a later change; those not used for longest make room.

        One above the bound is not kept.
        """
        with self._lock:
            held = self._of_scope.get(scope.key)
            if held is not None and held.change >= change:
                return
            self._drop(scope.key)
            if snapshot.vectors.nbytes > self._most:
                return
            self._of_scope[scope.key] = SnapshotAt(change, snapshot)
            self.nbytes += snapshot.vectors.nbytes
            while self.nbytes > self._most:
                self._drop(next(iter(self._of_scope)))

    def drop(self, scope: Scope) -> None:
        """Keeps none of the base scope."""
        with self._lock:
            self._drop(scope.key)

    def _drop(self, key: str) -> None:
        found = self._of_scope.pop(key, None)
        if found is not None:
            self.nbytes -= found.snapshot.vectors.nbytes


_PLAIN = (
    "granularity",
    "walled",
    "position",
    "time",
    "said",
    "expires",
    "traits",
    "importance",
    "reinforcement",
)


def _merged(old: Snapshot, changed: Sequence[int], new: Snapshot) -> Snapshot:
    """The old one without the changed ledger rows, and with all of the new one: what reading it whole gives.

    Args:
        changed: Rows that are left out of the old one, those of the new one among them.
    """
    kept = np.flatnonzero(~np.isin(old.rows, np.asarray(changed, dtype=np.int64)))
    rows = np.concatenate([old.rows[kept], new.rows])
    order = np.argsort(rows)
    # Places in both laid end to end.
    places = np.concatenate([kept, np.arange(len(new.rows)) + len(old.rows)])[order]
    plain = {name: np.concatenate([getattr(old, name), getattr(new, name)])[places] for name in _PLAIN}
    session, sessions = _merged_codes((old.session, old.sessions), (new.session, new.sessions), places)
    speaker, speakers = _merged_codes((old.speaker, old.speakers), (new.speaker, new.speakers), places)
    turns, ids = old.turns + new.turns, old.ids + new.ids
    vocabulary = np.union1d(old.vocabulary, new.vocabulary)
    codes = [np.searchsorted(vocabulary, one.vocabulary).astype(np.int32) for one in (old, new)]
    own = chosen(_joined((old.own, new.own), codes), places)
    once = chosen(_joined((old.once, new.once), codes), places)
    used = np.bincount(own.words, minlength=len(vocabulary)) > 0
    left = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return Snapshot(
        rows=rows[order],
        ids=[ids[place] for place in places.tolist()],
        session=session,
        sessions=sessions,
        speaker=speaker,
        speakers=speakers,
        turns=[turns[place] for place in places.tolist()],
        vectors=np.concatenate([old.vectors, new.vectors])[places],
        vocabulary=vocabulary[used],
        own=own._replace(words=left[own.words]),
        once=once._replace(words=left[once.words]),
        **plain,
    )


def _joined(documents: Sequence[Documents], codes: Sequence[Words]) -> Documents:
    """Documents one after another, their words as what they are in another vocabulary."""
    rows, fields, words = zip(*documents, strict=True)
    recoded = [code[own] for code, own in zip(codes, words, strict=True)]
    return Documents(np.concatenate(rows), np.concatenate(fields), np.concatenate(recoded))


def _merged_codes(
    one: tuple[Ints, list[str]], other: tuple[Ints, list[str]], places: Ints
) -> tuple[Ints, list[str]]:
    """Codes of two snapshots in one code: places in the names that are used, in order of appearance."""
    joined = [names[code] if code >= 0 else None for codes, names in (one, other) for code in codes.tolist()]
    return _codes([joined[place] for place in places.tolist()])


A = TypeVar("A")
B = TypeVar("B")

# A vector of another embedder says nothing beside the query's. Facts are not looked up where few are read.
_COPIED = """
SELECT e.row, e.id, granularity, status, session, position, e.speaker, observed_at, expires_at,
    CASE WHEN granularity = 'episode' OR :few THEN '[]' ELSE turns END AS turns,
    CASE granularity WHEN 'raw' THEN observed_at ELSE coalesce(event_time, observed_at) END AS time,
    importance, reinforcement, CASE WHEN embedder = :embedder THEN vector END AS vector,
    own, dated, before, words, traits
FROM entries e LEFT JOIN lexical_words w ON w.row = e.row
WHERE {scope} = :scope AND status IN ('active', 'staged')
"""
_WHOLE = _COPIED.format(scope="scope_key") + " ORDER BY e.row"
# The plus keeps SQLite from reading the whole scope to find a few rows in it.
_FEW = _COPIED.format(scope="+scope_key")
_TERMS = LexicalTerms._fields
_COLUMNS = (
    "row", "id", "granularity", "status", "session", "position", "speaker", "observed_at", "expires_at",
    "turns", "time", "importance", "reinforcement", "vector", *_TERMS,
)  # fmt: skip
"""In the order of the query."""
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
AND (:since IS NULL OR coalesce(event_time, observed_at) >= :since)
AND (:until IS NULL OR coalesce(event_time, observed_at) <= :until)
"""
_GRANULARITY = {name: code for code, name in enumerate(GRANULARITIES)}


def read_whole(
    conn: sqlite3.Connection, scope: Scope, embedder: str, dim: int, *, walls: bool = False
) -> Snapshot:
    """Everything recallable in the base scope, with vectors of this embedder and dimension.

    Args:
        walls: Whether what is staged is seen in its own session alone.
    """
    parameters = {"scope": scope.key, "embedder": embedder, "few": False}
    found = conn.execute(_WHOLE, parameters).fetchall()
    return _snapshot(conn, found, dim, walls)


def read_some(
    conn: sqlite3.Connection,
    scope: Scope,
    embedder: str,
    dim: int,
    *,
    rows: Collection[int],
    kept: Kept,
    walls: bool = False,
) -> Snapshot:
    """The same of these ledger rows only, without what facts rest on; what is kept is not read again."""
    keep(conn, scope, embedder, kept, rows=set(rows) - kept.entries.keys())
    found = [kept.entries[row] for row in sorted(rows) if row in kept.entries]
    return _snapshot(conn, found, dim, walls)


def keep(
    conn: sqlite3.Connection,
    scope: Scope,
    embedder: str,
    kept: Kept,
    *,
    rows: Collection[int] = (),
    ids: Collection[str] = (),
) -> dict[str, int]:
    """Reads what is recallable of these ledger rows and ids of the base scope; gives the rows of the ids."""
    lacking = [one for one in ids if kept.rows.get(one) not in kept.entries]
    if rows or lacking:
        named = {"rows": json_list(rows), "ids": json_list(lacking)}
        found = conn.execute(
            _FEW + _NAMED, {"scope": scope.key, "embedder": embedder, "few": True, **named}
        ).fetchall()
        kept.entries.update((row[0], row) for row in found)
        kept.rows.update((row[1], row[0]) for row in found)
        kept.waiting.update(row[0] for row in found if row["status"] == "staged")
    return {one: kept.rows[one] for one in ids if kept.rows.get(one) in kept.entries}


def renew(
    conn: sqlite3.Connection,
    scope: Scope,
    embedder: str,
    dim: int,
    *,
    old: Snapshot,
    rows: Collection[int],
    walls: bool = False,
) -> Snapshot:
    """One brought up to date, after which these ledger rows changed: what `read_whole` gives now."""
    parameters = {"scope": scope.key, "embedder": embedder, "few": False, "rows": json_list(rows)}
    found = conn.execute(_FEW + _CHANGED + " ORDER BY e.row", parameters).fetchall()
    new = _snapshot(conn, found, dim, walls)
    return _merged(old, [*rows, *new.rows.tolist()], new)


def holds_more(conn: sqlite3.Connection, scope: Scope, than: int) -> bool:
    """Whether the base scope has more entries of any status than that."""
    found = conn.execute(
        "SELECT 1 FROM entries WHERE scope_key = ? LIMIT 1 OFFSET ?", (scope.key, max(than, 0))
    )
    return than < 0 or found.fetchone() is not None


# One look a speaker, however much each said.
_NEXT = f"""
SELECT speaker FROM entries INDEXED BY entries_spoken WHERE scope_key = :scope AND speaker > :after
AND status IN ('active', 'staged') AND {entries.SEEN} ORDER BY speaker LIMIT 1
"""  # noqa: S608 - a constant of ours
_LAST = f"""
SELECT observed_at FROM entries INDEXED BY entries_said WHERE scope_key = :scope AND {entries.SEEN}
ORDER BY observed_at DESC LIMIT 1
"""  # noqa: S608 - a constant of ours


def spoken(conn: sqlite3.Connection, scope: Scope, wall: str | None) -> tuple[frozenset[str], float]:
    """Who speaks in what may be seen from inside a wall, and when the last of it was said.

    In seconds; NaN where that is unknown.
    """
    asked = {"scope": scope.key, "wall": wall, "after": ""}
    speakers: list[str] = []
    while (found := conn.execute(_NEXT, asked).fetchone()) is not None:
        speakers.append(found[0])
        asked["after"] = found[0]
    last = conn.execute(_LAST, asked).fetchone()
    return frozenset(speakers), _seconds(last[0] if last else None)


def allowed(conn: sqlite3.Connection, scope: Scope, filters: Filters) -> Ints:
    """Ledger rows of the base scope's recallable entries that pass the filters, of any session and age."""
    parameters = {
        "scope": scope.key,
        "kinds": None if filters.kinds is None else json_list(filters.kinds),
        "speakers": None if filters.speakers is None else json_list(filters.speakers),
        "since": to_time(filters.since),
        "until": to_time(filters.until),
    }
    return np.array([row[0] for row in conn.execute(_ALLOWED, parameters)], dtype=np.int64)


def _snapshot(conn: sqlite3.Connection, found: Sequence[sqlite3.Row], dim: int, walls: bool) -> Snapshot:
    # Column by column: asking each row for each name is the larger part of reading a scope.
    column = dict(
        zip(_COLUMNS, zip(*_with_words(conn, found), strict=True) if found else repeat(()), strict=False)
    )
    session, sessions = _codes(column["session"])
    speaker, speakers = _codes(column["speaker"])
    granularity = _ints(map(_GRANULARITY.__getitem__, column["granularity"]))
    walled = np.array([walls and status == "staged" for status in column["status"]], dtype=bool)
    turns = _each(column["turns"], lambda text: tuple(json.loads(text)))
    own = lexical.documents([*zip(*(column[name] for name in ("row", *_TERMS)), strict=True)])
    vocabulary, words = np.unique(own.words, return_inverse=True)
    own = own._replace(words=words.astype(np.int32))
    return Snapshot(
        rows=_ints(column["row"]),
        ids=list(column["id"]),
        granularity=granularity,
        session=session,
        sessions=sessions,
        walled=walled,
        position=_ints(column["position"]),
        speaker=speaker,
        speakers=speakers,
        time=np.array(_each(column["time"], _seconds)),
        said=np.array(_each(column["observed_at"], _seconds)),
        expires=np.array(_each(column["expires_at"], _seconds)),
        traits=_ints(column["traits"]),
        turns=turns,
        importance=np.array(column["importance"], dtype=float),
        reinforcement=np.array(column["reinforcement"], dtype=float),
        vectors=_vectors(column["vector"], dim),
        vocabulary=vocabulary,
        own=own,
        once=_once(own),
    )


def _with_words(conn: sqlite3.Connection, found: Sequence[sqlite3.Row]) -> Iterable[Sequence[Any]]:
    """The rows, with words and traits read from the text where the lexical view has none of it."""
    stored = entries.by_rows(conn, [row["row"] for row in found if row["traits"] is None]).values()
    read = {row.row: lexical.terms_of(row) for row in lexical.rows_of(conn, list(stored))}
    return ((*row[: -len(_TERMS)], *read[row["row"]]) if row["traits"] is None else row for row in found)


def _once(own: Documents) -> Documents:
    """The words of documents' own texts, each once."""
    count = own.fields[:, 0]
    words = own.words[np.repeat(np.tile(np.arange(FIELDS) == 0, len(count)), own.fields.ravel())]
    size = int(words.max(initial=0)) + 1
    docs, once = np.divmod(np.unique(np.repeat(np.arange(len(count)), count) * size + words), size)
    fields = np.zeros_like(own.fields)
    fields[:, 0] = np.bincount(docs, minlength=len(count))
    return Documents(own.rows, fields, once.astype(np.int32))


def _codes(names: Sequence[str | None]) -> tuple[Ints, list[str]]:
    """Places in the names there are, in order of appearance; -1 for no name."""
    known = list(dict.fromkeys(name for name in names if name))
    codes = {name: code for code, name in enumerate(known)}
    return _ints(codes.get(name or "", -1) for name in names), known


def _each(values: Sequence[A], of: Callable[[A], B]) -> list[B]:
    """A function of each, asked once for equal ones: the facts of a turn share its time and its id."""
    known = {value: of(value) for value in set(values)}
    return [known[value] for value in values]


def _vectors(blobs: Sequence[bytes | None], dim: int) -> Vector:
    blank = bytes(dim * np.dtype(np.float32).itemsize)
    joined = b"".join(blob or blank for blob in blobs)
    return np.frombuffer(joined, dtype=np.float32).reshape(len(blobs), dim)


def _seconds(stored: str | None) -> float:
    return datetime.fromisoformat(stored).timestamp() if stored else float("nan")


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)
