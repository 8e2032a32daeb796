"""The tools, called by a model in an agent, and what they refuse."""

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from memcycle.core.errors import BadInput, StoreBusy
from memcycle.integrations import MemoryMiddleware, MemoryToolkit, memory_tools
from tests.integrations.conftest import calls, prompt, said, thread

ANN = {"user": "ann"}
NAMES = ["search_memory", "remember", "forget_memory", "memory_history"]


@pytest.fixture
def use(memory):
    """Calls tools one after another in one conversation, sync and async in turn; gives their messages."""

    class Conversation:
        def __init__(self, *spoken):
            self.messages = [HumanMessage(text, id=f"m{n}") for n, text in enumerate(spoken)]
            builder = StateGraph(MessagesState, context_schema=dict)
            builder.add_node("tools", ToolNode(memory_tools(memory)))
            builder.add_edge(START, "tools")
            self.graph, self.number = builder.compile(), 0

        async def __call__(self, name, user="ann", **args):
            self.number += 1
            call = AIMessage("", tool_calls=[{"id": f"c{self.number}", "name": name, "args": args}])
            value, config = {"messages": [*self.messages, call]}, thread("t")
            if self.number % 2:
                out = await self.graph.ainvoke(value, config, context={"user": user})
            else:
                out = self.graph.invoke(value, config, context={"user": user})
            self.messages = out["messages"]
            return self.messages[-1]

    return Conversation


def only_id(message):
    return message.text.split("]")[0].removeprefix("[")


def test_a_model_sees_typed_arguments_and_nobodys_name(memory):
    tools = memory_tools(memory)
    assert [tool.name for tool in tools] == NAMES
    assert [tool.name for tool in MemoryToolkit(memory=memory).get_tools()] == NAMES
    shown = {tool.name: tool.tool_call_schema.model_json_schema()["properties"] for tool in tools}
    assert {name: sorted(arguments) for name, arguments in shown.items()} == {
        "search_memory": ["limit", "query"],
        "remember": ["text"],
        "forget_memory": ["entry_id", "quote"],
        "memory_history": ["entry_id"],
    }
    assert all(
        one["description"] and one["type"] for arguments in shown.values() for one in arguments.values()
    )


async def test_what_is_remembered_is_searched_shown_and_explained(use, memory):
    tool = use("I keep geese on the roof.")
    kept = await tool("remember", text="keep geese on the  ROOF")
    assert kept.text.startswith("Remembered the user's message")
    assert (
        await tool("remember", text="I keep geese on the roof.")
    ).text == "That message is remembered already."
    again = use()
    found = await again("search_memory", query="What do I keep?")
    assert "user: I keep geese on the roof." in found.text
    history = await again("memory_history", entry_id=only_id(found))
    assert "geese" in history.text
    assert [entry.text for entry in memory.memories(user="ann", granularity="raw")] == [
        "I keep geese on the roof."
    ]


async def test_words_of_the_model_are_a_note_and_no_fact(use, memory):
    tool = use("Hello.")
    kept = await tool("remember", text="Ann keeps geese and lives in Graz.")
    assert "own note" in kept.text
    [note] = memory.memories(user="ann")
    assert (note.granularity, note.role) == ("raw", "ai")


async def test_forgetting_needs_a_shown_id_and_the_users_own_request(use, memory):
    memory.add("I keep geese.", user="ann", session="t")
    entry = memory.memories(user="ann", granularity="raw")[0].id
    tool = use("Please forget that I keep geese.")
    quote = "forget that I keep geese"
    unshown = await tool("forget_memory", entry_id=entry, quote=quote)
    assert (unshown.status, "no such id was shown" in unshown.text) == ("error", True)
    await tool("search_memory", query="geese")
    for words in ("the user wants it gone, forget it", "I keep geese"):
        refused = await tool("forget_memory", entry_id=entry, quote=words)
        assert (refused.status, "did not ask" in refused.text) == ("error", True)
    assert memory.get(entry, user="ann")
    done = await tool("forget_memory", entry_id=entry, quote=quote)
    assert (done.status, "Erased for good" in done.text) == ("success", True)
    assert "geese" not in " ".join(entry.text for entry in memory.memories(user="ann"))
    gone = await tool("memory_history", entry_id=entry)
    assert gone.status == "error"
    reply = AIMessage("Done, I have forgotten that you keep geese.", id="m1")
    said = [
        HumanMessage("Please forget that I keep geese.", id="m0"),
        reply,
        HumanMessage("Thanks!", id="m9"),
    ]
    memory.add(said, user="ann", session="t")
    assert [one.text for one in memory.memories(user="ann", granularity="raw")] == ["Thanks!"]


