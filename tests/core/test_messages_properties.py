"""Messages of LangChain's own classes with random content blocks: what was said is kept, and nothing else."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from memcycle.core.errors import BadInput
from memcycle.core.messages import clean_text, image_note, read_messages

NOW = datetime(2024, 5, 8, 10, tzinfo=UTC)
SAID = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
HIDDEN = "HIDDENDATA"
"""Stands where bytes, reasoning, arguments and signatures stand: it must never come out."""

SAID_BLOCKS = st.one_of(
    SAID,
    *(
        st.builds(lambda text, kind=kind: {"type": kind, "text": text}, SAID)
        for kind in ("text", "input_text", "output_text")
    ),
)
OTHER_BLOCKS = st.sampled_from(
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{HIDDEN}"}},
        {"type": "image_url", "image_url": f"data:image/png;base64,{HIDDEN}"},
        {"type": "image", "base64": HIDDEN, "mime_type": "image/png"},
        {"type": "image", "source": {"type": "base64", "data": HIDDEN}},
        {"type": "audio", "data": HIDDEN},
        {"type": "input_audio", "input_audio": {"data": HIDDEN, "format": "wav"}},
        {"type": "file", "file": {"file_data": HIDDEN}},
        {"type": "thinking", "thinking": HIDDEN, "signature": HIDDEN},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": HIDDEN}]},
        {"type": "redacted_thinking", "data": HIDDEN},
        {"type": "tool_use", "name": HIDDEN, "input": {"a": HIDDEN}, "id": "1"},
        {"type": "tool_result", "content": [{"type": "text", "text": HIDDEN}]},
        {"type": "refusal", "refusal": HIDDEN},
        {"type": "document", "source": {"data": HIDDEN}},
        {"type": "non_standard", "value": {"x": HIDDEN}},
        {"type": "", "x": HIDDEN},
        {},
    ]
)
CONTENT = st.lists(
    st.tuples(st.just(True), SAID_BLOCKS) | st.tuples(st.just(False), OTHER_BLOCKS), max_size=6
)
CALLS = [{"name": "look", "args": {"key": HIDDEN}, "id": "c1"}]
KINDS = st.sampled_from(
    [
        HumanMessage,
        SystemMessage,
        AIMessage,
        lambda content: AIMessage(
            content, tool_calls=CALLS, additional_kwargs={"function_call": {"arguments": HIDDEN}}
        ),
        AIMessageChunk,
        lambda content: ToolMessage(content, tool_call_id="c1", artifact=HIDDEN),
        lambda content: ChatMessage(content, role="user"),
        lambda content: {"role": "user", "content": content},
        lambda content: {"type": "ai", "content": content, "tool_calls": CALLS},
        lambda content: ("user", content),
    ]
)


def read(*messages):
    return read_messages(list(messages), session="s", now=NOW, zone=UTC)


@given(CONTENT, KINDS)
def test_what_was_said_is_kept_and_nothing_else(content, make):
    blocks = [block for _, block in content]
    turns = read(make(blocks))
    words = [clean_text(b if isinstance(b, str) else b["text"]) for said, b in content if said]
    assert "".join(turn.text for turn in turns) == "\n".join(word for word in words if word)
    assert HIDDEN not in repr(turns)


@given(SAID, KINDS)
def test_plain_text_is_kept_as_it_is(text, make):
    turns = read(make(text))
    assert [turn.text for turn in turns] == ([clean_text(text)] if clean_text(text) else [])


@given(st.lists(st.tuples(CONTENT, KINDS), max_size=5))
def test_a_message_keeps_its_place_whatever_the_others_say(several):
    messages = [make([block for _, block in content]) for content, make in several]
    together = read(*messages)
    for n, message in enumerate(messages):
        alone = read_messages([*[""] * n, message], session="s", now=NOW, zone=UTC)
        assert alone == [turn for turn in together if turn.position == n + 1]
    assert [turn.position for turn in together] == sorted({turn.position for turn in together})


@given(st.text(max_size=40))
def test_a_cleaned_text_stays_as_it_is(text):
    once = clean_text(text)
    assert clean_text(once) == once
    assert "\0" not in once
    assert once.encode("utf-8").decode() == once
    note = image_note(text)
    assert note == "" or (note.startswith("[image: ") and "\n" not in note)


@given(
    st.sampled_from(["user", "ai"]), st.lists(st.integers() | st.none() | st.floats(), min_size=1, max_size=3)
)
def test_blocks_that_are_none_are_refused_with_their_place(role, blocks):
    try:
        read({"role": role, "content": blocks})
    except BadInput as error:
        assert "message 1" in str(error)
        assert "block 1" in str(error)
    else:
        raise AssertionError("numbers were taken for text")


def test_a_function_message_is_a_tools():
    assert [turn.role for turn in read(FunctionMessage("42", name="look"))] == ["tool"]
