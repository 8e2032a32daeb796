"""The plain ways of searching, checked against values worked out by hand."""

import math

import numpy as np
import pytest

from memcycle.evals.baselines import K1, RANKED, B, Baselines, Bm25, ranks, scaled
from tests.banks import fact
from tests.fakes import bag_of_words


def embed(texts):
    rows = np.array([bag_of_words(text, 64) for text in texts], dtype=np.float32).reshape(len(texts), 64)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def test_bm25_by_hand():
    bm25 = Bm25(["kite kite tree", "kite", "stone wall river"])
    idf = math.log1p((3 - 2 + 0.5) / (2 + 0.5))
    mean = 7 / 3

    def part(times, length):
        return idf * times * (K1 + 1) / (times + K1 * (1 - B + B * length / mean))

    assert bm25.scores("the kite") == pytest.approx([part(2, 3), part(1, 1), 0.0])
    assert bm25.scores("kites kite") == pytest.approx(bm25.scores("kite"))  # stems, each term once
    assert bm25.scores("unheard") == pytest.approx([0, 0, 0])
    assert bm25.scores("") == pytest.approx([0, 0, 0])


def test_a_query_of_function_words_is_read_as_it_is():
    assert Bm25(["to be or not", "kite"]).scores("to be")[0] > 0


def test_ranks_and_scales():
    assert ranks(np.array([0.1, 0.9, 0.1])).tolist() == [2, 1, 3]
    assert scaled(np.array([1.0, 3.0, 2.0])).tolist() == [0.0, 1.0, 0.5]
    assert scaled(np.array([2.0, 2.0])).tolist() == [0.0, 0.0]
    assert scaled(np.array([])).tolist() == []


@pytest.fixture
def stored():
    return [
        fact("I keep bees on the roof.", "D1:1", granularity="raw", speaker="Ann"),
        fact("I built a wooden kite.", "D1:2", granularity="raw", speaker="Bo"),
        fact("Ann keeps bees.", "D1:1", speaker="Ann"),
        fact("A whole day.", "D1:1", "D1:2", granularity="episode"),
    ]


def test_each_way_looks_at_what_it_says(stored):
    baselines = Baselines(stored, embed)
    found = baselines.rankings("Who built the kite?")
    assert tuple(found) == RANKED
    raw, facts = {stored[0].id, stored[1].id}, {stored[2].id}
    assert {entry.id for entry in found["naive_rag"]} == raw
    assert {entry.id for entry in found["facts_only"]} == facts
    for name in ("bm25", "dense", "rrf", "weighted_sum"):
        assert {entry.id for entry in found[name]} == raw | facts
        assert found[name][0].id == stored[1].id
    assert baselines.turns == stored[:2]


def test_who_spoke_and_when_is_read_by_bm25(stored):
    assert Baselines(stored, embed).rankings("Bo")["bm25"][0].id == stored[1].id
    later = fact(
        "Nothing said.", "D2:1", granularity="raw", observed_at=stored[0].observed_at.replace(year=2031)
    )
    assert Baselines([*stored, later], embed).rankings("2031")["bm25"][0].id == later.id


def test_rrf_sums_reciprocal_ranks():
    # Alike in words, apart in direction, so that the fused order is that of the other list.
    one, other = (fact(text, f"D1:{n}", granularity="raw") for n, text in enumerate(["aa aa", "aa bb"], 1))
    found = Baselines([one, other], embed).rankings("aa")
    assert [entry.id for entry in found["rrf"]] == [one.id, other.id]


def test_ways_without_anything_to_look_at_are_left_out(stored):
    assert "facts_only" not in Baselines(stored[:2], embed).rankings("kite")
    assert set(Baselines(stored[2:3], embed).rankings("bees")) == set(RANKED) - {"naive_rag"}
