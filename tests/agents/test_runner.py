"""Running a model for a role over HTTP: the ladder, the re-ask, failures, prompts of a run."""

import asyncio
import json
import logging
from datetime import datetime
from typing import Any

import openai
import pytest
from blockbuster import blockbuster_ctx
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from memcycle.agents.answerer import AnswererInput
from memcycle.agents.models import open_model
from memcycle.agents.roles import OUTPUTS, Roles
from memcycle.agents.runner import PROMPTS, ModelRole
from memcycle.agents.schema import outline, strict_schema
from memcycle.core.errors import ModelUnavailable, PromptError, RoleFailed
from memcycle.prompts import PromptSet
from tests.agents.conftest import TIME, chunk
from tests.loopback import (
    Reply,
    cut,
    fenced,
    html,
    lost_opening,
    prose,
    rate_limited,
    thinking,
    trailing_comma,
)
from tests.loopback_roles import input_of, only_asked
from tests.prompts.shown_inputs import INPUTS, VIENNA

FACTS = {"facts": [{"text": "Ana repairs accordions", "turn": 1}]}
DECOY = {"facts": ["WRONG"]}
ECHO = {"$defs": {}, "properties": {"facts": {"type": "array"}}, "required": ["facts"]}
TURNS = chunk("I repair accordions.")
SECRET = "I repair accordions."


def role(server, name: str = "constructor", **args: Any) -> ModelRole:
    model = open_model("openai:test", base_url=server.url, api_key="k", **{"max_retries": 0, **args})
    return ModelRole(name, OUTPUTS[name], model, PromptSet.shipped())


def texts(output) -> list[str]:
    return [fact.text for fact in output.facts]


@pytest.mark.parametrize("formats", [{"json_schema", "tools"}, {"tools"}, set()])
@pytest.mark.parametrize(
    "reply",
    [FACTS, prose(FACTS), trailing_comma(FACTS), thinking(FACTS, DECOY), lost_opening(FACTS, ["WRONG"])],
)
def test_one_reply_is_enough_on_every_rung(server, formats, reply):
    server.formats = formats
    server.script("constructor", reply)
    asked = role(server)
    assert texts(asked.invoke(TURNS)) == ["Ana repairs accordions"]
    refused = 2 - len(formats)
    assert len(server.requests) == refused + 1
    assert asked.rung == ["json_schema", "tools", "text"][refused]


# The SDK expects a string here and says so when it dumps the completion.
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_reply_in_content_parts(server):
    parts = [{"type": "reasoning", "text": json.dumps(DECOY)}, {"type": "text", "text": json.dumps(FACTS)}]
    server.script("constructor", Reply(content=parts))
    assert texts(role(server).invoke(TURNS)) == ["Ana repairs accordions"]


def test_the_rung_that_worked_is_remembered(server):
    server.formats = set()
    server.script("constructor", FACTS, FACTS)
    asked = role(server)
    asked.invoke(TURNS)
    asked.invoke(TURNS)
    ways = [("response_format" in body, "tools" in body) for body in server.requests]
    assert ways == [(True, False), (False, True), (False, False), (False, False)]
    system = server.requests[-1]["messages"][0]["content"]
    assert outline(strict_schema(OUTPUTS["constructor"], "constructor")) in system


def test_what_is_sent_is_strict_and_named_after_the_role(server):
    server.script("constructor", FACTS)
    role(server).invoke(TURNS)
    (sent,) = server.requests
    wanted = sent["response_format"]["json_schema"]
    assert (wanted["name"], wanted["strict"]) == ("constructor", True)
    assert "temperature" not in sent
    assert SECRET in sent["messages"][1]["content"]
    assert SECRET not in sent["messages"][0]["content"]


def test_an_echoed_schema_is_asked_about_once(server):
    server.script("constructor", ECHO, FACTS)
    assert texts(role(server).invoke(TURNS)) == ["Ana repairs accordions"]
    first, second = server.requests
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert "missing: facts" in second["messages"][-1]["content"]


def test_twice_wrong_is_a_typed_failure(server):
    server.script("constructor", ECHO, "x" * 500)
    with pytest.raises(RoleFailed) as failed:
        role(server).invoke(TURNS)
    assert len(server.requests) == 2
    assert failed.value.role == "constructor"
    assert failed.value.excerpt == "x" * 200
    assert "no JSON" in failed.value.why


