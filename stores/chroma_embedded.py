"""Chroma in this process, over a directory that one process writes."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast

from filelock import FileLock, Timeout

from memcycle.core.errors import StoreBusy, StoreError
from memcycle.stores import chroma_files
from memcycle.stores.chroma_errors import chroma_errors
from memcycle.stores.chroma_files import DATABASE, SQLITE_PATIENCE
from memcycle.stores.chroma_helper import Helper
from memcycle.stores.chroma_slack import Slack
from memcycle.stores.locks import LOCK_FOLDER, WriterLock

if TYPE_CHECKING:
    from chromadb.api.client import Client

FOLDER = "chroma"
OPEN_PATIENCE = 30.0
"""Seconds to wait for the helper of a process that is gone: it ends after its present call."""
CACHE_PAGES = 8192
"""Of 4 KiB. With SQLite's own 2 MiB a bulk load reads the pages of Chroma's indexes over and over."""


class EmbeddedClient:
    """Chroma in this process, over `home/chroma`, under the home's writer lock.

    Chroma writes freed memory into its vector files (see `chroma_slack`). That is blanked after each call, on
    scrub, on close and before opening. A process that is killed within a call leaves what the call wrote,
    until the home is opened again; after a loss of power what earlier calls wrote may be back until then.

    Two locks: the home's writer lock says whose the index is; the other is held by the process that has it
    open, which is the writer or the helper it is lent to. A helper may live a moment longer than its writer.

    Args:
        lent: This is the helper: another process holds the writer lock.
    """

    exclusive = True

    def __init__(
        self, home: Path, prefix: str, lock_timeout: float, *, fresh: bool = False, lent: bool = False
    ) -> None:
        self._path, self.prefix = home / FOLDER, prefix
        self.where = str(self._path)
        self._slack = Slack(self._path)
        self._writer = None if lent else WriterLock(home, lock_timeout).acquire()
        self._open_lock = FileLock(home / LOCK_FOLDER / "chroma.lock", thread_local=False)
        self._api: Client | None = None
        self._helper: Helper | None = None
        self._closed = False
        try:
            if fresh:
                self._take()
                self._remove()
            self._api = self._open()
        except BaseException:
            self._free()
            raise

    @property
    def api(self) -> "Client":
        """Chroma's own client; opened again after a scrub closed it or it was lent."""
        self._require_lock()
        if self._api is None:
            self._api = self._open()
        return self._api

    @property
    def note(self) -> str | None:
        """Names vector files that could not be blanked, and what to do."""
        return self._slack.note

    def _open(self) -> "Client":
        import chromadb
        from chromadb.api.shared_system_client import SharedSystemClient
        from chromadb.config import Settings as ChromaSettings

        path = str(self._path.resolve())
        self._take()
        with chroma_errors(self.where, "opening it"):
            self._slack.blank()
            self._enlarge_cache()
            try:
                return cast(
                    "Client", chromadb.PersistentClient(path, ChromaSettings(anonymized_telemetry=False))
                )
            except BaseException:
                # Chroma keeps the half-started system of a failed opening and hands it to the next.
                SharedSystemClient._identifier_to_system.pop(path, None)
                SharedSystemClient._identifier_to_refcount.pop(path, None)
                raise

    def _take(self) -> None:
        """Has a helper give the index back, and waits for that of a process that is gone."""
        if self._helper is not None:
            self._helper.end()
            self._helper = None
        if self._open_lock.is_locked:
            return
        try:
            self._open_lock.acquire(timeout=OPEN_PATIENCE)
        except Timeout as error:
            raise StoreBusy(f"a process of an earlier run still writes {self.where}; try again") from error

    def _enlarge_cache(self) -> None:
        """Chroma has no setting for it, but SQLite takes it from the file's header."""
        database = self._path / DATABASE
        self._path.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(database, timeout=SQLITE_PATIENCE)) as connection:
            (pages,) = connection.execute("PRAGMA default_cache_size").fetchone()
            if pages != CACHE_PAGES:
                connection.execute(f"PRAGMA default_cache_size = {CACHE_PAGES}")

    def lend(self, helper: Helper) -> None:
        """Leaves the index to a helper, which is ended when this client is used again."""
        self._require_lock()
        self._disconnect()
        self._open_lock.release()
        self._helper = helper

    def settle(self) -> None:
        """Blanks the freed memory in files that the call wrote: Chroma is done with them when it returns."""
        self._slack.blank_changed()

    def renew(self) -> None:
        """Closes Chroma until the next call: after a full disk it may never return from one."""
        self._disconnect()

    def clear(self) -> None:
        """Removes the directory: nothing of it can be left, and nothing has to be readable."""
        self._require_lock()
        self._take()
        self._disconnect()
        self._remove()

    def _remove(self) -> None:
        with chroma_errors(self.where, "removing it"):
            if self._path.exists():
                shutil.rmtree(self._path)

    def scrub(self) -> None:
        """Leaves no text of dropped collections in any file; see `chroma_files.free`."""
        self._require_lock()
        self._take()
        self._disconnect()
        if (self._path / DATABASE).exists():
            chroma_files.free(self._path, self._slack)

    def close(self) -> None:
        """Frees files and locks, and ends a helper."""
        if self._closed:
            return
        try:
            self._take()
            self._disconnect()
            with chroma_errors(self.where, "closing it"):
                self._slack.blank()
        finally:
            self._free()

    def _require_lock(self) -> None:
        if self._closed:
            raise StoreError(f"the index in {self.where} is closed; open the memory again")

    def _disconnect(self) -> None:
        if self._api is not None:
            self._api.close()
            self._api = None

    def _free(self) -> None:
        self._closed = True
        self._open_lock.release()
        if self._writer is not None:
            self._writer.release()
