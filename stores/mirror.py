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
from memcycle.stores.chroma_client import ChromaClient, open_client
from memcycle.stores.chroma_index import ChromaIndex
from memcycle.stores.ledger import entries, meta, outbox, sessions
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.ledger.connection import BUSY_SECONDS, Ledger
from memcycle.stores.ledger.outbox import Pending
from memcycle.stores.search import lexical
from memcycle.stores.vectors import Vectors

_log = logging.getLogger(__name__)


class Mirror:
    """The index as a copy of the ledger's active entries. Thread-safe."""

    def __init__(self, settings: Settings, ledger: Ledger, vectors: Vectors) -> None:
        self._settings, self._ledger, self._vectors = settings, ledger, vectors
        self._note: str | None = None
        self._opening, self._draining = threading.RLock(), threading.RLock()
        self._client: ChromaClient | None = None
        self._index: ChromaIndex | None = None
        self._file_lock = FileLock(settings.home / "locks" / "drain.lock", thread_local=False)

    @property
    def operator_note(self) -> str | None:
        """What a person must do so that deleted text leaves the index's files, if anything.

        Known of a server after a wipe, and of the embedded index once it was used.
        """
        return self._note or (self._index.note if self._index is not None else None)

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
        What waits for one shard is worked off together: many small writes cost the index more than few large
        ones.

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
            while worked := self._drain_some(size):
                done += worked
        return done

    def refill(self) -> None:
        """Makes the index anew from the ledger, also one too damaged to open."""
        with self._exclusive():
            with self._opening:
                self.close()
                self._connect(fresh=True)
            with self._ledger.write() as conn:
                for scope in sessions.all_scopes(conn):
                    outbox.put_active(conn, scope)
            self.drain(self._settings.bulk_batch)

    def wipe(self) -> None:
        """Leaves no deleted text in any file of the home. Nothing where none is owed; safe to repeat.

        Raises:
            StoreError: the index cannot be wiped now. The ledger is, and the rest is owed still.
        """
        with self._ledger.read() as conn:
            owed, compaction = meta.owed_scrubs(conn), meta.owes_compaction(conn)
        if compaction:
            with self._ledger.write() as conn:
                lexical.scrub(conn)
            self._ledger.compact()
            self._ledger.checkpoint()
        if owed:
            self._wipe_index(owed)
        if compaction and self._ledger.checkpoint():
            with self._ledger.write() as conn:
                meta.compacted(conn)

    def drift(self) -> tuple[int, int]:
        """How many entries the index lacks, and how many it has too many."""
        wanted = self._wanted()
        there = self._opened().ids()
        return len(wanted - there), len(there - wanted)

    def close(self) -> None:
        """Frees the index. Idempotent."""
        with self._opening:
            if self._client is not None:
                self._client.close()
            self._client = self._index = None

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

    def _drain_some(self, size: int) -> int:
        index = self._opened()
        with self._ledger.read() as conn:
            pending = outbox.head(conn, size * self._settings.shards)
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

    def _wipe_index(self, owed: list[Scope]) -> None:
        with self._exclusive():
            index = self._opened()
            shards = {index.shard_of(scope) for scope in owed}
            with self._ledger.write() as conn:
                for scope in sessions.all_scopes(conn):
                    if index.shard_of(scope) in shards:
                        outbox.put_active(conn, scope)
            index.drop_shards_of(owed)
            self.drain(self._settings.bulk_batch)
            self._note = index.scrub()
        with self._ledger.write() as conn:
            meta.index_scrubbed(conn, owed)

    def _wanted(self) -> set[str]:
        with self._ledger.read() as conn:
            return entries.indexed_ids(conn, self._vectors.id)
