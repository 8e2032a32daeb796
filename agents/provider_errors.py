"""What errors of a model's provider mean: for the ladder of the runner, for a later try, for people.

An SDK that is not loaded has raised nothing, and loading it takes a second: it is looked up, never imported.
"""

import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from pydantic import ValidationError

from memcycle.agents.reply import NoAnswer
from memcycle.core.errors import (
    MemcycleError,
    ModelUnavailable,
    RoleFailed,
    all_complaints,
    is_too_long,
    status_of,
)

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
    return not is_too_long(error) and _refuses(error, _NAMES.get(rung, ()))


def rejects_budget(error: Exception) -> bool:
    """Whether the server said that so many output tokens are more than the model has."""
    return _refuses(error, ("max_tokens", "max_completion_tokens", "max_output_tokens"))


def _refuses(error: Exception, names: Iterable[str]) -> bool:
    """Whether a request was refused for one of these; servers differ in where they say it."""
    said = f"{error} {getattr(error, 'body', '')}".lower()
    return getattr(error, "status_code", None) in _UNSUPPORTED and any(name in said for name in names)


def reply_in_error(error: Exception) -> AIMessage | None:
    """The reply that the client's own parser raised over, None where the error is about something else.

    Raises:
        NoAnswer: a content filter, or a completion without choices.
        ModelUnavailable: what came back is not a chat completion at all.
    """
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
    if is_too_long(error):
        return None
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


_PASSING = frozenset({408, 409, 425, 429})
_REFUSED_KEY = frozenset({401, 403})
_OURS = ("memcycle", "langgraph")
_SERVER = 500
_CONNECTION = re.compile(r"(?:Connection|Connect|Timeout|Read|Write|Protocol)(?:Error|Timeout)?$")


def may_pass(error: Exception) -> bool:
    """Whether the same question may be answered a little later.

    True for a reply that fitted no schema, for a server that was busy, broken or out of reach; not for a
    refused key or a wrong request. Told by status and kind, as all providers' clients have them.
    """
    if isinstance(error, RoleFailed | TimeoutError | ConnectionError):
        return True
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status in _PASSING or status >= _SERVER
    return bool(_CONNECTION.search(type(error).__name__))


def is_providers(error: Exception, *, of_model: bool = False) -> bool:
    """Whether it is a failure of a model's provider that a run may go on without.

    Not a refused key, which nothing of the run would get past, and not an error of a program: one of ours,
    LangGraph's word that a run stops, or a built-in kind other than a lost connection.

    Args:
        of_model: Whether a chat model's client raised it: then of a built-in kind, too.
    """
    if isinstance(error, RoleFailed | ModelUnavailable | TimeoutError | ConnectionError) or is_too_long(
        error
    ):
        return True
    room = type(error).__module__.split(".")[0]
    if (
        isinstance(error, MemcycleError | AssertionError)
        or room in _OURS
        or (room == "builtins" and not of_model)
    ):
        return False
    return status_of(error) not in _REFUSED_KEY


def explain_model_error(error: BaseException) -> ModelUnavailable | None:
    """One clear line for an error of a provider's client, None for any other error.

    The face tells it beside the error, which travels as it is: programs tell errors apart by their kinds.
    """
    if isinstance(error, ModelUnavailable):
        return error
    openai: Any = sys.modules.get("openai")
    if openai is None or not isinstance(error, openai.APIError):
        return None
    # APITimeoutError is a kind of APIConnectionError: the narrower one first.
    told = [
        (openai.APITimeoutError, "did not answer in time; raise `timeout` or check that the model is loaded"),
        (openai.APIConnectionError, "cannot be reached; check the base URL and that the server runs"),
        (openai.AuthenticationError, "refused the key; check OPENAI_API_KEY or api_key"),
        (openai.PermissionDeniedError, "does not allow this key to use this model"),
        (openai.NotFoundError, "knows no such model or path; check the model name and the base URL"),
        (openai.RateLimitError, "is at its rate limit or out of quota; wait, or raise `max_retries`"),
        (openai.InternalServerError, "failed (status 5xx); try again later"),
    ]
    trouble = next((words for kind, words in told if isinstance(error, kind)), None)
    # With its port: of several servers on one machine it is the port that is wrong.
    where = f" at {error.request.url.netloc.decode()}" if error.request is not None else ""
    return ModelUnavailable(
        f"the model server{where} {trouble or f'rejected the request: {first_line(error)}'}"
    )


def first_line(error: Exception) -> str:
    """The first line of an error, without values (a key may be among them)."""
    if isinstance(error, ValidationError):
        return all_complaints(error)
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
