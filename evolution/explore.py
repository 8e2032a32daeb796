"""Steps that no failure asks for: a seeded perturbation where the loop is stuck, and random search."""

from math import exp, log
from random import Random
from typing import Any

from memcycle.core.theta import Theta
from memcycle.core.theta_space import Dimension
from memcycle.evolution.space import searched

PERTURBED = 4
"""Dimensions that a perturbation moves."""
SPREAD = 0.15
"""Standard deviation of such a move, as a share of the range."""
_WIDE = 100
"""Ranges whose ends differ by such a factor are measured in logarithms."""


def perturbed(theta: Theta, seed: str) -> Theta:
    """The configuration with some dimensions moved; the same for the same seed."""
    random = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    chosen = random.sample(sorted(searched().items()), PERTURBED)
    changes = {path: _moved(theta.get(path), one, random) for path, one in chosen}
    return theta.with_changes(changes)[0]


def drawn(theta: Theta, seed: str) -> Theta:
    """A configuration drawn from the whole space; what is not searched is as in `theta`."""
    random = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    changes = {path: _any(one, random) for path, one in sorted(searched().items())}
    return theta.with_changes(changes)[0]


def _moved(value: Any, dimension: Dimension, random: Random) -> Any:
    if dimension.low is None or dimension.high is None or value is None:
        others = [one for one in _choices(dimension) if one != value]
        return random.choice(others) if others else value
    low, high = _scaled(dimension.low, dimension), _scaled(dimension.high, dimension)
    moved = _scaled(float(value), dimension) + random.gauss(0, SPREAD) * (high - low)
    return _back(min(max(moved, low), high), dimension)


def _any(dimension: Dimension, random: Random) -> Any:
    if dimension.low is None or dimension.high is None:
        return random.choice(_choices(dimension))
    low, high = _scaled(dimension.low, dimension), _scaled(dimension.high, dimension)
    return _back(random.uniform(low, high), dimension)


def _choices(dimension: Dimension) -> list[Any]:
    if dimension.type == "bool":
        return [False, True]
    return list(dimension.choices or [dimension.default])


def _is_wide(dimension: Dimension) -> bool:
    return (dimension.high or 0) >= _WIDE * max(dimension.low or 0, 1)


def _scaled(value: float, dimension: Dimension) -> float:
    return log(1 + value) if _is_wide(dimension) else value


def _back(value: float, dimension: Dimension) -> float:
    number = exp(value) - 1 if _is_wide(dimension) else value
    return round(number) if dimension.type == "int" else round(number, 4)
