from datetime import UTC, datetime

import pytest

from memcycle.stores.search import lexical as traits

MAY_7 = datetime(2023, 5, 7, tzinfo=UTC)
NAMES = {
    "QUESTION": traits.QUESTION, "FIRST_PERSON": traits.FIRST_PERSON, "NUMBER": traits.NUMBER,
    "CAPITAL": traits.CAPITAL, "TIME": traits.TIME,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Have you seen it?", {"QUESTION"}),
        ("Have you seen it? [image: a photo of a dog]", {"QUESTION"}),
        ("本当ですか？", {"QUESTION"}),
        ("It was fine. Was it? It was.", set()),
        ("I've seen it", {"FIRST_PERSON"}),
        ("that is ours", {"FIRST_PERSON"}),
        ("three of them", {"NUMBER"}),
        ("room 12b", {"NUMBER"}),
        ("a cat", set()),
        ("we stayed in Lisbon", {"FIRST_PERSON", "CAPITAL"}),
        ("Lisbon", set()),
        ("so kind, Bo, and thanks Ann", set()),
        ("it rained yesterday", {"TIME"}),
        ("", set()),
    ],
)
def test_traits_of_a_text(text, expected):
    found = traits.of(text, MAY_7, ("Ann", "Bo", None))
    assert {name for name, flag in NAMES.items() if found & flag} == expected


def test_without_a_time_nothing_says_when():
    assert not traits.of("it rained yesterday", None, ()) & traits.TIME
