"""The graphs in the real `langgraph dev`, as Studio and the SDK see them: without a key and a network."""

import json
from pathlib import Path

import pytest

from tests.dev_server import served

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.slow]

CONFIG = Path(__file__).parents[2] / "langgraph.json"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("dev") / "server.log"


@pytest.fixture(scope="module")
def client(log):
    """A client of a server that runs in a directory of its own, so that it leaves nothing in the project."""
    with served(CONFIG, log) as opened:
        yield opened


def chat(client, thread: str, text: str, user: str = "ana", **fields) -> dict:
    value = {"messages": [{"role": "user", "content": text}], **fields}
    return client.runs.wait(thread, "memory", input=value, context={"user": user})


def new_thread(client) -> str:
    return client.threads.create()["thread_id"]


def assistant(client, graph: str) -> str:
    return client.assistants.search(graph_id=graph)[0]["assistant_id"]


def test_a_chat_turn_recalls_an_earlier_one_and_a_later_thread_knows_it_too(client):
    thread = new_thread(client)
    first = chat(client, thread, "I adopted a cat called Miso.")
    assert first["messages"][-1]["content"] == "Noted."
    second = chat(client, thread, "What did I adopt?", end_session=True)
    assert "Miso" in second["messages"][-1]["content"]
    assert second["recalled"]["evidence"][0]["turns"] == [f"D{thread}:1"]
    assert second["ended"]["committed"] >= 4
    third = chat(client, new_thread(client), "What did I adopt?")
    assert "Miso" in third["messages"][-1]["content"]
    assert f"D{thread}:1" in {turn for item in third["recalled"]["evidence"] for turn in item["turns"]}


def test_all_four_graphs_are_served(client):
    served = {found["graph_id"] for found in client.assistants.search()}
    assert served == {"memory", "remember", "recall", "session", "evolve", "program"}


@pytest.mark.parametrize(
    ("graph", "fields"),
    [
        ("memory", {"messages", "end_session"}),
        ("remember", {"messages", "turns"}),
        ("recall", {"question", "seen"}),
        ("session", {"verify", "idle"}),
    ],
)
def test_a_form_asks_for_the_input_alone_and_the_context_is_described(client, graph, fields):
    schemas = client.assistants.get_schemas(assistant(client, graph))
    assert set(schemas["input_schema"]["properties"]) == fields
    context = schemas["context_schema"]["properties"]
    assert all(entry.get("description") for entry in context.values())
    assert "Required" in context["user"]["description"]


def test_the_drawing_nests_the_graphs_and_names_the_edges(client):
    drawn = client.assistants.get_graph(assistant(client, "memory"), xray=True)
    nodes = {str(node["id"]) for node in drawn["nodes"]}
    assert {"recall:judge", "remember:construct", "session:commit"} <= nodes
    labels = {edge.get("data") for edge in drawn["edges"]}
    assert {"Retry", "Refresh", "Pass", "answerable", "not answerable"} <= labels
    assert "session ends, or others may be idle" in labels
    nested = client.assistants.get_subgraphs(assistant(client, "memory"), recurse=True)
    assert {"recall", "remember", "session"} <= set(nested)


def test_a_run_is_streamed_node_by_node_with_its_nested_graphs(client):
    value = {"messages": [{"role": "user", "content": "I tune harpsichords."}]}
    run = client.runs.stream(
        new_thread(client), "memory", input=value, context={"user": "eva"},
        stream_mode="updates", stream_subgraphs=True,
    )  # fmt: skip
    steps = [(part.event.partition("|")[2].partition(":")[0], *part.data) for part in run if part.data]
    assert ("recall", "search") in steps
    assert ("remember", "construct") in steps
    assert ("", "remember") in steps


@pytest.mark.parametrize("graph", ["memory", "remember"])
@pytest.mark.parametrize(
    "messages",
    [
        "I keep bees.",
        ["I keep bees."],
        [{"type": "human", "content": [{"type": "text", "text": "I keep bees."}]}],
    ],
    ids=["text", "list of text", "chat view"],
)
def test_messages_come_as_text_and_as_the_chat_view_sends_them(client, graph, messages):
    thread = new_thread(client)
    out = client.runs.wait(thread, graph, input={"messages": messages}, context={"user": f"u{thread}"})
    result = out["remembered"] if graph == "memory" else out["result"]
    assert result["turns"][0] == f"D{thread}:1"
    assert result["facts"]


def test_remember_and_recall_alone(client):
    context = {"user": "bo", "session": "s1"}
    value = {"messages": [{"role": "user", "content": "I sail to Bergen."}]}
    done = client.runs.wait(None, "remember", input=value, context=context)["result"]
    found = client.runs.wait(None, "recall", input={"question": "Where do I sail to?"}, context=context)
    assert done["turns"] == ["Ds1:1"]
    assert found["answer"]["evidence"][0]["turns"] == ["Ds1:1"]
    assert client.runs.wait(None, "session", input={}, context=context)["result"]["committed"] >= 2


def test_a_session_ends_step_by_step(client):
    thread, context = new_thread(client), {"user": "ed"}
    value = {
        "messages": ["I sold the old loom to a museum in Graz.", "My sister keeps two beehives in Linz."]
    }
    client.runs.wait(thread, "remember", input=value, context=context)
    ends = client.runs.stream(thread, "session", input={}, context=context, stream_mode="updates")
    steps = [(node, update) for part in ends if part.event == "updates" for node, update in part.data.items()]
    names = [node for node, _ in steps]
    assert names[0] == "find_waiting"
    assert {"probe", "look_up", "examine", "grade", "maintain"} <= set(names)
    assert names[-1] == "commit"
    assert names.count("examine") >= steps[-1][1]["result"]["probes"] >= 1


