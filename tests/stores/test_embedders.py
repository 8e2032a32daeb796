"""Embedders: caching, checking, retrying, and the models behind the names."""

import logging
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_openai import OpenAIEmbeddings

from benchmarks.soak.meters import resident_mb
from memcycle.core.errors import EmbeddingFailed, ModelUnavailable, StoreError
from memcycle.core.settings import Settings
from memcycle.core.world import World
from memcycle.stores import embedders
from memcycle.stores.embedders import WORDLLAMA, Embedder, open_embedder
from tests.fakes import FakeEmbeddings, TooManyRequests, too_short, with_nan, wrong_dimension

NOW = datetime(2024, 5, 7, 12, 0, tzinfo=UTC)


def fake(**options: Any) -> tuple[Embedder, FakeEmbeddings, list[float]]:
    model, slept = FakeEmbeddings(**options), []
    world = World(now=lambda: NOW, sleep=slept.append)
    return open_embedder(Settings(), model, world), model, slept


def sent(model: FakeEmbeddings) -> list[str]:
    return [text for call in model.calls for text in call]


def test_vectors_are_unit_float32_in_the_order_of_the_texts() -> None:
    embedder, model, _ = fake()
    texts = ["a long text about the dogs of Ana", "dogs", "a cat"]
    vectors = embedder.embed(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (3, 32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    for text, vector in zip(texts, vectors, strict=True):
        expected = np.array(model.embed_query(text))
        np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), rtol=1e-5)


def test_a_blank_text_is_a_zero_row_and_never_sent() -> None:
    embedder, model, _ = fake()
    vectors = embedder.embed(["", "dogs", " \n\t"])
    assert vectors.any(axis=1).tolist() == [False, True, False]
    assert sent(model) == ["dogs"]


def test_nothing_but_blanks_calls_no_model_but_for_the_dimension() -> None:
    embedder, model, _ = fake()
    assert embedder.embed([]).shape == (0, 32)
    assert embedder.embed(["", ""]).shape == (2, 32)
    assert sent(model) == [embedders.PROBE]


def test_each_distinct_text_is_sent_once() -> None:
    embedder, model, _ = fake()
    first = embedder.embed(["dogs", "cats", "dogs"])
    again = embedder.embed(["cats", "birds", "dogs"])
    assert sorted(sent(model)) == ["birds", "cats", "dogs"]
    np.testing.assert_array_equal(first[0], first[2])
    np.testing.assert_array_equal(first[0], again[2])


@pytest.mark.parametrize(("bound", "value"), [("CACHED_NUMBERS", 3 * 32), ("CACHED_TEXTS", 3)])
def test_the_cache_is_bounded_and_forgets_the_oldest(
    monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    monkeypatch.setattr(embedders, bound, value)
    embedder, model, _ = fake()
    embedder.embed(["a1", "b2", "c3"])
    embedder.embed(["a1", "d4"])
    model.calls.clear()
    embedder.embed(["a1"])
    assert sent(model) == []
    embedder.embed(["b2"])
    assert sent(model) == ["b2"]


def test_texts_go_in_batches_of_like_length() -> None:
    embedder, model, _ = fake()
    embedder.embed([f"text {number}" + " x" * (number % 7) for number in range(600)])
    assert [len(call) for call in model.calls] == [256, 256, 88]
    lengths = [len(text) for text in sent(model)]
    assert lengths == sorted(lengths)


def test_a_very_long_text_is_cut_before_it_is_sent_and_half_an_emoji_is_replaced() -> None:
    embedder, model, _ = fake()
    embedder.embed(["word " * 10_000, "half \ud83d"])
    assert {len(text) for text in sent(model)} == {embedders.MAX_CHARS, len("half ?")}
    assert "half ?" in sent(model)


def test_the_dimension_is_found_once_by_a_probe() -> None:
    embedder, model, _ = fake(dim=7)
    assert (embedder.dim, embedder.dim) == (7, 7)
    assert model.calls == [[embedders.PROBE]]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (with_nan, "gave text 2 a vector with NaN or infinity"),
        (wrong_dimension, r"gave text 2 a vector of shape \(33,\), expected \(32,\)"),
        (too_short, "gave 2 vectors for 3 texts, at texts 0 to 2"),
    ],
)
def test_an_unusable_answer_names_the_index_and_not_the_text(fault: Any, words: str) -> None:
    embedder, _, _ = fake(script=[None, fault])
    assert embedder.dim == 32
    with pytest.raises(EmbeddingFailed, match=words) as failure:
        embedder.embed(["my secret", "my other", "my last one"])
    assert "my" not in str(failure.value)
    assert "fake-bag" in str(failure.value)


