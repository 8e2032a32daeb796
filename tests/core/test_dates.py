"""Readings of time expressions: forms, calendars, zones, and that no text breaks them."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from memcycle.core.language.date_forms import DAY_NAMES, MONTH_NAMES
from memcycle.core.language.dates import format_time, read_dates

MONDAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def said(text: str, reference: datetime = MONDAY) -> list[str]:
    return [format_time(reading.start, reading.precision) for reading in read_dates(text, reference)]


def test_absolute_forms() -> None:
    for text, meaning in [
        ("on 7 May 2023", "7 May 2023"),
        ("May 7th, 2023", "7 May 2023"),
        ("7th of May, 2023", "7 May 2023"),
        ("2023-05-07", "7 May 2023"),
        ("2023-05-07T10:30", "7 May 2023, 10:30"),
        ("13/05/2023", "13 May 2023"),
        ("May 2023", "May 2023"),
        ("summer of 2021", "summer 2021"),
        ("in 2022", "2022"),
        ("the 90s", "1990"),
        ("the 1980s", "1980"),
        ("29 February 2024", "29 February 2024"),
    ]:
        assert said(text) == [meaning], text


def test_relative_forms() -> None:
    for text, meaning in [
        ("I ran yesterday", "7 May 2023"),
        ("We meet today", "8 May 2023"),
        ("We meet tonight", "8 May 2023"),
        ("It rained last night", "7 May 2023"),
        ("I woke early this morning", "8 May 2023"),
        ("I leave tomorrow", "9 May 2023"),
        ("the day before yesterday", "6 May 2023"),
        ("two days ago", "6 May 2023"),
        ("2 weeks ago", "the week of 24 April 2023"),
        ("two weekends ago", "the weekend of 29 April 2023"),
        ("a few days ago", "the week of 1 May 2023"),
        ("a couple of months ago", "March 2023"),
        ("a few years ago", "2020"),
        ("ten years back", "2013"),
        ("last Friday", "5 May 2023"),
        ("last Fri", "5 May 2023"),
        ("this Friday", "12 May 2023"),
        ("last week", "the week of 1 May 2023"),
        ("last weekend", "the weekend of 6 May 2023"),
        ("this past weekend", "the weekend of 6 May 2023"),
        ("this weekend", "the weekend of 13 May 2023"),
        ("last month", "April 2023"),
        ("next month", "June 2023"),
        ("this year", "2023"),
        ("last year", "2022"),
        ("last summer", "summer 2022"),
        ("next summer", "summer 2023"),
        ("last August", "August 2022"),
        ("the week before last", "the week of 24 April 2023"),
        ("I will go in 3 days", "11 May 2023"),
        ("We will move in two weeks", "the week of 22 May 2023"),
        ("since 2016", "2016"),
        ("since March", "March 2023"),
        ("I have lived here for 5 years", "2018"),
        ("Seven years now", "2016"),
        ("We met on the 3rd", "3 May 2023"),
        ("I saw her on Friday", "5 May 2023"),
        ("I'm going there on Friday", "12 May 2023"),
        ("yesterday at 5 pm", "7 May 2023, 17:00"),
        ("an hour ago", "8 May 2023, 12:56"),
        ("last Christmas", "25 December 2022"),
    ]:
        assert said(text) == [meaning], text


def test_what_was_booked_is_to_come() -> None:
    for text, meaning in [
        ("I bought tickets for the concert on 3 July", ["3 July 2025"]),
        ("We reserved a table on 14 March.", ["14 March 2025"]),
        ("I booked it on 20 January for 5 May.", ["20 January 2025", "5 May 2025"]),
        ("I registered for the exam in May.", ["May 2025"]),
        ("The concert on 30 January was worth the tickets.", ["30 January 2025"]),
        ("I went to Rome on 3 July.", ["3 July 2024"]),
        ("Correction: the flights are on 23 April, not 22 April", ["23 April 2025", "22 April 2025"]),
        ("I prepaid the hotel for 5 December", ["5 December 2025"]),
        ("The exam was postponed to 5 December", ["5 December 2025"]),
        ("I registered on 3 December.", ["3 December 2024"]),
        ("I missed my appointment on 3 November", ["3 November 2024"]),
        ("My flight left on 3 November", ["3 November 2024"]),
    ]:
        assert said(text, datetime(2025, 2, 2, 9, tzinfo=UTC)) == meaning, text


def test_the_tense_beside_a_time_says_on_which_side_it_lies() -> None:
    for text, meaning in [
        ("The exam is on 5 December", ["5 December 2025"]),
        ("Meeting on Friday", ["7 February 2025"]),
        ("I've got a job interview on Tuesday", ["4 February 2025"]),
        ("They told me the results come on 3 November", ["3 November 2025"]),
        ("I forgot that the party is on Friday", ["7 February 2025"]),
        ("We agreed to meet on 3 November", ["3 November 2025"]),
        ("I'm getting married on 3 November", ["3 November 2025"]),
        ("It arrived on Friday and the other one comes on Tuesday", ["31 January 2025", "4 February 2025"]),
        ("I'll send you what I wrote on Friday", ["31 January 2025"]),
        ("I've been there on 3 November", ["3 November 2024"]),
        ("I'm happy with the coat I bought on 3 November", ["3 November 2024"]),
        ("He was born on 3 November", ["3 November 2024"]),
        ("We sold the car on 3 July", ["3 July 2024"]),
    ]:
        assert said(text, datetime(2025, 2, 2, 9, tzinfo=UTC)) == meaning, text


def test_counted_stretches_hold_the_day_they_are_counted_from() -> None:
    for text, first, last in [
        ("What did I do in the past 7 days?", "1 May", "8 May"),
        ("the last 30 days", "8 April", "8 May"),
        ("I ran 40 km over the last two weeks", "24 April", "8 May"),
        ("the past month", "8 April", "8 May"),
        ("I slept badly this past week", "1 May", "8 May"),
        ("in the last week", "1 May", "8 May"),
        ("the past 36 hours", "6 May", "8 May"),
        ("in the last fortnight", "24 April", "8 May"),
        ("the last two weekends", "29 April", "7 May"),
        ("I have to finish in the next three days", "8 May", "11 May"),
        ("over the next month", "8 May", "8 June"),
    ]:
        (one,) = read_dates(text, MONDAY)
        assert one.until is not None, text
        ends = [one.start, one.until - timedelta(days=1)]
        assert [format_time(end, "day") for end in ends] == [f"{first} 2023", f"{last} 2023"], text


def test_days_counted_from_others() -> None:
    for text, meaning in [
        ("We meet a week from Thursday", ["18 May 2023"]),
        ("two weeks from today", ["22 May 2023"]),
        ("a month from tomorrow", ["9 June 2023"]),
        ("I saw her a year ago today", ["8 May 2022"]),
        ("two days after this Friday", ["14 May 2023"]),
        ("a week before next Friday", ["5 May 2023"]),
        ("on the last Friday of the month", ["26 May 2023"]),
        ("We met on the last Friday of the month", ["28 April 2023"]),
        ("the last Friday of this month", ["26 May 2023"]),
        ("I left on the last Friday of March", ["31 March 2023"]),
        ("the fair is on the first Monday in June", ["5 June 2023"]),
        ("the second Tuesday of next month", ["13 June 2023"]),
        ("the last day of February 2024", ["29 February 2024"]),
        ("the last week of March 2024", ["the week of 25 March 2024"]),
        ("every last Friday of the month", []),
        ("the fifth Friday of this month", []),
        ("the last week of school", ["the week of 1 May 2023"]),
    ]:
        assert said(text) == meaning, text


@given(
    st.sampled_from(["day", "week", "month", "year"]),
    st.integers(1, 400),
    st.datetimes(datetime(1500, 1, 1), datetime(2400, 1, 1), timezones=st.timezones()),  # noqa: DTZ001
)
def test_a_stretch_back_and_one_ahead_meet_today(unit: str, count: int, reference: datetime) -> None:
    (back,) = read_dates(f"the past {count} {unit}s", reference)
    (ahead,) = read_dates(f"the next {count} {unit}s", reference)
    assert back.until is not None
    assert ahead.until is not None
    today, day = reference.date(), timedelta(days=1)
    assert (back.until.date() - day, ahead.start.date()) == (today, today)
    assert back.start.date() < today < ahead.until.date() - day
    more = read_dates(f"the past {count + 1} {unit}s", reference)[0]
    assert more.start < back.start


@given(
    st.sampled_from([(name, n) for n, name in enumerate(DAY_NAMES)]),
    st.sampled_from([(name, n) for n, name in enumerate(MONTH_NAMES, start=1)]),
    st.integers(1000, 2998),
)
def test_the_last_weekday_of_a_month_is_followed_by_none_there(
    weekday: tuple[str, int], month: tuple[str, int], year: int
) -> None:
    (one,) = read_dates(f"the last {weekday[0]} of {month[0]} {year}", MONDAY)
    assert (one.start.weekday(), one.start.month, one.start.year) == (weekday[1], month[1], year)
    assert (one.start + timedelta(days=7)).month != month[1]
    (fourth,) = read_dates(f"the fourth {weekday[0]} of {month[0]} {year}", MONDAY)
    assert one.start - fourth.start in (timedelta(0), timedelta(days=7))


def test_what_names_no_time() -> None:
    for text in [
        "31 February 2023", "29 February 2023", "5000 years ago", "99999 days ago", "05/06/2023",
        "May I come in?", "We travelled for two weeks", "I march on", "every Friday", "", "昨天我去了公园",
    ]:  # fmt: skip
        assert said(text) == [], text


def test_rollovers() -> None:
    for reference, text, meaning in [
        (datetime(2024, 1, 1, tzinfo=UTC), "yesterday", "31 December 2023"),
        (datetime(2024, 1, 31, tzinfo=UTC), "last month", "December 2023"),
        (datetime(2024, 12, 31, tzinfo=UTC), "next month", "January 2025"),
        (datetime(2024, 3, 1, tzinfo=UTC), "yesterday", "29 February 2024"),
        (datetime(2023, 3, 1, tzinfo=UTC), "yesterday", "28 February 2023"),
        (datetime(2024, 2, 29, tzinfo=UTC), "a year ago", "2023"),
        (datetime(2024, 1, 15, tzinfo=UTC), "last summer", "summer 2023"),
        (datetime(2024, 1, 15, tzinfo=UTC), "this winter", "winter 2023"),
        (datetime(2023, 5, 5, tzinfo=UTC), "last Friday", "28 April 2023"),
        (datetime(2023, 5, 7, tzinfo=UTC), "last weekend", "the weekend of 29 April 2023"),
    ]:
        assert said(text, reference) == [meaning], reference


def test_the_day_is_that_of_the_references_own_zone() -> None:
    late = datetime(2023, 5, 7, 23, 30, tzinfo=UTC)
    assert said("today", late) == ["7 May 2023"]
    assert said("today", late.astimezone(ZoneInfo("Asia/Tokyo"))) == ["8 May 2023"]


def test_summer_time_keeps_the_calendar() -> None:
    vienna = ZoneInfo("Europe/Vienna")
    reading = read_dates("yesterday", datetime(2023, 3, 27, 0, 30, tzinfo=vienna))[0]
    assert reading.start == datetime(2023, 3, 26, 0, 0, tzinfo=vienna)
    assert reading.start.utcoffset() == timedelta(hours=1)


def test_an_iso_time_of_another_zone_is_turned_into_the_references() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    reading = read_dates("2023-05-07T20:00Z", MONDAY.astimezone(tokyo))[0]
    assert reading.start == datetime(2023, 5, 8, 5, 0, tzinfo=tokyo)


def test_vague_words_are_marked() -> None:
    for text, approximate in [
        ("two days ago", False),
        ("about two weeks ago", True),
        ("a few days ago", True),
        ("the other day", True),
        ("last Friday", False),
    ]:
        assert [reading.approximate for reading in read_dates(text, MONDAY)] == [approximate], text


def test_several_expressions_in_order() -> None:
    text = "I left in 2019, came back last week and leave again on 3 June 2024."
    assert said(text) == ["2019", "the week of 1 May 2023", "3 June 2024"]


_WORDS = st.sampled_from(
    [
        "last",
        "next",
        "this",
        "in",
        "on",
        "the",
        "a",
        "few",
        "two",
        "31",
        "99",
        "2023",
        "0",
        "may",
        "monday",
        "week",
        "weekends",
        "years",
        "ago",
        "back",
        "since",
        "for",
        "february",
        "13/40/2023",
        "9999-12-31",
        "2023-05-07T99:99",
        "of",
        ",",
        ".",
        "yesterday",
        "at",
        "25",
        "pm",
        "have",
        "now",
        "past",
        "from",
        "today",
        "hours",
        "fortnight",
        "month",
        "000",
        "90s",
        "٣",
    ]
)


@given(
    st.one_of(st.text(max_size=60), st.lists(_WORDS, max_size=12).map(" ".join)),
    st.datetimes(timezones=st.timezones()),
)
def test_never_raises_and_spans_match(text: str, reference: datetime) -> None:
    end = 0
    for reading in read_dates(text, reference):
        assert text[reading.begin : reading.end] == reading.text
        assert reading.begin >= end
        assert reading.start.utcoffset() is not None
        assert format_time(reading.start, reading.precision)
        end = reading.end
