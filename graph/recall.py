"""recall: a question becomes evidence and an answer (AMA 3.2-3.3, MemMA retrieval). It never edits memory."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memcycle.agents.roles import Roles
from memcycle.core.settings import Settings
from memcycle.core.theta import Switches
from memcycle.graph.asking import Asking
from memcycle.graph.context import Context, ScopeOf, run_context
from memcycle.graph.environment import Env, make_env
from memcycle.graph.node import node
from memcycle.graph.routes import after_pass, after_reason, after_search, after_think, judge_action
from memcycle.graph.states import RecallInput, RecallOutput, RecallState

if TYPE_CHECKING:
    from memcycle.stores.bank import Bank


def build_recall(
    roles: Roles | None = None,
    bank: "Bank | Callable[[], Bank] | None" = None,
    settings: Settings | None = None,
    *,
    scope: ScopeOf | None = None,
    version: str = "shipped",
) -> CompiledStateGraph[RecallState, Context, RecallInput, RecallOutput]:
    """The recall graph: a question in, `answer` and `usage` out.

    Args:
        roles: Defaults to the rules.
        bank: A bank, or a callable that opens one on first use; default the shared bank of `settings.home`.
        settings: Defaults to the bank's, else to the environment's.
        scope: Scope from a parent's context; default reads `Context`.
        version: Version of the pipeline, recorded on what it writes.
    """
    return recall_graph(make_env(roles, bank, settings, scope, version=version))


def recall_graph(env: Env) -> CompiledStateGraph[RecallState, Context, RecallInput, RecallOutput]:
    """The recall graph over an environment, its edges cut as the switches say."""
    nodes, switches = Asking(env), env.settings.switches
    builder = StateGraph(
        RecallState, context_schema=Context, input_schema=RecallInput, output_schema=RecallOutput
    )
    names = ["listen", "plan", "search", "judge", "answer", "present"]
    names += ["widen", "think", "reason"] if switches.iterative else []
    names += ["settle"] if switches.refresher else []
    names += ["refresh", "apply_refresh"] if switches.refresher and switches.recall_refresh else []
    names += ["approve_refresh"] if "refresh" in names and env.settings.approval.is_asked else []
    for name in names:
        builder.add_node(name, node(name, getattr(nodes, name)))
    builder.add_edge(START, "listen")
    builder.add_edge("listen", "plan")
    builder.add_edge("plan", "search")
    _judge_edges(builder, env)
    if switches.iterative:
        _refine_edges(builder, env)
    builder.add_edge("answer", END)
    builder.add_edge("present", END)
    return builder.compile(name="recall")


Builder = StateGraph[RecallState, Context, RecallInput, RecallOutput]


def _passed(state: RecallState, switches: Switches) -> str:
    if run_context().evidence_only:
        return "evidence only"
    return after_pass(state, always_think=switches.always_think, iterative=switches.iterative)


def _judge_edges(builder: Builder, env: Env) -> None:
    """From search to the Judge, and from its three actions on."""
    switches, theta = env.settings.switches, env.settings.theta

    def found(state: RecallState) -> str:
        if after_search(state) == "no candidates":
            return "evidence only" if run_context().evidence_only else "no candidates"
        return "refined" if state["refinements"] else "candidates"

    def passed(state: RecallState) -> str:
        return _passed(state, switches)

    def action(state: RecallState) -> str:
        chosen = judge_action(state, theta, switches, env.retries)
        return passed(state) if chosen == "Pass" else chosen

    ends: dict[Hashable, str] = {"evidence only": "present", "Pass: sufficient": "answer"}
    searched: dict[Hashable, str] = {
        "candidates": "judge",
        "no candidates": "answer",
        "evidence only": "present",
    }
    actions: dict[Hashable, str] = {}
    if switches.iterative:
        ends["Pass: uncertain"] = "think"
        searched["refined"] = "think"
        actions["Retry"] = "widen"
    if switches.refresher:
        actions["Refresh"] = "settle"
        builder.add_conditional_edges(_settled(builder, env), passed, ends)
    builder.add_conditional_edges("search", found, searched)
    builder.add_conditional_edges("judge", action, {**ends, **actions})


def _settled(builder: Builder, env: Env) -> str:
    """The last node of the Refresh edge: conflicts are only settled, or by switch refreshed at once."""
    if not env.settings.switches.recall_refresh:
        return "settle"
    builder.add_edge("settle", "refresh")
    if env.settings.approval.is_asked:
        builder.add_edge("refresh", "approve_refresh")
        builder.add_edge("approve_refresh", "apply_refresh")
    else:
        builder.add_edge("refresh", "apply_refresh")
    return "apply_refresh"


def _refine_edges(builder: Builder, env: Env) -> None:
    """Retry's widening, and the loop of Meta-Thinker and Query-Reasoner."""

    def thought(state: RecallState) -> str:
        return after_think(state, env.settings.theta.h)

    builder.add_edge("widen", "search")
    builder.add_conditional_edges("think", thought, {"answerable": "answer", "not answerable": "reason"})
    builder.add_conditional_edges("reason", after_reason, {"new query": "search", "nothing left": "answer"})
