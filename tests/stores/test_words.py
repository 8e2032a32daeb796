"""The vectors of words: how small they are kept, and that they follow the entries."""

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memcycle.core.errors import StoreError
from memcycle.core.theta import Theta, Weights
from memcycle.stores.ledger import entry_words
from memcycle.stores.search.request import Query, SearchRequest
from memcycle.stores.words import KEPT, Shrinking, Small, Words, stacked
from tests.banks import ANN, BOB, add, open_bank, said
from tests.fakes import FakeEmbeddings, bag_of_words

ONLY = Weights.only(bm25=1, maxsim=5)


class Contextual(FakeEmbeddings):
    """A word's vector is its bag and a share of the word's before it; "puppy" and "dog" are one word."""

    def __init__(self, dim=32, broken=None):
        super().__init__(dim=dim, model="contextual")
        self.read, self.broken = [], broken

    def embed_words(self, texts):
        self.read.extend(texts)
        if self.broken is not None:
            raise self.broken
        return [self._words(text) for text in texts]

    def _words(self, text):
        words = re.findall(r"\w+", text)
        own = [np.array(bag_of_words(word.replace("puppy", "dog"), self.dim)) for word in words]
        before = [np.zeros(self.dim), *own][: len(own)]
        return words, [a + 0.1 * b for a, b in zip(own, before, strict=True)]


def contextual_bank(home, model=None, **settings):
    return open_bank(home, embeddings=model or Contextual(), token_vectors=True, **settings)


def asked(bank, text, *, scope=ANN, weights=ONLY, **fields):
    request = SearchRequest(scope=scope, queries=(Query(text=text),), theta=Theta(weights=weights), **fields)
    return bank.search(request)[0]


def kept(bank):
    with bank.ledger.read() as conn:
        return {row["row"]: row["vectors"] for row in conn.execute("SELECT * FROM entry_words")}


@given(
    arrays(
        np.float32, st.tuples(st.integers(0, 5), st.integers(1, KEPT)), elements=st.floats(-1, 1, width=32)
    )
)
@example(np.array([[1e-45]], dtype=np.float32))
@example(np.zeros((2, 3), dtype=np.float32))
def test_what_is_kept_is_read_back_but_for_rounding(vectors: np.ndarray) -> None:
    blob = Small(vectors).blob
    read = Small.read(blob).vectors
    assert read.shape == vectors.shape
    assert np.abs(read - vectors).max(initial=0) <= np.abs(vectors).max(initial=0) / 254 + 1e-6
    assert len(blob) == 5 + vectors.size


def test_a_wide_model_is_kept_in_the_directions_of_its_sample() -> None:
    rng = np.random.default_rng(3)
    used = np.linalg.qr(rng.normal(size=(300, 40)))[0].T

    def encode(texts):
        return [stacked(["a", "b"], rng.normal(size=(2, 40)) @ used) for _ in texts]

    shrinking = Shrinking(encode, "wide")
    [one] = shrinking.words(["anything"])
    assert one.vectors.shape == (2, KEPT)
    np.testing.assert_allclose(np.linalg.norm(one.vectors, axis=1), 1, rtol=1e-5)


def test_directions_keep_the_cosines_of_a_model_that_uses_few() -> None:
    rng = np.random.default_rng(5)
    used = np.linalg.qr(rng.normal(size=(200, 30)))[0].T
    pairs = rng.normal(size=(2, 30)).astype(np.float32) @ used.astype(np.float32)

    def encode(texts):
        return [
            stacked(["a", "b"], pairs if text == "pair" else rng.normal(size=(2, 30)) @ used)
            for text in texts
        ]

    [read] = Shrinking(encode, "few").words(["pair"])
    wanted = stacked(["a", "b"], pairs).vectors
    assert read.vectors[0] @ read.vectors[1] == pytest.approx(wanted[0] @ wanted[1], abs=1e-5)


def test_a_text_without_words_stays_without() -> None:
    def encode(texts):
        return [
            Words([], np.zeros((0, 100), np.float32)) if text == "!" else stacked(["a"], np.eye(100)[:1])
            for text in texts
        ]

    assert Shrinking(encode, "x").words(["!"])[0].vectors.shape == (0, KEPT)


def test_the_nearest_word_in_context_decides(tmp_path, list_index) -> None:
    with contextual_bank(tmp_path) as bank:
        bank.stage_turns(ANN, [said(1, "My puppy was sick"), said(2, "My car was sick")])
        plain = asked(bank, "was the dog sick", weights=Weights.only(bm25=1))
        assert plain[0].score == plain[1].score
        first, second = asked(bank, "was the dog sick")
        assert first.entry.text == "My puppy was sick"
        assert first.score > second.score
        assert {why.view for why in first.why} >= {"maxsim"}


