"""Where evolution goes next, and what becomes of a round: pure functions of the state.

EvolveMem's loop reverts to the best where the score drops by more than tau, explores after two flat rounds,
and stops after R_max rounds or when it has converged. The paper's own stop, two flat rounds, is the same
condition as its exploration, so that it would never explore; here a round after an exploration that is flat
again ends the loop.
"""

from typing import Literal, NamedTuple

from memcycle.evolution.states import Action, EvolveState
from memcycle.evolution.task import Task

EXPLORED = "explore"
FLAT_ROUNDS = 2
"""Flat rounds in a row after which a perturbation is tried."""
_ROUNDING = 1e-9


class Decision(NamedTuple):
    """What becomes of a round. `flat`: flat rounds in a row, this one included."""

    action: Action
    why: str
    flat: int


def has_dropped(state: EvolveState, tau: float) -> bool:
    """Whether the guard's score fell by more than tau below the best."""
    best = state["best"]
    return best is not None and state["guard"] < best["guard"] - tau - _ROUNDING


def is_best(state: EvolveState) -> bool:
    """Whether this round's configuration is the best so far; of equals the earlier one is."""
    best = state["best"]
    return best is None or state["guard"] > best["guard"] + _ROUNDING


def decision(state: EvolveState, task: Task, calls: int) -> Decision:
    """What becomes of the round that was evaluated last.

    A round is flat where it gains less than epsilon on the best known; a reverted one gains nothing, and is
    flat too.

    Args:
        state: With `best` as it was before this round.
        task: Gives tau, epsilon, the rounds and the calls at most.
        calls: Model calls so far.
    """
    best = state["best"]
    gain = state["guard"] - best["guard"] if best is not None else 1.0
    flat = state["flat"] + 1 if gain < task.epsilon - _ROUNDING else 0
    done = state["round"]
    if done >= task.rounds:
        return Decision("stop", f"{done} rounds are done", flat)
    if flat and state["origin"] == EXPLORED:
        return Decision("stop", f"converged: gained {gain:+.4f} after an exploration", flat)
    if task.max_calls is not None and calls and calls + calls / (done + 1) > task.max_calls:
        return Decision("stop", f"{calls} model calls are made, another round would pass the limit", flat)
    if flat >= FLAT_ROUNDS:
        return Decision("explore", f"{flat} rounds gained less than {task.epsilon:g}", 0)
    if has_dropped(state, task.tau):
        return Decision("revert", f"dropped by {-gain:.4f}, more than {task.tau:g}", flat)
    return Decision("apply", "the start" if best is None else f"gained {gain:+.4f}", flat)


def after_evaluate(state: EvolveState, task: Task) -> Literal["failures", "last round"]:
    """The last round needs no diagnosis."""
    return "last round" if state["round"] >= task.rounds else "failures"


def after_guard(state: EvolveState) -> Literal["memory lacks", "next round", "stop"]:
    """On to the next round, by way of reading memory anew where the diagnosis asks for that."""
    if state["action"] == "stop":
        return "stop"
    return "memory lacks" if state["reread"] else "next round"
