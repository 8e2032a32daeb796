"""Scores of found entries, worked out by hand."""

import pytest

from memcycle.evals.records import Scores
from memcycle.evals.scoring import counted_turns, crashed, fitting, scores, whole_context
from tests.banks import fact
from tests.evals.small_eval import plan, sample

SESSIONS = {"D1:1": "1", "D1:2": "1", "D2:1": "2", "D3:1": "3"}


def raw(turn):
    return fact(f"said in {turn}", turn, granularity="raw")


def score(found, gold, **more):
    changes = {"k": 2, "token_budget": 50} | more
    return scores(found, gold, plan=plan(sample(), **changes), sessions=SESSIONS, tokens_of=lambda _: 20)


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


def test_what_is_shown_may_be_chosen_otherwise():
    chosen = []

    def choose(k, budget):
        chosen.append((k, budget))
        return [raw("D3:1")]

    done = scores(
        [raw("D1:1")],
        ("D3:1",),
        plan=plan(sample(), k=7, token_budget=300),
        sessions=SESSIONS,
        tokens_of=lambda _: 20,
        assembled=choose,
    )
    assert done.shown == 1.0
    assert done.recall["7"] == 0.0
    assert chosen[0] == (7, 300)
    assert {budget for _, budget in chosen} == {250, 300, 500, 1000, 2000, 4000}


def test_what_does_not_fit_is_passed_over():
    short, long = raw("D1:1"), fact("x", "D2:1")
    sizes = {short.id: 10, long.id: 100}
    assert fitting([long, short], 5, 50, lambda one: sizes[one.id]) == [short]
    assert fitting([short, short], 1, 50, lambda one: 10) == [short]


def test_everything_is_found_in_everything():
    turns = [raw(name) for name in SESSIONS]
    assert whole_context(turns, ("D1:1",), lambda _: 5) == Scores(shown=1.0, tokens=20)
    assert whole_context(turns, (), lambda _: 5).shown is None


@pytest.mark.parametrize("gold", [(), ("D1:1",)])
def test_a_crash_found_nothing_of_what_there_was_to_find(gold):
    done = crashed(gold, plan(sample()))
    assert done.shown == (0.0 if gold else None)
    assert set(done.recall.values()) == ({0.0} if gold else set())
