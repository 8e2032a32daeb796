"""A memory in a temporary home, and agents over a loopback model."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent

from memcycle import Memory, Settings
from memcycle.agents.models import open_model
from tests.fakes import FakeEmbeddings
from tests.loopback import ModelServer, Reply, model_server

AGENT = "unknown"
"""What the loopback server calls requests that are for no role of ours and bring no tools."""


@pytest.fixture
def memory(tmp_path):
    settings = Settings(home=tmp_path / "home", shards=2)
    with Memory.open(settings=settings, embeddings=FakeEmbeddings()) as opened:
        yield opened


@pytest.fixture
def server(socket_enabled):
    with model_server() as running:
        yield running


@pytest.fixture
def chat_model(server):
    return open_model("openai:m", base_url=server.url, api_key="none", max_retries=0, disable_streaming=True)


@pytest.fixture
def agent(server, chat_model) -> Callable[..., Any]:
    """Makes an agent; `replies` are what its model says, one after another."""

    def make(*middleware: Any, replies: Any = (), role: str = AGENT, **more: Any) -> Any:
        server.script(role, *replies)
        return create_agent(chat_model, middleware=list(middleware), **more)

    return make


def calls(name: str, **arguments: Any) -> Callable[[dict[str, Any]], Reply]:
    """A reply of the model that calls a tool, whatever tools were offered before it."""

    def reply(body: dict[str, Any]) -> Reply:
        call = {
            "id": f"call_{len(body['messages'])}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        completion = {
            "id": "c", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        }  # fmt: skip
        return Reply(raw=json.dumps(completion).encode())

    return reply


def prompt(server: ModelServer, number: int = -1) -> str:
    """All that the model was sent in a request."""
    return json.dumps(server.requests[number]["messages"], ensure_ascii=False)


def said(text: str) -> dict[str, Any]:
    return {"messages": [("user", text)]}


def thread(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}
