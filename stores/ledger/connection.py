"""Opens the ledger's SQLite file and hands out its connections: many readers, one writer."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from memcycle.core.errors import LedgerDamaged, StoreBusy, StoreError
from memcycle.core.world import World
from memcycle.stores.ledger import schema

BUSY_SECONDS = 30.0
"""How long a write waits for another one. Single writes take milliseconds, a rebuild seconds."""

RESTORE = (
    "put ledger.sqlite3 (and ledger.sqlite3-wal, if any) of a backup in its place and run `memcycle doctor"
    " --rebuild`, or `memcycle import` an export into a new home; `memcycle export --user NAME --home {home}`"
    " writes what can still be read of this one"
)
"""What to do about a damaged ledger."""

LOG_BYTES = 4_000_000
"""The write-ahead log is brought into the file once it is larger, and is cut to that when it begins anew."""

CACHE_KIB = 16_384
"""Page cache of a connection at most. A scan of 10,000 entries takes as long with four times as much, and a
process has several connections."""

_ALWAYS = ("foreign_keys = ON", f"cache_size = -{CACHE_KIB}")
_WRITING = (
    "journal_mode = WAL", "synchronous = NORMAL", "secure_delete = ON", "wal_autocheckpoint = 0",
    f"journal_size_limit = {LOG_BYTES}",
)  # fmt: skip


class Ledger:
    """The system of record of one home. Thread-safe; several processes may hold it open at once.

    Failures of its disk or file are StoreErrors.
    """

    def __init__(self, path: Path, world: World, *, read_only: bool = False) -> None:
        self.path, self.world, self.read_only = path, world, read_only
        self._log = path.with_name(f"{path.name}-wal")
        # SQLite lets writers in by chance; those of one process wait for their turn.
        self._writing = threading.Lock()
        self._guard = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False

    @classmethod
    def open(cls, path: Path, world: World, *, read_only: bool = False) -> "Ledger":
        """Opens the file; creates it and its folder when absent, unless `read_only`.

        One of an older version is brought up to date first, also for reading.

        Raises:
            StoreError: no ledger to read, a folder that cannot be written, a damaged file, a file of
                another program or of a newer version.
        """
        ledger = cls(path, world, read_only=read_only)
        if read_only:
            ledger._check_readable()
        else:
            ledger._create()
        return ledger

    @staticmethod
    def in_use(path: Path) -> bool:
        """Whether anybody else has this file open, or it cannot be said."""
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=0)) as conn:
                # Who is in WAL mode shares a lock on the file for as long as it is open.
                conn.execute("PRAGMA locking_mode = EXCLUSIVE")
                conn.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error:
            return True
        return False

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One consistent view of the ledger, beside any writer. Do not keep it open across waits."""
        with self._explained(), self._connection() as conn:
            conn.execute("BEGIN")
            try:
                yield conn
            finally:
                conn.rollback()

    @contextmanager
    def look(self) -> Iterator[sqlite3.Connection]:
        """As `read`, for one statement, which is a consistent view by itself."""
        with self._explained(), self._connection() as conn:
            yield conn

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction, committed at the end, rolled back on any exception. Do not nest.

        It excludes every other writer of the home, also in other processes; StoreBusy where one does not end.
        """
        if self.read_only:
            raise StoreError(f"{self.path.parent} is open for reading only")
        if not self._writing.acquire(timeout=BUSY_SECONDS):
            raise StoreBusy(f"another write has not ended for {BUSY_SECONDS:.0f} s; try again")
        try:
            with self._explained(), self._connection() as conn:
                conn.execute("BEGIN IMMEDIATE")
                try:
                    if self._spilled():
                        # Only a transaction that begins after it can begin the log anew.
                        conn.rollback()
                        conn.execute("BEGIN IMMEDIATE")
                    yield conn
                except BaseException:
                    conn.rollback()
                    raise
                conn.commit()
        finally:
            self._writing.release()

    def compact(self) -> None:
        """Rewrites the file without its free pages, where deleted text may lie. `checkpoint` must follow."""
        with self._explained(), self._connection() as conn:
            conn.execute("VACUUM")

    def checkpoint(self) -> bool:
        """Brings the write-ahead log into the file and empties it; False when a reader kept it from that."""
        with self._explained(), self._connection() as conn:
            return not conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]

    def _spilled(self) -> bool:
        """Brings a write-ahead log that is large (and whether it was) into the file; under the write lock.

        SQLite would do so after any commit, beside the writes of others. Up to version 3.51.2 that can lose
        pages, when another begins the log anew at the same instant (its "WAL-reset bug").
        """
        if not self._log.exists() or self._log.stat().st_size <= LOG_BYTES:
            return False
        # What hinders it stays in the log, and is tried again by the next write.
        with suppress(sqlite3.OperationalError), self._connection() as conn:
            conn.execute("PRAGMA wal_checkpoint(PASSIVE)")
        return True

    def close(self) -> None:
        """Closes all connections; those in use close when they are given back. Idempotent."""
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        for conn in idle:
            conn.close()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with self._guard:
            if self._closed:
                raise StoreError(f"the memory at {self.path.parent} is closed")
            conn = self._idle.pop() if self._idle else None
        conn = conn or self._connect()
        try:
            yield conn
        finally:
            with self._guard:
                if self._closed:
                    conn.close()
                else:
                    self._idle.append(conn)

    def _connect(self) -> sqlite3.Connection:
        mode = "ro" if self.read_only else "rwc"
        # A connection moves between threads through the pool, one user at a time.
        conn = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            conn.row_factory = sqlite3.Row
            for pragma in _ALWAYS if self.read_only else (*_ALWAYS, *_WRITING):
                conn.execute(f"PRAGMA {pragma}")
        except BaseException:
            conn.close()
            raise
        return conn

    def _create(self) -> None:
        home = self.path.parent
        try:
            # What people said is theirs alone to read.
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            (home / "locks").mkdir(exist_ok=True)
            # Switching to WAL and migrating do not wait for each other by themselves.
            lock = FileLock(home / "locks" / "open.lock", timeout=BUSY_SECONDS)
            with lock, self._explained(), self._connection() as conn:
                schema.check_known(conn, self.path)
                schema.migrate(conn)
        except Timeout as error:
            raise StoreBusy(f"another process has been opening {home} for {BUSY_SECONDS:.0f} s") from error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StoreError(f"cannot use {home} as memory home: {reason}; choose another one") from error

    def _check_readable(self) -> None:
        if not self.path.is_file():
            raise StoreError(
                f"no memory at {self.path.parent}; run `memcycle ingest` or `memcycle demo` first"
            )
        with self._explained(), self._connection() as conn:
            schema.check_known(conn, self.path)
            current = schema.version_of(conn) == schema.VERSION
        if not current:
            Ledger.open(self.path, self.world).close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's own failures in words for a person; mistakes of ours pass unchanged."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
                raise
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise StoreBusy(f"{self.path} is being written by another process; try again") from error
            raise StoreError(f"cannot use {self.path}: {error}; check disk space and permissions") from error
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:
                raise
            if error.sqlite_errorcode == sqlite3.SQLITE_CORRUPT_VTAB:
                raise StoreError(
                    f"the index of words in {self.path} is broken; `memcycle doctor` makes it anew"
                ) from error
            raise LedgerDamaged(
                f"{self.path} is damaged or no ledger ({error}); {RESTORE.format(home=self.path.parent)}"
            ) from error
