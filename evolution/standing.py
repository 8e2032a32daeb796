"""Where a question's wanted turns stood in the search, whether they were shown or not."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from memcycle.agents.diagnoser import Cut, MissedView
from memcycle.core.scope import Scope
from memcycle.core.theta import Theta, Views
from memcycle.stores.bank import Bank
from memcycle.stores.search.ranker import EVIDENCE, NAMES
from memcycle.stores.search.request import Query, SearchRequest
from memcycle.stores.search.search import Candidates

LOOKED = 150
"""Turns down to which the order is read."""
RIVALS = 10
"""The best others that a wanted turn is compared with."""
_FAINT = 0.005
"""Smaller differences are left out."""


class Stood(NamedTuple):
    """Where a question's wanted turns stood.

    Attributes:
        missed: Those that were not shown.
        held: By signal what those that were shown have more of than the best others, in the mean.
    """

    missed: tuple[MissedView, ...]
    held: dict[str, float]


def stood(
    bank: Bank,
    scope: Scope,
    theta: Theta,
    question: str,
    *,
    missed: Sequence[str],
    shown: Sequence[str],
    full: bool,
) -> Stood:
    """How the search ranks wanted turns, among all turns as they were said.

    Args:
        bank, scope: Where they are.
        theta: What the question was asked under. Single views are read whole, open or not.
        question: Its words.
        missed, shown: Ids of the wanted turns, of which one at least.
        full: Whether all places for entries were taken.
    """
    request = SearchRequest(
        scope=scope, queries=(Query(text=question),), granularities=("raw",), k=LOOKED, theta=theta
    )
    [hits] = bank.search(request)
    open_ = theta.model_copy(update={"views": Views()})
    [looked] = bank.indexes.search.candidates(request.model_copy(update={"theta": open_}))
    facts = bank.by_turns(scope, set(missed), "fact") if missed else []
    wanted = {*missed, *shown}
    at = {looked.snapshot.ids[place]: n for n, place in enumerate(looked.places.tolist())}
    others = [hit.entry.id for hit in hits if wanted.isdisjoint(hit.entry.turns)][:RIVALS]
    rivals = [at[name] for name in others if name in at]
    own = {turn: n for n, place in enumerate(looked.places.tolist()) for turn in looked.snapshot.turns[place]}
    edges = {turn: _edges(looked, own[turn], rivals) for turn in wanted if turn in own}
    ranks = {turn: rank for rank, hit in reversed(list(enumerate(hits, 1))) for turn in hit.entry.turns}
    views = tuple(
        MissedView(
            rank=ranks.get(turn),
            cut=_cut(ranks.get(turn), full=full),
            facts=sum(turn in fact.turns for fact in facts),
            views=_places(looked, own[turn]) if turn in own else {},
            edges=edges.get(turn, {}),
        )
        for turn in missed
    )
    return Stood(views, _mean([edges[turn] for turn in shown if turn in edges]))


def _cut(rank: int | None, *, full: bool) -> Cut:
    if rank is None:
        return "not found"
    return "entries" if full else "tokens"


def _mean(edges: Sequence[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for one in edges for name in one)
    return {name: round(fmean(one.get(name, 0.0) for one in edges), 3) for name in names}


def _places(looked: Candidates, own: int) -> dict[str, int]:
    """Its place in each view that gives it anything; equal values share one."""
    values = looked.measured.values
    return {
        name: int(1 + (values[at] > values[at, own]).sum())
        for at, name in enumerate(NAMES)
        if EVIDENCE[at] and values[at, own] > 0
    }


def _edges(looked: Candidates, own: int, rivals: Sequence[int]) -> dict[str, float]:
    """By signal what it has more of than the rivals in the mean, evidence relative to the best."""
    if not rivals:
        return {}
    values = looked.measured.relative()
    differences = values[:, own] - np.mean(values[:, list(rivals)], axis=1)
    return {
        name: round(float(difference), 3)
        for name, difference in zip(NAMES, differences, strict=True)
        if abs(difference) >= _FAINT
    }
