"""How deep each view reaches: its evidence counts for its first entries alone (EvolveMem's top-k a view)."""

from dataclasses import replace

import numpy as np

from memcycle.core.theta import Views, Weights
from memcycle.stores.search import maxsim
from memcycle.stores.search.bm25 import Flags, Floats, Ints
from memcycle.stores.search.ranker import EVIDENCE, LEXICAL, NAMES, Measured

STRUCTURED = np.array([name in {"speaker", "date", "time_expression", "number", "capital"} for name in NAMES])
_SIGNALS: dict[str, Flags] = {
    "lexical": LEXICAL,
    "dense": (EVIDENCE & ~LEXICAL) | np.array([name == maxsim.NAME for name in NAMES]),
    "structured": STRUCTURED,
}
"""The signals of each view; the others are of none, and only move what a view found."""


def narrowed(measured: Measured, weights: Weights, views: Views, order: Ints) -> Measured:
    """What the signals say where each view speaks for its first entries alone; beyond them it says nothing.

    A view orders by the weighted sum of its own signals, equal entries by `order`. One that may not speak at
    all takes no part in how good a match is.

    Args:
        measured: What the signals say, whole.
        order: A rank of each candidate, (candidates,), the same whatever is asked.
    """
    values, applies = measured.values, measured.applies
    for view, own in _SIGNALS.items():
        k = getattr(views, view)
        if k >= values.shape[1] and k:
            continue
        weight = np.array([getattr(weights, name) for name in NAMES]) * own
        kept = _first(_summed(weight, measured), k, order)
        values = np.where(own[:, None] & ~kept[None, :], 0.0, values)
        applies = applies if k else np.where(own, 0.0, applies)
    return measured if values is measured.values else replace(measured, values=values, applies=applies)


def _summed(weight: Floats, measured: Measured) -> Floats:
    return np.asarray((weight[:, None] * measured.relative()).sum(axis=0))


def _first(scores: Floats, k: int, order: Ints) -> Flags:
    """Which candidates are among the k best that have a score at all."""
    kept = np.zeros(len(scores), dtype=bool)
    kept[np.lexsort((order, -scores))[:k]] = True
    return np.asarray(kept & (scores > 0))
