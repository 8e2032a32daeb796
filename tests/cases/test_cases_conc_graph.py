"""A19 to A21: at once, without blocking, and inside another graph."""

import asyncio
import operator
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import pytest
from blockbuster import blockbuster_ctx
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from memcycle import Memory, Roles, build_recall, build_remember
from memcycle.graph.node import nested
from memcycle.prompts import PromptSet
from tests.cases.adapter import FM, facts

TIDES = "Collects tide tables"
SAID = "I collect tide tables."
DEADLINE = 20
"""Seconds after which a barrier that nobody else reaches breaks, and fails the test."""


def together(parties: int):
    """Replies with the same fact that are held back until all have been asked."""
    barrier = threading.Barrier(parties, timeout=DEADLINE)

    def reply(prompt: str) -> str:
        barrier.wait()
        return facts(TIDES)

    return reply


def test_a19_two_identical_adds_in_two_tasks(product):
    """Two extractions of u1 wait for each other, so both read memory before either writes; the third user's
    add is let through first and finishes while they wait."""
    done_first = threading.Event()
    both = threading.Barrier(2, timeout=DEADLINE)

    def reply(prompt: str) -> str:
        if "tide tables of u2" not in prompt:
            assert done_first.wait(DEADLINE)
            both.wait()
        return facts(TIDES)

    p = product(constructor=[reply] * 3)

    async def u2():
        await p.memory.aadd("I collect tide tables of u2.", user="u2")
        done_first.set()

    async def all_of_them():
        await asyncio.gather(p.memory.aadd(SAID, user="u1"), p.memory.aadd(SAID, user="u1"), u2())

    asyncio.run(all_of_them())
    assert p.texts("u1") == [TIDES]
    assert len(p.stored("u1", granularity="raw")) == 2
    assert p.texts("u2") == [TIDES]


def test_a19_two_identical_adds_in_two_threads(product):
    p = product(constructor=[together(2)] * 2)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: p.add(SAID), range(2)))
    assert p.texts() == [TIDES]
    assert len(p.stored(granularity="raw")) == 2


def test_a20_nothing_blocks_the_event_loop(product, tmp_path):
    """From the first call on: the store is opened, prompts are read, by the call itself, off the loop."""
    p = product()
    fresh = tmp_path / "fresh"
    texts = {"constructor": PromptSet.shipped().text("constructor") + "\nBe brief."}

    async def chat(memory: Memory):
        with blockbuster_ctx():
            await memory.aadd("I play the cello.", user="ana")
            found = await memory.arecall("What does the user play?", user="ana")
            await memory.aend_session(user="ana")
            await memory.aclose()
        return found

    memory = Memory(
        p.settings.model_copy(update={"home": fresh}),
        Roles.from_model(
            "rules",
            overrides={"constructor": FM(script=[facts("Plays the cello")])},
            prompts=PromptSet.shipped().overlay(texts),
        ),
        embeddings=p.embeddings,
        world=p.world,
    )
    found = asyncio.run(chat(memory))
    assert "cello" in found.evidence[0].text


def test_a20_opened_inside_the_loop_with_prompts_from_a_folder(product, tmp_path):
    """A folder named in `open` is read there and then, so inside a loop it is read in a thread first; the
    shipped prompts are read with the import."""
    p = product()
    folder = tmp_path / "prompts"
    folder.mkdir()
    text = PromptSet.shipped().text("constructor")
    (folder / "constructor.txt").write_text(text + "\nBe brief.", encoding="utf-8")
    model = FM(script=[facts("Plays the cello")])

    async def chat():
        with blockbuster_ctx():
            async with Memory.open(
                tmp_path / "fresh",
                overrides={"constructor": model},
                prompts=await asyncio.to_thread(PromptSet.shipped().overlay, folder),
                embeddings=p.embeddings,
                world=p.world,
            ) as memory:
                await memory.aadd("Remember that I play the cello.", user="ana")
                return await memory.arecall("What does the user play?", user="ana")

    found = asyncio.run(chat())
    assert "cello" in found.evidence[0].text
    assert "Be brief." in model.prompts[0]


class Parent(TypedDict):
    question: str
    notes: Annotated[list[str], operator.add]


def parent(p, *, saver):
    """A parent with keys of its own; the memory graphs are put in with `nested`, which maps both ways."""

    def scope(_):
        return {"user": "u1"}

    builder = StateGraph(Parent)
    remember = build_remember(p.memory.roles, p.memory.bank, scope=scope)
    recall = build_recall(p.memory.roles, p.memory.bank, scope=scope)
    builder.add_node(
        "remember", nested(lambda state: {"messages": [state["question"]]}, remember, lambda out: {})
    )
    builder.add_node(
        "recall",
        nested(
            lambda state: {"question": state["question"]},
            recall,
            lambda out: {"notes": [f"found {len(out['answer']['evidence'])}"]},
        ),
    )
    builder.add_edge(START, "remember")
    builder.add_edge("remember", "recall")
    builder.add_edge("recall", END)
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a21_inside_a_parent_of_another_shape(product, asynchronous):
    p = product(constructor=[facts("Tunes harpsichords"), '{"facts":[]}', '{"facts":[]}'])
    graph = parent(p, saver=InMemorySaver())
    asked = [("t1", "I tune harpsichords."), ("t1", "What do I tune?"), ("t2", "And what do I play?")]
    for thread, question in asked:
        given = {"question": question, "notes": [f"asked: {question}"]}
        config = {"configurable": {"thread_id": thread}}
        out = asyncio.run(graph.ainvoke(given, config)) if asynchronous else graph.invoke(given, config)
        assert set(out) == {"question", "notes"}
        assert out["question"] == question
    states = {
        thread: graph.get_state({"configurable": {"thread_id": thread}}).values for thread in ("t1", "t2")
    }
    assert [note for note in states["t1"]["notes"] if note.startswith("asked")] == [
        "asked: I tune harpsichords.",
        "asked: What do I tune?",
    ]
    assert len(states["t1"]["notes"]) == 4
    assert len(states["t2"]["notes"]) == 2
    assert p.texts() == ["Tunes harpsichords"]
    assert [said.count("<turn ") for said in p.constructor.said] == [1, 1, 1]
    assert "I tune harpsichords." not in p.constructor.said[1]
    assert "harpsichords" not in p.constructor.prompts[2].split("Turns before")[1].split("<memories>")[0]
