"""Chat models by name."""

import os
import weakref
from collections.abc import Mapping
from typing import Any

import openai
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from pydantic import SecretStr, ValidationError

from memcycle.agents.provider_errors import first_line
from memcycle.core.errors import ModelUnavailable, first_complaint

_RULES = "rules"
_OPENAI = "openai:"
_TIMEOUT = 60.0
_RETRIES = 2
_OWN_CONNECTIONS = {"http_client", "http_async_client", "http_socket_options", "openai_proxy"}
"""Arguments by which a caller says how to connect."""
_ACCEPTED = (
    "accepted are 'rules', 'openai:NAME' (any OpenAI-compatible server), 'PROVIDER:NAME' as LangChain's "
    "init_chat_model takes it, or a LangChain chat model object"
)


def open_model(name: str, **args: Any) -> BaseChatModel:
    """A chat model by name.

    Args:
        name: `openai:NAME`, or whatever LangChain's `init_chat_model` takes, such as `anthropic:NAME`: that
            wants the package `langchain` and the provider's own.
        **args: For the model's class. Of `openai:NAME`, `base_url` and `api_key` come from here, else from
            `OPENAI_BASE_URL` (or `OPENAI_API_BASE`) and `OPENAI_API_KEY`; `timeout` is 60 seconds and
            `max_retries` 2 unless given. Others get what is given, and read their own variables.

    Raises:
        ModelUnavailable: an unknown name, a missing package or key, a base URL or an argument that cannot be
            used.
    """
    given = {key: value for key, value in args.items() if value is not None}
    if not name.strip() or name.endswith(":"):
        raise _unknown(name)
    model = name.removeprefix(_OPENAI)
    return _of_langchain(name, given) if model == name else _of_openai(name, model, given)


def _of_openai(name: str, model: str, given: Mapping[str, Any]) -> BaseChatModel:
    """The model of OpenAI, or of a server that speaks as theirs do."""
    base_url = given.get("base_url") or _environment("OPENAI_BASE_URL") or _environment("OPENAI_API_BASE")
    key = given.get("api_key") or _environment("OPENAI_API_KEY")
    if base_url and not str(base_url).startswith(("http://", "https://")):
        raise ModelUnavailable(f"base URL {base_url!r} of model {name!r} must begin with http:// or https://")
    if not key and not base_url:
        raise ModelUnavailable(
            f"model {name!r} needs a key: set OPENAI_API_KEY or give api_key, or name another server with "
            "OPENAI_BASE_URL or base_url"
        )
    # Servers of one's own rarely ask for a key, but the client insists on sending one.
    secret = key if isinstance(key, SecretStr) else SecretStr(key or "none")
    options = {"timeout": _TIMEOUT, "max_retries": _RETRIES, **given, "base_url": base_url, "api_key": secret}
    client = ChatOpenAI if _OWN_CONNECTIONS & given.keys() else _on_any_loop
    try:
        return client(model=model, **options)
    except (ValidationError, TypeError, ValueError) as error:
        raise _misfit(name, error) from error


def _of_langchain(name: str, given: Mapping[str, Any]) -> BaseChatModel:
    """The model that LangChain opens under this name, with what is given and nothing else.

    A name without provider that LangChain takes for OpenAI's is opened as `openai:NAME` is.
    """
    bare = ":" not in name
    try:
        # No dependency of memcycle: who names another provider brings it, with the provider's package.
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        if bare:
            raise _unknown(name) from error
        raise ModelUnavailable(
            f"model {name!r} needs the package langchain, and that of its provider: pip install langchain "
            f"({first_line(error)})"
        ) from error
    try:
        model: BaseChatModel = init_chat_model(name, **given)
    except ImportError as error:
        # LangChain names the package and its install line.
        raise ModelUnavailable(
            f"model {name!r} needs a package that is missing: {first_line(error)}"
        ) from error
    except Exception as error:  # providers' classes refuse in kinds of their own
        if bare and isinstance(error, openai.OpenAIError):  # it wants a key
            return _of_openai(name, name, given)
        if type(error) is ValueError and "provider" in first_line(error):
            raise _unknown(name) from error
        raise _misfit(name, error) from error
    return _of_openai(name, name, given) if bare and type(model) is ChatOpenAI else model


def _unknown(name: str) -> ModelUnavailable:
    return ModelUnavailable(f"unknown model {name!r}; {_ACCEPTED}")


def _misfit(name: str, error: Exception) -> ModelUnavailable:
    why = first_complaint(error) if isinstance(error, ValidationError) else first_line(error)
    return ModelUnavailable(f"model {name!r} cannot be opened with these arguments: {why}")


def _on_any_loop(**options: Any) -> ChatOpenAI:
    """A client that may be used on one event loop after another, and leaves no connection open."""
    # A connection belongs to the loop it was opened on: kept alive beyond `asyncio.run`, it fails the first
    # call of the next one. Both are given, since with one alone LangChain overlooks proxies.
    client = openai.DefaultHttpxClient()
    alone = openai.DefaultAsyncHttpxClient(headers={"Connection": "close"})
    model = ChatOpenAI(http_client=client, http_async_client=alone, **options)
    weakref.finalize(model, client.close)
    return model


def open_models(
    specs: Mapping[str, str | BaseChatModel], args: Mapping[str, Any]
) -> dict[str, BaseChatModel]:
    """The chat model of each role that has one; roles of one name share it.

    Args:
        specs: By role a chat model, its name, or `rules` for none.
        args: For named models, see `open_model`.

    Raises:
        ModelUnavailable: as `open_model`; also something that is neither.
    """
    wrong = next((spec for spec in specs.values() if not isinstance(spec, str | BaseChatModel)), None)
    if wrong is not None:
        raise ModelUnavailable(f"a model cannot be a {type(wrong).__name__}; {_ACCEPTED}")
    names = {role: spec for role, spec in specs.items() if isinstance(spec, str) and spec != _RULES}
    named = {name: open_model(name, **args) for name in set(names.values())}
    given = {role: spec for role, spec in specs.items() if isinstance(spec, BaseChatModel)}
    return given | {role: named[name] for role, name in names.items()}


def _environment(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None
