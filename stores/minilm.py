"""Chroma's ONNX all-MiniLM-L6-v2, run so that it gives a vector a text or one a word in its context."""

import tarfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from memcycle.core.errors import ModelUnavailable
from memcycle.stores.words import Words, stacked

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Encoding, Tokenizer

Floats = NDArray[np.float32]

BATCH = 32
"""Texts a run of the network; each run costs its longest text for all of them."""


class _Run(NamedTuple):
    """Texts after the network: `pieces` (texts, length, dim), `mask` (texts, length) 1 where a piece is."""

    encodings: "list[Encoding]"
    pieces: Floats
    mask: NDArray[np.int64]


class MiniLM:
    """The network with its tokenizer. Thread-safe."""

    def __init__(self, network: "InferenceSession", tokenizer: "Tokenizer") -> None:
        self._network, self._tokenizer = network, tokenizer

    @classmethod
    def loaded(cls) -> Self:
        """Loads it, and downloads it once where it is not there.

        Raises:
            ModelUnavailable: it cannot be had.
        """
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
        # Chroma pads each text to 256 pieces, which costs some ten times what a turn needs.
        model.tokenizer.no_padding()
        return cls(model.model, model.tokenizer)

    def encode(self, texts: Sequence[str]) -> Floats:
        """The mean of each text's pieces, (n, 384): what Chroma's own function gives before it is normed."""
        means = [
            (run.pieces * run.mask[:, :, None]).sum(axis=1) / run.mask.sum(axis=1, keepdims=True)
            for run in self._runs(texts)
        ]
        return np.concatenate(means)

    def words(self, texts: Sequence[str]) -> list[Words]:
        """The words of each text and a vector for each, the mean of its pieces; marks are left out."""
        return [
            _words(text, encoding, pieces)
            for start, run in zip(range(0, len(texts), BATCH), self._runs(texts), strict=True)
            for text, encoding, pieces in zip(
                texts[start : start + BATCH], run.encodings, run.pieces, strict=True
            )
        ]

    def _runs(self, texts: Sequence[str]) -> Iterator[_Run]:
        for start in range(0, len(texts), BATCH):
            encodings = [self._tokenizer.encode(text) for text in texts[start : start + BATCH]]
            shape = (len(encodings), max(len(one.ids) for one in encodings))
            ids, mask = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
            for place, one in enumerate(encodings):
                ids[place, : len(one.ids)], mask[place, : len(one.ids)] = one.ids, 1
            given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            yield _Run(encodings, np.asarray(self._network.run(None, given)[0], dtype=np.float32), mask)


def _words(text: str, encoding: "Encoding", pieces: Floats) -> Words:
    held: dict[int, list[int]] = {}
    for place, word in enumerate(encoding.word_ids):
        if word is not None:
            held.setdefault(word, []).append(place)
    spans = [
        text[encoding.offsets[places[0]][0] : encoding.offsets[places[-1]][1]] for places in held.values()
    ]
    means = [pieces[places].mean(axis=0) for places in held.values()]
    kept = [at for at, span in enumerate(spans) if any(sign.isalnum() for sign in span)]
    return stacked([spans[at] for at in kept], [means[at] for at in kept])
