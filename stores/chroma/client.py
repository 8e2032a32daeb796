"""How Chroma is reached: a directory that one process writes, or a `chroma run` server.

chromadb takes about a second to import, so it is imported when a client is opened and not before.

Two processes writing one directory corrupt it without an error, so a second one does without it (see
`Mirror.at_hand`). The lock is the kernel's (`filelock`): it ends with its process however that ends, so the
pid file beside it is read only to name the holder, never to decide who holds.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast
from urllib.parse import urlsplit

from filelock import FileLock, Timeout

from memcycle.core.errors import StoreBusy, StoreError
from memcycle.core.settings import Settings
from memcycle.stores.chroma.files import DATABASE, SQLITE_PATIENCE, Slack, free

if TYPE_CHECKING:
    import httpx
    from chromadb.api.client import AdminClient, Client
    from chromadb.api.fastapi import FastAPI

DEFAULT_PORT = 8000


@contextmanager
def chroma_errors(where: str, doing: str) -> Iterator[None]:
    """Gives Chroma's failures as StoreError, without any text of an entry in it."""
    import httpx
    from chromadb.errors import ChromaError, NotFoundError

    try:
        yield
    except NotFoundError:
        raise
    except httpx.TransportError as error:
        raise StoreError(
            f"the Chroma server at {where} does not answer ({type(error).__name__}) while {doing};"
            f" start it with: chroma run --path DIR --port {urlsplit(where).port or DEFAULT_PORT}"
        ) from error
    except (ChromaError, httpx.HTTPError, sqlite3.Error, ValueError, OSError) as error:
        named = (isinstance(error, OSError) and error.strerror) or type(error).__name__
        raise StoreError(
            f"Chroma failed while {doing} in {where} ({named}); the ledger is whole: see that {where} may be"
            " written and its disk has room, then `memcycle doctor --rebuild` makes the index anew"
        ) from error


LOCK_FOLDER = "locks"


class WriterLock:
    """Held by the one process that writes the embedded index of `home`, which is created when absent.

    Not re-entrant: a process opens a home once and shares it.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._pid_file = home / LOCK_FOLDER / "writer.pid"
        # Opened in one thread and closed in another under `ainvoke`, so not thread-local.
        self._lock = FileLock(home / LOCK_FOLDER / "writer.lock", thread_local=False)

    def acquire(self, timeout: float) -> Self:
        """Takes the lock, waiting so many seconds for another process to let go.

        Raises:
            StoreBusy: another process, or another opening in this one, holds it. Names the pid.
            StoreError: the home cannot be written.
        """
        try:
            self._pid_file.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0 if self._pid() == str(os.getpid()) else timeout)
            self._pid_file.write_text(str(os.getpid()), encoding="ascii")
        except Timeout as error:
            where = f"the index of {self._home} is"
            if self._pid() == str(os.getpid()):
                why = f"{where} already open in this process; share that one or close it first"
            else:
                why = (
                    f"{where} open in {self.holder}; close that one and try again, or start `chroma run` for"
                    " all and give its address as Settings(chroma_url=...) or --chroma-url"
                )
            raise StoreBusy(why) from error
        except OSError as error:
            self.release()
            reason = error.strerror or type(error).__name__
            raise StoreError(
                f"cannot write the memory home {self._home}: {reason}; choose another one"
            ) from error
        return self

    def release(self) -> None:
        """Lets go; nothing when it is not held."""
        if self._lock.is_locked:
            self._pid_file.unlink(missing_ok=True)
            self._lock.release()

    @property
    def holder(self) -> str:
        """Who holds it, in words."""
        return f"process {pid}" if (pid := self._pid()).isdecimal() else "another process"

    def _pid(self) -> str:
        """What the holder wrote; empty without any."""
        try:
            return self._pid_file.read_text(encoding="ascii")
        except (OSError, ValueError):
            return ""


FOLDER = "chroma"
CACHE_PAGES = 8192
"""Of 4 KiB. With SQLite's own 2 MiB a bulk load reads the pages of Chroma's indexes over and over."""


class EmbeddedClient:
    """Chroma in this process, over `home/chroma`, under the home's writer lock.

    Attributes:
        where: What an error message calls it. prefix: begins the name of every collection of the home, and of
            no other home's.
        exclusive: Whether reads must wait for writes, as a scrub closes Chroma.

    Chroma writes freed memory into its vector files (see `memcycle.stores.chroma.files`). That is blanked
    after each call, on scrub, on close and before opening. A process that is killed within a call leaves what
    the call wrote, until the home is opened again; after a loss of power what earlier calls wrote may be back
    until then.
    """

    exclusive = True

    def __init__(self, home: Path, prefix: str, lock_timeout: float, *, fresh: bool = False) -> None:
        self._path, self.prefix = home / FOLDER, prefix
        self.where = str(self._path)
        self._slack = Slack(self._path)
        self._api: Client | None = None
        self._writer, self._closed = WriterLock(home).acquire(lock_timeout), False
        try:
            if fresh:
                self.clear()
            self._api = self._open()
        except BaseException:
            self._free()
            raise

    @property
    def api(self) -> "Client":
        """Chroma's own client; opened again after a scrub closed it."""
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
        with chroma_errors(self.where, "opening it"):
            self._slack.blank()
            self._path.mkdir(parents=True, exist_ok=True)
            # Chroma has no setting for it, but SQLite takes it from the file's header.
            with closing(sqlite3.connect(self._path / DATABASE, timeout=SQLITE_PATIENCE)) as connection:
                if connection.execute("PRAGMA default_cache_size").fetchone() != (CACHE_PAGES,):
                    connection.execute(f"PRAGMA default_cache_size = {CACHE_PAGES}")
            try:
                return cast(
                    "Client", chromadb.PersistentClient(path, ChromaSettings(anonymized_telemetry=False))
                )
            except BaseException:
                # Chroma keeps the half-started system of a failed opening and hands it to the next.
                SharedSystemClient._identifier_to_system.pop(path, None)
                SharedSystemClient._identifier_to_refcount.pop(path, None)
                raise

    def settle(self) -> None:
        """Blanks the freed memory in files that the call wrote: Chroma is done with them when it returns."""
        self._slack.blank_changed()

    def renew(self) -> None:
        """Closes Chroma until the next call: after a full disk it may never return from one."""
        if self._api is not None:
            self._api.close()
            self._api = None

    def clear(self) -> None:
        """Removes all there is, also of a damaged index. The lock is kept: nobody comes in between."""
        self.renew()
        if self._path.exists():
            with chroma_errors(self.where, "removing it"):
                shutil.rmtree(self._path)

    def scrub(self) -> None:
        """Leaves no text of dropped collections in any file; see `free`."""
        self._require_lock()
        self.renew()
        if (self._path / DATABASE).exists():
            free(self._path, self._slack)

    def close(self) -> None:
        """Frees files and the lock."""
        if self._closed:
            return
        try:
            self.renew()
            with chroma_errors(self.where, "closing it"):
                self._slack.blank()
        finally:
            self._free()

    def _require_lock(self) -> None:
        if self._closed:
            raise StoreError(f"the index in {self.where} is closed; open the memory again")

    def _free(self) -> None:
        self._closed = True
        self._writer.release()


