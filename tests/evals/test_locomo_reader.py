import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memcycle.core.errors import BadInput
from memcycle.evals.dataset import GivenFact
from memcycle.evals.datasets.locomo import REPORTING, TUNING, load_locomo, mend_evidence, read_locomo

OWN = Path(__file__).parent / "data" / "locomo.json"
DATA = Path(os.environ.get("MEMCYCLE_LOCOMO", "locomo10.json"))


def sample(**changes):
    return {
        "sample_id": "made-up",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bo",
            "session_10_date_time": "9:05 am on 1 June, 2023",
            "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "Back again."}],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [
                {"speaker": "Ann", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a photo of a kite"},
                {"speaker": "Bo", "dia_id": "D2:2", "text": ""},
                {"speaker": "Bo", "dia_id": "D2:3", "text": "Lovely."},
            ],
            "session_3_date_time": "1:56 pm on 9 May, 2023",
        },
        "qa": [
            {"question": "What?", "answer": 2022, "evidence": ["D2:1; D10:1", "D2:09"], "category": 2},
            {"question": "Who?", "adversarial_answer": "Ann", "evidence": ["D2:3"], "category": 5},
        ],
        **changes,
    }


def test_turns_sessions_and_questions():
    [read] = read_locomo([sample()], zone=UTC)
    assert read.id == read.conversation.name == "made-up"
    assert [(s.name, [t.id for t in s.turns]) for s in read.conversation.sessions] == [
        ("2", ["D2:1", "D2:3"]),
        ("10", ["D10:1"]),
    ]
    first = read.conversation.turns[0]
    assert first.text == "Look! [image: a photo of a kite]"
    assert first.time == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    what, who = read.questions
    assert (what.answer, what.evidence) == ("2022", ("D2:1", "D10:1"))
    assert (what.id, what.category, what.adversarial) == ("1", "temporal", False)
    assert (who.id, who.answer, who.category, who.adversarial) == ("2", None, "adversarial", True)


def test_observations_are_facts_of_the_turns_they_name():
    [read] = load_locomo(OWN, zone=UTC)
    assert read.facts == (
        GivenFact("Ann keeps bees on the roof.", ("D1:1",), "Ann", "1"),
        GivenFact(
            "Ann paints and plays the cello, and likes the kite that Bo built.", ("D1:2", "D1:3"), "Ann", "1"
        ),
        GivenFact("Bo built a wooden kite.", ("D1:2",), "Bo", "1"),
        GivenFact("Bo works with wood.", (), "Bo", "1"),
        GivenFact("The kite won second prize in Linz.", ("D2:1", "D1:2"), "Bo", "2"),
    )


def test_evidence_is_mended():
    for given, kept in [
        (["D8:6; D9:17"], ("D8:6", "D9:17")),
        (["D:11:26"], ("D11:26",)),
        (["D30:05", "D30:5"], ("D30:5",)),
        (["D9:1 D4:4 D4:6"], ("D9:1", "D4:4", "D4:6")),
        (["D"], ()),
        (["D99:1", "D4:4"], ("D4:4",)),
        ([], ()),
    ]:
        known = {"D8:6", "D9:17", "D11:26", "D30:5", "D9:1", "D4:4", "D4:6"}
        assert mend_evidence(given, known) == kept, given


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (7, ["list of samples"]),
        ([{"role": "user"}], ["sample 1", "'conversation'"]),
        ([sample(qa={})], []),
        ([sample(qa=["x"])], ["made-up", "question 1"]),
        ([sample(qa=[{"question": "a", "category": 9}])], ["question 1", "'category'"]),
        ([sample(qa=[{"question": "a", "category": [1]}])], ["question 1", "'category'"]),
        ([sample(conversation={"session_1": []})], ["session_1_date_time"]),
        ([sample(observation=[])], []),
        ([sample(observation=["x"])], ["made-up", "'observation'"]),
        ([sample(observation={"first": {}})], ["made-up, first", "session_1_observation"]),
        ([sample(observation={"session_2_observation": []})], ["session_2_observation", "not an object"]),
        ([sample(observation={"session_2_observation": {"Ann": "x"}})], ["session_2_observation", "'Ann'"]),
        (
            [sample(observation={"session_2_observation": {"Ann": [["only text"]]}})],
            ["session_2_observation, Ann, observation 1"],
        ),
        (
            [sample(conversation={"session_1_date_time": "soon", "session_1": []})],
            ["session_1_date_time", "soon"],
        ),
        (
            [
                sample(
                    conversation={
                        "session_1_date_time": "9:05 am on 1 June, 2023",
                        "session_1": [{"text": "a"}],
                    }
                )
            ],
            ["session_1, turn 1", "'speaker'"],
        ),
    ],
)
def test_other_shapes_are_named(data, words):
    if not words:
        [read] = read_locomo(data, zone=UTC)
        assert read.questions == () or read.facts == ()
        return
    with pytest.raises(BadInput) as caught:
        read_locomo(data, zone=UTC)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_single_sample_may_stand_alone(tmp_path):
    path = tmp_path / "one.json"
    path.write_text(json.dumps(sample()))
    assert load_locomo(path, zone=UTC)[0].id == "made-up"


def test_not_json(tmp_path):
    path = tmp_path / "no.json"
    path.write_text("{")
    with pytest.raises(BadInput, match=r"no\.json is not JSON"):
        load_locomo(path, zone=UTC)


def test_another_shape_is_named_with_its_file(tmp_path):
    path = tmp_path / "odd.json"
    path.write_text('[{"conversation": {}, "sample_id": "here", "qa": [7]}]')
    with pytest.raises(BadInput, match=r"odd\.json: sample here, question 1"):
        load_locomo(path, zone=UTC)


@pytest.mark.skipif(not DATA.exists(), reason="the LoCoMo file is not here (set MEMCYCLE_LOCOMO)")
def test_the_data_set():
    samples = load_locomo(DATA, zone=UTC)
    assert tuple(s.id for s in samples) == TUNING + REPORTING
    assert sum(len(s.conversation.turns) for s in samples) == 5882
    assert [len(s.questions) for s in samples] == [199, 105, 193, 260, 242, 158, 190, 239, 196, 204]
    questions = [question for s in samples for question in s.questions]
    assert sum(not question.evidence for question in questions) == 4
    facts = [fact for s in samples if s.id in TUNING for fact in s.facts]
    assert len(facts) == 1210
    assert sum(not fact.turns for fact in facts) == 0
    assert sum(len(fact.turns) > 1 for fact in facts) == 3
