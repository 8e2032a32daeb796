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

Late interaction after ColBERT (Khattab and Zaharia, SIGIR 2020), with each word of the query weighted by its
idf, without function words and without the names of who is asked about. It is a second look: only what the
other signals rank first is compared, so that it costs the same in a scope of any size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memcycle.core.language.tokens import content_stems
from memcycle.core.theta import Fusion, Weights
from memcycle.stores.search import lexical
from memcycle.stores.search.bm25 import Flags, Floats, Ints, idf
from memcycle.stores.search.request import Why
from memcycle.stores.search.signals import SIGNALS, Seen
from memcycle.stores.search.snapshot import Copy
from memcycle.stores.words import Small, Words

NAME = "maxsim"
LOOKED_AT = 100
"""Entries compared: the first ones by the other signals."""


def weights(copy: Copy, visible: Flags, words: Sequence[str]) -> Floats:
    """How telling each word of a query is among what the request may see, (words,); 0 for function words."""
    stems = [content_stems(word) for word in words]
    terms = np.unique(lexical.numbers([stem for own in stems for stem in own]))
    postings = copy.index.postings(terms).of(visible)
    telling = idf(np.bincount(postings.term, minlength=len(terms)), int(visible.sum()))
    return np.array([_most(telling, terms, own) for own in stems])


def _most(telling: Floats, terms: Ints, stems: Sequence[str]) -> float:
    return float(telling[np.searchsorted(terms, lexical.numbers(stems))].max(initial=0.0))


def nearness(query: Words, weight: Floats, read: Mapping[int, Small], rows: Sequence[int]) -> Floats:
    """How near each entry is, (rows,): 1 for the nearest of them, 0 for the farthest.

    What was not read says nothing, and so counts as the mean of the others.

    Args:
        weight: Of each word of the query, (words,). Where all are 0, nothing is near.
        read: Words by row.
    """
    if not weight.any():
        return np.zeros(len(rows))
    near = np.array([_nearest(query, weight, read[row]) if row in read else np.nan for row in rows])
    if np.isnan(near).all():
        return np.zeros(len(rows))
    lowest, spread = np.nanmin(near), np.nanmax(near) - np.nanmin(near)
    relative = (near - lowest) / spread if spread > 0 else np.where(np.isnan(near), np.nan, 0.0)
    return np.asarray(np.nan_to_num(relative, nan=float(np.nanmean(relative))))


def _nearest(query: Words, weight: Floats, entry: Small) -> float:
    # Not as a matrix product: that may round an entry differently beside others.
    cosines = (query.vectors[:, None, :] * entry.vectors[None, :, :]).sum(axis=2)
    return float((weight * np.clip(cosines.max(axis=1), 0.0, 1.0)).sum() / weight.sum())


NAMES = (*SIGNALS, NAME)
"""Row order of every array of signals; the last is known only after a second look."""
EVIDENCE = np.array([*(signal.evidence for signal in SIGNALS.values()), False])
LEXICAL = np.array([name in {"bm25", "window", "facts"} for name in NAMES])
TOLD = tuple(at for at, name in enumerate(NAMES) if EVIDENCE[at] or name in {"speaker", "date", NAME})
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

    def with_maxsim(self, candidates: Ints, nearness: Floats) -> "Measured":
        """These and, for some candidates, what a second look found."""
        values = self.values.copy()
        values[-1, candidates] = nearness
        return Measured(values, self.applies)

    def relative(self) -> Floats:
        """The values, those of evidence as shares of the best candidate's."""
        best = self.values.max(axis=1, initial=0.0)
        scale = np.where(EVIDENCE & (best > 0), best, 1.0)
        return np.asarray(self.values / scale[:, None])


def measure(seen: Seen, candidates: Ints) -> Measured:
    """The signals of the entries at these places."""
    vectors = {
        "dense": seen.asked.named,
        "dense_nameless": seen.asked.nameless,
        "context": seen.asked.nameless,
    }
    applies = [
        seen.known if LEXICAL[at] else float(vectors[name].any()) if name in vectors else 0.0
        for at, name in enumerate(NAMES)
    ]
    known = [signal.says(seen)[candidates] for signal in SIGNALS.values()]
    values = np.stack([*known, np.zeros(len(candidates))])
    return Measured(values, np.array(applies))


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
    ordered = np.sort(values)
    ranks = 1 + len(ordered) - np.searchsorted(ordered, values, side="right")
    return np.asarray(np.where(values > 0, 1.0 / (_RRF + ranks), 0.0))


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


def reasons(measured: Measured, chosen: Sequence[int], depth: int) -> list[tuple[Why, ...]]:
    """Why each of the chosen candidates was found: the signals that rank it among their first `depth`.

    A signal that gives a candidate nothing has not found it. Equal values share a rank.
    """
    told = measured.values[list(TOLD)]
    own = told[:, chosen]
    # Signal by signal: all at once would need room for each pair of candidates as many times.
    ranks = np.stack(
        [1 + (all_[None, :] > few[:, None]).sum(axis=1) for all_, few in zip(told, own, strict=True)]
    )
    found: list[list[Why]] = [[] for _ in chosen]
    at, places = np.nonzero((own > 0) & (ranks <= depth))
    scores = np.minimum(own[at, places], 1.0)
    for signal, n, rank, score in zip(
        at.tolist(), places.tolist(), ranks[at, places].tolist(), scores.tolist(), strict=True
    ):
        found[n].append(Why(NAMES[TOLD[signal]], rank, score))
    return [tuple(whys) for whys in found]
