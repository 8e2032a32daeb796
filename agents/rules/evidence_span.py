"""The statement of a turn that holds a gold answer, as a fact."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memcycle.agents.constructor import FactDraft
from memcycle.agents.rules.constructor import draft_of, reply_of
from memcycle.agents.rules.content import counts_of, denies, stems_of
from memcycle.agents.rules.gold import read_gold
from memcycle.agents.rules.wording import Worded, listener_of, said_of, worded
from memcycle.agents.views import TurnView
from memcycle.core.language.date_forms import another_occasion
from memcycle.core.language.dates import Fixed, fixed_dates, without
from memcycle.core.language.questions import is_question
from memcycle.core.language.sentences import split_sentences
from memcycle.core.language.tokens import base_stems

LEAST = 0.5
"""Share of the gold's words below which a turn does not hold it: a model may word it in its own way."""
FULL = 0.8
"""Share from which more statements are not needed."""
BETTER = 0.15
"""How much more must be held by one more statement, or by bare sentences in place of worded statements."""
TOGETHER = 3
"""Statements in a row that may be one fact."""
EXTRACTIVE = 0.5
"""Confidence of what is quoted, and of statements put together."""


class Wanted(NamedTuple):
    """What must be found.

    Attributes:
        weights: Weight by content stem of the gold without the names of those who speak, or of the question
            where none is left.
        new: Those that the question does not give. numbers: the gold's, dates aside.
    """

    gold: str
    weights: dict[str, float]
    new: frozenset[str]
    numbers: frozenset[str]
    dates: tuple[Fixed, ...]

    def share(self, words: frozenset[str]) -> float:
        """Share of the wanted words that these are, by weight."""
        return sum(self.weights[stem] for stem in self.weights if stem in words) / sum(self.weights.values())


class Candidate(NamedTuple):
    """A stretch of a turn, of how many statements it is, and its share of the wanted words (0 to 1)."""

    item: Worded
    size: int
    held: float

    @property
    def rank(self) -> tuple[float, int]:
        """How much is held, up to enough; a further statement must be worth it. Then few words."""
        return min(self.held, FULL) - BETTER * (self.size - 1), -len(self.item.text)


def statement_of(question: str, gold: str, turn: TurnView, turns: Sequence[TurnView]) -> FactDraft | None:
    """The fact in which a turn states a gold answer, None where it does not.

    Args:
        question: The probe's.
        gold: Its answer.
        turn: The source.
        turns: The turns around it, itself among them: who speaks to whom, and what it may reply to.
    """
    speakers = list(dict.fromkeys(other.speaker for other in turns))
    wanted = _wanted(question, gold, speakers)
    if not gold.strip() or not wanted.weights:
        return None
    items = worded(turn.text, turn.speaker, listener_of(turn.speaker, turns))
    grammatical = _best(_joined(items), wanted, turn)
    quoted = _best(_quoted(turn), wanted, turn)
    if grammatical is not None and (quoted is None or quoted.held <= grammatical.held + BETTER):
        draft = draft_of(turn, grammatical.item, speakers)
        sure = draft.confidence if grammatical.size == 1 else min(draft.confidence, EXTRACTIVE)
        return draft.model_copy(update={"confidence": sure})
    replied = None if grammatical is not None else _replied(wanted, turn, turns)
    if replied is not None or quoted is None:
        return replied
    return draft_of(turn, quoted.item, speakers).model_copy(update={"confidence": EXTRACTIVE})


def _wanted(question: str, gold: str, speakers: Sequence[str]) -> Wanted:
    read, dates = read_gold(question, gold), fixed_dates(gold)
    names = {stem for name in speakers for stem in base_stems(name)}
    weights = {word.stem: read.weights.get(word.stem, 1.0) for word in read.order if word.stem not in names}
    asked = stems_of(question) - names
    return Wanted(
        gold=gold,
        weights=weights or dict.fromkeys(sorted(asked), 1.0),
        new=frozenset(weights) - asked - read.given,
        numbers=frozenset(count.number for count in counts_of(without(gold, dates))),
        dates=tuple(dates),
    )


def _joined(items: Sequence[Worded]) -> Iterator[tuple[Worded, int]]:
    """Each statement, and up to three in a row as one fact of whole sentences."""
    yield from ((item, 1) for item in items if item.extra)
    plain = [item for item in items if not item.extra]
    for size in range(1, TOGETHER + 1):
        for at in range(len(plain) - size + 1):
            row = plain[at : at + size]
            text = " ".join(item.text for item in row)
            yield row[0]._replace(end=max(item.end for item in row), text=text), size


def _quoted(turn: TurnView) -> Iterator[tuple[Worded, int]]:
    """The same of the sentences as they stand, after the speaker's name."""
    sentences = split_sentences(turn.text)
    for size in range(1, TOGETHER + 1):
        for at in range(len(sentences) - size + 1):
            begin, end = sentences[at][0], sentences[at + size - 1][1]
            span = turn.text[begin:end]
            verb = "asked" if is_question(span) else "said"
            yield Worded(begin, end, f"{turn.speaker} {verb}: “{span}”", "pronoun"), size


def _best(found: Iterator[tuple[Worded, int]], wanted: Wanted, turn: TurnView) -> Candidate | None:
    """The statement that holds the gold best, the earlier of equals; None where none holds it."""
    candidates = [Candidate(item, size, _held(item, wanted, turn)) for item, size in found]
    best = max(candidates, key=lambda candidate: candidate.rank, default=None)
    return best if best is not None and best.held >= LEAST else None


def _held(item: Worded, wanted: Wanted, turn: TurnView) -> float:
    """Share of the wanted words; 0 where a number, a date or a denial is another, or nothing new is said."""
    words = stems_of(item.text)
    share = wanted.share(words)
    if share < LEAST or (wanted.new and not words & wanted.new):
        return 0.0
    numbers = {count.number for count in counts_of(item.text)}
    matter = frozenset(wanted.weights)
    if not wanted.numbers <= numbers or denies(item.text, matter) != denies(wanted.gold, words):
        return 0.0
    when = said_of(item, turn)
    apart = when is not None and wanted.dates and all(
        another_occasion(when.start, when.precision, date.start, date.precision) for date in wanted.dates
    )  # fmt: skip
    return 0.0 if apart else share


def _replied(wanted: Wanted, turn: TurnView, turns: Sequence[TurnView]) -> FactDraft | None:
    """A short answer beside the question it answers, where the two together hold the gold."""
    before = next((other for other in turns if other.n == turn.n - 1), None)
    drafts = reply_of(turn, before)
    if not drafts:
        return None
    own = not wanted.new or bool(stems_of(drafts[0].quote) & wanted.new)
    return drafts[0] if own and wanted.share(stems_of(drafts[0].text)) >= LEAST else None
