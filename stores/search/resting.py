"""The facts that rest on a turn: their words are words of the turn, too."""

from collections.abc import Sequence

import numpy as np

from memcycle.core.entry import GRANULARITIES
from memcycle.stores.search.bm25 import FIELDS, Documents, Flags, Ints

RAW, FACT = GRANULARITIES.index("raw"), GRANULARITIES.index("fact")

OWN_FIELDS = FIELDS - 1
"""Fields of an entry's own row; the last one is that of the facts."""


def with_facts(
    own: Documents, turns: Sequence[tuple[str, ...]], granularity: Ints, session: Ints, staged: Flags
) -> Documents:
    """Documents with the words of facts added to those of the turns they rest on.

    A fact that is still staged counts only for turns of its own session that are staged too.

    Args:
        own: Documents without words of facts.
        turns, granularity, session, staged: As in `memcycle.stores.search.copies.Copy`.
    """
    raw, fact = _pairs(turns, granularity)
    together = (session[raw] == session[fact]) & staged[raw]
    shown = ~staged[fact] | together
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


def without_facts(documents: Documents) -> Documents:
    """The documents as they were before `with_facts`."""
    kept = np.tile(np.arange(FIELDS) < OWN_FIELDS, len(documents.rows))
    words = documents.words[np.repeat(kept, documents.fields.ravel())]
    fields = documents.fields.copy()
    fields[:, -1] = 0
    return Documents(documents.rows, fields, words)


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


def _stretches(words: Ints, begins: Ints, lengths: Ints) -> Ints:
    """Stretches of words one after another."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(words[np.arange(total) + np.repeat(begins - (ends - lengths), lengths)])
