"""Where to go next: pure functions of the state, drawn as labelled edges."""

from typing import Literal

from langgraph.types import Send

from memcycle.core.theta import Switches, Theta
from memcycle.graph.states import (
    EvidenceState,
    MemoryState,
    ProbeState,
    RecallState,
    RememberState,
    SessionState,
)

Action = Literal["Retry", "Refresh", "Pass"]


def judge_action(state: EvidenceState, theta: Theta, switches: Switches, retries: int) -> Action:
    """AMA's three actions, computed from the verdicts (AMA 3.3).

    Conflicts go to the Refresher; too few relevant candidates or insufficient ones are searched for
    again while rounds remain; all else passes. An unjudged list passes as it is.
    """
    verdict = state["verdict"]
    if verdict["conflicts"] and switches.refresher:
        return "Refresh"
    if not verdict["judged"] or not switches.iterative or state.get("round", 0) >= retries:
        return "Pass"
    density = len(verdict["relevant"]) / max(1, verdict["shown"])
    return "Retry" if not verdict["sufficient"] or density < theta.density else "Pass"


def after_stage(state: RememberState) -> Literal["new turns", "already extracted", "nothing new"]:
    """A chunk a crashed run had already extracted only lacks its episode."""
    if not state.get("chunk"):
        return "nothing new"
    return "already extracted" if state.get("extracted") else "new turns"


def after_search(state: EvidenceState) -> Literal["candidates", "no candidates"]:
    """Without candidates there is nothing to judge."""
    return "candidates" if state.get("candidates") else "no candidates"


def after_trigger(state: RememberState) -> Literal["episode ends", "goes on"]:
    """Whether the Episode trigger fired."""
    return "episode ends" if state.get("episodes") else "goes on"


def after_pass(
    state: RecallState, *, always_think: bool, iterative: bool
) -> Literal["Pass: sufficient", "Pass: uncertain"]:
    """A sufficient Pass is answered at once, unless the Meta-Thinker is to be asked always (MemMA)."""
    sufficient = state["verdict"]["sufficient"] and not always_think
    return "Pass: sufficient" if sufficient or not iterative else "Pass: uncertain"


def after_think(state: RecallState, h: int) -> Literal["answerable", "not answerable"]:
    """Not answerable is refined while rounds remain (MemMA H)."""
    if state["gap"]["answerable"] or state.get("refinements", 0) >= h:
        return "answerable"
    return "not answerable"


def after_reason(state: RecallState) -> Literal["new query", "nothing left"]:
    """The Query-Reasoner ends the loop by having nothing new to ask."""
    return "new query" if state.get("plans") else "nothing left"


def after_waiting(state: SessionState) -> Literal["turns wait", "none wait", "nothing new"]:
    """Turns of a failed or broken-off run are remembered before their session ends."""
    if not state["open"]:
        return "nothing new"
    return "turns wait" if state["waiting"] else "none wait"


def after_episode(state: SessionState, switches: Switches) -> Literal["to be examined", "as it is"]:
    """The examination can be switched off (MemMA/E), or left out of one run."""
    return "to be examined" if switches.verify and state.get("verify") is not False else "as it is"


def after_probe(state: SessionState) -> Literal["probes", "no probes"]:
    """Without probes, since the Prober failed or found nothing to ask, there is nothing to examine."""
    return "probes" if state["probes"] else "no probes"


def after_look_up(state: SessionState) -> list[Send] | Literal["nothing to ask again"]:
    """Every probe to ask is answered by itself, side by side with the others."""
    asked = [_sent("examine", state, name) for name in state["asked"]]
    return asked or "nothing to ask again"


def after_grade(state: SessionState) -> list[Send] | Literal["all answered", "asked again"]:
    """Every failed probe is repaired by itself, once; the second round only weighs what repairs did."""
    if state["round"]:
        return "asked again"
    return [_sent("repair", state, name) for name in state["failed"]] or "all answered"


def after_consolidate(state: SessionState) -> Literal["proposal", "repaired", "nothing repaired"]:
    """One proposal after another; then the probes are asked again where memory changed."""
    if state["proposal"]:
        return "proposal"
    return "repaired" if state["written"] else "nothing repaired"


def _sent(node: str, state: SessionState, name: str) -> Send:
    found = state["found"].get(name, [])
    return Send(node, ProbeState(probe=name, found=found, round=state["round"], part=state["part"]))


def after_remember(state: MemoryState) -> Literal["session ends", "session goes on"]:
    """Sessions end by an explicit call."""
    return "session ends" if state.get("end_session") else "session goes on"
