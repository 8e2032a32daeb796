"""From signals to an order and a score.

Order: by theta's fusion mode.
- `linear`: the weighted sum of the signals, the evidence relative to the query's best.
- `weighted_sum`: the weighted sum of the signals as they are.
- `sum`: the plain sum of the evidence, each relative to the query's best.
- `rrf`: reciprocal rank fusion of the evidence (Cormack et al., SIGIR 2009; 60).
A signal without weight takes no part in any of them.

Score, 0 to 1, on a scale that means the same for every request whatever the mode: the best hit scores the
weighted mean of its evidence, which is absolute (cosines, and BM25 as a share of what a text holding every
word of the query once would get); each other hit as much less as it falls behind the best, measured by the
evidence of the best. Where evidence alone decides, a cosine is its own score. The mean goes over what can say
something about the query: dense views where it has a vector, lexical ones by the share of its idf mass whose
words any entry holds. So the best of a bad lot scores low, and where no word is known the cosine decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from memcycle.core.theta import SIGNALS_OF_VIEW, Fusion, Views, Weights
from memcycle.stores.search.bm25 import Flags, Floats, Ints
from memcycle.stores.search.request import Why
from memcycle.stores.search.signals import MATCHES, SIGNALS, Comparison

NAMES = tuple(SIGNALS)
"""Row order of every array of signals."""
EVIDENCE = np.array([name in MATCHES for name in NAMES])
_VIEWS: dict[str, Flags] = {
    view: np.array([name in signals for name in NAMES]) for view, signals in SIGNALS_OF_VIEW.items()
}
LEXICAL = _VIEWS["lexical"]
TOLD = tuple(at for at, name in enumerate(NAMES) if EVIDENCE[at] or name in {"speaker", "date"})
"""Signals that are named as reasons of a hit."""
_RRF = 60
_EVEN = 0.8
"""How far behind the best a score falls evenly; from there on it fades."""


@dataclass(frozen=True)
class Measured:
    """What the signals say about the candidates of one query.

    Attributes:
        values: By signal and candidate, (signals, candidates), 0 and above.
        applies: How far each signal's evidence can say something about this query, (signals,), 0 to 1; 0 for
            what is no evidence.
    """

    values: Floats
    applies: Floats

    def relative(self) -> Floats:
        """The values, those of evidence as shares of the best candidate's."""
        best = self.values.max(axis=1, initial=0.0)
        scale = np.where(EVIDENCE & (best > 0), best, 1.0)
        return np.asarray(self.values / scale[:, None])


def measure(compared: Comparison, candidates: Ints) -> Measured:
    """The signals of the entries at these places."""
    vectors = {
        "dense": compared.query.named,
        "dense_nameless": compared.query.nameless,
        "context": compared.query.nameless,
    }
    applies = [
        compared.known if LEXICAL[at] else float(vectors[name].any()) if name in vectors else 0.0
        for at, name in enumerate(NAMES)
    ]
    values = np.stack([says(compared)[candidates] for says in SIGNALS.values()])
    return Measured(values, np.array(applies))


def narrowed(measured: Measured, weights: Weights, views: Views, order: Ints) -> Measured:
    """What the signals say where each view speaks for its first entries alone; beyond them it says nothing.

    A view orders by the weighted sum of its own signals, equal entries by `order`. One that may not speak at
    all takes no part in how good a match is.

    Args:
        measured: What the signals say, whole.
        order: A rank of each candidate, (candidates,), the same whatever is asked.
    """
    values, applies = measured.values, measured.applies
    for view, own in _VIEWS.items():
        k = getattr(views, view)
        if k >= values.shape[1] and k:
            continue
        weight = np.array([getattr(weights, name) for name in NAMES]) * own
        kept = _first(_summed(weight, measured.relative()), k, order)
        values = np.where(own[:, None] & ~kept[None, :], 0.0, values)
        applies = applies if k else np.where(own, 0.0, applies)
    return measured if values is measured.values else replace(measured, values=values, applies=applies)


def _first(scores: Floats, k: int, order: Ints) -> Flags:
    """Which candidates are among the k best that have a score at all."""
    kept = np.zeros(len(scores), dtype=bool)
    kept[np.lexsort((order, -scores))[:k]] = True
    return np.asarray(kept & (scores > 0))


