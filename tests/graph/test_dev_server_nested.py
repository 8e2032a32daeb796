"""Nested graphs in the real `langgraph dev`: their state is read and changed, their events are streamed."""

import json

import pytest

from tests.dev_server import served

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.slow]

CAREFUL = """
from langgraph.graph import START, MessagesState, StateGraph

from memcycle import Settings, build_memory, build_recall
from memcycle.core.settings import Approval

settings = Settings(home="careful", user_name="Ana", approval=Approval(update=True))
memory, recall = build_memory(settings=settings), build_recall(settings=settings)

parent = StateGraph(MessagesState)
parent.add_node("chat", build_memory(settings=settings, scope=lambda _: {"user": "parent"}))
parent.add_edge(START, "chat")
agent = parent.compile()
"""
VIENNA, MOVED = "I live in Vienna.", "I no longer live in Vienna, I moved to Graz."
BY_HAND = "Ana lives in Graz, by the river."


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("careful") / "server.log"


@pytest.fixture(scope="module")
def client(log):
    """A client of a server whose graphs ask a person before they replace anything."""
    (log.parent / "careful.py").write_text(CAREFUL, encoding="utf-8")
    graphs = {name: f"./careful.py:{name}" for name in ("memory", "recall", "agent")}
    config = log.parent / "langgraph.json"
    config.write_text(json.dumps({"dependencies": ["."], "graphs": graphs}), encoding="utf-8")
    with served(config, log) as opened:
        yield opened


def new_thread(client) -> str:
    return client.threads.create()["thread_id"]


def said(text: str) -> dict:
    return {"messages": [{"role": "user", "content": text}]}


def context(thread: str, graph: str) -> dict | None:
    """A user of its own for each thread; the parent has no context and names one user."""
    return {"user": thread, "session": "s"} if graph == "memory" else None


def say(client, thread: str, graph: str, text: str) -> dict:
    return client.runs.wait(thread, graph, input=said(text), context=context(thread, graph))


def states(client, thread: str) -> list[dict]:
    """The states of the graphs that a thread stopped in, from the outermost in."""
    found, state = [], client.threads.get_state(thread, subgraphs=True)
    while state is not None:
        found.append(state)
        state = next((task["state"] for task in state["tasks"] if task.get("state")), None)
    return found


def stopped(client, graph: str) -> str:
    """A thread that stopped to ask whether what it knows may be replaced."""
    thread = new_thread(client)
    say(client, thread, graph, VIENNA)
    say(client, thread, graph, MOVED)
    return thread


def known(client, thread: str, graph: str) -> list[str]:
    """What is recalled of where the user lives."""
    whose = context(thread, graph) or {"user": "parent", "session": thread}
    asked = {"question": "Where does Ana live?"}
    out = client.runs.wait(None, "recall", input=asked, context={**whose, "evidence_only": True})
    return [item["text"] for item in out["answer"]["evidence"]]


@pytest.mark.parametrize(
    ("graph", "path"), [("memory", ["remember"]), ("agent", ["chat", "remember"])], ids=["ours", "embedded"]
)
def test_the_state_of_each_nested_graph_is_read_changed_and_gone_on_from(client, graph, path):
    thread = stopped(client, graph)
    *_, inner = found = states(client, thread)
    assert [state["next"] for state in found] == [[name] for name in (*path, "approve_refresh")]
    namespace = inner["checkpoint"]["checkpoint_ns"]
    assert [part.partition(":")[0] for part in namespace.split("|")] == path
    assert inner["values"]["chunk"]
    (edit,) = inner["values"]["edits"]
    (asked,) = inner["tasks"][0]["interrupts"]
    assert asked["value"]["items"][0]["after"] == edit["entry"]["text"]

    changed = {**edit, "entry": {**edit["entry"], "text": BY_HAND}}
    client.threads.update_state(thread, {"edits": [changed]}, checkpoint=inner["checkpoint"])
    while client.threads.get_state(thread)["next"]:
        command = {"resume": "approve"}
        client.runs.wait(thread, graph, command=command, context=context(thread, graph))
    assert BY_HAND in known(client, thread, graph)


def test_events_of_nested_graphs_are_streamed(client):
    thread = new_thread(client)
    say(client, thread, "memory", VIENNA)
    parts = client.runs.stream(
        thread, "memory", input=said(MOVED), context=context(thread, "memory"),
        stream_mode="custom", stream_subgraphs=True,
    )  # fmt: skip
    events = [(part.event.partition("|")[2].partition(":")[0], part.data) for part in parts if part.data]
    told = [(path, event["event"]) for path, event in events if "event" in event]
    assert told[0] == ("recall", "planned")
    assert ("remember", "judged") in told
    assert told[-1] == ("remember", "approval_asked")
    assert "Vienna" not in json.dumps(events)
