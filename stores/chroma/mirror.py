"""Keeps the vector index in step with the ledger: opens it when needed, drains the outbox, refills, wipes."""

import logging
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from filelock import FileLock, Timeout

from memcycle.core.entry import Granularity
from memcycle.core.errors import StoreBusy, StoreError
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores.chroma import erase as full_text
from memcycle.stores.chroma.client import ChromaClient, open_client, to_clean
from memcycle.stores.chroma.index import ChromaIndex
from memcycle.stores.ledger import entries, item_vectors, meta, outbox, sessions
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.ledger.connection import BUSY_SECONDS, Ledger
from memcycle.stores.ledger.entries import Listing
from memcycle.stores.ledger.outbox import Pending
from memcycle.stores.locks import LOCK_FOLDER
from memcycle.stores.vectors import Vectors

DRAIN_LOCK = "drain.lock"
"""Among the home's locks: held by whoever works off its outbox."""


_log = logging.getLogger(__name__)


class Mirror:
    """The index as a copy of the ledger's active entries. Thread-safe."""

    def __init__(self, settings: Settings, ledger: Ledger, vectors: Vectors) -> None:
        self._settings, self._ledger, self._vectors = settings, ledger, vectors
        self._note: str | None = None
        self._opening, self._draining = threading.RLock(), threading.RLock()
        self._client: ChromaClient | None = None
        self._index: ChromaIndex | None = None
        self._file_lock = FileLock(settings.home / LOCK_FOLDER / DRAIN_LOCK, thread_local=False)

    @property
    def operator_note(self) -> str | None:
        """What a person must do so that deleted text leaves the index's files, if anything.

        Known of the embedded index once it was used. Of a server it is known as long as collections are owed,
        and in a process that made some anew.
        """
        url = self._settings.chroma_url
        if url is None:
            return self._note or (self._index.note if self._index is not None else None)
        return to_clean(url, first="run `memcycle doctor`, ") if self._owed_collections() else self._note

    def claim(self) -> None:
        """Makes sure that no other process writes the embedded index, before anything is written.

        Another failure of the index stops nobody: the ledger is the system of record, the outbox waits.

        Raises:
            StoreBusy: another process has it. Names the pid.
        """
        if self._settings.chroma_url:
            return
        try:
            with self._opening:
                self._connect()
        except StoreBusy:
            raise
        except StoreError as error:
            _log.warning("the index cannot be opened, writing goes on without it: %s", error)

    def index(self) -> ChromaIndex:
        """The index, opened if it was not, whatever the outbox holds.

        Raises:
            StoreBusy: another process writes the embedded index.
            StoreError: it cannot be opened.
        """
        return self._opened()

    def query(
        self, scope: Scope, vectors: Vector, k: int, granularity: Granularity | None
    ) -> list[list[tuple[str, float]]]:
        """See `ChromaIndex.query`; what the outbox holds is brought in first."""
        self.drain()
        return self._opened().query(scope, vectors, k, granularity)

    def drain(self, batch: int | None = None) -> int:
        """Brings every waiting entry up to date in the index.

        A row leaves the outbox only after the index took it. Entries without a vector are not in the index.

        Args:
            batch: Entries a write of the index at most; as while serving, without.

        Returns:
            How many outbox rows were worked off.

        Raises:
            StoreError: the index cannot be reached; what is left waits.
        """
        size, done = batch or self._settings.serving_batch, 0
        with self._ledger.read() as conn:
            if not outbox.head(conn, 1):
                return 0
        self._vectors.require_match()
        with self._exclusive():
            while worked := self._work_off(size, size * self._settings.shards):
                done += worked
        return done

    def refill(self) -> None:
        """Makes the index anew from the ledger, also one too damaged to open."""
        with self._exclusive():
            owed = self._owed_collections()
            with self._opening:
                self.close()
                self._connect(fresh=True)
            with self._ledger.write() as conn:
                for embedder in item_vectors.embedders(conn):
                    item_vectors.abandon(conn, embedder)
                for scope in sessions.all_scopes(conn):
                    outbox.put_active(conn, scope)
            self.drain(self._settings.bulk_batch)
            self._replaced(owed)

    def wipe(self) -> None:
        """Leaves no deleted text in any file of the home. Nothing where none is owed; safe to repeat.

        From a server's collections it is deleted; see `replace_collections` for the files.

        Raises:
            StoreBusy: another process is writing the index. All is owed still.
            StoreError: the index cannot be wiped now. The ledger is, and the rest is owed still.
        """
        with self._ledger.read() as conn:
            if not meta.owed_scrubs(conn) and meta.owed_compaction(conn) is None:
                return
        # One at a time: who waited finds its own text wiped by another's wipe, mostly.
        with self._exclusive():
            with self._ledger.read() as conn:
                owed, mark = meta.owed_scrubs(conn), meta.owed_compaction(conn)
            if mark is not None:
                with self._ledger.write() as conn:
                    full_text.merge(conn, "lexical")
                self._ledger.compact()
                self._ledger.checkpoint()
            if owed:
                self._wipe_index(owed)
            if mark is not None and self._ledger.checkpoint():
                with self._ledger.write() as conn:
                    meta.compacted(conn, mark)

    def replace_collections(self) -> None:
        """Makes those of a server anew that text was deleted from: its files keep the text while they stand.

        Not done at each deletion: a server keeps 2.6 MB in memory of every collection it ever had, and its
        files are clean only when its operator has done what `operator_note` says.

        Raises:
            StoreError: the index cannot be written now, or is another embedder's. The rest is owed still.
        """
        for shard in sorted(self._owed_collections()):
            # One at a time: others write and search in between, and another doctor may have made it anew.
            with self._exclusive():
                if shard in self._owed_collections():
                    self._vectors.require_match()
                    self._make_anew({shard}, self._settings.bulk_batch)
                    self._replaced({shard})

    def close(self) -> None:
        """Frees the index. Idempotent."""
        with self._opening:
            if self._client is not None:
                self._client.close()
            self._client = self._index = None

    def _work_off(self, size: int, most: int) -> int:
        """Brings in the `most` rows that wait longest, `size` entries of a shard a write.

        Many small writes cost the index more than few large ones.
        """
        index = self._opened()
        with self._ledger.read() as conn:
            pending = outbox.head(conn, most)
        of_shard: dict[int, list[Pending]] = {}
        for one in pending:
            of_shard.setdefault(index.shard_of(one.scope), []).append(one)
        for waiting in of_shard.values():
            for start in range(0, len(waiting), size):
                self._bring_in(index, waiting[start : start + size], size)
        return len(pending)

    def _bring_in(self, index: ChromaIndex, part: Sequence[Pending], size: int) -> None:
        with self._ledger.read() as conn:
            found = entries.anywhere(conn, [one.entry for one in part])
        present = {
            entry_id: (stored.entry, stored.vector)
            for entry_id, stored in found.items()
            if stored.entry.status == "active"
            and stored.vector is not None
            and stored.entry.embedder == self._vectors.id
        }
        index.upsert([(entry, vector) for entry, vector in present.values() if vector is not None], size)
        index.delete([(one.scope, one.entry) for one in part if one.entry not in present])
        with self._ledger.write() as conn:
            outbox.done(conn, part)

    def _opened(self) -> ChromaIndex:
        with self._opening:
            if self._index is None:
                self._index = ChromaIndex(self._connect(), self._settings.shards, self._vectors.dimension())
            return self._index

    def _connect(self, *, fresh: bool = False) -> ChromaClient:
        """Takes the index without asking the embedder, which may be down, for the dimension."""
        if self._client is None:
            self._client = open_client(self._settings, self._store(), fresh=fresh)
        return self._client

    def _store(self) -> str:
        with self._ledger.read() as conn:
            known = meta.store_id(conn)
        if known is None:
            # Not the world's ids: those of two homes may repeat, and this must tell them apart.
            with self._ledger.write() as conn:
                known = meta.put_store_id(conn, uuid.uuid4().hex)
        return known

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """One drain at a time: a late upsert of one must not undo the delete of another."""
        with self._draining:
            try:
                self._file_lock.acquire(timeout=BUSY_SECONDS)
            except Timeout as error:
                raise StoreBusy("another process is bringing the index up to date; try again") from error
            try:
                yield
            finally:
                self._file_lock.release()

    def _wipe_index(self, owed: list[meta.Owed]) -> None:
        index, url = self._opened(), self._settings.chroma_url
        shards = {index.shard_of(one.scope) for one in owed}
        if url is None:
            self._make_anew(shards)
            self._note = index.scrub()
        else:
            for one in owed:
                self._delete_strays(one.scope)
            self.drain()
        with self._ledger.write() as conn:
            if url is not None:
                meta.owe_collections(conn, url, shards)
            meta.index_scrubbed(conn, owed)

    def _delete_strays(self, scope: Scope) -> None:
        """Deletes what the index has of a base scope too many; of an erased one the outbox says nothing."""
        index = self._opened()
        there = index.ids(scope)
        with self._ledger.read() as conn:
            wanted = set(entries.ids_of(conn, scope, Listing(statuses=("active",))))
        index.delete([(scope, one) for one in there - wanted])

    def _make_anew(self, shards: set[int], batch: int | None = None) -> None:
        index = self._opened()
        with self._ledger.write() as conn:
            for scope in sessions.all_scopes(conn):
                if index.shard_of(scope) in shards:
                    outbox.put_active(conn, scope)
        index.drop_shards(shards)
        self.drain(batch)

    def _owed_collections(self) -> set[int]:
        with self._ledger.read() as conn:
            return meta.owed_collections(conn, self._settings.chroma_url)

    def _replaced(self, shards: set[int]) -> None:
        url = self._settings.chroma_url
        if url is not None and shards:
            with self._ledger.write() as conn:
                meta.collections_replaced(conn, url, shards)
            self._note = to_clean(url)
