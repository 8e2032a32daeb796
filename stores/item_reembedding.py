"""Makes the vectors of a store's items anew, with another embedder."""

from memcycle.stores.item_texts import ItemEmbedder, texts_at
from memcycle.stores.ledger import item_vectors, items
from memcycle.stores.ledger.connection import Ledger


def reembed_items(ledger: Ledger, embedder: ItemEmbedder, batch: int, old: str | None = None) -> int:
    """Makes vectors of another embedder anew, a transaction for each `batch` items. Safe to repeat.

    Args:
        old: Only vectors of this embedder; None is all others.

    Returns:
        How many items got new vectors.
    """
    done, after = 0, 0
    while True:
        with ledger.read() as conn:
            paths = item_vectors.foreign(conn, embedder.id, old, after, batch)
            seen = items.by_rows(conn, paths)
        if not paths:
            return done
        after = max(paths)
        texts = {row: texts_at(item.parsed(), paths[row]) for row, item in seen.items()}
        vectors = embedder.of([text for of_item in texts.values() for _, text in of_item])
        with ledger.write() as conn:
            now = items.by_rows(conn, texts)
            # An item that was written meanwhile has new vectors already.
            same = [row for row, item in now.items() if item.value == seen[row].value]
            for row in same:
                made = [(path, vectors[text]) for path, text in texts[row]]
                item_vectors.put(conn, row, made, embedder.id)
        done += len(same)
