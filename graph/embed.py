"""A graph of ours as a node of a graph with a state and a context of its own."""

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from pydantic import ValidationError

from memcycle.core.errors import BadInput
from memcycle.graph.context import Context, ScopeOf, run_context
from memcycle.graph.scoping import parent_scope

Read = Mapping[str, str] | Callable[[Any], Mapping[str, Any]]
"""What our graph is given: its keys by the parent's keys they come from, or a function of the state."""

Write = Mapping[str, str] | Callable[[dict[str, Any]], dict[str, Any]]
"""What the parent gets: its keys by our keys they come from, or a function of our output."""

OURS = ("user", "workspace", "session")


def embed(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    *,
    read: Read,
    write: Write,
    scope: ScopeOf | None = None,
    **options: Any,
) -> Runnable[Any, dict[str, Any]]:
    """A node that runs one of our graphs inside a parent: sync and async, streamed and drawn as nested.

    The parent's checkpointer, thread, interrupts and callbacks are inherited; no state key is shared, so
    that no reducer of the parent's sees ours. Each node has its own graph, and so its own bank.

    Example:
        >>> parent.add_node("recall", embed(
        ...     build_recall(bank=bank), read={"question": "ask"}, write={"known": "answer"},
        ...     scope=lambda context: {"user": context.customer}, evidence_only=True))

    Args:
        graph: From `build_remember`, `build_recall`, `build_session` or `build_memory`, without a `scope`.
        read: `{our key: parent's key}`, or a function from the parent's state to our input.
        write: `{parent's key: our key}`, or a function from our output to a partial parent's state.
        scope: Gives the scope, or its fields, from the parent's context; see `parent_scope`.
        **options: Fields of `Context` for every run of this node, such as `k` or `evidence_only`. A parent
            whose context is a `Context` changes them for a run.

    Raises:
        BadInput: an option that is no field of `Context`, or names whose memory it is; at run time, a key
            that is missing, or a scope that cannot be one.
    """
    fixed = _checked(options)
    given, taken = _mapped(read, "the parent's state"), _mapped(write, "the output of the embedded graph")

    def context(config: RunnableConfig) -> Context:
        owned = parent_scope(get_runtime().context, config, scope)
        for_run = run_context().model_dump(exclude_unset=True, exclude=set(OURS))
        return Context(**{**fixed, **for_run, **owned.model_dump()})

    def run(state: Any, config: RunnableConfig) -> dict[str, Any]:
        return taken(graph.invoke(given(state), config, context=context(config)))

    async def arun(state: Any, config: RunnableConfig) -> dict[str, Any]:
        return taken(await graph.ainvoke(given(state), config, context=context(config)))

    return RunnableLambda(run, afunc=arun, name=graph.name)


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    named = [key for key in OURS if key in options]
    if named:
        raise BadInput(f"whose memory it is comes from scope, not from the option {named[0]!r}")
    try:
        Context(**options)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInput(f"the option {first['loc'][0]!r} does not fit: {first['msg']}") from error
    return dict(options)


def _mapped(how: Mapping[str, str] | Callable[[Any], Any], source: str) -> Callable[[Any], dict[str, Any]]:
    if callable(how):
        return how
    pairs = dict(how)
    return lambda state: {key: _value(state, name, source) for key, name in pairs.items()}


def _value(state: Any, name: str, source: str) -> Any:
    """A key of a state that is a dict, a dataclass or a pydantic model."""
    try:
        return state[name] if isinstance(state, Mapping) else getattr(state, name)
    except (KeyError, AttributeError):
        raise BadInput(f"{source} has no {name!r}") from None
