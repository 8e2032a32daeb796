import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memcycle.core.errors import BadInput
from memcycle.evals.datasets.jsonl import load_jsonl, read_samples

OWN = Path(__file__).parent / "data" / "own.jsonl"
TURN = {"session": "1", "speaker": "Ann", "role": "human", "text": "Hi.", "time": "2024-04-01 10:00"}


def test_conversations_of_ones_own():
    club, build = load_jsonl(OWN, zone=UTC)
    assert club.id == club.conversation.name == "garden club"
    assert [
        (s.name, [(t.id, t.message_id, t.role) for t in s.turns]) for s in club.conversation.sessions
    ] == [
        ("spring", [("Dspring:1", "m1", "human"), ("Dspring:2", None, "ai")]),
        ("summer", [("Dsummer:1", "m3", "human")]),
    ]
    plot = club.conversation.turns[-1]
    assert plot.text == "See my plot. [image: a bed of tulips]"
    assert plot.time == datetime(2024, 7, 1, 10, tzinfo=UTC)
    assert (build.id, build.questions) == ("2", ())


def test_evidence_is_named_by_given_ids_or_by_places():
    where, asked, boat = load_jsonl(OWN, zone=UTC)[0].questions
    assert (where.id, where.answer, where.evidence) == ("1", "on the roof", ("Dspring:1",))
    assert (where.category, where.adversarial) == ("single-hop", False)
    assert (asked.answer, asked.evidence, asked.category) == ("1", ("Dspring:2",), None)
    assert (boat.answer, boat.evidence, boat.adversarial) == (None, (), True)


def test_categories_may_be_numbers():
    [sample] = read_samples(json.dumps(conversation({"question": "a", "category": 4})), zone=UTC)
    assert sample.questions[0].category == "4"


def conversation(*questions, turns=(TURN,), **fields):
    return {"id": "chat", "turns": list(turns), "questions": list(questions), **fields}


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([7], ["record 1", "a JSON object"]),
        ([conversation(id=None)], ["record 1", "'id'"]),
        ([conversation(), conversation()], ["record 2", "'chat' already"]),
        ([{"id": "chat"}], ["'chat'", "'turns'"]),
        ([conversation(turns=[7])], ["'chat', item 1 of 'turns'", "not an object"]),
        ([conversation(turns=[TURN, {**TURN, "text": None}])], ["item 2 of 'turns'", "'text'"]),
        ([conversation(turns=[{**TURN, "id": "a"}] * 2)], ["item 2", "item 1", "'a'"]),
        (
            [conversation(turns=[{**TURN, "id": "a"}, {**TURN, "id": "a", "session": "2"}])],
            ["'chat'", "same id"],
        ),
        ([conversation(questions="x")], ["'chat'", "'questions'"]),
        ([conversation("x")], ["'chat', question 1", "not an object"]),
        ([conversation({"answer": "a"})], ["question 1", "'question'"]),
        ([conversation({"question": "a", "category": ["4"]})], ["question 1", "'category'"]),
        ([conversation({"question": "a", "category": True})], ["question 1", "'category'"]),
        ([conversation({"question": "a"}, {"question": " \n"})], ["question 2", "'question' is empty"]),
        ([conversation({"question": "a", "evidence": "D1:1"})], ["question 1", "'evidence'"]),
        ([conversation({"question": "a", "evidence": ["D1:2"]})], ["question 1", "'evidence'", "D1:2"]),
    ],
)
def test_other_shapes_are_named(records, words):
    with pytest.raises(BadInput) as caught:
        read_samples("\n".join(map(json.dumps, records)), zone=UTC)
    assert all(word in str(caught.value) for word in words), str(caught.value)
