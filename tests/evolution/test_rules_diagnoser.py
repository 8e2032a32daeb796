"""The Diagnoser by rules: what it asks for follows from what the failures show, and from nothing else."""

import pytest

from memcycle.agents.diagnoser import (
    AttemptView,
    DiagnoserInput,
    FailureView,
    HeldView,
    MissedView,
    ShownView,
)
from memcycle.agents.rules.diagnoser import diagnoser
from memcycle.core.theta import Theta, Weights
from memcycle.evolution.theta.space import views, with_all

WEAK = Theta().with_changes(
    {
        "weights": Weights.only(bm25=1).model_dump(),
        "views": {"dense": 0, "structured": 0},
        "k": 5,
        "token_budget": 400,
    }
)[0]


def failures(pattern, count=6, *, shown=None, wanted=1, answer=None, gold=None, **missed):
    own = [MissedView(**({"rank": 9, "cut": "tokens"} | missed))] if missed else []
    seen = shown or ShownView(entries={"raw": 20}, tokens={"raw": 490}, k=30, token_budget=500)
    return [
        FailureView(
            n=n,
            pattern=pattern,
            question="?",
            wanted=wanted,
            missed=own,
            shown=seen,
            answer=answer,
            gold=gold,
        )
        for n in range(1, count + 1)
    ]


def asked(theta, own, **more):
    """What is asked for, by path."""
    value = DiagnoserInput(
        objective="recall", score=0.5, token_budget=500, dimensions=views(theta), failures=own, **more
    )
    output = diagnoser(value)
    assert all(change.reason and change.pattern for change in output.changes)
    assert not with_all(theta, output.changes)["refused"]
    return {change.path: change for change in output.changes}, output


def test_places_that_end_before_what_is_wanted_are_more_until_tokens_are_used():
    shown = ShownView(entries={"raw": 5}, tokens={"raw": 125}, k=5, token_budget=400)
    found, _ = asked(WEAK, failures("too little context", shown=shown, cut="entries", rank=12))
    assert found["k"].value == 30
    assert found["token_budget"].value == 500
    assert found["k"].pattern == "too little context"


def test_tokens_that_end_before_what_a_shorter_fact_tells():
    found, _ = asked(Theta(), failures("too little context", facts=2))
    assert found["turns_first"].value == 0.1
    found, _ = asked(Theta(), failures("too little context", facts=0))
    assert "turns_first" not in found


def test_a_budget_that_episodes_drown():
    share = {"raw": 0.1, "fact": 0.05, "episode": 0.85}
    theta = Theta().with_changes({"routing": {"raw": share, "fact": share, "episode": share}})[0]
    shown = ShownView(entries={"episode": 3}, tokens={"episode": 450, "raw": 30}, k=30, token_budget=500)
    found, _ = asked(theta, failures("drowned", shown=shown, rank=4))
    for operator in ("raw", "fact", "episode"):
        changed = [found[f"routing.{operator}.{name}"].value for name in ("raw", "fact", "episode")]
        assert changed[2] == 0.05
        assert sum(changed) == pytest.approx(1, abs=0.01)
    assert "episodes take 94%" in found["routing.fact.episode"].reason


def test_a_view_without_weight_that_finds_what_is_missed():
    theta = Theta().with_changes({"weights": Weights.only(dense=2).model_dump(), "views.lexical": 0})[0]
    found, _ = asked(theta, failures("view blind", views={"bm25": 2, "window": 40, "dense": 80}))
    assert found["weights.bm25"].value == 2
    assert found["views.lexical"].value == 200
    assert "weights.window" not in found


def test_signals_that_tell_missed_turns_from_others_weigh_more():
    found, _ = asked(Theta(), failures("wrong entity", edges={"speaker": 0.5, "idf_mass": 0.01}))
    assert found["weights.speaker"].value > Theta().weights.speaker
    assert found["weights.speaker"].pattern == "wrong entity"
    assert "weights.idf_mass" not in found


def test_times_that_tell_missed_turns_from_others_weigh_more():
    found, _ = asked(Theta(), failures("wrong time", edges={"date": 0.8}))
    assert found["weights.date"].value > Theta().weights.date
    assert found["weights.date"].pattern == "wrong time"


@pytest.mark.parametrize(("rests", "lowered"), [(0.3, False), (-0.1, True)])
def test_a_weight_shrinks_only_where_what_was_shown_does_not_rest_on_it(rests, lowered):
    held = [HeldView(signal="bm25", edge=rests, count=9)]
    found, _ = asked(Theta(), failures("outranked", edges={"bm25": -0.4}), held=held)
    assert ("weights.bm25" in found) is lowered
    if lowered:
        assert 0.5 <= found["weights.bm25"].value < 1


def test_fusion_that_reads_no_weights_gives_way():
    theta = Theta(fusion="rrf")
    found, _ = asked(theta, failures("outranked", edges={"session": 0.4}))
    assert found["fusion"].value == "linear"


def test_what_others_said_is_searched_for_without_the_name():
    found, _ = asked(Theta(), failures("wrong entity", edges={"speaker": -0.9}))
    assert found["swap.on"].value is True
    assert "swap.on" not in asked(Theta(), failures("wrong entity", edges={"speaker": 0.9}))[0]


def test_what_nothing_finds_opens_the_views_and_names_missing_coverage():
    own = failures("nothing retrieved", cut="not found", rank=None, facts=0, wanted=2)
    told = failures("outranked", count=1, facts=3)
    found, output = asked(WEAK, own + told)
    assert {"views.dense", "views.structured", "decomposition.on"} <= found.keys()
    assert output.missing_coverage
    assert not asked(WEAK, own)[1].missing_coverage, "where no fact is read at all, none is missing"


def test_abstaining_although_the_evidence_was_there():
    found, _ = asked(Theta(), failures("abstained wrongly", answer="I do not know", gold="a kite"))
    assert found["reflection.rounds"].value == 1
    assert found["verification"].value == "multi_candidate"


def test_answers_of_another_form_than_gold():
    for answer, style in [("He said it was a kite, I think", "concise"), ("Kites", "strict")]:
        found, _ = asked(Theta(), failures("answer format", answer=answer, gold="a kite"))
        assert found["answer_style"].value == style, answer


def test_blanked_failures_ask_for_nothing():
    blank = [one.model_copy(update={"shown": ShownView(), "missed": []}) for one in failures("unexplained")]
    found, output = asked(WEAK, blank)
    assert not found
    assert not output.missing_coverage


def test_no_failures_ask_for_nothing():
    assert not asked(Theta(), [])[0]


def test_what_was_taken_back_is_not_asked_again_and_the_next_step_is_half():
    own = failures("wrong entity", edges={"speaker": 0.5})
    first = asked(Theta(), own)[0]["weights.speaker"].value
    tried = [AttemptView(round=1, changes={"weights.speaker": first}, outcome="taken back")]
    second = asked(Theta(), own, tried=tried)[0]["weights.speaker"].value
    begun = Theta().weights.speaker
    assert second - begun == pytest.approx((first - begun) / 2, abs=0.01)


def test_a_change_that_stays_the_same_is_none():
    shown = ShownView(entries={"episode": 3}, tokens={"episode": 450}, k=30, token_budget=500)
    share = {"raw": 0.55, "fact": 0.4, "episode": 0.05}
    theta = Theta().with_changes({"routing": {"raw": share, "fact": share, "episode": share}})[0]
    assert not asked(theta, failures("drowned", shown=shown, rank=4))[0]
