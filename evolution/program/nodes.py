"""The nodes of the program graph: a version is chosen, a child made, asked, assessed and recorded."""

from collections.abc import Callable, Sequence
from functools import reduce
from statistics import fmean
from typing import Any, Literal

from typing_extensions import TypedDict

from memcycle.agents.diagnoser import KEPT, TAKEN_BACK, Change, DiagnoserOutput
from memcycle.agents.pipeline import FILE as PIPELINE
from memcycle.agents.pipeline import NOTE, Pipeline
from memcycle.agents.roles import Roles
from memcycle.core.errors import RoleFailed
from memcycle.core.jsonl import write_file
from memcycle.core.probe import Usage, add_usage
from memcycle.core.theta import Theta
from memcycle.evals.folder import write_json
from memcycle.evolution.lab import Lab
from memcycle.evolution.program.tree import FILE, Node, Standing, Tree, edits_from
from memcycle.evolution.records import QuestionRecord
from memcycle.evolution.task import Task
from memcycle.evolution.theta.diagnosis import diagnoser_input
from memcycle.evolution.theta.space import capped, changed, perturbed, with_all
from memcycle.graph.node import Call, Step

EXPLORED = "explored"
"""Direction of a version that answers no failure: dimensions moved at random."""
_OUTCOMES = {"accepted": KEPT, "side branch": KEPT, "discarded": TAKEN_BACK}


class ProgramInput(TypedDict, total=False):
    """What a tree begins with: as of the evolve graph."""

    request: dict[str, Any]


class Child(TypedDict):
    """A version that is being made: see `Node`."""

    theta: dict[str, Any]
    version: str
    folder: str
    edit: dict[str, Any]
    direction: str
    why: list[str]


class ProgramState(ProgramInput, total=False):
    """State of the loop, plain JSON.

    Attributes:
        tree: All versions so far. base: number of the one that is grown. child: what is made of it.
        scored: How the child did, see `Node`.
    """

    tree: dict[str, Any]
    base: int
    child: Child
    scored: dict[str, Any]


class ProgramOutput(TypedDict):
    """What came of it."""

    tree: dict[str, Any]


def after_record(state: ProgramState, task: Task) -> Literal["next version", "done"]:
    """On to the next version while some are left, and calls."""
    nodes = Tree.model_validate(state["tree"]).nodes
    spent = task.would_overspend(sum(node.calls for node in nodes), len(nodes))
    return "done" if spent or len(nodes) > task.rounds else "next version"


class Growing:
    """The nodes, over one lab, opened on first use."""

    def __init__(self, lab: Callable[[ProgramState], Lab], roles: Roles) -> None:
        self._lab, self.roles = lab, roles

    def plant(self, state: ProgramState) -> dict[str, Any]:
        """The root: what the task starts from."""
        lab = self._lab(state)
        root = _pipeline(lab.task, lab.task.start, None)
        node = Node(
            number=0,
            version=root.version,
            folder=_written(lab, root, 0, f"# The root: {lab.task.start_name}\n"),
            standing="accepted",
            assessment="the root",
            **_scores(lab, lab.task.start),
        )
        return {"tree": self._recorded(lab, Tree(), node)}

    def select(self, state: ProgramState) -> dict[str, Any]:
        """Which version the next one is made from."""
        tree = Tree.model_validate(state["tree"])
        return {"base": tree.chosen(chain=self._lab(state).task.chain).number}

    def create(self, state: ProgramState) -> Step:
        """A child: one edit that answers one way of failing, which was not tried from this base."""
        lab = self._lab(state)
        tree, base = _based(state)
        theta = _theta(lab, base)
        records, known = lab.evaluate(theta, "train"), edits_from(tree, base)
        tried = [
            {"round": one.number, "changes": one.edit, "outcome": _OUTCOMES[one.standing]} for one in known
        ]
        try:
            value = diagnoser_input(records, theta, lab.task, tried)
            output: DiagnoserOutput = yield Call("diagnoser", self.roles.diagnoser, value)
            changes = output.changes
        except RoleFailed:
            changes = []
        child, direction, why = _edited(lab.task, tree, theta, changes)
        edit = {path: new for path, (_, new) in changed(theta, child).items()}
        made = _pipeline(lab.task, child, base)
        made_of = Child(
            theta=child.model_dump(mode="json"),
            version=made.version,
            folder=_written(lab, made, len(tree.nodes), _note(base, direction, edit, why)),
            edit=edit,
            direction=direction,
            why=why,
        )
        return {"child": made_of}

    def evaluate(self, state: ProgramState) -> dict[str, Any]:
        """The child on the training and on the guard split; its records are kept on disk."""
        return {"scored": _scores(self._lab(state), Theta.model_validate(state["child"]["theta"]))}

    def assess(self, state: ProgramState) -> dict[str, Any]:
        """What the child fixed and broke, and what becomes of it."""
        lab = self._lab(state)
        _, base = _based(state)
        theta = Theta.model_validate(state["child"]["theta"])
        before = {one.key: lab.task.value(one) for one in lab.evaluate(_theta(lab, base), "train")}
        pairs = [(before[one.key], lab.task.value(one)) for one in lab.evaluate(theta, "train")]
        fixed = sum(old is not None and new is not None and new > old for old, new in pairs)
        broken = sum(old is not None and new is not None and new < old for old, new in pairs)
        scored = state["scored"]
        gained = {
            name: value - base.categories.get(name, 0.0) for name, value in scored["categories"].items()
        }
        standing = standing_of(scored["guard"] - base.guard, scored["train"] - base.train, gained, lab.task)
        told = ", ".join(f"{name} {gain:+.3f}" for name, gain in sorted(gained.items()) if round(gain, 3))
        assessment = (
            f"guard {scored['guard'] - base.guard:+.4f}, train {scored['train'] - base.train:+.4f}: "
            f"{fixed} questions better, {broken} worse; by category {told or 'nothing changed'}"
        )
        found = {"fixed": fixed, "broken": broken, "standing": standing, "assessment": assessment}
        return {"scored": {**scored, **found}}

    def record(self, state: ProgramState) -> dict[str, Any]:
        """The child takes its place in the tree, whatever came of it."""
        lab = self._lab(state)
        tree, base = _based(state)
        child = state["child"]
        node = Node(
            number=len(tree.nodes),
            parent=base.number,
            **{name: value for name, value in child.items() if name != "theta"},
            **state["scored"],
        )
        note = _note(base, node.direction, node.edit, node.why)
        told = f"\n## Result\n\n{node.standing}: {node.assessment}.\n"
        write_file(lab.folder.versions / node.folder / NOTE, note + told)
        return {"tree": self._recorded(lab, tree, node)}

    def _recorded(self, lab: Lab, tree: Tree, node: Node) -> dict[str, Any]:
        grown = tree.with_node(node).plain()
        write_json(lab.folder.path / FILE, grown)
        return grown


