"""How deep each view reaches: evidence beyond its first entries says nothing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memcycle.core.theta import Theta, Views, Weights
from memcycle.stores.search.ranker import EVIDENCE, LEXICAL, NAMES, Measured
from memcycle.stores.search.search import narrowed

SIZE = 5
ORDER = np.arange(SIZE)


def measured(**values):
    table = np.array([values.get(name, [0.0] * SIZE) for name in NAMES], dtype=float)
    return Measured(table, EVIDENCE.astype(float))


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
        table, Weights.only(bm25=1, dense=1, speaker=1), Views(lexical=2, dense=1, structured=2), ORDER
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
