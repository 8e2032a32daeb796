"""Reading time expressions of a text against the moment it was said, and writing times for people.

English; other languages give no relative readings. Calendar semantics: "last week" is the Monday week
before the one of the reference, "last Friday" the most recent Friday before that day.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from memcycle.core.language import date_forms as forms
from memcycle.core.language.date_forms import Frame, Precision, Reading, midnight, one_of
from memcycle.core.language.tokens import IRREGULAR, per_text, word_set

_MONTHS, _WEEKDAYS = one_of(forms.MONTHS), one_of(forms.WEEKDAYS)
_ANCHOR = re.compile(
    r"[0-9]|\b(?:day|today|tonight|tomorrow|night|morning|afternoon|evening|yesterday|week"
    r"|weekend|fortnight|month|year|decade|hour"
    rf"|minute|min)s?\b|\b(?:{_MONTHS}|{_WEEKDAYS}|{one_of(forms.SEASONS)}|{one_of(forms.HOLIDAYS)})\b",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?:\s+at|,)?\s+(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2}))?\s*(?P<half>[ap])\.?m\b\.?", re.IGNORECASE
)
_FUTURE = re.compile(
    r"\b(?:will|shall|going\s+to|gonna|next|upcoming|coming|tomorrow|plan(?:s|ning)?"
    r"|hop(?:e|ing)|scheduled|due"
    r"|look(?:ing)?\s+forward|can'?t\s+wait|starting|leaving|soon|let's|wanna|want\s+to|(?<!to\s)see\s+you)\b|['’]ll\b"
    r"|(?:\b(?:am|is|are)|['’](?:m|re|s))\s+(?:just\s+|also\s+)?(?!being|feeling|loving)\w+ing\b",
    re.IGNORECASE,
)
_NOT_PAST = word_set("am is are has does children men women feet teeth mice people wives")
_PAST_FORMS = "|".join(sorted({*IRREGULAR, "been"} - _NOT_PAST))
_PAST_WORD = (
    rf"(?:{_PAST_FORMS}|(?!need|feed|seed|speed|indeed|hundred|red|bed|wed)[a-z]{{2,}}ed"
    r"|(?:was|were|had|did)n['’]t)\b"
)
_PAST = re.compile(rf"\b{_PAST_WORD}", re.IGNORECASE)
_BOOKED = re.compile(
    r"\b(?:tickets?|flights?|book(?:ed|ing)|reserv(?:ed|ation)|appointment|(?:re)?scheduled|signed up"
    r"|arranged|planned|registered|enrolled|invited|invitation|deadline|due)\b",
    re.IGNORECASE,
)
_KEPT = re.compile(r"\b(?:had|missed|went|attended|took|caught|kept|enjoyed|loved|flew)\b", re.IGNORECASE)
"""What is done when it is there, after which nothing that was booked is to come."""
_HAVE_GOT = re.compile(r"(?:\b(?:have|has)|['’](?:ve|s))\s+got\b", re.IGNORECASE)
_ARRANGED = re.compile(
    r"\b(?:meeting|exam|interview|dentist|surgery|operation|conference|wedding|concert|birthday|viewing|visit"
    r"|lessons?|class(?:es)?|party|trip|have|has|need|must)\b",
    re.IGNORECASE,
)
"""What is spoken of beforehand, where nothing in the sentence is past."""
_TO_DATE = r"(?:\s+(?:on|at|in|by|for|from))?(?:\s+the)?\s*$"
_BEHIND = re.compile(
    rf"\bsince(?:\s+the)?\s*$"
    rf"|\b(?!scheduled|rescheduled|planned|arranged|decided|agreed){_PAST_WORD}(?:\s+(?:it|them|me|us))?\s+on{_TO_DATE}",
    re.IGNORECASE,
)
"""What stands just before a time that has been, also of what was booked: "I booked it on"."""
_AHEAD = re.compile(
    rf"\bfor(?:\s+the)?\s*$"
    rf"|\b(?:moved|postponed|put\s+off|pushed(?:\s+back)?|delayed|brought\s+forward|changed|shifted)\b[^.;,]{{0,30}}?\bto(?:\s+the)?\s*$"
    rf"|(?:\bam|['’](?:m|re))\s+(?!being\b)\w+ing\b(?:\s+[\w'’-]+)?(?:\s+(?!{_PAST_WORD})[\w'’-]+){{0,2}}{_TO_DATE}"
    rf"|\b(?:(?:is|are|it['’]s|that['’]s|there['’]s)(?!\s+(?:been|of|from|what|who|when|why|that)\b)(?:\s+[\w'’-]+)?"
    r"|starts?|begins?|ends?|leaves?|arrives?|departs?|opens?|expires?|comes?|fl(?:y|ies)|meets?|moves?|falls?|runs?\s+out|turns?|closes?"
    rf"|happens?|lands?|takes?\s+place)(?:\s+(?!{_PAST_WORD}|of\b|from\b)[\w'’-]+){{0,3}}{_TO_DATE}"
    rf"|\b(?:agreed|promised|decided|arranged|planned|offered|due|supposed)\s+to\s+[a-z]+\b[^.;,]{{0,40}}{_TO_DATE}",
    re.IGNORECASE,
)
"""What stands just before a time that is to come, whatever else the sentence tells."""
_CLAUSE = re.compile(r"[,;:]|\b(?:and|but|because|so|that|what|which|who|where|while)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?。！？\n]+(?=\s|$)")
_CONTEXT = 400
"""Characters on either side of an expression that are read for its tense: longer than most sentences."""
_NOON = 12
_SEASON_NAMES = {month: name for name, month in forms.SEASONS.items() if name != "fall"}


def read_dates(text: str, reference: datetime) -> list[Reading]:
    """All time expressions of a text, in order, none overlapping another.

    Those that name no date that exists ("31 February 2023") are left out.

    Args:
        reference: When it was said, timezone-aware; relative words are read in its zone.
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
        when, known = forms.read(match, reader, _frame(text, begin, reference))
        if known:
            taken[begin:end] = bytes([True]) * (end - begin)
        if when is not None:
            readings.append(_reading(text, match, when, reference))
    return tuple(sorted(readings, key=lambda r: r.begin))


