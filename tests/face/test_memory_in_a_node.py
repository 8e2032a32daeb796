"""`Memory` called inside a node of a checkpointed graph: a run of its own, not a part of that graph's."""

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from memcycle import Memory

CONFIG = {"configurable": {"thread_id": "parent"}}


class State(TypedDict, total=False):
    question: str
    answer: str


class Breaks(Exception):
    """The node fails after memory was asked."""


class Watcher(BaseCallbackHandler):
    def __init__(self):
        self.names = []

    def on_chain_start(self, serialized, inputs, *, name=None, **_):
        self.names.append(name)


@pytest.fixture(scope="module", params=[None, "memory"], ids=["no checkpoints", "own checkpoints"])
def memory(tmp_path_factory, request):
    with Memory.open(
        tmp_path_factory.mktemp("node") / "home", user="ann", checkpoints=request.param
    ) as opened:
        opened.add([{"role": "user", "content": "My dog is called Pixel."}], session="1")
        opened.add([{"role": "user", "content": "I moved to Graz in May."}], session="2")
        for session in ("1", "2"):
            opened.end_session(session)
        yield opened


def parent(memory, saver, broken, *, awaited):
    def ask(state: State):
        answer = memory.ask(state["question"]).answer
        return told(answer)

    async def aask(state: State):
        return told((await memory.aask(state["question"])).answer)

    def told(answer):
        if broken:
            broken.pop()
            raise Breaks
        return {"answer": answer}

    builder = StateGraph(State)
    builder.add_node("ask", aask if awaited else ask)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


async def run(graph, value, awaited, config=CONFIG):
    return await graph.ainvoke(value, config) if awaited else graph.invoke(value, config)


@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
async def test_after_a_failed_node_the_new_question_is_answered(memory, awaited):
    saver = InMemorySaver()
    graph = parent(memory, saver, [1], awaited=awaited)
    with pytest.raises(Breaks):
        await run(graph, {"question": "What is the dog called?"}, awaited)
    graph.update_state(CONFIG, {"question": "Where do I live since May?"}, as_node=START)
    result = await run(graph, None, awaited)
    assert "Graz" in result["answer"]
    assert "Pixel" not in result["answer"]


@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
async def test_nothing_of_its_run_is_kept_among_the_parents(memory, awaited):
    saver = InMemorySaver()
    graph = parent(memory, saver, [], awaited=awaited)
    await run(graph, {"question": "What is the dog called?"}, awaited)
    kept = {found.config["configurable"]["checkpoint_ns"] for found in saver.list(CONFIG)}
    assert kept == {""}


@pytest.mark.parametrize("memory", ["memory"], indirect=True)
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
async def test_however_the_parent_is_kept(memory, awaited, durability):
    graph = parent(memory, InMemorySaver(), [], awaited=awaited)
    value, how = {"question": "What is the dog called?"}, {"durability": durability}
    result = await graph.ainvoke(value, CONFIG, **how) if awaited else graph.invoke(value, CONFIG, **how)
    assert "Pixel" in result["answer"]


@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
async def test_who_watches_the_parent_sees_the_roles_too(memory, awaited):
    watcher = Watcher()
    graph = parent(memory, None, [], awaited=awaited)
    config = {**CONFIG, "callbacks": [watcher]}
    await run(graph, {"question": "What is the dog called?"}, awaited, config)
    assert {"retriever", "answerer"} <= set(watcher.names)


@pytest.mark.parametrize("memory", [None], indirect=True)
@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
async def test_who_streams_the_parent_is_told_what_memory_decides(memory, awaited):
    graph = parent(memory, None, [], awaited=awaited)
    value, how = {"question": "What is the dog called?"}, {"stream_mode": "custom", "subgraphs": True}
    told = [one async for one in graph.astream(value, **how)] if awaited else [*graph.stream(value, **how)]
    assert {event["event"] for _, event in told} >= {"planned", "found", "answered"}
