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
from memcycle.core.errors import ModelUnavailable

_RULES = "rules"
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
            f"model {name!r} cannot be opened with these arguments: {first_line(error)}"
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
