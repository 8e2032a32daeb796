"""How far the vector index has drifted from the ledger, looked at entry by entry, and bringing it back."""

from typing import NamedTuple

import numpy as np

from memcycle.stores.chroma_index import ChromaIndex, Held
from memcycle.stores.chroma_record import metadata_of
from memcycle.stores.ledger import entries, outbox
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.ledger.entries import StoredEntry
from memcycle.stores.mirror import Mirror

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
