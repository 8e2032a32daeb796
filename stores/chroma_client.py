"""How Chroma is reached: a directory that one process writes, or a `chroma run` server.

chromadb takes about a second to import, so it is imported when a client is opened and not before.
"""

from typing import TYPE_CHECKING, Protocol

from memcycle.core.settings import Settings
from memcycle.stores.chroma_embedded import EmbeddedClient
from memcycle.stores.chroma_helper import Helper
from memcycle.stores.chroma_remote import ServerClient

if TYPE_CHECKING:
    from chromadb.api.client import Client


class ChromaClient(Protocol):
    """A way to Chroma."""

    where: str
    """What an error message calls it: the directory or the address."""

    prefix: str
    """Begins the name of every collection of the home, and of no other home's."""

    exclusive: bool
    """Whether reads must wait for writes: true of the embedded index, whose client a scrub closes."""

    @property
    def note(self) -> str | None:
        """Which of its files could not be cleaned, and what to do; None where none is known."""

    @property
    def api(self) -> "Client":
        """Chroma's own client."""

    def lend(self, helper: Helper) -> None:
        """Leaves the index to a helper, which is ended when this client is used again."""

    def settle(self) -> None:
        """Cleans up after a call, before the next one may begin."""

    def renew(self) -> None:
        """Lets the next call begin anew, after Chroma itself failed at one."""

    def clear(self) -> None:
        """Removes all our collections, with their files where those are ours."""

    def scrub(self) -> str | None:
        """Leaves no deleted text in any file; gives what the operator must do where it cannot."""

    def close(self) -> None:
        """Frees its files, connections and lock. Idempotent."""


def open_client(settings: Settings, store: str, *, fresh: bool = False, lent: bool = False) -> ChromaClient:
    """The client the settings ask for.

    Args:
        settings: Home or address, and the lock timeout.
        store: Id of the home's memory. Its collections carry it in their names: homes share a server, not
            memories. A copied home has the same id, so give it another server.
        fresh: Removes what is there first, even if damaged.
        lent: For a helper: the process that writes the home has lent it the index.

    Raises:
        StoreBusy: another process writes the embedded index.
        StoreError: it cannot be opened or does not answer.
    """
    prefix = f"memcycle-{store}-"
    if settings.chroma_url:
        return ServerClient(settings.chroma_url, prefix, fresh=fresh)
    return EmbeddedClient(settings.home, prefix, settings.lock_timeout, fresh=fresh, lent=lent)
