"""What a recall gives back: evidence chosen within its budgets, and the answer that rests on it.

What is found is grouped by what it says: a turn together with the facts that were read from it alone. A group
is weighed by the scores of its turn and of its best fact, and is shown once: a fact beside the turn it only
repeats would cost tokens and cover nothing new. The best groups are shown as they were said, until they fill
`turns_first` of the budget; all others in their cheapest form, mostly a fact.

Measured on LoCoMo conversations 1-5, the data set's observations as facts: of the gold turns .835 / .876 /
.911 are within 250 / 500 / 1,000 tokens; best score first, turns and facts side by side, has 2 to 4 points
less. Dividing the score by the tokens, or by their root, costs 4 to 13 points at 500: the chance that an
entry is wanted falls far more steeply than its score, so the price decides between the forms of a group,
never between groups.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from memcycle.agents.views import MemoryView
from memcycle.core.entry import GRANULARITIES, Entry, Granularity, departure, is_correction, same_text
from memcycle.core.language.small_talk import question_of
from memcycle.core.language.token_count import token_counter
from memcycle.core.language.tokens import content_stems
from memcycle.core.theta import Theta
from memcycle.graph.environment import GraphRun, Look
from memcycle.graph.search import fitting
from memcycle.graph.states import Candidate, RecallState
from memcycle.stores.ledger.turns import Said

FACT_WEIGHT = 0.3
"""Weight of the best fact's score in that of its group; the turn's has the rest. Flat from 0.2 to 0.5."""


class Piece(NamedTuple):
    """A found entry.

    Attributes:
        score: The weight of what it says, 0 to 1; halved where it is not current.
        current: False where a newer entry contradicts it. until: since when, where that is known.
        why: How it was found, as in `Candidate`.
    """

    entry: Entry
    score: float
    current: bool = True
    until: datetime | None = None
    why: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Limits:
    """How much may be shown.

    Attributes:
        k: Entries at most. token_budget: tokens of their texts at most.
        turns_first: Share of the tokens up to which the best groups are shown as they were said.
        episodes: Share of entries and tokens that episodes may take while other entries are left: one costs
            as much as three turns.
    """

    k: int
    token_budget: int
    turns_first: float = 0.2
    episodes: float = 0.1


@dataclass(frozen=True)
class _Group:
    """What says the same, the fullest form first: the turn, then facts, the best first."""

    key: str
    value: float
    forms: tuple[Piece, ...]

    @property
    def is_episode(self) -> bool:
        return self.forms[0].entry.granularity == "episode"


def assemble(pieces: Sequence[Piece], limits: Limits, count: Callable[[str], int]) -> list[Piece]:
    """The pieces to show, best first, each with the value of its group as its score.

    Gives the best alone, in its cheapest form, where none fits.

    Args:
        pieces: What was found, each entry once, in any order.
        count: Tokens of a text.
    """
    groups = _groups(pieces)
    basket = _Basket(limits, count)
    for group in groups:
        if not (basket.take(group, group.forms[0], limits.turns_first) or group.is_episode):
            break
    for group in groups:
        if basket.is_full:
            break
        basket.take(group, _cheapest(group, count))
    for group in groups:
        if basket.is_full:
            break
        basket.fill(group)
    chosen = [piece._replace(score=group.value) for group in groups for piece in basket.shown[group.key]]
    if not chosen and groups:
        chosen = [_cheapest(groups[0], count)._replace(score=groups[0].value)]
    return chosen


class _Basket:
    """What is shown so far, by group."""

    def __init__(self, limits: Limits, count: Callable[[str], int]) -> None:
        self.shown: defaultdict[str, list[Piece]] = defaultdict(list)
        self._limits, self._count = limits, count
        self._places, self._tokens = limits.k, float(limits.token_budget)
        self._episodes, self._episode_tokens = limits.k * limits.episodes, self._tokens * limits.episodes
        self._turns: set[str] = set()

    @property
    def is_full(self) -> bool:
        """Whether no place is left."""
        return self._places < 1

    def take(self, group: _Group, piece: Piece, share: float = 1.0) -> bool:
        """Shows a group in this form, unless that takes more than this share of the tokens."""
        if self.shown[group.key] or self._says(piece.entry):
            return True
        tokens = self._count(piece.entry.text)
        if group.is_episode and (self._episodes < 1 or tokens > self._episode_tokens):
            return False
        return self._add(group, piece, tokens, share)

    def fill(self, group: _Group) -> None:
        """Shows what places and tokens are left for: what was left out, or says more than what is shown."""
        for piece in group.forms:
            beside = self.shown[group.key]
            if not any(shown is piece or _repeat(piece.entry, shown.entry) for shown in beside):
                self._add(group, piece, self._count(piece.entry.text))

    def _add(self, group: _Group, piece: Piece, tokens: int, share: float = 1.0) -> bool:
        if self.is_full or self._tokens - tokens < self._limits.token_budget * (1 - share):
            return False
        self._places, self._tokens = self._places - 1, self._tokens - tokens
        self.shown[group.key].append(piece)
        if group.is_episode:
            self._episodes, self._episode_tokens = self._episodes - 1, self._episode_tokens - tokens
        elif len(piece.entry.turns) == 1:
            self._turns.update(piece.entry.turns)
        return True

    def _says(self, entry: Entry) -> bool:
        """Whether it is a fact that unites turns all of which are shown."""
        return entry.granularity == "fact" and len(entry.turns) > 1 and self._turns.issuperset(entry.turns)


def _groups(pieces: Sequence[Piece]) -> list[_Group]:
    """The groups, the one of the highest value first."""
    members: defaultdict[str, list[Piece]] = defaultdict(list)
    least: dict[Granularity, float] = {}
    for piece in pieces:
        entry, kind = piece.entry, piece.entry.granularity
        # What is contradicted never stands for what holds.
        members[entry.id if _stands_alone(entry) else f"{entry.turns[0]} {piece.current}"].append(piece)
        least[kind] = min(piece.score, least.get(kind, 1.0))
    for forms in members.values():
        forms.sort(key=lambda one: (one.entry.granularity != "raw", -one.score, one.entry.id))
    groups = [_Group(key, _value(forms, least), tuple(forms)) for key, forms in members.items()]
    return sorted(groups, key=lambda group: (-group.value, group.forms[0].entry.id))


def _stands_alone(entry: Entry) -> bool:
    """Whether it says what no turn says: an episode, a fact of several turns, a person's correction."""
    return entry.granularity == "episode" or len(entry.turns) != 1 or is_correction(entry)


