"""Opens LangGraph's PostgreSQL checkpointers; needs the extra `postgres`. Passwords are never told."""

import asyncio
import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from memcycle.checkpoints_kind import Checkpointer
from memcycle.core.errors import BadInput, StoreBusy, StoreError

if TYPE_CHECKING:
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

CONNECT_SECONDS = 10
"""How long a server may take to answer."""

BUSY_SECONDS = 30.0
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
