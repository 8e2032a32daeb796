"""remember: a chunk of turns becomes raw entries, facts and episodes (AMA 3.1-3.4, MemMA construction)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph

from memcycle.agents.roles import Roles
from memcycle.core.settings import Settings
from memcycle.graph import routes
from memcycle.graph.context import Context, ScopeOf
from memcycle.graph.environment import Env, make_env
from memcycle.graph.organisation import Organisation
from memcycle.graph.remember import nodes
from memcycle.graph.search import widen
from memcycle.graph.states import RememberInput, RememberOutput, RememberState
from memcycle.graph.wiring import Wiring

if TYPE_CHECKING:
    from memcycle.stores.bank import Bank


def build_remember(
    roles: Roles | None = None,
    bank: "Bank | Callable[[], Bank] | None" = None,
    settings: Settings | None = None,
    *,
    scope: ScopeOf | None = None,
    organisation: Organisation | None = None,
) -> CompiledStateGraph[RememberState, Context, RememberInput, RememberOutput]:
    """The remember graph: messages or turns in, `result` and `usage` out.

    Args:
        roles, bank, settings, scope: As those of `build_memory`.
        organisation: How facts become entries.
    """
    return remember_graph(make_env(roles, bank, settings, scope, organisation=organisation))


def remember_graph(env: Env) -> CompiledStateGraph[RememberState, Context, RememberInput, RememberOutput]:
    """The remember graph over an environment, its edges cut as the switches say."""
    switches, asks = env.settings.switches, env.settings.approval.is_asked
    write = "guide" if switches.guidance else "construct"
    graph = Wiring("remember", env, RememberState, takes=RememberInput, gives=RememberOutput)
    graph.add(
        "stage",
        nodes.stage,
        "staged",
        route=routes.after_stage,
        to={"new turns": "plan", "already extracted": "trigger", "nothing new": END},
    )
    graph.add("plan", nodes.plan, "planned", to="search")
    graph.add(
        "search",
        nodes.search,
        "found",
        route=routes.after_search,
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
    graph.add("apply", nodes.apply, "applied", to="trigger")
    graph.add(
        "trigger",
        nodes.trigger,
        "triggered",
        route=routes.after_trigger,
        to={"episode ends": "write_episode", "goes on": "finish"},
    )
    graph.add("write_episode", nodes.write_episode, to="finish")
    graph.add(
        "finish",
        nodes.finish,
        "remembered",
        route=routes.after_finish,
        to={"turns wait": "plan", "all read": END},
    )
    if switches.guidance:
        graph.add("guide", nodes.guide, "guided", to="construct")
    if switches.iterative:
        graph.add("widen", widen, "found", to="search")
    if switches.refresher:
        reviewed = "approve_refresh" if asks else "apply_refresh"
        graph.add("refresh", nodes.refresh, "allowed", to=reviewed)
        graph.add("apply_refresh", nodes.apply_refresh, "applied", to=write)
    if asks:
        graph.add("approve", nodes.approve, "allowed", to="apply")
    if asks and switches.refresher:
        graph.add("approve_refresh", nodes.approve, "allowed", to="apply_refresh")
    return graph.compile()
