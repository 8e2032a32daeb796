"""The vector index in Chroma: every active entry whole, spread over collections by a hash of its base scope.

It is rebuildable: the ledger is the system of record, and nothing here is read that is not there too.
"""

import hashlib
import itertools
import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np

from memcycle.core.entry import GRANULARITIES, Entry, Granularity
from memcycle.core.errors import StoreError
from memcycle.core.scope import Scope
from memcycle.stores.chroma.client import ChromaClient, chroma_errors
from memcycle.stores.ledger.columns import Vector

if TYPE_CHECKING:
    from chromadb.api.client import Client

Item = tuple[Entry, Vector]
Metadata = dict[str, str]

VIEW_FIELD = "view"
_REST = {
    "status", "title", "role", "related_turns", "quote", "event_precision", "recorded_at", "valid_from",
    "valid_until", "expires_at", "importance", "confidence", "actor", "embedder",
}  # fmt: skip


def scope_field(scope: Scope) -> str:
    """The base scope as one token of fixed length: compared whole, so 'ana' never meets 'ana2'."""
    return hashlib.blake2b(scope.key.encode(), digest_size=16).hexdigest()


def view_field(scope: Scope, granularity: Granularity) -> str:
    """Base scope and granularity in one field, since a second condition costs several times the first."""
    return f"{scope_field(scope)}:{granularity}"


def where(scope: Scope, granularity: Granularity | None) -> dict[str, Any]:
    """The condition for entries of a base scope, of all granularities where none is named."""
    if granularity is not None:
        return {VIEW_FIELD: view_field(scope, granularity)}
    return {VIEW_FIELD: {"$in": [view_field(scope, name) for name in GRANULARITIES]}}


def metadata_of(entry: Entry) -> Metadata:
    """The fields of an entry, flat; an absent one has no key.

    An upsert merges metadata, so that a key that went missing would stay: those that have keys of their own
    never change. What one may want to filter by has one; the rest is one JSON object under `rest`, since each
    key is a row with an index entry in Chroma's tables, which is what most of a write's time goes to.
    """
    rest = entry.model_dump(mode="json", include=_REST, exclude_none=True)
    fields = {
        VIEW_FIELD: view_field(entry.scope, entry.granularity),
        "user": entry.scope.user,
        "workspace": entry.scope.workspace,
        "session": entry.scope.session,
        "granularity": entry.granularity,
        "kind": entry.kind,
        "speaker": entry.speaker,
        "turns": json.dumps(entry.turns, ensure_ascii=False),
        "event_time": entry.event_time.isoformat() if entry.event_time else None,
        "observed_at": entry.observed_at.isoformat() if entry.observed_at else None,
        "rest": json.dumps(rest, ensure_ascii=False),
    }
    return {key: value for key, value in fields.items() if value is not None}


_SPACE: Any = {"hnsw": {"space": "cosine", "ef_search": 400}}
"""With Chroma's own 100, one of ten of the nearest 200 of a granularity is missed at 10,000 entries."""


T = TypeVar("T")

Found = tuple[str, float]
"""Id and score."""

PAGE = 5_000
FLOATS_A_CALL = 1_000_000
"""Keeps the body of a call under the 40 MB a server takes."""


