"""Answerer without a model: the statement that answers, as it was said, with who said it and when."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import get_args

from memcycle.agents.answerer import AnswererInput, AnswererOutput, Style
from memcycle.agents.rules.content import content, denies
from memcycle.agents.rules.evidence import (
    ParsedQuestion,
    Passage,
    gap_of,
    passages,
    read_question,
    speakers_of,
)
from memcycle.agents.rules.slots import slots_of
from memcycle.agents.rules.statements import when_of
from memcycle.agents.views import MemoryView
from memcycle.core.entry import same_text
from memcycle.core.language.date_forms import Precision
from memcycle.core.language.dates import format_time, read_dates
from memcycle.core.language.questions import ENDED, NOTHING, Slot, choices

NEAR, RIVAL = 0.8, 0.98
"""Share of the best passage's score from which another may answer in its stead: where it tells the time that
is asked for; where it is newer and holds as much of the question."""
LISTED, MOST_CITED = 0.6, 3
_PRECISION = re.compile(r"\b(?:what|which) (year|month)\b", re.IGNORECASE)
_OF_VALUES: frozenset[Slot] = frozenset(("who", "where", "what", "which", "list", "other"))
_OF_THE_PAST = re.compile(r"\b(?:did|was|were|had|used|before|earlier|former|first|last)\b", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;:]|\b(?:and|but|because|since|when|while|so)\b", re.IGNORECASE)
_WAY = re.compile(r"\b(to|from)\s+(?:the\s+)?([A-Z][\w-]+)")
_ENDING = re.compile(r"\b(?:stop|quit|leave|left|end|gave up|give up)", re.IGNORECASE)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def answerer(value: AnswererInput) -> AnswererOutput:
    """Answers from the evidence alone, or says in plain words that it holds nothing."""
    parsed = read_question(value.question, speakers_of(value.evidence, value.window), value.now)
    ranked = passages(parsed, value.evidence)
    own = candidates(parsed, ranked)
    if not own:
        return AnswererOutput(
            answer=NOTHING[parsed.language], answerable=False, confidence=0.6, extractive=True
        )
    near = [one for one in own if one.score >= NEAR * own[0].score]
    best = next((one for one in near if parsed.wants_kind and one.kind), _holding_now(own))
    best = _in_its_place(parsed, best, ranked)
    time = _time(parsed, best) if parsed.slot == "when" else ""
    chosen = _several(best, own) if parsed.slot == "list" else [best]
    cited = dict.fromkeys(one.memory.n for one in [*chosen, *near])
    return AnswererOutput(
        answer=_phrased(value.style, parsed, chosen, time),
        answerable=True,
        citations=list(cited)[:MOST_CITED],
        confidence=round(0.2 + 0.6 * best.around, 2),
        quote=best.text,
        extractive=True,
    )


def candidates(parsed: ParsedQuestion, ranked: Sequence[Passage]) -> list[Passage]:
    """The passages that may answer, best first; none where the question has a gap.

    What holds no more answers only where nothing that holds does. What shares no content word with the
    question is none, however well the search found it.
    """
    current = [one for one in ranked if one.memory.current]
    for found in (current, ranked):
        if gap_of(parsed, found) is None:
            return [
                one for one in found if one.person > 0 and one.around > 0 and not _undone(parsed, one.text)
            ]
    return []


def _undone(parsed: ParsedQuestion, text: str) -> bool:
    """Whether a sentence tells that what is asked for by its time did not happen, or of the way back."""
    if parsed.slot != "when" or denies(parsed.question) or _ENDING.search(parsed.question):
        return False
    clause = max(_CLAUSE.split(text), key=lambda one: len(content(one) & parsed.words))
    asked, told = (set(_WAY.findall(one)) for one in (parsed.question, clause))
    turned = any(({"to": "from", "from": "to"}[way], place) in told for way, place in asked - told)
    return denies(clause) or turned


def _holding_now(own: Sequence[Passage]) -> Passage:
    """The newest of the passages that hold as much of the question about as well."""
    best = own[0]
    rivals = [one for one in own if one.cover >= best.cover and one.score >= RIVAL * best.score]
    return max(rivals, key=_when, default=best)  # none where its score is negative


def _when(one: Passage) -> datetime:
    return one.memory.event_time or one.memory.time or _LONG_AGO


def _in_its_place(parsed: ParsedQuestion, best: Passage, ranked: Sequence[Passage]) -> Passage:
    """Where a question of today meets what ended ("I quit my job"), the newest that holds in its place."""
    if parsed.slot not in _OF_VALUES or _OF_THE_PAST.search(parsed.question):
        return best
    held = slots_of(best.text, best.memory.speaker, ended=False)
    over = slots_of(best.text, best.memory.speaker, ended=True) - held if best.memory.current else held
    holding = [
        one
        for one in ranked
        if one.memory.current
        and one.person > 0
        and over & slots_of(one.text, one.memory.speaker, ended=False)
    ]
    return max(holding, key=_when, default=best)


def _several(best: Passage, own: Sequence[Passage]) -> list[Passage]:
    """The best passage and others that hold as much of the question, each statement once."""
    alike = [one for one in own if one.score >= LISTED * best.score and one.cover >= NEAR * best.cover]
    return list({same_text(one.text): one for one in [best, *alike]}.values())[:MOST_CITED]


def _time(parsed: ParsedQuestion, one: Passage) -> str:
    """When a passage says it happened, as exactly as is known or asked for; '' where it does not say."""
    wanted = match[1].casefold() if (match := _PRECISION.search(parsed.question)) else None
    when = when_of(one.text, one.memory.time) if one.memory.time else None
    if when is not None:
        about = ("about " if parsed.language == "en" else "~ ") if when.approximate else ""
        return about + _written(when.start, wanted or when.precision, parsed.language)
    if one.memory.event_time is not None:
        return _written(one.memory.event_time, wanted or one.memory.event_precision, parsed.language)
    stretches = read_dates(one.text, one.memory.time) if one.memory.time else []
    ends = next(((it.start, it.until - timedelta(days=1)) for it in stretches if it.until), ())
    return " – ".join(_written(end, "day", parsed.language) for end in ends)


def _written(time: datetime, precision: str | None, language: str) -> str:
    """A time in the words of English, or in figures for readers of another language."""
    if language != "en":
        return time.date().isoformat()[: {"year": 4, "month": 7}.get(precision or "day")]
    return format_time(time, next((one for one in get_args(Precision) if one == precision), None))


def _phrased(style: Style, parsed: ParsedQuestion, chosen: Sequence[Passage], time: str) -> str:
    """The quoted statements; in front of them the date that was read, where a date is asked for."""
    best = chosen[0]
    if style in ("short", "concise", "strict") and time:
        return time
    if style in ("concise", "strict"):
        return "; ".join(one.text.rstrip(" .!") for one in chosen)
    if style == "choice":
        named = [choice for choice in choices(parsed.question) if content(choice) & content(best.text)]
        if len(named) == 1:
            return named[0]
    quoted = "; ".join(quote(one.memory, one.text, parsed.language) for one in chosen)
    if style == "inferential":
        quoted = f"Likely: {quoted}"
    return f"{time} ({quoted})" if time else quoted


def quote(memory: MemoryView, text: str, language: str = "en") -> str:
    """Words of a memory with who said them and on which day, and whether they hold no more."""
    source = [memory.speaker or "", _written(memory.time, "day", language) if memory.time else ""]
    said = ", ".join(filter(None, source))
    ended = "" if memory.current else f" ({ENDED[language]})"
    return f"{said}: “{text}”{ended}" if said else f"“{text}”{ended}"
