"""The vectors of a store's items in Chroma, for namespaces too large to be searched one by one.

A collection an embedder, beside those of the entries on the same client. It holds vectors and hashes of
namespaces, no text. It is rebuildable: the ledger knows which vectors it was given.
"""

import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from memcycle.core.errors import StoreError
from memcycle.stores.chroma.index import SPACE
from memcycle.stores.chroma.mirror import Mirror
from memcycle.stores.ledger import item_vectors
from memcycle.stores.ledger.columns import Vector, digest
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.ledger.items import Namespace, to_labels

PAGE = 5_000


class ItemIndex:
    """The collection of one embedder. Thread-safe. Failures are StoreErrors; the ledger stays as it is."""

    def __init__(self, ledger: Ledger, mirror: Mirror, embedder: str, batch: int) -> None:
        self._ledger, self._mirror = ledger, mirror
        self._embedder, self._batch = embedder, batch
        self._drains = threading.Lock()

    def query(self, prefix: Namespace, vector: Vector, k: int) -> list[int]:
        """Rows of the `k` vectors nearest to one, of shape (dim,), at or below a namespace; nearest first.

        Approximate. What Chroma lacked is brought in before.
        """
        self.drain()
        where = {_field(len(prefix)): _hash(prefix)} if prefix else None
        with self._collection() as collection:
            found = collection.query(
                query_embeddings=[vector], n_results=k, where=where, include=["distances"]
            )
        return [int(row) for row in found["ids"][0]]

    def drain(self) -> None:
        """Brings Chroma up to date, `batch` vectors a call. It may be called by several processes at once."""
        with self._drains:
            self._open()
            while self._drain_some():
                pass

    @contextmanager
    def _collection(self) -> Iterator[Any]:
        from chromadb.errors import NotFoundError

        try:
            with self._mirror.index().client() as (client, names):
                yield client.get_collection(names + _name(self._embedder), embedding_function=None)
        except NotFoundError as error:
            raise StoreError("another process has just removed the items' collection; try again") from error

    def _open(self) -> None:
        """Notes the collection Chroma has; it may have been made anew, and then lacks all."""
        with self._mirror.index().client() as (client, names):
            collection = client.get_or_create_collection(
                names + _name(self._embedder), embedding_function=None, configuration=SPACE
            )
        with self._ledger.read() as conn:
            known = item_vectors.adopted(conn, self._embedder, str(collection.id))
        if not known:
            with self._ledger.write() as conn:
                item_vectors.adopt(conn, self._embedder, str(collection.id))

    def _drain_some(self) -> bool:
        with self._ledger.read() as conn:
            lacking = item_vectors.lacking(conn, self._embedder, self._batch)
            gone = item_vectors.gone(conn, self._embedder, PAGE)
        if not lacking and not gone:
            return False
        with self._collection() as collection:
            if lacking:
                collection.upsert(
                    ids=[str(one.row) for one in lacking],
                    embeddings=[np.frombuffer(one.vector, dtype=np.float32) for one in lacking],
                    metadatas=[_metadata(to_labels(one.namespace)) for one in lacking],
                )
            if gone:
                collection.delete(ids=[str(row) for row in gone])
        with self._ledger.write() as conn:
            item_vectors.taken(conn, gone)
            if lacking:
                item_vectors.given(conn, self._embedder, [one.row for one in lacking])
        return True


def drop_collections(ledger: Ledger, mirror: Mirror) -> None:
    """Leaves no vector of any item in any file of the index; they are brought in again when needed."""
    with ledger.read() as conn:
        embedders = item_vectors.embedders(conn)
    if not embedders:
        return
    index = mirror.index()
    with index.client() as (client, names):
        standing = {collection.name for collection in client.list_collections()}
        for embedder in embedders:
            if names + _name(embedder) in standing:
                client.delete_collection(names + _name(embedder))
    with ledger.write() as conn:
        for embedder in embedders:
            item_vectors.abandon(conn, embedder)
    index.scrub()


def held_rows(mirror: Mirror, embedder: str) -> set[int]:
    """Rows of the vectors that Chroma has of an embedder; none where it has no collection of it."""
    from chromadb.errors import NotFoundError

    found: set[int] = set()
    with suppress(NotFoundError), mirror.index().client() as (client, names):
        collection = client.get_collection(names + _name(embedder), embedding_function=None)
        for offset in itertools.count(0, PAGE):
            page = collection.get(include=[], limit=PAGE, offset=offset)["ids"]
            found.update(map(int, page))
            if len(page) < PAGE:
                break
    return found


def _name(embedder: str) -> str:
    return f"items-{digest(embedder)}"


def _field(depth: int) -> str:
    return f"below_{depth}"


def _hash(prefix: Sequence[str]) -> str:
    return digest(json.dumps(list(prefix)))


def _metadata(namespace: Namespace) -> dict[str, Any]:
    """A hash of each namespace this one is at or below, so that one condition finds all below a prefix."""
    return {_field(depth): _hash(namespace[:depth]) for depth in range(1, len(namespace) + 1)}
