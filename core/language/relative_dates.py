"""Time expressions that lean on the moment they are said: "last Friday", "two weekends ago"."""

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta

from memcycle.core.language.readings import (
    COUNT,
    HOLIDAYS,
    MONTHS,
    ROUGHLY,
    SEASONS,
    WEEKDAYS,
    Frame,
    When,
    add_months,
    count_of,
    one_of,
    shifted,
    week_of,
    weekend_of,
)  # fmt: skip

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
    """The option before (step < 0) or after the reference; without a step the tense decides."""
    today = frame.today
    back, ahead = [day for day in options if day <= today], [day for day in options if day >= today]
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


def _days_back(_: re.Match[str], frame: Frame) -> When:
    return shifted(frame.today, "day", -3, vague=True)


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE)


def relative_readers() -> Iterator[tuple[re.Pattern[str], Reader]]:
    """Every relative form with its reader."""
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
    yield _compile(rf"in\s+(?:{ROUGHLY}\s+)?(?P<count>{COUNT})\s+{_UNIT}(?:'?\s+time)?"), _ahead
    yield _compile(rf"(?P<count>{COUNT})\s+{_UNIT}\s+from\s+(?:now|today)"), _ahead
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
    yield _compile(r"the\s+other\s+(?:day|night)"), _days_back
