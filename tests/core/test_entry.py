from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memcycle.core.entry import decayed, reinforced
from memcycle.core.settings import Retention, Settings

NOW = datetime(2024, 5, 1, tzinfo=UTC)


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def test_decay():
    for importance, reinforcement, since, expected in [
        (0.5, 0.0, NOW, 0.5),
        (0.5, 0.0, ago(30), 0.45),
        (0.5, 0.0, ago(15), 0.475),
        (0.5, 0.0, ago(10_000), 0.15),
        (0.1, 0.0, ago(10_000), 0.1),
        (0.5, 0.3, ago(10_000), 0.45),
        (0.9, 0.3, None, 1.2),
        (0.5, 0.0, ago(-90), 0.5),
    ]:
        assert decayed(importance, reinforcement, since, NOW) == pytest.approx(expected), importance


@given(st.floats(0, 1), st.floats(0, 5000), st.floats(0, 5000))
def test_what_is_older_never_counts_for_more(importance, days, more):
    newer = decayed(importance, 0.0, ago(days), NOW)
    assert decayed(importance, 0.0, ago(days + more), NOW) <= newer <= importance
    assert newer >= min(importance, 0.15) - 1e-9


def test_reinforcement_ends_at_its_most():
    for start, mentions, expected in [(0.0, 1, 0.05), (0.1, 3, 0.25), (0.2, 9, 0.3)]:
        assert reinforced(start, mentions) == expected, start


@pytest.mark.parametrize("rule", [{}, {"kind": "episodic"}, {"max_age_days": 0}, {"max_entries": -1}])
def test_a_rule_must_limit_something(rule):
    with pytest.raises(ValidationError):
        Retention(**rule)


def test_no_limit_by_default():
    assert Settings().retention == ()
