"""session: what happens when a session ends.

Turns that a failed or broken-off run left waiting are remembered, the last episode is written, then all
of it is committed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memcycle.agents.roles import Roles
from memcycle.core.edit import Edit
from memcycle.core.settings import Settings
from memcycle.graph.construct import added
from memcycle.graph.context import Context, ScopeOf
from memcycle.graph.environment import Env, make_env
from memcycle.graph.node import Step, nested, node
from memcycle.graph.remember import remember_graph
from memcycle.graph.routes import after_waiting
from memcycle.graph.segments import writer_calls, written
from memcycle.graph.states import SessionInput, SessionOutput, SessionState

if TYPE_CHECKING:
    from memcycle.stores.bank import Bank

SHORTEST_EPISODE = 2
"""Turns of the shortest episode: a single turn is its own summary."""


class _Session:
    """The nodes of session, over one environment."""

    def __init__(self, env: Env) -> None:
        self.env = env

    def find_waiting(self, _: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Whether turns wait; starts a run's counts anew."""
        waiting = [turn.id for turn in self.env.bank().unprocessed(self.env.scope(config))]
        return {"waiting": waiting, "episodes": [], "result": {}, "warnings": [], "usage": {}}

    def close_episode(self, state: SessionState, config: RunnableConfig) -> Step:
        """The Episode writer summarises what is left of the session."""
        scope = self.env.scope(config)
        segment = self.env.bank().open_segment(scope)
        end = segment[-1].position if segment else None
        if len(segment) < SHORTEST_EPISODE:
            return {"episodes": [], "close_at": end}
        replies = yield writer_calls(self.env, [segment])
        entries, warnings = written([segment], replies, self.env.made("episode_writer", scope))
        return {"episodes": entries, "close_at": end, "warnings": [*state["warnings"], *warnings]}

    def apply_episode(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Writes it, staged."""
        edits = [
            Edit.model_validate({"op": "ADD", "entry": entry, "actor": "episode_writer"})
            for entry in state["episodes"]
        ]
        applied = self.env.bank().apply(self.env.scope(config), edits, close_segment_at=state["close_at"])
        return {"episodes": [], "result": {"episodes": added(applied, edits), "warnings": state["warnings"]}}

    def commit(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Staged becomes active: one ledger transaction, then the index."""
        committed = self.env.bank().commit_session(self.env.scope(config))
        return {"result": {**state["result"], "committed": committed}}


def build_session(
    roles: Roles | None = None,
    bank: "Bank | Callable[[], Bank] | None" = None,
    settings: Settings | None = None,
    *,
    scope: ScopeOf | None = None,
    version: str = "shipped",
) -> CompiledStateGraph[SessionState, Context, SessionInput, SessionOutput]:
    """The session graph: run once when the session of the context ends; `result` and `usage` out.

    Args:
        roles: Defaults to the rules.
        bank: A bank, or a callable that opens one on first use; default the shared bank of `settings.home`.
        settings: Defaults to the bank's, else to the environment's.
        scope: Scope from a parent's context; default reads `Context`.
        version: Version of the pipeline, recorded on entries.
    """
    return session_graph(make_env(roles, bank, settings, scope, version=version))


def _waiting(_: SessionState) -> dict[str, Any]:
    return {}


def _remembered(output: dict[str, Any]) -> dict[str, Any]:
    return {"warnings": output["result"]["warnings"], "usage": output.get("usage") or {}}


def session_graph(env: Env) -> CompiledStateGraph[SessionState, Context, SessionInput, SessionOutput]:
    """The session graph over an environment."""
    nodes = _Session(env)
    builder = StateGraph(
        SessionState, context_schema=Context, input_schema=SessionInput, output_schema=SessionOutput
    )
    for name in ("find_waiting", "close_episode", "apply_episode", "commit"):
        builder.add_node(name, node(name, getattr(nodes, name)))
    builder.add_node("catch_up", nested(_waiting, remember_graph(env), _remembered))
    builder.add_edge(START, "find_waiting")
    builder.add_conditional_edges(
        "find_waiting", after_waiting, {"turns wait": "catch_up", "none wait": "close_episode"}
    )
    builder.add_edge("catch_up", "close_episode")
    builder.add_edge("close_episode", "apply_episode")
    builder.add_edge("apply_episode", "commit")
    builder.add_edge("commit", END)
    return builder.compile(name="session")
