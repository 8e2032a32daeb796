"""Forms of time expressions ("7 May 2023", "the 90s", "last Friday") and what they mean."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from typing import Literal, NamedTuple

Precision = Literal["minute", "day", "week", "month", "season", "year"]

# Written out, since the calendar module's names follow the locale of the process.
MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
DAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = {name.lower(): n for n, name in enumerate(MONTH_NAMES, start=1)}
MONTHS |= {name[:3]: n for name, n in MONTHS.items()} | {"sept": 9}
WEEKDAYS = {name: n for n, name in enumerate(DAY_NAMES)}
WEEKDAYS |= {name[:3]: n for name, n in WEEKDAYS.items()} | {"tues": 1, "thur": 3, "thurs": 3, "weds": 2}
SATURDAY = WEEKDAYS["saturday"]
# Northern, meteorological: a winter is named after the year it begins in.
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
HOLIDAYS = {
    "christmas eve": (12, 24), "christmas": (12, 25), "xmas": (12, 25), "new year's eve": (12, 31),
    "halloween": (10, 31), "valentine's day": (2, 14),
}  # fmt: skip
NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15,
    "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40,
    "fifty": 50,
}  # fmt: skip
_VAGUE = {"a few": 3, "few": 3, "several": 5, "a couple of": 2, "a couple": 2, "couple of": 2, "couple": 2}
_DAYS = {
    "the day before yesterday": -2, "day before yesterday": -2, "the night before last": -2,
    "yesterday": -1, "last night": -1, "last evening": -1, "today": 0, "tonight": 0,
    "this morning": 0, "this afternoon": 0, "this evening": 0,
    "tomorrow": 1, "the day after tomorrow": 2, "day after tomorrow": 2,
}  # fmt: skip
_STEP = {"last": -1, "past": -1, "previous": -1, "this past": -1, "this last": -1, "the past": -1,
         "this": 0, "next": 1, "coming": 1, "this coming": 1, "upcoming": 1, "this upcoming": 1}  # fmt: skip
_NTH = {"first": 0, "1st": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3, "4th": 3,
        "fifth": 4, "5th": 4, "last": -1}  # fmt: skip
_DAYS_IN = {"day": 1, "week": 7, "fortnight": 14}
FIRST_YEAR, LAST_YEAR = 1000, 2999
JUST_BEEN = timedelta(days=60)
"""How long ago the day may be that a booking was made on, or that was booked and is over."""


def one_of(words: "dict[str, int] | dict[str, tuple[int, int]]") -> str:
    """A regex alternative of these words, longest first."""
    return "|".join(sorted((re.escape(word) for word in words), key=len, reverse=True))


class Reading(NamedTuple):
    """A time expression of a text and what it means.

    Attributes:
        start: First moment of the period meant, in the zone of the reference.
        precision: Length of that period. A weekend is a `week` that starts on a Saturday.
        text: The expression as it stands in the text, `text[begin:end]`.
        approximate: The speaker was vague, or the words allow another reading.
        until: Of a stretch that is counted out ("the past 7 days") the moment it is over; `precision` is then
            its rough length, and it is no time at which a thing happened.
    """

    start: datetime
    precision: Precision
    text: str
    begin: int
    end: int
    approximate: bool
    until: datetime | None = None

    @property
    def over(self) -> datetime:
        """The moment the period meant is over; `start` itself for a minute."""
        return self.until or end_of(self.start, self.precision)


class When(NamedTuple):
    """A period before it is tied to a place in a text: with a `moment` where it is exact to the clock, and
    `until` the day after the last one of a counted stretch."""

    day: date
    precision: Precision
    approximate: bool = False
    moment: datetime | None = None
    until: date | None = None


class Frame(NamedTuple):
    """What relative words are read against: the reference time and the tense of their sentence.

    Attributes:
        lead: The words of the sentence before them.
        booked: Whether the sentence tells of what is arranged beforehand: tickets, an appointment.
    """

    reference: datetime
    lead: str
    past: bool
    future: bool
    booked: bool = False

    @property
    def today(self) -> date:
        """The reference's day in its own zone."""
        return self.reference.date()

    @property
    def tense(self) -> int:
        """Below 0 what has been, above 0 what is to come, 0 where the words tell neither, or both."""
        return self.future - self.past


def end_of(start: datetime, precision: Precision) -> datetime:
    """The moment a period of this precision is over; `start` itself for a minute."""
    days = {"minute": 0, "day": 1, "week": 7, "month": 31, "season": 92, "year": 366}[precision]
    return start + timedelta(days=days)


