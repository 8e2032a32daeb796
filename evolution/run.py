"""The whole experiment: evolve, search at random beside it, report what came of both on other questions."""

import json
from typing import Any

from memcycle.agents.roles import Roles
from memcycle.core.theta import Theta
from memcycle.evals.folder import write_json
from memcycle.evolution.evolve import build_evolve
from memcycle.evolution.lab import Lab, finished, held_out, paired
from memcycle.evolution.splits import Split
from memcycle.evolution.theta.report import report, trajectory
from memcycle.evolution.theta.search import ablated, random_search
from memcycle.evolution.theta.space import capped, changed, fingerprint
from memcycle.memory import roles_of

THREAD = "evolve"
_STEPS_A_ROUND = 8


def run(
    lab: Lab,
    roles: Roles | None = None,
    *,
    command: str = "",
    resume: bool = False,
    ablate: Split | None = None,
    beside: dict[str, Theta] | None = None,
) -> dict[str, Any]:
    """Evolves, or goes on with the evolution in the lab's folder, and gives its figures.

    Args:
        lab: Evaluates; its task says what is evolved.
        roles: Who diagnoses; by default as the task says.
        command: The command line, for the report.
        resume: Goes on with the evolution in the folder.
        ablate: The split on which each mechanism of the result is switched the other way.
        beside: Further configurations whose held-out figures are reported, by name.

    Returns:
        `rounds`, `start`, `best`, `random`, `theta` and more, as `memcycle evolve --json` prints them.

    Raises:
        BadInput: the folder cannot be used.
        MemcycleError: the run had to stop; what is done is written, and `resume` goes on.
    """
    task, folder = lab.task, lab.folder
    folder.run.start(task.plain(), command, resume=resume)
    values = evolved(lab, roles or roles_of(task.diagnoser, None, None, {"base_url": lab.base_url}))
    best = Theta.model_validate(values["best"]["theta"])
    memory = values["best"]["memory"]
    named = best.model_copy(update={"version": f"evolved-{fingerprint(best)[:8]}"})
    named.save(folder.best)
    # The same configuration again costs nothing.
    evaluations = len({(row["theta"], row["memory"]) for row in values["rows"]})
    before, after = lab.evaluate(task.start, "held_out"), lab.evaluate(best, "held_out", memory)
    summary = {
        "rounds": values["rows"],
        "start": {"name": task.start_name, **held_out(lab, task.start)},
        "best": {
            "round": values["best"]["round"],
            "train": values["best"]["train"],
            "guard": values["best"]["guard"],
            **held_out(lab, best, memory),
        },
        "gain": paired(lab, after, before),
        "random": random_search(lab, evaluations),
        "beside": {
            name: held_out(lab, capped(theta, task.token_budget)) for name, theta in (beside or {}).items()
        },
        "ablation": None if ablate is None else ablated(lab, best, ablate, memory),
        "theta": named.model_dump(mode="json"),
        "changed": changed(task.start, best),
        "usage": values.get("usage") or {},
    }
    write_json(folder.run.summary, summary)
    folder.run.plot.write_text(trajectory(summary), "utf-8")
    folder.run.report.write_text(report(lab, summary, command), "utf-8")
    return json.loads(folder.run.summary.read_text("utf-8"))  # type: ignore[no-any-return]


def evolved(lab: Lab, roles: Roles | None = None) -> dict[str, Any]:
    """The end of the loop; where its folder holds checkpoints, from the last of them on."""
    # A round has as many steps as it has nodes.
    return finished(build_evolve(roles, lab), lab, THREAD, _STEPS_A_ROUND * (lab.task.rounds + 2))
