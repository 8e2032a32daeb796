"""recall: a question becomes evidence and an answer (AMA 3.2-3.3, MemMA retrieval). It never edits memory."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph

from memcycle.agents.roles import Roles
from memcycle.core.arguments import checked
from memcycle.core.settings import Settings
from memcycle.graph import routes
from memcycle.graph.approval import asking
from memcycle.graph.context import Context, ScopeOf
from memcycle.graph.environment import Env, make_env
from memcycle.graph.recall import nodes
from memcycle.graph.search import widen
from memcycle.graph.states import RecallInput, RecallOutput, RecallState
from memcycle.graph.wiring import Wiring

if TYPE_CHECKING:
    from memcycle.agents.pipeline import Pipeline
    from memcycle.stores.bank import Bank

NEW_QUERY = {"new query": "search", "new query, entity swap": "swap"}
PASSED = {"evidence only": "present", "Pass: sufficient": "answer", "Pass: uncertain": "think"}


@checked
def build_recall(
    roles: Roles | None = None,
    bank: "Bank | Callable[[], Bank] | None" = None,
    settings: Settings | None = None,
    *,
    scope: ScopeOf | None = None,
    pipeline: "Pipeline | Path | str | None" = None,
) -> CompiledStateGraph[RecallState, Context, RecallInput, RecallOutput]:
    """The recall graph: a question in, `answer` and `usage` out. Arguments are those of `build_memory`."""
    return recall_graph(make_env(roles, bank, settings, scope, pipeline))


def recall_graph(env: Env) -> CompiledStateGraph[RecallState, Context, RecallInput, RecallOutput]:
    """The recall graph over an environment, its edges cut as the switches say."""
    switches, asks = env.settings.switches, env.settings.approval.is_asked
    refreshes = switches.refresher and switches.recall_refresh
    graph = Wiring("recall", env, RecallState, takes=RecallInput, gives=RecallOutput)
    graph.add("listen", nodes.listen, to="plan")
    graph.add(
        "plan",
        nodes.plan,
        "planned",
        route=routes.after_plan,
        to={"sub-questions": "decompose", "entity swap": "swap", "as asked": "search"},
    )
    graph.add(
        "decompose",
        nodes.decompose,
        "planned",
        route=routes.before_search,
        to={"entity swap": "swap", "as asked": "search"},
    )
    graph.add("swap", nodes.swap, "planned", to="search")
    graph.add(
        "search",
        nodes.search,
        "found",
        route=routes.after_recall_search,
        to={"candidates": "judge", "no candidates": "answer", "evidence only": "present"}
        | ({"refined": "think", "reflected": "answer"} if switches.iterative else {}),
    )
    graph.add(
        "judge",
        nodes.judge,
        "judged",
        route=routes.after_recall_judge,
        why=routes.judge_reason,
        to={**PASSED, "Retry": "widen", "Refresh": "settle"},
    )
    graph.add(
        "answer",
        nodes.answer,
        "answered",
        route=routes.after_answer,
        to={"settled": END, "unsure: reflect": "reflect", "unsure: verify": "verify"},
    )
    graph.add("present", nodes.present, "answered", to=END)
    graph.add("verify", nodes.verify, "answered", to=END)
    if switches.iterative:
        graph.add("widen", widen, "found", to="search")
        graph.add(
            "think",
            nodes.think,
            "thought",
            route=routes.after_think,
            to={"answerable": "answer", "not answerable": "reason"},
        )
        graph.add(
            "reason",
            nodes.reason,
            "refined",
            route=routes.after_reason,
            to={**NEW_QUERY, "nothing left": "answer"},
        )
        graph.add(
            "reflect",
            nodes.reflect,
            "refined",
            route=routes.after_reflect,
            to={**NEW_QUERY, "settled": END, "unsure: verify": "verify"},
        )
    if refreshes:
        graph.add("settle", nodes.settle, "settled", to="refresh")
        reviewed = "approve_refresh" if asks else "apply_refresh"
        graph.add("refresh", nodes.refresh, "allowed", to=reviewed)
        refreshed = nodes.apply_refresh if asks else asking(nodes.approve_refresh, nodes.apply_refresh)
        graph.add("apply_refresh", refreshed, route=routes.after_pass, to=PASSED)
    elif switches.refresher:
        graph.add("settle", nodes.settle, "settled", route=routes.after_pass, to=PASSED)
    if refreshes and asks:
        graph.add("approve_refresh", nodes.approve_refresh, "allowed", to="apply_refresh")
    return graph.compile()
