"""Looking after a home: rebuild what is derived, embed anew, and say what is wrong."""

import sqlite3
from datetime import timedelta
from typing import Any

from memcycle.core.entry import GRANULARITIES
from memcycle.core.settings import Settings
from memcycle.stores.ledger import entries, entry_writes, meta, outbox, sessions
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.mirror import Mirror
from memcycle.stores.search import lexical
from memcycle.stores.vectors import Vectors
from memcycle.stores.writer import lexical_rows

STUCK_AFTER = timedelta(days=1)
"""A session with staged entries that nobody wrote to for this long was likely forgotten to be ended."""


def rebuild(ledger: Ledger, settings: Settings, vectors: Vectors, mirror: Mirror) -> int:
    """Makes the lexical view and the vector index anew, and embeds what had no vector.

    Returns:
        How many active entries there are.
    """
    vectors.require_match()
    _embed_missing(ledger, settings, vectors)
    done, after = 0, 0
    with ledger.write() as conn:
        lexical.clear(conn)
        while page := entries.page(conn, after, settings.bulk_batch):
            lexical.put(conn, lexical_rows(conn, page))
            done, after = done + len(page), page[-1].row
    mirror.refill()
    return done


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


def check(ledger: Ledger, settings: Settings, mirror: Mirror | None, embedder: str) -> dict[str, Any]:
    """What the home holds and what is wrong with it. Tells no text.

    Names of users are told only with sessions that wait for someone to examine them (`unverified_sessions`);
    those that wait for their end, open or under examination, are counted (`stuck_sessions`).

    Args:
        mirror: None where only the ledger is open: the index is not looked at.
        embedder: Id of the embedder in use.
    """
    with ledger.read() as conn:
        recorded = meta.embedder(conn)
        totals = entries.totals(conn)
        report: dict[str, Any] = {
            "home": str(settings.home),
            "integrity": conn.execute("PRAGMA quick_check(1)").fetchone()[0],
            "entries": {name: number for name, number in totals.items() if name != "without_vector"},
            "without_vector": totals["without_vector"],
            "embedder": {
                "recorded": recorded[0] if recorded else None,
                "dimension": recorded[1] if recorded else None,
                "current": embedder,
            },
            "outbox": outbox.size(conn),
            "lexical_drift": totals["active"] - _lexical_rows(conn),
            "stuck_sessions": len(sessions.idle_open(conn, ledger.world.now() - STUCK_AFTER)),
            "unverified_sessions": [
                {
                    "user": scope.user,
                    "workspace": scope.workspace,
                    "session": scope.session,
                    "reason": reason,
                }
                for scope, reason in sessions.unverified(conn)
            ],
            "wipes_owed": len(meta.owed_scrubs(conn)) + int(meta.owes_compaction(conn)),
        }
    if mirror is not None and recorded is not None and recorded[0] == embedder:
        missing, stray = mirror.drift()
        report["index"] = {"missing": missing, "stray": stray}
        report["operator_note"] = mirror.operator_note
    return report


def _lexical_rows(conn: sqlite3.Connection) -> int:
    return sum(
        number
        for scope in sessions.all_scopes(conn)
        for number in lexical.population(conn, scope.key, GRANULARITIES).values()
    )


def _embed_missing(ledger: Ledger, settings: Settings, vectors: Vectors) -> None:
    after = 0
    while True:
        with ledger.read() as conn:
            page = entries.without_vector(conn, after, settings.bulk_batch)
        if not page:
            return
        after = page[-1].row
        found = vectors.of_all_that_can([one.entry.text for one in page])
        pairs = [(one.row, found[one.entry.text]) for one in page if one.entry.text in found]
        with ledger.write() as conn:
            entry_writes.set_vectors(conn, pairs, vectors.id)
