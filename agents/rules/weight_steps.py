"""Steps of the signals' weights, from what missed turns have more of than the best others that were found.

The mean difference of a signal over wanted turns is the slope of a pairwise ranking loss in its weight
(RankNet, Burges et al., ICML 2005, without the sigmoid); one step is one move along it, of the signals whose
difference is no chance. What stood before missed turns stood there by the signals with weight, so a negative
difference over missed turns alone is no news: a weight shrinks only where the turns that were shown do not
rest on its signal either.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, pstdev
from typing import NamedTuple

from memcycle.agents.diagnoser import MissedView, Pattern

WEIGHTS = "weights."
SURE, LEAST = 2.0, 0.02
"""How many standard errors from 0, and how far, a mean difference is no chance."""
TELLING = 0.05
"""Mean difference of shown turns from which a signal without weight is worth one."""
FEWEST = 3
"""Missed turns from which a mean is taken."""
MOST = 8
_PATTERNS: dict[str, Pattern] = {
    "speaker": "wrong entity",
    "date": "wrong time",
    "time_expression": "wrong time",
}


class Step(NamedTuple):
    """A signal's new weight, and the mean difference that asks for it, -1 to 1."""

    signal: str
    value: float
    edge: float
    pattern: Pattern
    reason: str


def steps(
    missed: Sequence[MissedView], held: Mapping[str, float], values: Mapping[str, float], size: float
) -> list[Step]:
    """The most certain steps, at most eight.

    Args:
        missed: Turns that were wanted and not shown; those without differences say nothing.
        held: By signal the mean difference of the wanted turns that were shown.
        values: Values by path; the weights among them.
        size: Length of the steps, 1 for a share of all weight as large as the mean difference.
    """
    told = [one.edges for one in missed if one.edges]
    weights = {path.removeprefix(WEIGHTS): own for path, own in values.items() if path.startswith(WEIGHTS)}
    if len(told) < FEWEST:
        return []
    total = sum(weights.values()) or 1.0
    found: list[tuple[float, Step]] = []
    for signal, weight in weights.items():
        edge = _edge([edges.get(signal, 0.0) for edges in told], held.get(signal, 0.0), weight)
        if edge is None:
            continue
        # At most halved: one round's failures never show all that a signal gets right.
        given = round(max(weight + size * total * edge.mean, weight / 2), 3)
        pattern = _PATTERNS.get(signal, "view blind" if weight == 0 else "outranked")
        reason = f"{edge.whose} have {abs(edge.mean):.2f} {edge.way} {signal} than the best others"
        found.append((edge.sure, Step(signal, given, edge.mean, pattern, reason)))
    return [step for _, step in sorted(found, key=lambda one: -one[0])[:MOST]]


class _Edge(NamedTuple):
    """A mean difference that asks for something, and in how many standard errors it stands above chance."""

    mean: float
    sure: float
    whose: str

    @property
    def way(self) -> str:
        return "more" if self.mean > 0 else "less"


def _edge(edges: Sequence[float], rests: float, weight: float) -> _Edge | None:
    """What differences of missed turns ask for, `rests` being that of the shown ones; None for nothing."""
    mean, error = fmean(edges), pstdev(edges) / sqrt(len(edges))
    sure = abs(mean) / error if error else SURE
    against = rests < -LEAST if mean > 0 else rests > LEAST or weight == 0
    if abs(mean) >= LEAST and sure >= SURE and not against:
        return _Edge(mean, sure, f"{len(edges)} missed turns")
    if weight == 0 and mean >= 0 and rests >= TELLING:
        return _Edge((mean + rests) / 2, 1.0, "wanted turns, missed and shown,")
    return None
