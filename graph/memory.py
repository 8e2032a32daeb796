"""memory: a chat turn. It is written down, what is known is recalled, a reply is made, the turn is read."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from pydantic import ValidationError

from memcycle.agents.roles import Roles
from memcycle.core.arguments import checked
from memcycle.core.errors import KEPT, BadInput, first_complaint
from memcycle.core.messages import sent_once
from memcycle.core.settings import Settings
from memcycle.graph.context import Context, ScopeOf, parent_scope, run_context
from memcycle.graph.environment import GraphRun, make_env
from memcycle.graph.node import Inline, Node, nested
from memcycle.graph.recall.graph import recall_graph
from memcycle.graph.remember.chunk import turns_of
from memcycle.graph.remember.graph import remember_graph
from memcycle.graph.routes import after_remember
from memcycle.graph.session.graph import not_ended, session_graph
from memcycle.graph.states import MemoryInput, MemoryState

if TYPE_CHECKING:
    from memcycle.agents.pipeline import Pipeline
    from memcycle.stores.bank import Bank


def stage(state: MemoryState, run: GraphRun) -> dict[str, Any]:
    """Writes down what was said, before anything is asked that may fail; remember reads it."""
    _question(state)  # refuses what has no words
    said, world = sent_once(state["messages"]), run.bank.world
    turns = turns_of(said, run.bank, run.scope, run.settings, now=run.context.now, task=world.new_id())
    run.bank.stage_turns(run.scope, turns, state="unextracted", embed=False)
    return {}


def _question(state: MemoryState) -> dict[str, Any]:
    """The last human message, which is no evidence for itself."""
    asking = [message for message in state["messages"] if isinstance(message, HumanMessage)][-1:]
    text = "".join(str(message.text) for message in asking).strip()
    if not text:
        raise BadInput("memory needs a human message with some words: {'messages': [('user', 'Hello')]}")
    return {"question": text, "seen": asking}


def _question_amid(state: MemoryState) -> dict[str, Any]:
    """The same for a reply that sees all of the thread's messages: none of them need be recalled."""
    return {**_question(state), "seen": state["messages"]}


def _recalled(output: dict[str, Any]) -> dict[str, Any]:
    return {"recalled": {**output["answer"], "usage": output.get("usage") or {}}}


def _remembered(output: dict[str, Any]) -> dict[str, Any]:
    remembered = {**output["result"], "usage": output.get("usage") or {}}
    # Marked, so that it is never taken for something that was said.
    told = [AIMessage(text, additional_kwargs={"memcycle": "told"}) for text in remembered["forgetting"]]
    return {"remembered": remembered, "messages": told}


def _ending(state: MemoryState) -> dict[str, Any]:
    """The session ends where that is asked for; else one of the user's others does, if it has gone idle."""
    return {"idle": not state.get("end_session")}


def _ended(output: dict[str, Any]) -> dict[str, Any]:
    result = output["result"]
    return {
        "ended": {**result, "usage": output.get("usage") or {}} if result["session"] else {},
        "end_session": False,
    }


def _not_ended(state: MemoryState, error: Exception) -> dict[str, Any]:
    """What was asked for fails the run; that another session had gone idle does not."""
    if state.get("end_session"):
        raise error
    remembered = state["remembered"]
    warnings = [*remembered["warnings"], not_ended(error)]
    return {"ended": {}, "remembered": {**remembered, "warnings": warnings}}


def reply(state: MemoryState) -> dict[str, Any]:
    """The recalled answer to a question; to a statement, that it was taken in."""
    recalled = state["recalled"]
    asks = state["recalled"]["question"].rstrip().endswith(("?", "？")) or bool(recalled["answerable"])
    return {"messages": [AIMessage(recalled["answer"] if asks else "Noted.")]}


_RECALLED_ANSWER = reply
"""The reply as shipped: it reads no message but the last."""


@checked
def build_memory(
    roles: Roles | None = None,
    bank: "Bank | Callable[[], Bank] | None" = None,
    settings: Settings | None = None,
    *,
    reply: Runnable[MemoryState, dict[str, Any]] | Callable[[MemoryState], dict[str, Any]] = reply,
    scope: ScopeOf | None = None,
    pipeline: "Pipeline | Path | str | None" = None,
) -> CompiledStateGraph[MemoryState, Context, MemoryInput, MemoryState]:
    """The parent graph: messages in; recalled evidence, a reply and what was remembered out.

    Args:
        roles: Defaults to the rules.
        bank: A bank, or a callable that opens one on first use; default the shared bank of `settings.home`.
        settings: Defaults to the bank's, else to the environment's.
        reply: Your own node: reads `messages` and `recalled` (evidence and answer), returns
            `{"messages": [...]}`. Default: the recalled answer.
        scope: Scope from a parent's context; default reads `Context`.
        pipeline: A pipeline, or its folder: its theta and switches in place of those of the settings, and
            its roles where none are given.
    """
    env = make_env(roles, bank, settings, scope, pipeline)
    builder = StateGraph(MemoryState, context_schema=Context, input_schema=MemoryInput)
    builder.add_node("stage", Node("stage", stage, run=env.run))
    asked = _question if reply is _RECALLED_ANSWER else _question_amid
    builder.add_node("recall", nested(asked, recall_graph(env), _recalled))
    builder.add_node(
        "reply", reply if isinstance(reply, Runnable) else Node("reply", reply, failed=lambda *_: KEPT)
    )
    heard = remember_graph(env)
    builder.add_node(
        "remember", nested(lambda state: {"messages": sent_once(state["messages"])}, heard, _remembered)
    )
    builder.add_node("session", nested(_ending, session_graph(env), _ended, _not_ended))
    builder.add_edge(START, "stage")
    builder.add_edge("stage", "recall")
    builder.add_edge("recall", "reply")
    builder.add_edge("reply", "remember")
    label = "session ends, or others may be idle"
    builder.add_conditional_edges("remember", Inline(after_remember), {label: "session"})
    builder.add_edge("session", END)
    return builder.compile(name="memory")


Read = Mapping[str, str] | Callable[[Any], Mapping[str, Any]]
"""What our graph is given: its keys by the parent's keys they come from, or a function of the state."""

Write = Mapping[str, str] | Callable[[dict[str, Any]], dict[str, Any]]
"""What the parent gets: its keys by our keys they come from, or a function of our output."""

OURS = ("user", "workspace", "session")


@checked
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
    input_of, update_of = (
        _mapped(read, "the parent's state"),
        _mapped(write, "the output of the embedded graph"),
    )

    def context(config: RunnableConfig) -> Context:
        owned = parent_scope(get_runtime().context, config, scope)
        for_run = run_context().model_dump(exclude_unset=True, exclude=set(OURS))
        return Context(**{**fixed, **for_run, **owned.model_dump()})

    def run(state: Any, config: RunnableConfig) -> dict[str, Any]:
        return update_of(graph.invoke(input_of(state), config, context=context(config)))

    async def arun(state: Any, config: RunnableConfig) -> dict[str, Any]:
        return update_of(await graph.ainvoke(input_of(state), config, context=context(config)))

    return RunnableLambda(run, afunc=arun, name=graph.name)


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    named = [key for key in OURS if key in options]
    if named:
        raise BadInput(f"whose memory it is comes from scope, not from the option {named[0]!r}")
    try:
        Context(**options)
    except ValidationError as error:
        raise BadInput(f"an option does not fit: {first_complaint(error)}") from error
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
