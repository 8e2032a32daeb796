"""Turns texts into unit vectors: cached, batched, checked, the same for every model behind it."""

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings

from memcycle.core.errors import EmbeddingFailed
from memcycle.core.settings import Settings
from memcycle.core.world import World
from memcycle.stores.embedding_models import EmbeddingModel, Encode, find_model

Matrix = npt.NDArray[np.float32]

CACHED_NUMBERS, CACHED_TEXTS = 5_000_000, 4_096
"""Numbers kept in cached vectors, which are 20 MB, and of how many texts at most."""

MAX_CHARS = 8_000
"""Characters of a text that count. Model servers refuse more than about 8,000 tokens, and a turn nobody can
embed could never be stored; wordllama would need 1 KB of memory a token."""

RETRIES = 3
LONGEST_WAIT = 60.0
PROBE = "dimension"
TOO_MANY_REQUESTS = 429


def open_embedder(settings: Settings, embeddings: Embeddings | None, world: World) -> "Embedder":
    """The embedder that the settings name, or the given LangChain object. Its model is loaded at first use.

    Raises:
        StoreError: unknown name; lists the valid ones.
    """
    return Embedder(find_model(settings.embedder, embeddings), world)


class Embedder:
    """Texts to L2-normalised float32 vectors. Thread-safe.

    Attributes:
        id: Recorded with each vector. Vectors of another id are not comparable.
    """

    def __init__(self, model: EmbeddingModel, world: World) -> None:
        self.id = model.id
        self._model, self._world = model, world
        self._dim = model.dim
        self._encode: Encode | None = None
        self._load_lock = threading.Lock()
        self._cache_lock = threading.Lock()
        self._cache: OrderedDict[str, Matrix] = OrderedDict()

    @property
    def dim(self) -> int:
        """Length of the vectors. Embeds a probe word, once, when the model does not say."""
        if self._dim is None:
            return len(self._fetch([PROBE], [0])[0])
        return self._dim

    def expect(self, dim: int) -> None:
        """Takes vectors of this length only, those of a home: a server may give its name to another model."""
        self._dim = dim

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of texts, shape (len(texts), dim); a blank text is a zero row and never sent.

        Each distinct text is sent once; what came back before a failure stays cached, so that a repeated
        call sends only the rest.

        Raises:
            EmbeddingFailed: NaN, wrong count or dimension, or still too many requests after the retries.
                Names texts by index.
            ModelUnavailable: the model cannot be loaded.
        """
        found = self._cached(texts)
        wanted = {text: index for index, text in reversed(list(enumerate(texts))) if text.strip()}
        missing = sorted(index for text, index in wanted.items() if text not in found)
        for batch in _batches([len(texts[index]) for index in missing], self._model.batch):
            indices = [missing[place] for place in batch]
            sent = [texts[index] for index in indices]
            found.update(zip(sent, self._fetch(sent, indices), strict=True))
        result = np.zeros((len(texts), self.dim), dtype=np.float32)
        for index, text in enumerate(texts):
            if text in found:
                result[index] = found[text]
        return result

    def _cached(self, texts: Sequence[str]) -> dict[str, Matrix]:
        with self._cache_lock:
            found = {text: self._cache[_read(text)] for text in texts if _read(text) in self._cache}
            for text in found:
                self._cache.move_to_end(_read(text))
        return found

    def _fetch(self, texts: list[str], indices: Sequence[int]) -> list[Matrix]:
        """One call to the model, checked and cached; `indices` are the texts' places in the caller's list."""
        raw = self._call([_sendable(text) for text in texts], indices)
        vectors = self._checked(raw, indices)
        with self._cache_lock:
            for text, vector in zip(texts, vectors, strict=True):
                self._cache[_read(text)] = vector
            most = min(CACHED_TEXTS, CACHED_NUMBERS // len(vectors[0]))
            while len(self._cache) > most:
                self._cache.popitem(last=False)
        return vectors

    def _call(self, texts: list[str], indices: Sequence[int]) -> Any:
        """The model's answer; 429 is waited for, any other error of a provider is raised as itself."""
        encode = self._loaded()
        for attempt in range(RETRIES + 1):
            try:
                return encode(texts)
            except Exception as error:
                if _status(error) != TOO_MANY_REQUESTS:
                    raise
                if attempt == RETRIES:
                    raise EmbeddingFailed(
                        f"embedder {self.id} still answers 429 (too many requests) after {RETRIES} retries,"
                        f" at {_named(indices)}; the vectors it gave before are kept: repeat the call later"
                    ) from error
                self._world.sleep(_wait(error, attempt, self._world.now()))
        raise AssertionError("unreachable")

    def _loaded(self) -> Encode:
        with self._load_lock:
            if self._encode is None:
                self._encode = self._model.load()
            return self._encode

    def _checked(self, raw: Any, indices: Sequence[int]) -> list[Matrix]:
        rows = list(raw)
        if len(rows) != len(indices):
            raise EmbeddingFailed(
                f"embedder {self.id} gave {len(rows)} vectors for {len(indices)} texts, at {_named(indices)}"
            )
        return [self._unit(row, index) for row, index in zip(rows, indices, strict=True)]

    def _unit(self, row: Any, index: int) -> Matrix:
        vector = np.asarray(row, dtype=np.float64)
        if self._dim is None and vector.ndim == 1 and vector.size:
            self._dim = vector.size
        if vector.shape != (self._dim,):
            raise EmbeddingFailed(
                f"embedder {self.id} gave text {index} a vector of shape {vector.shape},"
                f" expected ({self._dim},); if its model was replaced, run `memcycle doctor --reembed`"
            )
        norm = float(np.linalg.norm(vector))
        if not math.isfinite(norm):
            raise EmbeddingFailed(f"embedder {self.id} gave text {index} a vector with NaN or infinity")
        unit: Matrix = (vector / norm if norm else vector).astype(np.float32)
        unit.flags.writeable = False
        return unit


def _read(text: str) -> str:
    """All that a model is shown of it, and so what its vector is kept under."""
    return text[:MAX_CHARS]


def _sendable(text: str) -> str:
    """The part that counts, with half an emoji (a lone surrogate, which no model takes) replaced."""
    return _read(text).encode("utf-8", "replace").decode("utf-8")


def _batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Places in batches of texts of like length: a model that pads pays the longest for each of its batch."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    return [order[start : start + size] for start in range(0, len(order), size)]


def _named(indices: Sequence[int]) -> str:
    return f"text {min(indices)}" if len(indices) == 1 else f"texts {min(indices)} to {max(indices)}"


def _status(error: Exception) -> int | None:
    """The HTTP status an SDK's error carries, on itself or on its response."""
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    return status if isinstance(status, int) else None


def _wait(error: Exception, attempt: int, now: datetime) -> float:
    """Seconds to wait: Retry-After as seconds or as an HTTP date, else 1, 2, 4; at most a minute."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    asked = headers.get("retry-after") or headers.get("Retry-After")
    seconds = float(2**attempt)
    if asked is not None:
        with suppress(ValueError, TypeError):
            seconds = (parsedate_to_datetime(asked) - now).total_seconds()
        with suppress(ValueError):
            seconds = float(asked)
    return min(max(seconds, 0.0), LONGEST_WAIT) if math.isfinite(seconds) else LONGEST_WAIT
