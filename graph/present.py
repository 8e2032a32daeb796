"""What a recall gives back: evidence cut to its budget, and the answer that rests on it."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from memcycle.agents.views import MemoryView
from memcycle.core.departure import departure
from memcycle.core.entry import Entry
from memcycle.core.language.tokens import approx_tokens
from memcycle.core.scope import Scope
from memcycle.core.validity import is_correction
from memcycle.graph.context import run_context
from memcycle.graph.environment import Env
from memcycle.graph.states import Candidate, RecallState

OUTDATED_SCORE = 0.5
"""A superseded fact takes its turns down by this factor; it does not hide them."""


class Shown(NamedTuple):
    """An entry that is shown, how it was found, and whether a newer one contradicts it."""

    entry: Entry
    candidate: Candidate
    outdated: bool


def evidence(env: Env, scope: Scope, state: RecallState) -> list[Shown]:
    """The candidates that are shown, best first: current ones before outdated ones, within k and tokens."""
    theta, context = env.settings.theta, run_context()
    by_id = {candidate["id"]: candidate for candidate in state.get("candidates") or []}
    entries = [entry for entry in env.bank().get(scope, list(by_id)) if entry.status in ("active", "staged")]
    old = _outdated(env, scope, entries, state)

    def rank(entry: Entry) -> tuple[float, str]:
        score = by_id[entry.id]["score"]
        return (-score * (OUTDATED_SCORE if entry.id in old else 1.0), entry.id)

    chosen: list[Shown] = []
    left = context.token_budget or theta.token_budget
    for entry in sorted(entries, key=rank)[: context.k or theta.k]:
        left -= approx_tokens(entry.text)
        if left < 0 and chosen:
            break
        chosen.append(Shown(entry, by_id[entry.id], entry.id in old))
    return chosen


def shown_views(shown: Sequence[Shown]) -> list[MemoryView]:
    """Evidence as roles see it, under the numbers from 0 on, in its order."""
    return [MemoryView.of(n, one.entry, current=not one.outdated) for n, one in enumerate(shown)]


def _outdated(env: Env, scope: Scope, entries: Sequence[Entry], state: RecallState) -> set[str]:
    """Ids of entries a newer one contradicts: settled in this recall, or the turns and episodes that say what
    a contradicted or deleted fact said."""
    sources = {turn for entry in entries if entry.granularity != "fact" for turn in entry.turns}
    gone = env.bank().by_turns(scope, sources, "fact", statuses=("superseded", "forgotten"))
    turns = {turn for fact in _contradicted(env, scope, gone) for turn in fact.turns}
    old = {entry.id for entry in entries if entry.granularity != "fact" and turns & set(entry.turns)}
    return old | _of_edited_turns(env, scope, entries) | set(state.get("outdated") or [])


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


def _of_edited_turns(env: Env, scope: Scope, entries: Sequence[Entry]) -> set[str]:
    """Ids of facts read from a turn that a person has corrected since."""
    facts = [entry for entry in entries if entry.granularity == "fact" and not is_correction(entry)]
    named = {turn for fact in facts for turn in fact.turns}
    edited = env.bank().by_turns(scope, named, "raw", statuses=("superseded",))
    turns = {turn for raw in edited for turn in raw.turns}
    return {fact.id for fact in facts if turns & set(fact.turns)}


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
        "score": candidate["score"],
        "why": candidate["why"],
    }


def answer(
    state: RecallState,
    mode: Literal["answer", "extractive", "evidence"],
    items: list[dict[str, Any]],
    *,
    text: str | None,
    answerable: bool | None,
    confidence: float | None,
) -> dict[str, Any]:
    """The output of a recall. `answer` and `answerable` are None where none was asked for."""
    return {
        "question": state["question"],
        "answer": text,
        "answerable": answerable,
        "confidence": confidence,
        "mode": mode,
        "evidence": items,
        "rounds": 1 + state.get("round", 0) + state.get("refinements", 0),
        "warnings": state.get("warnings") or [],
    }
