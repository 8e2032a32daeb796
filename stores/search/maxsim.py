"""MaxSim: how near the words of a query come to the nearest word of an entry, each in its context.

Late interaction after ColBERT (Khattab and Zaharia, SIGIR 2020), with each word of the query weighted by its
idf, without function words and without the names of who is asked about. It is a second look: only what the
other signals rank first is compared, so that it costs the same in a scope of any size.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from memcycle.core.language.tokens import content_stems
from memcycle.stores.search import lexical
from memcycle.stores.search.bm25 import Flags, Floats, Ints, idf
from memcycle.stores.search.copies import Copy
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
