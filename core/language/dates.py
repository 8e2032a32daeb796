"""Reading time expressions of a text against the moment it was said, and writing times for people.

English; other languages give no relative readings. Calendar semantics: "last week" is the Monday week
before the one of the reference, "last Friday" the most recent Friday before that day.
"""

import re
from datetime import datetime

from memcycle.core.entry import Precision
from memcycle.core.language.absolute_dates import absolute_readers, plausible
from memcycle.core.language.readings import (
    HOLIDAYS,
    MONTH_NAMES,
    MONTHS,
    SEASONS,
    WEEKDAYS,
    Frame,
    Reading,
    When,
    midnight,
    one_of,
)  # fmt: skip
from memcycle.core.language.relative_dates import Reader, relative_readers
from memcycle.core.per_text import per_text

__all__ = ["Reading", "format_time", "read_dates"]

_READERS = [*absolute_readers(), *relative_readers()]
_ANCHOR = re.compile(
    r"[0-9]|\b(?:day|today|tonight|tomorrow|night|morning|afternoon|evening|yesterday|week"
    r"|weekend|month|year|decade|hour"
    rf"|minute|min)s?\b|\b(?:{one_of(MONTHS)}|{one_of(WEEKDAYS)}|{one_of(SEASONS)}|{one_of(HOLIDAYS)})\b",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?:\s+at|,)?\s+(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2}))?\s*(?P<half>[ap])\.?m\b\.?", re.IGNORECASE
)
_FUTURE = re.compile(
    r"\b(?:will|shall|going\s+to|gonna|next|upcoming|coming|tomorrow|plan(?:s|ning)?"
    r"|hop(?:e|ing)|scheduled|due"
    r"|look(?:ing)?\s+forward|can'?t\s+wait|starting|leaving|soon|let's|wanna|want\s+to)\b|['’]ll\b"
    r"|(?:\b(?:am|is|are)|['’](?:m|re|s))\s+(?:just\s+|also\s+)?(?!being|feeling|loving)\w+ing\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:was|were|had|did|went|got|came|took|made|saw|met|won|lost|left|bought|found|gave"
    r"|told|said|spent|began"
    r"|became|felt|heard|kept|knew|ran|sat|sent|taught|thought|wrote|ate|drove|flew|held"
    r"|read|broke|chose|fell"
    r"|(?!need|feed|seed|speed|indeed|hundred|red|bed|wed)[a-z]{2,}ed)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?。！？\n]+(?=\s|$)")
_CONTEXT = 400
"""Characters on either side of an expression that are read for its tense: longer than most sentences."""
_NOON, _HOURS = 12, 24
_SATURDAY = 5
_SEASON_NAMES = {month: name for name, month in SEASONS.items() if name != "fall"}


def read_dates(text: str, reference: datetime) -> list[Reading]:
    """All time expressions of a text, in order, none overlapping another.

    Args:
        text: Any text.
        reference: When it was said, timezone-aware; relative words are read in its zone.

    Returns:
        Readings with `text[r.begin:r.end] == r.text`. Expressions that name no date that exists
        ("31 February 2023") are left out.
    """
    # Equal times of two zones are not the same here.
    return list(_readings(text, reference, reference.tzinfo, reference.fold))


@per_text(1024)
def _readings(text: str, reference: datetime, *_: object) -> tuple[Reading, ...]:
    """Cached: a turn is read again for each of its statements."""
    taken = bytearray(len(text))
    readings: list[Reading] = []
    # An impossible date still takes its place: "31 February 2023" is no "February 2023".
    for match, reader in _expressions(text):
        begin, end = match.span()
        if any(taken[begin:end]):
            continue
        when, known = _when(match, reader, _frame(text, begin, reference))
        if known:
            taken[begin:end] = bytes([True]) * (end - begin)
        if when is not None:
            readings.append(_reading(text, match, when, reference))
    return tuple(sorted(readings, key=lambda r: r.begin))


@per_text(2048)
def _expressions(text: str) -> tuple[tuple[re.Match[str], Reader], ...]:
    """What may be a time expression, longest first; some overlap.

    Cached: these depend on the words alone, and a statement is read again whenever it is compared.
    """
    if not _ANCHOR.search(text):
        return ()
    matches = [(match, reader) for pattern, reader in _READERS for match in pattern.finditer(text)]
    return tuple(sorted(matches, key=lambda pair: (pair[0].start() - pair[0].end(), pair[0].start())))


def format_time(start: datetime, precision: Precision | None) -> str:
    """A time as people write it, no more exact than it is known.

    `7 May 2023, 14:05` (minute), `7 May 2023` (day), `the week of 5 June 2023` (week, by its first
    day), `the weekend of 10 June 2023` (a week that starts on a Saturday), `May 2023`, `summer 2023`,
    `2023`. Without a precision the day is given.
    """
    day = f"{start.day} {MONTH_NAMES[start.month - 1]} {start.year}"
    if precision == "minute":
        return f"{day}, {start.hour:02d}:{start.minute:02d}"
    if precision == "week":
        return f"the {'weekend' if start.weekday() == _SATURDAY else 'week'} of {day}"
    if precision == "month":
        return f"{MONTH_NAMES[start.month - 1]} {start.year}"
    if precision == "season":
        return f"{_SEASON_NAMES[(start.month % 12) // 3 * 3 or 12]} {start.year}"
    return str(start.year) if precision == "year" else day


def _when(match: re.Match[str], reader: Reader, frame: Frame) -> tuple[When | None, bool]:
    """What a match means, and whether it is a time expression at all."""
    try:
        when = reader(match, frame)
    except (ValueError, OverflowError):  # no such day, or beyond the calendar
        return None, True
    if when is not None and not plausible(when.day):
        return None, True
    return when, when is not None


def _frame(text: str, place: int, reference: datetime) -> Frame:
    """The tense of the sentence around a place."""
    first, last = max(place - _CONTEXT, 0), place + _CONTEXT
    begin = max((m.end() for m in _SENTENCE_END.finditer(text, first, place)), default=first)
    after = _SENTENCE_END.search(text, place, last)
    sentence = text[begin : after.start() if after else last]
    return Frame(reference, _PAST.search(sentence) is not None, _FUTURE.search(sentence) is not None)


def _reading(text: str, match: re.Match[str], when: When, reference: datetime) -> Reading:
    begin, end = match.span()
    start, precision = when.moment or midnight(when.day, reference), when.precision
    clock = _CLOCK.match(text, end) if precision == "day" else None
    if clock and 1 <= int(clock["hour"]) <= _NOON and int(clock["minute"] or 0) < 60:  # noqa: PLR2004
        hour = int(clock["hour"]) % _NOON + (_NOON if clock["half"].lower() == "p" else 0)
        start, precision, end = (
            start.replace(hour=hour, minute=int(clock["minute"] or 0)),
            "minute",
            clock.end(),
        )
    return Reading(start, precision, text[begin:end], begin, end, when.approximate)
