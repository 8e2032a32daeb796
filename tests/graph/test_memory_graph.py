"""memory: a chat turn, with threads, checkpoints, parents and the event loop."""

import asyncio
import operator
from dataclasses import replace
from typing import Annotated

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from typing_extensions import TypedDict

from memcycle import build_memory, build_recall, build_remember, build_session
from memcycle.agents.roles import Roles
from memcycle.core.errors import KEPT, BadInput
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.graph.node import nested
from memcycle.graph.studio import memory as studio_memory
from tests.graph.conftest import ANA
from tests.graph.conftest import START as BEGUN

CONTEXT = {"user": "ana", "session": "s1"}


def said(text: str) -> dict:
    return {"messages": [HumanMessage(text)]}


def test_a_chat_turn_recalls_replies_and_remembers(bank):
    graph = build_memory(bank=bank)
    first = graph.invoke(said("I adopted a cat called Miso."), context=CONTEXT)
    assert first["messages"][-1].content == "Noted."
    second = graph.invoke(said("What did I adopt?"), context=CONTEXT)
    assert second["recalled"]["evidence"][0]["turns"] == ["Ds1:1"]
    texts = [entry.text for entry in bank.entries(ANA, granularity="raw")]
    assert texts[0] == "I adopted a cat called Miso."
    assert "What did I adopt?" in texts


def test_a_thread_remembers_each_message_once(bank):
    graph = build_memory(bank=bank).builder.compile(checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "t1"}}
    for text in ("I play the cello.", "I live in Graz.", "I keep bees."):
        graph.invoke(said(text), thread, context={"user": "ana"})
    raws = bank.entries(Scope(user="ana", session="t1"), granularity="raw")
    assert [raw.text for raw in raws] == [
        "I play the cello.", "Noted.", "I live in Graz.", "Noted.", "I keep bees.", "Noted.",
    ]  # fmt: skip
    assert [raw.turns for raw in raws] == [(f"Dt1:{n}",) for n in range(1, 7)]
    assert {raw.scope.session for raw in raws} == {"t1"}
    assert len(graph.get_state(thread).values["messages"]) == 6


def test_the_session_ends_when_told(bank):
    graph = build_memory(bank=bank)
    out = graph.invoke({**said("I play the cello."), "end_session": True}, context=CONTEXT)
    assert out["ended"]["committed"] >= 2
    assert {entry.status for entry in bank.entries(ANA)} == {"active"}


def test_a_reply_of_ones_own_reads_the_evidence(bank):
    def reply(state):
        return {"messages": [AIMessage(f"{len(state['recalled']['evidence'])} found")]}

    graph = build_memory(bank=bank, reply=reply)
    graph.invoke(said("I play the cello."), context=CONTEXT)
    assert (
        graph.invoke(said("Which instrument do I play?"), context=CONTEXT)["messages"][-1].content
        != "0 found"
    )


@pytest.mark.parametrize(("breaks", "times"), [("retriever", 3), ("reply", 2), ("guide", 1)])
@pytest.mark.parametrize("awaited", [False, True])
async def test_the_words_are_kept_whatever_breaks_after_them(bank, breaks, times, awaited):
    """Once, however often they are sent, and the next turn of the thread reads them."""

    def down(_):
        raise RuntimeError("down")

    broken = {} if breaks == "reply" else {breaks: RunnableLambda(down)}
    wiring = build_memory(
        replace(Roles.rules(), **broken), bank, **({"reply": down} if breaks == "reply" else {})
    )
    graph, context = wiring.builder.compile(checkpointer=(saver := InMemorySaver())), {"user": "ana"}
    thread, scope = {"configurable": {"thread_id": "t1"}}, Scope(user="ana", session="t1")
    bank.stage_turns(
        scope, [Turn(id="Dt1:1", session="t1", position=1, speaker="Ana", text="Hi.", time=BEGUN)]
    )
    for _ in range(times):
        with pytest.raises(RuntimeError):
            await graph.ainvoke(
                said("I adopted a cat."), thread, context=context
            ) if awaited else graph.invoke(said("I adopted a cat."), thread, context=context)
    kept = [raw.text for raw in bank.entries(scope, granularity="raw") if raw.role == "human"]
    assert kept == ["Hi.", "I adopted a cat."]
    assert "I adopted a cat." not in [one.text for one in bank.entries(scope, granularity="fact")]
    whole = build_memory(bank=bank).builder.compile(checkpointer=saver)
    whole.invoke(said("It is called Miso."), thread, context=context)
    assert [raw.text for raw in bank.entries(scope, granularity="raw") if raw.role == "human"] == [
        *kept, "It is called Miso.",
    ]  # fmt: skip
    assert {"I adopted a cat.", "It is called Miso."} <= {
        one.text for one in bank.entries(scope, granularity="fact")
    }


@pytest.mark.parametrize("sent", [2, 3])
def test_a_message_sent_again_without_a_thread_is_one_turn(bank, sent):
    def down(_):
        raise ConnectionError("the model is down")

    for _ in range(sent):
        with pytest.raises(ConnectionError, match="the model is down") as raised:
            build_memory(bank=bank, reply=down).invoke(said("I breed alpacas."), context=CONTEXT)
        assert KEPT in raised.value.__notes__
    build_memory(bank=bank).invoke(said("I breed alpacas."), context=CONTEXT)
    assert [raw.text for raw in bank.entries(ANA, granularity="raw")] == ["I breed alpacas.", "Noted."]
    build_memory(bank=bank).invoke(said("I breed alpacas."), context=CONTEXT)  # said once more, after a reply
    assert len(bank.entries(ANA, granularity="raw")) == 4


