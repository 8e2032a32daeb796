"""A09 and A10: times and languages."""

import json
from datetime import UTC, datetime

import pytest

from tests.cases.adapter import facts


def test_a09_a_relative_date_is_read_against_its_message(product):
    p = product(constructor=[facts({"text": "Played a recital on 2024-03-11", "event_time": "2024-03-11"})])
    p.now = datetime(2026, 1, 5, tzinfo=UTC)
    p.add({"role": "user", "content": "My recital was yesterday.", "timestamp": "2024-03-12T09:00+01:00"})
    assert 'time="2024-03-12T09:00+01:00 Tuesday"' in p.constructor.said[0]
    (fact,) = p.facts()
    assert fact.event_time.isoformat() == "2024-03-11T00:00:00+01:00"
    assert fact.recorded_at.astimezone(UTC).date().isoformat() == "2026-01-05"
    assert fact.observed_at == datetime.fromisoformat("2024-03-12T09:00+01:00")


SWAM = "Went swimming yesterday"


@pytest.mark.parametrize("read", [True, False], ids=["read by the model", "left unread"])
@pytest.mark.parametrize("edit", ["ADD", "NONE", "UPDATE", "DELETE"])
def test_a09_the_same_words_on_two_days_are_two_facts(product, edit, read):
    """The whole kind: what depends on the day it was said is not the same on another day, whatever a role
    says, and whether or not the Constructor read the date."""
    times = [{"event_time": f"2024-05-0{day}"} if read else {} for day in (2, 8)]
    again = {"edit": edit, "target": f"#{SWAM}"} if edit != "ADD" else {}
    duplicate = {"n": 1, "supported": True, "relation": "duplicate", "near": 0}
    p = product(
        constructor=[facts({"text": SWAM, **times[0]}), facts({"text": SWAM, **times[1], **again})],
        fact_judge=[json.dumps({"verdicts": [duplicate]})],
    )
    for day in (3, 9):
        p.add("I went swimming yesterday.", now=f"2024-05-0{day}T18:00:00Z")
    assert [(fact.text, fact.event_time.day) for fact in p.facts()] == [(SWAM, 2), (SWAM, 8)]


def test_a09_the_same_day_said_twice_is_one_fact(product):
    p = product(constructor=[facts(SWAM), facts(SWAM)])
    for hour in (10, 18):
        p.add("I went swimming yesterday.", now=f"2024-05-03T{hour}:00:00Z")
    (fact,) = p.facts()
    assert len(fact.turns) == 2


GERMAN = ("Verträgt keine Haselnüsse", "Wohnt seit Mai in Graz")


def test_a10_the_language_of_the_conversation_is_kept(product):
    p = product(constructor=[json.dumps({"facts": list(GERMAN)}, ensure_ascii=False)])
    p.add("Ich vertrage keine Haselnüsse und wohne seit Mai in Graz.")
    assert "In the language of the conversation" in p.constructor.prompts[0]
    assert p.texts() == sorted(GERMAN)
    found = p.recall("Verträgt der Benutzer Haselnüsse?", k=1)
    assert [one.text for one in p.recall("Welche Nüsse? Haselnüsse", k=3)][:1] in (
        [GERMAN[0]],
        [found[0].text],
    )
    assert "Haselnüsse" in found[0].text


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("我在京都养了两只猫。", "在京都养了两只猫"),
        ("Я живу в Граце с мая.", "Живёт в Граце с мая"),
        ("أعيش في غراتس منذ مايو", "يعيش في غراتس منذ مايو"),
        ("Ich heiße Jürgen und spiele Dudelsack 🎶", "Jürgen spielt Dudelsack 🎶"),
    ],
)
def test_a10_whatever_the_language(product, said, fact):
    p = product(constructor=[facts(fact)])
    result = p.add(said)
    assert (p.texts(), [refused.why for refused in result.rejected]) == ([fact], [])
    assert p.recall(said)[0].text in (said, fact)


def test_a_relative_date_is_read_in_the_zone_its_turn_was_said_in(product):
    """The kind behind A09: half past midnight in Vienna is still the day before in UTC."""
    p = product()
    p.add({"role": "user", "content": "I bought a kayak yesterday.", "timestamp": "2024-05-08T00:30+02:00"})
    (fact,) = p.facts()
    assert fact.event_time.isoformat() == "2024-05-07T00:00:00+02:00"
    assert fact.observed_at.isoformat() == "2024-05-08T00:30:00+02:00"
    assert p.memory.ask("When did the user buy a kayak?", user="u1").answer == "7 May 2024"
