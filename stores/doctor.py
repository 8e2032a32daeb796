"""Puts right what a check of a home found, each kind by its own step, and checks again."""

import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from memcycle.core.errors import LedgerDamaged, StoreBusy, StoreError
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores.chroma import erase
from memcycle.stores.chroma.index import ChromaIndex, Held, metadata_of
from memcycle.stores.chroma.mirror import Mirror
from memcycle.stores.indexes import Views
from memcycle.stores.ledger import entries, items, meta, outbox, sessions
from memcycle.stores.ledger import entries as entry_writes
from memcycle.stores.ledger.connection import RESTORE, Ledger
from memcycle.stores.ledger.entries import StoredEntry
from memcycle.stores.search import lexical
from memcycle.stores.vectors import Vectors
from memcycle.stores.writer import lexical_rows

Report = Mapping[str, Any]
"""What `upkeep.check` gives."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    Attributes:
        name: Of its kind, one of `KINDS`.
        count: How often it was found.
        words: What it is. Tells no text of any entry.
        remedy: What a person does about it where the doctor cannot.
    """

    name: str
    count: int
    words: str
    remedy: str


class _Kind(NamedTuple):
    number: Callable[[Report], int]
    words: str
    remedy: str


_EMBEDDER = (
    "see that the embedder can be reached and has the model it had (else `memcycle doctor --reembed`), then"
    " run `memcycle doctor` again"
)
_AGAIN = "run `memcycle doctor` again, and `memcycle doctor --rebuild` if it stays"


def _index(name: str) -> Callable[[Report], int]:
    return lambda report: report.get("index", {}).get(name, 0)


def _mismatch(report: Report) -> int:
    recorded = report["embedder"]["recorded"]
    return int(recorded is not None and recorded != report["embedder"]["current"])


_KINDS: dict[str, _Kind] = {
    "ledger_damaged": _Kind(
        lambda report: len(report["damage"]), "complaints of SQLite about the ledger's file", RESTORE
    ),
    "ledger_indexes": _Kind(
        lambda report: len(report["bad_indexes"]), "complaints of SQLite about indexes of the ledger", RESTORE
    ),
    "other_embedder": _Kind(
        _mismatch,
        "embedder other than the one in use made the vectors",
        "name that one with --embedder, or run `memcycle doctor --reembed`",
    ),
    "wipes_owed": _Kind(itemgetter("wipes_owed"), "wipes of forgotten text not finished", _AGAIN),
    "collections_owed": _Kind(
        itemgetter("collections_owed"),
        "collections of the Chroma server that held forgotten text, which its files keep while they stand",
        "run `memcycle doctor` again, with the embedder and shards that this memory has",
    ),
    "orphan_sources": _Kind(itemgetter("orphan_sources"), "sources that do not fit their entries", _AGAIN),
    "orphan_links": _Kind(itemgetter("orphan_links"), "links to entries that are not there", _AGAIN),
    "lexical_drift": _Kind(
        itemgetter("lexical_drift"), "rows of the lexical view missing or left over", _AGAIN
    ),
    "without_vector": _Kind(
        itemgetter("without_vector"),
        "entries without a vector (found by their words only)",
        _EMBEDDER,
    ),
    "unfit_vectors": _Kind(
        itemgetter("unfit_vectors"),
        "vectors of another embedder or length than the recorded one",
        _EMBEDDER,
    ),
    "stuck_sessions": _Kind(
        itemgetter("stuck_sessions"),
        "sessions that wait for an end nobody is making",
        "end them: `memcycle sessions verify SESSION --user NAME`",
    ),
    "outbox": _Kind(itemgetter("outbox"), "changes the index was not told of", _AGAIN),
    "index_unusable": _Kind(
        lambda report: int(report["index_trouble"] is not None), "vector index that cannot be used", _AGAIN
    ),
    "index_missing": _Kind(_index("missing"), "entries missing in the index", _AGAIN),
    "index_stray": _Kind(_index("stray"), "entries left over in the index", _AGAIN),
    "index_outdated": _Kind(
        itemgetter("index_outdated"), "copies in the index that differ from their entries", _AGAIN
    ),
    "index_leftover": _Kind(
        itemgetter("index_leftover"), "collections from another number of shards", _AGAIN
    ),
}

KINDS = tuple(_KINDS)
"""Names of findings, in the order in which they are told and mended."""


def found(report: Report) -> list[Finding]:
    """What a report says is wrong."""
    counted = [(name, kind.number(report), kind) for name, kind in _KINDS.items()]
    return [
        Finding(name, count, kind.words, kind.remedy.format(home=report["home"]))
        for name, count, kind in counted
        if count
    ]


