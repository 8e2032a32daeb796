"""How a question failed, read off its record."""

from memcycle.agents.diagnoser import MissedView, Pattern
from memcycle.core.theta import Theta
from memcycle.evolution.records import QuestionRecord

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
