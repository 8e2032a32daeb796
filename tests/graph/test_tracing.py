"""What a tracer sees of a run: names and tags by role, and nothing leaves the machine for it."""

import socket
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import langsmith.utils
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.langchain import wait_for_all_tracers

from memcycle import build_memory
from memcycle.agents.roles import Roles
from memcycle.core.settings import Settings
from tests.graph.conftest import ANA
from tests.loopback import ModelServer, model_server

CONTEXT = {"user": "ana", "session": "s1"}
STORY = (
    "I live in Vienna and my sister Eva keeps two beehives.",
    "I no longer live in Vienna, I moved to Graz.",
    "Where do I live?",
)


class Tracer(BaseCallbackHandler):
    """Names and tags of what runs, and what each run is part of."""

    def __init__(self) -> None:
        self.names: dict[UUID, str] = {}
        self.parents: dict[UUID, UUID | None] = {}
        self.roles: set[tuple[str, str]] = set()
        self.models: list[tuple[list[str], list[str]]] = []

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: Any = None, **more: Any
    ) -> None:
        self.names[run_id], self.parents[run_id] = more["name"], parent_run_id
        tags = [tag for tag in more["tags"] or [] if tag.startswith("memcycle:")]
        if tags:
            self.roles.add((more["name"], *tags))

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: UUID, parent_run_id: Any = None, **more: Any
    ) -> None:
        tags = [tag for tag in more["tags"] or [] if tag.startswith("memcycle:")]
        self.roles.add((more["name"], *tags))
        self.models.append((tags, [more["name"], *self._above(parent_run_id)]))

    def _above(self, run: UUID | None) -> list[str]:
        names = []
        while run is not None:
            names.append(self.names[run])
            run = self.parents[run]
        return names


@pytest.fixture
def server(socket_enabled) -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture
def untraced(monkeypatch):
    """An environment that asks for no tracing, whatever that of the tests says."""
    for prefix in ("LANGSMITH", "LANGCHAIN"):
        for name in ("TRACING", "TRACING_V2", "API_KEY", "ENDPOINT"):
            monkeypatch.delenv(f"{prefix}_{name}", raising=False)
    langsmith.utils.get_env_var.cache_clear()
    yield
    langsmith.utils.get_env_var.cache_clear()


@pytest.fixture
def connections(monkeypatch) -> list[Any]:
    """Whom any thread of this process connects to."""
    made: list[Any] = []
    connect = socket.socket.connect

    def noted(self: socket.socket, address: Any) -> Any:
        made.append(address)
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", noted)
    return made


@pytest.mark.parametrize("awaited", [False, True])
async def test_runs_bear_the_names_and_tags_of_roles_and_nothing_is_sent(
    bank, server, untraced, connections, awaited
):
    roles = Roles.from_model("openai:test", base_url=server.url, api_key="none")
    graph, tracer = build_memory(roles, bank, Settings(profile="paper")), Tracer()
    for text in STORY:
        value = {"messages": [("user", text)], "end_session": text.endswith("?")}
        config = {"callbacks": [tracer]}
        if awaited:
            await graph.ainvoke(value, config, context=CONTEXT)
        else:
            graph.invoke(value, config, context=CONTEXT)
    wait_for_all_tracers()
    asked = {request["role"] for request in server.requests}
    assert {"retriever", "judge", "constructor", "guide", "prober", "answerer"} <= asked
    assert {name for name, tag in tracer.roles if tag == f"memcycle:{name}"} >= asked
    assert len(tracer.models) == len(server.requests)
    for (tag,), above in tracer.models:
        assert tag.removeprefix("memcycle:") in above
        assert above[-1] == "memory"
    graphs = {
        name for _, above in tracer.models for name in above if name in ("recall", "remember", "session")
    }
    assert graphs == {"recall", "remember", "session"}
    assert {address[:1] for address in connections} == {("127.0.0.1",)}
    assert bank.count(ANA)["raw"] == 6


def test_by_rules_nothing_is_connected_to(bank, untraced, connections):
    build_memory(bank=bank).invoke({"messages": [("user", STORY[0])]}, context=CONTEXT)
    wait_for_all_tracers()
    assert connections == []
