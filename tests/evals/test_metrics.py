"""Values worked by hand from the official scheme."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcycle.evals import metrics
from memcycle.evals.metrics import (
    ADVERSARIAL,
    MULTI_HOP,
    OPEN_DOMAIN,
    abstains,
    bleu1,
    counted,
    counted_turns,
    fitting,
    recall,
    scores,
    token_f1,
    whole_context,
)
from memcycle.evals.records import Scores
from tests.banks import fact
from tests.evals.small_eval import plan, sample


def test_token_f1():
    for prediction, gold, category, score in [
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
    ]:
        assert token_f1(prediction, gold, category) == pytest.approx(score), prediction


def test_abstaining_is_known_by_the_official_words():
    assert abstains("Sorry, NOT MENTIONED here")
    assert not abstains("It was never mentioned")


def test_bleu1():
    for prediction, gold, score in [
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
    ]:
        assert bleu1(prediction, gold) == pytest.approx(score), prediction


@given(st.text(), st.text(), st.sampled_from([None, MULTI_HOP, OPEN_DOMAIN, ADVERSARIAL]))
def test_scores_are_shares(prediction, gold, category):
    assert 0 <= token_f1(prediction, gold, category) <= 1
    assert 0 <= bleu1(prediction, gold) <= 1


def test_only_turns_and_facts_of_one_turn_count():
    for turns, granularity, counts in [
        (("D1:1",), "raw", ("D1:1",)),
        (("D1:1", "D1:1"), "fact", ("D1:1",)),
        (("D1:1", "D1:2"), "fact", ()),
        ((), "fact", ()),
        (("D1:1",), "episode", ()),
    ]:
        assert counted(turns, granularity) == counts, turns


SESSIONS = {"D1:1": "1", "D1:2": "1", "D2:1": "2", "D3:1": "3"}


def raw(turn):
    return fact(f"said in {turn}", turn, granularity="raw")


@pytest.fixture(autouse=True)
def _twenty_tokens_each(monkeypatch):
    monkeypatch.setattr(metrics, "tokens_of", lambda _: 20)


def score(found, gold, **more):
    changes = {"k": 2, "token_budget": 50} | more
    return scores(found, gold, plan=plan(sample(), **changes), sessions=SESSIONS)


def test_raw_turns_and_facts_of_one_turn_count_and_nothing_coarser():
    episode = fact("a day", "D3:1", granularity="episode")
    found = [fact("both", "D1:1", "D1:2"), fact("one", "D2:1"), raw("D2:1"), episode, raw("D1:1")]
    assert counted_turns(found) == ["D2:1", "D1:1"]


def test_recall_is_of_distinct_turns_and_of_entries_as_they_are():
    found = [raw("D1:1"), fact("the same again", "D1:1"), raw("D2:1"), raw("D3:1")]
    done = score(found, ("D1:1", "D2:1"))
    assert done.recall == {"2": 1.0, "5": 1.0, "10": 1.0, "20": 1.0, "30": 1.0}
    assert done.as_entries["2"] == 0.5
    assert done.all_evidence["2"] == 1.0
    assert score(found, ("D1:1", "D2:1"), k=1).all_evidence["1"] == 0.0
    assert [score(found, ("D2:1", "D9:9"), k=1).any_gold[k] for k in ("1", "5")] == [0.0, 1.0]
    assert score(found, ("D2:1", "D9:9")).reciprocal_rank == 0.5
    assert score(found, ("D9:9",)).reciprocal_rank == 0.0


def test_budgets_take_what_fits():
    done = score([raw("D1:1"), raw("D1:2"), raw("D2:1")], ("D2:1",))
    assert done.recall_at_tokens["50"] == 0.0  # two entries of 20 tokens
    assert done.recall_at_tokens["250"] == 1.0
    assert (done.shown, done.tokens) == (0.0, 40)


def test_the_lenient_measure_is_a_hit_in_any_turn_of_the_session():
    done = score([raw("D1:2")], ("D1:1", "D2:1"))
    assert done.session_any == {"5": 1.0, "10": 1.0}
    assert done.recall["30"] == 0.0


def test_a_question_without_gold_turns_has_no_shares():
    assert score([raw("D1:1")], ()) == Scores(tokens=20)


def test_what_does_not_fit_is_passed_over(monkeypatch):
    short, long = raw("D1:1"), fact("x", "D2:1")
    monkeypatch.setattr(metrics, "tokens_of", lambda one: 10 if one is short else 100)
    assert fitting([long, short], 5, 50) == [short]
    assert fitting([short, short], 1, 50) == [short]


def test_everything_is_found_in_everything():
    turns = [raw(name) for name in SESSIONS]
    assert whole_context(turns, ("D1:1",)) == Scores(shown=1.0, tokens=80)
    assert whole_context(turns, ()).shown is None


def test_an_empty_list_found_nothing_of_what_there_was_to_find():
    for gold in [(), ("D1:1",)]:
        done = scores([], gold, plan=plan(sample()), sessions={})
        assert done.shown == (0.0 if gold else None), gold
        assert set(done.recall.values()) == ({0.0} if gold else set()), gold


def test_without_gold_nothing_can_be_measured():
    with pytest.raises(ValueError, match="at least one gold"):
        recall(["D1:1"], [])
