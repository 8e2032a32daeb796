"""Looks over a home, and makes anew from the ledger's entries what does not fit them."""

import logging
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from memcycle.core.errors import StoreBusy, StoreError
from memcycle.core.language.tokens import CUTTING
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores.chroma.index import IndexedEntry, metadata_of
from memcycle.stores.chroma.mirror import Mirror
from memcycle.stores.ledger import entries, full_text, items, meta, outbox, sessions
from memcycle.stores.ledger.connection import RESTORE, Ledger
from memcycle.stores.ledger.entries import StoredEntry
from memcycle.stores.search import lexical

if TYPE_CHECKING:
    from memcycle.stores.indexes import Indexes

_log = logging.getLogger(__name__)

STUCK_AFTER = timedelta(days=1)
"""A session with staged entries that nobody wrote to for this long was likely forgotten to be ended."""

BROKEN_OFF = "its end was broken off, or nobody ended it"
"""Why a session that was stuck is committed without having been examined."""

AGAIN = "run `memcycle doctor` again, and `memcycle doctor --rebuild` if it stays"


@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    Attributes:
        name: Of its kind, one of `KINDS`.
        words: What it is. Tells no text of any entry.
        remedy: What a person does about it where the doctor cannot.
        count: How often it was found.
    """

    name: str
    words: str
    remedy: str = AGAIN
    count: int = 0


_FINDINGS = (
    Finding("ledger_damaged", "complaints of SQLite about the ledger's file", RESTORE),
    Finding(
        "other_embedder",
        "embedder other than the one in use made the vectors",
        "name that one with --embedder, or run `memcycle doctor --reembed`",
    ),
    Finding("wipes_owed", "wipes of forgotten text not finished"),
    Finding(
        "ledger_drift", "rows of the ledger (words, sources, links, indexes) that do not fit its entries"
    ),
    Finding(
        "without_vector",
        "entries without a vector of the recorded embedder (found by their words only)",
        "see that the embedder can be reached and has the model it had (else `memcycle doctor --reembed`),"
        " then run `memcycle doctor` again",
    ),
    Finding(
        "stuck_sessions",
        "sessions that wait for an end nobody is making",
        "end them: `memcycle sessions verify SESSION --user NAME`",
    ),
    Finding("outbox", "changes the index was not told of"),
    Finding("index_unusable", "vector index that cannot be used"),
    Finding("index_drift", "copies in the index that differ from the ledger, are missing or left over"),
)

KINDS = tuple(one.name for one in _FINDINGS)
"""Names of findings, in the order in which they are told and mended."""


def found(report: Mapping[str, Any]) -> list[Finding]:
    """What a report says is wrong."""
    embedder = report["embedder"]
    counted = {
        **report,
        "ledger_damaged": len(report["damage"]),
        "other_embedder": int(embedder["recorded"] not in (None, embedder["current"])),
        "index_unusable": int(report["index_trouble"] is not None),
        "index_drift": sum(report.get("index", {}).values()),
    }
    return [
        replace(one, count=counted[one.name], remedy=one.remedy.format(home=report["home"]))
        for one in _FINDINGS
        if counted[one.name]
    ]


def damaged(why: str) -> Finding:
    """The ledger cannot even be opened or read."""
    return Finding("ledger_damaged", "ledger that cannot be read", why, 1)


# Look


def check(
    ledger: Ledger, settings: Settings, mirror: Mirror | None, embedder: str, *, alone: bool = False
) -> dict[str, Any]:
    """What the home holds and what is wrong with it (see `found`). Tells no text.

    Names of users are told only with sessions that wait for someone to examine them (`unverified_sessions`);
    those that wait for their end, open or under examination, are counted (`stuck_sessions`).

    Args:
        mirror: None where only the ledger is open: the index is not looked at.
        embedder: Id of the embedder in use.
        alone: Whether no other process can be examining a session of the home.
    """
    now = ledger.world.now()
    with ledger.read() as conn:
        complaints = [str(row[0]) for row in conn.execute("PRAGMA integrity_check(5)")]
        damage = [one for one in complaints if one != "ok" and not is_of_an_index(one)]
        recorded = meta.embedder(conn)
        stored, expired = items.count(conn, now)
        report: dict[str, Any] = {
            "home": str(settings.home),
            "integrity": damage[0] if damage else "ok",
            "damage": damage,
            "entries": entries.totals(conn),
            "without_vector": len(entries.unfit(conn, recorded)),
            "items": {"stored": stored, "expired": expired, "vectors": items.count_vectors(conn)},
            "embedder": {
                "recorded": recorded[0] if recorded else None,
                "dimension": recorded[1] if recorded else None,
                "current": embedder,
            },
            "outbox": outbox.size(conn),
            "ledger_drift": _ledger_drift(conn) or sum(map(is_of_an_index, complaints)),
            "stuck_sessions": len(_stuck(conn, now, alone=alone)),
            "unverified_sessions": [
                {**scope.model_dump(), "reason": reason} for scope, reason in sessions.unverified(conn)
            ],
            "wipes_owed": len(meta.owed_scrubs(conn)) + int(meta.owed_compaction(conn) is not None),
            "index_trouble": None,
        }
    if mirror is not None and recorded and recorded[0] == embedder:
        try:
            report["index"] = _index_drift(ledger, mirror, embedder)
            report["operator_note"] = None if settings.chroma_url else mirror.operator_note()
        except StoreBusy:
            raise
        except StoreError as error:
            report["index_trouble"] = str(error)
    return report


def is_of_an_index(complaint: str) -> bool:
    """Whether SQLite complains of an index of its own, or (from version 3.44 on) of the lexical view."""
    marks = ("fts5", "wrong # of entries in index", "missing from index")
    return any(mark in complaint.casefold() for mark in marks)


_LOST_LINKS = """links AS l
WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.id = l.source AND e.scope_key = l.scope_key)
    OR NOT EXISTS (SELECT 1 FROM entries e WHERE e.id = l.target AND e.scope_key = l.scope_key)
