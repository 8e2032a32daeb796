"""Forms of time expressions ("7 May 2023", "the 90s", "last Friday") and what they mean."""

import re
from collections.abc import Callable, Iterator
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
VAGUE = {"a few": 3, "few": 3, "several": 5, "a couple of": 2, "a couple": 2, "couple of": 2, "couple": 2}
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
        begin: Offset of its first character.
        end: Offset after its last character.
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
    """A period before it is tied to a place in a text.

    Attributes:
        moment: Set for clock-exact ones only. until: the day after the last one of a counted stretch.
    """

    day: date
    precision: Precision
    approximate: bool = False
    moment: datetime | None = None
    until: date | None = None


class Frame(NamedTuple):
    """What relative words are read against: the reference time and the tense of their sentence.

    Attributes:
        booked: Whether the sentence tells of what is arranged beforehand: tickets, an appointment.
    """

    reference: datetime
    past: bool
    future: bool
    booked: bool = False

    @property
    def today(self) -> date:
        """The reference's day in its own zone."""
        return self.reference.date()


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
    return end_of(start, precision) if months is None else midnight(add_months(start.date(), months), start)


def midnight(day: date, like: datetime) -> datetime:
    """The first moment of a day in the zone of `like`."""
    return datetime.combine(day, time(), tzinfo=like.tzinfo)


