"""The models behind embedder names: how each is loaded. Nothing is loaded before it is needed.

A model is a function from texts to one vector each; `memcycle.stores.embedder` does the rest.
"""

import logging
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.embeddings import Embeddings

from memcycle.core.errors import ModelUnavailable, StoreError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Vectors = Any
"""Anything numpy reads as an (n, dim) array of floats."""

Encode = Callable[[list[str]], Vectors]


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

EMBEDDERS = {
    "wordllama": "static vectors inside the installed package, the default",
    "minilm": "Chroma's ONNX all-MiniLM-L6-v2, downloaded once",
    "openai:NAME": "a model of an OpenAI-compatible server",
}
"""Names that `Settings.embedder` takes without an `Embeddings` object."""


def find_model(name: str, embeddings: Embeddings | None) -> EmbeddingModel:
    """The model of a settings name, or of the `Embeddings` handed over, which wins.

    Raises:
        StoreError: no such name; lists the valid ones.
    """
    if embeddings is not None:
        return langchain_model(embeddings)
    if name.startswith("langchain:"):
        raise StoreError(f"embedder {name!r} is an object: hand it over as embeddings=")
    kind, _, model = name.partition(":")
    if kind == "openai" and model:
        return EmbeddingModel(langchain_id("OpenAIEmbeddings", model), lambda: _load_openai(model), None, 256)
    named = {"wordllama": WORDLLAMA, "minilm": MINILM}
    if name not in named:
        valid = "; ".join(f"{key} ({what})" for key, what in EMBEDDERS.items())
        raise StoreError(
            f"unknown embedder {name!r}; valid are: {valid}; or hand a LangChain Embeddings object over as"
            " embeddings="
        )
    return named[name]


def langchain_id(kind: str, model: str) -> str:
    """`langchain:MODEL`, or `langchain:CLASS` for an object that names no model."""
    return f"langchain:{model or kind}"


def langchain_model(embeddings: Embeddings) -> EmbeddingModel:
    """A LangChain `Embeddings` object as a model, named by its model or else its class."""
    named = (getattr(embeddings, field, None) for field in ("model", "model_name", "model_id", "deployment"))
    model = next((value for value in named if isinstance(value, str) and value), "")
    return EmbeddingModel(
        langchain_id(type(embeddings).__name__, model), lambda: embeddings.embed_documents, None, 256
    )


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


@contextmanager
def _root_logger_untouched() -> Iterator[None]:
    """wordllama calls `logging.basicConfig(level=INFO)` at import; a handler in place makes that a no-op."""
    guard = logging.NullHandler()
    logging.getLogger().addHandler(guard)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(guard)


def _load_wordllama() -> Encode:
    with _root_logger_untouched():
        import wordllama
    # Its loader looks in a wrong place for the tokenizer that its own wheel carries, unless told.
    folder = Path(wordllama.__file__).parent
    try:
        model = wordllama.WordLlama.load("l2_supercat", cache_dir=folder, dim=256, disable_download=True)
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"cannot load wordllama's vectors: {error}; install wordllama anew") from error
    _remember_no_words(model.tokenizer)

    def encode(texts: list[str]) -> Vectors:
        return model.embed(texts, norm=False)

    return encode


def _remember_no_words(tokenizer: "Tokenizer") -> None:
    """Else it keeps 10,000 words of what it read, 2 KB each, for each of its threads: 20 MB a core and more.

    Reading a text takes 10 microseconds longer without. The method is not part of what tokenizers promises.
    """
    resize = getattr(tokenizer.model, "_resize_cache", None)
    if resize is not None:
        resize(0)


WORDLLAMA = EmbeddingModel("wordllama-l2-supercat-256", _load_wordllama, 256, 64)
MINILM = EmbeddingModel("chroma-minilm", _load_minilm, 384, 32)
