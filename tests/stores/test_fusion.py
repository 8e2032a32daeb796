import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcycle.core.theta import Weights
from memcycle.stores.fusion import VIEWS, ViewScores, best, fuse, reasons

ONLY_DENSE = {"bm25": 0, "window": 0, "dense": 1, "dense_nameless": 1, "speaker": 0}


def scores(applies=None, **values):
    """Views not named are zero everywhere and do not apply, unless `applies` says so."""
    size = len(next(iter(values.values())))
    return ViewScores(
        values=np.array([values.get(view, [0.0] * size) for view in VIEWS], dtype=float),
        applies=np.array([(applies or {}).get(view, float(view in values)) for view in VIEWS]),
    )


def test_views_are_the_weights_of_theta():
    assert set(VIEWS) == set(Weights.model_fields)


def test_where_only_vectors_apply_the_score_is_the_cosine():
    fused = fuse(scores(dense=[0.99, 0.7, 0.2], dense_nameless=[0.99, 0.7, 0.2]), Weights())
    assert fused.tolist() == pytest.approx([0.99, 0.7, 0.2])


def test_weighted_mean_over_the_views_that_apply():
    weights = Weights(bm25=1, window=0, dense=3, dense_nameless=0, speaker=0)
    assert fuse(scores(bm25=[1.0, 0.0], dense=[0.5, 0.8]), weights).tolist() == pytest.approx([0.625, 0.6])


def test_a_view_applies_by_degrees():
    weights = Weights(bm25=1, window=0, dense=1, dense_nameless=0, speaker=0)
    half = scores({"bm25": 0.25, "dense": 1.0}, bm25=[0.0], dense=[0.9])
    assert fuse(half, weights).tolist() == pytest.approx([0.9 / 1.25])


def test_only_ratios_of_weights_matter():
    views = scores(bm25=[0.4, 0.9], dense=[0.5, 0.1], speaker=[1.0, 0.0])
    double = Weights(**{name: 2 * value for name, value in Weights().model_dump().items()})
    assert fuse(views, double).tolist() == pytest.approx(fuse(views, Weights()).tolist())


def test_no_weight_and_no_view_is_no_score():
    nothing = Weights(**dict.fromkeys(VIEWS, 0))
    assert fuse(scores(dense=[0.5]), nothing).tolist() == [0.0]
    assert fuse(scores(dict.fromkeys(VIEWS, 0.0), dense=[0.5]), Weights()).tolist() == [0.0]


def test_no_candidates():
    empty = ViewScores(np.zeros((len(VIEWS), 0)), np.ones(len(VIEWS)))
    assert fuse(empty, Weights()).tolist() == []
    assert best(fuse(empty, Weights()), [], 5) == []


@given(
    st.lists(st.tuples(*[st.floats(0, 1)] * len(VIEWS)), min_size=1, max_size=8),
    st.tuples(*[st.floats(0, 1)] * len(VIEWS)),
)
def test_scores_stay_between_zero_and_one(values, applies):
    fused = fuse(ViewScores(np.array(values).T, np.array(applies)), Weights())
    assert ((fused >= 0) & (fused <= 1)).all()


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.floats(0, 1))
def test_more_of_a_view_never_scores_less(values, more):
    raised = [min(1.0, value + more) for value in values]
    low = fuse(scores(bm25=values, dense=values), Weights())
    high = fuse(scores(bm25=raised, dense=values), Weights())
    assert (high >= low).all()


def test_a_candidate_scores_the_same_whatever_stands_beside_it():
    rng = np.random.default_rng(3)
    values = rng.random((len(VIEWS), 500))
    applies = np.ones(len(VIEWS))
    together = fuse(ViewScores(values, applies), Weights())
    for at in (0, 123, 499):
        assert fuse(ViewScores(values[:, [at]], applies), Weights())[0] == together[at]


def test_best_first_and_ties_by_id():
    assert best(np.array([0.2, 0.9, 0.9, 0.5]), ["d", "c", "b", "a"], 3) == [2, 1, 3]


def test_reasons_name_the_views_that_found_it_with_rank_and_score():
    views = scores(bm25=[0.0, 0.7, 0.3], dense=[0.9, 0.1, 0.9])
    first, second = reasons(views, [0, 2], depth=10)
    assert [(why.view, why.rank, why.score) for why in first] == [("dense", 1, 0.9)]
    assert [(why.view, why.rank, why.score) for why in second] == [("bm25", 2, 0.3), ("dense", 1, 0.9)]


def test_a_view_has_not_found_what_it_ranks_beyond_its_depth():
    [whys] = reasons(scores(dense=[0.9, 0.8, 0.1], bm25=[0.1, 0.2, 0.3]), [2], depth=1)
    assert [why.view for why in whys] == ["bm25"]


def test_only_dense_weights_rank_by_cosine():
    fused = fuse(scores(bm25=[1.0, 0.0], dense=[0.1, 0.9]), Weights(**ONLY_DENSE))
    assert best(fused, ["a", "b"], 2) == [1, 0]