def rank(measured: Measured, weights: Weights, fusion: Fusion) -> Floats:
    """The score of each candidate, (candidates,), in [0, 1]; 0 for one that no weighted evidence found."""
    weight = np.array([getattr(weights, name) for name in NAMES])
    level = _level(measured, weight)
    found = level > 0
    if not found.any():
        return np.zeros(len(level))
    order = _order(measured, weight, fusion)
    first = int(np.lexsort((level, np.where(found, order, -1.0)))[-1])
    evidence = _order(measured, np.where(EVIDENCE, weight, 0.0), fusion)[first]
    behind = _behind((order[first] - order) / evidence)
    return np.where(found, np.minimum(level[first] * behind, 1.0), 0.0)


def _behind(gap: Floats) -> Floats:
    """What is left of a score so far behind the best; less and less, but never nothing."""
    gap = np.maximum(gap, 0.0)
    rest = 1.0 - _EVEN
    return np.where(gap <= _EVEN, 1.0 - gap, rest * np.exp(-(gap - _EVEN) / rest))


def _order(measured: Measured, weight: Floats, fusion: Fusion) -> Floats:
    if fusion == "linear":
        return _summed(weight, measured.relative())
    if fusion == "weighted_sum":
        return _summed(weight, measured.values)
    used = np.where(EVIDENCE & (weight > 0), 1.0, 0.0)
    if fusion == "sum":
        return _summed(used, measured.relative())
    return _summed(used, np.stack([_reciprocal(values) for values in measured.values]))


def _summed(weight: Floats, values: Floats) -> Floats:
    """Candidate by candidate in the same order of signals: a score must not depend on its neighbours."""
    return np.asarray((weight[:, None] * values).sum(axis=0))


def _reciprocal(values: Floats) -> Floats:
    """1 / (60 + rank); equal values share a rank, 0 where there is no value."""
    return np.asarray(np.where(values > 0, 1.0 / (_RRF + _places(values, values)), 0.0))


def _places(values: Floats, few: Floats) -> Ints:
    """The 1-based rank that each of a few has among all values; equal ones share it."""
    return 1 + len(values) - np.searchsorted(np.sort(values), few, side="right")


def _level(measured: Measured, weight: Floats) -> Floats:
    """The weighted mean of each candidate's evidence."""
    part = weight * measured.applies
    total = part.sum()
    return _summed(part / total, measured.values) if total > 0 else np.zeros(measured.values.shape[1])


def best(scores: Floats, places: Ints, k: int) -> list[int]:
    """The k best candidates, best first; equal scores in the order of `places`."""
    among = (
        np.flatnonzero(scores >= np.partition(scores, -k)[-k]) if len(scores) > k else np.arange(len(scores))
    )
    ranked: list[int] = among[np.lexsort((places[among], -scores[among]))][:k].tolist()
    return ranked


FIRST = 30
"""Hits that tell whether what was found bears on what is asked."""


def told_of(measured: Measured, found: Sequence[int], form: Sequence[float]) -> Floats:
    """What `core.theta.RELEVANCE` weighs of a find.

    Args:
        found: Places of the hits, best first. form: What `stores.search.request.form_of` reads of the query.
    """
    all_, near = (measured.values[NAMES.index(name)] for name in ("dense", "context"))
    first = found[:FIRST]
    best, known = all_[first].max(), measured.applies[NAMES.index("bm25")]
    ahead = (best - all_.mean()) / (all_.std() + 0.05)
    return np.array([best, near[first].max(), known, np.log(len(all_)), ahead, *form])


def bears(told: Floats, intercept: float, weights: Sequence[float]) -> float:
    """How likely a find bears on what is asked, 0 to 1."""
    return float(1.0 / (1.0 + np.exp(-(intercept + told @ np.array(weights)))))


def reasons(measured: Measured, chosen: Sequence[int], depth: int) -> list[tuple[Why, ...]]:
    """Why each of the chosen candidates was found: the signals that rank it among their first `depth`.

    A signal that gives a candidate nothing has not found it. Equal values share a rank.
    """
    told = measured.values[list(TOLD)]
    own = told[:, chosen]
    ranks = np.stack([_places(all_, few) for all_, few in zip(told, own, strict=True)])
    found: list[list[Why]] = [[] for _ in chosen]
    at, places = np.nonzero((own > 0) & (ranks <= depth))
    scores = np.minimum(own[at, places], 1.0)
    for signal, n, rank, score in zip(
        at.tolist(), places.tolist(), ranks[at, places].tolist(), scores.tolist(), strict=True
    ):
        found[n].append(Why(NAMES[TOLD[signal]], rank, score))
    return [tuple(whys) for whys in found]
