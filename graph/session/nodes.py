"""The nodes of session that end it: the last episode, maintenance, the commit."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memcycle.agents.episode_trigger import EpisodeTriggerInput
from memcycle.agents.roles import run_rules
from memcycle.core.edit import Edit
from memcycle.core.errors import BadInput
from memcycle.core.probe import Probe, SessionReport
from memcycle.core.scope import Scope
from memcycle.graph.environment import GraphRun
from memcycle.graph.episodes import tell, whole, write
from memcycle.graph.node import Step
from memcycle.graph.search import turn_views
from memcycle.graph.session.examination import probes_of
from memcycle.graph.states import SessionState, added, fresh_session

if TYPE_CHECKING:
    from memcycle.stores.ledger.sessions import SessionInfo

SHORTEST_EPISODE = 2
"""Turns of the shortest episode: a single turn is its own summary."""

UNREAD = "the session stays open: its turns wait until a model may read them, and its next end takes it up"
SKIPPED = "its examination was skipped on request"


def find_waiting(state: SessionState, run: GraphRun) -> dict[str, Any]:
    """Whether there is anything to end, and turns wait; starts a run's counts anew.

    Raises:
        BadInput: no such session; names those there are.
    """
    bank, fresh, owner = run.bank, fresh_session(), None
    if state.get("idle"):
        owner = run.idle_session(bank.take_idle)
        if owner is None:
            return {**fresh, **_nothing_to_end(None, None)}
    scope = owner or run.caller
    info = bank.session(scope)
    waiting = [turn.id for turn in bank.unprocessed(scope)]
    fresh |= {"open": True, "waiting": waiting, "owner": owner and owner.model_dump()}
    if state.get("verify") is False:
        fresh["unverified"] = SKIPPED
    if waiting and (unread := _unaffordable(run, scope)):
        return {**fresh, **_nothing_to_end(scope.session, info, [unread, UNREAD])}
    done = info.is_committed and not info.staged and not waiting
    if done and state.get("verify") is not True:
        return {**fresh, **_nothing_to_end(scope.session, info)}
    try:
        part = bank.begin_verification(scope)
    except BadInput:  # the user was forgotten since it was looked up
        return {**fresh, **_nothing_to_end(scope.session, None)}
    return {**fresh, "part": part.number, "until": part.until, "seq": part.seq, "result": {}}


def _nothing_to_end(
    session: str | None, info: "SessionInfo | None", warnings: Sequence[str] = ()
) -> dict[str, Any]:
    counts = SessionReport().model_dump(exclude={"usage"})
    result = {**_status(session, info), **counts, "episodes": [], "rejected": [], "warnings": [*warnings]}
    return {"open": False, "verify": None, "result": result}


def _unaffordable(run: GraphRun, scope: Scope) -> str:
    """Why no model may read turns now, in words; nothing where one may."""
    purse = run.purse_of("constructor", scope)
    return purse.empty() if purse is not None else ""


def close_episode(state: SessionState, run: GraphRun) -> Step:
    """The Episode writer summarises what is left of the session; one that was not all read stays open."""
    if state["waiting"] and _unaffordable(run, run.scope):
        unread = {turn.id for turn in run.bank.unprocessed(run.scope)}
        if not unread.isdisjoint(state["waiting"]):
            info = run.bank.session(run.scope)
            return _nothing_to_end(run.scope.session, info, [*state["warnings"], UNREAD])
    segment = [turn for turn in run.bank.open_segment(run.scope) if turn.position <= state["until"]]
    end = segment[-1].position if segment else None
    if len(segment) < SHORTEST_EPISODE or not tell(segment):
        return {"episodes": [], "close_at": end}
    episodes = [segment]
    if run.is_lean("episode_writer"):
        value = EpisodeTriggerInput(turns=turn_views(segment), new=len(segment))
        episodes = whole(segment, run_rules("episode_trigger", value).boundaries, run.theta)
    edits, warnings = yield from write(run, episodes)
    return {"episodes": edits, "close_at": end, "warnings": warnings}


def apply_episode(state: SessionState, run: GraphRun) -> dict[str, Any]:
    """Writes it, staged."""
    edits = [Edit.model_validate(edit) for edit in state["episodes"]]
    applied = run.bank.apply(run.scope, edits, close_segment_at=state["close_at"], seq=state["seq"])
    warnings = [f"an episode was not written: {refused.why}" for refused in applied.rejected]
    return {"episodes": [], "result": {"episodes": added(applied, edits)}, "warnings": warnings}


def maintain(state: SessionState, run: GraphRun) -> dict[str, Any]:
    """Keeps memory in order: near duplicates of the session's facts, reinforcement, retention."""
    turns = [turn.id for turn in run.bank.part_turns(run.scope, state["until"])]
    done = run.bank.maintain(run.scope, turns)
    counts = {
        "merged": len(done.united),
        "reinforced": done.reinforced,
        "expired": len(done.expired),
        "superseded": len(done.renewed),
    }
    return {"maintained": counts}


def commit(state: SessionState, run: GraphRun) -> dict[str, Any]:
    """Staged becomes active: one ledger transaction, then the index."""
    scope, bank = run.scope, run.bank
    probes = probes_of(state, run)
    found, unverified = report(probes, state), state["unverified"] or unrepaired(probes)
    committed = bank.commit_session(
        scope, until=state["until"], unverified=unverified, report=found, seq=state["seq"]
    )
    # Gone only where the user was forgotten meanwhile: then there is nothing to tell of it.
    info = next(iter(bank.sessions(scope)), None)
    counts = found.model_copy(update={"committed": committed}).model_dump(exclude={"usage"})
    words = {"rejected": state["rejected"], "warnings": [*state["warnings"], *state["faults"]]}
    episodes = state["result"]["episodes"]
    return {
        "verify": None,
        "result": {**_status(scope.session, info), **counts, "episodes": episodes, **words},
    }


def _status(session: str | None, info: "SessionInfo | None") -> dict[str, str | None]:
    """How far the session is; committed where it is gone, since then nothing of it waits."""
    status, reason = (info.status, info.reason) if info is not None else ("committed", "")
    return {"session": session, "status": status, "reason": reason}


def unrepaired(probes: Sequence[Probe]) -> str:
    """Why what memory could not answer was not repaired, where the Repairer failed; else empty."""
    failed = (probe.repair for probe in probes if probe.repair is not None and probe.repair.state == "failed")
    return next((repair.why for repair in failed), "")


def report(probes: Sequence[Probe], state: SessionState) -> SessionReport:
    """The run in counts."""
    repairs = [probe.repair for probe in probes if probe.repair is not None]
    lasting = [repair for repair in repairs if repair.state == "kept"]
    return SessionReport(
        probes=len(probes),
        passed_before=sum(probe.passed_before for probe in probes),
        passed_after=sum(probe.verdict == "passed" for probe in probes),
        ungraded=sum(probe.verdict == "ungraded" for probe in probes),
        repairs=len(lasting),
        # What nobody weighed, since another end wrote it, is taken back by the commit.
        rolled_back=sum(repair.state in ("written", "rolled_back") for repair in repairs),
        merged=sum(repair.decision == "MERGE" for repair in lasting) + state["maintained"].get("merged", 0),
        usage=state.get("usage") or {},
    )
