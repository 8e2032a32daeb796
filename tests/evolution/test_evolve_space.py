"""Starts, changes, exploration: the space that is searched."""

import pytest

from memcycle.agents.diagnoser import Change
from memcycle.core.errors import BadInput
from memcycle.core.theta import Theta
from memcycle.evolution.theta.space import (
    PERTURBED,
    STARTS,
    capped,
    drawn,
    fingerprint,
    perturbed,
    searched,
    start_theta,
    views,
    with_all,
    writing,
)


def test_starts_differ_from_each_other_and_carry_their_names():
    for name in STARTS:
        theta = start_theta(name)
        assert theta.version == name, name
        others = {fingerprint(start_theta(other)) for other in STARTS if other != name}
        assert fingerprint(theta) not in others, name


def test_the_weak_start_is_bm25_alone_in_a_small_context():
    theta = start_theta("weak")
    assert {name for name, weight in theta.weights.model_dump().items() if weight} == {"bm25"}
    assert (theta.k, theta.views.dense, theta.views.structured) == (5, 0, 0)


def test_a_start_from_a_file(tmp_path):
    Theta(k=17).save(tmp_path / "mine.json")
    assert start_theta(str(tmp_path / "mine.json")).k == 17


def test_an_unknown_start_names_those_there_are():
    with pytest.raises(BadInput, match="weak, dense-wide, wrong-weights, episodes"):
        start_theta("wek")


def test_the_fingerprint_is_of_all_but_the_name():
    assert fingerprint(Theta(version="a")) == fingerprint(Theta(version="b"))
    assert fingerprint(Theta(k=29)) != fingerprint(Theta(k=30))
    override = Theta(overrides={"temporal": {"k": 40}})
    assert fingerprint(override) != fingerprint(Theta())


def test_the_limit_of_tokens_becomes_part_of_the_configuration():
    theta = capped(Theta(overrides={"temporal": {"token_budget": 900}, "multi": {"k": 3}}), 500)
    assert theta.token_budget == 500
    assert theta.overrides == {"temporal": {"token_budget": 500}, "multi": {"k": 3}}
    assert capped(Theta(token_budget=300), 500).token_budget == 300


def test_searching_dimensions_leave_memory_as_it_is():
    for seed in range(20):
        assert writing(drawn(Theta(), str(seed))) == writing(Theta())
        assert writing(perturbed(Theta(), str(seed))) == writing(Theta())
    changed = Theta().with_changes({"extraction.coverage": 0.5})[0]
    assert writing(changed) != writing(Theta())


def test_a_perturbation_is_small_and_repeatable():
    moved = [perturbed(Theta(), str(seed)) for seed in range(20)]
    assert all(len(Theta().diff(one)) <= PERTURBED for one in moved)
    assert len({fingerprint(one) for one in moved}) > 15
    assert perturbed(Theta(), "7") == perturbed(Theta(), "7")


def test_what_is_drawn_comes_from_the_whole_space():
    ks = [drawn(Theta(), str(seed)).k for seed in range(40)]
    assert min(ks) < 10
    assert max(ks) > 80
    assert {drawn(Theta(), str(seed)).fusion for seed in range(40)} == set(searched()["fusion"].choices)


def test_the_first_change_of_a_path_counts():
    made = with_all(Theta(), [Change(path="k", value=40), Change(path="k", value=50)])
    assert Theta.model_validate(made["theta"]).k == 40
    assert [one["path"] for one in made["refused"]] == ["k"]


def test_overrides_by_category_are_changes_too():
    made = with_all(Theta(), [Change(path="overrides.temporal.weights.date", value=5)])
    assert Theta.model_validate(made["theta"]).get("overrides.temporal.weights.date") == 5
    assert made["applied"] == {"overrides.temporal.weights.date": 5}


def test_an_override_of_an_unknown_category_is_refused():
    made = with_all(Theta(), [Change(path="overrides.nonsense.k", value=5)])
    assert Theta.model_validate(made["theta"]) == Theta()
    assert made["refused"]


def test_every_dimension_that_is_shown_can_be_changed():
    for one in views(Theta()):
        assert not with_all(Theta(), [Change(path=one.path, value=one.value)])["refused"]