@per_text(2048)
def _expressions(text: str) -> tuple[tuple[re.Match[str], forms.Reader], ...]:
    """What may be a time expression, longest first; some overlap.

    Cached: these depend on the words alone, and a statement is read again whenever it is compared.
    """
    if not _ANCHOR.search(text):
        return ()
    matches = [(match, reader) for pattern, reader in forms.READERS for match in pattern.finditer(text)]
    return tuple(sorted(matches, key=lambda pair: (pair[0].start() - pair[0].end(), pair[0].start())))


def format_time(start: datetime, precision: Precision | None) -> str:
    """A time as people write it, no more exact than it is known.

    `7 May 2023, 14:05` (minute), `7 May 2023` (day), `the week of 5 June 2023` (week, by its first
    day), `the weekend of 10 June 2023` (a week that starts on a Saturday), `May 2023`, `summer 2023`,
    `2023`. Without a precision the day is given.
    """
    day = f"{start.day} {forms.MONTH_NAMES[start.month - 1]} {start.year}"
    if precision == "minute":
        return f"{day}, {start.hour:02d}:{start.minute:02d}"
    if precision == "week":
        return f"the {'weekend' if start.weekday() == forms.SATURDAY else 'week'} of {day}"
    if precision == "month":
        return f"{forms.MONTH_NAMES[start.month - 1]} {start.year}"
    if precision == "season":
        return f"{_SEASON_NAMES[(start.month % 12) // 3 * 3 or 12]} {start.year}"
    return str(start.year) if precision == "year" else day


def _frame(text: str, place: int, reference: datetime) -> Frame:
    """The tense of the sentence around a place."""
    begin, end = _around(_SENTENCE_END, text, place)
    # The same length: places stay.
    sentence = _HAVE_GOT.sub(lambda got: " have".ljust(len(got[0])), text[begin:end])
    lead = sentence[: place - begin]
    ahead = _AHEAD.search(lead) is not None
    if ahead or _BEHIND.search(lead):
        return Frame(reference, lead, past=not ahead, future=ahead)
    clause = slice(*_around(_CLAUSE, sentence, place - begin))
    told = next((one for one in (sentence[clause], sentence) if _PAST.search(one) or _FUTURE.search(one)), "")
    past, future = _PAST.search(told) is not None, _FUTURE.search(told) is not None
    arranged = not told and _ARRANGED.search(sentence) is not None
    booked = _BOOKED.search(sentence) is not None and not _KEPT.search(sentence)
    return Frame(reference, lead, past, future or arranged, booked)


