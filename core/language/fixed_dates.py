"""Dates of a text that mean the same whenever it was said: for texts that nobody dated."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from memcycle.core.entry import Precision
from memcycle.core.language.dates import Reading, read_dates
from memcycle.core.language.readings import MONTHS, WEEKDAYS, midnight, one_of, week_of

_BY = datetime(2000, 1, 12, tzinfo=UTC)
_LATER = _BY + timedelta(days=801)
_STEPS = {
    "before": {"day": "yesterday", "week": "last week", "weekend": "last weekend", "month": "last month",
               "year": "last year"},
    "after": {"day": "tomorrow", "week": "next week", "weekend": "next weekend", "month": "next month",
              "year": "next year"},
}  # fmt: skip
_LEANING = re.compile(
    rf"\b(?:the\s+)?(?:(?P<unit>weekend|week|day|month|year)|(?P<weekday>{one_of(WEEKDAYS)}))"
    r"\s+(?P<side>before|after|of)\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_MONTH = re.compile(rf"\b(?:{one_of(MONTHS)})\b", re.IGNORECASE)
# "31 February 2023" is no date, and no 2023 either.
_MONTH_BEFORE = re.compile(rf"\b(?:{one_of(MONTHS)})\W{{1,2}}$", re.IGNORECASE)
_YEAR = re.compile(r"(?<![\w.,-])(?:19|20)\d\d(?![\w-]|[.,]\d|\s+\w+s\b)")
_LOOK_BACK = 32
"""Characters before a date that are read for "the weekend before"."""


class Fixed(NamedTuple):
    """A period and the place of its words in the text."""

    start: datetime
    precision: Precision
    begin: int
    end: int


def fixed_dates(text: str, *, by: datetime | None = None) -> list[Fixed]:
    """The dates of a text, in order, without those that lean on the moment it was said ("yesterday").

    "the week before 5 June 2023" and "the weekend of 10 June 2023" are read from the date they name, and a
    year that stands alone is one. Days without a year ("7 May") are read only with `by`, a time near which
    they are meant. Times are in UTC.
    """
    found: list[Fixed] = []
    later = {(one.begin, one.end): one for one in read_dates(text, _LATER)}
    for one in read_dates(text, _BY):
        other = later.get((one.begin, one.end))
        if other is not None and other.start == one.start:
            found.append(_leaning(text, one))
        elif by is not None and one.precision == "day" and _MONTH.search(one.text):
            near = next((r for r in read_dates(text, by) if (r.begin, r.end) == (one.begin, one.end)), None)
            found += [Fixed(near.start, near.precision, near.begin, near.end)] if near else []
    return sorted([*found, *_years(text, found)], key=lambda date: date.begin)


def without(text: str, dates: Sequence[Fixed]) -> str:
    """The text without the words of these dates."""
    for date in reversed(dates):
        text = f"{text[: date.begin]} {text[date.end :]}"
    return text


def _years(text: str, found: Sequence[Fixed]) -> list[Fixed]:
    return [
        Fixed(datetime(int(match[0]), 1, 1, tzinfo=UTC), "year", *match.span())
        for match in _YEAR.finditer(text)
        if not any(date.begin <= match.start() < date.end for date in found)
        and not _MONTH_BEFORE.search(text, max(0, match.start() - _LOOK_BACK), match.start())
    ]


def _leaning(text: str, date: Reading) -> Fixed:
    """The period that the words before a date make of it; else the date."""
    plain = Fixed(date.start.astimezone(UTC), date.precision, date.begin, date.end)
    lead = _LEANING.search(text, max(0, date.begin - _LOOK_BACK), date.begin)
    if lead is None or date.precision not in ("day", "minute"):
        return plain
    side, unit = lead["side"].lower(), (lead["unit"] or "").lower()
    if side == "of":
        day = week_of(date.start.date()) if unit == "week" else date.start.date()
        week = plain._replace(start=midnight(day, plain.start), precision="week", begin=lead.start())
        return week if unit.startswith("week") else plain
    words = _STEPS[side].get(unit) or f"{'last' if side == 'before' else 'next'} {lead['weekday']}"
    read = read_dates(words, date.start)
    return (
        plain._replace(start=read[0].start, precision=read[0].precision, begin=lead.start())
        if read
        else plain
    )
