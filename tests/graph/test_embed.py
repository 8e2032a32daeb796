"""Our graphs as nodes of a parent with other keys: one adapter, both ways of running."""

import operator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from memcycle import build_recall, build_remember, build_session
from memcycle.agents.roles import Roles
from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.graph.context import Context
from memcycle.graph.memory import embed
from memcycle.stores.bank import Bank
from tests.fakes import FakeEmbeddings
from tests.graph.conftest import world


@dataclass
class Customer:
    """A parent's own context."""

    number: str


class Desk(TypedDict, total=False):
    """A parent's own state, without `messages`; `usage` and `warnings` are keys of ours too."""

    ask: str
    said: list[Any]
    known: dict[str, Any]
    done: dict[str, Any]
    usage: Annotated[int, operator.add]


def of_customer(context: Customer) -> dict[str, str]:
    return {"user": context.number, "workspace": "desk"}


def desk(bank: Bank, roles: Roles | None = None, **options: Any) -> StateGraph:
    parent = StateGraph(Desk, context_schema=Customer)
    parent.add_node(
        "remember",
        embed(
            build_remember(roles, bank),
            read={"messages": "said"},
            write={"done": "result"},
            scope=of_customer,
        ),
    )
    parent.add_node(
        "recall",
        embed(
            build_recall(roles, bank),
            read={"question": "ask"},
            write={"known": "answer"},
            scope=of_customer,
            **options,
        ),
    )
    parent.add_edge(START, "remember")
    parent.add_edge("remember", "recall")
    parent.add_edge("recall", END)
    return parent


TURN = {"said": [("user", "I keep geese.")], "ask": "What do I keep?", "usage": 1}
ANN = Customer("ann")
THREAD = {"configurable": {"thread_id": "t1"}}


def test_a_parent_with_other_keys_and_a_context_of_its_own(bank):
    out = desk(bank).compile().invoke(TURN, context=ANN)
    assert out["known"]["evidence"][0]["text"] == "I keep geese."
    assert (out["done"]["turns"], out["usage"], out["ask"]) == (["Dmain:1"], 1, TURN["ask"])
    assert bank.count(Scope(user="ann", workspace="desk"))["raw"] == 1


async def test_the_same_awaited_without_a_blocking_call(bank):
    graph = desk(bank).compile()
    with blockbuster_ctx():
        out = await graph.ainvoke(TURN, context=ANN)
    assert out["known"]["evidence"][0]["text"] == "I keep geese."


def test_functions_map_what_keys_cannot(bank):
    class Notes(TypedDict):
        notes: Annotated[list[str], operator.add]

    parent = StateGraph(Notes)
    for name, graph, read, write in (
        ("keep", build_remember(bank=bank), lambda s: {"messages": s["notes"][-1:]}, lambda out: {}),
        (
            "look",
            build_recall(bank=bank),
            lambda s: {"question": s["notes"][-1]},
            lambda out: {"notes": [item["text"] for item in out["answer"]["evidence"]]},
        ),
    ):
        parent.add_node(name, embed(graph, read=read, write=write, evidence_only=True))
    parent.add_edge(START, "keep")
    parent.add_edge("keep", "look")
    out = parent.compile().invoke({"notes": ["I keep geese."]}, {"configurable": {"user_id": "ann"}})
    assert out["notes"][:2] == ["I keep geese.", "I keep geese."]
    assert bank.count(Scope(user="ann"))["raw"] == 1


def test_it_is_drawn_and_streamed_as_nested(bank):
    graph = desk(bank).compile()
    drawn = graph.get_graph(xray=True).nodes
    assert {"remember:stage", "recall:judge"} <= set(drawn)
    assert [name for name, _ in graph.get_subgraphs()] == ["remember", "recall"]
    parts = list(graph.stream(TURN, context=ANN, stream_mode="updates", subgraphs=True))
    nested = [next(iter(update)) for path, update in parts if path and path[0].startswith("recall:")]
    assert nested[:2] == ["listen", "plan"]
    assert [next(iter(update)) for path, update in parts if not path] == ["remember", "recall"]


async def test_it_is_streamed_as_nested_awaited(bank):
    graph = desk(bank).compile()
    parts = [
        (path, update)
        async for path, update in graph.astream(TURN, context=ANN, stream_mode="updates", subgraphs=True)
    ]
    assert "stage" in [
        next(iter(update)) for path, update in parts if path and path[0].startswith("remember:")
    ]


def test_the_parents_thread_and_checkpointer_are_inherited(bank):
    graph = desk(bank).compile(checkpointer=InMemorySaver(), interrupt_before=["recall"])
    graph.invoke(TURN, THREAD, context=ANN)
    assert graph.get_state(THREAD).next == ("recall",)
    out = graph.invoke(None, THREAD, context=ANN)
    assert out["known"]["evidence"]
    raws = bank.entries(Scope(user="ann", workspace="desk"), granularity="raw")
    assert {raw.scope.session for raw in raws} == {"t1"}