"""
_SOURCES = "SELECT e.scope_key, t.value, e.row FROM entries e, json_each(e.turns) t"
_ACTIVE = "SELECT row FROM entries WHERE status = 'active'"
_PAIRS = (
    (_SOURCES, "SELECT scope_key, turn, row FROM sources"),
    (_ACTIVE, "SELECT row FROM lexical_words"),
    (_ACTIVE, "SELECT rowid FROM lexical"),
)
"""What must be the same rows."""


def _ledger_drift(conn: sqlite3.Connection) -> int:
    """How many rows do not fit the entries."""
    if full_text.broken(conn):
        return max(1, _count(conn, f"({_ACTIVE})"))
    return _count(conn, _LOST_LINKS) + sum(
        _count(conn, f"({a} EXCEPT {b})") + _count(conn, f"({b} EXCEPT {a})") for a, b in _PAIRS
    )


def _count(conn: sqlite3.Connection, rows: str) -> int:
    return int(conn.execute(f"SELECT count(*) FROM {rows}").fetchone()[0])  # noqa: S608 - constants of ours


def _stuck(conn: sqlite3.Connection, now: datetime, *, alone: bool) -> list[Scope]:
    return sessions.waiting(conn, now - STUCK_AFTER, any_examined=alone)


def _index_drift(ledger: Ledger, mirror: Mirror, embedder: str) -> dict[str, int]:
    """Compares every copy in the index with its entry: how many are `missing` or other than they should be,
    and how many (with collections of another number of shards) are there and should not be."""
    index = mirror.index()
    with ledger.read() as conn:
        missing = entries.indexed_ids(conn, embedder)
    stray, wanted = index.leftover(), missing.copy()
    for page in index.copies():
        with ledger.read() as conn:
            stored = entries.anywhere(conn, [held.id for held in page])
        for held in page:
            one = stored.get(held.id)
            if one is None or held.id not in wanted or held.shard != index.shard_of(one.entry.scope):
                stray += 1
            elif _is_copy(held, one):
                missing.discard(held.id)
    return {"missing": len(missing), "stray": stray}


def _is_copy(held: IndexedEntry, stored: StoredEntry) -> bool:
    return (
        held.text == stored.entry.text
        and held.metadata == metadata_of(stored.entry)
        and stored.vector is not None
        and held.vector.shape == stored.vector.shape
        and bool(np.allclose(held.vector, stored.vector, atol=1e-5))
    )


# Mend


class Mended(NamedTuple):
    """What came of mending.

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


def mend(
    ledger: Ledger,
    settings: Settings,
    indexes: "Indexes",
    commit: Callable[..., object],
    *,
    alone: bool,
) -> Mended:
    """Checks, mends one kind, and checks again, until nothing is found that was not tried. Safe to repeat.

    One after another, since what one step mends may be why another was found. A damaged ledger is left as it
    is: to write into it may cost more of it. `commit` is `Bank.commit_session`; `alone` as in `check`: then
    sessions under examination were broken off.
    """
    mirror = indexes.mirror

    def commit_stuck() -> None:
        with ledger.read() as conn:
            waiting = _stuck(conn, ledger.world.now(), alone=alone)
        for scope in waiting:
            commit(scope, unverified=BROKEN_OFF)

    steps: dict[str, Callable[[], object]] = {
        "wipes_owed": mirror.wipe,
        "ledger_drift": lambda: rebuild_rows(ledger, settings),
        "without_vector": lambda: _embed_unfit(ledger, settings, indexes),
        "stuck_sessions": commit_stuck,
        "outbox": lambda: mirror.drain(settings.bulk_batch),
        "index_unusable": mirror.refill,
        "index_drift": mirror.refill,
    }
    seen: dict[str, Finding] = {}
    tried: dict[str, str] = {}
    while True:
        report = check(ledger, settings, mirror, indexes.vectors.id, alone=alone)
        now = {one.name: one for one in found(report)}
        seen = {**now, **seen}
        following = next((name for name in now if name in steps and name not in tried), None)
        if following is None or report["damage"]:
            left = [
                replace(one, remedy=f"{tried[name]}; {one.remedy}") if tried.get(name) else one
                for name, one in now.items()
            ]
            return Mended(report, list(seen.values()), left)
        try:
            steps[following]()
            tried[following] = ""
        except StoreError as error:
            tried[following] = str(error)