def test_a_cut_reply_gets_a_larger_budget(server):
    server.script("constructor", cut(FACTS, 30), FACTS)
    output = role(server, max_tokens=3000).invoke(TURNS)
    assert texts(output) == ["Ana repairs accordions"]
    assert not output.cut
    assert [body.get("max_completion_tokens") for body in server.requests] == [3000, 6000]


@pytest.mark.parametrize("formats", [{"json_schema"}, {"tools"}, set()])
def test_twice_cut_keeps_complete_items_and_says_so(server, caplog, formats):
    server.formats = formats
    many = {"facts": [{"text": "first", "turn": 1}, {"text": "second", "turn": 1}]}
    part = cut(many, 50)
    if formats == {"tools"}:
        part = Reply(arguments=part.text, finish="length")
    server.script("constructor", part, part)
    with caplog.at_level(logging.WARNING):
        output = role(server).invoke(TURNS)
    assert (texts(output), output.cut) == (["first"], True)
    assert "complete items" in caplog.text
    assert SECRET not in caplog.text


def test_twice_cut_without_items_is_a_failure(server):
    question = AnswererInput(question="Where?", evidence=[], now=TIME)
    server.script("answerer", cut({"answer": "in Graz", "answerable": True}, 15), cut({"answer": "in"}, 9))
    with pytest.raises(RoleFailed, match="token limit"):
        role(server, "answerer").invoke(question)
    assert len(server.requests) == 2


def test_a_budget_the_server_does_not_have_leaves_the_first_reply(server):
    many = {"facts": [{"text": "first", "turn": 1}, {"text": "second", "turn": 1}]}
    server.script("constructor", cut(many, 50), Reply(status=400, error="max_completion_tokens is too large"))
    assert texts(role(server).invoke(TURNS)) == ["first"]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(refusal="I can't help with that"), "refused"),
        (Reply("{", finish="content_filter"), "content filter"),
        (Reply(choices=False), "no choices"),
    ],
)
@pytest.mark.parametrize("formats", [{"json_schema"}, set()])
def test_no_answer_is_not_asked_again(server, reply, why, formats):
    server.formats = formats
    server.script("constructor", reply)
    with pytest.raises(RoleFailed, match=why):
        role(server).invoke(TURNS)
    assert len(server.requests) == (1 if formats else 3)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(status=401, error="bad key"), openai.AuthenticationError),
        (Reply(status=404, error="no such model"), openai.NotFoundError),
        (Reply(status=500, error="boom"), openai.InternalServerError),
        (Reply(status=400, error="image too large"), openai.BadRequestError),
        (rate_limited(), openai.RateLimitError),
        (html(), ModelUnavailable),
        (Reply(raw=b"{nope"), ModelUnavailable),
    ],
)
def test_provider_errors_raise_as_themselves(server, reply, error):
    server.script("constructor", reply)
    with pytest.raises(error):
        role(server).invoke(TURNS)
    assert len(server.requests) == 1


def test_a_server_that_hangs_is_a_timeout(server):
    server.script("constructor", Reply(hang=30))
    with pytest.raises(openai.APITimeoutError):
        role(server, timeout=0.2).invoke(TURNS)


def test_the_client_retries_a_rate_limit(server):
    server.script("constructor", rate_limited(), FACTS)
    assert texts(role(server, max_retries=1).invoke(TURNS)) == ["Ana repairs accordions"]
    assert len(server.requests) == 2


async def test_async_is_the_same_talk(server):
    server.formats = set()
    server.script("constructor", ECHO, fenced(FACTS))
    assert texts(await role(server).ainvoke(TURNS)) == ["Ana repairs accordions"]
    assert len(server.requests) == 4
    server.script("constructor", Reply(status=500, error="boom"))
    with pytest.raises(openai.InternalServerError):
        await role(server).ainvoke(TURNS)


async def test_nothing_blocks_the_event_loop_on_first_use(server):
    server.formats = set()
    server.script("constructor", ECHO, cut(FACTS, 30), FACTS)
    asked = role(server)
    with blockbuster_ctx():
        output = await asked.ainvoke(TURNS, {"configurable": {PROMPTS: {"constructor": "Own: $turns"}}})
    assert texts(output) == ["Ana repairs accordions"]


async def test_async_calls_wait_together(server):
    server.script("constructor", *[FACTS] * 20)
    server.latency = 0.05
    asked = role(server)
    outputs = await asyncio.gather(*(asked.ainvoke(TURNS) for _ in range(20)))
    assert [texts(output) for output in outputs] == [["Ana repairs accordions"]] * 20


