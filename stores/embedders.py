"""Embedders: the models behind names, and what makes each of them give unit vectors, cached and checked.

No model is loaded before it is needed.
"""

import math
import tarfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from memcycle.core.errors import (
    BadInput,
    EmbeddingFailed,
    ModelUnavailable,
    StoreError,
    is_too_long,
    status_of,
)
from memcycle.core.settings import Settings
from memcycle.core.world import World
from memcycle.stores.ledger.columns import Vector

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

CACHED_NUMBERS, CACHED_TEXTS = 5_000_000, 4_096
"""Numbers kept in cached vectors, which are 20 MB, and of how many texts at most."""

MAX_CHARS = 8_000
"""Characters of a text that count. Model servers refuse more than about 8,000 tokens, and a turn nobody can
embed could never be stored; wordllama would need 1 KB of memory a token."""

SHORTEST = 200
"""Characters of the shortest piece that a text is cut into for an embedder that takes no longer ones."""

RETRIES = 3
LONGEST_WAIT = 60.0
PROBE = "dimension"
TOO_MANY_REQUESTS = 429
_REFUSED = (400, 413, 422)


# Models


Encode = Callable[[list[str]], Any]
"""From n texts to anything numpy reads as an (n, dim) array of floats."""


class EmbeddingModel(NamedTuple):
    """A model not loaded yet.

    Attributes:
        id: Recorded with every vector; vectors of different ids are never compared.
        load: Loads it and gives its encode function. Raises ModelUnavailable.
        dim: Length of its vectors; None: found by embedding a probe word.
        batch: Texts a call at most.
    """

    id: str
    load: Callable[[], Encode]
    dim: int | None
    batch: int


PATIENCE = 60.0
"""Seconds a server may take for a call; its client would wait for ten minutes, three times."""


def find_model(name: str) -> EmbeddingModel:
    """The model of a settings name; StoreError for any other, which lists the valid ones."""
    if name.startswith("langchain:"):
        raise StoreError(f"embedder {name!r} is an object: hand it over as embeddings=")
    kind, _, model = name.partition(":")
    if kind == "openai" and model:
        return EmbeddingModel(f"langchain:{model}", lambda: _load_openai(model), None, 256)
    named = {"wordllama": WORDLLAMA, "minilm": MINILM}
    if name not in named:
        raise StoreError(
            f"unknown embedder {name!r}; valid are: {', '.join(named)}, openai:NAME; or hand a LangChain"
            " Embeddings object over as embeddings="
        )
    return named[name]


def langchain_model(embeddings: "Embeddings") -> EmbeddingModel:
    """A LangChain `Embeddings` object as a model, named by its model or else its class."""
    named = (getattr(embeddings, field, None) for field in ("model", "model_name", "model_id", "deployment"))
    model = next((value for value in named if isinstance(value, str) and value), "")
    name = f"langchain:{model or type(embeddings).__name__}"
    return EmbeddingModel(name, lambda: embeddings.embed_documents, None, 256)


def _load_minilm() -> Encode:
    import httpx
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    try:
        model = ONNXMiniLM_L6_V2()
        model(["probe"])
    except (httpx.HTTPError, OSError, ValueError, tarfile.TarError) as error:
        raise ModelUnavailable(
            f"cannot get Chroma's MiniLM model ({type(error).__name__}: {error}); it is downloaded once"
            f" to {ONNXMiniLM_L6_V2.DOWNLOAD_PATH}: connect and repeat, or use the embedder wordllama"
        ) from error
    # Chroma pads each text to 256 pieces, which costs some ten times what a turn needs; one needs no padding.
    model.tokenizer.no_padding()
    return lambda texts: [model([text])[0] for text in texts]


def _load_openai(model: str) -> Encode:
    from langchain_openai import OpenAIEmbeddings
    from openai import OpenAIError

    # The context check tokenises on this side and sends numbers, which compatible servers do not read.
    try:
        return OpenAIEmbeddings(
            model=model, check_embedding_ctx_length=False, request_timeout=PATIENCE
        ).embed_documents
    except (OpenAIError, ValueError) as error:
        raise ModelUnavailable(
            f"cannot use the embedder openai:{model}: {error}; set OPENAI_API_KEY (and OPENAI_BASE_URL)"
        ) from error


