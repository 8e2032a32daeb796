"""Readings of time expressions: forms, calendars, zones, and that no text breaks them."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

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
    ]:
        assert said(text, datetime(2025, 2, 2, 9, tzinfo=UTC)) == meaning, text


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