def test_a_failed_answer_is_not_cached() -> None:
    embedder, _, _ = fake(script=[with_nan])
    with pytest.raises(EmbeddingFailed):
        embedder.embed(["dogs"])
    assert embedder.embed(["dogs"]).any()


def test_too_many_requests_are_waited_for_as_asked() -> None:
    for retry_after, seconds in [
        ("7", 7.0),
        ("0.5", 0.5),
        (None, 1.0),
        ("Tue, 07 May 2024 12:00:30 GMT", 1.0),
        ("86400", 60.0),
        ("-1", 0.0),
        ("nan", 60.0),
        ("soon", 1.0),
    ]:
        embedder, model, slept = fake(script=[TooManyRequests(retry_after)])
        assert embedder.embed(["dogs"]).any(), retry_after
        assert slept == [seconds], retry_after
        assert model.calls == [["dogs"], ["dogs"]], retry_after


def test_after_the_retries_it_says_where_it_stopped_and_keeps_what_it_has() -> None:
    refusals = [TooManyRequests("1") for _ in range(4)]
    embedder, model, slept = fake(script=[None, *refusals])
    texts = [f"t{number:03d}" for number in range(300)]
    with pytest.raises(
        EmbeddingFailed, match=r"still answers 429 .* after 3 retries, at texts 256 to 299; .*kept"
    ):
        embedder.embed(texts)
    assert slept == [1.0, 1.0, 1.0]
    model.calls.clear()
    assert embedder.embed(texts).any(axis=1).all()
    assert sent(model) == texts[256:]


def test_another_error_of_the_provider_is_raised_as_itself() -> None:
    embedder, model, slept = fake(script=[ConnectionError("down")])
    with pytest.raises(ConnectionError, match="down"):
        embedder.embed(["dogs"])
    assert (slept, len(model.calls)) == ([], 1)


def test_ids_name_the_model_or_else_the_class() -> None:
    assert open_embedder(Settings(), FakeEmbeddings(model="text-9"), World()).id == "langchain:text-9"
    assert open_embedder(Settings(), FakeEmbeddings(model=""), World()).id == "langchain:FakeEmbeddings"
    assert open_embedder(Settings(embedder="minilm"), None, World()).id == "chroma-minilm"
    named = OpenAIEmbeddings(model="text-9", api_key="k")
    assert (
        open_embedder(Settings(), named, World()).id
        == open_embedder(Settings(embedder="openai:text-9"), None, World()).id
    )


@pytest.mark.parametrize("name", ["word2vec", "openai:", "", "minilm:x"])
def test_an_unknown_name_lists_the_valid_ones(name: str) -> None:
    with pytest.raises(StoreError, match=r"unknown embedder .*wordllama, minilm, openai:NAME.*embeddings="):
        open_embedder(Settings(embedder=name), None, World())


def test_a_langchain_id_without_its_object_asks_for_it() -> None:
    with pytest.raises(StoreError, match="'langchain:text-9' is an object: hand it over"):
        open_embedder(Settings(embedder="langchain:text-9"), None, World())


def test_an_openai_model_sends_texts_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[OpenAIEmbeddings] = []

    def answer(self: OpenAIEmbeddings, texts: list[str]) -> list[list[float]]:
        made.append(self)
        return [[3.0, 4.0] for _ in texts]

    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setattr(OpenAIEmbeddings, "embed_documents", answer)
    vectors = open_embedder(Settings(embedder="openai:text-9"), None, World()).embed(["dogs"])
    np.testing.assert_allclose(vectors, [[0.6, 0.8]], rtol=1e-6)
    assert (made[0].model, made[0].check_embedding_ctx_length) == ("text-9", False)


