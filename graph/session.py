"""session: what happens when a session ends (MemMA 3.4).

Turns that a failed or broken-off run left waiting are remembered and the last episode is written. Then memory
is examined: probes are made from the session's turns, answered from memory and graded; what failed is mended
and asked again; what did not help is rolled back. Last, memory is kept in order and all of it is committed.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memcycle.agents.roles import Roles
from memcycle.core.edit import Edit
from memcycle.core.errors import BadInput
from memcycle.core.probe import Probe, SessionReport
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.graph.context import Context, ScopeOf
from memcycle.graph.environment import Env, make_env
from memcycle.graph.episodes import writer_calls, written
from memcycle.graph.examination import Repairing
from memcycle.graph.node import Step, inline, nested, node
from memcycle.graph.remember import added, refusals, remember_graph
from memcycle.graph.routes import (
    after_consolidate,
    after_episode,
    after_grade,
    after_look_up,
    after_probe,
    after_waiting,
)
from memcycle.graph.states import ProbeState, SessionInput, SessionOutput, SessionState

if TYPE_CHECKING:
    from memcycle.stores.bank import Bank
    from memcycle.stores.ledger.sessions import SessionInfo


class Maintained(NamedTuple):
    """What was done, as counts.

    Attributes:
        merged: Facts united with one that says the same or more. superseded: working summaries that a later
            one of the same session and topic replaced.
    """

    merged: int
    reinforced: int
    expired: int
    superseded: int


def maintain(env: Env, scope: Scope, turns: Sequence[str]) -> Maintained:
    """Unites what the facts of these turns repeat, renews summaries, reinforces and expires; once or again.

    Args:
        scope: With the session that ends: its staged entries take part.
        turns: Ids of the turns whose facts are new.
    """
    done = env.bank().maintain(scope, turns)
    return Maintained(
        merged=len(done.united),
        reinforced=done.reinforced,
        expired=len(done.expired),
        superseded=len(done.renewed),
    )


SHORTEST_EPISODE = 2
"""Turns of the shortest episode: a single turn is its own summary."""


SKIPPED = "its examination was skipped on request"


class _Session(Repairing):
    """The nodes of session, over one environment."""

    def find_waiting(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Whether there is anything to end, and turns wait; starts a run's counts anew."""
        scope, bank = self.env.scope(config), self.env.bank()
        info = next(iter(bank.sessions(scope)), None)
        waiting = [turn.id for turn in bank.unprocessed(scope)]
        done = info is not None and info.is_committed and not info.staged and not waiting
        fresh: dict[str, Any] = {
            "open": info is not None and (not done or state.get("verify") is True),
            "waiting": waiting,
            "episodes": [],
            "probes": [],
            "asked": [],
            "found": {},
            "round": 0,
            "passed": [],
            "failed": [],
            "answered": None,
            "mended": None,
            "proposal": None,
            "edit": None,
            "decision": None,
            "written": [],
            "maintained": {},
            "unverified": SKIPPED if state.get("verify") is False else "",
            "rejected": [],
            "warnings": None,
            "usage": None,
        }
        if not fresh["open"]:
            return self._nothing(scope, info, fresh)
        try:
            part = bank.begin_verification(scope)
        except BadInput:  # the user was forgotten since it was looked up
            return self._nothing(scope, None, {**fresh, "open": False})
        return {**fresh, "part": part.number, "until": part.until, "seq": part.seq, "result": {}}

    def _nothing(self, scope: Scope, info: "SessionInfo | None", fresh: dict[str, Any]) -> dict[str, Any]:
        counts = SessionReport().model_dump(exclude={"usage"})
        ended = {**_status(scope, info), **counts, "episodes": [], "rejected": [], "warnings": []}
        return {**fresh, "verify": None, "result": ended}

    def close_episode(self, state: SessionState, config: RunnableConfig) -> Step:
        """The Episode writer summarises what is left of the session."""
        scope = self.env.scope(config)
        segment = [turn for turn in self.env.bank().open_segment(scope) if turn.position <= state["until"]]
        end = segment[-1].position if segment else None
        if len(segment) < SHORTEST_EPISODE:
            return {"episodes": [], "close_at": end}
        replies = yield writer_calls(self.env, [segment])
        entries, warnings = written([segment], replies, self.env.made("episode_writer", scope))
        return {"episodes": entries, "close_at": end, "warnings": warnings}

    def apply_episode(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Writes it, staged."""
        edits = [
            Edit.model_validate({"op": "ADD", "entry": entry, "actor": "episode_writer"})
            for entry in state["episodes"]
        ]
        applied = self.env.bank().apply(
            self.env.scope(config), edits, close_segment_at=state["close_at"], seq=state["seq"]
        )
        warnings = [f"an episode was not written: {refused['why']}" for refused in refusals(applied)]
        return {"episodes": [], "result": {"episodes": added(applied, edits)}, "warnings": warnings}

    def maintain(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Keeps memory in order: near duplicates of the session's facts, reinforcement, retention."""
        scope = self.env.scope(config)
        turns = [turn.id for turn in self.env.bank().part_turns(scope, state["until"])]
        return {"maintained": maintain(self.env, scope, turns)._asdict()}

    def commit(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Staged becomes active: one ledger transaction, then the index."""
        scope, bank = self.env.scope(config), self.env.bank()
        probes = self.probes(state, config)
        found, unverified = report(probes, state), state["unverified"] or unmended(probes)
        committed = bank.commit_session(
            scope, until=state["until"], unverified=unverified, report=found, seq=state["seq"]
        )
        # Gone only where the user was forgotten meanwhile: then there is nothing to tell of it.
        info = next(iter(bank.sessions(scope)), None)
        counts = found.model_copy(update={"committed": committed}).model_dump(exclude={"usage"})
        told = {name: state[name] for name in ("rejected", "warnings")}
        episodes = state["result"]["episodes"]
        return {"verify": None, "result": {**_status(scope, info), **counts, "episodes": episodes, **told}}


def _status(scope: Scope, info: "SessionInfo | None") -> dict[str, str | None]:
    """How far the session is; committed where it is unknown, since then nothing of it waits."""
    status, reason = (info.status, info.reason) if info is not None else ("committed", "")
    return {"session": scope.session, "status": status, "reason": reason}


def unmended(probes: Sequence[Probe]) -> str:
    """Why what memory could not answer was not mended, where the Repairer failed; else empty."""
    failed = (probe.repair for probe in probes if probe.repair is not None and probe.repair.failed)
    return next((repair.why for repair in failed), "")


def report(probes: list[Probe], state: SessionState) -> SessionReport:
    """The run in counts."""
    repairs = [probe.repair for probe in probes if probe.repair is not None and probe.repair.wrote]
    # What nobody weighed, since another end wrote it, is taken back by the commit.
    kept = [repair for repair in repairs if repair.settled and not repair.rolled_back]
    return SessionReport(
        probes=len(probes),
        passed_before=sum(probe.passed_before for probe in probes),
        passed_after=sum(probe.verdict == "passed" for probe in probes),
        ungraded=sum(probe.verdict == "ungraded" for probe in probes),
        repairs=len(kept),
        rolled_back=len(repairs) - len(kept),
        merged=sum(repair.decision == "MERGE" for repair in kept) + state["maintained"].get("merged", 0),
        usage=state.get("usage") or {},
    )


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
    result = output["result"]
    told = {"rejected": result["rejected"], "warnings": result["warnings"]}
    return {**told, "usage": output.get("usage") or {}}


_NODES = (
    "find_waiting", "close_episode", "apply_episode", "probe", "look_up", "grade", "consolidate",
    "write_repair", "roll_back", "maintain", "commit",
)  # fmt: skip
_SIDE_BY_SIDE = ("examine", "repair")


def session_graph(env: Env) -> CompiledStateGraph[SessionState, Context, SessionInput, SessionOutput]:
    """The session graph over an environment."""
    nodes = _Session(env)
    builder = StateGraph(
        SessionState, context_schema=Context, input_schema=SessionInput, output_schema=SessionOutput
    )
    for name in _NODES:
        builder.add_node(name, node(name, getattr(nodes, name), graph="session"))
    for name in _SIDE_BY_SIDE:
        body = node(name, getattr(nodes, name), graph="session")
        builder.add_node(name, body, input_schema=ProbeState)
    builder.add_node("catch_up", nested(_waiting, remember_graph(env), _remembered))
    builder.add_edge(START, "find_waiting")
    builder.add_conditional_edges(
        "find_waiting",
        inline(after_waiting),
        {"turns wait": "catch_up", "none wait": "close_episode", "nothing new": END},
    )
    builder.add_edge("catch_up", "close_episode")
    builder.add_edge("close_episode", "apply_episode")
    builder.add_conditional_edges(
        "apply_episode",
        inline(partial(after_episode, switches=env.settings.switches)),
        {"to be examined": "probe", "as it is": "maintain"},
    )
    builder.add_conditional_edges(
        "probe", inline(after_probe), {"probes": "look_up", "no probes": "maintain"}
    )
    builder.add_conditional_edges(
        "look_up", inline(after_look_up), {"each probe": "examine", "nothing to ask again": "roll_back"}
    )
    builder.add_edge("examine", "grade")
    builder.add_conditional_edges(
        "grade",
        inline(after_grade),
        {"each failed probe": "repair", "all answered": "maintain", "asked again": "roll_back"},
    )
    builder.add_edge("repair", "consolidate")
    writes = "write_repair"
    if env.settings.approval.is_asked:
        writes = "approve_repair"
        builder.add_node(writes, node(writes, nodes.approve_repair, graph="session"))
        builder.add_edge(writes, "write_repair")
    builder.add_conditional_edges(
        "consolidate",
        inline(after_consolidate),
        {"proposal": writes, "repaired": "look_up", "nothing repaired": "maintain"},
    )
    builder.add_edge("write_repair", "consolidate")
    builder.add_edge("roll_back", "maintain")
    builder.add_edge("maintain", "commit")
    builder.add_edge("commit", END)
    return builder.compile(name="session").with_config(max_concurrency=env.settings.verification.at_once)
