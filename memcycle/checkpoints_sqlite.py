"""Opens LangGraph's SQLite checkpointers the way memcycle's graphs want them."""

import asyncio
import errno
import logging
import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path

import aiosqlite
from filelock import FileLock, Timeout
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from memcycle.checkpoints_kind import Checkpointer
from memcycle.core.errors import StoreBusy, StoreError

_log = logging.getLogger(__name__)

BUSY_SECONDS = 30.0
"""How long a write waits for that of another process."""

OWNER_ONLY = stat.S_IRUSR | stat.S_IWUSR

_KEY = {"thread_id", "checkpoint_ns", "checkpoint_id"}


class SqliteCheckpoints(Checkpointer[SqliteSaver, AsyncSqliteSaver]):
    """One checkpoint file. It is created, owner-only, with its folder when it is opened.

    The file is written ahead with `PRAGMA synchronous=NORMAL`: no wait for the disk after each node. When
    the program is killed or crashes nothing is lost. After a power cut or a crash of the system the file is
    whole, but its last nodes may be missing, and so may the last writes of the ledger, which is opened in
    the same way: a run then resumes further back and repeats their model calls, and words that were
    lost with it are stored by adding the conversation's last part again, which stores nothing twice.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        super().__init__(str(self.path))

    def _open(self) -> SqliteSaver:
        saver = SqliteSaver(_connect(self.path))
        saver.is_setup = True
        return saver

    def _close(self, saver: SqliteSaver) -> None:
        with saver.lock:
            saver.conn.close()

    async def _aopen(self) -> AsyncSqliteSaver:
        # Not in aiosqlite's own thread: when a connector raises there, that thread may outlive the loop.
        opened = await asyncio.to_thread(_connect, self.path)
        saver = AsyncSqliteSaver(await aiosqlite.Connection(lambda: opened, iter_chunk_size=64))
        saver.is_setup = True
        return saver

    async def _aclose(self, saver: AsyncSqliteSaver) -> None:
        async with saver.lock:
            await saver.conn.close()


def _connect(path: Path) -> sqlite3.Connection:
    """A connection to a checkpoint file with its tables, created when absent."""
    _create(path)
    try:
        # Switching to write-ahead logging does not wait for others that do the same by itself.
        with FileLock(path.with_name(f"{path.name}.lock"), timeout=BUSY_SECONDS, mode=OWNER_ONLY):
            conn = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
            try:
                _prepare(conn, path)
            except BaseException:
                conn.close()
                raise
            return conn
    except Timeout as error:
        raise StoreBusy(f"another process has been opening {path} for {BUSY_SECONDS:.0f} s") from error
    except OSError as error:
        raise _unusable(path, error.strerror or type(error).__name__) from error
    except sqlite3.Error as error:
        raise _explained(path, error) from error


def _create(path: Path) -> None:
    """Makes the folder and an empty file that nobody else may read; leaves a file that exists as it is."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists() and not path.is_file():
            raise _unusable(path, "it is a folder" if path.is_dir() else "it is no file")
        # One that is there is not opened: closing it would free the locks that this process has on it.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY))
        if not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except FileExistsError as error:
        raise _unusable(path, f"{path.parent} is no folder") from error
    except OSError as error:
        raise _unusable(path, error.strerror or type(error).__name__) from error
    except ValueError as error:
        raise _unusable(path, str(error)) from error


def _prepare(conn: sqlite3.Connection, path: Path) -> None:
    _check_ours(conn, path)
    _keep_private(path)
    if conn.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        raise _unusable(path, "its file system allows no write-ahead log")
    conn.execute("PRAGMA synchronous = NORMAL")
    SqliteSaver(conn).setup()


def _check_ours(conn: sqlite3.Connection, path: Path) -> None:
    """Looks without writing, so that the file of another program stays as it is."""
    tables = {name for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table in ("checkpoints", "writes"):
        columns = {name for (name,) in conn.execute("SELECT name FROM pragma_table_info(?)", (table,))}
        if tables and not columns >= _KEY:
            raise _unusable(path, "it is the database of another program")


def _keep_private(path: Path) -> None:
    """SQLite gives the files beside it the same rights."""
    if path.stat().st_mode & ~OWNER_ONLY & 0o777:
        try:
            path.chmod(OWNER_ONLY)
        except OSError:
            _log.warning("others may read %s: its rights cannot be changed", path)


def _explained(path: Path, error: sqlite3.Error) -> StoreError:
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(f"{path} is being written by another process; try again")
    if code == sqlite3.SQLITE_NOTADB:
        return _unusable(path, "it is the file of another program")
    return _unusable(path, str(error))


def _unusable(path: Path, reason: str) -> StoreError:
    return StoreError(f"cannot keep checkpoints in {path}: {reason}; choose another file")
