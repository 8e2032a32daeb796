"""BM25 of the documents of one scope, in three views at once, on numbers only.

The views share their words: one counts a document's own with its speaker and date; one its own with those of
the two turns before; one these and what facts say that rest on it. Sums run document by document in the order
of the terms, so that a score is the same to the bit whatever other documents or queries are scored beside it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memcycle.core.entry import GRANULARITIES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.signedinteger[Any]]

K1, B = 0.9, 0.4
"""Better on chats than the textbook's 1.2 and 0.75."""

DATED, WINDOW, FACTS = 0, 1, 2
"""Columns of scores: the three views."""

COUNTED = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
"""How a word of each field (own, dated, before, facts) counts in each view, (fields, views)."""
FIELDS, VIEWS = COUNTED.shape


class Documents(NamedTuple):
    """The words of documents.

    Attributes:
        rows: Ledger row of each document, (documents,).
        fields: How many words its fields have: own text; speaker and date; turns before; facts that rest on
            it. (documents, 4).
        words: The words as numbers, or as their places in a vocabulary, field after field, document after
            document, (fields.sum(),).
    """

    rows: Ints
    fields: Ints
    words: Words

    @property
    def lengths(self) -> Floats:
        """Words in each view, (documents, 3)."""
        return np.asarray(self.fields @ COUNTED)


class Stats(NamedTuple):
    """How many documents one scope and granularity has, and the sums of their lengths in each view, (3,)."""

    docs: int
    lengths: Floats

    def plus(self, documents: Documents) -> "Stats":
        """These and further documents."""
        return Stats(self.docs + len(documents.rows), self.lengths + documents.lengths.sum(axis=0))

    @property
    def means(self) -> Floats:
        """Mean length in each view, at least one word, (3,)."""
        return np.maximum(self.lengths / max(self.docs, 1), 1.0)


class Scores(NamedTuple):
    """What one query found.

    Attributes:
        rows: Ledger rows of the documents that hold one of its terms, (found,).
        views: Their scores in each view, (found, 3), 0 to 1, where 1 is a document of mean length holding
            every term once, or better.
        known: Share of the query's idf mass whose terms some document holds, 0 to 1.
    """

    rows: Ints
    views: Floats
    known: float


class Postings(NamedTuple):
    """Which document holds which term how often; one posting a pair, ordered by document, then term.

    Attributes:
        doc: Place of the document.
        term: Place of the term among the terms asked for, ascending.
        tf: Counts in each view, (postings, 3).
    """

    doc: Ints
    term: Ints
    tf: Floats

    def of(self, docs: Flags) -> "Postings":
        """Those of these documents."""
        chosen = docs[self.doc]
        return Postings(self.doc[chosen], self.term[chosen], self.tf[chosen])


def places(words: Words, terms: Ints) -> Ints:
    """Which of these terms, ascending and each once, each word is; -1 for none of them."""
    at = np.searchsorted(terms, words) % max(len(terms), 1)
    return np.where(terms[at] == words, at, -1) if len(terms) else np.full(len(words), -1)


def postings(documents: Documents, places: Ints, terms: int) -> Postings:
    """Where the terms stand, given which of them, of so many, each word of the documents is."""
    held = np.flatnonzero(places >= 0)
    doc, field = np.divmod(np.searchsorted(documents.fields.cumsum(), held, side="right"), FIELDS)
    pairs, place = np.unique(doc * max(terms, 1) + places[held], return_inverse=True)
    counted = COUNTED[field]
    tf = [np.bincount(place, weights=counted[:, view], minlength=len(pairs)) for view in range(VIEWS)]
    return Postings(*np.divmod(pairs, max(terms, 1)), np.stack(tf, axis=1))


def idf(df: Floats | Ints, docs: int) -> Floats:
    """How telling words are that so many of the documents hold."""
    return np.asarray(np.log1p((docs - df + 0.5) / (df + 0.5)))


def weigh(
    postings: Postings, lengths: Floats, stats: Stats, terms: int, least: Ints | int = 0
) -> tuple[Floats, float]:
    """BM25 in each view of all documents, (documents, 3), and the query's `known` (see `Scores`).

    Args:
        lengths: Of each document in each view, (documents, 3).
        stats: Of the documents that `postings` was made of, and of those without any of the terms.
        terms: How many the query has.
        least: How many documents hold each at least, where not all of them are given.
    """
    doc, term, tf = postings
    views = np.zeros((len(lengths), VIEWS))
    if not terms:
        return views, 0.0
    for view, mean in enumerate(stats.means):
        weight = idf(np.maximum(np.bincount(term[tf[:, view] > 0], minlength=terms), least), stats.docs)
        norm = K1 * (1 - B + B * lengths[doc, view] / mean)
        part = weight[term] * tf[:, view] * (K1 + 1) / (tf[:, view] + norm)
        views[:, view] = np.bincount(doc, weights=part, minlength=len(lengths)) / weight.sum()
    return np.minimum(views, 1.0), _known(np.maximum(np.bincount(term, minlength=terms), least), stats)


def _known(df: Ints, stats: Stats) -> float:
    weight = idf(df, stats.docs)
    return float(weight[df > 0].sum() / weight.sum()) if df.any() else 0.0


RAW, FACT = GRANULARITIES.index("raw"), GRANULARITIES.index("fact")


def with_facts(
    own: Documents, turns: Sequence[tuple[str, ...]], granularity: Ints, session: Ints, walled: Flags
) -> Documents:
    """Documents with the words of facts added to those of the turns they rest on.

    A fact that only its session sees counts only for turns that only that session sees.

    Args:
        own: Documents without words of facts.
        turns, granularity, session, walled: As in `memcycle.stores.search.snapshot.Snapshot`.
    """
    raw, fact = _pairs(turns, granularity)
    together = (session[raw] == session[fact]) & walled[raw]
    shown = ~walled[fact] | together
    raw, fact = raw[shown], fact[shown]
    counts = own.fields.sum(axis=1)
    begins = np.cumsum(counts) - counts
    # Each document's own words, then those of its facts: the sort keeps that order.
    lengths = np.concatenate([counts, own.fields[fact, 0]])
    order = np.argsort(np.concatenate([np.arange(len(counts)), raw]), kind="stable")
    words = _stretches(own.words, np.concatenate([begins, begins[fact]])[order], lengths[order])
    fields = own.fields.copy()
    fields[:, -1] = np.bincount(raw, weights=own.fields[fact, 0], minlength=len(counts))
    return Documents(own.rows, fields, words)


def chosen(documents: Documents, places: Ints) -> Documents:
    """The documents at these places, in that order."""
    counts = documents.fields.sum(axis=1)
    begins = np.cumsum(counts) - counts
    words = _stretches(documents.words, begins[places], counts[places])
    return Documents(documents.rows[places], documents.fields[places], words)


def _pairs(turns: Sequence[tuple[str, ...]], granularity: Ints) -> tuple[Ints, Ints]:
    """Places of turns and of the facts that rest on them, in order of the facts."""
    raws = {turn: place for place in np.flatnonzero(granularity == RAW).tolist() for turn in turns[place]}
    pairs = [
        (raws[turn], place)
        for place in np.flatnonzero(granularity == FACT).tolist()
        for turn in turns[place]
        if turn in raws
    ]
    both: Ints = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _stretches(words: Words, begins: Ints, lengths: Ints) -> Words:
    """Stretches of words one after another."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(words[np.arange(total) + np.repeat(begins - (ends - lengths), lengths)])
