"""Context assembly: which of the found entries are shown within a number of entries and a budget of tokens.

What is found is grouped by what it says: a turn together with the facts that were read from it alone. A group
is weighed by the scores of its turn and of its best fact, and is shown once: a fact beside the turn it only
repeats would cost tokens and cover nothing new. The best groups are shown as they were said, until they fill
`turns_first` of the budget; all others in their cheapest form, mostly a fact. Of a tight budget turns make up
60 to 70 %, and nearly all where tokens are plenty and only `k` binds.

Measured on LoCoMo conversations 1-5 with weighted views: share of gold turns within 250 / 500 / 1,000 tokens,
760 questions, the data set's observations as facts; F1 of the Answerer by rules at 500 tokens, every third
question, facts by rules:

| choice | 250 | 500 | 1,000 | F1 |
|---|---|---|---|---|
| best score first, turns and facts side by side | .744 | .806 | .867 | .285 |
| facts first for 40 % of the budget, then turns, each turn covered once | .772 | .838 | .890 | |
| the same, groups weighed together | .791 | .850 | .897 | .249 |
| as it is here, `turns_first` 0 | .789 | .850 | .895 | .247 |
| as it is here, `turns_first` 0.2 | .788 | .843 | .891 | .292 |
| as it is here, `turns_first` 0.3 | .782 | .839 | .887 | .296 |

With the linear ranker in place of the weighted views the shipped choice covers .835 / .876 / .911.

Dividing the score by the tokens, or by their root, costs 4 to 13 points at 500: the chance that an entry is
wanted falls far more steeply than its score, so the price decides between the forms of a group, never between
groups.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memcycle.core.entry import Entry, Granularity
from memcycle.core.language.tokens import content_stems
from memcycle.core.validity import is_correction

FACT_WEIGHT = 0.3
"""Weight of the best fact's score in that of its group; the turn's has the rest. Flat from 0.2 to 0.5."""


class Piece(NamedTuple):
    """A found entry with its score. `current` False: a newer entry contradicts it."""

    entry: Entry
    score: float
    current: bool = True


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

    Args:
        pieces: What was found, each entry once, in any order.
        limits: How much may be shown.
        count: Tokens of a text.

    Returns:
        At most `k` pieces within the budget; the best alone, in its cheapest form, where none fits.
    """
    groups = _groups(pieces)
    basket = _Basket(limits, count)
    for group in groups:
        if not (basket.take(group, group.forms[0], limits.turns_first) or group.is_episode):
            break
    for group in groups:
        basket.take(group, _cheapest(group, count))
    for group in groups:
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
        if self._places < 1 or self._tokens - tokens < self._limits.token_budget * (1 - share):
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
        members[piece.entry.id if _stands_alone(piece.entry) else _source(piece)].append(piece)
        kind = piece.entry.granularity
        least[kind] = min(piece.score, least.get(kind, 1.0))
    groups = [_Group(key, _value(forms, least), _fullest(forms)) for key, forms in members.items()]
    return sorted(groups, key=lambda group: (-group.value, group.forms[0].entry.id))


def _stands_alone(entry: Entry) -> bool:
    """Whether it says what no turn says: an episode, a fact of several turns, a person's correction."""
    return entry.granularity == "episode" or len(entry.turns) != 1 or is_correction(entry)


def _source(piece: Piece) -> str:
    """Its turn; what is contradicted never stands for what holds."""
    return f"{piece.entry.turns[0]} {piece.current}"


def _value(forms: Sequence[Piece], least: Mapping[Granularity, float]) -> float:
    """The weighted mean of the score of its turn, or of what stands alone, and of its best fact.

    The one that was not found counts as the worst of its kind that was, and never lifts the other.

    Args:
        forms: The group.
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


def _fullest(forms: Iterable[Piece]) -> tuple[Piece, ...]:
    return tuple(sorted(forms, key=lambda one: (one.entry.granularity != "raw", -one.score, one.entry.id)))


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
