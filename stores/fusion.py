"""From the views' scores to one score: an absolute weighted mean, not relative to what else was found.

Every view gives an absolute score: cosines are clipped to [0, 1], BM25 is a share of what a document holding
every query term once would get, the speaker view is 0 or 1. The fused score is their mean under theta's
weights, over the views that can say something about the query:

- dense views: where the query has a vector;
- lexical views: by the share of the query's idf mass whose terms the scope holds at all. Where no stored text
  shares a word with the query, the score is the cosine alone; where all words are known, a text that lacks
  them scores low;
- speaker: where somebody who speaks in the scope is asked about.

The divisor is the same for all entries of a query, so it moves thresholds and not ranks. Min-max scaling per
query and view, the usual way, ranked no better (measured on LoCoMo conversations 1-5, recall at 10: the best
of the same small grid of weights is .759 min-max and .764 absolute), gives the best of a bad lot 1.0, and
changes an entry's score with its neighbours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from memcycle.core.theta import Weights
from memcycle.stores.bm25 import Floats
from memcycle.stores.request import Why

View = Literal["bm25", "window", "dense", "dense_nameless", "speaker"]
VIEWS: tuple[View, ...] = get_args(View)
"""Row order of every array of views; the names are those of theta's weights."""


@dataclass(frozen=True)
class ViewScores:
    """What the views say about the candidates of one query.

    Attributes:
        values: Scores by view and candidate, (views, candidates), 0 and above.
        applies: How far each view can say something about this query, (views,), 0 to 1.
    """

    values: Floats
    applies: Floats


def fuse(scores: ViewScores, weights: Weights) -> Floats:
    """The fused score of each candidate, (candidates,), in [0, 1]; all zero where no view applies."""
    weight = np.array([getattr(weights, view) for view in VIEWS])
    total = float(weight @ scores.applies)
    if total <= 0:
        return np.zeros(scores.values.shape[1])
    mean: Floats = (weight[:, None] * scores.values).sum(axis=0) / total
    return np.minimum(mean, 1.0)


def best(fused: Floats, ids: Sequence[str], k: int) -> list[int]:
    """Places of the k best candidates, best first; equal scores in the order of their ids."""
    among = np.flatnonzero(fused >= np.partition(fused, -k)[-k]) if len(ids) > k else np.arange(len(ids))
    return sorted(among.tolist(), key=lambda at: (-fused[at], ids[at]))[:k]


def reasons(scores: ViewScores, chosen: Sequence[int], depth: int) -> list[tuple[Why, ...]]:
    """Why each of the chosen candidates was found: the views that rank it among their first `depth`.

    A view that gives a candidate nothing has not found it. Equal scores share a rank.
    """
    own = scores.values[:, chosen]
    ranks = [
        1 + len(ordered) - np.searchsorted(ordered, values, side="right")
        for ordered, values in zip(np.sort(scores.values), own, strict=True)
    ]
    return [
        tuple(
            Why(view=view, rank=rank, score=min(value, 1.0))
            for view, value, rank in zip(VIEWS, values, places, strict=True)
            if value > 0 and rank <= depth
        )
        for values, places in zip(own.T.tolist(), np.array(ranks).T.tolist(), strict=True)
    ]
