"""Stand-ins for models, deterministic and without a network."""

import hashlib
import re
from collections.abc import Callable

import numpy as np
from langchain_core.embeddings import Embeddings

Fault = Callable[[list[list[float]]], list[list[float]]]


class TooManyRequests(Exception):
    """What an SDK raises on status 429, with the response it got."""

    def __init__(self, retry_after: str | None) -> None:
        super().__init__("rate limited")
        self.status_code = 429
        headers = {} if retry_after is None else {"retry-after": retry_after}
        self.response = type("Response", (), {"status_code": 429, "headers": headers})()


def bag_of_words(text: str, dim: int) -> list[float]:
    """Counts of hashed words: texts that share words are near, the same text is the same vector."""
    vector = np.zeros(dim)
    for word in re.findall(r"\w+", text.casefold()):
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        vector[digest[0] % dim] += 1.0 if digest[1] % 2 else -1.0
        vector[digest[2] % dim] += 0.5
    return [float(value) for value in vector]


class FakeEmbeddings(Embeddings):
    """Hashed bag of words that counts its calls and can be told to misbehave.

    `script` holds what the next calls do, one each: an exception to raise, a fault to apply to the
    vectors, or None to answer as usual. After it all calls answer as usual.
    """

    def __init__(
        self, dim: int = 32, model: str = "fake-bag", script: list[Exception | Fault | None] | None = None
    ) -> None:
        self.dim, self.model = dim, model
        self.script = list(script or [])
        self.calls: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(list(texts))
        step = self.script.pop(0) if self.script else None
        if isinstance(step, Exception):
            raise step
        vectors = [bag_of_words(text, self.dim) for text in texts]
        return step(vectors) if step else vectors

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def with_nan(vectors: list[list[float]]) -> list[list[float]]:
    """The last vector holds a NaN."""
    return [*vectors[:-1], [float("nan"), *vectors[-1][1:]]]


def too_short(vectors: list[list[float]]) -> list[list[float]]:
    """One vector is missing."""
    return vectors[:-1]


def wrong_dimension(vectors: list[list[float]]) -> list[list[float]]:
    """The last vector is one number too long."""
    return [*vectors[:-1], [*vectors[-1], 1.0]]
