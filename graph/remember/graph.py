"""remember: a chunk of turns becomes raw entries, facts and episodes (AMA 3.1-3.4, MemMA construction)."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import Runnable
from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph

from memcycle.agents.roles import Roles
from memcycle.core.arguments import checked
from memcycle.core.settings import Settings
from memcycle.graph import routes
from memcycle.graph.approval import asking
from memcycle.graph.context import Context, ScopeOf
from memcycle.graph.environment import Env, make_env
from memcycle.graph.remember import nodes
from memcycle.graph.search import widen
from memcycle.graph.states import RememberInput, RememberOutput, RememberState
from memcycle.graph.wiring import Wiring

if TYPE_CHECKING:
    from memcycle.agents.pipeline import Pipeline
    from memcycle.stores.bank import Bank


@checked
def build_remember(
    roles: Roles | None = None,
    bank: "Bank | Callable[[], Bank] | None" = None,
    settings: Settings | None = None,
    *,
    scope: ScopeOf | None = None,
    pipeline: "Pipeline | Path | str | None" = None,
) -> CompiledStateGraph[RememberState, Context, RememberInput, RememberOutput]:
    """The remember graph: messages or turns in, `result` and `usage` out; arguments as of `build_memory`."""
    # Loaded here, since a session that ends remembers what waits.
    from memcycle.graph.session.graph import ends_idle

    env = make_env(roles, bank, settings, scope, pipeline)
    return remember_graph(env, then=ends_idle(env))


def remember_graph(
    env: Env, *, takes: type = RememberInput, then: Runnable[Any, Any] | None = None
) -> CompiledStateGraph[RememberState, Context, RememberInput, RememberOutput]:
    """The remember graph over an environment, its edges cut as the switches say.

    Args:
        takes: What is given it. then: the node `session`, which comes after all else.
    """
    switches, asks = env.settings.switches, env.settings.approval.is_asked
    idle = END if then is None else "session"
    write = "guide" if switches.guidance else "construct"
    graph = Wiring("remember", env, RememberState, takes=takes, gives=RememberOutput, failed=nodes.let_go)
    graph.add(
        "stage",
        nodes.stage,
        "staged",
        route=routes.after_stage,
        to={
            "new turns": "plan",
            "already extracted": "trigger",
            "window open": END,
            "nothing new": END,
            "others are idle": idle,
        },
    )
    graph.add("plan", nodes.plan, "planned", to="search")
    graph.add(
        "search",
        nodes.search,
        "found",
        route=routes.whether("candidates", "candidates", "no candidates"),
        to={"candidates": "judge", "no candidates": write},
    )
    graph.add(
        "judge",
        nodes.judge,
        "judged",
        route=routes.judge_action,
        why=routes.judge_reason,
        to={"Pass": write, "Retry": "widen", "Refresh": "refresh"},
    )
    graph.add(
        "construct",
        nodes.construct,
        "drafted",
        route=routes.after_construct,
        to={"covered": "check", "uncovered": "reextract"},
    )
    graph.add("reextract", nodes.reextract, "drafted", to="check")
    graph.add("check", nodes.check, "allowed", to="approve" if asks else "apply")
    graph.add("apply", nodes.apply if asks else asking(nodes.approve, nodes.apply), "applied", to="trigger")
    graph.add(
        "trigger",
        nodes.trigger,
        "triggered",
        route=routes.whether("episodes", "episode ends", "goes on"),
        to={"episode ends": "write_episode", "goes on": "finish"},
    )
    graph.add("write_episode", nodes.write_episode, to="finish")
    graph.add(
        "finish",
        nodes.finish,
        "remembered",
        route=routes.after_finish,
        to={"turns wait": "plan", "all read": END, "others are idle": idle},
    )
    if then is not None:
        graph.add("session", then, to=END)
    if switches.guidance:
        graph.add("guide", nodes.guide, "guided", to="construct")
    if switches.iterative:
        graph.add("widen", widen, "found", to="search")
    if switches.refresher:
        reviewed = "approve_refresh" if asks else "apply_refresh"
        graph.add("refresh", nodes.refresh, "allowed", to=reviewed)
        refreshed = nodes.apply_refresh if asks else asking(nodes.approve, nodes.apply_refresh)
        graph.add("apply_refresh", refreshed, "applied", to=write)
    if asks:
        graph.add("approve", nodes.approve, "allowed", to="apply")
    if asks and switches.refresher:
        graph.add("approve_refresh", nodes.approve, "allowed", to="apply_refresh")
    return graph.compile()
