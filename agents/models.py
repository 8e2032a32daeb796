"""Chat models by name, and what their errors mean."""

import functools
import os
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import openai
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from pydantic import SecretStr, ValidationError

from memcycle.core.errors import ModelUnavailable

RULES = "rules"
_OPENAI = "openai:"
_TIMEOUT = 60.0
_RETRIES = 2
_OWN_CONNECTIONS = {"http_client", "http_async_client", "http_socket_options", "openai_proxy"}
"""Arguments by which a caller says how to connect."""
_ACCEPTED = (
    "accepted are 'rules', 'openai:NAME' (any OpenAI-compatible server), or a LangChain chat model object"
)


def open_model(name: str, **args: Any) -> BaseChatModel:
    """A chat model by name.

    Args:
        name: `openai:NAME`.
        **args: For `ChatOpenAI`. `base_url` and `api_key` come from here, else from `OPENAI_BASE_URL` (or
            `OPENAI_API_BASE`) and `OPENAI_API_KEY`; `timeout` is 60 seconds and `max_retries` 2 unless given.

    Raises:
        ModelUnavailable: an unknown name, a missing key, a base URL or an argument that cannot be used.
    """
    model = name.removeprefix(_OPENAI)
    if model == name or not model:
        raise ModelUnavailable(f"unknown model {name!r}; {_ACCEPTED}")
    given = {key: value for key, value in args.items() if value is not None}
    base_url = (
        given.pop("base_url", None) or _environment("OPENAI_BASE_URL") or _environment("OPENAI_API_BASE")
    )
    key = given.pop("api_key", None) or _environment("OPENAI_API_KEY")
    if base_url and not str(base_url).startswith(("http://", "https://")):
        raise ModelUnavailable(f"base URL {base_url!r} of model {name!r} must begin with http:// or https://")
    if not key and not base_url:
        raise ModelUnavailable(
            f"model {name!r} needs a key: set OPENAI_API_KEY or give api_key, or name another server with "
            "OPENAI_BASE_URL or base_url"
        )
    # Servers of one's own rarely ask for a key, but the client insists on sending one.
    secret = key if isinstance(key, SecretStr) else SecretStr(key or "none")
    options = {"timeout": _TIMEOUT, "max_retries": _RETRIES, **given}
    client = ChatOpenAI if _OWN_CONNECTIONS & given.keys() else _on_any_loop
    try:
        return client(model=model, base_url=base_url, api_key=secret, **options)
    except (ValidationError, TypeError, ValueError) as error:
        raise ModelUnavailable(
            f"model {name!r} cannot be opened with these arguments: {_brief(error)}"
        ) from error


def _on_any_loop(**options: Any) -> ChatOpenAI:
    """A client that may be used on one event loop after another, and leaves no connection open."""
    # A connection belongs to the loop it was opened on: kept alive beyond `asyncio.run`, it fails the first
    # call of the next one. Both are given, since with one alone LangChain overlooks proxies.
    client = openai.DefaultHttpxClient()
    alone = openai.DefaultAsyncHttpxClient(headers={"Connection": "close"})
    model = ChatOpenAI(http_client=client, http_async_client=alone, **options)
    weakref.finalize(model, client.close)
    return model


def model_opener(args: Mapping[str, Any]) -> "Callable[[str | BaseChatModel], BaseChatModel]":
    """What gives the chat model of a name, the same one for the same name; a model is its own.

    Args:
        args: For named models, see `open_model`. Its function raises `ModelUnavailable` as that does.
    """

    @functools.cache
    def named(name: str) -> BaseChatModel:
        return open_model(name, **args)

    def opened(model: str | BaseChatModel) -> BaseChatModel:
        if isinstance(model, BaseChatModel):
            return model
        if not isinstance(model, str):
            raise ModelUnavailable(f"a model cannot be a {type(model).__name__}; {_ACCEPTED}")
        return named(model)

    return opened


def explain_model_error(error: BaseException) -> ModelUnavailable | None:
    """One clear line for an error of a provider's client, None for any other error.

    For the face: `raise explained from error`. Inside the graphs provider errors travel as they are.
    """
    if isinstance(error, ModelUnavailable):
        return error
    if not isinstance(error, openai.APIError):
        return None
    where = f" at {error.request.url.host}" if error.request is not None else ""
    return ModelUnavailable(f"the model server{where} {_trouble(error)}")


def _trouble(error: openai.APIError) -> str:
    """What went wrong and what to do."""
    # APITimeoutError is a kind of APIConnectionError: the narrower one first.
    told: list[tuple[type[openai.APIError], str]] = [
        (openai.APITimeoutError, "did not answer in time; raise `timeout` or check that the model is loaded"),
        (openai.APIConnectionError, "cannot be reached; check the base URL and that the server runs"),
        (openai.AuthenticationError, "refused the key; check OPENAI_API_KEY or api_key"),
        (openai.PermissionDeniedError, "does not allow this key to use this model"),
        (openai.NotFoundError, "knows no such model or path; check the model name and the base URL"),
        (openai.RateLimitError, "is at its rate limit or out of quota; wait, or raise `max_retries`"),
        (openai.InternalServerError, "failed (status 5xx); try again later"),
    ]
    for kind, words in told:
        if isinstance(error, kind):
            return words
    return f"rejected the request: {_brief(error)}"


def _environment(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None


def _brief(error: Exception) -> str:
    """The first line of an error, without values (a key may be among them)."""
    if isinstance(error, ValidationError):
        return "; ".join(
            f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_input=False)
        )
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
