"""Looking after a home: rebuild what is derived, embed anew, and say what is wrong."""

import logging
import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from memcycle.core.errors import LedgerDamaged, StoreBusy, StoreError
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores import drift, item_drift
from memcycle.stores.ledger import (
    entries,
    entry_writes,
    item_vectors,
    items,
    meta,
    outbox,
    sessions,
    soundness,
)
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.mirror import Mirror
from memcycle.stores.search import lexical
from memcycle.stores.vectors import Vectors
from memcycle.stores.writer import lexical_rows

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
    from memcycle.stores.item_reembedding import reembed_items
    from memcycle.stores.item_texts import ItemEmbedder

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
        of_words, complaints = soundness.integrity(conn)
        only_indexes = soundness.index_only(complaints)
        recorded = meta.embedder(conn)
        totals, rows = entries.totals(conn), soundness.misfits(conn)
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
                "vectors": item_vectors.counts(conn),
                "orphan_vectors": item_vectors.orphans(conn),
                "missing": 0,
                "stray": 0,
                "unused": 0,
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
        found, of_items = drift.compare(ledger, mirror, embedder), item_drift.compare(ledger, mirror)
    except StoreBusy:
        raise
    except StoreError as error:
        report["index_trouble"] = str(error)
        return
    report["index"] = {"missing": len(found.missing), "stray": len(found.stray)}
    report["index_outdated"], report["index_leftover"] = len(found.outdated), found.leftover
    report["items"] |= of_items._asdict()
    report["operator_note"] = mirror.operator_note


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
