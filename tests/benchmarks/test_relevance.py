"""The fit tells two kinds apart, and figures count what gets nothing."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.relevance import Example, figures, fit
from memcycle.stores.search.ranker import bears


def example(near: float, *, asks: bool) -> Example:
    told, evidence = np.array([near, near / 2, 1.0]), int(asks)
    kind = "question" if asks else "off"
    return Example("3", f"at {near}", kind, True, True, told, 0.5, evidence, 10, float(asks))


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
    other = replace(made[2], kind="other")
    larger = [replace(one, memory="10") for one in [*made, other]]
    said = figures([*made, other, *larger], [0.9, 0.1, 0.1, 0.9, 0.1] + 5 * [0.9], 0.5)
    assert said["10"]["questions that lose all evidence"] == 0.0
    small = said["3"]
    assert small["lines that bear, before"] == pytest.approx(2 / 50)
    assert small["lines that bear, after"] == pytest.approx(1 / 20)
    assert small["off-topic messages that get nothing"] == 0.5
    assert small["questions to others that get nothing"] == 1.0
    assert small["questions that lose all evidence"] == 0.5
    assert (small["recall at 10, before"], small["recall at 10, after"]) == (1.0, 0.5)
