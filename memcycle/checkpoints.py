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
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from filelock import FileLock, Timeout
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from typing_extensions import override

from memcycle.core.arguments import checked
from memcycle.core.errors import BadInput, StoreBusy, StoreError

_log = logging.getLogger(__name__)

Saver = BaseCheckpointSaver[Any]

FORMS = "`memory`, a file, `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/DATABASE`"
"""What names a place for checkpoints, in words."""


class Checkpointer:
    """A place for checkpoints; see `memcycle.checkpointer`.

    Attributes:
        place: Where that is, in words that may be shown: without a password.
    """

    def __init__(self, place: str, opened: Callable[[], AbstractContextManager[Saver]]) -> None:
        self.place = place
        self._opened = opened
        self._entered = threading.Lock()
        self._stack = ExitStack()

    def __enter__(self) -> Saver:
        if not self._entered.acquire(blocking=False):
            raise StoreError(f"this checkpointer of {self.place} is in use: make a second one")
        try:
            return for_both(self._stack.enter_context(self._opened()))
        except BaseException:
            self._entered.release()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self._stack.close()
        finally:
            self._entered.release()

    async def __aenter__(self) -> Saver:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.__exit__)


@checked
def checkpointer(url: str | os.PathLike[str]) -> Checkpointer:
    """A place that graphs write their checkpoints to, so that a run that died resumes where it was.

    `with` and `async with` give a LangGraph saver for `invoke` and `ainvoke` alike, and for any number of
    threads and event loops. Entering raises StoreError for a place that cannot be used, and StoreBusy for one
    that another process holds.

    A file is created, owner-only, with its folder. It is written ahead with `PRAGMA synchronous=NORMAL`: no
    wait for the disk after each node. When the program is killed nothing is lost. After a power cut the file
    is whole, but its last nodes may be missing, and so may the last writes of the ledger, which is opened in
    the same way: a run then resumes further back and repeats their model calls, and words that were lost
    with it are stored by adding the conversation's last part again, which stores nothing twice.

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
        return _file(os.fspath(url))
    scheme, separator, rest = url.partition("://")
    if url == "memory" or (separator and scheme == "memory" and not rest):
        saver = InMemorySaver()
        return Checkpointer("memory", lambda: nullcontext(saver))
    if not separator:
        return _file(url)
    if scheme == "sqlite" and rest.startswith("/"):
        return _file(rest.removeprefix("/"))
    if scheme in ("postgresql", "postgres"):
        return _server(url)
    raise BadInput(f"checkpoints cannot be kept in a URL that begins so: {scheme!r:.20}://; give {FORMS}")


# SQLite

BUSY_SECONDS = 30.0
"""How long to wait for another process: for its write, or while it makes the tables."""

OWNER_ONLY = stat.S_IRUSR | stat.S_IWUSR

_KEY = {"thread_id", "checkpoint_ns", "checkpoint_id"}


def _file(name: str) -> Checkpointer:
    if name.strip() in ("", ":memory:"):
        raise BadInput(f"{name!r} names no file for checkpoints; give {FORMS}")
    path = Path(name).absolute()
    return Checkpointer(str(path), lambda: _sqlite(path))


@contextmanager
def _sqlite(path: Path) -> Iterator[Saver]:
    saver = _opened(path)
    try:
        yield saver
    finally:
        with saver.lock:  # the last write has ended
            saver.conn.close()


def _opened(path: Path) -> SqliteSaver:
    try:
        _create(path)
        # Switching to write-ahead logging does not wait for others that do the same by itself.
        with FileLock(path.with_name(f"{path.name}.lock"), timeout=BUSY_SECONDS, mode=OWNER_ONLY):
            conn = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
            try:
                _prepare(conn, path)
                saver = SqliteSaver(conn)
                saver.setup()
            except BaseException:
                conn.close()
                raise
            return saver
    except Timeout as error:
        raise StoreBusy(f"another process has been opening {path} for {BUSY_SECONDS:.0f} s") from error
    except OSError as error:
        raise _unusable(path, error.strerror or type(error).__name__) from error
    except ValueError as error:
        raise _unusable(path, str(error)) from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreBusy(f"{path} is being written by another process; try again") from error
        foreign = code == sqlite3.SQLITE_NOTADB
        raise _unusable(path, "it is the file of another program" if foreign else str(error)) from error


def _create(path: Path) -> None:
    """Makes the folder and an empty file that nobody else may read; leaves a file that exists as it is."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except FileExistsError as error:
        raise _unusable(path, f"{path.parent} is no folder") from error
    if path.exists() and not path.is_file():
        raise _unusable(path, "it is a folder" if path.is_dir() else "it is no file")
    # One that is there is not opened: closing it would free the locks that this process has on it.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY))
    if not os.access(path, os.R_OK | os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _prepare(conn: sqlite3.Connection, path: Path) -> None:
    # Looks first without writing, so that the file of another program stays as it is.
    tables = {name for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table in ("checkpoints", "writes"):
        columns = {name for (name,) in conn.execute("SELECT name FROM pragma_table_info(?)", (table,))}
        if tables and not columns >= _KEY:
            raise _unusable(path, "it is the database of another program")
    if path.stat().st_mode & ~OWNER_ONLY & 0o777:
        try:
            path.chmod(OWNER_ONLY)  # SQLite gives the files beside it the same rights
        except OSError:
            _log.warning("others may read %s: its rights cannot be changed", path)
    if conn.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        raise _unusable(path, "its file system allows no write-ahead log")
    conn.execute("PRAGMA synchronous = NORMAL")


def _unusable(path: Path, reason: str) -> StoreError:
    return StoreError(f"cannot keep checkpoints in {path}: {reason}; choose another file")


# PostgreSQL

CONNECT_SECONDS = 10
"""How long a server may take to answer."""

CONNECTIONS = 4
"""Of one opened checkpointer at most."""

_LOCK = 7_236_104_851
"""Any number that nobody else locks: whoever holds it makes the tables."""

_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[^@/?#:,\[\]]*)(?::[0-9]+)?"
_URL = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/?#]*)(?::(?P<password>[^@/?#]*))?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)(?:/(?P<database>[^@/?#]*))?(?:\?(?P<options>[^@#]*))?"
)


def _server(url: str) -> Checkpointer:
    """The place of a URL that can be read for sure; of another nothing is quoted, it may be the password."""
    found = _URL.fullmatch(url)
    if found is None:
        raise BadInput(
            "the PostgreSQL URL cannot be read: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, and in "
            "names and password @ as %40, : as %3A, / as %2F, ? as %3F, # as %23, % as %25"
        )
    user = f"{found['user']}@" if found["user"] else ""
    place = f"postgresql://{user}{found['hosts']}/{found['database'] or ''}"
    options = [one.partition("=") for one in (found["options"] or "").split("&")]
    hidden = [found["password"] or "", *(value for name, _, value in options if "pass" in name)]
    secrets = sorted({form for one in hidden for form in (one, unquote(one)) if form}, key=len, reverse=True)

    def explained(error: Exception) -> StoreError:
        words = " ".join(str(error).split())
        for secret in secrets:
            words = words.replace(secret, "***")
        return StoreError(
            f"cannot keep checkpoints in {place}: {words}; check the server, the URL and the password"
        )

    return Checkpointer(place, lambda: _postgres(url, place, explained))


@contextmanager
def _postgres(url: str, place: str, explained: Callable[[Exception], StoreError]) -> Iterator[Saver]:
    """A saver over a few connections; one that the server has closed is replaced."""
    try:
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import dict_row
        from psycopg_pool import ConnectionPool
    except ImportError as error:
        raise StoreError(
            "checkpoints in PostgreSQL need the extra `postgres`: pip install 'memcycle[postgres]'"
        ) from error

    # How LangGraph's saver wants a connection.
    options: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    options["connect_timeout"] = CONNECT_SECONDS
    check = ConnectionPool.check_connection
    pool: Any = ConnectionPool(url, kwargs=options, min_size=1, max_size=CONNECTIONS, open=False, check=check)
    with closing(pool):
        try:
            with psycopg.connect(url, **options) as conn:
                _make_tables(conn, place)
            pool.open(wait=True, timeout=CONNECT_SECONDS)
        except psycopg.Error as error:
            # Not chained: what the driver quotes of a URL may be part of a password.
            raise explained(error) from None
        yield PostgresSaver(pool)


def _make_tables(conn: Any, place: str) -> None:
    """Makes LangGraph's tables, one process at a time.

    Not by waiting inside the server: an index that is made concurrently waits for every statement that runs,
    so also for one that waits for the lock.
    """
    from langgraph.checkpoint.postgres import PostgresSaver

    deadline = time.monotonic() + BUSY_SECONDS
    while not conn.execute("SELECT pg_try_advisory_lock(%s) AS held", (_LOCK,)).fetchone()["held"]:
        if time.monotonic() > deadline:
            raise StoreBusy(f"another process has been preparing {place}; try again")
        time.sleep(0.1)
    PostgresSaver(conn).setup()


# Both faces


def for_both(saver: Saver) -> Saver:
    """The saver, or one over it that serves `ainvoke` too, where it does not by itself."""
    has_none = type(saver).aget_tuple is BaseCheckpointSaver.aget_tuple
    return OffLoop(saver) if has_none or isinstance(saver, SqliteSaver) else saver


class OffLoop(Saver):
    """A thread-safe saver each awaited call of which runs in a thread, so that it is bound to no event loop.

    Attributes:
        saver: The one that is called.
    """

    def __init__(self, saver: Saver) -> None:
        super().__init__(serde=saver.serde)
        self.saver = saver
        for name in ("get_next_version", "get_tuple", "list", "put", "put_writes", "delete_thread"):
            setattr(self, name, getattr(saver, name))  # without waiting it is the saver itself

    @property
    @override
    def config_specs(self) -> list[Any]:
        return self.saver.config_specs

    @override
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.saver.get_tuple, config)

    @override
    async def alist(self, *args: Any, **named: Any) -> AsyncIterator[CheckpointTuple]:
        for one in await asyncio.to_thread(lambda: [*self.saver.list(*args, **named)]):
            yield one

    @override
    async def aput(self, *args: Any, **named: Any) -> RunnableConfig:
        return await asyncio.to_thread(self.saver.put, *args, **named)

    @override
    async def aput_writes(self, *args: Any, **named: Any) -> None:
        await asyncio.to_thread(self.saver.put_writes, *args, **named)

    @override
    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.saver.delete_thread, thread_id)
