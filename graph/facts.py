"""Each new fact is checked once more before it is stored: what it does to memory, and as which entry."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import time
from typing import Literal

from memcycle.agents.constructor import FactDraft
from memcycle.agents.fact_judge import FactJudgeInput, FactVerdict, NewFact
from memcycle.agents.views import MemoryView, TurnView
from memcycle.core.edit import Edit, Rejected
from memcycle.core.entry import CORRECTS, Entry, is_older, new_entry, same_speaker, same_text
from memcycle.core.errors import EmbeddingFailed
from memcycle.core.language.date_forms import Precision, another_occasion
from memcycle.core.language.names import NAMES, borne_out, entities_of, person_names, places_of
from memcycle.core.language.sentences import corrects, split_sentences
from memcycle.core.language.tokens import content_stems, per_text
from memcycle.core.turn import Turn
from memcycle.graph.approval import REJECTED_BEFORE, of_turn
from memcycle.graph.environment import GraphRun, Made
from memcycle.graph.guards import (
    ANOTHER_MATTER,
    best_source,
    exact,
    excludes,
    plainly_said,
    relative_reading,
    same_matter,
    stands_in,
    support,
)
from memcycle.graph.search import look_for, named
from memcycle.graph.states import ConflictRef
from memcycle.stores.search.request import Hit

NEAREST = 5
CLOSE_WORDS = 0.5
SHORT = 3
"""Sentences of a turn that speak of one thing: what one of them corrects, all do."""


@dataclass(frozen=True)
class Grounded:
    """A draft with its source turn, the turns it refers to, and the stored facts nearest to it."""

    draft: FactDraft
    turn: Turn
    related: tuple[str, ...]
    near: tuple[Entry, ...] = ()
    close: bool = False

    def is_doubtful(self, told: Set[str]) -> bool:
        """Whether it changes what is stored, holds a number that its turn does not, or a name that none does.

        Args:
            told: Stems of all that was shown.
        """
        strange = exact(self.draft.text) - set(content_stems(self.turn.text))
        unsaid = any(stem.isdigit() or stem not in told for stem in strange)
        return self.draft.edit in ("UPDATE", "DELETE") or unsaid

    @property
    def speaker(self) -> str:
        """Whom it is told of: who said its turn, unless the draft names another."""
        return self.draft.speaker or self.turn.speaker

    def repeats(self, entry: Entry) -> bool:
        """Whether it says what a stored fact says, in the same words, of the same person and occasion."""
        alike = same_text(self.draft.text) == same_text(entry.text)
        return alike and same_speaker(self.speaker, entry.speaker) and not self.differs_in_time(entry)

    def differs_in_time(self, entry: Entry) -> bool:
        """Whether the two are dated so that they cannot be of one occasion."""
        draft = self.draft
        return another_occasion(
            draft.event_time, draft.event_precision, entry.event_time, entry.event_precision
        )

    @property
    def is_echo(self) -> bool:
        """Whether it repeats a stored fact on a turn that shares no word with it: the model was shown that
        fact, nobody said it again."""
        return support(self.draft.text, self.turn) == 0 and any(self.repeats(entry) for entry in self.near)


@dataclass
class Outcome:
    """What came of what roles proposed.

    `supersede`: deletions that may become supersessions. `unread`: whether facts could not be embedded.
    """

    edits: list[Edit] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    supersede: list[ConflictRef] = field(default_factory=list)
    unread: bool = False

    def refuse(self, text: str, why: str) -> None:
        """Notes a statement that is not stored, or a stored one that stays."""
        self.rejected.append(Rejected(text=text, why=why))


def ground(
    drafts: Sequence[FactDraft], numbered: Mapping[int, Turn], chunk: Sequence[Turn], outcome: Outcome
) -> list[Grounded]:
    """Drafts with a human source turn. `numbered` holds what the Constructor was shown, chunk and window.

    A fact rests on a turn of the chunk that a person said: assistant and tool text are no evidence.
    A draft whose number is not of the chunk goes to the turn that supports it best. A time that depends on
    the day it was said is read where the Constructor did not: the same words on another day are another fact.
    """
    own = {turn.id for turn in chunk}
    grounded, seen = [], set[tuple[str, str]]()
    for draft in drafts:
        cited = numbered.get(draft.turn)
        outcome.warnings += [
            f"the Constructor cited turn {n}, which was not shown, for: {draft.text}"
            for n in (draft.turn, *draft.related_turns)
            if n and n not in numbered
        ]
        turn = cited if cited is not None and cited.id in own else best_source(draft.text, chunk)
        if not draft.text.strip():
            outcome.refuse(draft.text, "an empty statement")
        elif turn is None:
            outcome.refuse(draft.text, "no turn a person said supports it")
        elif not turn.is_evidence:
            why = f"only {turn.role} text ({turn.id}) says so, which is no evidence about a person"
            outcome.refuse(draft.text, why)
        elif (turn.id, same_text(draft.text)) not in seen:
            seen.add((turn.id, same_text(draft.text)))
            related = tuple(
                numbered[n].id for n in draft.related_turns if n in numbered and numbered[n] != turn
            )
            grounded.append(Grounded(_with_time(draft, turn), turn, related))
    return grounded


def _with_time(draft: FactDraft, turn: Turn) -> FactDraft:
    """The draft with a quote that stands in its turn, if any, and the reading of its relative time."""
    changes: dict[str, object] = {"quote": draft.quote if stands_in(draft.quote, turn.text) else ""}
    reading = relative_reading(draft.text, turn.time)
    if reading is not None and draft.event_time is None:
        changes |= {"event_time": reading.start, "event_precision": reading.precision}
    elif draft.event_time is not None and draft.event_precision is None:
        exactly: Precision = "day" if draft.event_time.time() == time.min else "minute"
        changes["event_precision"] = reading.precision if reading is not None else exactly
    return draft.model_copy(update=changes)


def with_nearest(run: GraphRun, grounded: Sequence[Grounded], outcome: Outcome) -> list[Grounded]:
    """The same with their nearest stored facts: one search for all.

    Where the embedder fails on that, those that cannot be embedded are refused with the reason, and their
    turns are read again by the next run.
    """
    try:
        return _nearest(run, grounded)
    except EmbeddingFailed:
        texts = [run.bank.redactor.text(item.draft.text) for item in grounded]
        _, failed = run.bank.indexes.vectors.of_what_works(texts)
        for text in failed:
            outcome.refuse(text, failed[text])
            outcome.unread = True
        able = [item for item, text in zip(grounded, texts, strict=True) if text not in failed]
        return _nearest(run, able)


def _nearest(run: GraphRun, grounded: Sequence[Grounded]) -> list[Grounded]:
    if not grounded:
        return []
    results = look_for(run, (item.draft.text for item in grounded), ("fact",), NEAREST)
    return [
        replace(
            item,
            near=tuple(hit.entry for hit in hits),
            close=any(_is_close(item, hit, run.theta.duplicate) for hit in hits),
        )
        for item, hits in zip(grounded, results, strict=True)
    ]


def _is_close(item: Grounded, hit: Hit, duplicate: float) -> bool:
    cosine = max((why.score for why in hit.why if why.view == "dense"), default=0.0)
    return cosine >= duplicate or shared_words(hit.entry.text, item.draft.text) >= CLOSE_WORDS


def shared_words(left: str, right: str) -> float:
    """Content stems two texts share, as a share of all they have (Jaccard, 0 to 1)."""
    a, b = set(content_stems(left)), set(content_stems(right))
    return len(a & b) / len(a | b) if a | b else 0.0


def fact_judge_input(
    run: GraphRun, grounded: Sequence[Grounded], supersede: Sequence[ConflictRef], turns: Iterable[Turn]
) -> FactJudgeInput:
    """The facts that code alone cannot settle: weak support, or a close stored fact; for the Judge.

    Where calls are shared, only where code has a doubt: see `Grounded.is_doubtful`.
    """
    waiting = {ref["turn"] for ref in supersede}
    lean = run.is_lean("fact_judge")
    told = {stem for turn in turns if lean for stem in content_stems(f"{turn.speaker} {turn.text}")}
    unsettled = [
        NewFact(
            n=n,
            text=item.draft.text,
            speaker=item.speaker,
            turn=TurnView.of(1, item.turn),
            event_time=item.draft.event_time,
            near=[MemoryView.of(i, entry) for i, entry in enumerate(item.near)],
        )
        for n, item in enumerate(grounded, 1)
        if (
            item.is_doubtful(told)
            if lean
            else item.close or item.turn.id in waiting or not plainly_said(item.draft.text, item.turn)
        )
    ]
    return FactJudgeInput(facts=unsettled, now=run.now())


def decide(
    run: GraphRun,
    grounded: Sequence[Grounded],
    verdicts: Mapping[int, FactVerdict],
    *,
    shown: Sequence[Entry],
    waiting: Sequence[tuple[str, Entry]],
    outcome: Outcome,
) -> None:
    """What each fact does to memory; fills `outcome`.

    Args:
        grounded: The facts.
        verdicts: The Judge's by number of the fact, from 1; without one a fact is supported and new.
        shown: The memories an edit of the Constructor may name, by number.
        waiting: Memories whose deletion was refused, each with the id of a turn that contradicts it.
    """
    made = run.made("constructor")
    heirs = {_heir(grounded, turn, memory): memory for turn, memory in reversed(waiting)}
    for n, item in enumerate(grounded, 1):
        verdict = verdicts.get(n, FactVerdict(n=n, supported=True))
        if not verdict.supported:
            outcome.refuse(item.draft.text, verdict.why or f"its turn {item.turn.id} does not say so")
            continue
        edited = None if item.draft.edit == "ADD" else item.draft.target
        target = named(edited, shown, f"the Constructor, of {item.draft.text!r},", outcome.warnings)
        target = target if target is not None and target.granularity == "fact" else None
        if target is not None and item.draft.edit == "DELETE" and item.repeats(target):
            outcome.refuse(item.draft.text, "ignored: a deletion that rests only on an equal statement")
            continue
        if item.is_echo:
            why = f"it repeats a stored fact that its turn {item.turn.id} does not speak of"
            outcome.refuse(item.draft.text, why)
            continue
        near = named(verdict.near, item.near, f"the Judge, of {item.draft.text!r},", outcome.warnings)
        op, chosen, why = _edit_of(item, verdict, near, target or heirs.get(n - 1))
        if op == "UPDATE" and chosen is not None and not same_matter(item.draft.text, item.speaker, chosen):
            outcome.refuse(chosen.text, ANOTHER_MATTER)
            op, chosen, why = "ADD", None, ""
        if run.settings.approval.is_asked and _declined(run, item, chosen):
            outcome.refuse(item.draft.text, REJECTED_BEFORE)
            continue
        if op == "UPDATE" and not run.switches.refresher:
            op, chosen, why = "ADD", None, "the Refresher is switched off"
        if op != "MERGE" and run.switches.refresher and (later := _earlier(item, chosen, made)):
            op, chosen = "ADD", later
        outcome.edits.append(
            Edit(
                op=op,
                entry=fact_entry(item.draft, item.turn, made, related=item.related),
                target=chosen.id if chosen else None,
                reason=why,
                actor="constructor",
            )
        )
    _report_kept([memory for _, memory in waiting], outcome)


def _declined(run: GraphRun, item: Grounded, chosen: Entry | None) -> bool:
    """Whether a person rejected what the turn says in place of a stored fact, in whatever words."""
    known = [one for one in (chosen, *item.near) if one is not None]
    close = [one for one in known if same_matter(item.draft.text, item.speaker, one)]
    return run.bank.declined(run.scope, [of_turn(one.id, item.turn.id) for one in close])


def _report_kept(waiting: Sequence[Entry], outcome: Outcome) -> None:
    """Says which memories the Refresher wanted deleted and no new fact replaces."""
    replaced = {edit.target for edit in outcome.edits if edit.op == "UPDATE"}
    told = {one.text for one in outcome.rejected if one.why == ANOTHER_MATTER}
    why = "deletion needs the user's own quoted words, and no new fact replaces it"
    for memory in {memory.id: memory for memory in waiting}.values():
        if memory.id not in replaced and memory.text not in told:
            outcome.refuse(memory.text, why)


def _heir(grounded: Sequence[Grounded], turn: str, memory: Entry) -> int | None:
    """Index of the fact of that turn that speaks most of what the memory speaks of."""

    def nearness(n: int) -> tuple[bool, float]:
        text = grounded[n].draft.text
        return same_matter(text, grounded[n].speaker, memory), shared_words(text, memory.text)

    own = [n for n, item in enumerate(grounded) if item.turn.id == turn]
    return max(own, key=nearness, default=None)


def _earlier(item: Grounded, chosen: Entry | None, made: Made) -> Entry | None:
    """The later fact before which this one held: the chosen one, or the nearest that fills the same slot."""
    known = [chosen] if chosen else [one for one in item.near if excludes(one, item.draft.text, item.speaker)]
    entry = fact_entry(item.draft, item.turn, made) if known else None
    return next((one for one in known if entry is not None and is_older(entry, one)), None)


def _edit_of(
    item: Grounded, verdict: FactVerdict, near: Entry | None, target: Entry | None
) -> tuple[Literal["ADD", "UPDATE", "MERGE"], Entry | None, str]:
    if near is not None and verdict.relation == "duplicate" and not item.differs_in_time(near):
        return "MERGE", near, verdict.why or "says the same"
    if target is not None and same_text(target.text) == same_text(item.draft.text):
        if item.repeats(target):
            return "MERGE", target, "says the same"
        return "ADD", None, "the same on another occasion"
    if target is not None and item.draft.edit != "NONE":
        return "UPDATE", target, verdict.why or "the new statement replaces it"
    if near is not None and verdict.relation == "conflict":
        return "UPDATE", near, verdict.why or "the new statement contradicts it"
    return "ADD", None, ""


def _labels(draft: FactDraft, turn: Turn) -> dict[str, list[str]]:
    """The names a draft gives, else those that its words hold."""
    given: dict[str, list[str]] = {name: getattr(draft, name) for name in NAMES}
    if any(given.values()):
        return given
    persons = person_names(draft.text, [turn.speaker])
    found = {"persons": persons, "locations": places_of(draft.text, persons)}
    return given | found | {"entities": entities_of(draft.text, persons)}


def fact_entry(
    draft: FactDraft, turn: Turn, made: Made, *, related: tuple[str, ...] = (), actor: str = "constructor"
) -> Entry:
    """The entry of one fact, with the labels that its words bear out; `related`: ids of turns it refers to.

    What it contradicts or repeats is settled by the edit, not here.
    """
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
        related_turns=related,
        quote=draft.quote or None,
        event_time=draft.event_time,
        event_precision=draft.event_precision if draft.event_time else None,
        valid_from=draft.event_time or turn.time,
        observed_at=turn.time,
        topics=tuple(draft.topics),
        **{name: borne_out(labels, *sources) for name, labels in _labels(draft, turn).items()},
        importance=draft.importance,
        confidence=draft.confidence,
        metadata={CORRECTS: True} if _corrects(draft.text, turn) else {},
        actor=actor,
        model=made.model,
        prompt=made.prompt,
        pipeline=made.pipeline,
    )


def _corrects(text: str, turn: Turn) -> bool:
    """Whether a fact was said to correct something: in its own words, or in those beside it in its turn."""
    beside, stems = _corrections(turn.text)
    return corrects(text) or beside or not stems.isdisjoint(content_stems(text))


@per_text(64)
def _corrections(text: str) -> tuple[bool, frozenset[str]]:
    """Whether a text corrects something and is so short that all of it is about that; and the content stems
    of its sentences that correct. Cached: a turn is asked for one statement after another."""
    said = [sentence for _, _, sentence in split_sentences(text)]
    correcting = [one for one in said if corrects(one)]
    stems = frozenset(stem for one in correcting for stem in content_stems(one))
    return bool(correcting) and len(said) <= SHORT, stems
