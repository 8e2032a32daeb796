"""The node driver: one body, sync and async, calls counted by role; routes stay on the event loop."""

import asyncio
import threading
from functools import partial

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph

from memcycle.core.errors import RoleFailed
from memcycle.core.probe import add_usage
from memcycle.graph.context import Context, run_context
from memcycle.graph.node import Call, Inline, Node, nested
from memcycle.graph.states import EvidenceState


def run(runnable, state, mode):
    return runnable.invoke(state) if mode == "sync" else asyncio.run(runnable.ainvoke(state))


@pytest.fixture(params=["sync", "async"])
def mode(request):
    return request.param


def double(role: str = "doubler", fail: Exception | None = None) -> Call:
    def work(value: int) -> int:
        if fail is not None:
            raise fail
        return value * 2

    return Call(role, RunnableLambda(work), 21)


def test_a_plain_function_is_a_node(mode):
    assert run(Node("n", lambda state: {"b": state["a"] + 1}), {"a": 1}, mode) == {"b": 2}


def test_a_generator_is_sent_the_outputs_of_its_calls(mode):
    def body(state):
        first = yield double()
        several = yield [double(), double()]
        return {"out": [first, *several]}

    assert run(Node("n", body), {}, mode) == {"out": [42, 42, 42]}


def test_an_error_is_raised_at_its_yield(mode):
    def body(state):
        try:
            yield double(fail=RoleFailed("doubler", "odd"))
        except RoleFailed as failed:
            return {"why": failed.why}

    assert run(Node("n", body), {}, mode) == {"why": "odd"}


def test_of_several_calls_a_failed_role_takes_its_outputs_place(mode):
    def body(state):
        replies = yield [double(), double(fail=RoleFailed("doubler", "odd"))]
        return {"replies": [type(reply).__name__ for reply in replies]}

    assert run(Node("n", body), {}, mode) == {"replies": ["int", "RoleFailed"]}


def test_a_provider_error_of_several_calls_is_raised(mode):
    def body(state):
        yield [double(), double(fail=ConnectionError("down"))]

    with pytest.raises(ConnectionError, match="down"):
        run(Node("n", body), {}, mode)


def test_model_calls_and_tokens_are_counted_by_role(mode):
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}

    def body(state):
        model = GenericFakeChatModel(messages=iter([AIMessage("a", usage_metadata=usage)] * 2))
        yield Call("judge", model, "x")
        yield Call("judge", model, "x")
        return {}

    assert run(Node("n", body), {}, mode)["usage"] == {
        "judge": {"calls": 2, "input_tokens": 14, "output_tokens": 6}
    }


def test_tokens_of_a_providers_cache_are_counted_where_there_are_any(mode):
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    hit, miss, untold = (
        {**usage, "input_token_details": {"cache_read": 5}},
        {**usage, "input_token_details": {"cache_read": 0}},
        usage,
    )

    def body(state):
        said = [AIMessage("a", usage_metadata=one) for one in (hit, miss, hit, untold)]
        model = GenericFakeChatModel(messages=iter(said))
        for role in ("judge", "answerer", "judge", "answerer"):
            yield Call(role, model, "x")
        return {}

    used = run(Node("n", body), {}, mode)["usage"]
    assert used == {
        "judge": {"calls": 2, "input_tokens": 14, "output_tokens": 6, "cached": 10},
        "answerer": {"calls": 2, "input_tokens": 14, "output_tokens": 6},
    }
    assert add_usage(used, used)["judge"]["cached"] == 20
    assert "cached" not in add_usage(used, used)["answerer"]


def test_what_nodes_used_adds_up_also_side_by_side_and_starts_anew_with_each_run(mode):
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}

    def ask(role):
        def body(state):
            model = GenericFakeChatModel(messages=iter([AIMessage("a", usage_metadata=usage)]))
            yield Call(role, model, "x")
            return {}

        return Node(role, body)

    builder = StateGraph(EvidenceState)
    builder.add_node("start", Node("start", lambda state: {"usage": None}))
    for role in ("judge", "answerer"):
        builder.add_node(role, ask(role))
        builder.add_edge("start", role)
    builder.add_node("again", ask("judge"))
    builder.add_edge(START, "start")
    builder.add_edge(["judge", "answerer"], "again")
    before = {"guide": {"calls": 9, "input_tokens": 9, "output_tokens": 9}}
    assert run(builder.compile(), {"usage": before}, mode)["usage"] == {
        "judge": {"calls": 2, "input_tokens": 14, "output_tokens": 6},
        "answerer": {"calls": 1, "input_tokens": 7, "output_tokens": 3},
    }


def test_the_body_runs_off_the_event_loop():
    threads = []

    def body(state):
        threads.append(threading.current_thread())
        yield double()
        threads.append(threading.current_thread())
        return {}

    asyncio.run(Node("n", body).ainvoke({}))
    assert threading.main_thread() not in threads


def test_a_nested_graph_maps_keys_in_and_out(mode):
    inner = RunnableLambda(lambda state: {"y": state["x"] + 1, "secret": 1})
    wrapped = nested(lambda state: {"x": state["a"]}, inner, lambda out: {"b": out["y"]})
    assert run(wrapped, {"a": 1}, mode) == {"b": 2}


def test_it_is_named_after_its_function():
    def after(state, *, most):
        return state < most

    assert Inline(after).name == "after"
    assert Inline(partial(after, most=3)).name == "after"
    assert Inline(partial(after, most=3)).invoke(2) is True


@pytest.mark.parametrize("run", ["invoke", "ainvoke"])
async def test_a_route_stays_on_its_thread_and_knows_its_run(run):
    seen = []

    def after(state):
        seen.append((threading.get_ident(), run_context().user))
        return "done" if state["n"] else "again"

    builder = StateGraph(dict, context_schema=Context)
    builder.add_node("count", Node("count", lambda state: {"n": state.get("n") is not None}))
    builder.add_edge(START, "count")
    builder.add_conditional_edges("count", Inline(after), {"done": END, "again": "count"})
    graph = builder.compile()
    if run == "invoke":
        graph.invoke({"n": 1}, context=Context(user="ann"))
    else:
        await graph.ainvoke({"n": 1}, context=Context(user="ann"))
    assert seen == [(threading.get_ident(), "ann")]
