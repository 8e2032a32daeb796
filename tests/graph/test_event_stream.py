"""Events in the stream of every graph: one a node that decides, sync and async, nested and embedded."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from memcycle import build_memory, build_recall, build_remember, build_session
from memcycle.agents.roles import Roles
from memcycle.core.settings import Approval
from memcycle.graph.memory import embed
from tests.graph.conftest import ANA
from tests.graph.test_session_graph import ALLERGY, SAID, adds, knows, plain
from tests.scripted import Scripted

CONTEXT = {"user": "ana", "session": "s1"}
PREPARES = {"listen", "write_episode", "close_episode"}
"""Nodes that decide nothing: the one before or after them tells."""
SOMETIMES = {"consolidate"}
"""Runs once more when no proposal is left, and says nothing then."""
NESTED = {"recall", "remember", "session", "catch_up"}

STORY = (
    "I live in Vienna. My sister Eva sold the old loom to a museum.",
    "I keep two beehives on the roof of the house.",
    "I no longer live in Vienna, I moved to Graz.",
    "Where do I live?",
)


def in_the_page() -> set[str]:
    """The nodes that tell, by the page's table of events."""
    text = (Path(__file__).parents[2] / "docs/how-to/embed.md").read_text("utf-8")
    rows = re.findall(r"^\| `\w+` \| ([a-z_, ]+) \| .*`.* \|$", text, flags=re.MULTILINE)
    return {name for nodes in rows for name in nodes.split(", ")}


class Run:
    """The parts of one stream, with nested graphs."""

    def __init__(self, parts) -> None:
        self.parts = list(parts)

    @property
    def events(self) -> list[dict]:
        return [data for _, mode, data in self.parts if mode == "custom"]

    @property
    def steps(self) -> Counter[str]:
        """How often each node that decides ran, by the namespace of its graph."""
        return Counter(
            (namespace, name)
            for namespace, mode, data in self.parts
            if mode == "updates"
            for name in data
            if name not in NESTED | PREPARES | SOMETIMES | {"reply"} and (namespace or name != "stage")
        )

    @property
    def told(self) -> Counter[tuple]:
        events = [(namespace, data["node"]) for namespace, mode, data in self.parts if mode == "custom"]
        return Counter(step for step in events if step[1] not in SOMETIMES)

    def of(self, node: str) -> list[dict]:
        return [event for event in self.events if event["node"] == node]


def stream(graph, value, context=CONTEXT, config=None) -> Run:
    options = {"context": context, "stream_mode": ["custom", "updates"], "subgraphs": True}
    return Run(graph.stream(value, config, **options))


async def astream(graph, value, context=CONTEXT) -> Run:
    options = {"context": context, "stream_mode": ["custom", "updates"], "subgraphs": True}
    return Run([part async for part in graph.astream(value, **options)])


def chat(text: str) -> dict:
    return {"messages": [("user", text)], "end_session": text.endswith("?")}


@pytest.mark.parametrize("awaited", [False, True])
async def test_each_node_that_decides_gives_one_event_and_no_other_does(bank, awaited):
    graph = build_memory(bank=bank)
    seen = set()
    for text in STORY:
        run = await astream(graph, chat(text)) if awaited else stream(graph, chat(text))
        assert run.told == run.steps
        assert json.loads(json.dumps(run.events)) == run.events
        seen |= {(event["graph"], event["node"]) for event in run.events}
    everywhere = {name for name, node in graph.get_graph(xray=True).nodes.items() if ":" in name}
    assert {f"{graph}:{node}" for graph, node in seen} <= everywhere
    assert {"remember", "recall", "session"} == {graph for graph, _ in seen}
    assert {("recall", "settle"), ("remember", "refresh"), ("session", "grade")} <= seen


def test_every_node_of_every_graph_tells_or_is_known_to_prepare_only(bank):
    switches = bank.settings.switches.model_copy(update={"recall_refresh": True})
    settings = bank.settings.model_copy(update={"switches": switches, "approval": Approval(update=True)})
    nodes = set()
    for build in (build_remember, build_recall, build_session):
        nodes |= set(build(bank=bank, settings=settings).nodes)
    assert nodes - NESTED - {"__start__"} == in_the_page() | PREPARES


