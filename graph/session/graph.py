"""session: what happens when a session ends (MemMA 3.4).

Turns that a failed or broken-off run left waiting are remembered and the last episode is written. Then memory
is examined: probes are made from the session's turns, answered from memory and graded; what failed is
repaired and asked again; what did not help is rolled back. Last, memory is kept in order and all of it is
committed.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import Runnable
from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph

from memcycle.agents.roles import Roles
from memcycle.core.arguments import checked
from memcycle.core.errors import describe_error
from memcycle.core.settings import Settings
from memcycle.graph import routes
from memcycle.graph.approval import asking
from memcycle.graph.context import Context, ScopeOf
from memcycle.graph.environment import Env, make_env
from memcycle.graph.node import nested
from memcycle.graph.remember.graph import remember_graph
from memcycle.graph.session import examination, nodes, repair
from memcycle.graph.states import (
    CatchUpInput,
    ProbeState,
    RememberState,
    SessionInput,
    SessionOutput,
    SessionState,
)
from memcycle.graph.wiring import Wiring

if TYPE_CHECKING:
    from memcycle.agents.pipeline import Pipeline
    from memcycle.stores.bank import Bank

_log = logging.getLogger(__name__)


@checked
def build_session(
    roles: Roles | None = None,
    bank: "Bank | Callable[[], Bank] | None" = None,
    settings: Settings | None = None,
    *,
    scope: ScopeOf | None = None,
    pipeline: "Pipeline | Path | str | None" = None,
) -> CompiledStateGraph[SessionState, Context, SessionInput, SessionOutput]:
    """The session graph: run once when the session of the context ends; `result` and `usage` out.

    By the clock with `{"idle": True}` it ends a session that has gone idle, see `SessionInput`. Arguments are
    those of `build_memory`.
    """
    return session_graph(make_env(roles, bank, settings, scope, pipeline))


def session_graph(env: Env) -> CompiledStateGraph[SessionState, Context, SessionInput, SessionOutput]:
    """The session graph over an environment. `examine` and `repair` run side by side, a probe each."""
    asks = env.settings.approval.is_asked
    graph = Wiring("session", env, SessionState, takes=SessionInput, gives=SessionOutput)
    graph.add(
        "find_waiting",
        nodes.find_waiting,
        "opened",
        route=routes.after_waiting,
        to={"turns wait": "catch_up", "none wait": "close_episode", "nothing new": END},
    )
    graph.add(
        "close_episode",
        nodes.close_episode,
        route=routes.whether("open", "all read", "turns wait"),
        to={"all read": "apply_episode", "turns wait": END},
    )
    graph.add(
        "apply_episode",
        nodes.apply_episode,
        "summarised",
        route=routes.after_episode,
        to={"to be examined": "probe", "as it is": "maintain"},
    )
    graph.add(
        "probe",
        examination.probe,
        "probed",
        route=routes.whether("probes", "probes", "no probes"),
        to={"probes": "look_up", "no probes": "maintain"},
    )
    graph.add(
        "look_up",
        examination.look_up,
        "found",
        route=routes.after_look_up,
        to={"each probe": "examine", "nothing to ask again": "roll_back"},
    )
    graph.add(
        "grade",
        examination.grade,
        "graded",
        route=routes.after_grade,
        to={"each failed probe": "repair", "all answered": "maintain", "asked again": "roll_back"},
    )
    graph.add(
        "consolidate",
        repair.consolidate,
        "repair_decided",
        route=routes.after_consolidate,
        to={
            "proposal": "approve_repair" if asks else "write_repair",
            "repaired": "look_up",
            "nothing repaired": "maintain",
        },
    )
    written = repair.write_repair if asks else asking(repair.approve_repair, repair.write_repair)
    graph.add("write_repair", written, "repair_written", to="consolidate")
    graph.add("roll_back", repair.roll_back, "rolled_back", to="maintain")
    graph.add("maintain", nodes.maintain, "maintained", to="commit")
    graph.add("commit", nodes.commit, "committed", to=END)
    graph.add("examine", examination.examine, "probe_answered", to="grade", state=ProbeState)
    graph.add("repair", repair.repair, "repair_tried", to="consolidate", state=ProbeState)
    graph.add(
        "catch_up",
        nested(lambda state: {"owner": state["owner"]}, remember_graph(env, takes=CatchUpInput), _remembered),
        to="close_episode",
    )
    if asks:
        graph.add("approve_repair", repair.approve_repair, "allowed", to="write_repair")
    return graph.compile().with_config(max_concurrency=env.settings.verification.at_once)


def ends_idle(env: Env) -> Runnable[RememberState, dict[str, Any]]:
    """The session graph as the last node of remember: ends one session of the user that has gone idle."""
    return nested(lambda _: {"idle": True}, session_graph(env), _used, _not_ended)


def not_ended(error: Exception) -> str:
    """The warning of a session that had gone idle and could not be ended, for the run that tried."""
    why = f"a session that had gone idle was not ended: {describe_error(error)}"
    _log.warning(why)
    return why


def _used(output: dict[str, Any]) -> dict[str, Any]:
    return {"usage": output.get("usage") or {}}


def _not_ended(state: RememberState, error: Exception) -> dict[str, Any]:
    result = state["result"]
    return {"result": {**result, "warnings": [*result["warnings"], not_ended(error)]}}


def _remembered(output: dict[str, Any]) -> dict[str, Any]:
    result = output["result"]
    words = {"rejected": result["rejected"], "warnings": [*result["warnings"], *result["forgetting"]]}
    return {**words, **_used(output)}
