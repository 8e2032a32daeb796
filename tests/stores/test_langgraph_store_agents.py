"""langmem's tools, an agent's tools and LangGraph's server on our store, without any model."""

import json
import re

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall
from langgraph.func import entrypoint

from memcycle.core.settings import Settings
from memcycle.stores.langgraph_store import MemcycleStore
from tests.dev_server import served

ANN = {"configurable": {"langgraph_user_id": "ann"}}
BOB = {"configurable": {"langgraph_user_id": "bob"}}
MEMORIES = ("memories", "{langgraph_user_id}")
SAID = ["Ann plays the cello in an orchestra", "Ann is allergic to peanuts", "Ann drives an old red car"]


@pytest.fixture
def store(tmp_path):
    with MemcycleStore(Settings(home=tmp_path / "home")) as made:
        yield made


@pytest.fixture
def langmem():
    return pytest.importorskip("langmem", reason="langmem is not installed")


def id_in(reply):
    return re.search(r"memory ([0-9a-f-]{36})", reply).group(1)


def contents(found):
    return [one["value"]["content"] for one in json.loads(found)]


def test_langmems_tools_write_search_change_and_delete(store, langmem):
    manage = langmem.create_manage_memory_tool(MEMORIES, store=store)
    search = langmem.create_search_memory_tool(MEMORIES, store=store)
    ids = [id_in(manage.invoke({"content": text}, ANN)) for text in SAID]
    manage.invoke({"content": "Bob plays the cello"}, BOB)
    asked = {"query": "Which musical instrument does she play?", "limit": 1}
    assert contents(search.invoke(asked, ANN)) == [SAID[0]]
    assert contents(search.invoke(asked, BOB)) == ["Bob plays the cello"]
    manage.invoke({"action": "update", "id": ids[0], "content": "Ann plays the violin in an orchestra"}, ANN)
    manage.invoke({"action": "delete", "id": ids[1]}, ANN)
    found = contents(search.invoke({"query": "orchestra", "limit": 10}, ANN))
    assert found[0] == "Ann plays the violin in an orchestra"
    assert set(found) == {"Ann plays the violin in an orchestra", SAID[2]}
    assert contents(search.invoke({"query": "car", "filter": {"content": SAID[2]}}, ANN)) == [SAID[2]]
    assert store.list_namespaces() == [("memories", "ann"), ("memories", "bob")]


async def test_langmems_tools_find_the_store_of_the_graph(store, langmem):
    manage = langmem.create_manage_memory_tool(MEMORIES)
    search = langmem.create_search_memory_tool(MEMORIES, response_format="content_and_artifact")

    @entrypoint(store=store)
    async def flow(text: str) -> str:
        await manage.ainvoke({"content": text})
        return await search.ainvoke({"query": "allergies", "limit": 1})

    for text in SAID:
        reply = await flow.ainvoke(text, ANN)
    assert contents(reply) == [SAID[1]]


class Scripted(GenericFakeChatModel):
    """Says what it is told to; takes tools."""

    def bind_tools(self, tools, **kwargs):
        return self


def test_an_agents_tools_have_the_store(store, langmem):
    create_agent = pytest.importorskip("langchain.agents").create_agent
    calls = [
        ToolCall(name="manage_memory", args={"content": SAID[0]}, id="1"),
        ToolCall(name="search_memory", args={"query": "instrument"}, id="2"),
    ]
    model = Scripted(
        messages=iter([*(AIMessage("", tool_calls=[call]) for call in calls), AIMessage("The cello.")])
    )
    tools = [langmem.create_manage_memory_tool(MEMORIES), langmem.create_search_memory_tool(MEMORIES)]
    agent = create_agent(model, tools, store=store)
    said = agent.invoke({"messages": [("user", "I play the cello. What do I play?")]}, ANN)["messages"]
    assert contents(said[-2].content) == [SAID[0]]
    assert said[-1].text == "The cello."
    assert [one.value["content"] for one in store.search(("memories", "ann"))] == [SAID[0]]


GRAPH = """
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

class State(TypedDict, total=False):
    text: str
    found: list[str]

async def keep(state: State, runtime: Runtime) -> State:
    await runtime.store.aput(("notes",), state["text"], {"content": state["text"]})
    near = await runtime.store.asearch(("notes",), query="musical instrument", limit=1)
    return {"found": [one.value["content"] for one in near] + [type(runtime.store).__name__]}

graph = StateGraph(State).add_node(keep).add_edge(START, "keep").compile()
"""


@pytest.mark.slow
@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_langgraphs_server_takes_the_store_from_its_configuration(tmp_path):
    (tmp_path / "graph.py").write_text(GRAPH)
    config = {
        "dependencies": ["."],
        "graphs": {"notes": "./graph.py:graph"},
        "store": {"path": "memcycle.stores.langgraph_store.served_store"},
    }
    (tmp_path / "langgraph.json").write_text(json.dumps(config))
    log = tmp_path / "server.log"
    with served(tmp_path / "langgraph.json", log) as client:
        for text in SAID:
            out = client.runs.wait(None, "notes", input={"text": text})
        assert out["found"] == [SAID[0], "MemcycleStore"]
        client.store.put_item(["web", "ann"], key="k", value={"content": "Ann sails"})
        assert client.store.get_item(["web", "ann"], key="k")["value"] == {"content": "Ann sails"}
        found = client.store.search_items(["web"], query="boats")["items"]
        assert [one["key"] for one in found] == ["k"]
        assert client.store.list_namespaces()["namespaces"] == [["notes"], ["web", "ann"]]
        client.store.delete_item(["web", "ann"], key="k")
    told = log.read_text().casefold()
    assert "blockingerror" not in told
    assert "blocking call" not in told
    with MemcycleStore(tmp_path / "memory") as store:
        assert store.list_namespaces() == [("notes",)]
        assert len(store.search(("notes",))) == 3
