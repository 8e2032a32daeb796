"""What a gold answer says beyond its question."""

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from memcycle.agents.rules.answerer import SPAN_PASSAGES
from memcycle.agents.rules.clauses import clause_of
from memcycle.agents.rules.content import (
    Count,
    Subject,
    Word,
    counts_of,
    stems_of,
    subject_of,
    words_of,
)  # fmt: skip
from memcycle.agents.rules.grounding import Asked, passages, read_question
from memcycle.agents.rules.spans import best_span
from memcycle.agents.rules.verbs import BASE
from memcycle.agents.views import MemoryView
from memcycle.core.language.date_forms import lies_in
from memcycle.core.language.dates import Fixed, fixed_dates, without
from memcycle.core.language.questions import Slot, choices, question_language
from memcycle.core.language.tokens import base_stems

ENOUGH, ENOUGH_FOREIGN = 0.62, 0.75
"""Least share of the gold's new words, by weight; more where no rule knows which words matter."""
NAME_WEIGHT, VERB_WEIGHT, DETAILS = 1.5, 0.5, 0.5
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_DETAIL = re.compile(
    r"\s(?:in|at|on|from|with|for|by|during|near|around|after|before|since|because|as"
    rf"|to(?=\s+(?:{'|'.join(sorted(BASE))})\b))\s"
)
_NO_DETAIL = re.compile(r"(?!)")
_DETAILS: dict[Slot, re.Pattern[str]] = {
    "what": _DETAIL, "which": _DETAIL, "other": _DETAIL, "where": re.compile(r"\s(?:in|near)\s"),
}  # fmt: skip
"""What begins words that only add to the answer, where the question asks for a thing or a place."""
_RELATIVE = re.compile(r"\s(?:that|who|which|where)\s")


class Gold(NamedTuple):
    """A gold answer beside its question.

    Attributes:
        asked: The question taken apart. weights: weight of each stem that the question does not give.
        core: Of these, the stems of the words that answer the question.
        held: All its content stems. order: them in order. given: all stems of the question.
        counts, core_counts: Numbers that the question does not give; those among the core.
        dates: Its fixed dates that the question does not give; all where it gives all.
        asks_time: Whether its dates are what is asked for.
        names: Capitalised words of question and gold. subject: whom it is about.
    """

    asked: Asked
    text: str
    weights: dict[str, float]
    core: frozenset[str]
    held: frozenset[str]
    order: tuple[Word, ...]
    given: frozenset[str]
    counts: frozenset[Count]
    core_counts: frozenset[Count]
    dates: tuple[Fixed, ...]
    asks_time: bool
    names: tuple[str, ...]
    subject: Subject | None
    enough: float

    @property
    def named(self) -> frozenset[str]:
        """Stems of the names."""
        return frozenset(stem for name in self.names for stem in base_stems(name))


@lru_cache(maxsize=512)
def read_gold(question: str, gold: str, by: datetime | None = None) -> Gold:
    """Takes a gold answer apart; days without a year are read near `by`.

    Cached, since one probe's is compared with many memories.
    """
    asked = read_question(question, ())
    known, dates = fixed_dates(question), fixed_dates(gold, by=by)
    plain = without(gold, dates)
    given = frozenset(base_stems(question))
    order = words_of(plain)
    ones = asked.slot == "how_many"
    counts = counts_of(plain, ones=ones)
    said = {count.number for count in counts_of(question, ones=ones)}
    names = tuple(word for word in _WORD.findall(f"{question} {gold}") if word[0].isupper())
    span, rest = _asked_for(asked, plain, names, given)
    weights = {word.stem: _weight(word, asked) for word in order if word.stem not in given}
    _lower(weights, stems_of(rest) - stems_of(span))
    weights = weights or dict.fromkeys(sorted(_chosen(asked) & stems_of(plain)), 1.0)
    added = {count.number for count in counts_of(rest, ones=ones)}
    new = [date for date in dates if not any(fits(date, other) for other in known)]
    return Gold(
        asked=asked,
        text=gold,
        weights=weights,
        core=stems_of(span) & weights.keys(),
        held=frozenset(word.stem for word in order),
        order=order,
        given=given,
        counts=frozenset(count for count in counts if count.number not in said | added),
        core_counts=frozenset(count for count in counts_of(span, ones=ones) if count.number not in said),
        dates=tuple(new or dates),
        asks_time=bool(dates) and (asked.slot == "when" or not (weights or counts)),
        names=names,
        subject=subject_of(gold),
        enough=ENOUGH if question_language(f"{question} {gold}") == "en" else ENOUGH_FOREIGN,
    )


def _lower(weights: dict[str, float], details: frozenset[str]) -> None:
    """Lowers the weights of details to half of what is asked for; to as much as that, where it is one word.

    One word ("challenges") is soon said of something else.
    """
    added = sum(weight for stem, weight in weights.items() if stem in details)
    asked_for = sum(weights.values()) - added
    if added and asked_for:
        most = asked_for * (DETAILS if asked_for > NAME_WEIGHT else 1.0)
        factor = min(1.0, most / added)
        weights.update({stem: factor * weight for stem, weight in weights.items() if stem in details})


def _weight(word: Word, asked: Asked) -> float:
    """Names say most; verbs least, since the question mostly implies them, unless it asks for a deed."""
    if word.name:
        return NAME_WEIGHT
    return VERB_WEIGHT if word.verb and not asked.does else 1.0


def _chosen(asked: Asked) -> frozenset[str]:
    """Stems of the alternatives of a choice question, which gives its own answer."""
    return stems_of(" ".join(choices(asked.question))) if asked.slot == "which" else frozenset()


def _asked_for(asked: Asked, gold: str, names: Sequence[str], given: frozenset[str]) -> tuple[str, str]:
    """The words of a gold answer that a short answer would give, and those that only add to them.

    What comes after the main clause ("which made her happy") or after the thing asked for ("in a barn") adds.
    """
    clause = clause_of(gold, names)
    main = _RELATIVE.split(clause.core, maxsplit=1)[0] if clause else gold
    span = _span(asked, main)
    if not stems_of(span) - given:
        return _span(asked, gold), ""
    place = gold.find(span)
    start = next((word.end() for word in _WORD.finditer(span) if _is_thing(word[0], given)), len(span))
    detail = _DETAILS.get(asked.slot, _NO_DETAIL).search(span, start)
    asked_for = span[: detail.start()] if detail else span
    return asked_for, gold[place + len(asked_for) :] if place >= 0 and (clause or detail) else ""


def _is_thing(word: str, given: frozenset[str]) -> bool:
    """Whether a word is no verb and not given by the question."""
    return any(one.stem not in given and not one.verb for one in words_of(word))


def _span(asked: Asked, text: str) -> str:
    """The best short answer that a text gives."""
    ranked = passages(asked, [MemoryView(n=0, granularity="fact", text=text)])
    span = best_span(asked, ranked[:SPAN_PASSAGES])
    return span.text if span is not None else ""


def fits(date: Fixed, wanted: Fixed) -> bool:
    """Whether a date is as exact as the wanted one and lies in it."""
    return lies_in(date.start, date.precision, wanted.start, wanted.precision)
