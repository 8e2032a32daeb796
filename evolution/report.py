"""Held-out figures of configurations, with 95 % intervals, and how reports write them."""

from collections.abc import Sequence
from math import fsum, sqrt
from statistics import fmean, stdev
from typing import Any

from memcycle.core.theta import Theta
from memcycle.evolution.lab import Lab
from memcycle.evolution.records import QuestionRecord
from memcycle.evolution.theta.space import fingerprint

_Z, _T = 1.96, {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""Two-sided 95 % quantiles of the normal distribution, and of Student's t by the number of values."""


def held_out(lab: Lab, theta: Theta, memory: int = 0) -> dict[str, Any]:
    """A configuration on the held-out split: its score with a 95 % interval over the questions, by category,
    and the tokens of evidence it took. To be asked once of each configuration that is reported."""
    records = lab.evaluate(theta, "held_out", memory)
    own = [lab.task.value(one) for one in records]
    known = [one for one in own if one is not None]
    categories = sorted({record.category for record in records if record.category is not None})
    return {
        "held_out": lab.task.score(records),
        "interval": interval(known, _Z),
        "n": len(known),
        "by_category": {
            name: lab.task.score([one for one in records if one.category == name]) for name in categories
        },
        "tokens": round(fmean(sum(one.shown.tokens.values()) for one in records), 1) if records else None,
        "failed": sum(one.error is not None for one in records),
        "theta": fingerprint(theta),
    }


def interval(values: Sequence[float], quantile: float | None = None) -> list[float] | None:
    """The 95 % interval of a mean: by Student's t over few values, unless a quantile is given; None over
    fewer than two."""
    if len(values) < 2:  # noqa: PLR2004 - one value has no spread
        return None
    wide = quantile if quantile is not None else _T.get(len(values), _Z)
    half = wide * stdev(values) / sqrt(len(values))
    mean = fsum(values) / len(values)
    return [round(mean - half, 6), round(mean + half, 6)]


def paired(lab: Lab, one: Sequence[QuestionRecord], other: Sequence[QuestionRecord]) -> dict[str, Any]:
    """The mean gain of one configuration over another on the same questions, with its 95 % interval."""
    before = {record.key: lab.task.value(record) for record in other}
    pairs = [(lab.task.value(record), before.get(record.key)) for record in one]
    gains = [left - right for left, right in pairs if left is not None and right is not None]
    return {"gain": round(fmean(gains), 6) if gains else None, "interval": interval(gains, _Z)}


def between(ends: Sequence[float] | None) -> str:
    """An interval in words."""
    return "" if ends is None else f"[{ends[0]:.3f}, {ends[1]:.3f}]"