def test_a_run_stops_before_a_node_is_changed_by_hand_and_goes_on(client):
    thread, context = new_thread(client), {"user": "cy"}
    value = {"messages": ["I play the cello.", "I live in Graz."]}
    client.runs.wait(thread, "remember", input=value, context=context, interrupt_before=["apply"])
    state = client.threads.get_state(thread)
    proposed = {edit["entry"]["text"]: edit for edit in state["values"]["edits"]}
    assert state["next"] == ["apply"]
    assert len(proposed) == 2
    kept = [edit for text, edit in proposed.items() if "cello" in text]
    client.threads.update_state(thread, {"edits": kept})
    out = client.runs.wait(thread, "remember", input=None, context=context)
    assert out["result"]["facts"] == [kept[0]["entry"]["id"]]


def test_the_parent_stops_before_a_nested_graph_and_goes_on(client):
    thread, context = new_thread(client), {"user": "di"}
    value = {"messages": "I restore clocks."}
    client.runs.wait(thread, "memory", input=value, context=context, interrupt_before=["remember"])
    assert client.threads.get_state(thread)["next"] == ["remember"]
    out = client.runs.wait(thread, "memory", input=None, context=context)
    assert out["remembered"]["turns"] == [f"D{thread}:1", f"D{thread}:2"]


@pytest.mark.parametrize(
    ("graph", "value"),
    [
        ("memory", {"messages": "I row."}),
        ("remember", {"messages": "I row."}),
        ("recall", {"question": "Do I row?"}),
        ("session", {}),
    ],
)
def test_without_a_user_the_error_says_what_to_do(client, graph, value):
    with pytest.raises(Exception, match=r"no user is named: run the graph with context=\{'user': \.\.\.\}"):
        client.runs.wait(new_thread(client), graph, input=value)


def test_an_assistant_keeps_its_context_and_is_a_tool_over_mcp(client):
    client.assistants.create(graph_id="recall", name="recall of mia", context={"user": "mia"})
    session = {"user": "mia", "session": "s"}
    client.runs.wait(None, "remember", input={"messages": ["I adopted a cat called Miso."]}, context=session)
    client.runs.wait(None, "session", input={}, context=session)

    def mcp(method: str, **params) -> dict:
        """One JSON-RPC call, as an MCP client makes it."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        accept = {"Accept": "application/json, text/event-stream"}
        return client.http.client.post("/mcp", json=body, headers=accept, follow_redirects=True).json()[
            "result"
        ]

    tools = {tool["name"]: tool for tool in mcp("tools/list")["tools"]}
    assert {"memory", "remember", "recall", "session", "recall_of_mia"} <= set(tools)
    assert tools["recall_of_mia"]["inputSchema"]["required"] == ["question"]
    asked = {"name": "recall_of_mia", "arguments": {"question": "What did I adopt?"}}
    told = mcp("tools/call", **asked)
    assert not told.get("isError")
    assert "Miso" in told["content"][0]["text"]
    assert mcp("tools/call", name="recall", arguments={"question": "What did I adopt?"})["isError"]


def test_a_thread_forks_from_an_earlier_checkpoint(client):
    thread, context = new_thread(client), {"user": "flo"}
    value = {"messages": ["I play the cello.", "I live in Graz."]}
    client.runs.wait(thread, "remember", input=value, context=context, interrupt_before=["apply"])
    stopped = client.threads.get_state(thread)
    done = client.runs.wait(thread, "remember", input=None, context=context)
    assert len(done["result"]["facts"]) == 2
    forked = client.threads.update_state(
        thread, {"edits": stopped["values"]["edits"][:1]}, checkpoint=stopped["checkpoint"]
    )
    again = client.runs.wait(thread, "remember", input=None, context=context, checkpoint=forked["checkpoint"])
    assert again["result"]["facts"] == done["result"]["facts"][:1]
    assert len(client.threads.get_history(thread, limit=50)) > 5


def test_no_run_of_this_file_blocked_the_event_loop(client, log):
    told = log.read_text()
    assert "Background run succeeded" in told
    assert "blockingerror" not in told.casefold()
    assert "blocking call" not in told.casefold()


def test_what_was_said_on_monday_is_known_on_tuesday_and_ended_later(tmp_path):
    """Two servers, one after the other, each with threads of its own; nobody ends a session."""
    graphs = {
        name: f"{Path(__file__).with_name('clocked_graphs.py')}:{name}" for name in ("memory", "session")
    }
    config = tmp_path / "langgraph.json"
    config.write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    clock = tmp_path / "clock"
    clock.write_text("0")
    with served(config, tmp_path / "monday.log") as client:
        monday = new_thread(client)
        chat(client, monday, "I teach fencing in Linz.")
    clock.write_text("15")
    with served(config, tmp_path / "tuesday.log") as client:
        asked = chat(client, new_thread(client), "Where do I teach fencing?")
        assert "Linz" in asked["messages"][-1]["content"]
        assert asked["ended"] == {}
        clock.write_text("55")
        later = chat(client, new_thread(client), "I like tea.")
        assert (later["ended"]["session"], later["ended"]["status"]) == (monday, "committed")
        by_the_clock = client.runs.wait(None, "session", input={"idle": True})
        assert by_the_clock["result"]["status"] == "committed"
        assert by_the_clock["result"]["session"] not in (monday, None)
