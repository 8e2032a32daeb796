"""The vectors of a store's items: which texts of a value are embedded, by what, and what is like a query."""

import asyncio
import inspect
import json
import sqlite3
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from langgraph.store.base import ensure_embeddings, get_text_at_path, tokenize_path

from memcycle.core.errors import BadInput, EmbedderMismatch
from memcycle.core.world import World
from memcycle.stores.embedders import Embedder, langchain_model
from memcycle.stores.ledger import items
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.ledger.items import Namespace

if TYPE_CHECKING:
    from langgraph.store.base import IndexConfig

    from memcycle.stores.indexes import Indexes, Vectors

ItemEmbedder: TypeAlias = "Vectors | Embedder"
"""What embeds items and queries: the bank's own, or one of the store's."""

WHOLE = "$"
"""The path of a value as a whole, as JSON text."""

Texts = list[tuple[str, str]]
"""Path and text; one path may give several texts."""


def texts_at(value: Any, paths: Iterable[str]) -> Texts:
    """The texts a value has at paths; a missing path has none."""
    return [
        (path, text)
        for path in paths
        for text in get_text_at_path(value, path if path == WHOLE else tokenize_path(path))
    ]


def nearest(
    conn: sqlite3.Connection, prefix: Namespace, now: datetime | None, embedder: str, query: Vector
) -> list[tuple[int, float]]:
    """Items at or below a namespace by the cosine of their nearest vector with a query, -1 to 1; best first.

    Every vector is read from the ledger and compared: some 2 ms for 500 items, 200 ms for 50,000 (256
    dimensions). Equal ones stand as they were created; those without a vector are left out.

    Args:
        query: Of shape (dim,).

    Raises:
        EmbedderMismatch: there are vectors of another embedder.
    """
    found = items.vectors_below(conn, prefix, now)
    if others := sorted(set(found) - {embedder}):
        raise EmbedderMismatch(
            f"items in the store have vectors of the embedder {', '.join(others)}, not of {embedder}: use"
            " that one, or make the vectors anew with `MemcycleStore.reembed`"
        )
    best: dict[int, float] = {}
    for own, vectors in found.values():
        for item, score in zip(own, (vectors @ query).tolist(), strict=True):
            best[item] = max(score, best.get(item, score))
    return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))


def item_embedder(
    indexes: "Indexes", index: "IndexConfig | None", world: World
) -> tuple[ItemEmbedder, Callable[[], None]]:
    """The embedder an index configuration names, or else the bank's own; and what ends it.

    Raises:
        BadInput: `dims` is not the length of the bank's vectors.
    """
    embed, dims = (index or {}).get("embed"), (index or {}).get("dims")
    if embed is None:
        known = indexes.vectors.dimension() if dims else None
        if dims != known:
            raise BadInput(
                f"the store's index is configured with dims={dims}, but the embedder {indexes.vectors.id}"
                f" makes vectors of {known} numbers; leave dims out, or name another embedder in `embed`"
            )
        return indexes.vectors, lambda: None
    model = langchain_model(ensure_embeddings(embed))._replace(dim=dims)
    if inspect.iscoroutinefunction(embed) or inspect.iscoroutinefunction(type(embed).__call__):
        own = _OwnLoop(cast("Any", embed))
        return Embedder(model._replace(load=lambda: own), world), own.close
    return Embedder(model, world), lambda: None


class _OwnLoop:
    """An async embedding function called from threads.

    All its calls run in one loop of its own, since a client it uses is bound to the loop of its first call.
    """

    def __init__(self, embed: Callable[[Sequence[str]], Coroutine[Any, Any, list[list[float]]]]) -> None:
        self._embed, self._runner = embed, asyncio.Runner()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="memcycle-embed")

    def __call__(self, texts: list[str]) -> list[list[float]]:
        return self._thread.submit(self._runner.run, self._embed(texts)).result()

    def close(self) -> None:
        """Ends the loop."""
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()


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
            paths = items.foreign_paths(conn, embedder.id, old, after, batch)
            seen = items.by_rows(conn, paths)
        if not paths:
            return done
        after = max(paths)
        texts = {row: texts_at(json.loads(item.value), paths[row]) for row, item in seen.items()}
        vectors = embedder.of([text for of_item in texts.values() for _, text in of_item])
        with ledger.write() as conn:
            # An item that was written meanwhile has new vectors already.
            now = items.by_rows(conn, seen)
            same = [row for row, item in now.items() if item.value == seen[row].value]
            for row in same:
                made = [(path, vectors[text]) for path, text in texts[row]]
                items.put_vectors(conn, row, made, embedder.id)
        done += len(same)
