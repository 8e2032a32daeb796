"""The vector index in Chroma: every active entry whole, spread over collections by a hash of its base scope.

It is rebuildable: the ledger is the system of record, and nothing here is read that is not there too.
"""

import hashlib
import itertools
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt

from memcycle.core.entry import Entry, Granularity
from memcycle.core.errors import StoreError
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores.chroma_client import ChromaClient, chroma_errors, open_client
from memcycle.stores.chroma_record import SCOPE_FIELD, VIEW_FIELD, metadata_of, scope_field, view_field

if TYPE_CHECKING:
    from chromadb.api.client import Client

T = TypeVar("T")

Matrix = npt.NDArray[np.float32]
Item = tuple[Entry, Matrix]
Found = tuple[str, float]

SPACE: Any = {"hnsw": {"space": "cosine", "ef_search": 400}}
"""With Chroma's own 100, one of ten of the nearest 200 of a granularity is missed at 10,000 entries."""
PAGE = 5_000
FLOATS_A_CALL = 1_000_000
"""Keeps the body of a call under the 40 MB a server takes."""


def shard_of(scope: Scope, shards: int) -> int:
    """The shard where all entries of the base scope stand, 0 to `shards` - 1."""
    digest = hashlib.blake2b(scope.key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % shards


class ChromaIndex:
    """Vectors of active entries. Thread-safe. Scores are cosines clipped to 0..1, 1 is the same direction.

    All failures of Chroma are StoreErrors; after any the ledger can fill the index anew.
    """

    def __init__(self, client: ChromaClient, shards: int, dim: int) -> None:
        self._client, self._shards, self._dim = client, shards, dim
        # One writer at a time; and a scrub takes the embedded client away from under its readers.
        self._lock = threading.RLock()
        self._collections: dict[int, Any] = {}

    @classmethod
    def open(cls, settings: Settings, store: str, dim: int, *, fresh: bool = False) -> Self:
        """Opens the embedded index of `settings.home`, or the server at `settings.chroma_url`.

        Args:
            settings: Home or address, shards, lock timeout.
            store: Id of the home's memory, for its collections' names; see `open_client`.
            dim: Length of the vectors.
            fresh: Removes all that was there first, also an index too damaged to open.

        Raises:
            StoreBusy: another process writes the embedded index. Names its pid.
            StoreError: it cannot be opened, or the server does not answer.
        """
        return cls(open_client(settings, store, fresh=fresh), settings.shards, dim)

    def shard_of(self, scope: Scope) -> int:
        """The shard of a base scope: all scopes of a dropped shard must be filled in again."""
        return shard_of(scope, self._shards)

    def upsert(self, items: Sequence[Item], batch: int) -> None:
        """Writes entries with their vectors, whatever was there under their ids before.

        Args:
            items: Entries and vectors of shape (dim,). Of one id twice the last wins.
            batch: Entries a call at most; a call holds the interpreter lock, about 0.3 ms an entry.
        """
        unique = {entry.id: (entry, self._fitting(vector)) for entry, vector in items}
        size = max(1, min(batch, FLOATS_A_CALL // self._dim))
        for shard, group in self._by_shard((item[0].scope, item) for item in unique.values()):
            for part in _parts(group, size):
                self._write(
                    shard,
                    "upsert",
                    ids=[entry.id for entry, _ in part],
                    embeddings=np.stack([vector for _, vector in part]),
                    documents=[entry.text for entry, _ in part],
                    metadatas=[metadata_of(entry) for entry, _ in part],
                )

    def delete(self, scopes_and_ids: Sequence[tuple[Scope, str]]) -> None:
        """Removes entries. Their text stays in files until their shard is dropped and scrubbed."""
        for shard, ids in self._by_shard(scopes_and_ids):
            for part in _parts(list(dict.fromkeys(ids)), PAGE):
                self._write(shard, "delete", ids=part)

    def query(
        self, scope: Scope, vectors: Matrix, k: int, granularity: Granularity | None = None
    ) -> list[list[Found]]:
        """The nearest entries of the base scope, for each row of `vectors` (n, dim) a list, best first.

        A zero row (a blank query) finds nothing. Equal scores stand in order of id.
        """
        asked = np.asarray(vectors, dtype=np.float32).reshape(-1, self._dim)
        found: list[list[Found]] = [[] for _ in asked]
        rows = np.flatnonzero(asked.any(axis=1))
        if not rows.size or k < 1:
            return found
        where = (
            {VIEW_FIELD: view_field(scope, granularity)} if granularity else {SCOPE_FIELD: scope_field(scope)}
        )
        result = self._read(
            self.shard_of(scope),
            "query",
            query_embeddings=asked[rows],
            n_results=k,
            where=where,
            include=["distances"],
        )
        if result is not None:
            for row, ids, distances in zip(rows, result["ids"], result["distances"], strict=True):
                scored = [(id_, min(1.0, max(0.0, 1.0 - d))) for id_, d in zip(ids, distances, strict=True)]
                found[row] = sorted(scored, key=lambda pair: (-pair[1], pair[0]))
        return found

    def ids(self, scope: Scope | None = None) -> set[str]:
        """Ids of all entries, or of one base scope's."""
        shards = range(self._shards) if scope is None else (self.shard_of(scope),)
        where = None if scope is None else {SCOPE_FIELD: scope_field(scope)}
        found: set[str] = set()
        for shard in shards:
            for offset in itertools.count(0, PAGE):
                page = self._read(shard, "get", where=where, include=[], limit=PAGE, offset=offset)
                ids = page["ids"] if page else []
                found.update(ids)
                if len(ids) < PAGE:
                    break
        return found

    def drop_shards_of(self, scopes: Iterable[Scope]) -> None:
        """Drops the collections of these base scopes, and so the other scopes there: fill them again."""
        for shard in sorted({self.shard_of(scope) for scope in scopes}):
            self._drop(shard)

    def clear(self) -> None:
        """Removes everything, whatever number of shards it was written with."""
        with self._lock, chroma_errors(self._client.where, "clearing it"):
            self._collections.clear()
            self._client.clear()

    def scrub(self) -> str | None:
        """Leaves no deleted text of dropped shards in any file of the embedded index.

        Returns:
            None when that is done (but in files that `note` names), else what the server's operator must do.
        """
        with self._lock:
            self._collections.clear()
            return self._client.scrub()

    @property
    def note(self) -> str | None:
        """Which files of the embedded index could not be cleaned, and what to do; else None."""
        with self._lock:
            return self._client.note

    @contextmanager
    def client(self) -> Iterator[tuple["Client", str]]:
        """Chroma's client for a call to a collection beside the shards, and how names of collections begin.

        Nobody closes it meanwhile. Failures of Chroma are StoreErrors.
        """
        with self._lock, chroma_errors(self._client.where, "using a collection of items"):
            try:
                yield self._client.api, self._client.prefix
            finally:
                self._client.settle()

    def close(self) -> None:
        """Frees files, connections and lock. Idempotent."""
        with self._lock:
            self._collections.clear()
            self._client.close()

    def _fitting(self, vector: Matrix) -> Matrix:
        fitting = np.asarray(vector, dtype=np.float32)
        # Chroma drops a vector with NaN silently.
        if fitting.shape != (self._dim,) or not np.isfinite(fitting).all():
            raise StoreError(
                f"the index takes finite vectors of {self._dim} numbers, got shape {fitting.shape};"
                " after a change of embedder run `memcycle doctor --reembed`"
            )
        return fitting

    def _by_shard(self, scoped: Iterable[tuple[Scope, T]]) -> Iterator[tuple[int, list[T]]]:
        groups: dict[int, list[T]] = {}
        for scope, thing in scoped:
            groups.setdefault(self.shard_of(scope), []).append(thing)
        yield from sorted(groups.items())

    def _write(self, shard: int, method: Literal["upsert", "delete"], **arguments: Any) -> None:
        with self._lock, chroma_errors(self._client.where, "writing"):
            self._call(shard, method, arguments)

    def _read(self, shard: int, method: Literal["query", "get"], **arguments: Any) -> Any:
        lock = self._lock if self._client.exclusive else nullcontext()
        with lock, chroma_errors(self._client.where, "reading"):
            return self._call(shard, method, arguments)

    def _call(self, shard: int, method: str, arguments: dict[str, Any]) -> Any:
        """Calls a method of the shard's collection; None where there is no collection and it is no upsert.

        Another process may have dropped the collection on the server: it is looked up again, once.
        """
        from chromadb.errors import NotFoundError

        for attempt in range(2):
            collection = self._collection(shard, create=method == "upsert")
            if collection is None:
                break
            try:
                return getattr(collection, method)(**arguments)
            except NotFoundError:
                self._collections.pop(shard, None)
                if attempt:
                    raise
            finally:
                self._client.settle()
        return None

    def _collection(self, shard: int, *, create: bool) -> Any:
        from chromadb.errors import NotFoundError

        if shard not in self._collections:
            name = self._name(shard)
            try:
                self._collections[shard] = (
                    self._client.api.get_or_create_collection(
                        name, embedding_function=None, configuration=SPACE
                    )
                    if create
                    else self._client.api.get_collection(name, embedding_function=None)
                )
            except NotFoundError:
                return None
        return self._collections[shard]

    def _name(self, shard: int) -> str:
        return f"{self._client.prefix}{shard:02d}"

    def _drop(self, shard: int) -> None:
        from chromadb.errors import NotFoundError

        with self._lock, chroma_errors(self._client.where, "dropping a shard"), suppress(NotFoundError):
            self._collections.pop(shard, None)
            self._client.api.delete_collection(self._name(shard))


def _parts(things: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(things), size):
        yield things[start : start + size]
