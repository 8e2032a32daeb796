"""Working off the outbox: what changed in the ledger is brought into the vector index."""

from collections.abc import Iterator, Sequence

from memcycle.stores.chroma_index import ChromaIndex
from memcycle.stores.ledger import entries, outbox
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.ledger.outbox import Pending

DRAIN_LOCK = "drain.lock"
"""Among the home's locks: held by whoever works off its outbox."""


def work_off(ledger: Ledger, index: ChromaIndex, embedder: str, size: int, most: int) -> Iterator[int]:
    """Brings the entries that wait longest up to date in the index; only one may do that at a time.

    A row leaves the outbox only after the index took it. Entries without a vector are not in the index. What
    waits for one shard is worked off together: many small writes cost the index more than few large ones.

    Args:
        embedder: Id of the embedder whose vectors the index holds.
        size: Entries a write of the index at most. most: rows that are looked at.

    Yields:
        After each write, how many rows were worked off by it.
    """
    with ledger.read() as conn:
        pending = outbox.head(conn, most)
    of_shard: dict[int, list[Pending]] = {}
    for one in pending:
        of_shard.setdefault(index.shard_of(one.scope), []).append(one)
    for waiting in of_shard.values():
        for start in range(0, len(waiting), size):
            part = waiting[start : start + size]
            _bring_in(ledger, index, embedder, part, size)
            yield len(part)


def _bring_in(ledger: Ledger, index: ChromaIndex, embedder: str, part: Sequence[Pending], size: int) -> None:
    with ledger.read() as conn:
        found = entries.anywhere(conn, [one.entry for one in part])
    present = {
        entry_id: (stored.entry, stored.vector)
        for entry_id, stored in found.items()
        if stored.entry.status == "active" and stored.vector is not None and stored.entry.embedder == embedder
    }
    index.upsert([(entry, vector) for entry, vector in present.values() if vector is not None], size)
    index.delete([(one.scope, one.entry) for one in part if one.entry not in present])
    with ledger.write() as conn:
        outbox.done(conn, part)