def test_a_missing_key_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(
        ModelUnavailable, match=r"cannot use the embedder openai:text-9: .*set OPENAI_API_KEY"
    ):
        open_embedder(Settings(embedder="openai:text-9"), None, World()).embed(["dogs"])


def test_an_unreachable_minilm_download_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    def refuse(*_: object) -> None:
        raise httpx.ConnectError("no route")

    monkeypatch.setattr(httpx, "stream", refuse)
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "DOWNLOAD_PATH", tmp_path)
    embedder = open_embedder(Settings(embedder="minilm"), None, World())
    assert embedder.dim == 384
    with pytest.raises(ModelUnavailable, match=r"cannot get Chroma's MiniLM model .*ConnectError.*wordllama"):
        embedder.embed(["dogs"])


@pytest.fixture(scope="module")
def wordllama() -> Embedder:
    return open_embedder(Settings(), None, World())


def test_wordllama_finds_the_related_text(wordllama: Embedder) -> None:
    texts = [
        "She adopted a puppy from the shelter.",
        "The train to Vienna was late.",
        "He bakes sourdough bread.",
    ]
    question = wordllama.embed(["Who has a dog?"])[0]
    assert int(np.argmax(wordllama.embed(texts) @ question)) == 0
    assert (wordllama.id, wordllama.dim) == ("wordllama-l2-supercat-256", 256)


@given(st.lists(st.text(max_size=40), max_size=6))
def test_wordllama_gives_any_text_a_unit_or_a_zero_row(wordllama: Embedder, texts: list[str]) -> None:
    norms = np.linalg.norm(wordllama.embed(texts), axis=1)
    for text, norm in zip(texts, norms, strict=True):
        assert norm == pytest.approx(1 if text.strip() else 0, abs=1e-5)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory now is only told by /proc")
def test_wordllama_keeps_nothing_of_what_it_read() -> None:
    encode = WORDLLAMA.load()

    def read(name: Callable[[int], str]) -> None:
        for start in range(0, 8_000, 64):
            encode([f"I moved to {name(number)} last week." for number in range(start, start + 64)])

    read(lambda _: "Reykjavik")  # what numpy and the allocator need once
    before = resident_mb()
    read(lambda number: f"name{number:05d}name")
    assert resident_mb() - before < 6.0  # over 20 with the cache of words that tokenizers has by itself


def test_a_vector_does_not_depend_on_its_neighbours(wordllama: Embedder) -> None:
    fresh = open_embedder(Settings(), None, World())
    alone = fresh.embed(["The train to Vienna was late."])[0]
    together = wordllama.embed(["x", "The train to Vienna was late.", "word " * 500])[1]
    np.testing.assert_allclose(alone, together, atol=1e-6)


QUIET = """
import logging, socket, sys
def no_network(*_, **__):
    raise AssertionError("network")
socket.socket.connect = socket.getaddrinfo = no_network
from memcycle.core.world import World
from memcycle.core.settings import Settings
from memcycle.stores.embedders import open_embedder
embedder = open_embedder(Settings(), None, World())
assert "wordllama" not in sys.modules, "loaded before it was needed"
assert embedder.embed(["dogs"]).any()
assert "torch" not in sys.modules
assert "chromadb" not in sys.modules
root = logging.getLogger()
assert (root.handlers, root.level) == ([], logging.WARNING), (root.handlers, root.level)
"""


def test_wordllama_loads_lazily_without_network_or_torch_and_leaves_logging_alone() -> None:
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_no_text_reaches_a_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    embedder, _, _ = fake(script=[TooManyRequests("1"), with_nan])
    with pytest.raises(EmbeddingFailed):
        embedder.embed(["my secret"])
    assert "secret" not in caplog.text