def damaged(why: str) -> Finding:
    """The ledger cannot even be opened or read."""
    return Finding("ledger_damaged", 1, "ledger that cannot be read", why)


SAME = 1e-5
"""Numbers of a vector may differ by this much: Chroma keeps what it was given."""


class Drift(NamedTuple):
    """Ids of entries whose copies are not as they should be.

    Attributes:
        missing: Not in the index.
        stray: In the index, and should not be there, or are there in another shard than theirs as well.
        outdated: In the index with another text, other fields or another vector.
        leftover: Collections from when the home had another number of shards.
    """

    missing: frozenset[str]
    stray: frozenset[str]
    outdated: frozenset[str]
    leftover: int


def compare(ledger: Ledger, mirror: Mirror, embedder: str) -> Drift:
    """Compares every copy in the index with its entry.

    Args:
        embedder: Id of the embedder whose vectors the index shall hold.

    Raises:
        StoreError: the index cannot be read.
    """
    index = mirror.index()
    with ledger.read() as conn:
        wanted = entries.indexed_ids(conn, embedder)
    right: set[str] = set()
    stray: set[str] = set()
    outdated: set[str] = set()
    for page in index.copies():
        with ledger.read() as conn:
            stored = entries.anywhere(conn, [held.id for held in page])
        for held in page:
            one = stored.get(held.id)
            if one is None or held.id not in wanted or not _stands_right(index, held, one):
                stray.add(held.id)
            elif _is_as(held, one):
                right.add(held.id)
            else:
                outdated.add(held.id)
    missing = wanted - right - outdated
    return Drift(frozenset(missing), frozenset(stray), frozenset(outdated), index.leftover())


def mend(ledger: Ledger, mirror: Mirror, drift: Drift, batch: int) -> None:
    """Brings in what is missing and writes anew what is outdated; where something is too much, all of it.

    Raises:
        StoreError: the index cannot be written. What is left is found again.
    """
    if drift.stray or drift.leftover:
        # Which shard a stray copy stands in is not written anywhere: only what is made anew is surely clean.
        mirror.refill()
        return
    with ledger.write() as conn:
        outbox.put_ids(conn, drift.missing | drift.outdated)
    mirror.drain(batch)


def _stands_right(index: ChromaIndex, held: Held, stored: StoredEntry) -> bool:
    return held.shard == index.shard_of(stored.entry.scope)


def _is_as(held: Held, stored: StoredEntry) -> bool:
    wanted = {key: value for key, value in metadata_of(stored.entry).items() if value is not None}
    return (
        held.text == stored.entry.text
        and held.metadata == wanted
        and stored.vector is not None
        and held.vector.shape == stored.vector.shape
        and bool(np.allclose(held.vector, stored.vector, atol=SAME))
    )


SHOWN = 5
"""Complaints of SQLite that are told."""


class Rows(NamedTuple):
    """Rows that do not fit the entries.

    Attributes:
        links: Between entries of which one is not there.
        sources: Of entries that are not there or do not name that turn, and those that an entry lacks.
        lexical: Of entries that are not active, and those that an active one lacks.
    """

    links: int
    sources: int
    lexical: int


_LOST_LINKS = """
FROM links AS l
WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.id = l.source AND e.scope_key = l.scope_key)
    OR NOT EXISTS (SELECT 1 FROM entries e WHERE e.id = l.target AND e.scope_key = l.scope_key)
"""
_NAMED = "SELECT e.scope_key, t.value, e.row FROM entries e, json_each(e.turns) t"
_LOST_SOURCES = f"(SELECT scope_key, turn, row FROM sources EXCEPT {_NAMED})"  # noqa: S608 - constants of ours, as below
_LACKED_SOURCES = f"({_NAMED} EXCEPT SELECT scope_key, turn, row FROM sources)"  # noqa: S608
_ACTIVE = "SELECT row FROM entries WHERE status = 'active'"


def integrity(conn: sqlite3.Connection) -> tuple[list[str], list[str]]:
    """What SQLite finds wrong with the lexical view, and with the rest of the file; tells no text.

    At most `SHOWN` complaints. From version 3.44 on SQLite looks into the lexical view too.
    """
    found = [str(row[0]) for row in conn.execute(f"PRAGMA integrity_check({SHOWN})")]
    return parted([] if found == ["ok"] else found)


