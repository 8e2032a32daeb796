"""The nodes of the evolve graph, and what decides between them."""

from collections.abc import Callable
from functools import reduce
from typing import Any, Literal, NamedTuple, cast

from memcycle.agents.diagnoser import KEPT, TAKEN_BACK, Change, DiagnoserOutput
from memcycle.agents.roles import Roles
from memcycle.core.errors import RoleFailed
from memcycle.core.probe import Usage, add_usage
from memcycle.core.theta import Theta
from memcycle.evals.folder import write_json, write_whole
from memcycle.evolution.lab import Lab
from memcycle.evolution.records import QuestionRecord
from memcycle.evolution.splits import Split
from memcycle.evolution.task import Task
from memcycle.evolution.theta.diagnosis import diagnoser_input
from memcycle.evolution.theta.space import capped, changed, fingerprint, perturbed, with_all, writing
from memcycle.evolution.theta.states import Action, Best, EvolveState, Row
from memcycle.graph.node import Call, Step

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
    if task.would_overspend(calls, done + 1):
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


class Evolving:
    """The nodes of evolution, over one lab, opened on first use."""

    def __init__(self, lab: Callable[[EvolveState], Lab], roles: Roles) -> None:
        self._lab, self.roles = lab, roles

    def evaluate(self, state: EvolveState) -> dict[str, Any]:
        """This round's configuration on the training and on the guard split; records are kept on disk."""
        lab = self._lab(state)
        first: dict[str, Any] = {} if "round" in state else {**_first(lab.task.start)}
        begun = cast(EvolveState, {**state, **first})
        theta, memory = Theta.model_validate(begun["theta"]), begun["memory"]
        records = {split: lab.evaluate(theta, split, memory) for split in _SEEN}
        scores: dict[str, Any] = {split: lab.task.score(own) for split, own in records.items()}
        scores["stands"] = not has_dropped(cast(EvolveState, {**begun, **scores}), lab.task.tau)
        place = lab.folder.round(begun["round"])
        write_json(place / "theta.json", theta.model_dump(mode="json"))
        lines = (one.model_dump_json() for own in records.values() for one in own)
        write_whole(place / "records.jsonl", "".join(f"{line}\n" for line in lines))
        # What an earlier round has asked is read, and costs nothing.
        asked = any(row["theta"] == fingerprint(theta) and row["memory"] == memory for row in begun["rows"])
        return {**first, **scores, "usage": {} if asked else _total(records)}

    def diagnose(self, state: EvolveState) -> Step:
        """The Diagnoser on the training failures: of this round, or of the best where this one dropped."""
        lab = self._lab(state)
        base, memory = _base(state)
        records = lab.evaluate(base, "train", memory)
        value = diagnoser_input(records, base, lab.task, _tried(state, state["stands"]))
        told: dict[str, Any] = {"of_round": state["round"] if state["stands"] else _known(state)["round"]}
        told |= {"patterns": [one.model_dump() for one in value.patterns]}
        try:
            output: DiagnoserOutput = yield Call("diagnoser", self.roles.diagnoser, value)
        except RoleFailed as failed:
            return {"diagnosis": {**told, "changes": [], "missing_coverage": "", "failed": failed.brief}}
        return {"diagnosis": {**told, **output.model_dump(mode="json"), "failed": None}}

    def propose(self, state: EvolveState) -> dict[str, Any]:
        """The changes on the configuration that they are about, each brought into its range."""
        changes = [Change.model_validate(one) for one in state["diagnosis"]["changes"]]
        proposal = with_all(_base(state)[0], changes)
        place = self._lab(state).folder.round(state["round"])
        write_json(place / "diagnosis.json", {**state["diagnosis"], "proposal": proposal})
        return {"proposal": proposal}

    def guard(self, state: EvolveState) -> dict[str, Any]:
        """Decides on this round by the guard split, and what the next one evaluates."""
        lab = self._lab(state)
        task, usage = lab.task, state.get("usage") or {}
        done = decision(state, task, sum(count["calls"] for count in usage.values()))
        best = _now(state) if is_best(state) else _known(state)
        update: dict[str, Any] = {"best": best, "action": done.action, "why": done.why, "flat": done.flat}
        row = Row(
            round=state["round"],
            decision=done.action,
            why=done.why,
            train=state["train"],
            guard=state["guard"],
            theta=fingerprint(Theta.model_validate(state["theta"])),
            memory=state["memory"],
            origin=state["origin"],
            best=best["round"] == state["round"],
        )
        update["rows"] = [*state["rows"], row]
        update["tried"] = _tried(state, state["stands"])
        if done.action != "stop":
            update |= self._next(state, done.action, Theta.model_validate(best["theta"]), lab)
        after = {"next": update.get("changes", {}), "reread": update.get("reread", False)}
        write_json(lab.folder.round(state["round"]) / "decision.json", {**row, **after})
        return update

    def _next(self, state: EvolveState, action: str, best: Theta, lab: Lab) -> dict[str, Any]:
        """The configuration of the next round, how it came to be, and whether memory is to be read anew."""
        proposal = state["proposal"]
        seed = f"{lab.task.seed} {state['round']}"
        base = best if action == "explore" else _base(state)[0]
        if action == "explore" or proposal is None:
            theta = perturbed(best, seed)
        else:
            theta = Theta.model_validate(proposal["theta"])
        theta = capped(theta, lab.task.token_budget)
        lacks = bool(state["diagnosis"].get("missing_coverage"))
        return {
            "round": state["round"] + 1,
            "theta": theta.model_dump(mode="json"),
            "origin": action,
            "changes": {path: new for path, (_, new) in changed(base, theta).items()},
            "reread": action != "explore" and lacks and writing(base) == writing(theta),
        }

    def re_extract(self, state: EvolveState) -> dict[str, Any]:
        """All conversations are read anew before they are asked next, those of every split alike.

        Nothing of the questions, and no gold turn, goes with it: which turns lack coverage is found by the
        guards of extraction, from the turns' own words. Where a dimension of writing changed this is not
        needed: memory is made anew by it anyway.
        """
        return {"memory": state["memory"] + 1, "reread": False}


_SEEN: tuple[Split, Split] = ("train", "guard")
"""The splits that the loop may look at."""


def _first(start: Theta) -> EvolveState:
    return EvolveState(
        round=0,
        theta=start.model_dump(mode="json"),
        origin="start",
        changes={},
        memory=0,
        best=None,
        flat=0,
        stands=True,
        diagnosis={},
        proposal=None,
        reread=False,
        rows=[],
        tried=[],
    )


def _known(state: EvolveState) -> Best:
    return state["best"] or _now(state)


def _now(state: EvolveState) -> Best:
    return Best(
        round=state["round"],
        theta=state["theta"],
        train=state["train"],
        guard=state["guard"],
        memory=state["memory"],
    )


def _base(state: EvolveState) -> tuple[Theta, int]:
    """What the diagnosis is of: this round's configuration, or the best where this one dropped."""
    chosen = _now(state) if state["stands"] else _known(state)
    return Theta.model_validate(chosen["theta"]), chosen["memory"]


def _tried(state: EvolveState, stands: bool) -> list[dict[str, Any]]:
    """What the rounds changed and what became of it, this one included."""
    if not state["changes"]:
        return state["tried"]
    outcome = KEPT if stands else TAKEN_BACK
    return [*state["tried"], {"round": state["round"], "changes": state["changes"], "outcome": outcome}]


def _total(records: dict[Split, list[QuestionRecord]]) -> Usage:
    return reduce(add_usage, (record.usage for own in records.values() for record in own), Usage())
