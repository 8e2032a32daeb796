"""Whose memory a run is about, where the run is of a graph that is not ours."""

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from pydantic import ValidationError

from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.graph.context import MAIN_SESSION, ScopeOf

USER_KEYS = ("user", "user_id")
SESSION_KEYS = ("session", "session_id")


def parent_scope(
    context: Any,
    config: RunnableConfig,
    scope_of: ScopeOf | None = None,
    *,
    user: str | None = None,
    workspace: str = "default",
) -> Scope:
    """The scope, with its session, of a run of somebody else's graph; never from what a model says.

    Args:
        context: The run's context, of any type, or None.
        config: The run's configuration; its thread id is the session where none is named.
        scope_of: Gives the scope from `context`; inside it `langgraph.config.get_config()` gives `config`.
            Without it the context, then the `configurable` part of `config`, is asked for `user` or
            `user_id`, `workspace`, and `session` or `session_id`.
        user: Whose memory, where nobody is named. workspace: likewise.

    Raises:
        BadInput: nobody is named, or with a name that cannot be one.
    """
    configurable = config.get("configurable") or {}
    session = str(configurable.get("thread_id") or MAIN_SESSION)
    try:
        scope = (
            Scope.model_validate(scope_of(context))
            if scope_of is not None
            else _named(context, configurable, user, workspace)
        )
        return scope if scope.session else scope.within(session)
    except ValidationError as error:
        raise BadInput(f"the scope does not fit: {error.errors()[0]['msg']}") from error


def _named(context: Any, configurable: Mapping[str, Any], user: str | None, workspace: str) -> Scope:
    named = _first(USER_KEYS, context, configurable)
    if named is None:
        named = user
    if named is None:
        raise BadInput(
            "no user is named: run the graph with context={'user': ...} or with a 'user_id' in its "
            "configurable, or pass scope=..., which gives the scope from the context"
        )
    return Scope(
        user=named,
        workspace=_first(("workspace",), context, configurable) or workspace,
        session=_first(SESSION_KEYS, context, configurable),
    )


def _first(keys: tuple[str, ...], *holders: Any) -> Any:
    """The first value under one of the keys, holder after holder; an empty text is none."""
    for holder in holders:
        for key in keys:
            value = holder.get(key) if isinstance(holder, Mapping) else getattr(holder, key, None)
            if value is not None and value != "":
                return value
    return None