def add_months(day: date, months: int) -> date:
    """First day of the month that many months away."""
    index = day.year * 12 + day.month - 1 + months
    return date(index // 12, index % 12 + 1, 1)


def same_day(day: date, months: int) -> date:
    """The same day of the month that many months away, or the last one where it is shorter."""
    first = add_months(day, months)
    return first.replace(day=min(day.day, (add_months(first, 1) - first).days))


def week_of(day: date, weeks: int = 0) -> date:
    """Monday of the week that many weeks away."""
    return day - timedelta(days=day.weekday()) + timedelta(weeks=weeks)


def weekend_of(day: date, weeks: int = 0) -> date:
    """Saturday of the week that many weeks away."""
    return week_of(day, weeks) + timedelta(days=5)


def count_of(words: str) -> tuple[int, bool] | None:
    """The number a count stands for, and whether it is vague ("a few"). None when it is no count."""
    folded = re.sub(r"\s+", " ", words.strip().lower())
    if folded in VAGUE:
        return VAGUE[folded], True
    if folded in NUMBERS:
        return NUMBERS[folded], False
    if folded.isascii() and folded.isdigit():
        return int(folded), False
    tens, _, unit = folded.replace("-", " ").partition(" ")
    if NUMBERS.get(tens, 0) >= 20 and 0 < NUMBERS.get(unit, 0) < 10:  # noqa: PLR2004
        return NUMBERS[tens] + NUMBERS[unit], False
    return None


COUNT = (
    rf"(?:[0-9]{{1,4}}|(?:twenty|thirty|forty|fifty)[- ](?:one|two|three|four|five|six|seven"
    rf"|eight|nine)|{one_of(NUMBERS)}|{one_of(VAGUE)})"
)
ROUGHLY = (
    r"(?:about|around|roughly|nearly|almost|over|more than|less than|just under|just over"
    r"|at least|like|maybe)"
)


def shifted(today: date, unit: str, count: int, *, vague: bool) -> When:
    """The period `count` units away from today (negative: ago).

    A vague count widens the precision by a step where the next unit can hide the error: "a few days
    ago" is true to the week only.
    """
    if unit == "day":
        day = today + timedelta(days=count)
        return When(week_of(day), "week", True) if vague and abs(count) > 2 else When(day, "day", vague)  # noqa: PLR2004
    if unit == "week":
        if vague and abs(count) > 2:  # noqa: PLR2004
            return When((today + timedelta(weeks=count)).replace(day=1), "month", True)
        return When(week_of(today, count), "week", vague)
    if unit == "weekend":
        return When(weekend_of(today, count), "week", vague)
    if unit == "month":
        return When(add_months(today, count), "month", vague)
    years = count * 10 if unit == "decade" else count
    return When(date(today.year + years, 1, 1), "year", vague or unit == "decade")


Reader = Callable[[re.Match[str], Frame], When | None]
_WEEKDAY = rf"(?:{one_of(WEEKDAYS)})"
_PART = r"(?:\s+(?:morning|afternoon|evening|night))?"
_DAYS = {
    "the day before yesterday": -2, "day before yesterday": -2, "the night before last": -2,
    "yesterday": -1, "last night": -1, "last evening": -1, "today": 0, "tonight": 0,
    "this morning": 0, "this afternoon": 0, "this evening": 0,
    "tomorrow": 1, "the day after tomorrow": 2, "day after tomorrow": 2,
}  # fmt: skip
_STEP = {"last": -1, "past": -1, "previous": -1, "this past": -1, "this last": -1, "the past": -1,
         "this": 0, "next": 1, "coming": 1, "this coming": 1, "upcoming": 1, "this upcoming": 1}  # fmt: skip
_WHICH = rf"(?P<which>{one_of(_STEP)})"
_UNIT = r"(?P<unit>day|week|weekend|month|year|decade)s?"
_WAY = r"(?P<way>past|last|next|coming)"
_SPAN = r"(?P<unit>hour|day|week|fortnight|weekend|month|year|decade)s?(?!\s+of\b)"
_PERFECT = re.compile(r"\b(?:have|has|had|been|'ve|’ve|'s|’s)\b|'ve\b|’ve\b", re.IGNORECASE)


def _day_word(match: re.Match[str], frame: Frame) -> When:
    words = re.sub(r"\s+", " ", match["day"].lower())
    return When(frame.today + timedelta(days=_DAYS[words]), "day")


def _ago(match: re.Match[str], frame: Frame) -> When | None:
    count = count_of(match["count"])
    if count is None:
        return None
    rough = bool(match["rough"])
    if match["half"]:
        months = 12 * count[0] + 6 if match["unit"] == "year" else count[0]
        return shifted(frame.today, "month", -months, vague=True)
    when = shifted(frame.today, match["unit"].lower(), -count[0], vague=count[1])
    return when._replace(approximate=when.approximate or rough)


def _ahead(match: re.Match[str], frame: Frame) -> When | None:
    count = count_of(match["count"])
    if count is None or frame.past:  # "in two weeks he had finished" is a span, not a date
        return None
    return shifted(frame.today, match["unit"].lower(), count[0], vague=count[1])


def _moved(day: date, unit: str, count: int) -> date:
    """The same day that many units away."""
    if unit in ("day", "week", "fortnight"):
        return day + timedelta(days=count * {"day": 1, "week": 7, "fortnight": 14}[unit])
    return same_day(day, count * {"month": 1, "year": 12, "decade": 120}[unit])


_LENGTHS: tuple[tuple[int, Precision], ...] = ((1, "day"), (7, "week"), (31, "month"), (92, "season"))


def _stretch(match: re.Match[str], frame: Frame) -> When | None:
    """A counted stretch up to today or from it on, today included: "the past 7 days", "the next month"."""
    count = count_of(match["count"] or "one")
    unit, today = match["unit"].lower(), frame.today
    ahead = match["way"].lower() in ("next", "coming")
    if count is None or (unit == "weekend" and not match["count"]):
        return None
    if ahead and frame.past:  # "in the next two weeks he had finished"
        return None
    number, vague = count
    if unit == "hour":
        unit, number = "day", -(-number // 24)
    if unit == "weekend":
        ends = [weekend_of(today, step if ahead else -step) for step in (1, number)]
        first, last = min(ends), max(ends) + timedelta(days=1)
    else:
        first, last = sorted((today, _moved(today, unit, number if ahead else -number)))
    length: Precision = next((name for days, name in _LENGTHS if (last - first).days <= days), "year")
    return When(first, length, vague, until=last + timedelta(days=1))


def _from_day(match: re.Match[str], frame: Frame) -> When | None:
    """A day counted from another: "a week from Thursday", "two days after tomorrow", "a year ago today"."""
    count, side = count_of(match["count"]), match["side"].lower()
    if count is None:
        return None
    if match["day"]:
        day = frame.today + timedelta(days=_DAYS[match["day"].lower()])
    else:
        which = match["which"] or {"from": "coming", "ago": "last"}.get(side, "this")
        day = _weekday(which.lower(), WEEKDAYS[match["name"].lower()], frame).day
    return When(
        _moved(day, match["unit"].lower(), count[0] * (-1 if side in ("ago", "before") else 1)),
        "day",
        count[1],
    )


_NTH = {"first": 0, "1st": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3, "4th": 3,
        "fifth": 4, "5th": 4, "last": -1}  # fmt: skip


def _nth_in(first: date, nth: int, name: str) -> date | None:
    """The day, or the first one of the week or weekend, of that place in the month that begins so."""
    days = [first + timedelta(days=n) for n in range((add_months(first, 1) - first).days)]
    if name == "week":
        found = [*days[:-6:7], days[-7]] if nth < 0 else days[::7]
    elif name != "day":
        weekday = WEEKDAYS["saturday"] if name == "weekend" else WEEKDAYS[name]
        found = [day for day in days if day.weekday() == weekday]
    else:
        found = days
    return found[nth] if nth < len(found) else None


def _nth_of_month(match: re.Match[str], frame: Frame) -> When | None:
    """ "the last Friday of the month", "of next month", "of March"; without a year by the tense."""
    if re.search(r"\b(?:every|each)\s+(?:the\s+)?$", match.string[: match.start()], re.IGNORECASE):
        raise ValueError("no one day")
    nth, name, which = _NTH[match["nth"].lower()], match["name"].lower(), (match["which"] or "").lower()
    around = (-1, 0, 1) if frame.past or frame.future or frame.booked else (0,)
    if match["year"]:
        months = [date(int(match["year"]), MONTHS[match["month"].lower()], 1)]
    elif match["month"]:
        months = [date(frame.today.year + n, MONTHS[match["month"].lower()], 1) for n in (-1, 0, 1)]
    else:
        months = [add_months(frame.today, n) for n in (around if which == "the" else (_STEP[which],))]
    days = [day for first in months if (day := _nth_in(first, nth, name))]
    if not days:
        raise ValueError("no such day")
    return When(nearest(days, frame, None), "week" if name.startswith("week") else "day")


def _clock_ago(match: re.Match[str], frame: Frame) -> When | None:
    count = count_of(match["count"])
    if count is None:
        return None
    step = timedelta(hours=count[0]) if match["unit"].lower().startswith("h") else timedelta(minutes=count[0])
    moment = frame.reference - step
    return When(moment.date(), "minute", approximate=True, moment=moment.replace(second=0, microsecond=0))


def _weekday(which: str, weekday: int, frame: Frame) -> When:
    today = frame.today
    back = (today.weekday() - weekday) % 7 or 7
    ahead = 7 - back if back < 7 else 7  # noqa: PLR2004 days in a week
    if _STEP[which] < 0:
        return When(today - timedelta(days=back), "day")
    if which == "next":
        # Said on Thursday, "next Friday" is hardly tomorrow; earlier in the week both are meant by people.
        same_week = week_of(today + timedelta(days=ahead)) == week_of(today)
        ahead += 7 if ahead <= 2 else 0  # noqa: PLR2004
        return When(today + timedelta(days=ahead), "day", approximate=same_week)
    if frame.past and not frame.future:
        return When(today - timedelta(days=back % 7), "day")
    return When(today + timedelta(days=ahead % 7), "day")


def _which_weekday(match: re.Match[str], frame: Frame) -> When:
    return _weekday(match["which"].lower(), WEEKDAYS[match["name"].lower()], frame)


def _on_weekday(match: re.Match[str], frame: Frame) -> When:
    """A bare "on Friday": the tense says which; without one, the one just gone, as a guess."""
    future = frame.future and not frame.past
    return _weekday("this coming" if future else "last", WEEKDAYS[match["name"].lower()], frame)._replace(
        approximate=frame.future == frame.past
    )


def _which_unit(match: re.Match[str], frame: Frame) -> When:
    step = _STEP[match["which"].lower()]
    unit = match["unit"].lower()
    if unit == "weekend" and step == 0 and frame.past and not frame.future and frame.today.weekday() < 5:  # noqa: PLR2004
        step = -1  # "this weekend was fun", said on a working day
    return shifted(frame.today, unit, step, vague=False)


def _the_weekend(_: re.Match[str], frame: Frame) -> When:
    weekday = frame.today.weekday()
    ahead = (frame.future and not frame.past) or weekday >= 5  # noqa: PLR2004 Saturday and Sunday
    return When(weekend_of(frame.today, 0 if ahead else -1), "week", approximate=frame.future == frame.past)


def _before_last(match: re.Match[str], frame: Frame) -> When:
    step = -2 if match["side"].lower() == "before last" else 2
    return shifted(frame.today, match["unit"].lower(), step, vague=False)


def _season(match: re.Match[str], frame: Frame) -> When:
    today, first = frame.today, SEASONS[match["name"].lower()]
    step = _STEP[match["which"].lower()]
    starts = [date(year, first, 1) for year in range(today.year - 2, today.year + 2)]
    if step < 0:
        return When(max(day for day in starts if add_months(day, 3) <= today), "season")
    if step > 0:
        return When(min(day for day in starts if day > today), "season")
    running = [day for day in starts if day <= today < add_months(day, 3)]
    return When(running[0] if running else date(today.year, first, 1), "season")


def nearest(options: list[date], frame: Frame, step: int | None) -> date:
    """The option before (step < 0) or after the reference; without a step the tense decides.

    What was booked is to come, whenever it was booked: "I bought tickets for 3 July". The day of the booking
    itself has just been.
    """
    today = frame.today
    back, ahead = [day for day in options if day <= today], [day for day in options if day >= today]
    if step is None and frame.booked and back and ahead:
        just_been = today - max(back) <= JUST_BEEN < min(ahead) - today
        return max(back) if just_been else min(ahead)
    if step is None:
        if frame.future == frame.past:
            return min(options, key=lambda day: abs((day - today).days))
        step = 1 if frame.future else -1
    chosen = max(back, default=None) if step < 0 else min(ahead, default=None)
    return chosen or options[0]


def _which_month(match: re.Match[str], frame: Frame) -> When:
    step, month = _STEP[match["which"].lower()], MONTHS[match["name"].lower()]
    if step == 0:
        return When(date(frame.today.year, month, 1), "month")
    this_month = frame.today.replace(day=1)
    years = [date(frame.today.year + n, month, 1) for n in (-1, 0, 1)]
    return When(nearest([day for day in years if day != this_month], frame, step), "month")


def bare_month(match: re.Match[str], frame: Frame) -> When:
    """ "in May", "since May": by tense the last or the coming one, the nearest without."""
    month, this_month = MONTHS[match["name"].lower()], frame.today.replace(day=1)
    if this_month.month == month:
        return When(this_month, "month")
    years = [date(frame.today.year + n, month, 1) for n in (-1, 0, 1)]
    if match["prep"].lower() == "since":
        return When(nearest(years, frame, -1), "month")
    return When(nearest(years, frame, None), "month", approximate=frame.future == frame.past)


def _holiday(match: re.Match[str], frame: Frame) -> When:
    month, day = HOLIDAYS[match["name"].lower().replace("’", "'")]
    step = _STEP[match["which"].lower()]
    if step == 0:
        return When(date(frame.today.year, month, day), "day")
    years = [date(frame.today.year + n, month, day) for n in (-1, 0, 1)]
    return When(nearest(years, frame, step), "day")


def _day_of_month(match: re.Match[str], frame: Frame) -> When | None:
    day = int(match["number"])
    options = []
    for months in (-1, 0, 1):
        first = add_months(frame.today, months)
        if 1 <= day <= (add_months(first, 1) - first).days:
            options.append(first.replace(day=day))
    if not options:
        return None
    return When(nearest(options, frame, None if frame.future or frame.past else -1), "day")


def _since_then(match: re.Match[str], frame: Frame) -> When | None:
    """ "for five years" after a perfect tense is a start."""
    before = match.string[: match.start()]
    perfect = _PERFECT.search(re.split(r"[.!?]\s", before)[-1]) is not None
    count = count_of(match["count"])
    if count is None or not (perfect or match["now"]):
        return None
    when = shifted(frame.today, match["unit"].lower(), -count[0], vague=count[1])
    return when._replace(approximate=when.approximate or bool(match["rough"]))


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE)


_MONTH = rf"(?P<month>{one_of(MONTHS)})\.?"
_DAY = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>1[0-9]{3}|2[0-9]{3})"
_LAST_MONTH = 12


