"""What becomes of a round, and where evolution goes next, as tables."""

from memcycle.evolution.theta.nodes import after_evaluate, after_guard, decision, has_dropped, is_best
from tests.evolution.made_evolution import task

BEST = {"round": 1, "theta": {}, "train": 0.6, "guard": 0.6, "memory": 0}


def state(**values):
    return {"round": 2, "guard": 0.6, "best": BEST, "flat": 0, "origin": "apply", "reread": False} | values


def test_decisions():
    for values, action, flat in [
        ({"best": None, "round": 0, "guard": 0.1}, "apply", 0),
        ({"guard": 0.7}, "apply", 0),
        ({"guard": 0.605}, "apply", 0),
        ({"guard": 0.6049}, "apply", 1),
        ({"guard": 0.59}, "apply", 1),
        ({"guard": 0.5899}, "revert", 1),
        ({"guard": 0.6, "flat": 1}, "explore", 0),
        ({"guard": 0.4, "flat": 1}, "explore", 0),
        ({"guard": 0.7, "flat": 1}, "apply", 0),
        ({"guard": 0.7, "origin": "explore"}, "apply", 0),
        ({"guard": 0.6, "origin": "explore"}, "stop", 1),
        ({"guard": 0.1, "origin": "explore"}, "stop", 1),
        ({"guard": 0.9, "round": 7}, "stop", 0),
    ]:
        found = decision(state(**values), task(), calls=0)
        assert (found.action, found.flat) == (action, flat), values
        assert found.why, values


def test_no_round_begins_that_would_likely_pass_the_calls():
    for calls, action in [(0, "apply"), (75, "apply"), (76, "stop")]:
        assert decision(state(guard=0.7), task(max_calls=100), calls).action == action, calls


def test_drops_and_bests():
    for guard, dropped, best in [
        (0.6, False, False),
        (0.61, False, True),
        (0.59, False, False),
        (0.58, True, False),
    ]:
        assert has_dropped(state(guard=guard), 0.01) is dropped, guard
        assert is_best(state(guard=guard)) is best, guard


def test_the_last_round_needs_no_diagnosis():
    assert after_evaluate(state(round=6), task()) == "failures"
    assert after_evaluate(state(round=7), task()) == "last round"


def test_after_the_guard():
    for values, way in [
        ({"action": "stop", "reread": True}, "stop"),
        ({"action": "apply", "reread": True}, "memory lacks"),
        ({"action": "explore", "reread": False}, "next round"),
    ]:
        assert after_guard(state(**values)) == way, values
