"""recall: a question becomes evidence and an answer (AMA 3.2-3.3, MemMA retrieval). It never edits memory."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memcycle.agents.roles import Roles
from memcycle.core.settings import Settings
from memcycle.core.theta import Switches, Theta
from memcycle.graph.asking import Asking
from memcycle.graph.context import Context, ScopeOf, run_context
from memcycle.graph.environment import Env, make_env
from memcycle.graph.inline import inline
from memcycle.graph.node import RouteOf, node
from memcycle.graph.routes import (
    after_answer,
    after_pass,
    after_plan,
    after_reason,
    after_reflect,
    after_search,
    after_think,
    before_search,
    judge_action,
    judge_reason,
)
from memcycle.graph.states import RecallInput, RecallOutput, RecallState
from memcycle.graph.telling import Route

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
    nodes, ways, switches = Asking(env), _Ways(env), env.settings.switches
    builder = StateGraph(
        RecallState, context_schema=Context, input_schema=RecallInput, output_schema=RecallOutput
    )
    names = ["listen", "plan", "decompose", "swap", "search", "judge", "answer", "present", "verify"]
    names += ["widen", "think", "reason", "reflect"] if switches.iterative else []
    names += ["settle"] if switches.refresher else []
    names += ["refresh", "apply_refresh"] if switches.refresher and switches.recall_refresh else []
    names += ["approve_refresh"] if "refresh" in names and env.settings.approval.is_asked else []
    for name in names:
        builder.add_node(name, node(name, getattr(nodes, name), graph="recall", route=ways.told(name)))
    builder.add_edge(START, "listen")
    builder.add_edge("listen", "plan")
    _search_edges(builder, ways)
    _judge_edges(builder, env, ways)
    if switches.iterative:
        _refine_edges(builder, ways)
    _answer_edges(builder, env, ways)
    builder.add_edge("present", END)
    return builder.compile(name="recall")


Builder = StateGraph[RecallState, Context, RecallInput, RecallOutput]


_NEW_QUERY: dict[Hashable, str] = {"new query": "search", "new query, entity swap": "swap"}


class _Ways:
    """Where recall goes next: the routes with the theta of the run and the settings they depend on."""

    def __init__(self, env: Env) -> None:
        self._env, self._switches = env, env.settings.switches

    def _theta(self, state: RecallState) -> Theta:
        return self._env.theta_of(state.get("category"))

    def planned(self, state: RecallState) -> str:
        return after_plan(state, self._theta(state))

    def asked(self, state: RecallState) -> str:
        return before_search(self._theta(state))

    def found(self, state: RecallState) -> str:
        if after_search(state) == "no candidates":
            return "evidence only" if run_context().evidence_only else "no candidates"
        if state.get("reflections"):
            return "reflected"
        return "refined" if state["refinements"] else "candidates"

    def passed(self, state: RecallState) -> str:
        if run_context().evidence_only:
            return "evidence only"
        switches = self._switches
        return after_pass(state, always_think=switches.always_think, iterative=switches.iterative)

    def action(self, state: RecallState) -> str:
        chosen = judge_action(state, *self._judging(state))
        return self.passed(state) if chosen == "Pass" else chosen

    def thought(self, state: RecallState) -> str:
        return after_think(state, self._theta(state).h)

    def reasoned(self, state: RecallState) -> str:
        return after_reason(state, self._theta(state))

    def answered(self, state: RecallState) -> str:
        return after_answer(state, self._theta(state), iterative=self._switches.iterative)

    def reflected(self, state: RecallState) -> str:
        return after_reflect(state, self._theta(state))

    def told(self, name: str) -> RouteOf | None:
        """For the nodes whose choice of an edge is streamed: the edge and the reason."""
        return {"judge": self._judged, "think": lambda state: Route(self.thought(state))}.get(name)

    def _judging(self, state: RecallState) -> tuple[Theta, Switches, int]:
        theta = self._theta(state)
        return theta, self._switches, self._env.retries(theta)

    def _judged(self, state: RecallState) -> Route:
        return Route(self.action(state), judge_reason(state, *self._judging(state)))


def _search_edges(builder: Builder, ways: _Ways) -> None:
    """From the plan to the search, by the parts of the question and by the query without names."""
    asked: dict[Hashable, str] = {"entity swap": "swap", "as asked": "search"}
    builder.add_conditional_edges("plan", inline(ways.planned), {"sub-questions": "decompose", **asked})
    builder.add_conditional_edges("decompose", inline(ways.asked), asked)
    builder.add_edge("swap", "search")


def _judge_edges(builder: Builder, env: Env, ways: _Ways) -> None:
    """From search to the Judge, and from its three actions on."""
    switches = env.settings.switches
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
        searched["reflected"] = "answer"
        actions["Retry"] = "widen"
    if switches.refresher:
        actions["Refresh"] = "settle"
        builder.add_conditional_edges(_settled(builder, env), inline(ways.passed), ends)
    builder.add_conditional_edges("search", inline(ways.found), searched)
    builder.add_conditional_edges("judge", inline(ways.action), {**ends, **actions})


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


def _refine_edges(builder: Builder, ways: _Ways) -> None:
    """Retry's widening, and the loop of Meta-Thinker and Query-Reasoner."""
    builder.add_edge("widen", "search")
    builder.add_conditional_edges(
        "think", inline(ways.thought), {"answerable": "answer", "not answerable": "reason"}
    )
    builder.add_conditional_edges("reason", inline(ways.reasoned), {**_NEW_QUERY, "nothing left": "answer"})


def _answer_edges(builder: Builder, env: Env, ways: _Ways) -> None:
    """From an answer to the end, or to a further search and a second look where it is unsure."""
    ends: dict[Hashable, str] = {"settled": END, "unsure: verify": "verify"}
    if env.settings.switches.iterative:
        builder.add_conditional_edges("answer", inline(ways.answered), {**ends, "unsure: reflect": "reflect"})
        builder.add_conditional_edges("reflect", inline(ways.reflected), {**_NEW_QUERY, **ends})
    else:
        builder.add_conditional_edges("answer", inline(ways.answered), ends)
    builder.add_edge("verify", END)