async def test_an_old_request_is_no_request(use, memory):
    memory.add("I keep geese.", user="ann", session="t")
    entry = memory.memories(user="ann", granularity="raw")[0].id
    tool = use("Please forget that I keep hens.", "Thanks.", "How are you?", "Do I keep geese?")
    await tool("search_memory", query="geese")
    refused = await tool("forget_memory", entry_id=entry, quote="forget that I keep hens")
    assert refused.status == "error"
    assert memory.get(entry, user="ann")


async def test_another_users_memory_is_out_of_reach(use, memory):
    memory.add("I keep geese.", user="ann", session="t")
    entry = memory.memories(user="ann", granularity="raw")[0].id
    tool = use("Forget the geese.")
    assert (
        await tool("search_memory", user="bob", query="geese")
    ).text == "Nothing in memory bears on that, beyond what this conversation shows."
    await tool("search_memory", query="geese")
    assert (await tool("memory_history", user="bob", entry_id=entry)).status == "error"
    assert (
        await tool("forget_memory", user="bob", entry_id=entry, quote="Forget the geese")
    ).status == "error"
    assert memory.get(entry, user="ann")


async def test_a_memory_that_fails_is_told_to_the_model_and_ends_no_run(use, memory, monkeypatch):
    def fails(*_, **__):
        raise StoreBusy("the store is open elsewhere")

    tool = use("Hello.")
    for name in ("recall", "arecall", "add", "aadd", "history"):
        monkeypatch.setattr(memory, name, fails)
    for name, args in (
        ("search_memory", {"query": "geese"}),
        ("search_memory", {"query": "geese"}),
        ("remember", {"text": "Hello."}),
        ("remember", {"text": "Hello."}),
        ("memory_history", {"entry_id": "x"}),
    ):
        assert (await tool(name, **args)).status == "error"


def test_an_agent_with_middleware_and_its_tools(memory, server, agent):
    memory.add("I keep geese.", user="ann", session="t")
    remembers = MemoryMiddleware(memory, tools=True, recall=False)
    graph = agent(
        remembers,
        replies=[calls("search_memory", query="What do I keep?", limit=3), "Geese."],
        role="search_memory",
        checkpointer=InMemorySaver(),
    )
    out = graph.invoke(said("Which birds do I have?"), thread("t"), context=ANN)
    assert "I keep geese." in prompt(server)
    assert out["messages"][-1].text == "Geese."
    texts = [entry.text for entry in memory.memories(user="ann", granularity="raw")]
    assert texts == ["I keep geese.", "Which birds do I have?", "Geese."]


def test_what_a_tool_showed_is_nobodys_words(memory):
    memory.add("I keep geese.", user="ann", session="t")
    [search, *_] = memory_tools(memory)
    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode([search]))
    builder.add_edge(START, "tools")
    call = AIMessage("", tool_calls=[{"id": "c", "name": "search_memory", "args": {"query": "geese"}}])
    config = {"configurable": {"thread_id": "t", "user_id": "ann"}}
    out = builder.compile().invoke({"messages": [HumanMessage("Geese?"), call]}, config)
    memory.add(out["messages"], user="ann", session="t")
    texts = [entry.text for entry in memory.memories(user="ann", granularity="raw")]
    assert texts == ["I keep geese.", "Geese?"]


def test_nobody_named_is_an_error(memory):
    graph = create_agent(FakeListChatModel(responses=["Hm."]), middleware=[MemoryMiddleware(memory)])
    with pytest.raises(BadInput, match="no user is named"):
        graph.invoke(said("Hello."))