def _around(limit: re.Pattern[str], text: str, place: int) -> tuple[int, int]:
    """Where the stretch between two limits begins and ends that a place of the text lies in."""
    first, last = max(place - _CONTEXT, 0), place + _CONTEXT
    begin = max((m.end() for m in limit.finditer(text, first, place)), default=first)
    after = limit.search(text, place, last)
    return begin, after.start() if after else last


def _reading(text: str, match: re.Match[str], when: forms.When, reference: datetime) -> Reading:
    begin, end = match.span()
    start, precision = when.moment or midnight(when.day, reference), when.precision
    clock = _CLOCK.match(text, end) if precision == "day" and not when.until else None
    if clock and 1 <= int(clock["hour"]) <= _NOON and int(clock["minute"] or 0) < 60:  # noqa: PLR2004
        hour = int(clock["hour"]) % _NOON + (_NOON if clock["half"].lower() == "p" else 0)
        start = start.replace(hour=hour, minute=int(clock["minute"] or 0))
        precision, end = "minute", clock.end()
    until = midnight(when.until, reference) if when.until else None
    return Reading(start, precision, text[begin:end], begin, end, when.approximate, until)


_BY = datetime(2000, 1, 12, tzinfo=UTC)
_LATER = _BY + timedelta(days=801)
_LEANING = re.compile(
    rf"\b(?:the\s+)?(?:(?P<unit>weekend|week|day|month|year)|(?P<weekday>{_WEEKDAYS}))"
    r"\s+(?P<side>before|after|of)\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_MONTH = re.compile(rf"\b(?:{_MONTHS})\b", re.IGNORECASE)
# "31 February 2023" is no date, and no 2023 either.
_MONTH_BEFORE = re.compile(rf"\b(?:{_MONTHS})\W{{1,2}}$", re.IGNORECASE)
_YEAR = re.compile(r"(?<![\w.,-])(?:19|20)\d\d(?![\w-]|[.,]\d|\s+\w+s\b)")
_LOOK_BACK = 32
"""Characters before a date that are read for "the weekend before"."""


def fixed_dates(text: str, *, by: datetime | None = None) -> list[Reading]:
    """The dates of a text, in order, without those that lean on the moment it was said ("yesterday").

    "the week before 5 June 2023" and "the weekend of 10 June 2023" are read from the date they name, and a
    year that stands alone is one. Days without a year ("7 May") are read only with `by`, a time near which
    they are meant. Times are in UTC.
    """
    found: list[Reading] = []
    later = {(one.begin, one.end): one for one in read_dates(text, _LATER)}
    for one in read_dates(text, _BY):
        other = later.get((one.begin, one.end))
        if other is not None and other.start == one.start:
            found.append(_leaning(text, one))
        elif by is not None and one.precision == "day" and _MONTH.search(one.text):
            near = next((r for r in read_dates(text, by) if (r.begin, r.end) == (one.begin, one.end)), None)
            found += [near] if near else []
    return sorted([*found, *_years(text, found)], key=lambda date: date.begin)


def without(text: str, dates: Sequence[Reading]) -> str:
    """The text without the words of these dates."""
    for date in reversed(dates):
        text = f"{text[: date.begin]} {text[date.end :]}"
    return text


def _years(text: str, found: Sequence[Reading]) -> list[Reading]:
    return [
        Reading(datetime(int(match[0]), 1, 1, tzinfo=UTC), "year", match[0], *match.span(), False)
        for match in _YEAR.finditer(text)
        if not any(date.begin <= match.start() < date.end for date in found)
        and not _MONTH_BEFORE.search(text, max(0, match.start() - _LOOK_BACK), match.start())
    ]


def _leaning(text: str, date: Reading) -> Reading:
    """The period that the words before a date make of it; else the date."""
    plain = date._replace(start=date.start.astimezone(UTC))
    lead = _LEANING.search(text, max(0, date.begin - _LOOK_BACK), date.begin)
    if lead is None or date.precision not in ("day", "minute"):
        return plain
    side, unit = lead["side"].lower(), (lead["unit"] or "").lower()
    whole = plain._replace(begin=lead.start(), text=text[lead.start() : date.end])
    if side == "of":
        day = forms.week_of(date.start.date()) if unit == "week" else date.start.date()
        week = whole._replace(start=midnight(day, plain.start), precision="week")
        return week if unit.startswith("week") else plain
    beside, step = ("yesterday", "last") if side == "before" else ("tomorrow", "next")
    words = beside if unit == "day" else f"{step} {unit or lead['weekday']}"
    read = read_dates(words, date.start)
    return whole._replace(start=read[0].start, precision=read[0].precision) if read else plain
