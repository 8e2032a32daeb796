from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memcycle.core.theta import Fusion, Theta, Views, Weights
from memcycle.stores.search.ranker import EVIDENCE, LEXICAL, NAMES, Measured, best, narrowed, rank, reasons

MODES = get_args(Fusion)
SHARE = st.floats(0, 1)


def measured(applies=None, **values):
    """Signals not named are zero everywhere; evidence applies unless `applies` says otherwise."""
    size = len(next(iter(values.values())))
    table = np.array([values.get(name, [0.0] * size) for name in NAMES], dtype=float)
    given_ = applies or {}
    return Measured(table, np.array([given_.get(name, 1.0) * EVIDENCE[at] for at, name in enumerate(NAMES)]))


def tables(least=1, most=8):
    rows = st.lists(SHARE, min_size=len(NAMES), max_size=len(NAMES))
    return st.lists(rows, min_size=least, max_size=most).map(lambda table: np.array(table).T)


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=30)
@given(values=tables(), applies=st.lists(SHARE, min_size=len(NAMES), max_size=len(NAMES)))
def test_scores_lie_between_zero_and_one_and_only_evidence_finds(mode, values, applies):
    scores = rank(Measured(values, np.array(applies) * EVIDENCE), Weights(), mode)
    assert ((scores >= 0) & (scores <= 1)).all()
    values[EVIDENCE] = 0.0
    assert not rank(Measured(values, EVIDENCE.astype(float)), Weights(), mode).any()


@pytest.mark.parametrize("mode", ["linear", "weighted_sum", "sum"])
@settings(max_examples=30)
@given(values=tables(least=2), at=st.integers(0, len(NAMES) - 1), more=SHARE)
def test_more_of_a_signal_never_ranks_an_entry_lower(mode, values, at, more):
    raised = values.copy()
    raised[at, 0] = min(1.0, raised[at, 0] + more)
    applies = EVIDENCE.astype(float)
    before = rank(Measured(values, applies), Weights(), mode)
    after = rank(Measured(raised, applies), Weights(), mode)
    beaten = before[0] >= before[1:] + 1e-9
    assert (after[0] >= after[1:][beaten] - 1e-9).all()


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=30)
@given(values=tables(least=2))
def test_the_order_of_the_candidates_changes_no_score(mode, values):
    applies = EVIDENCE.astype(float)
    turned = rank(Measured(values[:, ::-1].copy(), applies), Weights(), mode)
    assert rank(Measured(values, applies), Weights(), mode) == pytest.approx(turned[::-1])


def test_cosines_are_their_own_scores_where_nothing_else_speaks():
    for mode in ["linear", "weighted_sum", "sum"]:
        dense = [0.99, 0.7, 0.2]
        scores = rank(measured(dense=dense), Weights.only(dense=1), mode)
        assert scores == pytest.approx(dense), mode


def test_the_best_of_a_bad_lot_scores_low_and_what_falls_far_behind_still_counts():
    scores = rank(measured(dense=[0.1, 0.1], speaker=[1, 0]), Weights.only(dense=1, speaker=5), "linear")
    assert scores[0] == pytest.approx(0.1)
    assert 0 < scores[1] < 0.001


def test_words_that_nothing_holds_do_not_lower_a_score():
    known = measured(bm25=[0.0, 0.5], dense=[0.8, 0.0])
    unknown = measured({"bm25": 0.0}, bm25=[0.0, 0.0], dense=[0.8, 0.0])
    weights = Weights.only(bm25=1, dense=1)
    assert rank(known, weights, "linear")[0] == pytest.approx(0.4)
    assert rank(unknown, weights, "linear")[0] == pytest.approx(0.8)


def test_linear_takes_evidence_relative_to_the_best_and_the_rest_as_it_is():
    values = measured(bm25=[0.1, 0.05], dense=[0.4, 0.8], statement=[1, 0])
    relative = values.relative()
    assert relative[NAMES.index("bm25")].tolist() == [1.0, 0.5]
    assert relative[NAMES.index("statement")].tolist() == [1.0, 0.0]
    weights = Weights.only(bm25=1, dense=1)
    assert rank(values, weights, "linear").argmax() == 0  # 1 + 0.5 against 0.5 + 1: the first of equals
    assert rank(values, weights, "weighted_sum").argmax() == 1


