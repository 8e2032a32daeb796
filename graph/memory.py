"""memory: a chat turn. What is known is recalled, a reply is made, the turn is remembered."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memcycle.agents.roles import Roles
from memcycle.core.errors import BadInput
from memcycle.core.settings import Settings
from memcycle.graph.context import Context, ScopeOf
from memcycle.graph.environment import Env, make_env
from memcycle.graph.inline import inline
from memcycle.graph.node import nested, node
from memcycle.graph.recall import recall_graph
from memcycle.graph.remember import remember_graph
from memcycle.graph.routes import after_remember
from memcycle.graph.session import session_graph
from memcycle.graph.states import MemoryInput, MemoryState

if TYPE_CHECKING:
    from memcycle.stores.bank import Bank


def _asked(messages: list[AnyMessage]) -> str:
    """The words of the last human message."""
    last = next((message for message in reversed(messages) if isinstance(message, HumanMessage)), None)
    text = str(last.text).strip() if last is not None else ""
    if not text:
        raise BadInput("memory needs a human message with some words: {'messages': [('user', 'Hello')]}")
    return text


def _question(state: MemoryState) -> dict[str, Any]:
    return {"question": _asked(state["messages"])}


def _recalled(output: dict[str, Any]) -> dict[str, Any]:
    return {"recalled": {**output["answer"], "usage": output.get("usage") or {}}}


def _conversation(state: MemoryState) -> dict[str, Any]:
    return {"messages": state["messages"]}


def _remembered(output: dict[str, Any]) -> dict[str, Any]:
    return {"remembered": {**output["result"], "usage": output.get("usage") or {}}}


def _nothing(_: MemoryState) -> dict[str, Any]:
    return {}


def _ended(output: dict[str, Any]) -> dict[str, Any]:
    return {"ended": {**output["result"], "usage": output.get("usage") or {}}, "end_session": False}


def reply(state: MemoryState) -> dict[str, Any]:
    """The recalled answer to a question; to a statement, that it was taken in."""
    recalled = state["recalled"]
    asks = state["recalled"]["question"].rstrip().endswith(("?", "？")) or bool(recalled["answerable"])
    return {"messages": [AIMessage(recalled["answer"] if asks else "Noted.")]}


def build_memory(
    roles: Roles | None = None,
    bank: "Bank | Callable[[], Bank] | None" = None,
    settings: Settings | None = None,
    *,
    reply: Runnable[MemoryState, dict[str, Any]] | Callable[[MemoryState], dict[str, Any]] = reply,
    scope: ScopeOf | None = None,
    version: str = "shipped",
) -> CompiledStateGraph[MemoryState, Context, MemoryInput, MemoryState]:
    """The parent graph: messages in; recalled evidence, a reply and what was remembered out.

    Args:
        roles: Defaults to the rules.
        bank: A bank, or a callable that opens one on first use; default the shared bank of `settings.home`.
        settings: Defaults to the bank's, else to the environment's.
        reply: Your own node: reads `messages` and `recalled` (evidence and answer), returns
            `{"messages": [...]}`. Default: the recalled answer.
        scope: Scope from a parent's context; default reads `Context`.
        version: Version of the pipeline, recorded on entries.
    """
    env = make_env(roles, bank, settings, scope, version=version)
    return memory_graph(env, reply)


def memory_graph(
    env: Env, reply: Runnable[MemoryState, dict[str, Any]] | Callable[[MemoryState], dict[str, Any]] = reply
) -> CompiledStateGraph[MemoryState, Context, MemoryInput, MemoryState]:
    """The parent graph over an environment, the other three nested in it."""
    builder = StateGraph(MemoryState, context_schema=Context, input_schema=MemoryInput)
    builder.add_node("recall", nested(_question, recall_graph(env), _recalled))
    builder.add_node("reply", reply if isinstance(reply, Runnable) else node("reply", reply))
    builder.add_node("remember", nested(_conversation, remember_graph(env), _remembered))
    builder.add_node("session", nested(_nothing, session_graph(env), _ended))
    builder.add_edge(START, "recall")
    builder.add_edge("recall", "reply")
    builder.add_edge("reply", "remember")
    builder.add_conditional_edges(
        "remember", inline(after_remember), {"session ends": "session", "session goes on": END}
    )
    builder.add_edge("session", END)
    return builder.compile(name="memory")
