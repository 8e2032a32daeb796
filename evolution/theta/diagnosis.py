"""How questions failed: where wanted turns stood in the search, and what the Diagnoser is shown of it."""

from collections.abc import Mapping, Sequence
from random import Random
from statistics import fmean
from typing import Any

import numpy as np

from memcycle.agents.diagnoser import (
    AttemptView,
    Cut,
    DiagnoserInput,
    FailureView,
    HeldView,
    MissedView,
    Pattern,
    PatternView,
)
from memcycle.core.scope import Scope
from memcycle.core.theta import Theta, Views
from memcycle.evolution.records import QuestionRecord
from memcycle.evolution.task import Task
from memcycle.evolution.theta.space import views
from memcycle.stores.bank import Bank
from memcycle.stores.search.ranker import EVIDENCE, NAMES
from memcycle.stores.search.request import Query, SearchRequest
from memcycle.stores.search.search import Candidates

NEAR, FAR = 10, 50
"""Place in a view up to which that view has found a turn, and from which none has."""
CLEAR = 0.3
"""Difference of a signal from which it explains a failure, if no view tells more."""
VIEWS = ("bm25", "window", "facts", "dense", "dense_nameless", "context")
EPISODES, LONG = 0.25, 80
"""Share of tokens spent on episodes, and tokens of a mean entry, from which a budget is drowned."""
FILLED = 0.85
"""Share of the budget below which tokens are left."""


def pattern_of(record: QuestionRecord, theta: Theta) -> Pattern:
    """The one pattern that a failed question counts for, the first that fits.

    Args:
        record: Of a question that failed.
        theta: What it was asked under: a view without weight is blind.
    """
    if not record.missed:
        return _answered_wrongly(record)
    if _is_drowned(record):
        return "drowned"
    found = [one for one in record.missed if one.rank is not None]
    if not found and all(min(one.views.values(), default=FAR) >= FAR for one in record.missed):
        return "nothing retrieved"
    best = min(found, key=lambda one: one.rank or 0, default=record.missed[0])
    if best.cut == "entries" and _spent(record) < FILLED * record.shown.token_budget:
        return "too little context"
    return _misplaced(best, theta, sum(record.shown.entries.values()))


def _answered_wrongly(record: QuestionRecord) -> Pattern:
    if record.answer is None or record.error is not None:
        return "unexplained"
    return "abstained wrongly" if record.abstained else "answer format"


def _misplaced(best: MissedView, theta: Theta, places: int) -> Pattern:
    """Why others stood before a turn that was found."""
    if _blind(best, theta):
        return "view blind"
    least = max(CLEAR, *(best.edges.get(view, 0.0) for view in VIEWS))
    if max(best.edges.get("date", 0.0), best.edges.get("time_expression", 0.0)) >= least:
        return "wrong time"
    if abs(best.edges.get("speaker", 0.0)) >= least:
        return "wrong entity"
    nearly = best.rank is not None and best.rank <= max(places, 1) * 3 // 2
    return "too little context" if nearly else "outranked"


def _blind(missed: MissedView, theta: Theta) -> bool:
    """Whether only a view without weight has found it."""
    weights = theta.weights.model_dump()
    depth = {"bm25": theta.views.lexical, "window": theta.views.lexical, "facts": theta.views.lexical}
    open_ = {name for name in missed.views if weights.get(name) and depth.get(name, theta.views.dense)}
    best = min((missed.views[name] for name in open_), default=NEAR + 1)
    return any(rank <= NEAR and rank < best for name, rank in missed.views.items() if name not in open_)


def _is_drowned(record: QuestionRecord) -> bool:
    tokens, entries = record.shown.tokens, sum(record.shown.entries.values())
    spent = _spent(record)
    if not entries or not spent:
        return False
    return tokens.get("episode", 0) > EPISODES * spent or spent > LONG * entries


def _spent(record: QuestionRecord) -> int:
    return sum(record.shown.tokens.values())


def diagnoser_input(
    records: Sequence[QuestionRecord], theta: Theta, task: Task, tried: Sequence[Mapping[str, Any]]
) -> DiagnoserInput:
    """The Diagnoser's input.

    Args:
        records: Of the training split under `theta`; no other split's may come here.
        theta: The configuration that is to be changed.
        task: What is to grow, and how many failures are shown.
        tried: What earlier rounds changed, and what became of it.
    """
    by_pattern: dict[Pattern, list[QuestionRecord]] = {}
    for record in records:
        if task.has_failed(record):
            # Scored as it is; what tells why is taken away after that.
            seen = record.blanked() if task.blank else record
            by_pattern.setdefault(pattern_of(seen, theta), []).append(seen)
    groups = sorted(by_pattern.items(), key=lambda one: -len(one[1]))
    chosen = _sampled([(name, one) for name, own in groups for one in own], task)
    return DiagnoserInput(
        objective=task.aim,
        score=task.score(records),
        token_budget=task.token_budget,
        dimensions=views(theta),
        patterns=[
            PatternView(name=name, count=len(own), share=round(len(own) / len(records), 4))
            for name, own in groups
        ],
        held=[] if task.blank else _held(records),
        failures=[_failure(n, name, record, task) for n, (name, record) in enumerate(chosen, 1)],
        tried=[AttemptView.model_validate(one) for one in tried],
    )


def _held(records: Sequence[QuestionRecord]) -> list[HeldView]:
    """Means over the questions that had wanted turns shown."""
    told = [record.held for record in records if record.held]
    return [HeldView(signal=name, edge=edge, count=len(told)) for name, edge in _mean(told).items()]


def _sampled(
    failures: list[tuple[Pattern, QuestionRecord]], task: Task
) -> list[tuple[Pattern, QuestionRecord]]:
    """At most as many as are shown, drawn so that each pattern keeps its share."""
    if len(failures) <= task.shown:
        return failures
    places = Random(f"{task.seed} failures").sample(range(len(failures)), task.shown)  # noqa: S311
    return [failures[place] for place in sorted(places)]


def _failure(n: int, pattern: Pattern, record: QuestionRecord, task: Task) -> FailureView:
    alike = {name: getattr(record, name) for name in ("question", "category", "shown", "answer")}
    return FailureView(
        n=n,
        pattern=pattern,
        score=round(task.value(record) or 0.0, 4),
        wanted=len(record.wanted),
        missed=list(record.missed),
        gold=record.gold if record.answer is not None else None,
        **alike,
    )


LOOKED = 150
"""Turns down to which the order is read."""
RIVALS = 10
"""The best others that a wanted turn is compared with."""
_FAINT = 0.005
"""Smaller differences are left out."""


def standing_of(
    bank: Bank,
    scope: Scope,
    theta: Theta,
    question: str,
    *,
    missed: Sequence[str],
    shown: Sequence[str],
    full: bool,
) -> dict[str, Any]:
    """`missed` and `held` of a record: how the search ranks wanted turns, among all turns as they were said.

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
    cut: Cut = "entries" if full else "tokens"
    views = tuple(
        MissedView(
            rank=ranks.get(turn),
            cut=cut if turn in ranks else "not found",
            facts=sum(turn in fact.turns for fact in facts),
            views=_places(looked, own[turn]) if turn in own else {},
            edges=edges.get(turn, {}),
        )
        for turn in missed
    )
    return {"missed": views, "held": _mean([edges[turn] for turn in shown if turn in edges])}


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
