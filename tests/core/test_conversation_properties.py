"""Files of any content: a conversation, or one error in words that names the place."""

import json
from datetime import UTC

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memcycle.cli.talk import read_conversations
from memcycle.core.errors import BadInput
from memcycle.core.jsonl import read_jsonl
from memcycle.core.turn import Conversation

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
TIMES = st.sampled_from(["2024-05-08T10:00:00Z", "2024-05-08", "yesterday", 1715155200, 1e300, None, True])
RECORD = st.fixed_dictionaries(
    {},
    optional={
        "session": st.sampled_from(["1", "2", 3, "../x", ""]) | JSON,
        "speaker": st.sampled_from(["Ana", "user"]) | JSON,
        "role": st.sampled_from(["human", "ai", "assistant", "tool", "boss"]) | JSON,
        "text": st.text(max_size=20) | JSON,
        "time": TIMES | JSON,
        "id": st.sampled_from(["a", "b", 7]) | JSON,
        "caption": st.text(max_size=8) | JSON,
        "scope": JSON,
        "granularity": JSON,
        "conversation": JSON,
        "qa": JSON,
        "session_1": JSON,
        "session_1_date_time": st.just("1:56 pm on 8 May, 2023") | JSON,
        "turns": JSON,
        "sample_id": JSON,
        "content": st.text(max_size=8) | JSON,
        "type": st.sampled_from(["human", "constructor"]) | JSON,
        "lc": JSON,
        "kwargs": JSON,
        "data": JSON,
        "messages": JSON,
        "thread_id": JSON,
        "values": JSON,
        "created_at": TIMES | JSON,
        "current_node": JSON,
    },
)
CHATS = st.fixed_dictionaries(
    {},
    optional={
        "messages": st.lists(RECORD, max_size=3),
        "mapping": st.dictionaries(
            st.sampled_from("abc"),
            st.fixed_dictionaries(
                {},
                optional={
                    "message": st.fixed_dictionaries(
                        {}, optional=dict.fromkeys(("author", "content"), RECORD | JSON)
                    ),
                    "parent": st.sampled_from("abc") | JSON,
                    "children": JSON,
                },
            )
            | JSON,
            max_size=3,
        ),
        "values": st.fixed_dictionaries({"messages": st.lists(RECORD, max_size=3)}) | JSON,
        "thread_id": st.just("t") | JSON,
        "created_at": TIMES,
        "id": JSON,
    },
)
LINES = st.lists((RECORD | JSON).map(json.dumps) | st.text(max_size=20), max_size=5).map("\n".join)


def check(conversation: Conversation) -> None:
    """What every reader promises: places count up in each session, ids are each turn's own."""
    for session in conversation.sessions:
        places = [turn.position for turn in session.turns]
        assert places == sorted(set(places))
    ids = [turn.id for turn in conversation.turns]
    assert len(ids) == len(set(ids))
    assert all(turn.text == turn.text.strip() != "" for turn in conversation.turns)


@given(LINES)
def test_any_lines_are_a_conversation_or_an_error_that_names_the_record(text):
    try:
        conversation = read_jsonl(text, zone=UTC)
    except BadInput as error:
        assert "record" in str(error)
        return
    check(conversation)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    LINES
    | JSON.map(json.dumps)
    | st.lists(RECORD, max_size=3).map(json.dumps)
    | RECORD.map(json.dumps)
    | CHATS.map(json.dumps)
)
def test_any_file_is_read_or_refused(tmp_path, text):
    path = tmp_path / "chat.jsonl"
    path.write_text(text, encoding="utf-8", newline="")
    try:
        found = read_conversations(path, zone=UTC)
    except BadInput as error:
        assert str(error)
        return
    for conversation in found:
        check(conversation)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(tmp_path, data):
    path = tmp_path / "chat.jsonl"
    path.write_bytes(data)
    try:
        read_conversations(path, zone=UTC)
    except BadInput as error:
        assert str(error)


SIX = read_jsonl(
    "".join(
        json.dumps({"session": str(n), "speaker": "A", "role": "human", "text": "x", "time": "2024-05-08"})
        + "\n"
        for n in range(1, 7)
    ),
    zone=UTC,
)


@given(st.text(alphabet="0123456789,- ٣x", max_size=12) | st.text(max_size=6))
def test_any_range_names_sessions_or_is_refused(spec):
    try:
        chosen = SIX.select(spec)
    except BadInput as error:
        assert "session range" in str(error)
        return
    assert set(chosen.sessions) <= set(SIX.sessions)
    assert chosen.sessions
