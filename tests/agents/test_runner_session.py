"""The roles that examine a session, run by a model over HTTP: whole, cut, broken and wrong replies."""

import json
import logging
from datetime import datetime
from typing import Any

import pytest

from memcycle.agents.models import open_model
from memcycle.agents.roles import OUTPUTS, Roles
from memcycle.agents.runner import ModelRole
from memcycle.core.errors import RoleFailed
from memcycle.prompts import PromptSet
from tests.loopback import Reply, cut, fenced
from tests.loopback_roles import input_of
from tests.prompts.shown_inputs import INPUTS, VIENNA

WHEN = {
    "question": "When did Ida play?",
    "answer": "Ida played on 11 March 2024",
    "turn": 1,
    "kind": "temporal",
}
WHAT = {"question": "What was Ida's?", "answer": "The recital was Ida's", "turn": 1}
PROBES = {"probes": [WHEN, WHAT]}
GRADES = {"grades": [{"n": 1, "correct": True, "why": ""}, {"n": 3, "correct": False, "why": "empty"}]}
FACT = {"text": "Ida's recital was yesterday", "turn": 1, "quote": "My recital was yesterday."}
REPAIR = {"op": "ADD_FACT", "cause": "missing", "fact": FACT}
MERGE = {"decision": "MERGE", "memory": 0, "text": "Ida plays the bass clarinet well"}
REPLIES = {"prober": PROBES, "grader": GRADES, "repairer": REPAIR, "consolidator": MERGE}


def role(server, name: str) -> ModelRole:
    model = open_model("openai:test", base_url=server.url, api_key="k", max_retries=0)
    return ModelRole(name, OUTPUTS[name], model, PromptSet.shipped())


def ask(server, name: str) -> Any:
    return role(server, name).invoke(INPUTS[name])


@pytest.mark.parametrize("formats", [{"json_schema"}, {"tools"}, set()])
@pytest.mark.parametrize("name", REPLIES)
def test_by_rules_over_http_it_is_the_rules(server, name, formats):
    server.formats = formats
    roles = Roles.from_model("rules", overrides={name: "openai:test"}, base_url=server.url)
    assert getattr(roles, name).invoke(INPUTS[name]) == getattr(Roles.rules(), name).invoke(INPUTS[name])
    assert input_of(server.of(name)[-1]) == INPUTS[name]


@pytest.mark.parametrize("name", REPLIES)
async def test_a_reply_is_read_awaited_as_well(server, name):
    server.script(name, fenced(REPLIES[name]))
    output = await role(server, name).ainvoke(INPUTS[name])
    assert output == OUTPUTS[name].model_validate(REPLIES[name])
    assert len(server.requests) == 1


def test_a_script_may_answer_what_it_is_shown(server):
    def by_length(body: dict[str, Any]) -> dict[str, Any]:
        items = input_of(body).items
        return {"grades": [{"n": item.n, "correct": bool(item.answer)} for item in items]}

    server.script("grader", by_length)
    assert [(grade.n, grade.correct) for grade in ask(server, "grader").grades] == [(1, True), (3, False)]


@pytest.mark.parametrize("formats", [{"json_schema"}, {"tools"}, set()])
@pytest.mark.parametrize(("name", "field"), [("prober", "probes"), ("grader", "grades")])
def test_a_reply_cut_twice_keeps_its_complete_items(server, caplog, name, field, formats):
    server.formats = formats
    part = cut(REPLIES[name], len(json.dumps({field: REPLIES[name][field][:1]})) + 8)
    part = Reply(arguments=part.text, finish="length") if formats == {"tools"} else part
    server.script(name, part, part)
    with caplog.at_level(logging.WARNING):
        output = ask(server, name)
    assert output.cut
    assert getattr(output, field) == getattr(OUTPUTS[name].model_validate(REPLIES[name]), field)[:1]
    assert f"role {name}: reply cut" in caplog.text
    assert "Ida" not in caplog.text


@pytest.mark.parametrize("name", ["prober", "grader"])
def test_a_reply_cut_once_is_asked_for_whole(server, name):
    server.script(name, cut(REPLIES[name], 40), REPLIES[name])
    output = ask(server, name)
    assert (output, output.cut) == (OUTPUTS[name].model_validate(REPLIES[name]), False)


@pytest.mark.parametrize("name", REPLIES)
def test_cut_before_anything_is_whole_is_a_failure(server, name):
    server.script(name, cut(REPLIES[name], 20), cut(REPLIES[name], 20))
    with pytest.raises(RoleFailed, match="token limit") as failed:
        ask(server, name)
    assert failed.value.role == name


@pytest.mark.parametrize("name", REPLIES)
def test_broken_json_is_asked_about_once(server, name):
    broken = json.dumps(REPLIES[name])[:-9]
    server.script(name, broken, REPLIES[name])
    assert ask(server, name) == OUTPUTS[name].model_validate(REPLIES[name])
    assert "cannot be used" in server.requests[1]["messages"][-1]["content"]
    server.script(name, broken, "still not")
    with pytest.raises(RoleFailed):
        ask(server, name)
    assert len(server.requests) == 4


WRONG = {
    "prober": ({"probes": [WHEN, {"question": "Who?", "answer": "Ida"}]}, "probes.1.turn"),
    "grader": ({"grades": [GRADES["grades"][0], {"n": 3, "correct": "partly"}]}, "grades.1.correct"),
    "repairer": ({"op": "ADD_FACT", "fact": {"text": "Ida plays", "turn": 1}}, "fact.quote"),
    "consolidator": ({"decision": "UPDATE", "memory": 0}, "decision"),
}


@pytest.mark.parametrize("name", REPLIES)
def test_an_item_that_does_not_fit_is_named_and_asked_for_once_more(server, name):
    wrong, field = WRONG[name]
    server.script(name, wrong, REPLIES[name])
    assert ask(server, name) == OUTPUTS[name].model_validate(REPLIES[name])
    assert f"{field}: " in server.requests[1]["messages"][-1]["content"]
    server.script(name, wrong, wrong)
    with pytest.raises(RoleFailed, match=field):
        ask(server, name)


def test_a_wrong_item_of_a_cut_reply_is_no_complete_item(server):
    """What is whole in it does not fit: it is asked for once more like any other."""
    grades = {"grades": [{"n": 1, "correct": "partly"}, *GRADES["grades"]]}
    part = cut(grades, len(json.dumps(grades)) - 12)
    server.script("grader", part, part, GRADES)
    assert ask(server, "grader") == OUTPUTS["grader"].model_validate(GRADES)


def test_nulls_of_a_noop_and_of_an_insert_are_defaults(server):
    server.script("repairer", {"op": "NOOP", "cause": None, "fact": None, "why": "stored already"})
    repaired = ask(server, "repairer")
    assert (repaired.fact, repaired.cause) == (None, "unknown")
    server.script("consolidator", {"decision": "INSERT", "memory": None, "text": None})
    output = ask(server, "consolidator")
    assert (output.decision, output.memory, output.text) == ("INSERT", None, "")


@pytest.mark.parametrize(
    ("written", "read"),
    [("2024-03-11", datetime(2024, 3, 11, tzinfo=VIENNA)), ("the day before", None)],
)
def test_a_date_of_a_repair_is_in_the_zone_of_its_turns(server, written, read):
    server.script("repairer", {**REPAIR, "fact": {**FACT, "event_time": written, "event_precision": "day"}})
    assert ask(server, "repairer").fact.event_time == read
