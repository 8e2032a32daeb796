"""What of a copy a request may see, and the words of a query in it."""

from typing import NamedTuple

import numpy as np

from memcycle.core.entry import GRANULARITIES
from memcycle.stores.request import SearchRequest
from memcycle.stores.search.asked import Asked
from memcycle.stores.search.bm25 import VIEWS, Flags, Floats, Ints, Stats, weigh
from memcycle.stores.search.copies import Copy


class Lexical(NamedTuple):
    """BM25 of one query.

    Attributes:
        views: Of each entry of a copy in each view, (entries, 3), 0 to 1.
        known: Share of the query's idf mass whose words some entry holds, 0 to 1.
    """

    views: Floats
    known: float


def recallable(copy: Copy, request: SearchRequest) -> Flags:
    """What the request's session may see: active, or staged in it."""
    own = np.zeros(len(copy.rows), dtype=bool)
    if request.scope.session in copy.sessions:
        own = copy.session == copy.sessions.index(request.scope.session)
    return np.asarray(~copy.staged | own)


def visible(copy: Copy, request: SearchRequest) -> Flags:
    """What the request may see at all: of its granularities, active, or staged in its own session."""
    kinds = [GRANULARITIES.index(granularity) for granularity in request.granularities]
    return np.asarray(recallable(copy, request) & np.isin(copy.granularity, kinds))


def candidates(copy: Copy, request: SearchRequest, seen: Flags, allowed: Ints | None, now: float) -> Ints:
    """Places of what of it may become a hit.

    Args:
        seen: What the request may see, see `visible`.
        allowed: Ledger rows that pass the request's filters; None without filters.
        now: Seconds; what expired before is no hit.
    """
    pool = seen & ~(copy.expires < now)
    if allowed is not None:
        pool &= np.isin(copy.rows, allowed)
    if request.exclude:
        pool &= np.array([entry_id not in request.exclude for entry_id in copy.ids], dtype=bool)
    return np.flatnonzero(pool)


def words(copy: Copy, request: SearchRequest, seen: Flags, query: Asked) -> Lexical:
    """BM25 over a whole scope, each granularity in the statistics of what the request may see: `seen`."""
    postings = copy.index.postings(query.terms)
    views, known = np.zeros((len(copy.rows), VIEWS)), 0.0
    for granularity in request.granularities:
        docs = seen & (copy.granularity == GRANULARITIES.index(granularity))
        stats = Stats(int(docs.sum()), copy.lengths[docs].sum(axis=0))
        own, share = weigh(postings.of(docs), copy.lengths, stats, len(query.terms))
        views, known = views + own, max(known, share)
    return Lexical(views, known)
