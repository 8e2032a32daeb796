"""Theta as a space: its dimensions, changes that stay in range, differences, files."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from memcycle.core.errors import BadInput
from memcycle.core.theta import Theta, Weights
from memcycle.core.theta_space import CATEGORIES, Clamped, is_same
from memcycle.stores.search.ranker import NAMES
from memcycle.stores.search.signals import SIGNALS

SPACE = Theta.dimensions()
NUMBERS = {path: one for path, one in SPACE.items() if one.type in ("int", "float")}
CHOSEN = {path: one for path, one in SPACE.items() if one.type in ("bool", "choice")}
WILD = st.integers(-(10**400), 10**400) | st.floats(allow_nan=False)


def asked() -> st.SearchStrategy[dict]:
    numbers = st.dictionaries(st.sampled_from(sorted(NUMBERS)), WILD, max_size=6)
    chosen = st.fixed_dictionaries(
        {},
        optional={
            path: st.sampled_from(one.choices if one.choices else (True, False))
            for path, one in CHOSEN.items()
        },
    )
    overrides = st.dictionaries(
        st.builds(
            "overrides.{}.{}".format, st.sampled_from(CATEGORIES), st.sampled_from(["k", "weights.bm25"])
        ),
        WILD,
        max_size=3,
    )
    return st.builds(
        lambda *parts: {k: v for part in parts for k, v in part.items()}, numbers, chosen, overrides
    )


def dimension(path):
    return SPACE[path.split(".", 2)[2] if path.startswith("overrides.") else path]


def leaves(model: BaseModel, prefix: str = "") -> set[str]:
    found: set[str] = set()
    for name in type(model).model_fields:
        value = getattr(model, name)
        found |= leaves(value, f"{prefix}{name}.") if isinstance(value, BaseModel) else {prefix + name}
    return found


def test_every_value_is_a_dimension_with_a_range_and_a_description():
    assert set(SPACE) == leaves(Theta()) - {"version", "overrides"}
    assert {path for path in SPACE if path.startswith("weights.")} == {
        f"weights.{name}" for name in Weights.model_fields
    }
    for path, one in SPACE.items():
        assert one.description, path
        assert one.default == Theta().get(path)
        if one.type in ("int", "float"):
            assert one.low is not None
            assert one.high is not None
            assert one.low <= one.default <= one.high
        if one.type == "choice":
            assert one.default in one.choices


@given(asked())
def test_changes_stay_in_range_and_say_what_they_clamped(changes):
    theta, clamped = Theta().with_changes(changes)
    assert Theta.model_validate(theta.model_dump()) == theta
    told = {one.path: one for one in clamped}
    for path, value in changes.items():
        given_value, own = theta.get(path), dimension(path)
        if own.type in ("int", "float"):
            assert own.low <= given_value <= own.high
            assert isinstance(given_value, int if own.type == "int" else float)
            inside = own.low <= value <= own.high and (own.type == "float" or value == int(value))
            assert (path in told) is not inside
        if path in told:
            assert told[path] == Clamped(path, value, given_value)
        else:
            assert is_same(given_value, value)


@given(asked())
def test_a_difference_is_what_was_changed_and_changes_back(changes):
    theta, _ = Theta().with_changes(changes)
    found = {path: (mine, other) for path, mine, other in theta.diff(Theta())}
    assert set(found) <= set(changes)
    assert {path: theirs for path, (_, theirs) in found.items()} == {
        path: mine for path, mine, _ in Theta().diff(theta)
    }
    back, clamped = theta.with_changes({path: other for path, (_, other) in found.items()})
    assert (back, clamped) == (Theta(), [])


@given(changes=asked())
def test_a_file_gives_back_what_was_saved(tmp_path_factory, changes):
    theta, _ = Theta().with_changes(changes)
    path = tmp_path_factory.mktemp("theta") / "one.json"
    theta.save(path)
    assert Theta.load(path) == theta
    assert Theta().with_changes(json.loads(path.read_text()))[0] == theta


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"overrides": 5}, ["overrides: expected an object with a category"]),
        ({"kk": 1, "weights.bm26": 2}, ["kk is unknown; did you mean k?", "did you mean weights.bm25?"]),
        ({"k": "5"}, ["k: expected a number, got '5'"]),
        ({"k": True}, ["k: expected a number"]),
        ({"k": None}, ["k: expected a number"]),
        ({"density": math.nan}, ["density: expected a number"]),
        ({"swap.on": 1}, ["swap.on: expected true or false"]),
        ({"fusion": "max"}, ["fusion: expected one of linear, weighted_sum, sum, rrf"]),
        ({"weights": 3}, ["weights is unknown"]),
        ({"reference_date": "2024-05-08"}, ["reference_date: expected a time with its zone"]),
        ({"overrides.sometimes.k": 3}, ["no category 'sometimes'"]),
        ({"overrides.temporal.extraction.window": 3}, ["extraction.window is unknown"]),
        ({"overrides.temporal.k": "x", "h": []}, ["overrides.temporal.k: expected a number", "h: expected"]),
    ],
)
def test_what_is_no_change_is_refused_by_name_all_of_it(changes, named):
    with pytest.raises(BadInput) as error:
        Theta().with_changes(changes)
    assert all(words in str(error.value) for words in named)


def test_an_unknown_dimension_has_no_value():
    with pytest.raises(BadInput, match=r"did you mean weights\.bm25"):
        Theta().get("weights.bm")
    assert Theta().get("overrides.temporal.k") is None


def test_overrides_are_another_theta_for_their_questions():
    theta, _ = Theta().with_changes({"overrides.temporal.k": 7, "overrides": {}})
    assert theta.for_category("temporal").k == 7
    assert theta.for_category("single") is theta
    assert theta.with_changes({"overrides.temporal.k": None})[0] == Theta()
    assert theta.with_changes({"overrides": {"multi": {"swap": {"on": True}}}})[0].overrides == {
        "multi": {"swap.on": True}
    }


def test_a_file_is_refused_by_name_with_every_complaint(tmp_path):
    path = tmp_path / "theta.json"
    path.write_text('{"k": 300, "wieghts": {"bm25": 1}, "overrides": {"temporal": {"h": 1.5}}}')
    with pytest.raises(BadInput) as error:
        Theta.load(path)
    assert str(path) in str(error.value)
    faults = Theta.faults(path)
    assert faults == [
        "k: expected a whole number from 1 to 200, got 300",
        "wieghts.bm25 is unknown; did you mean weights.bm25?",
        "overrides.temporal.h: expected a whole number from 0 to 10, got 1.5",
    ]
    assert all(fault in str(error.value) for fault in faults)


@pytest.mark.parametrize("text", ["[]", "{", "3"])
def test_a_file_that_is_no_object_is_refused(tmp_path, text):
    path = tmp_path / "theta.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"theta\.json"):
        Theta.load(path)


def test_a_file_may_say_little_and_may_use_paths(tmp_path):
    path = tmp_path / "theta.json"
    path.write_text('{"weights.bm25": 2, "swap": {"on": true}, "overrides.multi.k": 50}')
    expected, _ = Theta().with_changes({"weights.bm25": 2, "swap.on": True, "overrides.multi.k": 50})
    assert Theta.load(path) == expected


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(BadInput, match="cannot be written"):
        Theta().save(tmp_path / "nowhere" / "theta.json")
    assert list(tmp_path.iterdir()) == []


def test_there_is_a_weight_for_each_signal_and_each_is_described():
    assert set(Weights.model_fields) == set(NAMES)
    assert all(field.description for field in Weights.model_fields.values())
    assert all(says.__doc__ for says in SIGNALS.values())


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
