"""Keeps the vectors of entries' words in step with the ledger, and gives them to the search."""

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from typing import Protocol

from memcycle.stores.ledger import entry_words
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.words import Small, Words

PAGE = 256
"""Entries a transaction."""


class WordModel(Protocol):
    """What gives words their vectors; see `memcycle.stores.words.Shrinking`."""

    @property
    def id(self) -> str:
        """Recorded with what it read."""

    def words(self, texts: Sequence[str]) -> list[Words]:
        """The words of each text, with a unit vector each."""


class WordIndex:
    """The words of all entries of a home. Thread-safe.

    An entry's text never changes, and rows are given in ascending order: all up to some row have been read.
    """

    def __init__(self, ledger: Ledger, model: WordModel) -> None:
        self._ledger, self._model = ledger, model
        self._reading = threading.Lock()

    def catch_up(self) -> int:
        """Reads the entries that were not read yet; returns how many.

        Raises:
            EmbeddingFailed, or what the provider raises: those before are kept.
        """
        read = 0
        with self._reading:
            while True:
                with self._ledger.read() as conn:
                    page = entry_words.unread(conn, self._model.id, PAGE)
                if not page:
                    return read
                words = self._model.words([one.text for one in page])
                blobs = {
                    one.row: Small(found.vectors).blob
                    for one, found in zip(page, words, strict=True)
                    if found.words
                }
                with self._ledger.write() as conn:
                    entry_words.put(conn, self._model.id, blobs, page[-1].row)
                read += len(page)

    def of(self, conn: sqlite3.Connection, rows: Iterable[int]) -> dict[int, Small]:
        """The words of entries by row; those not read yet, and those without words, are left out."""
        return {row: Small.read(blob) for row, blob in entry_words.of(conn, self._model.id, rows).items()}

    def asked(self, texts: Sequence[str]) -> list[Words]:
        """The words of queries.

        Raises:
            EmbeddingFailed, or what the provider raises.
        """
        return self._model.words(texts)