def _load_wordllama() -> Encode:
    """Its table of vectors and its tokenizer, read from the package's files.

    Importing the package would load clustering and more, in a fifth of a second and 40 MB, for the mean of a
    text's rows.
    """
    from safetensors import safe_open
    from tokenizers import Tokenizer

    try:
        folder = Path(str(find_spec("wordllama").origin)).parent  # type: ignore[union-attr]
        tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        with safe_open(folder / "weights" / "l2_supercat_256.safetensors", framework="np") as weights:
            table = weights.get_tensor("embedding.weight")
    except Exception as error:  # the tokenizer's errors have no class of their own
        raise ModelUnavailable(f"cannot load wordllama's vectors: {error}; install wordllama anew") from error
    # Else it keeps 10,000 words of what it read, 2 KB each, for each of its threads: 20 MB a core and more.
    # Reading a text takes 10 microseconds longer without. The method is not part of what tokenizers promises.
    getattr(tokenizer.model, "_resize_cache", lambda _: None)(0)

    def encode(texts: list[str]) -> Any:
        vectors = np.zeros((len(texts), table.shape[1]), np.float32)
        for vector, read in zip(
            vectors, tokenizer.encode_batch(texts, add_special_tokens=False), strict=True
        ):
            if read.ids:
                vector[:] = table.take(read.ids, axis=0).sum(axis=0, dtype=np.float32) / len(read.ids)
        return vectors

    return encode


WORDLLAMA = EmbeddingModel("wordllama-l2-supercat-256", _load_wordllama, 256, 64)
"""Static vectors inside the installed package, the default."""
MINILM = EmbeddingModel("chroma-minilm", _load_minilm, 384, 32)
"""Chroma's ONNX all-MiniLM-L6-v2, downloaded once."""


# Vectors


