"""Time expressions that name a date: "7 May 2023", "May 2023", "in 2022", "the 90s"."""

import re
from collections.abc import Iterator
from datetime import date, datetime

from memcycle.core.language.readings import FIRST_YEAR, LAST_YEAR, MONTHS, SEASONS, Frame, When, one_of
from memcycle.core.language.relative_dates import Reader, nearest

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


def _season(match: re.Match[str], _: Frame) -> When:
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


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE)


def absolute_readers() -> Iterator[tuple[re.Pattern[str], Reader]]:
    """Every absolute form with its reader."""
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
    yield _compile(rf"(?P<season>{one_of(SEASONS)})\s+(?:of\s+)?{_YEAR}"), _season
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


def plausible(day: date) -> bool:
    """Whether a year may be spoken of in a chat; keeps zone arithmetic within datetime's range."""
    return FIRST_YEAR <= day.year <= LAST_YEAR
