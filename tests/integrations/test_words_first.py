"""What is said is written down as it comes, whatever takes a message out of the thread or ends the run."""

from dataclasses import replace

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
    before_model,
)
from langchain.tools import tool
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

from memcycle import Memory
from memcycle.agents.roles import Roles
from memcycle.integrations import MemoryMiddleware
from tests.fakes import FakeEmbeddings
from tests.integrations.conftest import said, thread

ANN = {"user": "ann"}
CODE = "My locker code is 4471. Please look up four things."


class Scripted(GenericFakeChatModel):
    """Gives these replies, raising those that are errors, whatever tools it is given."""

    def bind_tools(self, *_, **__):
        return self

    def _generate(self, *args, **kwargs):
        reply = next(self.messages)
        if isinstance(reply, Exception):
            raise reply
        self.messages = iter([reply, *self.messages])
        return super()._generate(*args, **kwargs)


def scripted(*replies):
    return Scripted(messages=iter(replies))


def looks_up(text="", n=1):
    return AIMessage(text, tool_calls=[{"name": "look_up", "args": {"what": str(n)}, "id": f"call-{n}"}])


@tool
def look_up(what: str) -> str:
    """Looks something up."""
    return f"found {what}"


def summarises():
    summary = scripted(*[AIMessage("Ann said that she likes opera.")] * 9)
    return SummarizationMiddleware(summary, trigger=("messages", 5), keep=("messages", 2))


@before_model
def trims(state, runtime):
    last = state["messages"][-1:]
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *last]}


def texts(memory, role=None, granularity="raw"):
    return [
        one.text for one in memory.memories(user="ann", granularity=granularity) if role in (None, one.role)
    ]


async def run(graph, value, awaited, *args, **kwargs):
    return await graph.ainvoke(value, *args, **kwargs) if awaited else graph.invoke(value, *args, **kwargs)


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("taker", [summarises, lambda: trims])
async def test_what_a_summary_or_a_trim_takes_away_is_remembered(memory, taker, first, awaited):
    """Wherever in the list the middleware stands; the summary itself is nobody's words."""
    model = scripted(*[looks_up(f"Looking up number {n}.", n) for n in range(4)], AIMessage("Done."))
    remembers = MemoryMiddleware(memory)
    order = [remembers, taker()] if first else [taker(), remembers]
    graph = create_agent(model, [look_up], middleware=order, checkpointer=InMemorySaver())
    out = await run(graph, said(CODE), awaited, thread("t"), context=ANN)
    assert CODE not in [message.text for message in out["messages"]]
    assert texts(memory) == [CODE, *[f"Looking up number {n}." for n in range(4)], "Done."]
    assert "My locker code is 4471." in texts(memory, granularity="fact")
    assert memory.bank.unprocessed(memory.scope("ann")) == []
    assert remembers.failures == []


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("background", [False, True])
async def test_what_was_said_before_a_model_failed_is_remembered_once(memory, awaited, background):
    """Also where it is sent again; the next turn that succeeds reads it."""
    replies = [ConnectionError("down"), looks_up("One moment."), ConnectionError("down"), AIMessage("Sorry.")]
    with MemoryMiddleware(memory, background=background) as remembers:
        graph = create_agent(
            scripted(*replies), [look_up], middleware=[remembers], checkpointer=InMemorySaver()
        )
        for value in (said(CODE), said(CODE)):
            with pytest.raises(ConnectionError):
                await run(graph, value, awaited, thread("t"), context=ANN)
        assert texts(memory) == [CODE, "One moment."]
        await run(graph, said("Are you there?"), awaited, thread("t"), context=ANN)
        await remembers.aflush()
        assert texts(memory) == [CODE, "One moment.", "Are you there?", "Sorry."]
        assert "My locker code is 4471." in texts(memory, granularity="fact")


def test_a_model_that_fails_in_an_agent_without_threads_doubles_nothing(memory):
    model = scripted(ConnectionError("down"), ConnectionError("down"), AIMessage("Sorry."), AIMessage("Yes?"))
    graph = create_agent(model, middleware=[MemoryMiddleware(memory)])
    for _ in range(2):
        with pytest.raises(ConnectionError):
            graph.invoke(said(CODE), context=ANN)
    graph.invoke(said(CODE), context=ANN)
    assert texts(memory) == [CODE, "Sorry."]
    graph.invoke(said(CODE), context=ANN)  # said once more, after a reply
    assert texts(memory) == [CODE, "Sorry.", CODE, "Yes?"]


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("first", [False, True])
async def test_what_waits_for_an_approval_is_written_down(memory, first, answered):
    """A person who never answers costs no word; one who does ends the run, which reads them once."""
    remembers = MemoryMiddleware(memory)
    asks = HumanInTheLoopMiddleware(interrupt_on={"look_up": True})
    graph = create_agent(
        scripted(looks_up(), AIMessage("Done.")),
        [look_up],
        middleware=[remembers, asks] if first else [asks, remembers],
        checkpointer=InMemorySaver(),
    )
    out = await graph.ainvoke(said(CODE), thread("t"), context=ANN)
    assert "__interrupt__" in out
    assert (texts(memory), texts(memory, granularity="fact")) == ([CODE], [])
    if answered:
        approve = Command(resume={"decisions": [{"type": "approve"}]})
        await graph.ainvoke(approve, thread("t"), context=ANN)
        assert texts(memory) == [CODE, "Done."]
    else:
        memory.end_session("t", user="ann")
        assert texts(memory) == [CODE]
    assert texts(memory, granularity="fact").count("My locker code is 4471.") == 1


@pytest.mark.parametrize("background", [False, True])
def test_a_run_is_read_once_however_often_its_model_is_called(tmp_path, background):
    read, rules = [], Roles.rules()

    def construct(value):
        read.append([turn.text for turn in value.turns])
        return rules.constructor.invoke(value)

    roles = replace(rules, constructor=RunnableLambda(construct))
    memory = Memory.open(tmp_path / "m", roles=roles, embeddings=FakeEmbeddings())
    with memory, MemoryMiddleware(memory, background=background) as remembers:
        model = scripted(*[looks_up("", n) for n in range(3)], AIMessage("Done."))
        create_agent(model, [look_up], middleware=[remembers]).invoke(said(CODE), context=ANN)
    assert read == [[CODE, "Done."]]


def test_words_that_cannot_be_written_down_fail_no_run_and_are_made_good(memory, monkeypatch):
    real = memory.bank.stage_turns

    def full(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(memory.bank, "stage_turns", full)
    remembers = MemoryMiddleware(memory)
    graph = create_agent(
        scripted(AIMessage("One."), AIMessage("Two.")), middleware=[remembers], checkpointer=InMemorySaver()
    )
    assert graph.invoke(said(CODE), thread("t"), context=ANN)["messages"][-1].text == "One."
    assert {failure.error for failure in remembers.failures} == {"OSError"}
    monkeypatch.setattr(memory.bank, "stage_turns", real)
    graph.invoke(said("I keep geese."), thread("t"), context=ANN)
    assert texts(memory) == [CODE, "One.", "I keep geese.", "Two."]


def test_words_are_written_down_before_the_first_model_is_asked(memory):
    seen = []

    class Looks(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            seen.append(texts(memory))
            return handler(request)

    history = [HumanMessage("I live in Graz."), AIMessage("Nice."), HumanMessage("I keep geese.")]
    graph = create_agent(scripted(AIMessage("Oh.")), middleware=[Looks(), MemoryMiddleware(memory)])
    graph.invoke({"messages": history}, context=ANN)
    assert seen == [["I live in Graz.", "Nice.", "I keep geese."]]