def test_callbacks_see_each_call_and_its_tokens(server):
    class Ends(BaseCallbackHandler):
        def __init__(self) -> None:
            self.usage: list[Any] = []

        def on_llm_end(self, response, **_: Any) -> None:
            self.usage.append(response.generations[0][0].message.usage_metadata)

    ends = Ends()
    server.script("constructor", ECHO, FACTS)
    role(server).invoke(TURNS, {"callbacks": [ends]})
    assert len(ends.usage) == 2
    assert all(usage["input_tokens"] > 100 and usage["output_tokens"] > 0 for usage in ends.usage)


def test_a_run_brings_its_own_prompt(server):
    server.script("constructor", FACTS, FACTS)
    asked = role(server)
    config = {"configurable": {PROMPTS: {"constructor": 'Like {"facts": ["..."]}\n---\nRead: $turns'}}}
    asked.invoke(TURNS, config)
    asked.invoke(TURNS)
    own, shipped = (body["messages"] for body in server.requests)
    assert own[0]["content"] == 'Like {"facts": ["..."]}'
    assert own[1]["content"].startswith("Read: <turn n=")
    assert shipped[0]["content"].startswith("You turn new turns")
    assert asked.prompt_version(config) != asked.prompt_version()


@pytest.mark.parametrize(
    "own",
    [{"constructor": "no placeholder"}, {"constructer": "$turns"}, ["$turns"], {"constructor": "$turns $5"}],
)
def test_a_bad_prompt_of_a_run_fails_before_any_call(server, own):
    with pytest.raises(PromptError):
        role(server).invoke(TURNS, {"configurable": {PROMPTS: own}})
    assert server.requests == []


class PlainModel(FakeListChatModel):
    """Knows neither schemas nor tools, as langchain-core's fakes."""


def test_a_model_without_schemas_and_tools_is_asked_in_text():
    model = PlainModel(responses=["<think>hm</think>nothing", json.dumps(FACTS)])
    asked = ModelRole("constructor", OUTPUTS["constructor"], model, PromptSet.shipped())
    assert asked.rung == "text"
    assert texts(asked.invoke(TURNS)) == ["Ana repairs accordions"]


class NoBudget(FakeListChatModel):
    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        message = AIMessage('{"facts": [', response_metadata={"finish_reason": "length"})
        return ChatResult(generations=[ChatGeneration(message=message)])


def test_a_model_without_a_budget_setting_is_not_asked_twice():
    asked = ModelRole("constructor", OUTPUTS["constructor"], NoBudget(responses=[""]), PromptSet.shipped())
    with pytest.raises(RoleFailed, match="token limit"):
        asked.invoke(TURNS)


def test_every_output_model_has_a_strict_schema():
    def check(schema: dict[str, Any]) -> None:
        assert not {"$ref", "$defs", "default", "format", "minimum", "maximum", "const"} & set(schema)
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
            for value in schema["properties"].values():
                check(value)
        for part in [*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])]:
            check(part)

    for name, model in OUTPUTS.items():
        schema = strict_schema(model, name)
        assert schema["title"] == name
        check(schema)


@pytest.mark.parametrize("name", OUTPUTS)
def test_roles_on_a_server_that_answers_by_rules_equal_the_rules(server, name):
    roles = Roles.from_model("rules", overrides={name: "openai:test"}, base_url=server.url)
    by_rules = getattr(Roles.rules(), name).invoke(INPUTS[name]).model_dump(mode="json")
    said = OUTPUTS[name].model_validate(only_asked(by_rules, strict_schema(OUTPUTS[name], name)))
    assert getattr(roles, name).invoke(INPUTS[name]) == said
    assert input_of(server.of(name)[-1]).placeholders() == INPUTS[name].placeholders()


PROBE = {"question": "When did Ida play?", "answer": "Ida played on 11 March 2024", "turn": 1}
GRADES = {"grades": [{"n": 1, "correct": True, "why": ""}, {"n": 3, "correct": False, "why": "empty"}]}
FACT = {"text": "Ida's recital was yesterday", "turn": 1, "quote": "My recital was yesterday."}
REPAIR = {"op": "ADD_FACT", "cause": "missing", "fact": FACT}
SKIP = {"decision": "SKIP", "memory": 0}