def open_embedder(settings: Settings, embeddings: "Embeddings | None", world: World) -> "Embedder":
    """The embedder that the settings name, or a LangChain object. Its model is loaded at first use."""
    if embeddings is None:
        return Embedder(find_model(settings.embedder), world)
    if not hasattr(embeddings, "embed_documents"):
        raise BadInput(
            f"embeddings must be a LangChain embedder, not a {type(embeddings).__name__}; one by name is"
            " Settings(embedder=...)"
        )
    return Embedder(langchain_model(embeddings), world)


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
        self._cache: OrderedDict[str, Vector] = OrderedDict()
        self._longest = MAX_CHARS
        """Characters that the model took of one text, as far as its refusals say."""

    @property
    def dim(self) -> int:
        """Length of the vectors. Embeds a probe word, once, when the model does not say."""
        if self._dim is None:
            return len(self._fetch([PROBE], [0])[0])
        return self._dim

    def expect(self, dim: int) -> None:
        """Takes vectors of this length only, those of a home: a server may give its name to another model."""
        self._dim = dim

    def embed(self, texts: Sequence[str]) -> Vector:
        """Vectors of texts, shape (len(texts), dim); a blank text is a zero row and never sent.

        Each distinct text is sent once; what came back before a failure stays cached, so that a repeated
        call sends only the rest.

        Raises:
            EmbeddingFailed: NaN, wrong count or dimension, or still too many requests after the retries.
                Names texts by index.
            ModelUnavailable: the model cannot be loaded.
        """
        with self._cache_lock:
            found = {text: self._cache[_read(text)] for text in texts if _read(text) in self._cache}
            for text in found:
                self._cache.move_to_end(_read(text))
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

    def of(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The same by text."""
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, self.embed(distinct), strict=True)) if distinct else {}

    def _fetch(self, texts: list[str], indices: Sequence[int]) -> list[Vector]:
        """One call to the model, checked and cached; `indices` are the texts' places in the caller's list."""
        # Half an emoji (a lone surrogate) is replaced: no model takes it.
        sent = [_read(text).encode("utf-8", "replace").decode("utf-8") for text in texts]
        vectors = self._whole_or_halved(sent, indices)
        with self._cache_lock:
            for text, vector in zip(texts, vectors, strict=True):
                self._cache[_read(text)] = vector
            most = min(CACHED_TEXTS, CACHED_NUMBERS // len(vectors[0]))
            while len(self._cache) > most:
                self._cache.popitem(last=False)
        return vectors

    def _whole_or_halved(self, texts: list[str], indices: Sequence[int]) -> list[Vector]:
        """Vectors of texts of any length: where the model refuses for that, of fewer texts at once; for one
        text the mean of those of its halves."""
        if max(map(len, texts)) <= self._longest:
            try:
                return self._checked(self._call(texts, indices), indices)
            except Exception as error:
                # A model that refused texts did so for their length: there is hardly another reason.
                refused = is_too_long(error) or status_of(error) in _REFUSED
                if not refused or (len(texts) == 1 and len(texts[0]) < 2 * SHORTEST):
                    raise
                if len(texts) == 1:
                    self._longest = min(self._longest, len(texts[0]) // 2)
        if len(texts) > 1:
            half = len(texts) // 2
            first = self._whole_or_halved(texts[:half], indices[:half])
            return [*first, *self._whole_or_halved(texts[half:], indices[half:])]
        # Between words where one ends in the first half.
        text, middle = texts[0], len(texts[0]) // 2
        middle = text.rfind(" ", middle // 2, middle) + 1 or middle
        pieces = [piece for piece in (text[:middle], text[middle:]) if piece.strip()]
        found = [self._whole_or_halved([piece], indices)[0] for piece in pieces]
        return [self._unit(np.mean(found, axis=0), indices[0])]

    def _call(self, texts: list[str], indices: Sequence[int]) -> Any:
        """The model's answer; 429 is waited for, any other error of a provider is raised as itself."""
        encode = self._loaded()
        for attempt in range(RETRIES + 1):
            try:
                return encode(texts)
            except Exception as error:
                if status_of(error) != TOO_MANY_REQUESTS:
                    raise
                if attempt == RETRIES:
                    raise EmbeddingFailed(
                        f"embedder {self.id} still answers 429 (too many requests) after {RETRIES} retries,"
                        f" at {_named(indices)}; the vectors it gave before are kept: repeat the call later"
                    ) from error
                self._world.sleep(_wait(error, attempt))
        raise AssertionError("unreachable")

    def _loaded(self) -> Encode:
        with self._load_lock:
            if self._encode is None:
                self._encode = self._model.load()
            return self._encode

    def _checked(self, raw: Any, indices: Sequence[int]) -> list[Vector]:
        rows = list(raw)
        if len(rows) != len(indices):
            raise EmbeddingFailed(
                f"embedder {self.id} gave {len(rows)} vectors for {len(indices)} texts, at {_named(indices)}"
            )
        return [self._unit(row, index) for row, index in zip(rows, indices, strict=True)]

    def _unit(self, row: Any, index: int) -> Vector:
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
        unit: Vector = (vector / norm if norm else vector).astype(np.float32)
        unit.flags.writeable = False
        return unit


def _read(text: str) -> str:
    """All that a model is shown of it, and so what its vector is kept under."""
    return text[:MAX_CHARS]


def _batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Places in batches of texts of like length: a model that pads pays the longest for each of its batch."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    return [order[start : start + size] for start in range(0, len(order), size)]


def _named(indices: Sequence[int]) -> str:
    return f"text {min(indices)}" if len(indices) == 1 else f"texts {min(indices)} to {max(indices)}"


def _wait(error: Exception, attempt: int) -> float:
    """Seconds to wait: Retry-After in seconds, else 1, 2, 4; at most a minute."""
    headers: Any = getattr(getattr(error, "response", None), "headers", None) or {}
    seconds = float(2**attempt)
    with suppress(ValueError, TypeError):
        seconds = float(headers.get("retry-after") or headers.get("Retry-After"))
    return min(max(seconds, 0.0), LONGEST_WAIT) if math.isfinite(seconds) else LONGEST_WAIT
