"""Dates that mean the same whenever they were said, and which period lies in which."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from memcycle.core.language.date_forms import lies_in
from memcycle.core.language.dates import fixed_dates, without


def on(year, month=1, day=1):
    return datetime(year, month, day, tzinfo=UTC)


def test_a_fixed_date():
    for text, start, precision, words in [
        ("We met on 7 May 2023.", on(2023, 5, 7), "day", "7 May 2023"),
        ("2023-05-07", on(2023, 5, 7), "day", "2023-05-07"),
        ("in May 2023", on(2023, 5), "month", "May 2023"),
        ("since 2016", on(2016), "year", "since 2016"),
        ("2019", on(2019), "year", "2019"),
        ("summer 2022", on(2022, 6), "season", "summer 2022"),
        ("the week of 7 June 2023", on(2023, 6, 5), "week", "the week of 7 June 2023"),
        ("the weekend of 10 June 2023", on(2023, 6, 10), "week", "the weekend of 10 June 2023"),
        ("the week before 10 June 2024", on(2024, 6, 3), "week", "the week before 10 June 2024"),
        ("the weekend before 12 June 2024", on(2024, 6, 8), "week", "the weekend before 12 June 2024"),
        ("the month after 3 March 2024", on(2024, 4), "month", "the month after 3 March 2024"),
        ("the day after 1 May 2023", on(2023, 5, 2), "day", "the day after 1 May 2023"),
        ("the Friday before 15 July 2023", on(2023, 7, 14), "day", "the Friday before 15 July 2023"),
    ]:
        (found,) = fixed_dates(text)
        assert (found.start, found.precision, text[found.begin : found.end]) == (start, precision, words), (
            text
        )


def test_what_leans_on_the_day_of_telling_is_left_out():
    for text in [
        "yesterday",
        "last Friday",
        "two weeks ago",
        "in May",
        "on 7 May",
        "2023 guests",
        "1,999",
        "31 February 2023",
        "",
    ]:
        assert fixed_dates(text) == [], text


def test_a_day_without_a_year_is_read_near_a_given_time():
    (found,) = fixed_dates("on 7 May", by=on(2021, 4, 20))
    assert (found.start, found.precision) == (on(2021, 5, 7), "day")
    assert fixed_dates("yesterday", by=on(2021, 4, 20)) == []


def test_dates_are_in_order_and_can_be_taken_out():
    text = "In 2019 she came, on 7 May 2023 she left."
    dates = fixed_dates(text)
    assert [date.start.year for date in dates] == [2019, 2023]
    assert without(text, dates).split() == ["she", "came,", "on", "she", "left."]


@given(text=st.text(max_size=80))
def test_any_text_is_read(text):
    dates = fixed_dates(text, by=on(2021))
    assert all(0 <= date.begin < date.end <= len(text) for date in dates)
    assert not dates or len(without(text, dates)) <= len(text) + len(dates)


def test_a_period_lies_in_another_by_the_calendar():
    for inner, outer, inside in [
        ((on(2023, 5, 7), "day"), (on(2023, 5), "month"), True),
        ((on(2023, 5), "month"), (on(2023, 5, 7), "day"), False),
        ((on(2023, 3, 1), "day"), (on(2023, 2), "month"), False),
        ((on(2023, 5, 31), "day"), (on(2023, 5), "month"), True),
        ((on(2023, 6, 26), "week"), (on(2023, 6), "month"), False),
        ((on(2023, 8), "month"), (on(2023, 6), "season"), True),
        ((on(2023, 12), "season"), (on(2023), "year"), False),
        ((on(2023, 5, 7), "day"), (on(2023, 5, 7), "day"), True),
        ((on(2023, 5, 7), "minute"), (on(2023, 5, 7), "day"), True),
        ((on(2022, 12, 31), "day"), (on(2023), "year"), False),
    ]:
        assert lies_in(*inner, *outer) is inside, inner
