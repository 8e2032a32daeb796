"""Opens LangGraph's checkpointers by URL: in memory, in a SQLite file, in PostgreSQL."""

import asyncio
import errno
import logging
import os
import re
import sqlite3
import stat
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from urllib.parse import unquote

import aiosqlite
from filelock import FileLock, Timeout
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from typing_extensions import override

from memcycle.core.errors import BadInput, StoreBusy, StoreError

if TYPE_CHECKING:
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

S = TypeVar("S", bound=BaseCheckpointSaver[Any])
A = TypeVar("A", bound=BaseCheckpointSaver[Any])


class Checkpointer(ABC, Generic[S, A]):
    """Where checkpoints are kept; see `memcycle.checkpointer`.

    Entering raises StoreError for a place that cannot be used and StoreBusy for one that another process
    holds. The saver may be used from several threads; the async one by its own event loop, and from other
    threads through its sync methods.

    Attributes:
        place: Where that is, in words that may be shown: without a password.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self._guard = threading.Lock()
        self._entered = False
        self._saver: S | None = None
        self._async_saver: A | None = None

    @abstractmethod
    def _open(self) -> S: ...

    @abstractmethod
    def _close(self, saver: S) -> None: ...

    @abstractmethod
    async def _aopen(self) -> A: ...

    @abstractmethod
    async def _aclose(self, saver: A) -> None: ...

    def __enter__(self) -> S:
        with self._entering():
            self._saver = self._open()
            return self._saver

    def __exit__(self, *_: object) -> None:
        saver, self._saver, self._entered = self._saver, None, False
        if saver is not None:
            self._close(saver)

    async def __aenter__(self) -> A:
        with self._entering():
            self._async_saver = await self._aopen()
            return self._async_saver

    async def __aexit__(self, *_: object) -> None:
        saver, self._async_saver, self._entered = self._async_saver, None, False
        if saver is not None:
            await self._aclose(saver)

    @contextmanager
    def _entering(self) -> Iterator[None]:
        with self._guard:
            if self._entered:
                raise StoreError(f"this checkpointer of {self.place} is in use: make a second one")
            self._entered = True
        try:
            yield
        except BaseException:
            self._entered = False
            raise


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


CONNECT_SECONDS = 10
"""How long a server may take to answer."""

"""How long to wait for another process that makes the tables."""

CONNECTIONS = 4
"""Of one opened checkpointer at most."""

_LOCK = 7_236_104_851
"""Any number that nobody else locks: whoever holds it makes the tables."""

_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[^@/?#:,\[\]]*)(?::[0-9]+)?"
_URL = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/?#]*)(?::(?P<password>[^@/?#]*))?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)(?:/(?P<database>[^@/?#]*))?(?:\?(?P<options>[^@#]*))?"
)


class PostgresCheckpoints(Checkpointer["PostgresSaver", "AsyncPostgresSaver"]):
    """Checkpoints in a PostgreSQL database, over a few connections. Its tables are made when it is opened.

    A connection that the server has closed is replaced. Durable as the server is.
    """

    def __init__(self, url: str) -> None:
        read = _read(url)
        super().__init__(read.place)
        self._url, self._secrets = url, read.secrets

    def _open(self) -> "PostgresSaver":
        driver = _driver()
        self._prepare(driver)
        kind = driver.pool.ConnectionPool
        pool = kind(self._url, check=kind.check_connection, **driver.pooled())
        try:
            pool.open(wait=True, timeout=CONNECT_SECONDS)
        except driver.psycopg.Error as error:
            pool.close()
            raise self._explained(error) from None
        saver: PostgresSaver = driver.saver(pool)
        return saver

    def _close(self, saver: "PostgresSaver") -> None:
        _pool_of(saver).close()

    async def _aopen(self) -> "AsyncPostgresSaver":
        driver = await asyncio.to_thread(_driver)
        await asyncio.to_thread(self._prepare, driver)
        kind = driver.pool.AsyncConnectionPool
        pool = kind(self._url, check=kind.check_connection, **driver.pooled())
        try:
            await pool.open(wait=True, timeout=CONNECT_SECONDS)
        except driver.psycopg.Error as error:
            await pool.close()
            raise self._explained(error) from None
        saver: AsyncPostgresSaver = driver.async_saver(pool)
        return saver

    async def _aclose(self, saver: "AsyncPostgresSaver") -> None:
        await _pool_of(saver).close()

    def _prepare(self, driver: "_Driver") -> None:
        """Makes the tables, one process at a time.

        Not by waiting inside the server: an index that is made concurrently waits for every statement that
        runs, so also for one that waits for the lock.
        """
        deadline = time.monotonic() + BUSY_SECONDS
        try:
            with driver.psycopg.connect(self._url, **driver.connected()) as conn:
                while not _locked(conn):
                    if time.monotonic() > deadline:
                        raise StoreBusy(f"another process has been preparing {self.place}; try again")
                    time.sleep(0.1)
                driver.saver(conn).setup()
        except driver.psycopg.Error as error:
            raise self._explained(error) from None

    def _explained(self, error: Exception) -> StoreError:
        # Not chained either: what the driver quotes of a URL may be part of a password.
        words = " ".join(str(error).split())
        for secret in self._secrets:
            words = words.replace(secret, "***")
        return StoreError(
            f"cannot keep checkpoints in {self.place}: {words}; check the server, the URL and the password"
        )


class _Url(NamedTuple):
    """What may be shown of a URL, and what must never be."""

    place: str
    secrets: tuple[str, ...]


def _read(url: str) -> _Url:
    """A URL, told apart.

    Raises:
        BadInput: it cannot be read for sure; nothing of it is quoted, since any part may be the password.
    """
    found = _URL.fullmatch(url)
    if found is None:
        raise BadInput(
            "the PostgreSQL URL cannot be read: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, and in "
            "names and password @ as %40, : as %3A, / as %2F, ? as %3F, # as %23, % as %25"
        )
    options = [one.partition("=") for one in (found["options"] or "").split("&")]
    hidden = [found["password"] or "", *(value for name, _, value in options if "pass" in name)]
    user = f"{found['user']}@" if found["user"] else ""
    secrets = {form for one in hidden for form in (one, unquote(one)) if form}
    place = f"postgresql://{user}{found['hosts']}/{found['database'] or ''}"
    return _Url(place, tuple(sorted(secrets, key=len, reverse=True)))


class _Driver(NamedTuple):
    """What the extra `postgres` installs."""

    psycopg: Any
    pool: Any
    saver: Any
    async_saver: Any

    def connected(self) -> dict[str, Any]:
        """How LangGraph's savers want a connection."""
        rows = self.psycopg.rows.dict_row
        wanted = {"autocommit": True, "prepare_threshold": 0, "row_factory": rows}
        return {**wanted, "connect_timeout": CONNECT_SECONDS}

    def pooled(self) -> dict[str, Any]:
        """A pool of such connections, not yet open."""
        return {"kwargs": self.connected(), "min_size": 1, "max_size": CONNECTIONS, "open": False}


