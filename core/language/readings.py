"""What a date reader gives back, and the calendar arithmetic readers share."""

import re
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from memcycle.core.entry import Precision

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
    """

    start: datetime
    precision: Precision
    text: str
    begin: int
    end: int
    approximate: bool


class When(NamedTuple):
    """A period before it is tied to a place in a text. `moment` is set for clock-exact ones only."""

    day: date
    precision: Precision
    approximate: bool = False
    moment: datetime | None = None


class Frame(NamedTuple):
    """What relative words are read against: the reference time and the tense of their sentence."""

    reference: datetime
    past: bool
    future: bool

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