def test_a_question_is_no_evidence_for_itself(bank):
    out = build_memory(bank=bank).invoke(said("Where do I live?"), context=CONTEXT)
    assert out["recalled"]["evidence"] == []


def test_a_human_message_is_needed(bank):
    with pytest.raises(BadInput, match="human message"):
        build_memory(bank=bank).invoke({"messages": [AIMessage("hello")]}, context=CONTEXT)


def test_as_a_subgraph_of_an_agent_with_a_context_of_its_own(bank):
    class Tenant(TypedDict):
        tenant: str

    agent = StateGraph(MessagesState, context_schema=Tenant)
    agent.add_node("memory", build_memory(bank=bank, scope=lambda context: {"user": context["tenant"]}))
    agent.add_edge(START, "memory")
    agent.add_edge("memory", END)
    graph = agent.compile(checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "t9"}}
    graph.invoke(said("I keep geese."), thread, context={"tenant": "ana"})
    out = graph.invoke(said("What do I keep?"), thread, context={"tenant": "ana"})
    assert len(out["messages"]) == 4
    raws = bank.entries(Scope(user="ana"), granularity="raw")
    assert [raw.text for raw in raws][:2] == ["I keep geese.", "Noted."]
    assert {raw.scope.session for raw in raws} == {"t9"}


def test_in_a_parent_with_another_state(bank):
    class Parent(TypedDict):
        question: str
        notes: Annotated[list[str], operator.add]

    def scope(_):
        return {"user": "ana"}

    parent = StateGraph(Parent)
    parent.add_node(
        "remember",
        nested(
            lambda state: {"messages": state["notes"][-1:]},
            build_remember(bank=bank, scope=scope),
            lambda out: {},
        ),
    )
    parent.add_node(
        "recall",
        nested(
            lambda state: {"question": state["question"]},
            build_recall(bank=bank, scope=scope),
            lambda out: {"notes": [f"recalled {len(out['answer']['evidence'])}"]},
        ),
    )
    parent.add_edge(START, "remember")
    parent.add_edge("remember", "recall")
    parent.add_edge("recall", END)
    graph = parent.compile(checkpointer=InMemorySaver())
    for thread in ("t1", "t2"):
        out = graph.invoke(
            {"question": "What do I tune?", "notes": ["I tune harpsichords."]},
            {"configurable": {"thread_id": thread}},
        )
        assert out["notes"][0] == "I tune harpsichords."
        assert len(out["notes"]) == 2
    assert len(bank.entries(Scope(user="ana"), granularity="raw")) == 2


def test_the_same_words_in_two_calls_are_two_turns(bank):
    graph = build_remember(bank=bank)
    for _ in range(2):
        graph.invoke({"messages": ["Yes."]}, context=CONTEXT)
    assert [raw.text for raw in bank.entries(ANA, granularity="raw")] == ["Yes.", "Yes."]


def test_nothing_blocks_the_event_loop(bank):
    remember, recall, session = build_remember(bank=bank), build_recall(bank=bank), build_session(bank=bank)

    async def chat():
        with blockbuster_ctx():
            await remember.ainvoke({"messages": ["I play the cello."]}, context=CONTEXT)
            out = await recall.ainvoke({"question": "What do I play?"}, context=CONTEXT)
            await session.ainvoke({}, context=CONTEXT)
        return out

    assert asyncio.run(chat())["answer"]["evidence"]


def test_sync_and_async_do_the_same(bank):
    graph = build_memory(bank=bank)
    graph.invoke(said("I play the cello."), context={"user": "sync"})
    asyncio.run(graph.ainvoke(said("I play the cello."), context={"user": "async"}))
    both = [
        [(entry.granularity, entry.text, entry.kind) for entry in bank.entries(Scope(user=user))]
        for user in ("sync", "async")
    ]
    assert both[0] == both[1]


def test_many_sessions_at_once_lose_nothing(bank):
    graph = build_remember(bank=bank)

    async def all_of_them():
        await asyncio.gather(
            *(
                graph.ainvoke({"messages": [f"I own {n} canoes."]}, context={"user": f"u{n}", "session": "s"})
                for n in range(16)
            )
        )

    asyncio.run(all_of_them())
    for n in range(16):
        raws = bank.entries(Scope(user=f"u{n}"), granularity="raw")
        assert [raw.text for raw in raws] == [f"I own {n} canoes."]


def test_the_drawn_parent_shows_the_nested_graphs_and_the_labels():
    drawn = studio_memory.get_graph(xray=True).draw_mermaid()
    for word in ("subgraph recall", "subgraph remember", "subgraph session", "Retry", "Refresh", "Pass"):
        assert word in drawn
    for word in ("answerable", "not answerable", "session ends", "episode ends"):
        assert word in drawn


def test_runs_at_once_in_one_session_read_their_own_turns_only(bank):
    graph = build_remember(bank=bank)

    async def together():
        return await asyncio.gather(
            *(graph.ainvoke({"messages": [f"I own {n} red canoes."]}, context=CONTEXT) for n in range(6))
        )

    results = asyncio.run(together())
    assert sorted(len(result["result"]["turns"]) for result in results) == [1] * 6
    assert len({result["result"]["turns"][0] for result in results}) == 6
