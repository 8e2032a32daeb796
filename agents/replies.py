"""What an error of a chat model's client says: about its server, or with the reply still in it."""

import sys
from typing import TYPE_CHECKING, Any

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from memcycle.agents.reading import NoAnswer
from memcycle.core.errors import ModelUnavailable

if TYPE_CHECKING:
    from openai import LengthFinishReasonError

_UNSUPPORTED = {400, 404, 415, 422, 501}
_TOOLS = ("tool", "function")
# Models whose schema mode is a tool call underneath are refused in the words of tools.
_NAMES = {
    "json_schema": ("response_format", "json_schema", "structured", "guided", "strict", *_TOOLS),
    "tools": _TOOLS,
}


def rejects_rung(error: Exception, rung: str) -> bool:
    """Whether the server said that it does not know this way (`json_schema`, `tools`) of asking."""
    if isinstance(error, ContextOverflowError) or getattr(error, "status_code", None) not in _UNSUPPORTED:
        return False
    said = _said(error)
    return any(name in said for name in _NAMES.get(rung, ()))


def rejects_budget(error: Exception) -> bool:
    """Whether the server said that so many output tokens are more than the model has."""
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    return getattr(error, "status_code", None) in _UNSUPPORTED and any(name in _said(error) for name in names)


def reply_in_error(error: Exception) -> AIMessage | None:
    """The reply that the client's own parser raised over, None where the error is about something else.

    Raises:
        NoAnswer: a content filter, or a completion without choices.
        ModelUnavailable: what came back is not a chat completion at all.
    """
    # An SDK that is not loaded has raised nothing; loading it takes a second.
    openai: Any = sys.modules.get("openai")
    if openai and isinstance(error, openai.LengthFinishReasonError):
        return _cut_reply(error)
    if openai and isinstance(error, openai.ContentFilterFinishReasonError):
        raise NoAnswer("the provider's content filter stopped the reply") from error
    # The client indexes and iterates choices without looking; its errors are told apart by their words.
    if isinstance(error, IndexError) or (
        isinstance(error, TypeError | KeyError)
        and ("choices" in str(error) or "'NoneType' object is not" in str(error))
    ):
        raise NoAnswer("the server's completion has no choices") from error
    alien = isinstance(error, AttributeError) and "choices" in str(error)
    if alien or (isinstance(error, ValueError) and type(error).__module__ in {"builtins", "json.decoder"}):
        raise ModelUnavailable(
            "the server's reply is not a chat completion; check that the base URL is that of an "
            "OpenAI-compatible server (it usually ends in /v1)"
        ) from error
    return None


def _cut_reply(error: "LengthFinishReasonError") -> AIMessage:
    usage = error.completion.usage
    counted = usage and UsageMetadata(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens,
    )
    text = error.completion.choices[0].message.content or ""
    return AIMessage(text, response_metadata={"finish_reason": "length"}, usage_metadata=counted or None)


def _said(error: Exception) -> str:
    """Message and body in lower case: servers differ in where they say it."""
    return f"{error} {getattr(error, 'body', '')}".lower()