SERVER_PATIENCE = 5.0
CALL_PATIENCE = 60.0
"""Seconds a server may take for one call: far more than the slowest, a write after a bulk load."""


class ServerClient:
    """Chroma behind an address. Several processes may write."""

    exclusive = False
    note: str | None = None

    def __init__(self, url: str, prefix: str, *, fresh: bool = False) -> None:
        self.where, self.prefix = url, prefix
        parts = urlsplit(url)
        try:
            port = parts.port or (443 if parts.scheme == "https" else DEFAULT_PORT)
        except ValueError:
            port = None
        if port is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise StoreError(f"{url!r} is no address of a Chroma server; give http://HOST:PORT")
        self._api: Client | None = self._open(parts.hostname, port, secure=parts.scheme == "https")
        if fresh:
            self.clear()

    @property
    def api(self) -> "Client":
        """Chroma's own client."""
        if self._api is None:
            raise StoreError(f"the index at {self.where} is closed; open the memory again")
        return self._api

    def _open(self, host: str, port: int, *, secure: bool) -> "Client":
        import chromadb
        import httpx
        from chromadb.config import Settings as ChromaSettings

        with chroma_errors(self.where, "connecting"):
            # Chroma's client waits for ever for a host that swallows packets; this says so in time.
            address = f"{'https' if secure else 'http'}://{host}:{port}/api/v2/heartbeat"
            httpx.get(address, timeout=SERVER_PATIENCE).raise_for_status()
            settings = ChromaSettings(
                anonymized_telemetry=False, chroma_server_host=host, chroma_server_http_port=port
            )
            client = cast("Client", chromadb.HttpClient(host, port, secure, settings=settings))
            # Chroma has no setting for it, and waits for ever for an answer to a call.
            for session in _sessions(client):
                session.timeout = httpx.Timeout(CALL_PATIENCE, connect=SERVER_PATIENCE)
            return client

    def settle(self) -> None:
        """Nothing: the server's files are not ours, and each call is a request of its own."""

    renew = scrub = settle

    def clear(self) -> None:
        """Deletes the collections of this home; others stay, those of other homes too."""
        with chroma_errors(self.where, "clearing it"):
            for collection in self.api.list_collections():
                if collection.name.startswith(self.prefix):
                    self.api.delete_collection(collection.name)

    def close(self) -> None:
        """Closes the connections."""
        if self._api is not None:
            # Chroma's own close leaves the connections open.
            for session in _sessions(self._api):
                session.close()
            self._api.close()
            self._api = None


def _sessions(client: "Client") -> "list[httpx.Client]":
    """The connections of a client of a server: its own and those of its admin client."""
    servers = (client._server, cast("AdminClient", client._admin_client)._server)
    return [cast("FastAPI", server)._session for server in servers]


ChromaClient = EmbeddedClient | ServerClient


def open_client(
    settings: Settings, store: str, *, patience: float = 0.0, fresh: bool = False
) -> ChromaClient:
    """The client the settings ask for.

    Args:
        patience: Seconds to wait for another process to let go of the embedded index.
        store: Id of the home's memory. Its collections carry it in their names: homes share a server, not
            memories. A copied home has the same id, so give it another server.
        fresh: Removes what is there first, even if damaged.
    """
    prefix = f"memcycle-{store}-"
    if settings.chroma_url:
        return ServerClient(settings.chroma_url, prefix, fresh=fresh)
    return EmbeddedClient(settings.home, prefix, patience, fresh=fresh)