def another_occasion(
    time: datetime | None, precision: Precision | None, other: datetime | None, others: Precision | None
) -> bool:
    """Whether the periods that two event times stand for have nothing in common."""
    if time is None or other is None:
        return False
    return max(time, other) >= min(end_of(time, precision or "day"), end_of(other, others or "day"))


def lies_in(inner: datetime, precision: Precision, outer: datetime, others: Precision) -> bool:
    """Whether a period lies in another, by the calendar: 7 May in May, 3 March not in February."""
    return outer <= inner and _calendar_end(inner, precision) <= _calendar_end(outer, others)


def _calendar_end(start: datetime, precision: Precision) -> datetime:
    months = {"month": 1, "season": 3, "year": 12}.get(precision)
    return end_of(start, precision) if months is None else midnight(_month_of(start.date(), months), start)


def midnight(day: date, like: datetime) -> datetime:
    """The first moment of a day in the zone of `like`."""
    return datetime.combine(day, time(), tzinfo=like.tzinfo)


def week_of(day: date, weeks: int = 0) -> date:
    """Monday of the week that many weeks away."""
    return day - timedelta(days=day.weekday()) + timedelta(weeks=weeks)


def _weekend_of(day: date, weeks: int) -> date:
    return week_of(day, weeks) + timedelta(days=SATURDAY)


