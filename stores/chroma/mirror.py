"""Keeps the vector index in step with the ledger: opens it when needed, drains the outbox, refills, wipes.

The embedded index has one writer. The first process that needs it has it until it closes; the others of the
home read and write the ledger beside it, search without it, and leave to it the outbox and what of a deletion
is owed in the index's files. Whoever comes to something that is owed when nobody has the index takes it.
"""

import logging
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from memcycle.core.entry import Granularity
from memcycle.core.errors import StoreBusy, StoreError
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores.chroma.client import LOCK_FOLDER, ChromaClient, WriterLock, open_client
from memcycle.stores.chroma.index import ChromaIndex
from memcycle.stores.ledger import entries, full_text, meta, outbox, sessions
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.ledger.connection import BUSY_SECONDS, Ledger
from memcycle.stores.ledger.outbox import Pending

if TYPE_CHECKING:
    from memcycle.stores.indexes import Vectors

DRAIN_LOCK = "drain.lock"
"""Among the home's locks: held by whoever works off its outbox."""

_FEW = 4
"""A share of what was asked for that is too few."""

_log = logging.getLogger(__name__)


class Mirror:
    """The index as a copy of the ledger's active entries. Thread-safe.

    What needs the index raises StoreError where it cannot be opened or reached, and StoreBusy where another
    process has it: what is left or owed waits.

    Attributes:
        settings, ledger: Those of the home.
        elsewhere: Whether another process had the embedded index when this one last looked.
    """

    def __init__(self, settings: Settings, ledger: Ledger, vectors: "Vectors") -> None:
        self.settings, self.ledger, self._vectors = settings, ledger, vectors
        self._opening, self._draining = threading.RLock(), threading.RLock()
        self._client: ChromaClient | None = None
        self._index: ChromaIndex | None = None
        self.elsewhere = False
        self._file_lock = FileLock(settings.home / LOCK_FOLDER / DRAIN_LOCK, thread_local=False)

    def claim(self) -> None:
        """Takes the embedded index, for what nobody else may do beside; one that cannot be opened, too."""
        if self.settings.chroma_url:
            return
        try:
            with self._opening:
                self._connect(self.settings.lock_timeout)
        except StoreBusy:
            raise
        except StoreError as error:
            _log.warning("the index cannot be opened: %s", error)

    def at_hand(self) -> bool:
        """Whether this process writes the index: a server's, or the embedded one, taken where it is free."""
        if self.settings.chroma_url:
            return True
        with self._opening:
            try:
                self._connect(0)
            except StoreBusy:
                self.elsewhere = True
            return not self.elsewhere

    def index(self) -> ChromaIndex:
        """The index, opened if it was not, whatever the outbox holds."""
        with self._opening:
            if self._index is None:
                client = self._connect(self.settings.lock_timeout)
                self._index = ChromaIndex(client, self.settings.shards, self._vectors.dimension())
            return self._index

    def query(
        self,
        scope: Scope,
        vectors: Vector,
        k: int,
        granularity: Granularity | None,
        own: Callable[[set[str]], Collection[str]],
    ) -> list[list[tuple[str, float]]]:
        """The nearest of the scope, or nearly so. What the outbox holds is brought in first.

        A scope that is asked here is large, and most of its shard: its entries are looked for among the
        nearest there, and only where they are few by `ChromaIndex.query` with its condition.

        Args:
            granularity: Of these there are enough among them; others may be, too.
            own: Says which ids are of the scope.
        """
        self.drain()
        index, most = self.index(), k if granularity is None else 2 * k
        found = index.query(scope, vectors, most, whole_shard=True)
        known = own({one for near in found for one, _ in near})
        found = [[one for one in near if one[0] in known] for near in found]
        if any(len(near) < k / _FEW for near in found):
            return index.query(scope, vectors, k, granularity)
        return found

    def drain(self, batch: int | None = None) -> int:
        """Brings every waiting entry up to date in the index; nothing where another process has that.

        A row leaves the outbox only after the index took it. Entries without a vector are not in the index.

        Args:
            batch: Entries a write of the index at most; as while serving, without.

        Returns:
            How many outbox rows were worked off.
        """
        size, done = batch or self.settings.serving_batch, 0
        with self.ledger.read() as conn:
            if not outbox.head(conn, 1):
                return 0
        self._vectors.require_match()
        if not self.at_hand():
            return 0
        with self.exclusive():
            while worked := self._work_off(size):
                done += worked
        return done

    def refill(self) -> None:
        """Makes the index anew from the ledger, also one too damaged to open."""
        with self.exclusive():
            with self._opening:
                self._index = None
                if self._client is None:
                    self._connect(self.settings.lock_timeout, fresh=True)
                else:
                    self._client.clear()
            with self.ledger.write() as conn:
                for scope in sessions.all_scopes(conn):
                    outbox.put_active(conn, scope)
            self.drain(self.settings.bulk_batch)

    def wipe(self) -> None:
        """Leaves no deleted text in any file of the home. Nothing where none is owed; safe to repeat.

        From a server's collections it is deleted; its files are its operator's (see `operator_note`). What is
        in an embedded index that another process has stays owed: that one wipes it at its next step.
        """
        with self.ledger.read() as conn:
            mark = meta.owed_compaction(conn)
        if mark is None:
            self.wipe_index()
            return
        # One at a time: who waited finds its own text wiped by another's wipe, mostly.
        with self.exclusive():
            with self.ledger.write() as conn:
                mark = meta.owed_compaction(conn)
                if mark is not None:  # nobody else just did it
                    full_text.merge(conn)
            if mark is not None:
                self.ledger.compact()
                self.ledger.checkpoint()
            self.wipe_index()
            if mark is not None and self.ledger.checkpoint():
                with self.ledger.write() as conn:
                    meta.compacted(conn, mark)

    def wipe_index(self) -> None:
        """What `wipe` does in the index, also of what other processes deleted; the ledger's file is left."""
        with self.ledger.read() as conn:
            if not meta.owed_scrubs(conn):
                return
        if not self.at_hand():
            return
        with self.exclusive():
            with self.ledger.read() as conn:
                owed = meta.owed_scrubs(conn)
            self._wipe_scopes(list(owed))
            with self.ledger.write() as conn:
                meta.index_scrubbed(conn, owed)

    def operator_note(self) -> str | None:
        """What a person must do so that deleted text leaves the index's files, if anything.

        Of a server always the same; of the embedded index known once it was used; of one that another process
        has, that this one will do it.
        """
        url = self.settings.chroma_url
        if url is not None:
            return (
                f"deleted text may remain in the files of the Chroma server at {url}: run `memcycle doctor"
                " --rebuild`, stop the server, and run `memcycle scrub DIR` over its folder"
            )
        if self._index is not None:
            return self._index.note
        with self.ledger.read() as conn:
            if not self.elsewhere or not meta.owed_scrubs(conn):
                return None
        home = self.settings.home
        return (
            f"{WriterLock(home).holder} has the index of {home} open: it takes what was deleted out of the"
            " index's files with the next thing that it stores or is asked, or when it closes"
        )

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """One drain at a time: a late upsert of one must not undo the delete of another. May be nested."""
        with self._draining:
            try:
                self._file_lock.acquire(timeout=BUSY_SECONDS)
            except Timeout as error:
                raise StoreBusy("another process is bringing the index up to date; try again") from error
            try:
                yield
            finally:
                self._file_lock.release()

    def close(self) -> None:
        """Frees the index. Idempotent."""
        with self._opening:
            if self._client is not None:
                self._client.close()
            self._client = self._index = None

    def _wipe_scopes(self, scopes: Sequence[Scope]) -> None:
        index = self.index()
        if self.settings.chroma_url is None:
            shards = {index.shard_of(scope) for scope in scopes}
            with self.ledger.write() as conn:
                for scope in sessions.all_scopes(conn):
                    if index.shard_of(scope) in shards:
                        outbox.put_active(conn, scope)
            index.drop_shards(shards)
            self.drain()
            index.scrub()
            return
        # A server keeps 2.6 MB in memory of every collection it ever had, so none is dropped here.
        for scope in scopes:
            with self.ledger.read() as conn:  # of an erased scope the outbox says nothing
                wanted = entries.ids_of(conn, scope, statuses=("active",))
            index.delete([(scope, one) for one in index.ids(scope).difference(wanted)])
        self.drain()

    def _work_off(self, size: int) -> int:
        """Brings in the rows that wait longest, `size` entries of a shard a write.

        Many small writes cost the index more than few large ones.
        """
        index = self.index()
        with self.ledger.read() as conn:
            pending = outbox.head(conn, size * self.settings.shards)
        of_shard: dict[int, list[Pending]] = {}
        for one in pending:
            of_shard.setdefault(index.shard_of(one.scope), []).append(one)
        for waiting in of_shard.values():
            for start in range(0, len(waiting), size):
                self._bring_in(index, waiting[start : start + size], size)
        return len(pending)

    def _bring_in(self, index: ChromaIndex, part: Sequence[Pending], size: int) -> None:
        with self.ledger.read() as conn:
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
        with self.ledger.write() as conn:
            outbox.done(conn, part)

    def _connect(self, patience: float, *, fresh: bool = False) -> ChromaClient:
        """Takes the index without asking the embedder, which may be down, for the dimension."""
        if self._client is None:
            self._client = open_client(self.settings, self._store_id(), patience=patience, fresh=fresh)
            self.elsewhere = False
        return self._client

    def _store_id(self) -> str:
        with self.ledger.read() as conn:
            known = meta.get(conn, meta.STORE)
        if known is None:
            with self.ledger.write() as conn:
                # Not the world's ids: those of two homes may repeat, and this must tell them apart.
                known = meta.get(conn, meta.STORE) or uuid.uuid4().hex
                meta.put(conn, meta.STORE, known)
        return known