def test_reciprocal_ranks_prefer_what_several_signals_find():
    values = measured(bm25=[0.9, 0.8, 0.0], dense=[0.0, 0.8, 0.9])
    assert rank(values, Weights.only(bm25=1, dense=1), "rrf").argmax() == 1


def test_a_signal_without_weight_takes_no_part():
    values = measured(bm25=[0.9, 0.1], dense=[0.1, 0.9])
    for mode in MODES:
        assert rank(values, Weights.only(bm25=1), mode).argmax() == 0
        assert not rank(values, Weights.only(), mode).any()


def test_nothing_to_rank():
    assert rank(measured(bm25=[]), Weights(), "linear").shape == (0,)
    assert best(np.array([]), np.array([], dtype=int), 3) == []


def test_best_first_and_ties_by_place():
    assert best(np.array([0.2, 0.9, 0.9, 0.5]), np.array([3, 2, 1, 0]), 3) == [2, 1, 3]


def test_reasons_name_the_signals_that_found_it_with_rank_and_score():
    views = measured(bm25=[0.0, 0.7, 0.3], dense=[0.9, 0.1, 0.9], statement=[1, 1, 1])
    first, second = reasons(views, [0, 2], depth=10)
    assert [(why.view, why.rank, why.score) for why in first] == [("dense", 1, 0.9)]
    assert [(why.view, why.rank, why.score) for why in second] == [("bm25", 2, 0.3), ("dense", 1, 0.9)]


def test_a_signal_has_not_found_what_it_ranks_beyond_its_depth():
    [whys] = reasons(measured(dense=[0.9, 0.8, 0.1], bm25=[0.1, 0.2, 0.3]), [2], depth=1)
    assert [why.view for why in whys] == ["bm25"]


# How deep each view reaches: evidence beyond its first entries says nothing


SIZE = 5
ORDER = np.arange(SIZE)


def row(found, name):
    return found.values[NAMES.index(name)].tolist()


def test_as_shipped_nothing_is_narrowed():
    table = measured(bm25=[0.1, 0.2, 0.3, 0.4, 0.5])
    assert narrowed(table, Weights(), Theta().views, ORDER) is table


def test_a_view_speaks_for_its_first_entries_in_the_order_of_its_own_signals():
    table = measured(
        bm25=[0.5, 0.4, 0.3, 0.2, 0.0],
        window=[0.1, 0.1, 0.9, 0.9, 0.9],
        dense=[0.2, 0.9, 0.1, 0.3, 0.4],
        speaker=[1, 1, 0, 1, 0],
        idf_mass=[0.5, 0.5, 0.5, 0.5, 0.5],
    )
    found = narrowed(
        table,
        Weights.only(bm25=1, dense=1, speaker=1),
        Views(lexical=2, dense=1, structured=2),
        ORDER,
    )
    assert row(found, "bm25") == [0.5, 0.4, 0, 0, 0]
    assert row(found, "window") == [0.1, 0.1, 0, 0, 0]
    assert row(found, "dense") == [0, 0.9, 0, 0, 0]
    assert row(found, "speaker") == [1, 1, 0, 0, 0]
    assert row(found, "idf_mass") == [0.5] * SIZE


def test_a_view_that_is_off_takes_no_part_in_how_good_a_match_is():
    found = narrowed(measured(bm25=[1, 0, 0, 0, 0]), Weights(), Views(lexical=0), ORDER)
    assert not found.values.any()
    assert found.applies[LEXICAL].tolist() == [0, 0, 0]
    assert found.applies[NAMES.index("dense")] == 1


@given(
    values=st.lists(
        st.lists(st.floats(0, 1), min_size=SIZE, max_size=SIZE), min_size=len(NAMES), max_size=len(NAMES)
    ),
    views=st.builds(Views, lexical=st.integers(0, 6), dense=st.integers(0, 6), structured=st.integers(0, 6)),
)
def test_no_view_speaks_for_more_than_it_may(values, views):
    table = Measured(np.array(values), EVIDENCE.astype(float))
    found = narrowed(table, Weights(), views, ORDER)
    assert ((found.values == table.values) | (found.values == 0)).all()
    assert np.count_nonzero(found.values[LEXICAL].any(axis=0)) <= views.lexical
    dense = EVIDENCE & ~LEXICAL
    assert np.count_nonzero(found.values[dense].any(axis=0)) <= views.dense
