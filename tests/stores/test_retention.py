"""What is past a limit, least important first."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memcycle.core.scope import Scope
from memcycle.core.settings import Retention
from memcycle.stores.ledger.weights import Weighed
from memcycle.stores.maintenance import due

NOW = datetime(2024, 5, 1, tzinfo=UTC)
ANN = Scope(user="ann")


def held(name, importance=0.5, days=0.0, *, granularity="fact", kind="episodic", reinforcement=0.0):
    return Weighed(name, granularity, kind, importance, reinforcement, NOW - timedelta(days=days))


def ids(entries, *rules, scope=ANN, exempt=()):
    return list(due(entries, rules, scope, NOW, exempt=exempt))


def test_by_age_since_last_said():
    entries = [
        held("old", 0.9, 31),
        held("older", 0.2, 40),
        held("new", 0.1, 30),
        held("x")._replace(heard=None),
    ]
    assert ids(entries, Retention(max_age_days=30)) == ["older", "old"]


def test_by_number_the_least_important_as_of_now():
    entries = [held("fading", 0.6, 300), held("fresh", 0.5), held("named", 0.2, reinforcement=0.3)]
    assert ids(entries, Retention(max_entries=2)) == ["fading"]
    assert ids(entries, Retention(max_entries=0)) == ["fading", "fresh", "named"]
    assert ids(entries, Retention(max_entries=3)) == []


def test_of_equals_the_one_heard_of_longest_ago():
    entries = [held("b", 0.1, 2), held("a", 0.1, 1), held("c", 0.1, 1)]
    assert ids(entries, Retention(max_entries=0)) == ["b", "a", "c"]


def test_a_rule_is_for_what_it_names():
    entries = [held("raw", granularity="raw"), held("fact"), held("plan", kind="procedural")]
    assert ids(entries, Retention(granularity="raw", max_entries=0)) == ["raw"]
    assert ids(entries, Retention(kind="procedural", max_entries=0)) == ["plan"]
    assert ids(entries, Retention(kind="procedural", granularity="raw", max_entries=0)) == []
    for rule in (Retention(user="ben", max_entries=0), Retention(workspace="w", max_entries=0)):
        assert ids(entries, rule) == []
        scope = Scope(user=rule.user or "ann", workspace=rule.workspace or "default")
        assert len(ids(entries, rule, scope=scope)) == 3


def test_a_later_rule_counts_what_is_left():
    entries = [held("a", 0.3, 50), held("b", 0.4), held("c", 0.5)]
    rules = Retention(max_age_days=30), Retention(max_entries=2)
    assert ids(entries, *rules) == ["a"]
    assert ids(entries, Retention(max_age_days=30, max_entries=1)) == ["a", "b"]
    assert list(due(entries, rules, ANN, NOW).values()) == ["last said over 30 days ago"]


def test_what_was_brought_back_stays_and_pushes_nothing_out():
    entries = [held("a", 0.1, 50), held("b", 0.4), held("c", 0.5)]
    assert ids(entries, Retention(max_entries=2), exempt={"a"}) == []
    assert ids(entries, Retention(max_entries=1), exempt={"a"}) == ["b"]
    assert ids(entries, Retention(max_age_days=30), exempt={"a"}) == []


HELD = st.builds(
    held,
    st.uuids().map(str),
    st.floats(0, 1),
    st.floats(0, 1000),
    granularity=st.sampled_from(["raw", "fact"]),
)
RULE = st.builds(Retention, max_entries=st.integers(0, 8), granularity=st.sampled_from([None, "raw", "fact"]))


@given(st.lists(HELD, max_size=12), st.lists(RULE, max_size=3))
def test_afterwards_nothing_is_past_a_limit(entries, rules):
    found = ids(entries, *rules)
    left = [one for one in entries if one.id not in found]
    assert len(set(found)) == len(found)
    for rule in rules:
        covered = [one for one in left if rule.granularity in (None, one.granularity)]
        assert len(covered) <= rule.max_entries
    assert ids(left, *rules) == []
