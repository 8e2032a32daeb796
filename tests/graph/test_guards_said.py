"""What a turn says plainly, when it says it of, and what is no request to delete."""

from datetime import UTC, datetime

import pytest

from memcycle.core.language.date_forms import another_occasion
from memcycle.core.turn import Turn
from memcycle.graph.guards import plainly_said, relative_reading, requested_deletion

SAID = datetime(2024, 5, 9, 18, tzinfo=UTC)


def turn(text: str) -> Turn:
    return Turn(id="Ds:1", session="s", position=1, speaker="Ana", text=text, time=SAID)


@pytest.mark.parametrize(
    ("quote", "said"),
    [
        ("Don't forget I'm allergic to nuts", "Don't forget I'm allergic to nuts"),
        ("forget I'm allergic to nuts", "Please don’t ever forget I'm allergic to nuts"),
        ("forget my keys", "I always forget my keys"),
        ("I don't remember my address", "I don't remember my address"),
        ("never delete my notes", "You should never delete my notes"),
        (
            "Vergiss bitte nicht, dass ich Nüsse nicht vertrage",
            "Vergiss bitte nicht, dass ich Nüsse nicht vertrage",
        ),
        ("n'oublie pas mon adresse", "n'oublie pas mon adresse"),
        ("no olvides mi dirección", "no olvides mi dirección"),
        ("别忘了我的地址", "别忘了我的地址"),
    ],
)
def test_words_of_deleting_that_ask_for_nothing(quote, said):
    assert requested_deletion(quote, [turn(said)]) is None


@pytest.mark.parametrize(
    ("quote", "said"),
    [
        ("forget my address", "Don't forget my keys. But please forget my address."),
        ("delete my phone number", "Can you delete my phone number?"),
        ("forget where I live", "I want you to forget where I live"),
        ("Don't remember my phone number", "Don't remember my phone number"),
        ("Vergiss meine Adresse", "Vergiss meine Adresse, ich brauche sie nicht"),
    ],
)
def test_a_request_to_delete(quote, said):
    asked = turn(said)
    assert requested_deletion(quote, [asked]) is asked


@pytest.mark.parametrize(
    ("statement", "said", "plain"),
    [
        ("Ana keeps bees", "I keep bees.", True),
        ("Ana keeps bees", "I keep bees. Do you swim?", True),
        ("Ana keeps bees", "Should I keep bees?", False),
        ("Ana keeps bees", "I don't keep bees.", False),
        ("Ana does not keep bees", "I don't keep bees.", True),
        ("Ana keeps bees and geese", "I keep bees.", False),
    ],
)
def test_what_a_turn_plainly_says(statement, said, plain):
    assert plainly_said(statement, turn(said)) is plain


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Ana went swimming yesterday", "2024-05-08"),
        ("Ana swam on 3 March 2022", None),
        ("Ana swam yesterday and the week before last", None),
        ("Ana swims", None),
    ],
)
def test_a_time_that_depends_on_when_it_was_said(text, day):
    reading = relative_reading(text, SAID)
    assert (reading and reading.start.date().isoformat()) == day


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        (("2024-05-08", "day"), ("2024-05-02", "day"), True),
        (("2024-05-08", "day"), ("2024-05-08", "day"), False),
        (("2024-05-08", "day"), ("2024-05-01", "month"), False),
        (("2024-05-08", "day"), ("2024-06-01", "month"), True),
        (("2024-05-08", None), ("2024-05-09", None), True),
        (("2024-01-01", "year"), ("2024-05-09", "week"), False),
        ((None, None), ("2024-05-09", "day"), False),
    ],
)
def test_occasions_apart(one, other, apart):
    times = [
        (day and datetime.fromisoformat(f"{day}T00:00:00+00:00"), precision)
        for day, precision in (one, other)
    ]
    assert another_occasion(*times[0], *times[1]) is apart
    assert another_occasion(*times[1], *times[0]) is apart
