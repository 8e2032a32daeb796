"""What a writing bank has beside the ledger: embedder, vector index and search, opened on need.

`Vectors` is the embedder with the ledger's record of it: every stored vector comes from one embedder.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from memcycle.core.errors import EmbedderMismatch, EmbeddingFailed, StoreError
from memcycle.core.settings import Settings
from memcycle.stores.chroma.mirror import Mirror
from memcycle.stores.ledger import meta
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.ledger.connection import Ledger

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from memcycle.stores.embedders import Embedder

_log = logging.getLogger(__name__)


FAILURES_IN_A_ROW = 2
"""Single texts that fail one after another before the rest is given up: then it is not the text."""


class Vectors:
    """Embeds texts for storing. Thread-safe. `id` is the embedder's.

    Args:
        repair: Whether a home whose vectors come from another embedder may be opened, to make them anew.

    Raises:
        EmbedderMismatch: the ledger's vectors come from another embedder.
    """

    def __init__(self, ledger: Ledger, embedder: "Embedder", *, repair: bool = False) -> None:
        self._ledger, self.embedder, self.id = ledger, embedder, embedder.id
        self._lock = threading.Lock()
        self._recorded = False
        if not repair and (recorded := self.require_match()):
            embedder.expect(recorded[1])

    def require_match(self) -> tuple[str, int] | None:
        """Refuses (EmbedderMismatch) to mix vectors; gives id and dimension of the recorded embedder."""
        recorded = self._record()
        if recorded is not None and recorded[0] != self.id:
            raise self._mismatch(*recorded)
        return recorded

    def of(self, texts: Sequence[str]) -> dict[str, Vector]:
        """Vectors by text; a zero one for a blank text. Raises EmbeddingFailed, or what the provider does."""
        vectors = self.embedder.of(texts)
        if vectors:
            self._write_down()
        return vectors

    def of_what_works(self, texts: Sequence[str]) -> tuple[dict[str, Vector], dict[str, str]]:
        """Vectors by text, and for the texts that have none the reason. One bad text spoils no other.

        Raises:
            Exception: what the provider raises when it cannot be reached or refuses the caller.
        """
        try:
            return self.of(texts), {}
        except EmbeddingFailed as error:
            found: dict[str, Vector] = {}
            failed: dict[str, str] = {}
            in_a_row, why = 0, str(error)
            for text in dict.fromkeys(texts):
                if in_a_row < FAILURES_IN_A_ROW:
                    try:
                        found |= self.of([text])
                    except EmbeddingFailed as single:
                        in_a_row, why = in_a_row + 1, str(single)
                    else:
                        in_a_row = 0
                if text not in found:
                    failed[text] = why
            return found, failed

    def of_all_that_can(self, texts: Sequence[str]) -> dict[str, Vector]:
        """Vectors by text, without those that cannot be had now: for what must be stored whatever happens."""
        why: object = EmbeddingFailed.__name__
        try:
            found, failed = self.of_what_works(texts)
        except Exception as error:  # noqa: BLE001 - a turn is stored whatever an embedder raises; doctor finds it
            # Errors of others may quote what they were sent.
            why = error if isinstance(error, EmbedderMismatch) else type(error).__name__
            found, failed = {}, dict.fromkeys(texts, "")
        if failed:
            _log.warning("%d texts stored without a vector: %s", len(failed), why)
        return found

    def dimension(self) -> int:
        """Length of the vectors, from the ledger where it knows; else asks the embedder."""
        recorded = self._record()
        return recorded[1] if recorded and recorded[0] == self.id else self.embedder.dim

    def _record(self) -> tuple[str, int] | None:
        with self._ledger.read() as conn:
            return meta.embedder(conn)

    def _write_down(self) -> None:
        """Writes the embedder down with the first vectors. Two processes may come with two at once."""
        with self._lock:
            if self._recorded:
                return
            mine = (self.id, self.embedder.dim)
            recorded = self._record()
            if recorded is None:
                with self._ledger.write() as conn:
                    recorded = meta.embedder(conn) or mine
                    meta.set_embedder(conn, *recorded)
            if recorded != mine:
                raise self._mismatch(*recorded)
            self._recorded = True

    def _mismatch(self, name: str, dimension: int) -> EmbedderMismatch:
        if name == self.id:
            why = f"has vectors of {dimension} numbers, but {name!r} gives {self.embedder.dim} now: use the"
            why = f"{why} model it had, or make the vectors anew"
        else:
            why = f"was built with the embedder {name!r} ({dimension} dimensions), not {self.id!r}: choose"
            why = f"{why} that one, or make its vectors anew"
        home = self._ledger.path.parent
        return EmbedderMismatch(f"the memory at {home} {why} with `memcycle doctor --reembed`")


class Indexes:
    """The embedder with its record, the index that mirrors the ledger, and the search over both."""

    def __init__(
        self, settings: Settings, ledger: Ledger, embeddings: "Embeddings | None", *, repair: bool
    ) -> None:
        """Loads no model and opens no index yet. Refuses unknown embedders and, but for `repair`, another."""
        # These load libraries that commands which only read do without.
        from memcycle.stores.embedders import open_embedder
        from memcycle.stores.search.search import Search

        self.vectors = Vectors(ledger, open_embedder(settings, embeddings, ledger.world), repair=repair)
        self.mirror = Mirror(settings, ledger, self.vectors)
        self.search = Search(ledger, self.mirror, self.vectors.embedder, settings.visibility)
        self._lock, self._held = threading.Lock(), 0
        self._looked = False

    def attended(self) -> Self:
        """Finishes what is owed of deletions: a wipe that a crash cut short, or another process left to us.

        The ledger's file is looked at once, as what hinders that may last; so is a server, since nothing of
        that is left to another.
        """
        if not self._looked:
            self._looked = True
            self._if_possible(self.mirror.wipe)
        elif self.mirror.settings.chroma_url is None:
            self._if_possible(self.mirror.wipe_index)
        return self

    def close(self) -> None:
        """Frees the index, with nothing left in its files that others left to us."""
        if self._looked:
            self.attended()
        self.mirror.close()

    def catch_up(self, batch: int | None = None) -> None:
        """Brings the indexes up to date that can be reached; those held back wait."""
        if not self._held:
            self._if_possible(lambda: self.mirror.drain(batch))

    @contextmanager
    def held_back(self, batch: int) -> Iterator[None]:
        """No write of this process waits for the index meanwhile; at the end it has taken all in.

        A search that needs the index brings it up to date itself.
        """
        with self._lock:
            self._held += 1
        try:
            yield
        finally:
            with self._lock:
                self._held -= 1
            self.catch_up(batch)

    def _if_possible(self, step: Callable[[], object]) -> None:
        try:
            step()
        except StoreError as error:
            _log.warning("the index is behind the ledger: %s", error)
