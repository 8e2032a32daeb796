"""Files of other programs: told by what they hold, read whole, what is left out told of."""

import json
from datetime import UTC, datetime

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, messages_to_dict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from memcycle.cli.talk import read_conversations
from memcycle.core.errors import BadInput

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
OPENAI = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "I moved to Łódź."}, IMAGE]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "x"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "22 degrees"},
    {"role": "assistant", "content": "Nice!"},
]
SAID = [("system", "Be brief."), ("human", "I moved to Łódź."), ("tool", "22 degrees"), ("ai", "Nice!")]
LANGCHAIN = [
    SystemMessage("Be brief.", id="s"),
    HumanMessage("I moved to Łódź.", id="h"),
    AIMessage("", id="c", tool_calls=[{"name": "x", "args": {}, "id": "c1"}]),
    ToolMessage("22 degrees", tool_call_id="c1", id="t"),
    AIMessage([{"type": "text", "text": "Nice!"}], id="a"),
]


@pytest.fixture
def read(tmp_path):
    """What a file with these JSON values holds; several are lines."""

    def read(*values, name="chat.json"):
        path = tmp_path / name
        path.write_text(
            "\n".join(json.dumps(value, indent=None if values[1:] else 1) for value in values), "utf-8"
        )
        [conversation] = read_conversations(path, zone=UTC)
        return conversation

    return read


def said(conversation, session=0):
    return [(turn.role, turn.text) for turn in conversation.sessions[session].turns]


@pytest.mark.parametrize("key", ["thread_id", "conversation_id", "id"])
def test_messages_of_an_api(read, key):
    for values in ([OPENAI], [{"messages": OPENAI}], OPENAI, [[{"messages": OPENAI}]]):
        found = read(*values)
        assert said(found) == SAID
        assert [one.name for one in found.sessions] == ["chat"]
        assert "left out: 1 messages without words" in found.notes
        assert any("without a time" in note for note in found.notes)
    several = read({"messages": OPENAI, key: "a"}, {"messages": OPENAI[:2], "model": "m"})
    assert [one.name for one in several.sessions] == ["a", "chat-2"]
    assert [said(several), said(several, 1)] == [SAID, SAID[:2]]
    assert "fields that are not read: 'model' (1)" in several.notes


def test_messages_of_langchain(read):
    for values in (
        [dumpd(LANGCHAIN)],
        dumpd(LANGCHAIN),
        [messages_to_dict(LANGCHAIN)],
        [{"messages": dumpd(LANGCHAIN)}],
    ):
        found = read(*values)
        assert said(found) == SAID
        assert [turn.message_id for turn in found.turns] == ["s", "h", "t", "a"]
        assert not [note for note in found.notes if "fields" in note]


def threads():
    """A thread of LangGraph in the shapes it is dumped in, after two runs."""
    graph = StateGraph(MessagesState).add_node("n", lambda state: {}).add_edge(START, "n")
    app = graph.compile(checkpointer=(saver := InMemorySaver()))
    config = {"configurable": {"thread_id": "t-1"}}
    app.invoke({"messages": LANGCHAIN[:2]}, config)
    app.invoke({"messages": LANGCHAIN[2:]}, config)
    snapshot = app.get_state(config)
    values = {"messages": [message.model_dump() for message in LANGCHAIN], "topic": "towns"}
    at = snapshot.created_at
    return {
        "snapshot": dumpd(snapshot),
        "history": dumpd([*app.get_state_history(config)]),
        "checkpoint": {**dumpd(saver.get(config)), "config": config},
        "sdk state": {"values": values, "next": [], "checkpoint": {"thread_id": "t-1"}, "created_at": at},
        "sdk thread": {"thread_id": "t-1", "status": "idle", "values": values, "created_at": at},
        "sdk threads": [
            {"thread_id": "t-1", "values": values, "created_at": at},
            {"thread_id": "t-2", "values": None, "created_at": at},
        ],
        "messages alone": {
            "values": values["messages"],
            "checkpoint": {"thread_id": "t-1"},
            "created_at": at,
        },
        "another key": {"values": {"chat": values["messages"]}, "thread_id": "t-1", "created_at": at},
    }


@pytest.mark.parametrize("shape", threads())
def test_threads_of_langgraph(read, shape):
    found = read(json.loads(json.dumps(threads()[shape], default=str)))
    assert [one.name for one in found.sessions] == ["t-1"]
    assert said(found) == SAID
    assert not [note for note in found.notes if "without a time" in note]
    assert ["topic" in note for note in found.notes if "fields" in note] == [True] * shape.startswith("sdk")