def _value(forms: Sequence[Piece], least: Mapping[Granularity, float]) -> float:
    """The weighted mean of the score of its turn, or of what stands alone, and of its best fact.

    The one that was not found counts as the worst of its kind that was, and never lifts the other.

    Args:
        least: Lowest score found by granularity.
    """
    scores: dict[Granularity, float] = {}
    for piece in forms:
        kind = piece.entry.granularity
        scores[kind] = max(piece.score, scores.get(kind, 0.0))
    best = max(scores.values())
    unheard = best if _stands_alone(forms[0].entry) else min(best, least.get("raw", best))
    turn = scores.get("raw", unheard)
    fact = scores.get("fact", min(best, least.get("fact", best)))
    return turn + FACT_WEIGHT * (fact - turn)


def _cheapest(group: _Group, count: Callable[[str], int]) -> Piece:
    """The turn or its best fact, whichever has fewer tokens; the turn where both have as many."""
    return min(group.forms[:2], key=lambda piece: count(piece.entry.text))


def _repeat(one: Entry, other: Entry) -> bool:
    """Whether one of them is a fact that says, by its words and its date, no more than the other."""
    return _only_repeats(one, other) or _only_repeats(other, one)


def _only_repeats(fact: Entry, other: Entry) -> bool:
    if fact.granularity != "fact" or fact.event_time not in (None, other.event_time):
        return False
    return _said(fact) <= _said(other)


def _said(entry: Entry) -> frozenset[str]:
    """Stems of its content words and of its speaker's name, whom "I" stands for."""
    return frozenset(content_stems(f"{entry.speaker or ''} {entry.text}"))


MARK_TOKENS = 8
"""Of what stands beside an entry's words: its number, who said it and when."""

OUTDATED_SCORE = 0.5
"""A superseded fact takes its turns down by this factor; it does not hide them."""


def evidence(run: GraphRun, state: RecallState) -> list[Piece]:
    """What is shown, best first: chosen for what it covers within k and tokens."""
    look, limits = run.look(), _limits(run, state)
    pieces = ranked(run, state)
    return look.once(
        (pieces, limits), lambda: assemble(_following(run, look, _once(pieces)), limits, _counted)
    )


