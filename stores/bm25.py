"""BM25 of the documents of one scope, in two views at once, on numbers only.

The views share their words: one counts a document's own with its speaker and date, the other its own with
those of the two turns before. Sums run document by document in the order of the terms, so that a score is the
same to the bit whatever other documents or queries are scored beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

K1, B = 0.9, 0.4
"""Better on chats than the textbook's 1.2 and 0.75 (design section 7)."""

VIEWS = 2
_NONE = np.empty(0, dtype=np.int64)
_COUNTED = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
"""How a word of each field (own, dated, before) counts in the dated and in the window view."""


class Documents(NamedTuple):
    """The words of documents.

    Attributes:
        rows: Ledger row of each document, (documents,).
        fields: How many words its fields have: own text; speaker and date; turns before. (documents, 3).
        words: The words as numbers, field after field, document after document, (fields.sum(),).
    """

    rows: Ints
    fields: Ints
    words: Ints

    @property
    def lengths(self) -> Floats:
        """Words in the dated and in the window view, (documents, 2)."""
        return np.asarray(self.fields @ _COUNTED)


class Stats(NamedTuple):
    """Documents of one scope and granularity, and the sums of their lengths in the two views."""

    docs: int
    dated: float
    windowed: float

    def plus(self, documents: Documents) -> "Stats":
        """These and further documents."""
        dated, windowed = documents.lengths.sum(axis=0).tolist()
        return Stats(self.docs + len(documents.rows), self.dated + dated, self.windowed + windowed)

    @property
    def means(self) -> tuple[float, float]:
        """Mean length in each view, at least one word."""
        return max(self.dated / max(self.docs, 1), 1.0), max(self.windowed / max(self.docs, 1), 1.0)


class Scores(NamedTuple):
    """What one query found.

    Attributes:
        rows: Ledger rows of the documents that hold one of its terms, (found,).
        views: Their scores in the dated and in the window view, (found, 2), 0 to 1, where 1 is a document of
            mean length holding every term once, or better.
        known: Share of the query's idf mass whose terms some document holds, 0 to 1.
    """

    rows: Ints
    views: Floats
    known: float


@dataclass(frozen=True)
class _Postings:
    """Which document holds which term how often; one posting a pair, ordered by document, then term.

    Attributes:
        terms: The terms of all queries, ascending, (terms,).
        doc, term: Indices into the documents and `terms`, (postings,).
        tf: Counts in each view, (postings, 2).
    """

    terms: Ints
    doc: Ints
    term: Ints
    tf: Floats


def score(documents: Documents, stats: Stats, queries: Sequence[Ints]) -> list[Scores]:
    """Scores of each query over the same documents.

    Args:
        documents: All documents of the scope and granularity that hold a term of any query; others may be
            among them.
        stats: Of the whole scope and granularity.
        queries: Terms of each, as numbers; a repeated one counts once.
    """
    terms = np.unique(np.concatenate([_NONE, *queries]))
    postings = _postings(documents, terms)
    return [_score(documents, stats, postings, np.searchsorted(terms, np.unique(query))) for query in queries]


def _postings(documents: Documents, terms: Ints) -> _Postings:
    term = np.searchsorted(terms, documents.words)
    hits = (
        np.flatnonzero(np.append(terms, 0)[term] == documents.words) if terms.size else np.empty(0, dtype=int)
    )
    hits = hits[term[hits] < len(terms)]
    doc = np.repeat(np.arange(len(documents.rows)), documents.fields.sum(axis=1))
    field = np.repeat(np.tile(np.arange(len(_COUNTED)), len(documents.rows)), documents.fields.ravel())
    pairs, place = np.unique(doc[hits] * max(len(terms), 1) + term[hits], return_inverse=True)
    counted = _COUNTED[field[hits]]
    tf = [np.bincount(place, weights=counted[:, view], minlength=len(pairs)) for view in range(VIEWS)]
    doc, term = np.divmod(pairs, max(len(terms), 1))
    return _Postings(terms, doc, term, np.stack(tf, axis=1))


def _score(documents: Documents, stats: Stats, postings: _Postings, query: Ints) -> Scores:
    """Scores of the query with these indices into the terms, ascending."""
    chosen = np.isin(postings.term, query)
    doc, term, tf = postings.doc[chosen], postings.term[chosen], postings.tf[chosen]
    size, lengths = len(postings.terms), documents.lengths
    views = np.zeros((len(documents.rows), VIEWS))
    for view, mean in enumerate(stats.means):
        weight = np.zeros(size)
        weight[query] = _idf(np.bincount(term[tf[:, view] > 0], minlength=size)[query], stats.docs)
        norm = K1 * (1 - B + B * lengths[doc, view] / mean)
        part = weight[term] * tf[:, view] * (K1 + 1) / (tf[:, view] + norm)
        total = np.bincount(doc, weights=part, minlength=len(documents.rows))
        views[:, view] = np.minimum(total / weight.sum(), 1.0) if query.size else 0.0
    found = views.any(axis=1)
    return Scores(
        documents.rows[found], views[found], _known(np.bincount(term, minlength=size)[query], stats)
    )


def _known(df: Ints, stats: Stats) -> float:
    idf = _idf(df, stats.docs)
    return float(idf[df > 0].sum() / idf.sum()) if df.any() else 0.0


def _idf(df: Ints, docs: int) -> Floats:
    return np.asarray(np.log1p((docs - df + 0.5) / (df + 0.5)))