def _full(match: re.Match[str], _: Frame) -> When:
    return When(date(int(match["year"]), MONTHS[match["month"].lower()], int(match["day"])), "day")


def _yearless(match: re.Match[str], frame: Frame) -> When:
    month, day = MONTHS[match["month"].lower()], int(match["day"])
    options = []
    for year in range(frame.today.year - 1, frame.today.year + 2):
        try:
            options.append(date(year, month, day))
        except ValueError:  # 29 February stands in leap years only
            continue
    if not options:
        raise ValueError(f"no day {day} in month {month}")
    return When(nearest(options, frame, None), "day", approximate=frame.future == frame.past)


def _iso(match: re.Match[str], frame: Frame) -> When:
    day = date(int(match["year"]), int(match["m"]), int(match["d"]))
    if match["clock"] is None:
        return When(day, "day")
    moment = datetime.fromisoformat(f"{day.isoformat()}T{match['clock']}{match['zone'] or ''}")
    aware = moment if moment.tzinfo else moment.replace(tzinfo=frame.reference.tzinfo)
    local = aware.astimezone(frame.reference.tzinfo)
    return When(local.date(), "minute", moment=local)


def _numeric(match: re.Match[str], _: Frame) -> When | None:
    """Day and month by numbers, only where just one order makes sense."""
    first, second = int(match["a"]), int(match["b"])
    if first <= _LAST_MONTH and second <= _LAST_MONTH and first != second:
        return None
    month, day = (second, first) if first > _LAST_MONTH else (first, second)
    return When(date(int(match["year"]), month, day), "day")


