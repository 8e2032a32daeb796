import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from memcycle.core.errors import BadInput
from memcycle.core.messages import ROLES, clean_text, read_messages, sent_once
from memcycle.core.turn import Turn

NOW = datetime(2024, 5, 8, 12, tzinfo=UTC)
VIENNA = ZoneInfo("Europe/Vienna")
PIXELS = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"


def read(messages, **options) -> list[Turn]:
    return read_messages(messages, **{"session": "s", "now": NOW, "zone": VIENNA, **options})


def brief(messages, **options) -> list[tuple[str, str, str]]:
    return [(turn.role, turn.speaker, turn.text) for turn in read(messages, **options)]


def test_each_shape_gives_its_turn():
    for message, expected in [
        ("hello", ("human", "user", "hello")),
        (["hello"], ("human", "user", "hello")),
        (("assistant", "hello"), ("ai", "assistant", "hello")),
        ([("user", "hello")], ("human", "user", "hello")),
        ({"role": "user", "content": "hello", "name": "Ann"}, ("human", "Ann", "hello")),
        ({"type": "human", "content": "hello"}, ("human", "user", "hello")),
        ({"role": "developer", "content": "rules"}, ("system", "system", "rules")),
        ({"role": "function", "name": "clock", "content": "12"}, ("tool", "clock", "12")),
        ({"role": "tool", "tool_call_id": "c1", "content": "12"}, ("tool", "tool", "12")),
        ({"role": "human", "speaker": "Ann", "text": "hello"}, ("human", "Ann", "hello")),
        (HumanMessage("hello", name="Ann"), ("human", "Ann", "hello")),
        (AIMessage("hello"), ("ai", "assistant", "hello")),
        (AIMessageChunk("hello"), ("ai", "assistant", "hello")),
        (SystemMessage("rules"), ("system", "system", "rules")),
        (ToolMessage("12", tool_call_id="c1", name="clock"), ("tool", "clock", "12")),
        (FunctionMessage("12", name="clock"), ("tool", "clock", "12")),
        (ChatMessage("hello", role="user"), ("human", "user", "hello")),
    ]:
        assert brief(message) == [expected], message


def test_default_speakers_are_the_callers():
    turns = brief([("user", "a"), ("ai", "b")], user_name="Ann", assistant_name="Robo")
    assert turns == [("human", "Ann", "a"), ("ai", "Robo", "b")]


def test_ids_positions_and_message_ids():
    turns = read([{"role": "user", "content": "a", "id": 7}, HumanMessage("b", id="m-8")], session="x")
    assert [(turn.id, turn.position, turn.message_id) for turn in turns] == [
        ("Dx:1", 1, "7"),
        ("Dx:2", 2, "m-8"),
    ]


def test_blank_messages_keep_their_place():
    turns = read(["a", "", "  ", {"role": "user", "content": None}, {"role": "user", "content": []}, "b"])
    assert [(turn.id, turn.text) for turn in turns] == [("Ds:1", "a"), ("Ds:6", "b")]


def test_injected_and_removed_messages_are_skipped():
    messages = [
        "a",
        SystemMessage("recalled", additional_kwargs={"memcycle": "recall"}),
        HumanMessage("Here is a summary.", additional_kwargs={"lc_source": "summarization"}),
        {"role": "user", "content": "A summary.", "additional_kwargs": {"lc_source": "summarization"}},
        {"role": "system", "content": "recalled", "memcycle": True},
        {"role": "system", "content": "recalled", "metadata": {"memcycle": {"kind": "recall"}}},
        RemoveMessage(id="m1"),
        "b",
    ]
    assert [(turn.position, turn.text) for turn in read(messages)] == [(1, "a"), (8, "b")]


def test_tool_calls_without_text_give_no_turn():
    call = {"name": "search", "args": {"q": "secret"}, "id": "c1"}
    openai = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "function": {"arguments": "{}"}}],
    }
    assert read([AIMessage("", tool_calls=[call]), openai]) == []
    assert brief(AIMessage("Let me look.", tool_calls=[call])) == [("ai", "assistant", "Let me look.")]


def test_content_blocks_give_text_and_captions_only():
    content = [
        {"type": "reasoning", "reasoning": "hidden"},
        {"type": "text", "text": "Look at this."},
        {
            "type": "image_url",
            "image_url": {"url": f"data:image/png;base64,{PIXELS}"},
            "caption": "a red kite",
        },
        {"type": "image_url", "image_url": {"url": "https://x.test/a.png", "alt": "a blue kite"}},
        {"type": "image", "base64": PIXELS, "mime_type": "image/png"},
        {"type": "input_text", "text": "Nice?"},
        "plain",
    ]
    [turn] = read(HumanMessage(content))
    assert turn.text == "Look at this.\n[image: a red kite]\n[image: a blue kite]\nNice?\nplain"


