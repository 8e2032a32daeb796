"""What a writing bank has beside the ledger: embedder, vector index and search, opened on need."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from memcycle.core.errors import StoreError
from memcycle.core.settings import Settings
from memcycle.core.world import World
from memcycle.stores.chroma.mirror import Mirror
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.vectors import Vectors

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from memcycle.stores.search.search import Search

_log = logging.getLogger(__name__)


class Indexes:
    """The embedder with its record, the index that mirrors the ledger, and the search over both."""

    def __init__(self, vectors: Vectors, mirror: Mirror, search: "Search") -> None:
        self.vectors, self.mirror, self.search = vectors, mirror, search
        self._starting, self._started = threading.Lock(), False
        self._held = 0

    @classmethod
    def open(
        cls,
        settings: Settings,
        world: World,
        ledger: Ledger,
        embeddings: "Embeddings | None",
        *,
        repair: bool,
    ) -> Self:
        """Loads no model and opens no index yet.

        Raises:
            EmbedderMismatch: the ledger's vectors come from another embedder, and it is no `repair`.
            StoreError: unknown embedder.
        """
        # These load libraries that commands which only read do without.
        from memcycle.stores.embedders import open_embedder
        from memcycle.stores.search.search import Search

        vectors = Vectors(ledger, open_embedder(settings, embeddings, world), repair=repair)
        mirror = Mirror(settings, ledger, vectors)
        return cls(vectors, mirror, Search(ledger, mirror, vectors.embedder))

    def for_writing(self) -> Self:
        """Makes sure, once, that this process may write, and finishes a wipe that a crash cut short.

        Raises:
            StoreBusy: another process writes the embedded index. Names its pid.
        """
        with self._starting:
            if not self._started:
                self.mirror.claim()
                self._if_possible(self.mirror.wipe)
                self._started = True
        return self

    def catch_up(self, batch: int | None = None) -> None:
        """Brings the indexes up to date that can be reached; those held back wait."""
        if not self._held:
            self._if_possible(lambda: self.mirror.drain(batch))

    @contextmanager
    def held_back(self, batch: int) -> Iterator[None]:
        """No write of this process waits for the index meanwhile; at the end it has taken all in.

        A search that needs the index brings it up to date itself.

        Args:
            batch: As in `Mirror.drain`.
        """
        with self._starting:
            self._held += 1
        try:
            yield
        finally:
            with self._starting:
                self._held -= 1
            self.catch_up(batch)

    def _if_possible(self, step: Callable[[], object]) -> None:
        try:
            step()
        except StoreError as error:
            _log.warning("the index is behind the ledger: %s", error)
