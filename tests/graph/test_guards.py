"""What no model may do, what a turn plainly says, and which turns facts say too little of."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from memcycle.core.language.date_forms import another_occasion
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.graph.guards import (
    best_source,
    missing_words,
    plainly_said,
    relative_reading,
    requested_deletion,
    stands_in,
    support,
    uncovered,
)
from tests import banks

SCOPE = Scope(user="ana", session="s")


def turn(text: str, role: str = "human", n: int = 1) -> Turn:
    return Turn(
        id=f"Ds:{n}",
        session="s",
        position=n,
        speaker="Ana",
        role=role,
        text=text,
        time=datetime(2024, 5, n, tzinfo=UTC),
    )


def test_quotes_stand_in_their_text():
    for span, text, stands in [
        ("the red door", "I painted The  red\ndoor.", True),
        ("don’t keep it", "Please don't keep it", True),
        ("&lt;turn> is a tag", "I wrote <turn> is a tag.", True),
        ("", "anything", False),
        ("   ", "anything", False),
        ("the blue door", "I painted the red door", False),
    ]:
        assert stands_in(span, text) is stands, span


@given(st.text(), st.text(min_size=1), st.text())
def test_a_part_of_a_text_stands_in_it(before, span, after):
    assert stands_in(span, before + span + after) or not span.strip()


def test_deletion_needs_the_users_quoted_request():
    for quote, said, role, allowed in [
        ("forget my address", "Please forget my address.", "human", True),
        ("vergiss meine Adresse", "Bitte vergiss meine Adresse!", "human", True),
        ("请删除我的地址", "请删除我的地址", "human", True),
        ("forget my address", "Please forget my address.", "ai", False),
        ("forget my address", "Please forget my address.", "tool", False),
        ("forget my address", "My address is Elm Road 4.", "human", False),
        ("my address is", "My address is Elm Road 4.", "human", False),
        ("", "Please forget my address.", "human", False),
    ]:
        assert (requested_deletion(quote, [turn(said, role)]) is not None) is allowed, quote


def test_support_counts_content_words_and_frees_the_speaker():
    said = turn("I bought two canoes in Bergen")
    assert support("Ana bought two canoes in Bergen", said) == 1.0
    assert support("Ana owns a castle", said) < 0.5
    assert support("", said) == 0.0


def test_the_best_source_is_a_human_turn():
    turns = [
        turn("The canoes arrived", "ai", 1),
        turn("My canoes arrived today", "human", 2),
        turn("Nice", "human", 3),
    ]
    assert best_source("The canoes arrived", turns).id == "Ds:2"
    assert best_source("Zebras sleep", turns) is None


SAID = datetime(2024, 5, 9, 18, tzinfo=UTC)


def test_words_of_deleting_that_ask_for_nothing():
    for quote, said in [
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
    ]:
        assert requested_deletion(quote, [turn(said)]) is None, quote


def test_a_request_to_delete():
    for quote, said in [
        ("forget my address", "Don't forget my keys. But please forget my address."),
        ("delete my phone number", "Can you delete my phone number?"),
        ("forget where I live", "I want you to forget where I live"),
        ("Don't remember my phone number", "Don't remember my phone number"),
        ("Vergiss meine Adresse", "Vergiss meine Adresse, ich brauche sie nicht"),
    ]:
        asked = turn(said)
        assert requested_deletion(quote, [asked]) is asked, quote


def test_what_a_turn_plainly_says():
    for statement, said, plain in [
        ("Ana keeps bees", "I keep bees.", True),
        ("Ana keeps bees", "I keep bees. Do you swim?", True),
        ("Ana keeps bees", "Should I keep bees?", False),
        ("Ana keeps bees", "I don't keep bees.", False),
        ("Ana does not keep bees", "I don't keep bees.", True),
        ("Ana keeps bees and geese", "I keep bees.", False),
    ]:
        assert plainly_said(statement, turn(said)) is plain, statement


def test_a_time_that_depends_on_when_it_was_said():
    for text, day in [
        ("Ana went swimming yesterday", "2024-05-08"),
        ("Ana swam on 3 March 2022", None),
        ("Ana swam yesterday and the week before last", None),
        ("Ana swims", None),
    ]:
        reading = relative_reading(text, SAID)
        assert (reading and reading.start.date().isoformat()) == day, text


def test_occasions_apart():
    for one, other, apart in [
        (("2024-05-08", "day"), ("2024-05-02", "day"), True),
        (("2024-05-08", "day"), ("2024-05-08", "day"), False),
        (("2024-05-08", "day"), ("2024-05-01", "month"), False),
        (("2024-05-08", "day"), ("2024-06-01", "month"), True),
        (("2024-05-08", None), ("2024-05-09", None), True),
        (("2024-01-01", "year"), ("2024-05-09", "week"), False),
        ((None, None), ("2024-05-09", "day"), False),
    ]:
        times = [
            (day and datetime.fromisoformat(f"{day}T00:00:00+00:00"), precision)
            for day, precision in (one, other)
        ]
        assert another_occasion(*times[0], *times[1]) is apart, one
        assert another_occasion(*times[1], *times[0]) is apart, one


TURN = banks.said(1, "I sold the old loom to a museum in Graz last March")
SHORT = banks.said(2, "Sounds great, Ann!")
BOT = banks.said(3, "The museum in Graz opens at nine on weekdays and Sundays", speaker="Bot", role="ai")


def test_a_turn_is_uncovered_where_facts_hold_too_few_of_its_keywords():
    for facts, share, missed in [
        ([], 0.25, [TURN]),
        (["Ann sold the old loom to a museum in Graz"], 0.25, []),
        (["Ann sold the old loom to a museum in Graz"], 1.0, [TURN]),
        (["Ann sold something"], 0.25, [TURN]),
        ([], 0.0, []),
    ]:
        assert uncovered([TURN, SHORT, BOT], facts, share) == missed, facts


def test_missing_words_are_named_as_said():
    assert missing_words(TURN, ["Ann sold a loom"]) == ["old", "museum", "Graz", "last", "March"]