def shard_of(scope: Scope, shards: int) -> int:
    """The shard where all entries of the base scope stand, 0 to `shards` - 1."""
    digest = hashlib.blake2b(scope.key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % shards


class IndexedEntry(NamedTuple):
    """An entry as the index has it, in which shard; `vector` is of shape (dim,)."""

    shard: int
    id: str
    text: str
    metadata: Metadata
    vector: Vector


class ChromaIndex:
    """Vectors of active entries. Thread-safe. Scores are cosines clipped to 0..1, 1 is the same direction.

    All failures of Chroma are StoreErrors; after any the ledger can fill the index anew.
    """

    def __init__(self, client: ChromaClient, shards: int, dim: int) -> None:
        self._client, self._shards, self._dim = client, shards, dim
        # One writer at a time; and a scrub takes the embedded client away from under its readers.
        self._lock = threading.RLock()
        # On a server others look up at the same time, and may forget what was found meanwhile.
        self._collections: dict[int, Any] = {}

    def shard_of(self, scope: Scope) -> int:
        """The shard of a base scope: all scopes of a dropped shard must be filled in again."""
        return shard_of(scope, self._shards)

    def upsert(self, items: Sequence[Item], batch: int) -> None:
        """Writes entries with their vectors, whatever was there under their ids before.

        Args:
            items: Entries and vectors of shape (dim,). Of one id twice the last wins.
            batch: Entries a call at most; a call holds the interpreter lock, about 0.6 ms an entry.
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
        self,
        scope: Scope,
        vectors: Vector,
        k: int,
        granularity: Granularity | None = None,
        *,
        whole_shard: bool = False,
    ) -> list[list[Found]]:
        """The nearest entries of the base scope, for each row of `vectors` (n, dim) a list, best first.

        A zero row (a blank query) finds nothing. Equal scores stand in order of id.

        Args:
            whole_shard: Those of all scopes of the shard, of any granularity: a condition on a hundred
                thousand entries takes some hundred times as long.
        """
        asked = np.asarray(vectors, dtype=np.float32).reshape(-1, self._dim)
        found: list[list[Found]] = [[] for _ in asked]
        rows = np.flatnonzero(asked.any(axis=1))
        if not rows.size or k < 1:
            return found
        result = self._read(
            self.shard_of(scope),
            "query",
            query_embeddings=asked[rows],
            n_results=k,
            where=None if whole_shard else where(scope, granularity),
            include=["distances"],
        )
        if result is not None:
            for row, ids, distances in zip(rows, result["ids"], result["distances"], strict=True):
                scores = [min(1.0, max(0.0, 1.0 - distance)) for distance in distances]
                ordered = sorted(zip([-score for score in scores], ids, strict=True))
                found[row] = [(entry_id, -score) for score, entry_id in ordered]
        return found

    def ids(self, scope: Scope | None = None) -> set[str]:
        """Ids of all entries, or of one base scope's."""
        shards = range(self._shards) if scope is None else (self.shard_of(scope),)
        wanted = None if scope is None else where(scope, None)
        found = [self._read(shard, "get", where=wanted, include=[]) for shard in shards]
        return {entry_id for page in found if page for entry_id in page["ids"]}

    def copies(self) -> Iterator[list[IndexedEntry]]:
        """All it holds, page by page."""
        for shard in range(self._shards):
            for offset in itertools.count(0, PAGE):
                columns = ("documents", "metadatas", "embeddings")
                page = self._read(shard, "get", include=[*columns], limit=PAGE, offset=offset)
                if not page or not page["ids"]:
                    break
                found = zip(*(page[name] for name in ("ids", *columns)), strict=True)
                yield [IndexedEntry(shard, *one) for one in found]

    def leftover(self) -> int:
        """How many collections of the home are none of its shards: it once had another number."""
        own = {self._name(shard) for shard in range(self._shards)}
        with self.client() as (client, prefix):
            found = {collection.name for collection in client.list_collections()}
        return sum(name.startswith(prefix) for name in found - own)

    def drop_shards(self, shards: Iterable[int]) -> None:
        """Drops the collections of shards, with all base scopes there: fill them again."""
        from chromadb.errors import NotFoundError

        for shard in sorted(shards):
            with self._lock, chroma_errors(self._client.where, "dropping a shard"), suppress(NotFoundError):
                self._collections.pop(shard, None)
                self._client.api.delete_collection(self._name(shard))

    def scrub(self) -> None:
        """Leaves no deleted text of dropped shards in any file of the embedded index but those in `note`."""
        with self._lock:
            self._collections.clear()
            self._client.scrub()

    @property
    def note(self) -> str | None:
        """Which files of the embedded index could not be cleaned, and what to do; else None."""
        return self._client.note

    @contextmanager
    def client(self) -> Iterator[tuple["Client", str]]:
        """Chroma's own client, and how names of the home's collections begin.

        Nobody closes it meanwhile. Failures of Chroma are StoreErrors.
        """
        with self._lock, chroma_errors(self._client.where, "looking at its collections"):
            try:
                yield self._client.api, self._client.prefix
            finally:
                self._client.settle()

    def close(self) -> None:
        """Frees files, connections and lock. Idempotent."""
        with self._lock:
            self._collections.clear()
            self._client.close()

    def _fitting(self, vector: Vector) -> Vector:
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
        """Calls a method of a shard's collection; None where there is no collection and nothing is put in.

        Another process may have dropped the collection on the server: it is looked up again, once.
        """
        from chromadb.errors import InternalError, NotFoundError

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
            except InternalError:
                self._collections.clear()
                self._client.renew()
                raise
            finally:
                self._client.settle()
        return None

    def _collection(self, shard: int, *, create: bool) -> Any:
        from chromadb.errors import NotFoundError

        if shard not in self._collections:
            api, name = self._client.api, self._name(shard)
            with suppress(NotFoundError):
                self._collections[shard] = (
                    api.get_or_create_collection(name, embedding_function=None, configuration=_SPACE)
                    if create
                    else api.get_collection(name, embedding_function=None)
                )
        return self._collections.get(shard)

    def _name(self, shard: int) -> str:
        return f"{self._client.prefix}{shard:02d}"


def _parts(things: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(things), size):
        yield things[start : start + size]