def _driver() -> _Driver:
    """The driver.

    Raises:
        StoreError: it is not installed; says how.
    """
    try:
        import psycopg
        import psycopg.rows
        import psycopg_pool
        from langgraph.checkpoint.postgres import PostgresSaver
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    except ImportError as error:
        raise StoreError(
            "checkpoints in PostgreSQL need the extra `postgres`: pip install 'memcycle[postgres]'"
        ) from error
    return _Driver(psycopg, psycopg_pool, PostgresSaver, AsyncPostgresSaver)


def _locked(conn: Any) -> bool:
    """Whether this connection holds the lock from now on, until it is closed."""
    return bool(conn.execute("SELECT pg_try_advisory_lock(%s) AS held", (_LOCK,)).fetchone()["held"])


def _pool_of(saver: Any) -> Any:
    return saver.conn


FORMS = "`memory`, a file, `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/DATABASE`"
"""What names a place for checkpoints, in words."""


def checkpointer(url: str | os.PathLike[str]) -> Checkpointer[Any, Any]:
    """A place that graphs write their checkpoints to, so that a run that died resumes where it was.

    `with` gives a saver for `invoke` and `stream`, `async with` one for `ainvoke` and `astream`; both read
    the same place. What is opened, and what can go wrong, is said by the class of each kind
    (`MemoryCheckpoints`, `SqliteCheckpoints`, `PostgresCheckpoints`).

    What runs were given and gave lies there too, and forgetting memories does not reach it: the saver's
    `delete_thread` does.

    Args:
        url: `memory`, for tests and for one process; a file or `sqlite:///FILE` (`sqlite:////FILE` where it
            begins with a slash), which several processes may use at once; or `postgresql://...`, with the
            extra `postgres`.

    Raises:
        BadInput: a URL that cannot be read, without a word of it that may be a password.

    Example:
        >>> with checkpointer("checkpoints.sqlite3") as saver:
        ...     graph = build_memory(roles, bank).builder.compile(checkpointer=saver)
        ...     graph.invoke(value, {"configurable": {"thread_id": "1"}}, context={"user": "ann"})
    """
    if not isinstance(url, str):
        return SqliteCheckpoints(url)
    scheme, separator, rest = url.partition("://")
    if url == "memory" or (separator and scheme == "memory" and not rest):
        return MemoryCheckpoints()
    if not separator:
        return SqliteCheckpoints(_file(url))
    if scheme == "sqlite" and rest.startswith("/"):
        return SqliteCheckpoints(_file(rest.removeprefix("/")))
    if scheme in ("postgresql", "postgres"):
        return PostgresCheckpoints(url)
    raise BadInput(f"checkpoints cannot be kept in a URL that begins so: {scheme!r:.20}://; give {FORMS}")


