"""Repairer by rules: the statement of the source turn that gives a failed probe's answer (MemMA 3.4)."""

from collections.abc import Sequence

from memcycle.agents.constructor import FactDraft
from memcycle.agents.grader import GradeItem
from memcycle.agents.repairer import RepairerInput, RepairerOutput, RepairFact
from memcycle.agents.rules.containment import Stated, says_all
from memcycle.agents.rules.evidence_span import statement_of
from memcycle.agents.rules.grader import grade
from memcycle.agents.views import MemoryView, TurnView
from memcycle.core.language.dates import format_time
from memcycle.core.language.sentences import split_sentences


def repairer(value: RepairerInput) -> RepairerOutput:
    """ADD_FACT with what the source turn states, worded as the Constructor words it; NOOP in doubt.

    NOOP where a stored fact says the gold answer already (`hard to find`), where the source is no turn that a
    person said, or does not hold the answer. An episode or a turn that holds it is no fact: what it says may
    still be missing as one. What the Constructor's grammar cannot word is quoted after the speaker's name,
    with less confidence.
    """
    source = next((turn for turn in value.turns if turn.n == value.source), None)
    if source is None or source.role != "human":
        return RepairerOutput(op="NOOP", why="its source is no turn that a person said")
    facts = [memory for memory in value.memories if memory.granularity == "fact"]
    known = next((memory for memory in facts if _answers(value, memory)), None)
    if known is not None:
        return _known(known)
    draft = statement_of(value.question, value.gold, source, value.turns)
    if draft is None:
        return RepairerOutput(op="NOOP", why="the source turn does not say so")
    known = _stored(draft, source, facts)
    return _known(known) if known is not None else _repair(draft)


def _stored(draft: FactDraft, source: TurnView, facts: Sequence[MemoryView]) -> MemoryView | None:
    """A fact that says what a draft says, or the first of several that say it sentence by sentence."""
    whole = Stated(draft.text, draft.speaker, source.time, draft.event_time, draft.event_precision)
    pieces = [Stated(text, draft.speaker, source.time) for _, _, text in split_sentences(draft.text)]
    return _first(whole, facts) or (
        _first(pieces[0], facts) if all(_first(piece, facts) for piece in pieces) else None
    )


def _first(stated: Stated, facts: Sequence[MemoryView]) -> MemoryView | None:
    return next((memory for memory in facts if says_all(Stated.of(memory), stated)), None)


def _answers(value: RepairerInput, memory: MemoryView) -> bool:
    """Whether a memory, with its times written out, would be graded as a right answer."""
    stated = Stated.of(memory)
    times = sorted(stated.when) or ([(stated.said, "day")] if stated.said else [])
    dated = f"{memory.text} ({', '.join(format_time(start, precision) for start, precision in times)})"
    item = GradeItem(n=1, question=value.question, gold=value.gold, answer=dated if times else memory.text)
    return grade(item).correct


def _known(memory: MemoryView) -> RepairerOutput:
    return RepairerOutput(op="NOOP", cause="hard to find", why=f"memory {memory.n} says so")


def _repair(draft: FactDraft) -> RepairerOutput:
    fact = RepairFact(**{name: getattr(draft, name) for name in RepairFact.model_fields})
    return RepairerOutput(op="ADD_FACT", cause="missing", fact=fact, why="no stored fact says so")
