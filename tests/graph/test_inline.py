"""Routes and mappings as runnables that stay on the event loop, inside the context of their run."""

import threading
from functools import partial

import pytest
from langgraph.graph import END, START, StateGraph

from memcycle.graph.context import Context, run_context
from memcycle.graph.node import inline, node


def test_it_is_named_after_its_function():
    def after(state, *, most):
        return state < most

    assert inline(after).name == "after"
    assert inline(partial(after, most=3)).name == "after"
    assert inline(partial(after, most=3)).invoke(2) is True


@pytest.mark.parametrize("run", ["invoke", "ainvoke"])
async def test_a_route_stays_on_its_thread_and_knows_its_run(run):
    seen = []

    def after(state):
        seen.append((threading.get_ident(), run_context().user))
        return "done" if state["n"] else "again"

    builder = StateGraph(dict, context_schema=Context)
    builder.add_node("count", node("count", lambda state: {"n": state.get("n") is not None}))
    builder.add_edge(START, "count")
    builder.add_conditional_edges("count", inline(after), {"done": END, "again": "count"})
    graph = builder.compile()
    if run == "invoke":
        graph.invoke({"n": 1}, context=Context(user="ann"))
    else:
        await graph.ainvoke({"n": 1}, context=Context(user="ann"))
    assert seen == [(threading.get_ident(), "ann")]