def _month_of(day: date, months: int = 0) -> date:
    """First day of the month that many months away."""
    index = day.year * 12 + day.month - 1 + months
    return date(index // 12, index % 12 + 1, 1)


def _length(first: date) -> int:
    """Days of the month that begins so."""
    return (_month_of(first, 1) - first).days


def _same_days(months: Iterable[date], day: int) -> list[date]:
    """That day of the months that have it."""
    return [first.replace(day=day) for first in months if 1 <= day <= _length(first)]


def _moved(day: date, unit: str, count: int) -> date:
    """The same day that many units away, or the last of its month where that is shorter."""
    if unit in _DAYS_IN:
        return day + timedelta(days=count * _DAYS_IN[unit])
    first = _month_of(day, count * {"month": 1, "year": 12, "decade": 120}[unit])
    return first.replace(day=min(day.day, _length(first)))


_FAR = 2
"""The most of a vague count ("a couple of") that hides no error of a whole week or month."""


def _shifted(frame: Frame, unit: str, count: int, *, vague: bool = False) -> When:
    """The period `count` units away from today (negative: ago).

    A vague count widens the precision by a step where the next unit can hide the error: "a few days
    ago" is true to the week only.
    """
    today, wide = frame.today, vague and abs(count) > _FAR
    if unit in ("day", "week"):
        day = _moved(today, unit, count)
        if unit == "day":
            return When(week_of(day), "week", True) if wide else When(day, "day", vague)
        return When(_month_of(day), "month", True) if wide else When(week_of(day), "week", vague)
    if unit == "weekend":
        return When(_weekend_of(today, count), "week", vague)
    if unit == "month":
        return When(_month_of(today, count), "month", vague)
    years = count * 10 if unit == "decade" else count
    return When(date(today.year + years, 1, 1), "year", vague or unit == "decade")


def _nearest(options: list[date], frame: Frame, step: int | None = None) -> date:
    """The option before (step < 0) or after the reference; without a step the tense decides.

    What was booked is to come, whenever it was booked: "I bought tickets for 3 July". The day of the booking
    itself has just been.
    """
    today = frame.today
    back, ahead = [day for day in options if day <= today], [day for day in options if day >= today]
    if step is None and frame.booked and back and ahead:
        just_been = today - max(back) <= JUST_BEEN < min(ahead) - today
        return max(back) if just_been else min(ahead)
    step = frame.tense if step is None else step
    if step == 0:
        return min(options, key=lambda day: abs((day - today).days))
    return (max(back, default=None) if step < 0 else min(ahead, default=None)) or options[0]


def _of_years(frame: Frame, month: int, day: int = 1) -> list[date]:
    """That day of the year before, of this one and of the next; 29 February stands in leap years only."""
    return _same_days([date(frame.today.year + n, month, 1) for n in (-1, 0, 1)], day)


def _count(words: str) -> tuple[int, bool]:
    """The number that words of the form `_COUNT` stand for, and whether it is vague ("a few")."""
    if words in _VAGUE:
        return _VAGUE[words], True
    tens, _, unit = words.replace("-", " ").partition(" ")
    return (int(tens) if tens.isdigit() else NUMBERS[tens] + NUMBERS.get(unit, 0)), False


Said = Mapping[str, str]
"""The named parts of an expression in lower case; empty where it does without."""
Reader = Callable[[Said, Frame], When | None]
"""Gives None for what is no time expression here; of one that names no day there is it raises an error."""


def _iso(said: Said, frame: Frame) -> When:
    day = date(int(said["year"]), int(said["m"]), int(said["d"]))
    if not said["clock"]:
        return When(day, "day")
    moment = datetime.fromisoformat(f"{day.isoformat()}T{said['clock']}{said['zone'].upper()}")
    aware = moment if moment.tzinfo else moment.replace(tzinfo=frame.reference.tzinfo)
    local = aware.astimezone(frame.reference.tzinfo)
    return When(local.date(), "minute", moment=local)


def _numeric(said: Said, _: Frame) -> When | None:
    """Day and month by numbers, only where just one order makes sense."""
    first, second = int(said["a"]), int(said["b"])
    last = len(MONTH_NAMES)
    if first <= last and second <= last and first != second:
        return None
    month, day = (second, first) if first > last else (first, second)
    return When(date(int(said["year"]), month, day), "day")


def _dated(said: Said, _: Frame) -> When:
    """What names its year: "7 May 2023", "May 2023", "summer 2023", "in 2023"."""
    year, month, season = int(said["year"]), said.get("month"), said.get("season")
    if month:
        return When(date(year, MONTHS[month], int(said.get("day", 1))), "day" if "day" in said else "month")
    return When(date(year, SEASONS[season], 1), "season") if season else When(date(year, 1, 1), "year")


def _yearless(said: Said, frame: Frame) -> When:
    options = _of_years(frame, MONTHS[said["month"]], int(said["day"]))
    return When(_nearest(options, frame), "day", approximate=frame.tense == 0)


def _decade(said: Said, frame: Frame) -> When:
    year, century = int(said["decade"]), 100 * (frame.today.year // 100)
    if len(said["decade"]) == 2:  # noqa: PLR2004
        year += century if century + year <= frame.today.year else century - 100
    return When(date(year, 1, 1), "year", approximate=True)


def _day_word(said: Said, frame: Frame) -> When:
    return When(_moved(frame.today, "day", _DAYS[said["day"]]), "day")


def _ago(said: Said, frame: Frame) -> When:
    count, vague = _count(said["count"])
    if said.get("half"):
        return _shifted(frame, "month", -(12 * count + 6 if said["unit"] == "year" else count), vague=True)
    when = _shifted(frame, said["unit"], -count, vague=vague)
    return when._replace(approximate=when.approximate or bool(said["rough"]))


def _since_then(said: Said, frame: Frame) -> When | None:
    """ "for five years" after a perfect tense is a start."""
    return _ago(said, frame) if said["now"] or _PERFECT.search(frame.lead) else None


def _ahead(said: Said, frame: Frame) -> When | None:
    count, vague = _count(said["count"])
    # "in two weeks he had finished" is a span, not a date
    return None if frame.past else _shifted(frame, said["unit"], count, vague=vague)


_LENGTHS: tuple[tuple[int, Precision], ...] = ((1, "day"), (7, "week"), (31, "month"), (92, "season"))


def _stretch(said: Said, frame: Frame) -> When | None:
    """A counted stretch up to today or from it on, today included: "the past 7 days", "the next month"."""
    number, vague = _count(said.get("count") or "one")
    unit, today = said["unit"], frame.today
    ahead = said["way"] in ("next", "coming")
    if (ahead and frame.past) or (unit == "weekend" and not said.get("count")):
        return None
    if unit == "hour":
        unit, number = "day", -(-number // 24)
    if unit == "weekend":
        ends = [_weekend_of(today, step if ahead else -step) for step in (1, number)]
        first, last = min(ends), max(ends) + timedelta(days=1)
    else:
        first, last = sorted((today, _moved(today, unit, number if ahead else -number)))
    length: Precision = next((name for days, name in _LENGTHS if (last - first).days <= days), "year")
    return When(first, length, vague, until=last + timedelta(days=1))


def _from_day(said: Said, frame: Frame) -> When:
    """A day counted from another: "a week from Thursday", "two days after tomorrow", "a year ago today"."""
    (count, vague), side = _count(said["count"]), said["side"]
    if said["day"]:
        day = _day_word(said, frame).day
    else:
        which = said["which"] or {"from": "coming", "ago": "last"}.get(side, "this")
        day = _weekday({**said, "which": which}, frame).day
    return When(_moved(day, said["unit"], -count if side in ("ago", "before") else count), "day", vague)


def _nth_in(first: date, nth: int, name: str) -> list[date]:
    """The day, or the first one of the week or weekend, of that place in the month that begins so."""
    days = [first + timedelta(days=n) for n in range(_length(first))]
    if name == "week":
        found = [*days[:-6:7], days[-7]] if nth < 0 else days[::7]
    elif name != "day":
        weekday = WEEKDAYS["saturday" if name == "weekend" else name]
        found = [day for day in days if day.weekday() == weekday]
    else:
        found = days
    return found[nth:][:1]


def _nth_of_month(said: Said, frame: Frame) -> When:
    """ "the last Friday of the month", "of next month", "of March"; without a year by the tense."""
    name, month, which = said["name"], MONTHS.get(said["month"]), said["which"]
    if said["every"]:
        raise ValueError("no one day")
    if month:
        years = [date(int(said["year"]), month, 1)] if said["year"] else _of_years(frame, month)
    elif which == "the" and (frame.past or frame.future or frame.booked):
        years = [_month_of(frame.today, n) for n in (-1, 0, 1)]
    else:
        years = [_month_of(frame.today, _STEP.get(which, 0))]
    days = [day for first in years for day in _nth_in(first, _NTH[said["nth"]], name)]
    return When(_nearest(days, frame), "week" if name.startswith("week") else "day")


def _clock_ago(said: Said, frame: Frame) -> When:
    minutes = _count(said["count"])[0] * (60 if said["unit"].startswith("h") else 1)
    moment = frame.reference - timedelta(minutes=minutes)
    return When(moment.date(), "minute", approximate=True, moment=moment.replace(second=0, microsecond=0))


def _weekday(said: Said, frame: Frame) -> When:
    today, which = frame.today, said["which"]
    back = (today.weekday() - WEEKDAYS[said["name"]]) % 7 or 7
    ahead = 7 - back or 7
    if _STEP[which] < 0:
        return When(today - timedelta(days=back), "day")
    if which == "next":
        # Said on Thursday, "next Friday" is hardly tomorrow; earlier in the week both are meant by people.
        same_week = week_of(today + timedelta(days=ahead)) == week_of(today)
        ahead += 7 if ahead <= 2 else 0  # noqa: PLR2004
        return When(today + timedelta(days=ahead), "day", approximate=same_week)
    if frame.tense < 0:
        return When(today - timedelta(days=back % 7), "day")
    return When(today + timedelta(days=ahead % 7), "day")


def _on_weekday(said: Said, frame: Frame) -> When:
    """A bare "on Friday": the tense says which; without one, the one just gone, as a guess."""
    which = "this coming" if frame.tense > 0 else "last"
    return _weekday({**said, "which": which}, frame)._replace(approximate=frame.tense == 0)


def _which_unit(said: Said, frame: Frame) -> When:
    step = _STEP[said["which"]]
    if said["unit"] == "weekend" and step == 0 and frame.tense < 0 and frame.today.weekday() < SATURDAY:
        step = -1  # "this weekend was fun", said on a working day
    return _shifted(frame, said["unit"], step)


def _the_weekend(_: Said, frame: Frame) -> When:
    ahead = frame.tense > 0 or frame.today.weekday() >= SATURDAY
    return When(_weekend_of(frame.today, 0 if ahead else -1), "week", approximate=frame.tense == 0)


def _before_last(said: Said, frame: Frame) -> When:
    return _shifted(frame, said["unit"], -2 if said["side"] == "before last" else 2)


def _season(said: Said, frame: Frame) -> When:
    today, first, step = frame.today, SEASONS[said["name"]], _STEP[said["which"]]
    starts = [date(year, first, 1) for year in range(today.year - 2, today.year + 2)]
    if step < 0:
        return When(max(day for day in starts if _month_of(day, 3) <= today), "season")
    if step > 0:
        return When(min(day for day in starts if day > today), "season")
    running = [day for day in starts if day <= today < _month_of(day, 3)]
    return When(running[0] if running else date(today.year, first, 1), "season")


def _which_month(said: Said, frame: Frame) -> When:
    step, month = _STEP[said["which"]], MONTHS[said["name"]]
    if step == 0:
        return When(date(frame.today.year, month, 1), "month")
    others = [day for day in _of_years(frame, month) if day != _month_of(frame.today)]
    return When(_nearest(others, frame, step), "month")


def _bare_month(said: Said, frame: Frame) -> When:
    """ "in May", "since May": by tense the last or the coming one, the nearest without."""
    month, since = MONTHS[said["name"]], said["prep"] == "since"
    if frame.today.month == month:
        return When(_month_of(frame.today), "month")
    day = _nearest(_of_years(frame, month), frame, -1 if since else None)
    return When(day, "month", approximate=frame.tense == 0 and not since)


def _holiday(said: Said, frame: Frame) -> When:
    month, day = HOLIDAYS[said["name"]]
    step = _STEP[said["which"]]
    if step == 0:
        return When(date(frame.today.year, month, day), "day")
    return When(_nearest(_of_years(frame, month, day), frame, step), "day")


def _day_of_month(said: Said, frame: Frame) -> When:
    options = _same_days([_month_of(frame.today, n) for n in (-1, 0, 1)], int(said["number"]))
    return When(_nearest(options, frame, None if frame.future or frame.past else -1), "day")


_PERFECT = re.compile(r"\b(?:have|has|had|been|'ve|’ve|'s|’s)\b|'ve\b|’ve\b", re.IGNORECASE)
_COUNT = (
    rf"(?P<count>[0-9]{{1,4}}|(?:twenty|thirty|forty|fifty)[- ](?:one|two|three|four|five|six|seven"
    rf"|eight|nine)|{one_of(NUMBERS)}|{one_of(_VAGUE)})"
)
_ROUGHLY = (
    r"(?:(?P<rough>about|around|roughly|nearly|almost|over|more than|less than|just under|just over"
    r"|at least|like|maybe)\s+)?"
)
_WEEKDAY = rf"(?P<name>{one_of(WEEKDAYS)})"
_PART = r"\s+(?:morning|afternoon|evening|night)"
_WHICH = rf"(?P<which>{one_of(_STEP)})"
_UNIT = r"(?P<unit>day|week|weekend|month|year|decade)s?"
_WAY = r"(?P<way>past|last|next|coming)"
_SPAN = r"(?P<unit>hour|day|week|fortnight|weekend|month|year|decade)s?(?!\s+of\b)"
_MONTH = rf"(?P<month>{one_of(MONTHS)})\.?"
_DAY = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>1[0-9]{3}|2[0-9]{3})"

_FORMS: tuple[tuple[str, Reader], ...] = (
    # those that name a date
    (
        rf"{_YEAR}-(?P<m>[0-9]{{1,2}})-(?P<d>[0-9]{{1,2}})"
        r"(?:[T ](?P<clock>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?)?",
        _iso,
    ),
    (rf"(?P<a>[0-9]{{1,2}})[/.](?P<b>[0-9]{{1,2}})[/.]{_YEAR}", _numeric),
    (rf"{_DAY}\s*(?:of\s+)?{_MONTH},?\s*{_YEAR}", _dated),
    (rf"{_MONTH}\s+(?:the\s+)?{_DAY},?\s+{_YEAR}", _dated),
    (rf"(?:the\s+)?{_DAY}\s+(?:of\s+)?{_MONTH}", _yearless),
    (rf"{_MONTH}\s+(?:the\s+)?{_DAY}(?![:0-9]|\s*(?:am|pm)\b)", _yearless),
    (rf"(?:(?:early|mid|late)[- ])?{_MONTH},?\s+(?:of\s+)?{_YEAR}", _dated),
    (rf"(?P<season>{one_of(SEASONS)})\s+(?:of\s+)?{_YEAR}", _dated),
    (
        r"(?:in|since|until|till|by|from|during|before|after|around|year|early|late|mid)"
        rf"[\s-]+{_YEAR}",
        _dated,
    ),
    (r"(?:the\s+)(?:early\s+|mid-?\s?|late\s+)?['’]?(?P<decade>(?:1[0-9]|20)[0-9]0|[0-9]0)['’]?s", _decade),
    # those that lean on the moment of telling
    (rf"(?:earlier\s+)?(?P<day>{one_of(_DAYS)})(?:{_PART})?".replace("\\ ", r"\s+"), _day_word),
    (
        rf"{_ROUGHLY}{_COUNT}\s+{_UNIT}(?P<half>\s+and\s+a\s+half)?\s+"
        r"(?:ago|back(?!\s+(?:to|in|from)))",
        _ago,
    ),
    (rf"(?:(?:in|over|during|within)\s+)?(?:the\s+|this\s+)?{_WAY}\s+{_COUNT}\s+{_SPAN}", _stretch),
    (rf"(?:the\s+|this\s+)?(?P<way>past|last(?=\s+fortnight))\s+{_SPAN}", _stretch),
    (rf"(?:in|over|during|within)\s+the\s+{_WAY}\s+{_SPAN}", _stretch),
    (
        rf"{_COUNT}\s+(?P<unit>day|week|fortnight|month|year)s?\s+(?P<side>from|after|before|ago)\s+"
        rf"(?:(?P<day>today|tomorrow|yesterday)|(?:(?P<which>this|next|last)\s+)?{_WEEKDAY})",
        _from_day,
    ),
    (
        rf"(?P<every>(?:every|each)\s+)?(?:the\s+)?(?P<nth>{one_of(_NTH)})\s+"
        rf"(?P<name>day|week|weekend|{one_of(WEEKDAYS)})\s+(?:of|in)\s+"
        rf"(?:(?P<which>the|this|next|last)\s+month|{_MONTH}(?:,?\s+(?:of\s+)?{_YEAR})?)",
        _nth_of_month,
    ),
    (rf"in\s+{_ROUGHLY}{_COUNT}\s+{_UNIT}(?:'?\s+time)?", _ahead),
    (rf"{_COUNT}\s+{_UNIT}\s+from\s+now", _ahead),
    (rf"{_COUNT}\s+(?P<unit>hours?|minutes?|mins?)\s+ago", _clock_ago),
    (rf"{_WHICH}\s+{_WEEKDAY}(?:{_PART})?", _weekday),
    (rf"on\s+{_WEEKDAY}(?:{_PART})?", _on_weekday),
    (rf"{_WEEKDAY}{_PART}", _on_weekday),
    (rf"(?:(?:earlier|later)\s+)?{_WHICH}\s+(?P<unit>week|weekend|month|year|decade)", _which_unit),
    (r"(?:over|at|on|during|for|had\s+a(?:n)?\s+\w+)\s+the\s+weekend", _the_weekend),
    (r"the\s+(?P<unit>week|weekend|month|year)\s+(?P<side>before last|after next)", _before_last),
    (rf"{_WHICH}\s+(?P<name>{one_of(SEASONS)})", _season),
    (rf"{_WHICH}\s+(?P<name>{one_of(MONTHS)})", _which_month),
    (rf"{_WHICH}\s+(?P<name>{one_of(HOLIDAYS)})", _holiday),
    (
        r"(?P<prep>in|since|until|till|by|during|back\s+in|from)\s+(?:early\s+|late\s+|mid-?\s?"
        rf"|the\s+(?:beginning|end|middle)\s+of\s+)?(?P<name>{one_of(MONTHS)})(?!\s+(?:be|have|not|[0-9]))",
        _bare_month,
    ),
    (r"on\s+the\s+(?P<number>[0-9]{1,2})(?:st|nd|rd|th)", _day_of_month),
    (
        rf"for\s+(?:the\s+(?:past|last)\s+)?{_ROUGHLY}{_COUNT}\s+{_UNIT}(?P<now>\s+(?:now|already))?",
        _since_then,
    ),
    (rf"{_ROUGHLY}{_COUNT}\s+{_UNIT}(?P<now>\s+(?:now|already))", _since_then),
    (r"the\s+other\s+(?:day|night)", lambda _, frame: _shifted(frame, "day", -3, vague=True)),
)
READERS = [
    (re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE), reader) for pattern, reader in _FORMS
]
"""Every form with its reader."""


def read(match: re.Match[str], reader: Reader, frame: Frame) -> tuple[When | None, bool]:
    """What an expression of a form means, and whether it is a time expression at all."""
    said = {name: " ".join((part or "").casefold().split()) for name, part in match.groupdict().items()}
    try:
        when = reader(said, frame)
    except (ValueError, LookupError, OverflowError):  # no such day, or beyond the calendar
        return None, True
    # Years of which a chat may speak, which keep zone arithmetic within datetime's range.
    if when and not FIRST_YEAR <= when.day.year <= (when.until or when.day).year <= LAST_YEAR:
        return None, True
    return when, when is not None
