"""Splits never share a question, and the objective mixes what is measured."""

import pytest

from memcycle.core.errors import BadInput
from memcycle.evals.dataset import Question
from memcycle.evolution.splits import drawn, split_up
from memcycle.evolution.task import read_mix
from tests.evolution.made_evolution import SAMPLES, task
from tests.evolution.test_evolve_patterns import record

LIST = list(SAMPLES.values())


def splits(train="1", guard="2", held_out="3", *, samples=LIST, answers=False, limits=None, seed=0):
    specs = {"train": train, "guard": guard, "held_out": held_out}
    return split_up(samples, specs, answers=answers, limits=limits or {}, seed=seed)


def keys(asked):
    return {(name, question.id) for name, question in asked}


def test_by_conversation():
    found = splits("1", "two", "3-")
    assert [{name for name, _ in own} for own in found.values()] == [{"one"}, {"two"}, {"three"}]
    assert all(len(own) == 6 for own in found.values())


@pytest.mark.parametrize("specs", [("1-2", "2", "3"), ("1", "2", "one"), ("1", "2-3", "3")])
def test_splits_that_overlap_are_refused_by_name(specs):
    with pytest.raises(BadInput, match=r"--\S+ and --\S+ both hold (one|two|three)"):
        splits(*specs)


@pytest.mark.parametrize(
    ("specs", "says"),
    [
        (("9", "2", "3"), "--train: no conversation '9'"),
        (("1", "2", "nobody"), "--held-out: no conversation 'nobody'"),
        (("50%", "2", "3"), "all by shares"),
        (("50%", "40%", "20%"), "overlap: their shares sum to 110 %"),
        (("0%", "40%", "20%"), "--train '0%' is no share"),
        (("1%", "40%", "20%"), "--train 1% holds no question"),
    ],
)
def test_what_cannot_be_split(specs, says):
    with pytest.raises(BadInput, match=says):
        splits(*specs)


def test_a_split_without_gold_turns_is_empty():
    bare = SAMPLES["one"].__class__(
        "bare", SAMPLES["one"].conversation, (Question("q", "What?", "it", (), None),)
    )
    with pytest.raises(BadInput, match="--train 1 holds no question that can be scored"):
        splits("1", "2", "3", samples=[bare, *LIST[1:]])
    assert splits("1", "2", "3", samples=[bare, *LIST[1:]], answers=True)["train"]


def test_by_share_of_questions():
    found = splits("50%", "25%", "25%")
    sizes = [len(own) for own in found.values()]
    assert sum(sizes) == 18
    assert sizes[0] == 9
    every = [key for own in found.values() for key in keys(own)]
    assert len(set(every)) == 18, "no question is in two"
    assert splits("50%", "25%", "25%") == found
    assert splits("50%", "25%", "25%", seed=1) != found


def test_a_sample_is_even_over_categories_and_repeatable():
    asked = [
        ("c", Question(f"q{n}", "?", "a", ("D1:1",), "rare" if n % 10 == 0 else "common")) for n in range(40)
    ]
    found = drawn(asked, 8, "seed")
    assert [question.category for _, question in found].count("rare") == 4
    assert found == drawn(asked, 8, "seed") != drawn(asked, 8, "other")
    assert drawn(asked, 40, "seed") == asked


def test_limits_of_a_split():
    found = splits(limits={"train": 4, "guard": None})
    assert [len(own) for own in found.values()] == [4, 6, 6]


def test_objectives():
    for text, mix in [
        ("recall", {"recall": 1.0}),
        ("recall=0.7,f1=0.3", {"recall": 0.7, "f1": 0.3}),
        ("recall=2, judge=2", {"recall": 0.5, "judge": 0.5}),
    ]:
        assert read_mix(text) == pytest.approx(mix), text


@pytest.mark.parametrize(
    "text", ["", "recal", "recall,recall", "recall=x", "f1=-1", "f1=0", "f1=nan", "f1=inf"]
)
def test_objectives_that_cannot_be_read(text):
    with pytest.raises(BadInput, match="--objective"):
        read_mix(text)


def test_scores_mix_what_is_there_and_can_weigh_categories_evenly():
    seen = [
        record(recall=1.0, f1=0.5),
        record(recall=0.0, f1=0.5),
        record(recall=0.0, f1=None, category="temporal"),
        record(recall=None, f1=None),
    ]
    plain = task(objective=read_mix("recall=0.5,f1=0.5"))
    even = plain.model_copy(update={"balanced": True})
    assert plain.score(seen) == pytest.approx((0.75 + 0.25 + 0) / 3, abs=1e-6)
    assert even.score(seen) == pytest.approx((0.5 + 0) / 2)
    assert plain.score([]) == 0
    assert "each category counting the same" in even.aim


def test_what_is_worth_a_diagnosis():
    for values, mix, failed in [
        ({"recall": 0.5}, "recall", True),
        ({"recall": 1.0}, "recall", False),
        ({"recall": 0.5, "f1": 0.9}, "f1", False),
        ({"recall": 1.0, "f1": 0.4}, "recall=0.5,f1=0.5", True),
        ({"recall": 1.0, "verdict": "WRONG"}, "judge", True),
        ({"recall": 1.0, "verdict": "WRONG"}, "recall", False),
    ]:
        assert task(objective=read_mix(mix)).has_failed(record(**values)) is failed, values
