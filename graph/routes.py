"""Where to go next: pure functions of the state, and of what else decides, drawn as labelled edges."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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


@dataclass(frozen=True)
class Policy:
    """What decides beside the state.

    Attributes:
        theta: That of the run, and of the question's category. switches: those of the settings.
        retries: Rounds of the Judge's Retry at most.
        rereads: Whether the Constructor may read a turn otherwise than before.
        evidence_only: Whether the run ends with the evidence.
        reflections: Further searches at most for what an answer says is missing; None: theta says how many,
            after an unsure answer.
        together: Whether probes are answered, and repaired, all at once.
    """

    theta: Theta = field(default_factory=Theta)
    switches: Switches = field(default_factory=Switches)
    retries: int = 0
    rereads: bool = False
    evidence_only: bool = False
    reflections: int | None = None
    together: bool = False


# remember and recall

Action = Literal["Retry", "Refresh", "Pass"]

JudgeReason = Literal[
    "conflicts", "not sufficient", "too few relevant", "sufficient", "unjudged", "one-shot", "no rounds left"
]
"""Why a judged list goes where it goes."""

_ACTIONS: dict[JudgeReason, Action] = {
    "conflicts": "Refresh",
    "not sufficient": "Retry",
    "too few relevant": "Retry",
}


def judge_action(state: EvidenceState, policy: Policy) -> Action:
    """AMA's three actions, computed from the verdicts (AMA 3.3).

    Conflicts go to the Refresher; too few relevant candidates or insufficient ones are searched for
    again while rounds remain; all else passes. An unjudged list passes as it is.
    """
    return _ACTIONS.get(judge_reason(state, policy), "Pass")


def judge_reason(state: EvidenceState, policy: Policy) -> JudgeReason:
    """The reason of `judge_action`."""
    verdict = state["verdict"]
    if verdict["conflicts"] and policy.switches.refresher:
        return "conflicts"
    if not verdict["judged"]:
        return "unjudged"
    density = len(verdict["relevant"]) / max(1, verdict["shown"])
    if verdict["sufficient"] and density >= policy.theta.density:
        return "sufficient"
    if not policy.switches.iterative:
        return "one-shot"
    if state.get("round", 0) >= policy.retries:
        return "no rounds left"
    return "too few relevant" if verdict["sufficient"] else "not sufficient"


def whether(key: str, some: str, none: str) -> Callable[[Mapping[str, Any]], str]:
    """A route between two labels: whether the state holds any of what stands under a key."""

    def held(state: Mapping[str, Any]) -> str:
        return some if state.get(key) else none

    held.__name__ = f"whether_{key}"  # as tracers call it
    return held


# remember


def after_stage(
    state: RememberState,
) -> Literal["new turns", "already extracted", "window open", "others are idle", "nothing new"]:
    """A chunk a crashed run had already extracted only lacks its episode."""
    if not state.get("chunk"):
        if not state["result"]["waiting"]:
            return "nothing new"
        return "others are idle" if state["idle"] else "window open"
    return "already extracted" if state.get("extracted") else "new turns"


def after_construct(state: RememberState, policy: Policy) -> Literal["covered", "uncovered"]:
    """Turns of the chunk of which facts hold too little are read once more."""
    uncovered = set(state["result"]["uncovered"]) & set(state["chunk"])
    return "uncovered" if policy.rereads and uncovered else "covered"


def after_finish(state: RememberState) -> Literal["turns wait", "others are idle", "all read"]:
    """What is more than a model takes at once is read chunk after chunk."""
    if state["chunk"]:
        return "turns wait"
    return "others are idle" if state["idle"] else "all read"


# recall

Searched = Literal["candidates", "no candidates", "evidence only", "refined", "reflected"]
Passed = Literal["evidence only", "Pass: sufficient", "Pass: uncertain"]
Asked = Literal["new query", "new query, entity swap", "nothing left"]


def after_plan(state: RecallState, policy: Policy) -> Literal["sub-questions", "entity swap", "as asked"]:
    """A question in parts is searched part by part, where theta has the Retriever name parts."""
    return "sub-questions" if state.get("parts") else before_search(state, policy)


def before_search(_: RecallState, policy: Policy) -> Literal["entity swap", "as asked"]:
    """Queries are searched without names too, where theta says so."""
    return "entity swap" if policy.theta.swap.on else "as asked"


def after_recall_search(state: RecallState, policy: Policy) -> Searched:
    """Only the first find is judged; a further one goes back to whom it was looked up for."""
    if not state.get("candidates"):
        return "evidence only" if policy.evidence_only else "no candidates"
    if state.get("reflections"):
        return "reflected"
    return "refined" if state["refinements"] else "candidates"


def after_recall_judge(state: RecallState, policy: Policy) -> Action | Passed:
    """AMA's three actions, of which a Pass goes where `after_pass` says."""
    action = judge_action(state, policy)
    return after_pass(state, policy) if action == "Pass" else action


