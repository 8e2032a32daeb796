"""Makes the vectors of a store's items anew, with another embedder."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph.store.base import PutOp, ensure_embeddings, get_text_at_path, tokenize_path

from memcycle.core.errors import BadInput
from memcycle.core.world import World
from memcycle.stores.ledger import item_vectors, items
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.ledger.connection import Ledger

if TYPE_CHECKING:
    from langgraph.store.base import IndexConfig

    from memcycle.stores.embedding_models import EmbeddingModel
    from memcycle.stores.indexes import Views

WHOLE = "$"
"""The path of a value as a whole, as JSON text."""

Texts = list[tuple[str, str]]
"""Path and text; one path may give several texts."""


def paths_of(op: PutOp, fields: Sequence[str] | None) -> list[str]:
    """The paths of an item's value that are embedded: the operation's own, or else the store's."""
    if op.value is None or op.index is False:
        return []
    return list(op.index if op.index is not None else fields or [WHOLE])


def texts_at(value: Any, paths: Iterable[str]) -> Texts:
    """The texts a value has at paths; a missing path has none."""
    return [
        (path, text)
        for path in paths
        for text in get_text_at_path(value, path if path == WHOLE else tokenize_path(path))
    ]


class ItemEmbedder(NamedTuple):
    """What embeds items and queries.

    Attributes:
        id: Recorded with each vector; vectors of another one are not comparable.
        of: Vectors by text, zero for a blank one.
        close: Ends the thread of an async function.
    """

    id: str
    of: Callable[[Sequence[str]], dict[str, Vector]]
    close: Callable[[], None] = lambda: None


def item_embedder(views: "Views", index: "IndexConfig | None", world: World) -> ItemEmbedder:
    """The embedder an index configuration names, or else the bank's own.

    Raises:
        BadInput: `dims` is not the length of the bank's vectors.
    """
    embed, dims = (index or {}).get("embed"), (index or {}).get("dims")
    if embed is None:
        known = views.vectors.dimension() if dims else None
        if dims != known:
            raise BadInput(
                f"the store's index is configured with dims={dims}, but the embedder {views.vectors.id}"
                f" makes vectors of {known} numbers; leave dims out, or name another embedder in `embed`"
            )
        return ItemEmbedder(views.vectors.id, views.vectors.of)
    from memcycle.stores.embedder import Embedder

    model, close = _model(embed)
    embedder = Embedder(model._replace(dim=dims), world)

    def vectors_of(texts: Sequence[str]) -> dict[str, Vector]:
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, embedder.embed(distinct), strict=True)) if distinct else {}

    return ItemEmbedder(embedder.id, vectors_of, close)


def _model(embed: Any) -> "tuple[EmbeddingModel, Callable[[], None]]":
    """The model of LangGraph's `embed`, and what ends it."""
    from memcycle.stores.embedding_models import langchain_model

    model = langchain_model(ensure_embeddings(embed))
    if inspect.iscoroutinefunction(embed) or inspect.iscoroutinefunction(type(embed).__call__):
        own = _OwnLoop(embed)
        return model._replace(load=lambda: own), own.close
    return model, lambda: None


class _OwnLoop:
    """An async embedding function called from threads.

    All its calls run in one loop of its own, since a client it uses is bound to the loop of its first call.
    """

    def __init__(self, embed: Callable[[Sequence[str]], Awaitable[list[list[float]]]]) -> None:
        self._embed = embed
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="memcycle-embed", daemon=True)
        self._thread.start()

    def __call__(self, texts: list[str]) -> list[list[float]]:
        return asyncio.run_coroutine_threadsafe(self._awaited(texts), self._loop).result()

    def close(self) -> None:
        """Ends the loop. Idempotent."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    async def _awaited(self, texts: list[str]) -> list[list[float]]:
        return await self._embed(texts)


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