def _month(match: re.Match[str], _: Frame) -> When:
    return When(date(int(match["year"]), MONTHS[match["month"].lower()], 1), "month")


def _season_of_year(match: re.Match[str], _: Frame) -> When:
    return When(date(int(match["year"]), SEASONS[match["season"].lower()], 1), "season")


def _year(match: re.Match[str], _: Frame) -> When:
    return When(date(int(match["year"]), 1, 1), "year")


def _decade(match: re.Match[str], frame: Frame) -> When:
    digits = match["decade"]
    if len(digits) == 4:  # noqa: PLR2004
        return When(date(int(digits), 1, 1), "year", approximate=True)
    century = 100 * (frame.today.year // 100)
    year = century + int(digits)
    return When(date(year if year <= frame.today.year else year - 100, 1, 1), "year", approximate=True)


def readers() -> Iterator[tuple[re.Pattern[str], Reader]]:
    """Every form with its reader: those that name a date, then those that lean on the moment of telling."""
    yield (
        _compile(
            rf"{_YEAR}-(?P<m>[0-9]{{1,2}})-(?P<d>[0-9]{{1,2}})"
            r"(?:[T ](?P<clock>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?)?"
        ),
        _iso,
    )
    yield _compile(rf"(?P<a>[0-9]{{1,2}})[/.](?P<b>[0-9]{{1,2}})[/.]{_YEAR}"), _numeric
    yield _compile(rf"{_DAY}\s*(?:of\s+)?{_MONTH},?\s*{_YEAR}"), _full
    yield _compile(rf"{_MONTH}\s+(?:the\s+)?{_DAY},?\s+{_YEAR}"), _full
    yield _compile(rf"(?:the\s+)?{_DAY}\s+(?:of\s+)?{_MONTH}"), _yearless
    yield _compile(rf"{_MONTH}\s+(?:the\s+)?{_DAY}(?![:0-9]|\s*(?:am|pm)\b)"), _yearless
    yield _compile(rf"(?:(?:early|mid|late)[- ])?{_MONTH},?\s+(?:of\s+)?{_YEAR}"), _month
    yield _compile(rf"(?P<season>{one_of(SEASONS)})\s+(?:of\s+)?{_YEAR}"), _season_of_year
    yield (
        _compile(
            r"(?:in|since|until|till|by|from|during|before|after|around|year|early|late"
            rf"|mid)[\s-]+{_YEAR}"
        ),
        _year,
    )
    yield (
        _compile(
            r"(?:the\s+)(?:early\s+|mid-?\s?|late\s+)?['’]?(?P<decade>(?:1[0-9]|20)[0-9]0" r"|[0-9]0)['’]?s"
        ),
        _decade,
    )
    yield (
        _compile(
            rf"(?:earlier\s+)?(?P<day>{'|'.join(sorted(_DAYS, key=len, reverse=True))}){_PART}".replace(
                " ", r"\s+"
            )
        ),
        _day_word,
    )
    yield (
        _compile(
            rf"(?:(?P<rough>{ROUGHLY})\s+)?(?P<count>{COUNT})\s+{_UNIT}(?P<half>\s+and\s+a\s+half)?\s+"
            r"(?:ago|back(?!\s+(?:to|in|from)))"
        ),
        _ago,
    )
    yield (
        _compile(
            rf"(?:(?:in|over|during|within)\s+)?(?:the\s+|this\s+)?{_WAY}\s+(?P<count>{COUNT})\s+{_SPAN}"
        ),
        _stretch,
    )
    yield _compile(rf"(?:the\s+|this\s+)?(?P<way>past|last(?=\s+fortnight))\s+(?P<count>){_SPAN}"), _stretch
    yield _compile(rf"(?:in|over|during|within)\s+the\s+{_WAY}\s+(?P<count>){_SPAN}"), _stretch
    yield (
        _compile(
            rf"(?P<count>{COUNT})\s+(?P<unit>day|week|fortnight|month|year)s?\s+(?P<side>from|after|before|ago)\s+"
            rf"(?:(?P<day>today|tomorrow|yesterday)|(?:(?P<which>this|next|last)\s+)?(?P<name>{_WEEKDAY}))"
        ),
        _from_day,
    )
    yield (
        _compile(
            rf"(?:the\s+)?(?P<nth>{one_of(_NTH)})\s+(?P<name>day|week|weekend|{_WEEKDAY})\s+(?:of|in)\s+"
            rf"(?:(?P<which>the|this|next|last)\s+month|{_MONTH}(?:,?\s+(?:of\s+)?{_YEAR})?)"
        ),
        _nth_of_month,
    )
    yield _compile(rf"in\s+(?:{ROUGHLY}\s+)?(?P<count>{COUNT})\s+{_UNIT}(?:'?\s+time)?"), _ahead
    yield _compile(rf"(?P<count>{COUNT})\s+{_UNIT}\s+from\s+now"), _ahead
    yield _compile(rf"(?P<count>{COUNT})\s+(?P<unit>hours?|minutes?|mins?)\s+ago"), _clock_ago
    yield _compile(rf"{_WHICH}\s+(?P<name>{_WEEKDAY}){_PART}"), _which_weekday
    yield _compile(rf"on\s+(?P<name>{_WEEKDAY}){_PART}"), _on_weekday
    yield _compile(rf"(?P<name>{_WEEKDAY})\s+(?:morning|afternoon|evening|night)"), _on_weekday
    yield (
        _compile(rf"(?:(?:earlier|later)\s+)?{_WHICH}\s+(?P<unit>week|weekend|month|year|decade)"),
        _which_unit,
    )
    yield _compile(r"(?:over|at|on|during|for|had\s+a(?:n)?\s+\w+)\s+the\s+weekend"), _the_weekend
    yield (
        _compile(r"the\s+(?P<unit>week|weekend|month|year)\s+(?P<side>before last|after next)"),
        _before_last,
    )
    yield _compile(rf"{_WHICH}\s+(?P<name>{one_of(SEASONS)})"), _season
    yield _compile(rf"{_WHICH}\s+(?P<name>{one_of(MONTHS)})"), _which_month
    yield _compile(rf"{_WHICH}\s+(?P<name>{one_of(HOLIDAYS)})"), _holiday
    yield (
        _compile(
            r"(?P<prep>in|since|until|till|by|during|back\s+in|from)\s+(?:early\s+|late\s+|mid-?\s?"
            r"|the\s+(?:beginning|end|middle)\s+of\s+)?"
            rf"(?P<name>{one_of(MONTHS)})(?!\s+(?:be|have|not|[0-9]))"
        ),
        bare_month,
    )
    yield _compile(r"on\s+the\s+(?P<number>[0-9]{1,2})(?:st|nd|rd|th)"), _day_of_month
    yield (
        _compile(
            rf"(?:for\s+)(?:the\s+(?:past|last)\s+)?(?:(?P<rough>{ROUGHLY})\s+)?(?P<count>{COUNT})\s+"
            rf"{_UNIT}(?P<now>\s+(?:now|already))?"
        ),
        _since_then,
    )
    yield (
        _compile(rf"(?:(?P<rough>{ROUGHLY})\s+)?(?P<count>{COUNT})\s+{_UNIT}(?P<now>\s+(?:now|already))"),
        _since_then,
    )
    yield (
        _compile(r"the\s+other\s+(?:day|night)"),
        lambda _, frame: shifted(frame.today, "day", -3, vague=True),
    )


def plausible(day: date) -> bool:
    """Whether a year may be spoken of in a chat; keeps zone arithmetic within datetime's range."""
    return FIRST_YEAR <= day.year <= LAST_YEAR