def _file(path: str) -> str:
    if path.strip() in ("", ":memory:"):
        raise BadInput(f"{path!r} names no file for checkpoints; give {FORMS}")
    return path


class MemoryCheckpoints(Checkpointer[InMemorySaver, InMemorySaver]):
    """Checkpoints in this process and object; they are gone with it. One saver serves sync and async."""

    def __init__(self) -> None:
        super().__init__("memory")
        self._kept = InMemorySaver()

    def _open(self) -> InMemorySaver:
        return self._kept

    def _close(self, saver: InMemorySaver) -> None:
        """Kept, to be opened again."""

    async def _aopen(self) -> InMemorySaver:
        return self._kept

    async def _aclose(self, saver: InMemorySaver) -> None:
        """Kept, to be opened again."""


def for_both(saver: BaseCheckpointSaver[Any]) -> BaseCheckpointSaver[Any]:
    """The saver, or one over it that serves `ainvoke` too, where it does not by itself."""
    has_none = type(saver).aget_tuple is BaseCheckpointSaver.aget_tuple
    return OffLoop(saver) if has_none or isinstance(saver, SqliteSaver) else saver


class OffLoop(BaseCheckpointSaver[Any]):
    """Runs each awaited call of a thread-safe saver in a thread, so that it is bound to no event loop."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        super().__init__(serde=saver.serde)
        self.saver = saver

    @property
    @override
    def config_specs(self) -> list[Any]:
        return self.saver.config_specs

    @override
    def get_next_version(self, current: Any, channel: None) -> Any:
        return self.saver.get_next_version(current, channel)

    @override
    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.saver.get_tuple(config)

    @override
    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        return self.saver.list(config, filter=filter, before=before, limit=limit)

    @override
    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self.saver.put(config, checkpoint, metadata, new_versions)

    @override
    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        self.saver.put_writes(config, writes, task_id, task_path)

    @override
    def delete_thread(self, thread_id: str) -> None:
        self.saver.delete_thread(thread_id)

    @override
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    @override
    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = await asyncio.to_thread(
            lambda: [*self.list(config, filter=filter, before=before, limit=limit)]
        )
        for one in found:
            yield one

    @override
    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    @override
    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    @override
    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)
