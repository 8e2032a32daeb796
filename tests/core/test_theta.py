import json

import pytest
from pydantic import ValidationError

from memcycle.core.theta import Theta, Weights
from memcycle.stores.search.ranker import NAMES
from memcycle.stores.search.signals import SIGNALS


def test_there_is_a_weight_for_each_signal_and_each_is_described():
    assert set(Weights.model_fields) == set(NAMES)
    assert all(field.description for field in Weights.model_fields.values())
    assert all(signal.says.__doc__ for signal in SIGNALS.values())


def test_only_leaves_out_all_others():
    assert {name: value for name, value in Weights.only(bm25=2).model_dump().items() if value} == {
        "bm25": 2.0
    }
    with pytest.raises(ValidationError):
        Weights.only(nothing=1)


@pytest.mark.parametrize("theta", [{"weights": {"bm25": -1}}, {"fusion": "max"}, {"half_life_days": 0}])
def test_what_is_out_of_range_is_refused(theta):
    with pytest.raises(ValidationError):
        Theta.model_validate(theta)


def test_a_weight_that_is_gone_is_left_out(tmp_path):
    old = {"weights": {"bm25": 2, "maxsim": 3}, "overrides": {"temporal": {"weights.maxsim": 1, "k": 40}}}
    wanted = Theta(weights=Weights(bm25=2), overrides={"temporal": {"k": 40}})
    assert Theta.model_validate(old) == wanted
    (tmp_path / "theta.json").write_text(json.dumps(old))
    assert Theta.load(tmp_path / "theta.json") == wanted


def test_theta_survives_json():
    theta = Theta(weights=Weights.only(dense=1), fusion="rrf")
    assert Theta.model_validate_json(theta.model_dump_json()) == theta
