"""Chroma's MiniLM, run by us: over a network and a tokenizer made here; the real ones are a download."""

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from memcycle.core.settings import Settings
from memcycle.core.world import World
from memcycle.stores.embedders import open_embedder

PIECES = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "dog", "##s", "bark", "loud", "##ly", "!"]
DIM = 384


class Network:
    """Gives each piece its own direction, and a share of the piece before it: the context."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, int]] = []

    def run(self, _, given):
        ids, mask = given["input_ids"], given["attention_mask"]
        assert ids.shape == mask.shape == given["token_type_ids"].shape
        self.shapes.append(ids.shape)
        own = np.eye(DIM, dtype=np.float32)[ids]
        own[:, 1:] += 0.25 * own[:, :-1]
        return [own]


@pytest.fixture
def network(monkeypatch):
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    tokenizer = Tokenizer(WordPiece({piece: n for n, piece in enumerate(PIECES)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.enable_padding(pad_id=0, pad_token="[PAD]", length=256)
    made = Network()
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "_download_model_if_not_exists", lambda self: None)
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "tokenizer", tokenizer)
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "model", made)
    return made


def embedder():
    return open_embedder(Settings(embedder="minilm"), None, World())


def piece(*names: str) -> np.ndarray:
    return np.eye(DIM)[[PIECES.index(name) for name in names]].sum(axis=0)


def test_a_text_is_the_mean_of_its_pieces_whatever_stands_beside_it(network) -> None:
    alone = embedder().embed(["dogs"])[0]
    beside = embedder().embed(["dogs", "dogs bark loudly!"])[0]
    np.testing.assert_allclose(alone, beside, atol=1e-6)
    wanted = piece("[CLS]", "dog", "##s", "[SEP]") + 0.25 * piece("[CLS]", "dog", "##s")
    np.testing.assert_allclose(alone, wanted / np.linalg.norm(wanted), atol=1e-6)


def test_texts_are_not_padded(network) -> None:
    embedder().embed(["dogs", "dogs bark loudly!"])
    assert sorted(network.shapes[1:]) == [(1, 4), (1, 8)]  # the first is what loads the model
