"""Prompts laid over for one run: they are what is sent, and what is recorded on what they made."""

from collections.abc import Iterator

import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from memcycle import build_remember, build_session
from memcycle.agents.roles import Roles
from memcycle.core.settings import Settings
from memcycle.graph.context import Context
from memcycle.graph.memory import embed
from memcycle.prompts import PromptSet
from tests.graph.conftest import ANA
from tests.loopback import ModelServer, model_server

SHIPPED = PromptSet.shipped()
SAID = {"messages": ["I play the cello.", "My sister keeps two beehives in Linz."]}
PAPER = Settings(profile="paper")
MARK = "Prefer short sentences, said plainly."


def own(role: str) -> dict[str, str]:
    """A prompt of one's own, by role."""
    return {role: f"{MARK}\n\n{SHIPPED.text(role)}"}


def version(role: str) -> str:
    return SHIPPED.overlay(own(role)).version(role)


@pytest.fixture
def server(socket_enabled) -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture
def roles(server) -> Roles:
    return Roles.from_model("openai:small", base_url=server.url, api_key="none")


def context(user: str = "ana", **own_prompts: str) -> dict:
    return {"user": user, "session": "s1", "prompts": own_prompts}


def sent(server, role: str) -> list[bool]:
    """Whether each request for a role held the words of one's own prompt."""
    return [MARK in str(request["messages"]) for request in server.of(role)]


def test_a_prompt_in_the_context_is_sent_and_recorded_for_that_run_only(bank, server, roles):
    graph = build_remember(roles, bank, PAPER)
    graph.invoke(SAID, context=context(**own("constructor")))
    graph.invoke({"messages": ["I adopted a cat called Miso."]}, context=context())
    assert sent(server, "constructor") == [True, False]
    made = {entry.turns: (entry.prompt, entry.model) for entry in bank.entries(ANA, granularity="fact")}
    assert made == {
        ("Ds1:1",): (version("constructor"), "small"),
        ("Ds1:2",): (version("constructor"), "small"),
        ("Ds1:3",): (SHIPPED.version("constructor"), "small"),
    }
    assert version("constructor") != SHIPPED.version("constructor")


async def test_awaited_it_is_the_same(bank, server, roles):
    await build_remember(roles, bank, PAPER).ainvoke(SAID, context=context(**own("constructor")))
    assert {entry.prompt for entry in bank.entries(ANA, granularity="fact")} == {version("constructor")}


def test_each_role_records_its_own(bank, server, roles):
    build_remember(roles, bank, PAPER).invoke(SAID, context=context())
    build_session(roles, bank, PAPER).invoke({}, context=context(**own("episode_writer")))
    assert sent(server, "episode_writer") == [True]
    prompts = {entry.granularity: entry.prompt for entry in bank.entries(ANA)}
    assert prompts == {
        "raw": None,
        "fact": SHIPPED.version("constructor"),
        "episode": version("episode_writer"),
    }


class Desk(TypedDict, total=False):
    said: list[str]
    done: dict


def test_a_parent_and_a_node_lay_prompts_over_and_the_run_wins(bank, server, roles):
    node = embed(
        build_remember(roles, bank, PAPER),
        read={"messages": "said"},
        write={"done": "result"},
        prompts={"constructor": SHIPPED.text("constructor")},
    )
    parent = StateGraph(Desk, context_schema=Context)
    parent.add_node("remember", node)
    parent.add_edge(START, "remember")
    graph = parent.compile()
    graph.invoke({"said": ["I play the cello."]}, context={"user": "ana", "session": "s1"})
    graph.invoke({"said": ["I live in Graz."]}, context=context(**own("constructor")))
    assert sent(server, "constructor") == [False, True]


def test_by_rules_no_prompt_is_recorded(bank):
    build_remember(bank=bank).invoke(SAID, context=context(**own("constructor")))
    assert {entry.prompt for entry in bank.entries(ANA)} == {None}
