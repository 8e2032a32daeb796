"""The words of a text with a vector each, kept small: what MaxSim compares.

A contextual model gives a word another vector in another sentence. 64 signed bytes a word are kept of it: the
coordinates along the directions in which the words of everyday talk differ most (principal components of a
sample that ships, so that nobody's text shapes what another's is compared by).
"""

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from importlib import resources
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from memcycle.stores.ledger import entry_words
from memcycle.stores.ledger.connection import Ledger

Floats = NDArray[np.float32]

KEPT = 64
"""Numbers kept a word, at most."""
_SMALLEST = float(np.finfo(np.float32).tiny)  # a smaller scale is kept as nothing, and nothing divides
_SAMPLE = resources.files(__package__).joinpath("sample_talk.txt").read_text(encoding="utf-8").splitlines()


class Words(NamedTuple):
    """The words of a text, and their vectors, (words, dim)."""

    words: list[str]
    vectors: Floats


EncodeWords = Callable[[Sequence[str]], list[Words]]


class Small:
    """Vectors of words as they are kept.

    Attributes:
        vectors: Unit vectors but for rounding, (words, at most 64).
    """

    def __init__(self, vectors: Floats) -> None:
        self.vectors = vectors

    @classmethod
    def read(cls, blob: bytes) -> "Small":
        """From `blob`."""
        width = int.from_bytes(blob[:1], "little")
        scale = np.frombuffer(blob, dtype="<f4", count=1, offset=1)[0]
        return cls(np.frombuffer(blob, dtype=np.int8, offset=5).reshape(-1, width) * np.float32(scale))

    @property
    def blob(self) -> bytes:
        """Their width in a byte, the scale of all, and a signed byte a number."""
        scale = max(float(np.abs(self.vectors).max(initial=0.0)) / 127, _SMALLEST)
        head = self.vectors.shape[1].to_bytes(1, "little") + np.array(scale, dtype="<f4").tobytes()
        return bytes(head + np.rint(self.vectors / scale).astype(np.int8).tobytes())


class Shrinking:
    """From a model's vectors of words to what is kept of them.

    Args:
        encode: The model.
        name: The model's id.
    """

    def __init__(self, encode: EncodeWords, name: str) -> None:
        self._encode, self._name = encode, name

    @property
    def id(self) -> str:
        """Names the model and the directions: what another one kept cannot be compared."""
        sample = hashlib.blake2b("\n".join(_SAMPLE).encode(), digest_size=4).hexdigest()
        return f"{self._name}/words-{KEPT}-{sample}"

    def words(self, texts: Sequence[str]) -> list[Words]:
        """The words of texts with their unit vectors as they are compared, (words, at most 64)."""
        found = self._encode(texts) if texts else []
        return [
            Words(words, _units(vectors @ self._directions) if words else np.zeros((0, KEPT), np.float32))
            for words, vectors in found
        ]

    @cached_property
    def _directions(self) -> Floats:
        spoken = np.concatenate([one.vectors for one in self._encode(_SAMPLE) if one.words], dtype=np.float64)
        if spoken.shape[1] <= KEPT:
            return np.eye(spoken.shape[1], dtype=np.float32)
        _, directions = np.linalg.eigh(spoken.T @ spoken)
        return np.asarray(directions[:, ::-1][:, :KEPT], dtype=np.float32)


def stacked(words: list[str], vectors: Any) -> Words:
    """Words with their vectors, anything numpy reads as (words, dim), brought to length one."""
    width = -1 if words else 0
    return Words(words, _units(np.asarray(vectors, dtype=np.float32).reshape(len(words), width)))


def _units(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9))


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
