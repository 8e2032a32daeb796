"""How a checked fact becomes an entry: immutable, linked to what it supersedes (AMA's fact granularity)."""

from dataclasses import dataclass
from typing import Literal

from memcycle.agents.constructor import FactDraft
from memcycle.core.edit import Edit
from memcycle.core.entry import CORRECTS, Entry, new_entry
from memcycle.core.language.names import NAMES, borne_out, entities_of, person_names, places_of
from memcycle.core.language.sentences import corrects, split_sentences
from memcycle.core.language.tokens import content_stems, per_text
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn

PIPELINE = "shipped"
"""Version of the pipeline, recorded on what it makes."""
SHORT = 3
"""Sentences of a turn that speak of one thing: what one of them corrects, all do."""


@dataclass(frozen=True)
class Decided:
    """A fact that passed every check, and what it does to memory.

    Attributes:
        draft: As constructed. turn: its source. related: turns it refers to.
        op: ADD (where there is a `target`, as what held before it), UPDATE (`target` is superseded by it)
            or MERGE (`target` says the same).
    """

    draft: FactDraft
    turn: Turn
    related: tuple[str, ...]
    op: Literal["ADD", "UPDATE", "MERGE"]
    target: Entry | None
    reason: str
    actor: str = "constructor"


@dataclass(frozen=True)
class Made:
    """What makes entries, recorded on each of them: model, and version of its prompt."""

    scope: Scope
    model: str
    prompt: str | None = None


def fact_edit(fact: Decided, made: Made) -> Edit:
    """The edit that does what was decided."""
    target = fact.target.id if fact.target else None
    entry = fact_entry(fact, made)
    return Edit(op=fact.op, entry=entry, target=target, reason=fact.reason, actor=fact.actor)


def _labels(draft: FactDraft, turn: Turn) -> dict[str, list[str]]:
    """The names a draft gives, else those that its words hold."""
    given: dict[str, list[str]] = {name: getattr(draft, name) for name in NAMES}
    if any(given.values()):
        return given
    persons = person_names(draft.text, [turn.speaker])
    found = {"persons": persons, "locations": places_of(draft.text, persons)}
    return given | found | {"entities": entities_of(draft.text, persons)}


def fact_entry(fact: Decided, made: Made) -> Entry:
    """The entry of one fact, with the labels that its words bear out.

    What it contradicts or repeats is settled by the edit, not here.
    """
    draft, turn = fact.draft, fact.turn
    sources = (draft.text, turn.text, turn.speaker, draft.speaker or "")
    return new_entry(
        made.scope.within(turn.session),
        "fact",
        draft.text,
        (turn.id,),
        kind=draft.kind,
        pattern=draft.pattern,
        speaker=draft.speaker or turn.speaker,
        role=turn.role,
        related_turns=fact.related,
        quote=draft.quote or None,
        event_time=draft.event_time,
        event_precision=draft.event_precision if draft.event_time else None,
        valid_from=draft.event_time or turn.time,
        observed_at=turn.time,
        topics=tuple(draft.topics),
        **{name: borne_out(labels, *sources) for name, labels in _labels(draft, turn).items()},
        importance=draft.importance,
        confidence=draft.confidence,
        metadata={CORRECTS: True} if _corrects(fact) else {},
        actor=fact.actor,
        model=made.model,
        prompt=made.prompt,
        pipeline=PIPELINE,
    )


def _corrects(fact: Decided) -> bool:
    """Whether it was said to correct something: in its own words, or in those beside it in its turn."""
    beside, stems = _corrections(fact.turn.text)
    return corrects(fact.draft.text) or beside or not stems.isdisjoint(content_stems(fact.draft.text))


@per_text(64)
def _corrections(text: str) -> tuple[bool, frozenset[str]]:
    """Whether a text corrects something and is so short that all of it is about that; and the content stems
    of its sentences that correct. Cached: a turn is asked for one statement after another."""
    said = [sentence for _, _, sentence in split_sentences(text)]
    correcting = [one for one in said if corrects(one)]
    stems = frozenset(stem for one in correcting for stem in content_stems(one))
    return bool(correcting) and len(said) <= SHORT, stems