def test_events_hold_ids_and_counts_and_no_word_of_the_conversation(bank):
    graph = build_memory(bank=bank)
    told = json.dumps([stream(graph, chat(text)).events for text in STORY]).casefold()
    for word in ("vienna", "graz", "sister", "loom", "beehives", "noted"):
        assert word not in told


def test_the_route_told_is_the_edge_taken(bank):
    graph = build_memory(bank=bank)
    to = {
        "Retry": "widen",
        "Refresh": {"recall": "settle", "remember": "refresh"},
        "Pass": "guide",
        "Pass: sufficient": "answer",
        "Pass: uncertain": "think",
        "answerable": "answer",
        "not answerable": "reason",
    }
    followed = []
    for text in STORY:
        run = stream(graph, chat(text))
        for number, event in enumerate(run.events):
            if "route" in event:
                after = to[event["route"]]
                after = after if isinstance(after, str) else after[event["graph"]]
                followed.append((event["route"], run.events[number + 1]["node"] == after))
    assert all(right for _, right in followed)
    assert {"Refresh", "Pass"} <= {route for route, _ in followed}


def test_alone_a_graph_tells_what_it_decided(bank):
    remember = build_remember(bank=bank)
    parts = remember.stream({"messages": [STORY[0]]}, context=CONTEXT, stream_mode="custom")
    events = list(parts)
    assert events[0] == {"graph": "remember", "node": "stage", "event": "staged", "turns": ["Ds1:1"]}
    assert events[-1]["event"] == "remembered"
    assert events[-1]["facts"]
    assert [entry.turns for entry in bank.get(ANA, events[-1]["facts"])] == [("Ds1:1",)] * len(
        events[-1]["facts"]
    )
    recall = build_recall(bank=bank)
    (*_, answered) = recall.stream({"question": STORY[-1]}, context=CONTEXT, stream_mode="custom")
    assert (answered["event"], answered["answerable"]) == ("answered", True)
    assert answered["evidence"]


class Desk(TypedDict, total=False):
    ask: str
    known: dict


async def test_embedded_in_a_parent_they_come_too(bank):
    build_remember(bank=bank).invoke({"messages": [STORY[1]]}, context=CONTEXT)
    parent = StateGraph(Desk)
    node = embed(
        build_recall(bank=bank), read={"question": "ask"}, write={"known": "answer"}, scope=lambda _: CONTEXT
    )
    parent.add_node("look", node)
    parent.add_edge(START, "look")
    graph, value = parent.compile(), {"ask": "What do I keep on the roof?"}
    for run in (stream(graph, value, None), await astream(graph, value, None)):
        assert [event["node"] for event in run.events][:3] == ["plan", "search", "judge"]
        assert {namespace[0].partition(":")[0] for namespace, mode, _ in run.parts if mode == "custom"} == {
            "look"
        }


def test_a_repaired_session_is_told_step_by_step(cycle):
    cycle.remember(*SAID, constructor=knows())
    roles = replace(Roles.rules(), **(plain() | {"repairer": Scripted(adds(ALLERGY))}))
    run = stream(build_session(roles, cycle.bank), {})
    assert run.told == run.steps
    (probe,) = run.of("probe")[0]["probes"]
    before, after = run.of("grade")
    assert (before["failed"], before["passed"]) == ([probe], [])
    assert (after["failed"], after["passed"]) == ([], [probe])
    (decided,) = run.of("consolidate")
    assert (decided["probe"], decided["decision"]) == (probe, "INSERT")
    (written,) = run.of("write_repair")[0]["entries"]
    assert run.of("roll_back")[0]["repairs"] == 0
    assert [event["passed_after"] for event in run.of("commit")] == [1]
    assert cycle.bank.get(ANA, [written])[0].text == ALLERGY.text


def test_an_approval_is_told_when_it_is_asked_and_when_it_is_given(cycle):
    cycle.remember(STORY[0])
    settings = cycle.bank.settings.model_copy(update={"approval": Approval(update=True), "user_name": "Ana"})
    graph = build_remember(bank=cycle.bank, settings=settings).builder.compile(checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "t"}}
    stopped = stream(graph, {"messages": [STORY[2]]}, config=thread)
    assert stopped.events[-1]["event"] == "approval_asked"
    assert stopped.events[-1]["items"] >= 1
    resumed = stream(graph, Command(resume="reject"), config=thread)
    assert resumed.events[0]["event"] == "allowed"
    assert resumed.events[0]["rejected"] >= 1