def _once(pieces: Sequence[Piece]) -> list[Piece]:
    """Without what an assistant or a tool only said again; a person's words may tell of another day."""
    others = {one.entry.speaker for one in pieces if one.entry.role not in (None, "human")}
    first: dict[tuple[str | None, str], str] = {}
    said = {one.entry.id: same_text(one.entry.text) for one in pieces if one.entry.speaker in others}
    for one in pieces:
        if one.entry.id in said:
            first.setdefault((one.entry.speaker, said[one.entry.id]), one.entry.id)
    return [
        one
        for one in pieces
        if one.entry.role in (None, "human") or first[one.entry.speaker, said[one.entry.id]] == one.entry.id
    ]


def _following(run: GraphRun, look: Look, pieces: Sequence[Piece]) -> list[Piece]:
    """Turns as they are shown: a short reply with its question."""
    new = [
        one.entry
        for one in pieces
        if one.entry.granularity == "raw" and one.entry.turns and one.entry.id not in look.shown
    ]
    said = run.bank.before(run.scope, {entry.turns[0] for entry in new}) if new else {}
    look.shown.update({entry.id: _with_question(entry, said.get(entry.turns[0])) for entry in new})
    return [one._replace(entry=look.shown.get(one.entry.id, one.entry)) for one in pieces]


def _with_question(entry: Entry, before: Said | None) -> Entry:
    """A reply and its question as one: "(Ben asked: Have you been to Rome?) Yes, twice." """
    question = question_of(entry.text, before.text) if before else ""
    if before is None or not question:
        return entry
    return entry.model_copy(update={"text": f"({before.speaker} asked: {question}) {entry.text}"})


def _counted(text: str) -> int:
    """Tokens of an entry as it is shown."""
    return token_counter().count(text) + MARK_TOKENS


def _limits(run: GraphRun, state: RecallState) -> Limits:
    theta, context = run.theta_of(state.get("category")), run.context
    plans = state.get("plans")
    shares = getattr(theta.routing, plans[0]["operator"] if plans else "fact")
    return Limits(
        k=context.k or theta.k,
        token_budget=context.token_budget or _budget(run, state, theta),
        turns_first=theta.turns_first,
        episodes=shares.episode,
    )


def _budget(run: GraphRun, state: RecallState, theta: Theta) -> int:
    """Tokens of the first look, where more is looked at only if that does not suffice; else all."""
    first = run.context.evidence_only or run.is_lean("answerer")
    looked = state.get("reflections") or state.get("refinements") or run.settings.profile == "paper"
    return min(theta.first_look, theta.token_budget) if first and not looked else theta.token_budget


def judge_candidates(run: GraphRun, state: RecallState) -> list[Entry]:
    """What the Judge is shown: the best candidates one by one, as they were found, within k and tokens.

    Unlike the evidence with each fact beside its turn, since conflicts are settled between facts.
    """
    limits = _limits(run, state)
    entries = [one.entry for one in ranked(run, state)[: limits.k]]
    return fitting(entries, limits.token_budget, lambda entry: token_counter().count(entry.text))


def ranked(run: GraphRun, state: RecallState) -> list[Piece]:
    """All candidates that memory still holds, best first, current ones before outdated ones."""
    look, candidates = run.look(), state.get("candidates") or []
    return look.once((candidates, state.get("outdated")), lambda: _ranked(run, candidates, state))


def _ranked(run: GraphRun, candidates: Sequence[Candidate], state: RecallState) -> list[Piece]:
    by_id = {candidate["id"]: candidate for candidate in candidates}
    entries = [entry for entry in run.entries(list(by_id)) if entry.status in ("active", "staged")]
    old = _outdated(run, entries, state)
    found = [
        Piece(
            entry=entry,
            score=by_id[entry.id]["score"] * (OUTDATED_SCORE if entry.id in old else 1.0),
            current=entry.id not in old,
            until=old.get(entry.id),
            why=by_id[entry.id]["why"],
        )
        for entry in entries
    ]
    return sorted(found, key=lambda one: (-one.score, one.entry.id))


def chronological(run: GraphRun, found: Sequence[Piece]) -> list[Piece]:
    """Evidence in the order in which it was said; the turns of a session, which may share a time, by place.

    A fact or an episode comes right after the last of its turns. What has no time comes last.
    """
    turns = run.bank.turns(run.scope, {turn for one in found for turn in one.entry.turns})
    places = {turn.id: turn.position for turn in turns}

    def said(one: Piece) -> tuple[bool, float, str, int, int, str]:
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

    return sorted(found, key=said)


