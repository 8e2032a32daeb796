"""New facts with what they rest on: the turn that says so, turns it refers to, the nearest stored facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from memcycle.agents.constructor import FactDraft
from memcycle.core.edit import Edit, Rejected
from memcycle.core.entry import Entry, same_text
from memcycle.core.errors import EmbeddingFailed
from memcycle.core.language.readings import another_occasion
from memcycle.core.language.tokens import content_stems
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.graph.environment import Env
from memcycle.graph.guards import (
    best_source,
    plainly_said,
    relative_reading,
    stands_in,
    support,
)
from memcycle.graph.organisation import Decided
from memcycle.stores.request import Hit, Query, SearchRequest

NEAREST = 5
CLOSE_WORDS = 0.5
FAILURES_IN_A_ROW = 2
"""Facts that cannot be embedded, one after another, before the rest is given up: each waits for retries."""


@dataclass(frozen=True)
class Grounded:
    """A draft with its source turn, the turns it refers to, and the stored facts nearest to it."""

    draft: FactDraft
    turn: Turn
    related: tuple[str, ...]
    near: tuple[Entry, ...] = ()
    close: bool = False

    @property
    def supported(self) -> bool:
        """Whether its turn plainly says so, as far as code can tell."""
        return plainly_said(self.draft.text, self.turn)

    @property
    def speaker(self) -> str:
        """Whom it is told of: who said its turn, unless the draft names another."""
        return self.draft.speaker or self.turn.speaker

    def repeats(self, entry: Entry) -> bool:
        """Whether it says what a stored fact says, in the same words and of the same occasion."""
        return same_text(self.draft.text) == same_text(entry.text) and not self.differs_in_time(entry)

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
    """What came of the drafts so far. `unread`: turns with facts that could not be embedded."""

    facts: list[Decided] = field(default_factory=list)
    deletions: list[Edit] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


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
        if cited is None and draft.turn:
            warning = f"the Constructor cited turn {draft.turn}, which was not shown, for: {draft.text}"
            outcome.warnings.append(warning)
        turn = cited if cited is not None and cited.id in own else best_source(draft.text, chunk)
        if not draft.text.strip():
            outcome.rejected.append(Rejected(text=draft.text, why="an empty statement"))
        elif turn is None:
            outcome.rejected.append(Rejected(text=draft.text, why="no turn a person said supports it"))
        elif not turn.is_evidence:
            why = f"only {turn.role} text ({turn.id}) says so, which is no evidence about a person"
            outcome.rejected.append(Rejected(text=draft.text, why=why))
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
    reading = None if draft.event_time else relative_reading(draft.text, turn.time)
    if reading is not None:
        changes |= {"event_time": reading.start, "event_precision": reading.precision}
    return draft.model_copy(update=changes)


def with_nearest(env: Env, scope: Scope, grounded: Sequence[Grounded], outcome: Outcome) -> list[Grounded]:
    """The same with their nearest stored facts: one search for all.

    Where the embedder fails on that, each is searched for alone; one that cannot be embedded is refused with
    the reason, and its turn is read again by the next run.
    """
    if not grounded:
        return []
    try:
        return _nearest(env, scope, grounded)
    except EmbeddingFailed as failed:
        found: list[Grounded] = []
        in_a_row, error = 0, failed
        for item in grounded:
            if in_a_row < FAILURES_IN_A_ROW:
                try:
                    found += _nearest(env, scope, [item])
                except EmbeddingFailed as single:
                    in_a_row, error = in_a_row + 1, single
                else:
                    in_a_row = 0
                    continue
            outcome.rejected.append(Rejected(text=item.draft.text, why=str(error)))
            outcome.unread.append(item.turn.id)
        return found


def _nearest(env: Env, scope: Scope, grounded: Sequence[Grounded]) -> list[Grounded]:
    results = env.bank().search(
        SearchRequest(
            scope=scope,
            queries=tuple(Query(text=item.draft.text) for item in grounded),
            granularities=("fact",),
            k=NEAREST,
            theta=env.theta,
        )
    )
    return [_near(env, item, hits) for item, hits in zip(grounded, results, strict=True)]


def _near(env: Env, item: Grounded, hits: Sequence[Hit]) -> Grounded:
    def is_close(hit: Hit) -> bool:
        cosine = max((why.score for why in hit.why if why.view == "dense"), default=0.0)
        return cosine >= env.theta.duplicate or shared_words(hit.entry.text, item.draft.text) >= CLOSE_WORDS

    return replace(item, near=tuple(hit.entry for hit in hits), close=any(is_close(hit) for hit in hits))


def shared_words(left: str, right: str) -> float:
    """Content stems two texts share, as a share of all they have (Jaccard, 0 to 1)."""
    a, b = set(content_stems(left)), set(content_stems(right))
    return len(a & b) / len(a | b) if a | b else 0.0