def standing_of(guard: float, train: float, categories: dict[str, float], task: Task) -> Standing:
    """What becomes of a version, by what it gains over its base.

    It is accepted where the guard split, which nobody diagnoses, gains at least epsilon. Where it loses no
    more than tau a version stays as a side branch if it helps training questions, of some category at
    least: a later edit may build on that.

    Args:
        guard, train: Gains of the scores. categories: of training questions, by category.
    """
    if guard >= task.epsilon:
        return "accepted"
    helps = train > 0 or any(gain > task.epsilon for gain in categories.values())
    return "side branch" if helps and guard >= -task.tau else "discarded"


def _edited(task: Task, tree: Tree, base: Theta, changes: Sequence[Change]) -> tuple[Theta, str, list[str]]:
    """The first edit that gives a version that is not in the tree: each direction by itself, then all
    together, then some dimensions moved at random; with its direction and its reasons."""
    known = {node.version for node in tree.nodes}
    directions = list(dict.fromkeys(change.pattern or "other" for change in changes))
    bundles = [[one for one in changes if (one.pattern or "other") == name] for name in directions]
    together = [(" and ".join(directions), list(changes))] if len(directions) > 1 else []
    for direction, bundle in [*zip(directions, bundles, strict=True), *together]:
        theta = capped(Theta.model_validate(with_all(base, bundle)["theta"]), task.token_budget)
        if _pipeline(task, theta, None).version not in known:
            return theta, direction, [f"{one.path}: {one.reason}" for one in bundle if one.reason]
    return capped(perturbed(base, f"{task.seed} version {len(tree.nodes)}"), task.token_budget), EXPLORED, []


def _based(state: ProgramState) -> tuple[Tree, Node]:
    tree = Tree.model_validate(state["tree"])
    return tree, tree.nodes[state["base"]]


def _theta(lab: Lab, node: Node) -> Theta:
    return Pipeline.load(lab.folder.versions / node.folder).theta


def _pipeline(task: Task, theta: Theta, base: Node | None) -> Pipeline:
    parent = None if base is None else base.version
    return Pipeline(model=task.model, theta=theta, switches=task.settings.switches, parent=parent)


def _written(lab: Lab, pipeline: Pipeline, number: int, note: str) -> str:
    """The name of the version's folder, written if a run that broke off has not done so."""
    name = f"{number:03}-{pipeline.version}"
    if not (lab.folder.versions / name / PIPELINE).is_file():
        pipeline.save(lab.folder.versions / name, note)
    return name


def _note(base: Node, direction: str, edit: dict[str, Any], why: Sequence[str]) -> str:
    changed = "\n".join(f"- `{path}` = {value}" for path, value in edit.items())
    reasons = "".join(f"\n- {one}" for one in why)
    told = f"\n## Why\n{reasons}\n" if reasons else ""
    return f"# {direction}\n\nBase: {base.folder}\n\n{changed}\n{told}"


def _scores(lab: Lab, theta: Theta) -> dict[str, Any]:
    train, guard = lab.evaluate(theta, "train"), lab.evaluate(theta, "guard")
    usage = reduce(add_usage, (one.usage for one in [*train, *guard]), Usage())
    return {
        "train": lab.task.score(train),
        "guard": lab.task.score(guard),
        "categories": _by_category(lab.task, train),
        "asked": len(train),
        "tokens": round(fmean(sum(one.shown.tokens.values()) for one in train), 1),
        "calls": sum(count["calls"] for count in usage.values()),
    }


def _by_category(task: Task, records: Sequence[QuestionRecord]) -> dict[str, float]:
    groups: dict[str, list[QuestionRecord]] = {}
    for record in records:
        groups.setdefault(record.category or "any", []).append(record)
    return {name: task.score(own) for name, own in sorted(groups.items())}