def parted(complaints: list[str]) -> tuple[list[str], list[str]]:
    """Complaints of FTS5, whose one table is the lexical view, and all others."""
    of_words = [one for one in complaints if "fts5" in one.casefold()]
    return of_words, [one for one in complaints if one not in of_words]


def index_only(complaints: list[str]) -> bool:
    """Whether only indexes of SQLite's are wrong, which it can make anew from the rows."""
    return bool(complaints) and all(
        one.startswith("wrong # of entries in index") or "missing from index" in one for one in complaints
    )


def reindex(conn: sqlite3.Connection) -> None:
    """Makes SQLite's own indexes anew."""
    conn.execute("REINDEX")


def misfits(conn: sqlite3.Connection) -> Rows:
    """How many rows do not fit the entries."""
    return Rows(
        links=_count(conn, f"SELECT count(*) {_LOST_LINKS}"),
        sources=_count(conn, f"SELECT count(*) FROM {_LOST_SOURCES}")  # noqa: S608
        + _count(conn, f"SELECT count(*) FROM {_LACKED_SOURCES}"),  # noqa: S608
        lexical=_lexical_misfits(conn),
    )


def _lexical_misfits(conn: sqlite3.Connection) -> int:
    if lexical.broken(conn):
        return max(1, _count(conn, f"SELECT count(*) FROM ({_ACTIVE})"))  # noqa: S608
    return sum(
        _count(conn, f"SELECT count(*) FROM ({one} EXCEPT {other})")  # noqa: S608
        for words in ("SELECT row FROM lexical_words", "SELECT rowid FROM lexical")
        for one, other in ((_ACTIVE, words), (words, _ACTIVE))
    )


def drop_lost_links(conn: sqlite3.Connection) -> None:
    """Removes links of which one end is not there."""
    conn.execute(f"DELETE {_LOST_LINKS}")


def put_sources_right(conn: sqlite3.Connection) -> None:
    """Makes the sources what the entries say they are."""
    conn.execute(f"DELETE FROM sources WHERE (scope_key, turn, row) IN {_LOST_SOURCES}")  # noqa: S608
    conn.execute(f"INSERT INTO sources (scope_key, turn, row) SELECT * FROM {_LACKED_SOURCES}")  # noqa: S608


def _count(conn: sqlite3.Connection, query: str) -> int:
    return int(conn.execute(query).fetchone()[0])


_log = logging.getLogger(__name__)

STUCK_AFTER = timedelta(days=1)
"""A session with staged entries that nobody wrote to for this long was likely forgotten to be ended."""


def rebuild(ledger: Ledger, settings: Settings, vectors: Vectors, mirror: Mirror) -> int:
    """Makes the lexical view and the vector index anew, and embeds what had no vector.

    Returns:
        How many active entries there are.
    """
    vectors.require_match()
    embed_missing(ledger, settings, vectors)
    done = rebuild_lexical(ledger, settings)
    mirror.refill()
    return done


def rebuild_lexical(ledger: Ledger, settings: Settings) -> int:
    """Makes the lexical view anew in one transaction; returns the active entries."""
    done, after = 0, 0
    with ledger.write() as conn:
        lexical.renew(conn)
        while page := entries.page(conn, after, settings.bulk_batch):
            lexical.put(conn, lexical_rows(conn, page))
            done, after = done + len(page), page[-1].row
    return done


def revive_lexical(ledger: Ledger, settings: Settings) -> None:
    """Makes the lexical view anew where it is broken, which no backup is needed for.

    Where its pages in the file are damaged, all is left as it is: whoever needs them is told.
    """
    try:
        with ledger.look() as conn:
            if not lexical.broken(conn):
                return
    except LedgerDamaged:
        return
    done = rebuild_lexical(ledger, settings)
    _log.warning("the index of words in %s was broken; it was made anew from %d entries", ledger.path, done)


def reembed(ledger: Ledger, settings: Settings, vectors: Vectors, mirror: Mirror) -> int:
    """Makes every vector anew with the present embedder; ids, texts and times stay.

    One transaction: a home never holds vectors of two embedders, whatever stops this in the middle. Those of
    the items of a LangGraph store follow, and are refused until then.

    Returns:
        How many entries were embedded.
    """
    # These load LangGraph, which opening a bank does without.
    from memcycle.stores.langgraph_store.vectors import ItemEmbedder, reembed_items

    done, after = 0, 0
    with ledger.write() as conn:
        recorded = meta.embedder(conn)
        while page := entries.page(conn, after, settings.bulk_batch, active_only=False):
            made = vectors.embedder.embed([one.entry.text for one in page])
            pairs = [(one.row, vector) for one, vector in zip(page, made, strict=True)]
            entry_writes.set_vectors(conn, pairs, vectors.id)
            done, after = done + len(page), page[-1].row
        meta.set_embedder(conn, vectors.id, vectors.embedder.dim)
    if recorded is not None and recorded[0] != vectors.id:
        reembed_items(ledger, ItemEmbedder(vectors.id, vectors.of), settings.bulk_batch, recorded[0])
    mirror.refill()
    return done