@pytest.mark.parametrize(
    ("name", "wrong", "field", "right"),
    [
        (
            "prober",
            {"probes": [{"question": "Who?", "answer": "Ida"}]},
            "probes.0.turn",
            {"probes": []},
        ),
        ("grader", {"grades": [{"n": 3, "correct": "partly"}]}, "grades.0.correct", GRADES),
        ("repairer", {"op": "ADD_FACT", "fact": {"text": "Ida plays", "turn": 1}}, "fact.quote", REPAIR),
        ("consolidator", {"decision": "UPDATE", "memory": 0}, "decision", SKIP),
    ],
)
def test_what_does_not_fit_is_named_and_asked_for_once_more(server, name, wrong, field, right):
    server.script(name, wrong, right)
    assert role(server, name).invoke(INPUTS[name]) == OUTPUTS[name].model_validate(right)
    assert f"{field}: " in server.requests[1]["messages"][-1]["content"]
    server.script(name, wrong, wrong)
    with pytest.raises(RoleFailed, match=field):
        role(server, name).invoke(INPUTS[name])


def test_a_wrong_item_of_a_cut_reply_is_left_out_like_any_other(server):
    grades = {"grades": [{"n": 1, "correct": "partly"}, *GRADES["grades"]]}
    part = cut(grades, len(json.dumps(grades)) - 12)
    server.script("grader", part, part)
    output = role(server, "grader").invoke(INPUTS["grader"])
    assert [(grade.n, grade.correct) for grade in output.grades] == [(1, True)]
    assert output.cut
    assert any("grades.correct" in fault for fault in output.faults)


@pytest.mark.parametrize(
    ("name", "said", "kept"),
    [
        ("constructor", ["Owns a loom", None], {"facts": [{"text": "Owns a loom"}]}),
        (
            "constructor",
            {"facts": [{**FACT, "kind": "hobby", "importance": 7}, {"text": "Plays"}, {"turn": 1}, 5]},
            {"facts": [{**FACT, "importance": 1}, {"text": "Plays"}]},
        ),
        ("constructor", {"facts": {**FACT, "persons": "Ida"}}, {"facts": [{**FACT, "persons": ["Ida"]}]}),
        ("constructor", {"facts": [{**FACT, "persons": ["Ida", None, 3]}, []]},
         {"facts": [{**FACT, "persons": ["Ida"]}]}),
        ("prober", {"probes": [PROBE, {"question": "Who?"}, None, "Who?"]}, {"probes": [PROBE]}),
        ("prober", {"probes": [{**PROBE, "kind": "hard"}]}, {"probes": [PROBE]}),
        ("grader", {"grades": [*GRADES["grades"], {"n": "x", "correct": True}, None]}, GRADES),
        ("consolidator", {**SKIP, "text": ["a"]}, SKIP),
    ],
)  # fmt: skip
def test_what_is_good_of_a_reply_is_kept_and_the_rest_is_told(server, name, said, kept):
    server.script(name, said)
    output = role(server, name).invoke(INPUTS[name])
    assert output.model_dump() == OUTPUTS[name].model_validate(kept).model_dump()
    assert output.faults
    assert len(server.requests) == 1


def test_an_empty_list_is_an_answer(server):
    server.script("constructor", {"facts": []})
    output = role(server, "constructor").invoke(INPUTS["constructor"])
    assert (output.facts, output.faults, len(server.requests)) == ([], (), 1)


@pytest.mark.parametrize(
    ("written", "read"),
    [("2024-03-11", datetime(2024, 3, 11, tzinfo=VIENNA)), ("the day before", None)],
)
def test_a_date_is_in_the_zone_of_the_turns_shown(server, written, read):
    server.script("repairer", {**REPAIR, "fact": {**FACT, "event_time": written, "event_precision": "day"}})
    assert role(server, "repairer").invoke(INPUTS["repairer"]).fact.event_time == read


def test_several_inputs_in_one_request(server):
    """Each is answered on its own; what a reply leaves out, or spoils, fails alone."""
    server.script("constructor", FACTS, {"facts": []})
    asked = role(server)
    found = asked.together([TURNS, chunk("Good morning!")])
    assert [texts(one) for one in found] == [["Ana repairs accordions"], []]
    [request] = server.requests
    assert request["messages"][-1]["content"].count("I repair accordions.") == 1
    server.script("constructor", lambda _: Reply(json.dumps({"cases": [{"n": 2, "reply": FACTS}]})), FACTS)
    lost, kept = asked.together([TURNS, TURNS])
    assert isinstance(lost, RoleFailed)
    assert "left this case out" in str(lost)
    assert texts(kept) == ["Ana repairs accordions"]