def evidence_views(found: Sequence[Piece]) -> list[MemoryView]:
    """Evidence as roles see it, under the numbers from 0 on, in its order."""
    return [
        MemoryView.of(n, one.entry, current=one.current, until=one.until, score=one.score)
        for n, one in enumerate(found)
    ]


def _outdated(run: GraphRun, entries: Sequence[Entry], state: RecallState) -> dict[str, datetime | None]:
    """Entries by id that a newer one contradicts, and since when: settled in this recall, or the turns and
    episodes that say what a contradicted or deleted fact said, or facts read from a turn that a person has
    corrected since."""
    facts = [entry for entry in entries if entry.granularity == "fact"]
    others = [entry for entry in entries if entry.granularity != "fact"]
    left = run.bank.by_turns(run.scope, _turns_of(entries), statuses=("superseded", "forgotten"))
    said = _turns_of(others)
    gone = [one for one in left if one.granularity == "fact" and said & set(one.turns)]
    raws = (one for one in left if (one.granularity, one.status) == ("raw", "superseded"))
    edited = _ended(one for one in raws if departure(one) != "reworded")
    denied = _ended(_contradicted(run, gone))
    old: dict[str, datetime | None] = dict.fromkeys(state.get("outdated") or [])
    for ended, found in ((denied, others), (edited, [one for one in facts if not is_correction(one)])):
        for one in found:
            since = [ended[turn] for turn in one.turns if turn in ended]
            old |= {one.id: since[-1]} if since else {}
    return old


def _ended(gone: Iterable[Entry]) -> dict[str, datetime | None]:
    """Since when what a turn says does not hold any more."""
    return {turn: entry.valid_until for entry in gone for turn in entry.turns}


def _turns_of(entries: Iterable[Entry]) -> set[str]:
    return {turn for entry in entries for turn in entry.turns}


def _contradicted(run: GraphRun, gone: Sequence[Entry]) -> list[Entry]:
    """Those of the facts that left recall whose words do not hold any more.

    Not one that left for another reason, nor one that a role merged into a statement which rests on all of
    its turns, and so says what it said.
    """
    corrected = [fact for fact in gone if departure(fact) == "corrected"]
    replaced = [fact for fact in gone if departure(fact) is None]
    heirs = run.bank.get(run.scope, [fact.superseded_by for fact in replaced if fact.superseded_by])
    carried = {heir.id: set(heir.turns) for heir in heirs if not is_correction(heir)}
    return corrected + [
        fact for fact in replaced if not set(fact.turns) <= carried.get(fact.superseded_by or "", set())
    ]


def evidence_item(piece: Piece) -> dict[str, Any]:
    """One piece of evidence as people and programs read it."""
    entry = piece.entry
    return {
        "id": entry.id,
        "granularity": entry.granularity,
        "text": entry.text,
        "turns": list(entry.turns),
        "speaker": entry.speaker,
        "event_time": entry.event_time.isoformat() if entry.event_time else None,
        "role": entry.role,
        "event_precision": entry.event_precision,
        "time": entry.observed_at.isoformat() if entry.observed_at else None,
        "current": piece.current,
        "until": piece.until.isoformat() if piece.until else None,
        "score": round(piece.score, 6),
        "why": piece.why,
    }


def answer_of(
    state: RecallState,
    mode: Literal["answer", "extractive", "evidence"],
    items: list[dict[str, Any]],
    *,
    shown: Sequence[Piece] = (),
    text: str | None,
    answerable: bool | None,
    confidence: float | None,
) -> dict[str, Any]:
    """The output of a recall. `answer` and `answerable` are None where none was asked for.

    `confidence` is what the role says of itself, for a second look at unsure answers. It was measured against
    nothing, and so is no part of what `Memory` gives back and the command line shows.

    Args:
        items: The evidence it gives back. shown: all that was chosen within the budgets.
    """
    counter = token_counter()
    return {
        "question": state["question"],
        "answer": text,
        "answerable": answerable,
        "confidence": confidence,
        "mode": mode,
        "evidence": items,
        "tokens": sum(counter.count(one.entry.text) for one in shown),
        "tokens_exact": counter.exact,
        "rounds": 1 + state.get("round", 0) + state.get("refinements", 0) + state.get("reflections", 0),
        "warnings": [*(state.get("warnings") or []), *(state.get("faults") or [])],
    }
