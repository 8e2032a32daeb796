import copy
import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memcycle.core.errors import BadInput
from memcycle.evals.datasets.longmemeval import load_longmemeval, read_longmemeval

OWN = Path(__file__).parent / "data" / "longmemeval.json"


def test_each_question_has_a_haystack_in_the_order_of_its_dates():
    honey, _ = load_longmemeval(OWN, zone=UTC)
    assert [(s.name, [t.id for t in s.turns]) for s in honey.conversation.sessions] == [
        ("filler_7", ["Dfiller_7:1", "Dfiller_7:3"]),
        ("filler_7-2", ["Dfiller_7-2:1"]),
        ("answer_made_1", ["Danswer_made_1:1", "Danswer_made_1:2", "Danswer_made_1:3"]),
    ]
    last = honey.conversation.turns[-2]
    assert (last.speaker, last.role, last.text) == ("assistant", "ai", "Mead is a good start.")
    assert last.time == datetime(2023, 6, 1, 9, 5, tzinfo=UTC)


def test_flagged_turns_are_the_evidence():
    honey, boat = load_longmemeval(OWN, zone=ZoneInfo("Asia/Tokyo"))
    [question] = honey.questions
    assert (honey.id, question.id, question.category) == ("made0001", "made0001", "single-session-user")
    assert (question.answer, question.evidence) == ("4", ("Danswer_made_1:3",))
    assert question.asked_at == datetime(2023, 6, 2, 1, 15, tzinfo=UTC)
    assert not question.adversarial
    [question] = boat.questions
    assert question.adversarial
    assert question.evidence == ()


def changed(change):
    data = copy.deepcopy(json.loads(OWN.read_text()))
    change(data[0])
    return data


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda one: one.pop("question_id"), ["sample 1", "'question_id'"]),
        (lambda one: one.pop("haystack_dates"), ["sample made0001", "'haystack_dates'"]),
        (lambda one: one["haystack_dates"].pop(), ["made0001", "3, 2 and 3"]),
        (lambda one: one["haystack_dates"].__setitem__(1, "May"), ["session filler_7", "'May'"]),
        (lambda one: one.update(question_date="2023/13/01 (Sun) 10:00"), ["made0001", "'question_date'"]),
        (lambda one: one["haystack_sessions"].__setitem__(0, "x"), ["session answer_made_1", "list"]),
        (lambda one: one["haystack_sessions"][0].append(7), ["answer_made_1, turn 4", "not an object"]),
        (lambda one: one["haystack_sessions"][0][1].pop("content"), ["turn 2", "'content'"]),
        (lambda one: one["haystack_sessions"][0][1].update(role="bee"), ["turn 2", "'role'"]),
        (lambda one: one.update(question=None), ["made0001", "'question'"]),
        (lambda one: one.update(question_type=1), ["made0001", "'question_type'"]),
        (lambda one: one.update(question_id="made0002_abs"), ["sample 2", "made0002_abs", "already"]),
    ],
)
def test_other_shapes_are_named(change, words):
    with pytest.raises(BadInput) as caught:
        read_longmemeval(changed(change), zone=UTC)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_list_is_expected():
    with pytest.raises(BadInput, match="list of questions, not dict"):
        read_longmemeval({}, zone=UTC)