def check(
    ledger: Ledger,
    settings: Settings,
    mirror: Mirror | None,
    embedder: str,
    *,
    alone: bool = False,
) -> dict[str, Any]:
    """What the home holds and what is wrong with it (see `findings.found`). Tells no text.

    Names of users are told only with sessions that wait for someone to examine them (`unverified_sessions`);
    those that wait for their end, open or under examination, are counted (`stuck_sessions`).

    Args:
        mirror: None where only the ledger is open: the index is not looked at.
        embedder: Id of the embedder in use.
        alone: Whether no other process can be examining a session of the home.

    Raises:
        LedgerDamaged: too damaged to be read.
    """
    with ledger.read() as conn:
        of_words, complaints = integrity(conn)
        only_indexes = index_only(complaints)
        recorded = meta.embedder(conn)
        totals, rows = entries.totals(conn), misfits(conn)
        stored, expired = items.count(conn, ledger.world.now())
        report: dict[str, Any] = {
            "home": str(settings.home),
            "integrity": "ok" if not complaints else complaints[0],
            "damage": [] if only_indexes else complaints,
            "bad_indexes": complaints if only_indexes else [],
            "entries": {name: number for name, number in totals.items() if name != "without_vector"},
            "without_vector": totals["without_vector"],
            "unfit_vectors": entries.unfit_vectors(conn, *recorded) if recorded else 0,
            "items": {
                "stored": stored,
                "expired": expired,
                "vectors": items.count_vectors(conn),
            },
            "embedder": {
                "recorded": recorded[0] if recorded else None,
                "dimension": recorded[1] if recorded else None,
                "current": embedder,
            },
            "outbox": outbox.size(conn),
            "lexical_drift": rows.lexical or len(of_words),
            "orphan_links": rows.links,
            "orphan_sources": rows.sources,
            "stuck_sessions": len(stuck(conn, ledger.world.now(), alone=alone)),
            "unverified_sessions": [
                {
                    "user": scope.user,
                    "workspace": scope.workspace,
                    "session": scope.session,
                    "reason": reason,
                }
                for scope, reason in sessions.unverified(conn)
            ],
            "wipes_owed": len(meta.owed_scrubs(conn)) + int(meta.owed_compaction(conn) is not None),
            "collections_owed": len(meta.owed_collections(conn, settings.chroma_url)),
            "index_outdated": 0,
            "index_leftover": 0,
            "index_trouble": None,
        }
    # A vector of another length is put right first: it could not be compared.
    if mirror is not None and recorded and recorded[0] == embedder and not report["unfit_vectors"]:
        _check_index(report, ledger, mirror, embedder)
    return report


def stuck(conn: sqlite3.Connection, now: datetime, *, alone: bool) -> list[tuple[Scope, str]]:
    """Sessions that wait for an end nobody is making: (base scope, session).

    Args:
        alone: Whether no other process can be examining one; then any under examination was broken off.
    """
    return sessions.idle_open(conn, now - STUCK_AFTER, any_examined=alone)


def _check_index(report: dict[str, Any], ledger: Ledger, mirror: Mirror, embedder: str) -> None:
    try:
        found = compare(ledger, mirror, embedder)
    except StoreBusy:
        raise
    except StoreError as error:
        report["index_trouble"] = str(error)
        return
    report["index"] = {"missing": len(found.missing), "stray": len(found.stray)}
    report["index_outdated"], report["index_leftover"] = len(found.outdated), found.leftover
    report["operator_note"] = erase.operator_note(mirror)


def embed_missing(ledger: Ledger, settings: Settings, vectors: Vectors) -> None:
    """Gives the recallable entries that have no vector one, where the embedder can; the outbox is told."""
    after = 0
    while True:
        with ledger.read() as conn:
            page = entries.without_vector(conn, after, settings.bulk_batch)
        if not page:
            return
        after = page[-1].row
        _embed(ledger, vectors, [(one.row, one.entry.id, one.entry.text) for one in page])