def rebuild(ledger: Ledger, settings: Settings, indexes: "Indexes") -> int:
    """Makes all that follows from the entries anew, and embeds what had no vector; counts the active."""
    indexes.vectors.require_match()
    _embed_unfit(ledger, settings, indexes)
    done = rebuild_rows(ledger, settings)
    indexes.mirror.refill()
    return done


def rebuild_rows(ledger: Ledger, settings: Settings) -> int:
    """Makes the ledger's rows that follow from its entries anew; returns the active entries."""
    with ledger.write() as conn:
        conn.execute("REINDEX")
        conn.execute("DELETE FROM sources")
        conn.execute(f"INSERT OR IGNORE INTO sources (scope_key, turn, row) {_SOURCES}")
        conn.execute(f"DELETE FROM {_LOST_LINKS}")  # noqa: S608 - a constant of ours
        return _rebuild_words(conn, settings)


def _rebuild_words(conn: sqlite3.Connection, settings: Settings) -> int:
    done, after = 0, 0
    full_text.empty(conn)
    while page := entries.page(conn, after, settings.bulk_batch):
        lexical.put(conn, lexical.rows_of(conn, page))
        done, after = done + len(page), page[-1].row
    return done


def renew_words(ledger: Ledger, settings: Settings) -> None:
    """Makes the index of words anew, once, where an earlier memcycle cut texts into words otherwise.

    What is in the way leaves it as it is: the entries are found by the words they have in common still.
    """
    try:
        with ledger.read() as conn:
            if meta.get(conn, meta.CUTTING) == CUTTING:
                return
        with ledger.write() as conn:
            if meta.get(conn, meta.CUTTING) != CUTTING:
                if entries.page(conn, 0, 1):
                    _rebuild_words(conn, settings)
                meta.put(conn, meta.CUTTING, CUTTING)
    except StoreError as error:
        _log.warning("the index of words is of an earlier version, and could not be made anew: %s", error)


def reembed(ledger: Ledger, settings: Settings, indexes: "Indexes") -> int:
    """Makes every vector anew with the present embedder, and says how many; ids, texts and times stay.

    One transaction: a home never holds vectors of two embedders, whatever stops this in the middle. Those of
    the items of a LangGraph store follow, and are refused until then.
    """
    # These load LangGraph, which opening a bank does without.
    from memcycle.stores.langgraph_store.vectors import reembed_items

    vectors, done, after = indexes.vectors, 0, 0
    with ledger.write() as conn:
        recorded = meta.embedder(conn)
        while page := entries.page(conn, after, settings.bulk_batch, active_only=False):
            made = vectors.embedder.embed([one.entry.text for one in page])
            pairs = [(one.entry.id, vector) for one, vector in zip(page, made, strict=True)]
            entries.set_vectors(conn, pairs, vectors.id)
            done, after = done + len(page), page[-1].row
        meta.set_embedder(conn, vectors.id, vectors.embedder.dim)
    if recorded is not None and recorded[0] != vectors.id:
        reembed_items(ledger, vectors, settings.bulk_batch, recorded[0])
    indexes.mirror.refill()
    return done


def _embed_unfit(ledger: Ledger, settings: Settings, indexes: "Indexes") -> None:
    """Gives the entries without a vector of the recorded embedder one, where the embedder can."""
    vectors, size = indexes.vectors, settings.bulk_batch
    with ledger.read() as conn:
        unfit = entries.unfit(conn, meta.embedder(conn))
    for start in range(0, len(unfit), size):
        page = unfit[start : start + size]
        made = vectors.of_all_that_can([text for _, text in page])
        found = [(entry, made[text]) for entry, text in page if text in made]
        with ledger.write() as conn:
            entries.set_vectors(conn, found, vectors.id)
            outbox.put_ids(conn, [entry for entry, _ in found])
    indexes.mirror.drain(size)