def after_pass(state: RecallState, policy: Policy) -> Passed:
    """A sufficient Pass is answered at once, unless the Meta-Thinker is to be asked always (MemMA)."""
    if policy.evidence_only:
        return "evidence only"
    sufficient = state["verdict"]["sufficient"] and not policy.switches.always_think
    return "Pass: sufficient" if sufficient or not policy.switches.iterative else "Pass: uncertain"


def after_think(state: RecallState, policy: Policy) -> Literal["answerable", "not answerable"]:
    """Not answerable is refined while rounds remain (MemMA H)."""
    if state["gap"]["answerable"] or state.get("refinements", 0) >= policy.theta.h:
        return "answerable"
    return "not answerable"


def after_reason(state: RecallState, policy: Policy) -> Asked:
    """The Query-Reasoner ends the loop by having nothing new to ask."""
    if not state.get("plans"):
        return "nothing left"
    return "new query, entity swap" if policy.theta.swap.on else "new query"


def after_answer(
    state: RecallState, policy: Policy
) -> Literal["settled", "unsure: reflect", "unsure: verify"]:
    """An unknown or unsure answer is looked for once more while rounds remain, then looked at once more.

    One that could not be phrased at all is no unsure one, and without evidence there is nothing to verify.
    """
    answer, reflection = state["answer"], policy.theta.reflection
    if answer["answerable"] is None or (answer["answerable"] and answer["confidence"] >= reflection.unsure):
        return "settled"
    rounds = reflection.rounds
    if policy.reflections is not None and not answer["answerable"] and state["gap"]["gap"]:
        rounds = policy.reflections
    left = policy.switches.iterative and state.get("reflections", 0) < rounds
    return "unsure: reflect" if left and state.get("plans") else _unsure(state, policy)


def after_reflect(
    state: RecallState, policy: Policy
) -> Literal["new query", "new query, entity swap", "settled", "unsure: verify"]:
    """A new query is searched; without one the answer stands, or is verified."""
    label = after_reason(state, policy)
    return _unsure(state, policy) if label == "nothing left" else label


def _unsure(state: RecallState, policy: Policy) -> Literal["settled", "unsure: verify"]:
    """What is left to do for an unsure answer once there is nothing new to search for."""
    wanted = policy.theta.verification != "off" and state["answer"]["tokens"] > 0
    return "unsure: verify" if wanted else "settled"


# session


def after_waiting(state: SessionState) -> Literal["turns wait", "none wait", "nothing new"]:
    """Turns of a failed or broken-off run are remembered before their session ends."""
    if not state["open"]:
        return "nothing new"
    return "turns wait" if state["waiting"] else "none wait"


def after_episode(state: SessionState, policy: Policy) -> Literal["to be examined", "as it is"]:
    """The examination can be switched off (MemMA/E), or left out of one run."""
    wanted = policy.switches.verify and state.get("verify") is not False
    return "to be examined" if wanted else "as it is"


def after_look_up(state: SessionState, policy: Policy) -> list[Send] | Literal["nothing to ask again"]:
    """Every probe to ask is answered by itself, side by side with the others; or all at once."""
    return _sent("examine", state, state["asked"], policy) or "nothing to ask again"


def after_grade(state: SessionState, policy: Policy) -> list[Send] | Literal["all answered", "asked again"]:
    """Failed probes are repaired in the same way, once; the second round only weighs what repairs did."""
    if state["round"]:
        return "asked again"
    return _sent("repair", state, state["failed"], policy) or "all answered"


def after_consolidate(state: SessionState) -> Literal["proposal", "repaired", "nothing repaired"]:
    """One proposal after another; then the probes are asked again where memory changed."""
    if state["proposal"]:
        return "proposal"
    return "repaired" if state["written"] else "nothing repaired"


def _sent(node: str, state: SessionState, names: list[str], policy: Policy) -> list[Send]:
    groups = [names] if policy.together and names else [[name] for name in names]
    return [
        Send(
            node,
            ProbeState(
                owner=state["owner"],
                probes=group,
                found={name: state["found"].get(name, []) for name in group},
                round=state["round"],
                part=state["part"],
            ),
        )
        for group in groups
    ]


# memory


def after_remember(_: MemoryState) -> Literal["session ends, or others may be idle"]:
    """One way: what ends, the session or another that has gone idle, only the session graph can find."""
    return "session ends, or others may be idle"
