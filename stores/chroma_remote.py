"""Chroma behind a `chroma run` server."""

from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from memcycle.core.errors import StoreError
from memcycle.stores.chroma_errors import DEFAULT_PORT, chroma_errors
from memcycle.stores.chroma_helper import Helper

if TYPE_CHECKING:
    import httpx
    from chromadb.api.client import AdminClient, Client
    from chromadb.api.fastapi import FastAPI

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
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise StoreError(f"{url!r} is no address of a Chroma server; give http://HOST:PORT")
        self._api: Client | None = self._open(parts.hostname, _port(url), secure=parts.scheme == "https")
        if fresh:
            with chroma_errors(self.where, "clearing it"):
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

    def lend(self, helper: Helper) -> None:
        """Nothing: the helper has a connection of its own."""

    def settle(self) -> None:
        """Nothing: the server's files are not ours."""

    def renew(self) -> None:
        """Nothing: each call is a request of its own."""

    def clear(self) -> None:
        """Drops our collections; others stay, those of other homes too."""
        for collection in self.api.list_collections():
            if collection.name.startswith(self.prefix):
                self.api.delete_collection(collection.name)

    def scrub(self) -> str:
        """What the server's operator must do: the server's files are not ours."""
        return to_clean(self.where)

    def close(self) -> None:
        """Closes the connections."""
        if self._api is not None:
            # Chroma's own close leaves the connections open.
            for session in _sessions(self._api):
                session.close()
            self._api.close()
            self._api = None


def to_clean(url: str, *, first: str = "") -> str:
    """What frees the files of a server of deleted text; `first` is done before it is stopped."""
    return (
        f"deleted text may remain in the files of the Chroma server at {url}: {first}stop the server, and run"
        " `memcycle scrub DIR` over its folder"
    )


def _sessions(client: "Client") -> "list[httpx.Client]":
    """The connections of a client of a server: its own and those of its admin client."""
    servers = (client._server, cast("AdminClient", client._admin_client)._server)
    return [cast("FastAPI", server)._session for server in servers]


def _port(url: str) -> int:
    try:
        port = urlsplit(url).port
    except ValueError as error:
        raise StoreError(
            f"{url!r} is no address of a Chroma server: {error}; give http://HOST:PORT"
        ) from error
    return port or (443 if url.startswith("https") else DEFAULT_PORT)
