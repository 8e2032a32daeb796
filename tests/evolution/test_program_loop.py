"""A tree grown by a scripted Diagnoser, over scores that are made up, then over real searches."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from memcycle.agents.diagnoser import Change, DiagnoserOutput
from memcycle.agents.pipeline import NOTE, Pipeline
from memcycle.evolution.program.graph import build_program
from memcycle.evolution.program.tree import Tree
from memcycle.memory import Memory
from tests.evolution.evolve_and_die import grow
from tests.evolution.made_evolution import ScoredLab, scripted

ROOT = Path(__file__).resolve().parents[2]


def by_k(theta, split, memory):
    """Grows with k up to 60, and a little with the candidates on training questions alone."""
    return min(theta.k, 60) / 100 + (0.001 if split == "train" and theta.candidates > 150 else 0)


def changes(**patterns):
    """A Diagnoser's output; by pattern the change it asks for."""
    return DiagnoserOutput(
        changes=[
            Change(path=path, value=value, pattern=pattern, reason="it fails")
            for pattern, (path, value) in patterns.items()
        ]
    )


def grown(path, score, *replies, **options):
    lab = ScoredLab(path, score, **options)
    roles, seen = scripted(*replies)
    out = build_program(roles, lab).invoke({}, {"recursion_limit": 200})
    return Tree.model_validate(out["tree"]), lab, seen


def test_versions_are_made_from_what_promises_most_and_kept_by_the_guard_split(tmp_path):
    tree, lab, seen = grown(
        tmp_path,
        by_k,
        changes(outranked=("k", 40), drowned=("k", 20)),
        changes(outranked=("k", 50)),
        changes(drowned=("k", 10)),
        changes(unexplained=("candidates", 400)),
        rounds=4,
    )
    assert [(one.parent, one.standing) for one in tree.nodes] == [
        (None, "accepted"),
        (0, "accepted"),
        (1, "accepted"),
        (2, "discarded"),
        (2, "side branch"),
    ]
    assert [one.guard for one in tree.nodes] == [0.3, 0.4, 0.5, 0.1, 0.5]
    assert tree.best.number == 2
    assert tree.nodes[1].edit == {"k": 40}, "one way of failing is answered at a time"
    assert tree.nodes[1].direction == "outranked"
    assert (tree.nodes[1].fixed, tree.nodes[1].broken) == (6, 0)
    assert tree.nodes[3].broken == 6
    outcomes = [(one.round, one.changes, one.outcome) for one in seen[3].tried]
    assert outcomes == [(1, {"k": 40}, "kept"), (2, {"k": 50}, "kept"), (3, {"k": 10}, "taken back")]
    assert Tree.load(tmp_path) == tree
    assert lab.folder.versions == tmp_path / "versions"


def test_the_diagnosis_sees_training_questions_alone_and_nobody_held_out_ones(tmp_path):
    _, lab, _ = grown(tmp_path, by_k, changes(outranked=("k", 40)), rounds=1)
    assert {split for _, split, _ in lab.asked} == {"train", "guard"}


def test_each_version_is_a_folder_that_runs(tmp_path):
    tree, lab, _ = grown(tmp_path / "run", by_k, changes(outranked=("k", 40)), rounds=1)
    folder = lab.folder.versions / tree.best.folder
    own = Pipeline.load(folder)
    assert (own.theta.k, own.version, own.parent) == (40, tree.best.version, tree.nodes[0].version)
    note = (folder / NOTE).read_text()
    assert "`k` = 40" in note
    assert "it fails" in note
    assert "accepted: guard +0.1000" in note
    with Memory.open(tmp_path / "home", pipeline=folder, user="ana") as memory:
        memory.add("I keep two canoes in Bergen.")
        assert "Bergen" in memory.ask("Where do I keep canoes?").answer


def test_without_an_edit_that_is_news_dimensions_are_moved(tmp_path):
    tree, _, _ = grown(tmp_path, by_k, changes(outranked=("k", 40)), changes(), rounds=3)
    assert [one.direction for one in tree.nodes[2:]] == ["explored", "explored"]
    assert len({one.version for one in tree.nodes}) == 4


def test_nobody_asks_on_when_calls_are_spent(tmp_path):
    class Costly(ScoredLab):
        def evaluate(self, theta, split, memory=0):
            usage = {"answerer": {"calls": 5, "input_tokens": 1, "output_tokens": 1}}
            return [one.model_copy(update={"usage": usage}) for one in super().evaluate(theta, split, memory)]

    lab = Costly(tmp_path, by_k, rounds=9, max_calls=200)
    roles, _ = scripted()
    tree = Tree.model_validate(build_program(roles, lab).invoke({}, {"recursion_limit": 200})["tree"])
    assert [one.calls for one in tree.nodes] == [60, 60, 60]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    path = tmp_path_factory.mktemp("unbroken") / "out"
    return path, grow(path)


@pytest.mark.slow
@pytest.mark.parametrize("question", [4, 21, 40, 52])
def test_a_killed_tree_grows_on_and_no_question_is_asked_twice(tmp_path, unbroken, question):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.evolution.evolve_and_die",
            str(tmp_path / "out"),
            str(question),
            "tree",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=300,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    figures = grow(tmp_path / "out", resume=True)
    assert figures["tree"] == unbroken[1]["tree"]
    assert figures["held_out"] == unbroken[1]["held_out"]
    times = Counter((tmp_path / "asked.txt").read_text().splitlines())
    assert set(times.values()) == {1}


def test_a_finished_tree_is_read_and_reported(unbroken):
    path, figures = unbroken
    before = (path.parent / "asked.txt").read_text()
    assert grow(path, resume=True) == figures
    assert (path.parent / "asked.txt").read_text() == before
    report = (path / "report.md").read_text()
    assert "flowchart TD" in report
    assert "## Held out" in report
    assert json.loads((path / "tree.json").read_text()) == figures["tree"]
