"""The fit tells two kinds apart, and figures count what gets nothing."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.relevance import Example, figures, fit
from memcycle.stores.search.ranker import bears


def example(near: float, *, asks: bool) -> Example:
    told, evidence = np.array([near, near / 2, 1.0]), int(asks)
    return Example(("made-up", False), asks, True, True, told, 0.5, evidence, 10, float(asks))


def test_the_fit_tells_near_from_far():
    made = [example(0.5 + n / 20, asks=n > 2) for n in range(6)]
    intercept, weights = fit(made)
    assert bears(made[-1].told, intercept, weights) > 0.5 > bears(made[0].told, intercept, weights)
    assert len(weights) == 3


def test_figures_count_what_gets_nothing():
    made = [
        example(0.9, asks=True),
        example(0.8, asks=True),
        example(0.1, asks=False),
        example(0.2, asks=False),
    ]
    noted = [replace(one, memory=("made-up", True)) for one in made]
    said = figures([*made, *noted], [0.9, 0.1, 0.1, 0.9] + 4 * [0.9], 0.5)
    assert said["with notes, after: questions that lose all evidence"] == 0.0
    assert said["alone, before: lines that bear"] == pytest.approx(2 / 40)
    assert said["alone, after: lines that bear"] == pytest.approx(1 / 20)
    assert said["alone, after: off-topic messages that get nothing"] == 0.5
    assert said["alone, after: questions that lose all evidence"] == 0.5
    assert (said["alone, before: recall at 10"], said["alone, after: recall at 10"]) == (1.0, 0.5)
