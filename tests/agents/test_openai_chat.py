"""The short way of asking an OpenAI-style server is the long one in all that is sent and told."""

import asyncio
import json
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from memcycle.agents.connections import Client, LoopClient
from memcycle.agents.openai_chat import PlainChatOpenAI
from memcycle.agents.reply import NoAnswer, reply_in_error
from memcycle.agents.roles import OUTPUTS
from memcycle.agents.runner import strict_schema
from memcycle.core.errors import ModelUnavailable
from tests.loopback import Reply, html, rate_limited

ROLE = "unknown"
JUDGE = strict_schema(OUTPUTS["judge"], "judge")
TALK = [SystemMessage("You judge."), HumanMessage("Well?"), AIMessage("What?"), HumanMessage("ünïcode 😀")]
ANSWER = json.dumps({"verdict": "pass"})
OURS_ALONE = ("x-stainless", "user-agent")


class Answer(BaseModel):
    """An answer."""

    verdict: str


BOUND: dict[str, Any] = {
    "text": lambda model: model,
    "json_schema": lambda model: model.bind(
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "judge", "schema": JUDGE, "strict": True},
        }
    ),
    "tools": lambda model: model.bind_tools([JUDGE], tool_choice="judge"),
    "stop": lambda model: model.bind(stop=["\n\n"]),
    "headers": lambda model: model.bind(extra_headers={"x-own": "1"}),
    "seconds": lambda model: model.bind(timeout=7.5),
    "typed": lambda model: model.bind(response_format=Answer),
}
ARGUMENTS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.2, "max_tokens": 50, "seed": 1},
    {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}},
    {"model": "o3-mini"},
    {"include_response_headers": True},
    {"streaming": True},
]
REPLIES: list[Any] = [
    ANSWER,
    Reply(None),
    Reply(refusal="I will not."),
    Reply(ANSWER, finish="content_filter"),
    Reply(arguments=ANSWER),
    Reply(content=[{"type": "text", "text": ANSWER}]),
    Reply(choices=False),
    Reply(raw=b"{}"),
    Reply(raw=b"null"),
    Reply(raw=b'{"error": {"message": "overloaded"}}'),
    Reply(raw=b'{"choices": null}'),
    Reply(raw=b"{broken"),
    html(),
]
STATUSES: list[Any] = [rate_limited(), *(Reply(status=code) for code in (400, 401, 403, 404, 422, 500, 503))]


def models(server, **given: Any):
    arguments = {"model": "m", "base_url": server.url, "api_key": "k", "max_retries": 0, **given}
    return [
        kind(**arguments, http_client=Client(), http_async_client=LoopClient())
        for kind in (PlainChatOpenAI, ChatOpenAI)
    ]


def ask(runnable, awaited: bool) -> Any:
    try:
        return asyncio.run(runnable.ainvoke(TALK)) if awaited else runnable.invoke(TALK)
    except Exception as error:  # noqa: BLE001 - what is raised is compared
        return error


def sent(server) -> list[Any]:
    """What the two were sent, but for the names of the SDK's own methods."""
    both = []
    for request in server.requests[-2:]:
        headers = {
            key.lower(): value
            for key, value in request["headers"].items()
            if not key.lower().startswith(OURS_ALONE) and key.lower() != "content-length"
        }
        both.append({**request, "headers": headers})
    return both


def told(reply: AIMessage) -> Any:
    """The reply without what is new in each, and without what the SDK reads out of it or adds unasked."""
    said = reply.model_dump(exclude={"id"})
    said["additional_kwargs"].pop("parsed", None)
    said["response_metadata"].pop("headers", None)
    return filled(said)


def filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: filled(one) for key, one in value.items() if one not in (None, "")}
    return value


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("arguments", ARGUMENTS)
@pytest.mark.parametrize("bound", BOUND)
def test_what_is_sent_and_told_is_the_same(server, bound, arguments, awaited):
    for role in (ROLE, "judge"):
        server.script(role, *[html() if arguments.get("streaming") else ANSWER] * 2)
    ours, theirs = (ask(BOUND[bound](model), awaited) for model in models(server, **arguments))
    first, second = sent(server)
    assert first == second
    if isinstance(theirs, AIMessage):
        assert told(ours) == told(theirs)
    else:
        assert isinstance(theirs, type(ours))


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("reply", REPLIES)
def test_what_is_told_of_a_reply_is_the_same(server, reply, awaited):
    server.script(ROLE, reply, reply)
    ours, theirs = (ask(model, awaited) for model in models(server))
    if isinstance(theirs, AIMessage):
        assert told(ours) == told(theirs)
    else:
        assert understood(ours) is understood(theirs)


def understood(error: Exception) -> type[Exception]:
    """As what a role takes the client's error."""
    try:
        assert reply_in_error(error) is None
    except (NoAnswer, ModelUnavailable) as known:
        return type(known)
    return type(error)


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("reply", STATUSES)
def test_an_error_of_the_server_is_of_the_same_kind(server, reply, awaited):
    server.script(ROLE, reply, reply)
    ours, theirs = (ask(model, awaited) for model in models(server))
    assert isinstance(ours, openai.APIStatusError)
    assert isinstance(theirs, type(ours))
    assert (ours.status_code, ours.body, ours.message) == (theirs.status_code, theirs.body, theirs.message)


@pytest.mark.parametrize("awaited", [False, True])
def test_it_tries_again_and_gives_up_as_the_client_does(server, awaited):
    server.script(ROLE, rate_limited(), Reply(status=500), "Hello.")
    ours, _ = models(server, max_retries=2)
    assert ask(ours, awaited).text == "Hello."
    server.script(ROLE, Reply(hang=5))
    slow, _ = models(server, timeout=0.1)
    assert isinstance(ask(slow, awaited), openai.APITimeoutError)


def test_the_responses_api_is_asked_the_usual_way(server):
    ours, theirs = models(server, use_responses_api=True)
    assert ours._body(TALK, None, {}) is None
    assert type(ask(ours, False)) is type(ask(theirs, False))