def test_image_data_inside_text_is_dropped():
    data = f"data:image/png;base64,{PIXELS}="
    [turn] = read(f"see ![my kite]({data}) and {data} and ![]({data}).")
    assert turn.text == "see [image: my kite] and [data] and [image]."


def test_text_is_made_storable():
    assert clean_text(" a\0b\ud800 ") == "a b\ufffd"


TIME = datetime(2023, 5, 8, 13, 56, tzinfo=VIENNA)


@pytest.mark.parametrize("key", ["time", "timestamp", "created_at"])
@pytest.mark.parametrize(
    "value",
    [
        "2023-05-08T13:56:00",
        "2023-05-08 11:56Z",
        datetime(2023, 5, 8, 13, 56),  # noqa: DTZ001 - a naive one
        TIME.timestamp(),
        TIME.timestamp() * 1000,
    ],
)
def test_times_are_read_and_naive_ones_take_the_zone(key, value):
    messages = [
        {"role": "user", "content": "a", key: value},
        HumanMessage("a", additional_kwargs={key: value}),
        AIMessage("a", response_metadata={key: value}),
    ]
    assert [turn.time for turn in read(messages)] == [TIME] * 3


def test_without_a_time_the_clock_is_taken():
    assert read("a")[0].time == NOW


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (7, ["messages", "int"]),
        (b"bytes", ["messages", "bytes"]),
        ([["user", "hello"], 7], ["message 2", "int"]),
        ([{"role": "boss", "content": "a"}], ["message 1", "'role'", "'boss'", "'name'"]),
        ([("Ann", "a")], ["message 1", "'role'", "'Ann'"]),
        (["a", {"content": "b"}], ["message 2", "'role'"]),
        ([{"role": "user", "content": 7}], ["message 1", "'content'", "int"]),
        ([{"role": "user", "content": ["a", 7]}], ["message 1", "'content'", "block 2"]),
        ([{"role": "user", "content": [{"type": "text", "text": 7}]}], ["message 1", "'content'", "block 1"]),
        (
            [{"role": "user", "content": "a", "time": "yesterday"}],
            ["message 1", "'time'", "'yesterday'", "ISO 8601"],
        ),
        ([{"role": "user", "content": "a", "time": True}], ["message 1", "'time'", "bool"]),
        ([{"role": "user", "content": "a", "time": math.inf}], ["message 1", "'time'"]),
        ([{"role": "user", "content": "a", "time": 1e300}], ["message 1", "'time'"]),
        ([{"role": "user", "content": "a", "time": "0001-01-01T00:00"}], ["message 1", "'time'", "years"]),
        ([{"role": "user", "content": "a", "name": ["Ann"]}], ["message 1", "'name'", "list"]),
        ([{"role": "user", "content": "a", "id": True}], ["message 1", "'id'", "bool"]),
    ],
)
def test_unknown_shapes_name_the_message_and_the_field(messages, words):
    with pytest.raises(BadInput) as caught:
        read(messages)
    assert all(word in str(caught.value) for word in words), str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
BLOCK = st.dictionaries(
    st.sampled_from(["type", "text", "image_url", "caption", "alt", "base64"]),
    JSON | st.sampled_from(["text", "image", "image_url", "reasoning"]),
    max_size=4,
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(sorted(ROLES)) | JSON, "content": st.lists(BLOCK | JSON, max_size=4) | JSON},
    optional=dict.fromkeys(
        ("name", "id", "time", "created_at", "tool_calls", "additional_kwargs", "caption"), JSON
    ),
)


@given(st.lists(MESSAGE | JSON | st.tuples(JSON, JSON), max_size=4) | JSON)
def test_nothing_but_bad_input_is_ever_raised(messages):
    try:
        turns = read(messages)
    except BadInput as error:
        assert "message" in str(error)
        return
    for turn in turns:
        assert turn.text == turn.text.strip() != ""
        assert turn.text.encode()
        assert turn.time.utcoffset() is not None
        assert turn.time.astimezone(UTC)
        assert Turn.model_validate_json(turn.model_dump_json()) == turn


def test_what_is_sent_again_before_an_answer_is_said_once():
    yes, again, other = (
        HumanMessage("Yes.", id="1"),
        HumanMessage("Yes.", id="2"),
        HumanMessage("No.", id="3"),
    )
    reply, by_ann = AIMessage("Fine.", id="4"), HumanMessage("Yes.", id="5", name="Ann")
    assert sent_once([]) == []
    assert sent_once([yes, again, again]) == [yes]
    assert sent_once([yes, reply, again]) == [yes, reply, again]
    assert sent_once([yes, other, again, by_ann]) == [yes, other, again, by_ann]
    assert sent_once([reply, reply]) == [reply, reply]
