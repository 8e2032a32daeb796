"""Whether Chroma's copies of the vectors of a store's items are those the ledger says it was given."""

from typing import NamedTuple

from memcycle.stores.item_index import held_rows
from memcycle.stores.ledger import item_vectors
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.mirror import Mirror


class ItemDrift(NamedTuple):
    """Vectors of items, of all embedders.

    Attributes:
        missing: That Chroma was given and does not have. What it was not given yet it gets when needed.
        stray: That it has, and shall neither have nor drop.
        unused: Collections of embedders of which no item has a vector.
    """

    missing: int
    stray: int
    unused: int


def compare(ledger: Ledger, mirror: Mirror) -> ItemDrift:
    """Compares row by row. Opens the index only where it was given vectors of items.

    Raises:
        StoreError: the index cannot be read.
    """
    missing = stray = unused = 0
    with ledger.read() as conn:
        indexed, used = item_vectors.embedders(conn), item_vectors.counts(conn)
    for embedder in indexed:
        there = held_rows(mirror, embedder)
        with ledger.read() as conn:
            wanted = item_vectors.known_to_chroma(conn, embedder)
            leaving = set(item_vectors.gone(conn, embedder, len(there) + 1))
        missing += len(wanted - there)
        stray += len(there - wanted - leaving)
        unused += embedder not in used
    return ItemDrift(missing, stray, unused)
