"""A whole run: the tree is grown, its best version asked on held-out questions, and all of it reported."""

import json
from collections.abc import Mapping
from typing import Any

from memcycle.agents.pipeline import Pipeline
from memcycle.agents.roles import Roles
from memcycle.evals.folder import write_json
from memcycle.evals.records import versions
from memcycle.evals.report import number, table
from memcycle.evolution.lab import Lab, between, finished, held_out, paired
from memcycle.evolution.program.graph import build_program
from memcycle.evolution.program.tree import Tree, mermaid
from memcycle.memory import roles_of

_STEPS_A_VERSION = 5


def run(lab: Lab, roles: Roles | None = None, *, command: str = "", resume: bool = False) -> dict[str, Any]:
    """Grows a tree, or goes on with the one in the lab's folder, and gives its figures.

    Args:
        lab: Evaluates; its task says what is grown. roles: who diagnoses; by default as the task says.
        command: The command line, for the report. resume: goes on with what is in the folder.

    Returns:
        `tree`, `best`, `held_out` of the root and of the best, `gain`, as `memcycle program evolve --json`
        prints them.

    Raises:
        BadInput: the folder cannot be used.
        MemcycleError: the run had to stop; what is done is written, and `resume` goes on.
    """
    task, folder = lab.task, lab.folder
    folder.run.start(task.plain(), command, resume=resume)
    diagnosers = roles or roles_of(task.diagnoser, None, None, {"base_url": lab.base_url})
    graph = build_program(diagnosers, lab)
    values = finished(graph, lab, "program", _STEPS_A_VERSION * (task.rounds + 2))
    tree = Tree.model_validate(values["tree"])
    best = Pipeline.load(folder.versions / tree.best.folder).theta
    after, before = lab.evaluate(best, "held_out"), lab.evaluate(task.start, "held_out")
    summary = {
        "tree": tree.plain(),
        "best": {"number": tree.best.number, "folder": str(folder.versions / tree.best.folder)},
        "held_out": {"root": held_out(lab, task.start), "best": held_out(lab, best)},
        "gain": paired(lab, after, before),
    }
    write_json(folder.run.summary, summary)
    folder.run.report.write_text(report(lab, tree, summary, command), "utf-8")
    return json.loads(folder.run.summary.read_text("utf-8"))  # type: ignore[no-any-return]


def report(lab: Lab, tree: Tree, summary: Mapping[str, Any], command: str) -> str:
    """The whole report, in Markdown."""
    task, held = lab.task, summary["held_out"]
    gain = summary["gain"]
    parts = (
        "# A tree of versions",
        f"Objective: {task.aim}, at {task.token_budget} tokens of evidence at most. Root: {task.start_name}. "
        f"Data: {task.file} ({task.sha256[:12]}); {task.questions}. Diagnosis by {task.diagnoser}, which saw "
        "the training questions alone; the guard split decided; held-out questions were asked once of the "
        "root and once of the best version.",
        f"```sh\n{command}\n```" if command else "",
        "## Held out",
        table(
            ("version", "held out", "95 % interval", "tokens"),
            [
                (name, number(own["held_out"]), between(own["interval"]), number(own["tokens"], ",.0f"))
                for name, own in held.items()
            ],
        ),
        f"Gain, paired: {number(gain['gain'], '+.3f')} {between(gain['interval'])}.",
        "## The way from the root to the best",
        "\n".join(
            f"{step}. {node.direction or 'the root'} ({node.folder}): {node.assessment}"
            for step, node in enumerate(tree.way(tree.best))
        ),
        f"## The tree\n\n```mermaid\n{mermaid(tree)}```",
        table(
            ("version", "of", "direction", "train", "guard", "tokens", "standing"),
            [
                (
                    str(node.number),
                    "" if node.parent is None else str(node.parent),
                    node.direction,
                    number(node.train),
                    number(node.guard),
                    number(node.tokens, ",.0f"),
                    node.standing,
                )
                for node in tree.nodes
            ],
        ),
        "Versions: " + ", ".join(f"{name} {version}" for name, version in versions().items()) + ".",
    )
    return "\n\n".join(filter(None, parts)) + "\n"
