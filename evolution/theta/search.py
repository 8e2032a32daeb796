"""What the loop is compared with: random search beside it, and each mechanism switched the other way."""

from statistics import fmean
from typing import Any

from memcycle.core.theta import SIGNALS_OF_VIEW, Theta
from memcycle.evolution.lab import Lab, held_out, interval, paired
from memcycle.evolution.splits import Split
from memcycle.evolution.theta.space import capped, drawn, fingerprint


def random_search(lab: Lab, evaluations: int) -> dict[str, Any] | None:
    """The best of as many drawn configurations as evolution evaluated, by the same questions, once a seed.

    Each is scored on the training and on the guard split, all that evolution may learn from; the best of
    each seed is asked held out.
    """
    task, runs = lab.task, []
    for seed in task.random_seeds:
        tried = []
        for number in range(evaluations):
            theta = capped(drawn(task.start, f"{seed} random {number}"), task.token_budget)
            records = [*lab.evaluate(theta, "train"), *lab.evaluate(theta, "guard")]
            tried.append((task.score(records), -number, theta))
        seen, _, theta = max(tried, key=lambda one: one[:2])
        runs.append({"seed": seed, "seen": seen, **held_out(lab, theta)})
    if not runs:
        return None
    scores = [float(run["held_out"]) for run in runs]
    return {
        "held_out": round(fmean(scores), 6),
        "interval": interval(scores),
        "evaluations": evaluations,
        "seeds": runs,
    }


_SIGNALS = {
    "lexical view": SIGNALS_OF_VIEW["lexical"],
    "dense view": SIGNALS_OF_VIEW["dense"],
    "structured signals": SIGNALS_OF_VIEW["structured"],
    "session signal": ("session",),
    "text signals": ("statement", "first_person", "idf_mass", "answer"),
    "time decay": ("recency",),
    "importance and reinforcement": ("importance", "reinforcement"),
}
_ON = {"time decay": 1.0, "importance and reinforcement": 1.0}
"""What a weight of those is switched to where all are 0."""
_SWITCHES: dict[str, tuple[str, Any, Any]] = {
    "entity swap": ("swap.on", True, False),
    "query decomposition": ("decomposition.on", True, False),
    "routing by shares": ("routing.mode", "shares", "exclusive"),
    "turns first": ("turns_first", 0.2, 0.0),
    "Retry rounds": ("k_r", 2, 0),
    "linear fusion": ("fusion", "linear", "rrf"),
}
_OF_ANSWERS: dict[str, tuple[str, Any, Any]] = {
    "reflection": ("reflection.rounds", 1, 0),
    "verification": ("verification", "multi_candidate", "off"),
    "answer style": ("answer_style", "concise", None),
    "refinement rounds": ("h", 3, 0),
}
"""By mechanism its dimension, and its value switched on and off."""


def variants(theta: Theta, *, answers: bool) -> list[tuple[str, str, Theta]]:
    """Every mechanism with `off` or `on`, whichever it is not, and the configuration with it switched so."""
    made = []
    for name, signals in _SIGNALS.items():
        used = any(theta.get(f"weights.{signal}") > 0 for signal in signals)
        if not used and name not in _ON:
            continue
        value = 0.0 if used else _ON[name]
        changed = theta.with_changes({f"weights.{signal}": value for signal in signals})[0]
        made.append((name, "off" if used else "on", changed))
    for name, (path, on, off) in (_SWITCHES | (_OF_ANSWERS if answers else {})).items():
        is_on = theta.get(path) not in (off, 0)
        changed = theta.with_changes({path: off if is_on else on})[0]
        made.append((name, "off" if is_on else "on", changed))
    if theta.overrides:
        made.append(("overrides by category", "off", theta.model_copy(update={"overrides": {}})))
    return made


def ablated(lab: Lab, theta: Theta, split: Split, memory: int = 0) -> dict[str, Any]:
    """The table: the configuration as it is, and with each mechanism switched; gains over it are paired."""
    task = lab.task
    whole = lab.evaluate(theta, split, memory)
    rows = []
    for name, switched, changed in variants(theta, answers=task.answers):
        records = lab.evaluate(changed, split, memory)
        rows.append(
            {
                "mechanism": name,
                "switched": switched,
                "score": task.score(records),
                **paired(lab, records, whole),
                "theta": fingerprint(changed),
            }
        )
    return {"split": split, "score": task.score(whole), "rows": rows}