def embed_unfit(ledger: Ledger, settings: Settings, vectors: Vectors) -> None:
    """Makes anew the vectors that are not of the recorded embedder and length; the outbox is told."""
    after = 0
    while True:
        with ledger.read() as conn:
            recorded = meta.embedder(conn) or (vectors.id, vectors.dimension())
            page = entries.with_unfit_vector(conn, *recorded, after=after, size=settings.bulk_batch)
        if not page:
            return
        after = page[-1][0]
        _embed(ledger, vectors, page)


def _embed(ledger: Ledger, vectors: Vectors, page: Sequence[tuple[int, str, str]]) -> None:
    found = vectors.of_all_that_can([text for _, _, text in page])
    done = [(row, entry, text) for row, entry, text in page if text in found]
    with ledger.write() as conn:
        entry_writes.set_vectors(conn, [(row, found[text]) for row, _, text in done], vectors.id)
        outbox.put_ids(conn, [entry for _, entry, _ in done])


BROKEN_OFF = "its end was broken off, or nobody ended it"
"""Why a session that was stuck is committed without having been examined."""

Check = Callable[[], dict[str, Any]]


class Mended(NamedTuple):
    """What came of it.

    Attributes:
        report: Of the last check.
        found: What was wrong before.
        left: What still is, each with why and with what a person can do.
    """

    report: dict[str, Any]
    found: list[Finding]
    left: list[Finding]

    @property
    def mended(self) -> list[Finding]:
        """What was wrong and no longer is."""
        left = {one.name for one in self.left}
        return [one for one in self.found if one.name not in left]


class Mender:
    """Mends one home.

    Args:
        views: Of the bank, claimed for writing.
        commit: Commits a session, unexamined, for a reason.
        alone: Whether no other process can be examining a session of the home.
    """

    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        views: Views,
        commit: Callable[[Scope, str], object],
        *,
        alone: bool,
    ) -> None:
        self._ledger, self._settings, self._views = ledger, settings, views
        self._commit, self._alone = commit, alone
        self._steps: Mapping[str, Callable[[], object]] = {
            "ledger_indexes": lambda: self._in_ledger(reindex),
            "wipes_owed": lambda: erase.wipe(views.mirror),
            "collections_owed": lambda: erase.replace_collections(views.mirror),
            "orphan_sources": lambda: self._in_ledger(put_sources_right),
            "orphan_links": lambda: self._in_ledger(drop_lost_links),
            "lexical_drift": lambda: rebuild_lexical(ledger, settings),
            "without_vector": self._embed_missing,
            "unfit_vectors": self._embed_unfit,
            "stuck_sessions": self._commit_stuck,
            "outbox": self._drain,
            "index_unusable": views.mirror.refill,
            "index_missing": self._align,
            "index_stray": self._align,
            "index_outdated": self._align,
            "index_leftover": self._align,
        }

    def run(self, check: Check) -> Mended:
        """Checks, mends, and checks again, until nothing is found that was not tried. Safe to repeat.

        A damaged ledger is left as it is: to write into it may cost more of it.
        """
        seen: dict[str, Finding] = {}
        why: dict[str, str] = {}
        while True:
            report = check()
            now = found(report)
            fresh = [one for one in now if one.name not in seen]
            seen.update({one.name: one for one in fresh})
            if not fresh or report["damage"]:
                left = [
                    replace(one, remedy=f"{why[one.name]}; {one.remedy}") if one.name in why else one
                    for one in now
                ]
                return Mended(report, list(seen.values()), left)
            for one in fresh:
                if one.name in self._steps:
                    try:
                        self._steps[one.name]()
                    except StoreError as error:
                        why[one.name] = str(error)

    def _in_ledger(self, step: Callable[[Any], None]) -> None:
        with self._ledger.write() as conn:
            step(conn)

    def _drain(self) -> None:
        self._views.mirror.drain(self._settings.bulk_batch)

    def _embed_missing(self) -> None:
        embed_missing(self._ledger, self._settings, self._views.vectors)
        self._drain()

    def _embed_unfit(self) -> None:
        embed_unfit(self._ledger, self._settings, self._views.vectors)
        self._drain()

    def _commit_stuck(self) -> None:
        with self._ledger.read() as conn:
            waiting = stuck(conn, self._ledger.world.now(), alone=self._alone)
        for scope, session in waiting:
            self._commit(scope.within(session), BROKEN_OFF)

    def _align(self) -> None:
        found = compare(self._ledger, self._views.mirror, self._views.vectors.id)
        mend(self._ledger, self._views.mirror, found, self._settings.bulk_batch)
