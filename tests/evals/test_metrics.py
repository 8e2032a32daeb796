"""Values worked by hand from the official scheme."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcycle.evals.metrics import (
    ADVERSARIAL,
    MULTI_HOP,
    OPEN_DOMAIN,
    abstains,
    all_found,
    bleu1,
    counted,
    recall,
    session_any,
    token_f1,
    within_tokens,
)


@pytest.mark.parametrize(
    ("prediction", "gold", "category", "score"),
    [
        # two dog cat | dog cat: 2 of 3 and 2 of 2
        ("The two dogs and a cat.", "dogs, cats", "single-hop", 0.8),
        ("7 May, 2023", "May 7 2023", "temporal", 1),
        ("running", "runs", None, 1),
        # blue blue kite | blue kite: a word counts as often as both have it
        ("blue blue kite", "blue kite", None, 0.8),
        # Punctuation goes without a space: selfcar | self care
        ("self-care", "self care", None, 0),
        ("it's Ann's", "its Anns", None, 1),
        ("", "kite", None, 0),
        ("kite", "the", None, 0),
        ("and the", "a", None, 0),
        # is, us and as are no plurals
        ("us", "u", None, 0),
        # camp painting swimming: 1 (camping), 0, 0
        ("pottery, camping", "camping, painting, swimming", MULTI_HOP, 1 / 3),
        # camping: best of 0 and 2*1/(2+1); pottery: 1
        ("pottery, camping trips", "camping, pottery", MULTI_HOP, (2 / 3 + 1) / 2),
        # potteri camp trip | camp potteri, taken whole
        ("pottery, camping trips", "camping, pottery", "single-hop", 0.8),
        ("pottery and camping", "camping", MULTI_HOP, 2 / 3),
        # The empty gold behind the last comma is never reached.
        ("camping", "camping,", MULTI_HOP, 0.5),
        ("yes", "Yes; she likes the sea", OPEN_DOMAIN, 1),
        # yes | yes she like sea
        ("yes", "Yes; she likes the sea", "single-hop", 2 / 5),
        ("That is Not Mentioned.", "", ADVERSARIAL, 1),
        ("There is no information available on it", "kite", ADVERSARIAL, 1),
        ("I do not know", "not mentioned", ADVERSARIAL, 0),
        ("not mentioned", "kite", "single-hop", 0),
    ],
)
def test_token_f1(prediction, gold, category, score):
    assert token_f1(prediction, gold, category) == pytest.approx(score)


def test_abstaining_is_known_by_the_official_words():
    assert abstains("Sorry, NOT MENTIONED here")
    assert not abstains("It was never mentioned")


@pytest.mark.parametrize(
    ("prediction", "gold", "score"),
    [
        ("The cat sat", "the cat sat on the mat", math.exp(1 - 6 / 3)),
        ("the the the", "the cat", 1 / 3),
        ("a red kite", "a red kite", 1),
        # a red kite . | a red kite
        ("A red kite.", "a red kite", 3 / 4),
        # do n't go | do not go
        ("don't go", "do not go", 2 / 3),
        # ann 's | ann
        ("Ann's", "Ann", 1 / 2),
        # at 3:30 , 10,000 self-care jars | 10,000 jars at 3:30
        ("at 3:30, 10,000 self-care jars", "10,000 jars at 3:30", 4 / 6),
        ("running", "runs", 0),
        ("", "kite", 0),
        ("kite", "", 0),
    ],
)
def test_bleu1(prediction, gold, score):
    assert bleu1(prediction, gold) == pytest.approx(score)


@given(st.text(), st.text(), st.sampled_from([None, MULTI_HOP, OPEN_DOMAIN, ADVERSARIAL]))
def test_scores_are_shares(prediction, gold, category):
    assert 0 <= token_f1(prediction, gold, category) <= 1
    assert 0 <= bleu1(prediction, gold) <= 1


def test_recall_is_the_share_of_gold_turns():
    assert recall(["D1:1", "D1:9", "D1:1"], ["D1:1", "D1:2"]) == 0.5
    assert recall([], ["D1:1"]) == 0
    assert not all_found(["D1:1"], ["D1:1", "D1:2"])
    assert all_found(["D1:2", "D1:3", "D1:1"], ["D1:1", "D1:2"])


def test_one_gold_session_is_enough_for_the_lenient_measure():
    assert session_any(["3", "7"], ["1", "7"])
    assert not session_any(["3"], ["1", "7"])
    assert not session_any([], ["1"])


@pytest.mark.parametrize("measure", [recall, all_found, session_any])
def test_without_gold_nothing_can_be_measured(measure):
    with pytest.raises(ValueError, match="at least one gold"):
        measure(["D1:1"], [])


@pytest.mark.parametrize(
    ("turns", "granularity", "counts"),
    [
        (("D1:1",), "raw", ("D1:1",)),
        (("D1:1",), "fact", ("D1:1",)),
        (("D1:1", "D1:1"), "fact", ("D1:1",)),
        (("D1:1", "D1:2"), "fact", ()),
        ((), "fact", ()),
        (("D1:1",), "episode", ()),
        (("D1:1", "D1:2"), "episode", ()),
    ],
)
def test_only_turns_and_facts_of_one_turn_count(turns, granularity, counts):
    assert counted(turns, granularity) == counts


def test_a_budget_takes_what_still_fits():
    items = [(40, ["D1:1"]), (70, ["D1:2"]), (50, ["D1:3", "D1:1"]), (10, []), (1, ["D1:4"])]
    assert within_tokens(items, 100) == ["D1:1", "D1:3"]
    assert within_tokens(items, 101) == ["D1:1", "D1:3", "D1:4"]
    assert within_tokens(items, 0) == []
