"""What a recall gives back: evidence chosen within its budgets, and the answer that rests on it."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from memcycle.agents.views import MemoryView
from memcycle.core.departure import departure
from memcycle.core.entry import GRANULARITIES, Entry
from memcycle.core.language.token_count import token_counter
from memcycle.core.scope import Scope
from memcycle.core.validity import is_correction
from memcycle.graph.assembly import Limits, Piece, assemble
from memcycle.graph.context import run_context
from memcycle.graph.environment import Env
from memcycle.graph.states import Candidate, RecallState

OUTDATED_SCORE = 0.5
"""A superseded fact takes its turns down by this factor; it does not hide them."""


class Shown(NamedTuple):
    """An entry that is shown, how it was found, and whether a newer one contradicts it.

    `score`: the weight of what it says, halved where it is outdated; 0 to 1.
    """

    entry: Entry
    candidate: Candidate
    outdated: bool
    score: float


def evidence(env: Env, scope: Scope, state: RecallState) -> list[Shown]:
    """The entries that are shown, best first: current ones before outdated ones, chosen for what they cover
    within k and tokens."""
    found = {one.entry.id: one for one in ranked(env, scope, state)}
    pieces = [Piece(one.entry, one.score, not one.outdated) for one in found.values()]
    chosen = assemble(pieces, _limits(env, state), token_counter().count)
    return [found[piece.entry.id]._replace(score=piece.score) for piece in chosen]


def _limits(env: Env, state: RecallState) -> Limits:
    theta, context = env.theta_of(state.get("category")), run_context()
    plans = state.get("plans")
    shares = getattr(theta.routing, plans[0]["operator"] if plans else "fact")
    return Limits(
        k=context.k or theta.k,
        token_budget=context.token_budget or theta.token_budget,
        turns_first=theta.turns_first,
        episodes=shares.episode,
    )


def judged(env: Env, scope: Scope, state: RecallState) -> list[Entry]:
    """What the Judge is shown: the best candidates one by one, as they were found, within k and tokens.

    Unlike the evidence with each fact beside its turn, since conflicts are settled between facts.
    """
    limits = _limits(env, state)
    entries = [one.entry for one in ranked(env, scope, state)[: limits.k]]
    spent = list(accumulate(token_counter().count(entry.text) for entry in entries))
    return [entry for n, entry in enumerate(entries) if n == 0 or spent[n] <= limits.token_budget]


def ranked(env: Env, scope: Scope, state: RecallState) -> list[Shown]:
    """All candidates that memory still holds, best first, current ones before outdated ones."""
    by_id = {candidate["id"]: candidate for candidate in state.get("candidates") or []}
    entries = [entry for entry in env.bank().get(scope, list(by_id)) if entry.status in ("active", "staged")]
    old = _outdated(env, scope, entries, state)
    found = [
        Shown(
            entry=entry,
            candidate=by_id[entry.id],
            outdated=entry.id in old,
            score=by_id[entry.id]["score"] * (OUTDATED_SCORE if entry.id in old else 1.0),
        )
        for entry in entries
    ]
    return sorted(found, key=lambda one: (-one.score, one.entry.id))


def chronological(env: Env, scope: Scope, shown: Sequence[Shown]) -> list[Shown]:
    """Evidence in the order in which it was said; the turns of a session, which may share a time, by place.

    A fact or an episode comes right after the last of its turns. What has no time comes last.
    """
    turns = env.bank().turns(scope, {turn for one in shown for turn in one.entry.turns})
    places = {turn.id: turn.position for turn in turns}

    def said(one: Shown) -> tuple[bool, float, str, int, int, str]:
        entry, time = one.entry, one.entry.observed_at
        place = max((places.get(turn, 0) for turn in entry.turns), default=0)
        return (
            time is None,
            time.timestamp() if time else 0.0,
            entry.scope.session or "",
            place,
            GRANULARITIES.index(entry.granularity),
            entry.id,
        )

    return sorted(shown, key=said)


def shown_views(shown: Sequence[Shown]) -> list[MemoryView]:
    """Evidence as roles see it, under the numbers from 0 on, in its order."""
    return [MemoryView.of(n, one.entry, current=not one.outdated) for n, one in enumerate(shown)]


def _outdated(env: Env, scope: Scope, entries: Sequence[Entry], state: RecallState) -> set[str]:
    """Ids of entries a newer one contradicts: settled in this recall, or the turns and episodes that say what
    a contradicted or deleted fact said, or facts read from a turn that a person has corrected since."""
    facts = [entry for entry in entries if entry.granularity == "fact"]
    others = [entry for entry in entries if entry.granularity != "fact"]
    left = env.bank().by_turns(scope, _turns_of(entries), statuses=("superseded", "forgotten"))
    said = _turns_of(others)
    gone = [one for one in left if one.granularity == "fact" and said & set(one.turns)]
    edited = _turns_of(one for one in left if (one.granularity, one.status) == ("raw", "superseded"))
    denied = _turns_of(_contradicted(env, scope, gone))
    return {
        *(one.id for one in others if denied & set(one.turns)),
        *(one.id for one in facts if edited & set(one.turns) and not is_correction(one)),
        *(state.get("outdated") or []),
    }


def _turns_of(entries: Iterable[Entry]) -> set[str]:
    return {turn for entry in entries for turn in entry.turns}


def _contradicted(env: Env, scope: Scope, gone: Sequence[Entry]) -> list[Entry]:
    """Those of the facts that left recall whose words do not hold any more.

    Not one that left for another reason, nor one that a role merged into a statement which rests on all of
    its turns, and so says what it said.
    """
    corrected = [fact for fact in gone if departure(fact) == "corrected"]
    replaced = [fact for fact in gone if departure(fact) is None]
    heirs = env.bank().get(scope, [fact.superseded_by for fact in replaced if fact.superseded_by])
    carried = {heir.id: set(heir.turns) for heir in heirs if not is_correction(heir)}
    return corrected + [
        fact for fact in replaced if not set(fact.turns) <= carried.get(fact.superseded_by or "", set())
    ]


def evidence_item(shown: Shown) -> dict[str, Any]:
    """One piece of evidence as people and programs read it."""
    entry, candidate = shown.entry, shown.candidate
    return {
        "id": entry.id,
        "granularity": entry.granularity,
        "text": entry.text,
        "turns": list(entry.turns),
        "speaker": entry.speaker,
        "event_time": entry.event_time.isoformat() if entry.event_time else None,
        "time": entry.observed_at.isoformat() if entry.observed_at else None,
        "score": round(shown.score, 6),
        "why": candidate["why"],
    }


def answer(
    state: RecallState,
    mode: Literal["answer", "extractive", "evidence"],
    items: list[dict[str, Any]],
    *,
    shown: Sequence[Shown] = (),
    text: str | None,
    answerable: bool | None,
    confidence: float | None,
) -> dict[str, Any]:
    """The output of a recall. `answer` and `answerable` are None where none was asked for.

    Args:
        items: The evidence it gives back. shown: all that was chosen within the budgets.
    """
    tokens, exact = token_counter().all(one.entry.text for one in shown)
    return {
        "question": state["question"],
        "answer": text,
        "answerable": answerable,
        "confidence": confidence,
        "mode": mode,
        "evidence": items,
        "tokens": tokens,
        "tokens_exact": exact,
        "rounds": 1 + state.get("round", 0) + state.get("refinements", 0) + state.get("reflections", 0),
        "warnings": state.get("warnings") or [],
    }
