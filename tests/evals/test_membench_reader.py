import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memcycle.core.errors import BadInput
from memcycle.evals.datasets.membench import load_membench, read_membench

OWN = Path(__file__).parent / "data" / "membench.json"


@pytest.fixture
def samples():
    return load_membench(OWN, zone=UTC)


def hours(sample):
    return [(turn.time.day, turn.time.hour) for turn in sample.conversation.turns]


def test_observed_messages_are_turns_of_one_session(samples):
    aunt = samples[0]
    assert aunt.id == "simple/roles/0"
    assert [turn.id for turn in aunt.conversation.turns] == ["D1:1", "D1:2", "D1:3"]
    assert {turn.role for turn in aunt.conversation.turns} == {"human"}
    assert aunt.conversation.turns[0].text == "I keep bees. (place: Graz; time'2024-10-01 08:00' Tuesday)"
    # The second has no time of its own.
    assert hours(aunt) == [(1, 8), (1, 8), (3, 9)]
    [question] = aunt.questions
    assert (question.answer, question.category) == ("She repairs clocks", "simple")
    assert question.evidence == ("D1:3",)
    assert question.asked_at == datetime(2024, 10, 4, 8, tzinfo=UTC)


def test_an_exchange_is_two_turns_and_both_are_evidence(samples):
    films = samples[1]
    assert [(turn.speaker, turn.role) for turn in films.conversation.turns] == [
        ("user", "human"), ("assistant", "ai"), ("user", "human"), ("assistant", "ai"),
    ]  # fmt: skip
    # Before the first time that is known, that one holds.
    assert hours(films) == [(2, 10)] * 4
    [question] = films.questions
    assert question.evidence == ("D1:3", "D1:4")
    assert question.answer == "The Lantern, Harbour Lights"


def test_lists_of_steps_are_sessions_and_steps_are_counted_through(samples):
    taste = samples[2]
    assert [(s.name, len(s.turns)) for s in taste.conversation.sessions] == [("1", 4), ("2", 2)]
    last = taste.conversation.turns[-2]
    assert last.text == "I had pears. (place: Linz; time: '2024-10-05 12:00' Saturday)"
    assert last.time == datetime(2024, 10, 5, 12, tzinfo=UTC)
    assert taste.questions[0].evidence == ("D1:1", "D1:2", "D2:1", "D2:2")


def trajectory(messages=("Hello. time: '2024-10-01 08:00'",), **qa):
    return {"tid": 3, "message_list": list(messages), "QA": {"question": "What?", **qa}}


def test_a_file_of_one_question_type_is_named_after_it(tmp_path):
    path = tmp_path / "noisy.json"
    path.write_text(json.dumps({"roles": [trajectory(), trajectory(target_step_id=0)]}))
    first, second = load_membench(path, zone=UTC)
    assert (first.id, second.id) == ("noisy/roles/3", "noisy/roles/3-2")
    assert first.questions[0].category == "noisy"
    assert (first.questions[0].answer, first.questions[0].asked_at) == (None, None)
    assert [one.questions[0].evidence for one in (first, second)] == [(), ("D1:1",)]


def test_without_a_time_of_a_message_that_of_the_question_holds():
    [read] = read_membench({"a": [trajectory(["Hi."], time="'2024-10-04 08:00' Friday")]}, zone=UTC, name="x")
    assert hours(read) == [(4, 8)]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], ["MemBench data", "not an object"]),
        ({"a": 7}, ["a is int"]),
        ({"a": {"b": 7}}, ["a: field 'b'", "not a list"]),
        ({"a": {"b": [7]}}, ["a/b, trajectory 0"]),
        ({"a": {"b": [{"message_list": []}]}}, ["sample a/b/0", "'QA'"]),
        ({"a": {"b": [{"QA": {}}]}}, ["sample a/b/0", "'message_list'"]),
        ({"a": {"b": [trajectory(question=None)]}}, ["sample a/b/3", "'question'"]),
        ({"a": {"b": [trajectory(["", " "], time="2024-10-01 08:00")]}}, ["a/b/3", "no message"]),
        ({"a": {"b": [trajectory(["Hi."])]}}, ["a/b/3", "has a time"]),
        ({"a": {"b": [trajectory(["x time'2024-13-01 08:00'"])]}}, ["a/b/3", "2024-13-01"]),
        ({"a": {"b": [trajectory([{"words": "Hi."}])]}}, ["a/b/3, step 0", "words"]),
        ({"a": {"b": [trajectory([{"user": 7}])]}}, ["a/b/3, step 0", "'user'"]),
        ({"a": {"b": [trajectory([["Hi."], "Hi."])]}}, ["a/b/3, step 0", "list"]),
    ],
)
def test_other_shapes_are_named(data, words):
    with pytest.raises(BadInput) as caught:
        read_membench(data, zone=UTC, name="x")
    assert all(word in str(caught.value) for word in words), str(caught.value)
