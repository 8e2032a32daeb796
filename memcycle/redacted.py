"""What a run is given, without secrets: where runs are kept, their checkpoints hold it as it was given."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.types import Command

from memcycle.core.redaction import Redactor
from memcycle.core.turn import Turn

_WORDS = (
    "content",
    "text",
    "caption",
    "alt",
    "name",
    "speaker",
    "tool_calls",
    "additional_kwargs",
    "metadata",
)
"""What of a message may hold words; ids, roles and times are left as they are."""


def redacted_input(redactor: Redactor, value: Any) -> Any:
    """The input of a graph, or the answer it goes on with, as it may be kept.

    Args:
        redactor: That of the store.
        value: A graph's input (`messages`, `turns`, `question`), a `Command`, or None.
    """
    if isinstance(value, Command):
        return replace(value, resume=redactor.data(value.resume))
    if not isinstance(value, Mapping):
        return value
    kept = dict(value)
    if kept.get("messages") is not None:
        kept["messages"] = _messages(redactor, kept["messages"])
    if kept.get("turns") is not None:
        kept["turns"] = [
            redactor.turn(Turn.model_validate(turn)).model_dump(mode="json") for turn in kept["turns"]
        ]
    if isinstance(kept.get("question"), str):
        kept["question"] = redactor.text(kept["question"])
    return kept


def _messages(redactor: Redactor, messages: Any) -> Any:
    """Messages in any of the shapes that are read; what is none of them is left for its reader to refuse."""
    if isinstance(messages, str):
        return redactor.text(messages)
    if isinstance(messages, BaseMessage):
        held = {name: getattr(messages, name) for name in _WORDS if getattr(messages, name, None)}
        held.pop("text", None)  # a view of the content
        return messages.model_copy(update=redactor.data(held))
    if isinstance(messages, Mapping):
        return {
            key: redactor.data({key: one})[key] if key in _WORDS else one for key, one in messages.items()
        }
    if isinstance(messages, list | tuple):
        return type(messages)(_messages(redactor, one) for one in messages)
    return messages
