"""The reducers of graph states: sums that depend neither on order nor on grouping, and change no input."""

import copy
import random

from hypothesis import given
from hypothesis import strategies as st

from memcycle.core.probe import add_usage, count_usage
from memcycle.graph.states import collect

COUNT = st.integers(0, 10**9)
USAGE = st.dictionaries(
    st.sampled_from(["judge", "constructor", "answerer", "prober"]),
    st.fixed_dictionaries(
        {"calls": COUNT, "input_tokens": COUNT, "output_tokens": COUNT},
        optional={"cached": st.integers(1, 10**9)},
    ),
)
WORDS = st.lists(st.text(max_size=5), max_size=4)


@given(st.lists(USAGE, max_size=5), st.randoms(use_true_random=False))
def test_usage_sums_whatever_the_order(parts, chance: random.Random):
    before = copy.deepcopy(parts)
    total = None
    for part in parts:
        total = add_usage(total, part)
    shuffled = list(parts)
    chance.shuffle(shuffled)
    other = None
    for part in shuffled:
        other = add_usage(other, part)
    assert total == other
    assert parts == before
    for role in total or {}:
        assert total[role]["calls"] == sum(part[role]["calls"] for part in parts if role in part)


@given(USAGE, USAGE, USAGE)
def test_usage_sums_whatever_the_grouping(one, two, three):
    assert add_usage(add_usage(one, two), three) == add_usage(one, add_usage(two, three))
    assert add_usage(None, one) == add_usage(one, None) == add_usage(one, {}) == one


@given(USAGE, USAGE)
def test_none_starts_a_count_anew(one, two):
    assert count_usage(one, None) == {}
    assert count_usage(count_usage(one, None), two) == two
    assert count_usage(one, two) == add_usage(one, two)
    assert count_usage(None, one) == one


@given(WORDS, WORDS, WORDS)
def test_lists_keep_everything_in_order(one, two, three):
    held = list(one)
    assert collect(collect(one, two), three) == collect(one, collect(two, three)) == [*one, *two, *three]
    assert collect(one, None) == []
    assert collect(None, one) == held == one