def test_names_and_function_words_of_a_query_count_nothing(tmp_path, list_index) -> None:
    with contextual_bank(tmp_path) as bank:
        turns = [said(1, "Ann Ann Ann was here", speaker="Bo"), said(2, "A vet came here", speaker="Ann")]
        bank.stage_turns(ANN, turns)
        [first, *_] = asked(bank, "was Ann here with a vet")
        assert first.entry.text == "A vet came here"


def test_each_entry_is_read_once_and_again_by_nobody(tmp_path, list_index) -> None:
    model = Contextual()
    with contextual_bank(tmp_path, model) as bank:
        bank.stage_turns(ANN, [said(1, "My puppy was sick")])
        bank.apply(ANN, [add("Ann has a puppy", "D1:1")])
        bank.commit_session(ANN)
        bank.commit_session(ANN)
        assert sorted(set(model.read) & {"My puppy was sick", "Ann has a puppy"}) == [
            "Ann has a puppy", "My puppy was sick",
        ]  # fmt: skip
        assert [model.read.count(text) for text in ("My puppy was sick", "Ann has a puppy")] == [1, 1]
        assert len(kept(bank)) == 2


def test_what_was_stored_without_is_read_when_it_is_wanted(tmp_path, list_index) -> None:
    with open_bank(tmp_path, embeddings=Contextual()) as bank:
        bank.stage_turns(ANN, [said(1, "My puppy was sick")])
        bank.commit_session(ANN)
        assert kept(bank) == {}
    with contextual_bank(tmp_path) as bank:
        bank.stage_turns(BOB, [said(1, "hello", speaker="Bob")])
        assert len(kept(bank)) == 2


def test_what_is_forgotten_is_forgotten_here_too(tmp_path, list_index) -> None:
    with contextual_bank(tmp_path) as bank:
        bank.stage_turns(ANN, [said(1, "My puppy was sick")])
        bank.stage_turns(BOB, [said(1, "hello", speaker="Bob")])
        bank.commit_session(ANN)
        bank.forget_user("ann")
        assert len(kept(bank)) == 1


def test_an_entry_in_the_place_of_a_forgotten_one_is_read(tmp_path, list_index) -> None:
    with contextual_bank(tmp_path) as bank:
        bank.stage_turns(ANN, [said(1, "My puppy was sick")])
        before = kept(bank)
        bank.forget_user("ann")
        bank.stage_turns(BOB, [said(1, "Something else entirely", speaker="Bob")])
        after = kept(bank)
        assert after.keys() == before.keys()
        assert after != before


def test_vectors_of_another_model_are_not_compared(tmp_path, list_index) -> None:
    with contextual_bank(tmp_path) as bank:
        bank.stage_turns(ANN, [said(1, "My puppy was sick")])
        with bank.ledger.read() as conn:
            assert entry_words.of(conn, "another", kept(bank)) == {}


def test_a_model_that_fails_keeps_no_turn_from_being_stored(tmp_path, list_index, caplog) -> None:
    model = Contextual(broken=RuntimeError("the words of a person"))
    with contextual_bank(tmp_path, model) as bank:
        bank.stage_turns(ANN, [said(1, "My puppy was sick")])
        assert bank.commit_session(ANN) == 1
        assert kept(bank) == {}
        assert "words of new entries are not read: RuntimeError" in caplog.text
        assert "person" not in caplog.text
        model.broken = None
        bank.stage_turns(ANN, [said(2, "It is well again")])
        assert len(kept(bank)) == 2


def test_too_few_answers_are_told_apart_from_none(tmp_path, list_index, caplog) -> None:
    class Lazy(Contextual):
        def embed_words(self, texts):
            return super().embed_words(texts)[:-1]

    with contextual_bank(tmp_path, Lazy()) as bank:
        bank.stage_turns(ANN, [said(1, "My puppy was sick")])
        assert "EmbeddingFailed" in caplog.text
        assert len(bank.entries(ANN)) == 1


def test_a_model_without_words_is_refused_by_name(tmp_path) -> None:
    with pytest.raises(StoreError, match=r"fake-bag gives no vectors of single words.*minilm.*embed_words"):
        open_bank(tmp_path, token_vectors=True)


def test_another_persons_words_weigh_on_no_score(tmp_path, list_index) -> None:
    with contextual_bank(tmp_path) as bank:
        bank.stage_turns(ANN, [said(1, "My puppy was sick"), said(2, "My car was sick")])
        alone = [(hit.entry.id, hit.score) for hit in asked(bank, "was the dog sick")]
        bank.stage_turns(BOB, [said(n, f"dog number {n}", speaker="Bob") for n in range(1, 30)])
        assert [(hit.entry.id, hit.score) for hit in asked(bank, "was the dog sick")] == alone
