"""Whatever a model sends, for whatever role: the output asked for, or an error that can be told to it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from memcycle.agents.reply import NoAnswer, Unreadable, complete_items, read_reply, reply_text, reply_words
from memcycle.agents.roles import OUTPUTS as BY_ROLE

OUTPUTS = list(BY_ROLE.values())
MODELS = st.sampled_from(OUTPUTS)
FIELDS = sorted({name for model in OUTPUTS for name in model.model_fields})

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=10,
)
TEXT = st.one_of(
    st.text(max_size=60),
    JSON.map(json.dumps),
    st.tuples(
        st.sampled_from(["", "<think>", "</think>", "```json\n", "Sure: ", "[THINK]", "{", "\\"]),
        JSON.map(json.dumps),
        st.sampled_from(["", "</think>", "\n```", ",}", "]", '"', "...", "\x00"]),
    ).map("".join),
)
BLOCK = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["text", "output_text", "thinking", "reasoning", "refusal", "tool_use", "image"]
        )
    },
    optional={"text": TEXT, "thinking": TEXT, "refusal": TEXT, "input": JSON},
)
CALL = st.fixed_dictionaries(
    {
        "name": st.text(max_size=5),
        "args": st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4),
        "id": st.none() | st.text(max_size=4),
    }
)
BROKEN = st.fixed_dictionaries(
    {"name": st.none(), "args": st.none() | TEXT, "id": st.none(), "error": st.none()}
)
MESSAGES = st.builds(
    AIMessage,
    content=TEXT | st.lists(TEXT | BLOCK, max_size=4),
    tool_calls=st.lists(CALL, max_size=2),
    invalid_tool_calls=st.lists(BROKEN, max_size=2),
    additional_kwargs=st.dictionaries(st.sampled_from(["refusal", "x"]), st.none() | st.text(max_size=4)),
    response_metadata=st.dictionaries(
        st.sampled_from(["finish_reason", "stop_reason", "done_reason"]),
        st.none() | st.sampled_from(["stop", "length", "content_filter", 7]),
    ),
)


@settings(max_examples=300)
@given(model=MODELS, message=MESSAGES)
def test_an_output_or_an_error_in_words(model, message):
    for read in (read_reply, complete_items):
        try:
            output = read(message, model)
        except (NoAnswer, Unreadable) as error:
            assert str(error)
        else:
            assert type(output) is model
            again = model.model_validate(output.model_dump())  # without what was told of the reply
            assert again.model_dump() == output.model_dump()


@given(message=MESSAGES)
def test_the_words_of_a_reply_are_text(message):
    assert isinstance(reply_words(message), str)
    assert "</think>" not in reply_text(message) or reply_text(message)[:1] in "{[`"


@given(model=MODELS, said=TEXT)
def test_what_is_said_in_thinking_answers_nothing(model, said):
    """A block of thinking that is closed is as if it had not been said."""
    thought = AIMessage([{"type": "thinking", "thinking": said}, {"type": "text", "text": ""}])
    with pytest.raises(Unreadable, match="empty"):
        read_reply(thought, model)