def node(key, parent, role, *parts, kind="text", children=(), **fields):
    message = {
        "id": key, "author": {"role": role, "name": None, "metadata": {}}, "weight": 1.0, "metadata": {},
        "create_time": 1715155200.5 + len(key), "content": {"content_type": kind, "parts": [*parts]},
        "status": "finished_successfully", "recipient": "all", **fields,
    }  # fmt: skip
    return {key: {"id": key, "message": message, "parent": parent, "children": [*children]}}


PICTURE = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-x", "width": 1}
EXPORT = {
    "title": "Towns", "create_time": 1715155200.1, "update_time": None, "current_node": "a3",
    "conversation_id": "c-9",
    "mapping": {
        "root": {"id": "root", "message": None, "parent": None, "children": ["s"]},
        **node("s", "root", "system", "", children=["u1", "u2"]),
        **node("u1", "s", "user", "I moved to Gdańsk.", children=["a1"]),
        **node("a1", "u1", "assistant", "Ah, Gdańsk!"),
        **node("u2", "s", "user", PICTURE, "I moved to Łódź.", kind="multimodal_text", children=["th"]),
        **node("th", "u2", "assistant", kind="thoughts", children=["call"]),
        **node("call", "th", "assistant", "search('Łódź')", recipient="web", children=["a3"]),
        **node("a3", "call", "assistant", "Nice!", tone="warm"),
    },
}  # fmt: skip


def test_an_export_of_chatgpt_is_read_as_it_was_shown_last(read):
    for found in (read([EXPORT]), read(EXPORT), read([{**EXPORT, "current_node": None}])):
        assert [one.name for one in found.sessions] == ["c-9"]
        assert said(found) == [("human", "I moved to Łódź."), ("ai", "Nice!")]
        assert [turn.message_id for turn in found.turns] == ["u2", "a3"]
        assert found.turns[0].time == datetime(2024, 5, 8, 8, 0, 2, 500000, tzinfo=UTC)
        assert sorted(found.notes) == [
            "fields that are not read: 'tone' (1)",
            "left out: 1 messages that nobody said (thoughts)",
            "left out: 1 messages that nobody said (to web)",
            "left out: 2 messages of branches that were edited or generated anew",
        ]


def test_chats_stand_in_the_order_they_took_place(read):
    earlier = {
        **EXPORT,
        "conversation_id": "c-1",
        "mapping": node("a3", None, "user", "Hi.", create_time=1700000000),
    }
    assert [one.name for one in read([EXPORT, earlier]).sessions] == ["c-1", "c-9"]


def test_turns_of_ones_own_also_stand_in_a_list(read):
    turn = {
        "session": "1",
        "speaker": "Ana",
        "role": "human",
        "text": "Hi.",
        "time": "2024-05-08",
        "mood": "good",
    }
    found = read([turn, {**turn, "text": " "}, {**turn, "mood": "bad"}])
    assert [turn.id for turn in found.turns] == ["D1:1", "D1:3"]
    assert found.notes == ("left out: 1 messages without words", "fields that are not read: 'mood' (3)")


def test_fields_of_locomo_that_are_not_read_are_told_of(read):
    turn = {"speaker": "Ann", "dia_id": "D1:1", "text": "My dog is called Pixel.", "caption": "a dog"}
    held = {
        "session_1": [turn, {**turn, "text": ""}],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "weather": "wet",
    }
    assert read({"sample_id": "x", "conversation": held}).notes == (
        "left out: 1 messages without words",
        "fields that are not read: 'caption' (2), 'weather' (1)",
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (["a"], ["a list of 1, the first str"]),
        ([], ["a list of 0"]),
        (7, ["int"]),
        ({"user": "Ann", "likes": "tea"}, ["an object with 'user', 'likes'"]),
        (
            [{"prompt": "Hi.", "completion": "Ho."}],
            ["a list of 1, the first an object with 'prompt', 'completion'"],
        ),
    ],
)
def test_what_is_of_no_shape_is_told_with_the_shapes_there_are(read, value, words):
    with pytest.raises(BadInput) as error:
        read(value)
    told = str(error.value)
    for word in [
        *words,
        "ChatGPT",
        "LangGraph",
        "LoCoMo",
        '{"messages": [{"role": "user", "content": "Hi."}]}',
    ]:
        assert word in told


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([*OPENAI, {"foo": 1}], "record 6 is no message"),
        ([{"messages": OPENAI}, {"foo": 1}], "record 2 is no chat"),
        ([{"messages": [*OPENAI, {"role": "boss", "content": "x"}]}], "chat 'chat': message 6: field 'role'"),
        ([{"messages": OPENAI, "id": ["x"]}], "chat 1: field 'id'"),
        ([{"messages": OPENAI, "created_at": "soon"}], "chat 'chat': 'soon' is not ISO 8601"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(read, value, words):
    with pytest.raises(BadInput, match=words):
        read(value)
