"""Consolidation: whether a proposed fact is stored beside what is there, united with it, or left out."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from memcycle.agents.consolidator import ConsolidatorOutput
from memcycle.core.edit import Edit
from memcycle.core.entry import Entry, new_entry, same_speaker, same_text
from memcycle.core.language.sentences import NEGATION
from memcycle.core.language.tokens import content_stems
from memcycle.core.probe import REPAIRER, Decision
from memcycle.graph.facts import Grounded
from memcycle.graph.organisation import Decided, Made, fact_entry

_PIECES = re.compile(r"[;.!?\n]+|,\s+and\s+")
_EXACT = re.compile(r"\d+|(?<!^)\b[A-Z]\w+")
"""Numbers, and names inside a sentence: what a merged text may never lose."""

_OWN = {"id", "scope", "granularity", "text", "turns"}
"""What a merged entry does not take over."""


class Consolidated(NamedTuple):
    """What is done: with which stored fact, under which text (MERGE), and why."""

    decision: Decision
    target: Entry | None
    text: str
    why: str


def decide(output: ConsolidatorOutput, item: Grounded) -> Consolidated:
    """The Consolidator's decision as far as code lets it stand; else INSERT with the reason."""
    if output.decision == "INSERT":
        return Consolidated("INSERT", None, "", output.why)
    n = output.memory
    if n is None or not 0 <= n < len(item.near):
        return Consolidated("INSERT", None, "", f"memory {n}, which it names, was not shown")
    target = item.near[n]
    veto = _veto(item, target)
    if veto:
        return Consolidated("INSERT", None, "", veto)
    if output.decision == "SKIP":
        return Consolidated("SKIP", target, "", output.why)
    return _merged(output, item, target)


def _merged(output: ConsolidatorOutput, item: Grounded, target: Entry) -> Consolidated:
    text = merged_text(output.text, item.draft.text, target.text)
    if text is None:
        return Consolidated("INSERT", None, "", "no single statement says what both say")
    if same_text(text) == same_text(target.text) and item.turn.id in target.turns:
        return Consolidated("SKIP", target, "", "the stored fact says it, and rests on that turn already")
    return Consolidated("MERGE", target, text, output.why)


def _veto(item: Grounded, target: Entry) -> str:
    """Why the two cannot be one fact, whatever a model says; empty if they can."""
    if item.differs_in_time(target):
        return "it is of another date than the stored fact"
    if target.speaker and not same_speaker(item.speaker, target.speaker):
        return "the stored fact is told of another person"
    if bool(NEGATION.search(item.draft.text)) != bool(NEGATION.search(target.text)):
        return "one denies what the other states"
    return ""


def merged_text(text: str, proposal: str, stored: str) -> str | None:
    """One statement for two: `text` if it may stand; else the one of the two that holds the other.

    It says nothing twice and nothing that neither says, keeps what both share, every number and
    name of either, and, where the two are alike but for one word (walnuts, cashews), both words.

    Returns:
        None where there is no such statement.
    """
    new, old = content_stems(proposal), content_stems(stored)
    both = set(new) | set(old)
    required = (set(new) & set(old)) | _exact(proposal) | _exact(stored) | _swapped(new, old)
    stems = set(content_stems(text))
    if text.strip() and required <= stems <= both and not says_twice(text):
        return text.strip()
    if set(new) <= set(old):
        return stored
    return proposal if set(old) <= set(new) else None


def _exact(text: str) -> set[str]:
    return {stem for word in _EXACT.findall(text) for stem in content_stems(word)}


def _swapped(new: Sequence[str], old: Sequence[str]) -> set[str]:
    """The one word of each in which two statements of the same words differ, if that is all."""
    different = [pair for pair in zip(new, old, strict=False) if pair[0] != pair[1]]
    return set(different[0]) if len(new) == len(old) and len(different) == 1 else set()


def says_twice(text: str) -> bool:
    """Whether a piece of the text says again what another piece says ("X; X")."""
    pieces = [set(content_stems(piece)) for piece in _PIECES.split(text)]
    said: Sequence[set[str]] = [piece for piece in pieces if piece]
    return any(one <= other for n, one in enumerate(said) for m, other in enumerate(said) if n != m)


def merged_edit(item: Grounded, chosen: Consolidated, made: Made) -> Edit:
    """One entry in place of the stored fact and the proposal, resting on the turns of both."""
    target = chosen.target
    assert target is not None  # noqa: S101 - a merge has one
    draft = item.draft.model_copy(update={"text": chosen.text})
    decided = Decided(draft, item.turn, item.related, "ADD", None, chosen.why, actor=REPAIRER)
    fresh = fact_entry(decided, made)
    if same_text(chosen.text) == same_text(target.text):
        return Edit(op="MERGE", target=target.id, entry=fresh, reason=chosen.why, actor=REPAIRER)
    carried = {name: getattr(fresh, name) for name in Entry.model_fields if name not in _OWN}
    # Without a date of its own it is of the stored fact's; what was said last is what it rests on.
    if fresh.event_time is None:
        carried |= {"event_time": target.event_time, "event_precision": target.event_precision}
    times = [time for time in (fresh.observed_at, target.observed_at) if time is not None]
    carried |= {
        "observed_at": max(times, default=None),
        "importance": max(fresh.importance, target.importance),
    }
    for name in ("persons", "entities", "locations", "topics", "keywords", "related_turns"):
        carried[name] = tuple(dict.fromkeys((*getattr(target, name), *carried[name])))
    turns = tuple(dict.fromkeys((*target.turns, *fresh.turns)))
    entry = new_entry(fresh.scope, "fact", chosen.text, turns, **carried)
    return Edit(op="UPDATE", target=target.id, entry=entry, reason=chosen.why, actor=REPAIRER)