@pytest.mark.parametrize("awaited", [False, True])
async def test_an_interrupt_inside_is_the_parents_and_nothing_before_it_runs_twice(bank, awaited):
    planned = []
    retriever = Roles.rules().retriever

    def asks(value):
        if value.purpose == "recall":
            planned.append(interrupt({"may I look?": value.items[0].text}))
        return retriever.invoke(value)

    graph = desk(bank, replace(Roles.rules(), retriever=RunnableLambda(asks))).compile(
        checkpointer=InMemorySaver()
    )

    async def go(value):
        if awaited:
            return await graph.ainvoke(value, THREAD, context=ANN)
        return graph.invoke(value, THREAD, context=ANN)

    first = await go(TURN)
    assert first["__interrupt__"][0].value == {"may I look?": "What do I keep?"}
    inside = graph.get_state(THREAD, subgraphs=True).tasks[0].state
    assert inside.next == ("plan",)
    out = await go(Command(resume="yes"))
    assert planned == ["yes"]
    assert out["known"]["evidence"][0]["text"] == "I keep geese."
    assert bank.count(Scope(user="ann", workspace="desk"))["raw"] == 1


def test_two_parents_with_banks_of_their_own_in_one_process(bank, tmp_path):
    settings = Settings(home=tmp_path / "other", shards=2)
    with Bank.open(settings, embeddings=FakeEmbeddings(), world=world()) as other:
        here, there = desk(bank).compile(), desk(other).compile()
        here.invoke(TURN, context=ANN)
        out = there.invoke({**TURN, "said": [("user", "I keep bees.")]}, context=ANN)
        again = here.invoke({**TURN, "said": []}, context=ANN)
    assert {item["text"] for item in out["known"]["evidence"]} >= {"I keep bees."}
    assert "bees" not in str(again["known"]["evidence"])
    assert "geese" not in str(out["known"]["evidence"])


def test_a_parent_that_uses_our_context_changes_options_for_a_run(bank):
    parent = StateGraph(Desk, context_schema=Context)
    parent.add_node(
        "recall", embed(build_recall(bank=bank), read={"question": "ask"}, write={"known": "answer"}, k=1)
    )
    parent.add_edge(START, "recall")
    graph, ann = parent.compile(), {"user": "ann", "session": "s1"}
    build_remember(bank=bank).invoke(
        {"messages": [("user", f"I keep {name}.") for name in ("geese", "hens", "bees")]},
        context=ann,
    )
    one = graph.invoke({"ask": "What do I keep?"}, context={**ann, "evidence_only": True})
    more = graph.invoke({"ask": "What do I keep?"}, context={**ann, "evidence_only": True, "k": 3})
    assert (len(one["known"]["evidence"]), len(more["known"]["evidence"])) == (1, 3)
    assert one["known"]["mode"] == "evidence"


def test_a_session_is_ended_in_a_parent(bank):
    parent = desk(bank)
    parent.add_node(
        "end", embed(build_session(bank=bank), read={}, write={"done": "result"}, scope=of_customer)
    )
    parent.add_edge("recall", "end")
    out = parent.compile().invoke(TURN, THREAD, context=ANN)
    assert out["done"]["session"] == "t1"
    assert {entry.status for entry in bank.entries(Scope(user="ann", workspace="desk"))} == {"active"}


@pytest.mark.parametrize(
    ("context", "config", "scope"),
    [
        ({"user": "ann"}, {}, Scope(user="ann", session="main")),
        ({"user_id": "ann", "session_id": "s"}, {}, Scope(user="ann", session="s")),
        (None, {"user_id": "ann", "thread_id": "t"}, Scope(user="ann", session="t")),
        (
            {"user": "ann"},
            {"user": "bob", "workspace": "w"},
            Scope(user="ann", workspace="w", session="main"),
        ),
    ],
)
def test_whose_memory_is_read_from_context_and_configuration(bank, context, config, scope):
    parent = StateGraph(Desk, context_schema=dict)
    parent.add_node("remember", embed(build_remember(bank=bank), read={"messages": "said"}, write={}))
    parent.add_edge(START, "remember")
    parent.compile().invoke(TURN, {"configurable": config}, context=context)
    [raw] = bank.entries(scope, granularity="raw")
    assert raw.scope == scope


@pytest.mark.parametrize(
    ("context", "config"),
    [
        ({"user_id": "ann"}, {}),
        ({"user": "", "user_id": "ann"}, {}),
        ({"user": "ann", "user_id": "ann"}, {"user_id": "bob"}),
        ({"user_id": ""}, {"user_id": "ann"}),
        (Context(user_id="ann"), {}),
        ({"workspace": "default"}, {"user_id": "ann"}),
        (None, {"user_id": "ann"}),
    ],
)
def test_graphs_of_ours_take_user_id_for_user(bank, context, config):
    build_remember(bank=bank).invoke({"messages": TURN["said"]}, {"configurable": config}, context=context)
    assert bank.users() == ["ann"]


def test_two_users_in_one_context_are_refused(bank):
    with pytest.raises(BadInput, match="names one user and another user_id"):
        build_recall(bank=bank).invoke({"question": "Where?"}, context={"user": "ann", "user_id": "bob"})


def test_what_does_not_fit_is_said(bank):
    graph = build_recall(bank=bank)
    with pytest.raises(BadInput, match="colour"):
        embed(graph, read={}, write={}, colour="red")
    with pytest.raises(BadInput, match="'user'"):
        embed(graph, read={}, write={}, user="ann")
    with pytest.raises(BadInput, match="the parent's state has no 'ask'"):
        desk(bank).compile().invoke({"said": []}, context=ANN)
    with pytest.raises(BadInput, match="no user is named"):
        parent = StateGraph(Desk)
        parent.add_node("recall", embed(graph, read={"question": "ask"}, write={"known": "answer"}))
        parent.add_edge(START, "recall")
        parent.compile().invoke(TURN)
    with pytest.raises(BadInput, match="the scope does not fit"):
        desk(bank).compile().invoke(TURN, context=Customer(" "))
