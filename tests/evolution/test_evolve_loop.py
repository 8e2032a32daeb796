"""The loop with a scripted Diagnoser and scores that are made up."""

import json

import pytest

from memcycle.core.errors import RoleFailed
from memcycle.core.theta import Theta
from memcycle.evolution.evolve import build_evolve
from memcycle.evolution.run import run
from memcycle.evolution.theta.space import fingerprint
from tests.evolution.made_evolution import BEGUN, ScoredLab, changes, missed, scripted


def by_k(theta, split, memory):
    """Grows with k up to 60."""
    return min(theta.k, 60) / 100


def looped(path, score, *replies, **options):
    lab = ScoredLab(path, score, **options)
    roles, seen = scripted(*replies)
    return build_evolve(roles, lab).invoke({}), seen, lab


def actions(out):
    return [row["decision"] for row in out["rows"]]


def read(lab, number, name):
    return json.loads((lab.folder.round(number) / name).read_text())


def test_what_helps_on_the_guard_is_applied(tmp_path):
    out, _, lab = looped(tmp_path, by_k, changes(k=40), changes(k=50), rounds=2)
    assert actions(out) == ["apply", "apply", "stop"]
    assert [row["guard"] for row in out["rows"]] == [0.3, 0.4, 0.5]
    assert out["best"]["round"] == 2
    assert Theta.model_validate(out["best"]["theta"]).k == 50
    assert read(lab, 1, "theta.json")["k"] == 40
    assert read(lab, 0, "decision.json")["next"] == {"k": 40}


def test_a_drop_is_reverted_and_the_best_is_diagnosed_again(tmp_path):
    out, seen, lab = looped(tmp_path, by_k, changes(k=10), changes(k=45), rounds=2)
    assert actions(out) == ["apply", "revert", "stop"]
    assert [row["guard"] for row in out["rows"]] == [0.3, 0.1, 0.45]
    values = {one.path: one.value for one in seen[1].dimensions}
    assert values["k"] == 30, "the failures are those of the best, and so is the configuration"
    assert [(one.changes, one.outcome) for one in seen[1].tried] == [({"k": 10}, "taken back")]
    assert read(lab, 1, "diagnosis.json")["of_round"] == 0


def test_a_small_loss_stays_but_is_not_the_best(tmp_path):
    out, seen, _ = looped(tmp_path, by_k, changes(k=29), changes(k=28), rounds=2)
    assert actions(out) == ["apply", "apply", "stop"]
    assert {one.path: one.value for one in seen[1].dimensions}["k"] == 29
    assert Theta.model_validate(out["best"]["theta"]).k == 30


def test_two_flat_rounds_are_left_by_a_seeded_perturbation_and_a_third_ends(tmp_path):
    out, _, _ = looped(tmp_path / "a", lambda *_: 0.5)
    assert actions(out) == ["apply", "apply", "explore", "stop"]
    assert "converged" in out["rows"][-1]["why"]
    thetas = [row["theta"] for row in out["rows"]]
    assert thetas[0] == thetas[1] == thetas[2] != thetas[3]
    again, _, _ = looped(tmp_path / "b", lambda *_: 0.5)
    assert [row["theta"] for row in again["rows"]] == thetas
    other, _, _ = looped(tmp_path / "c", lambda *_: 0.5, seed=1)
    assert other["rows"][3]["theta"] != thetas[3]


def test_an_exploration_that_helps_goes_on(tmp_path):
    begun = fingerprint(BEGUN)
    out, _, _ = looped(tmp_path, lambda theta, *_: 0.5 if fingerprint(theta) == begun else 0.7, rounds=4)
    assert actions(out) == ["apply", "apply", "explore", "apply", "stop"]
    assert out["best"]["round"] == 3


def test_a_value_out_of_range_is_clamped_and_says_so(tmp_path):
    out, _, lab = looped(tmp_path, by_k, changes(k=9000), rounds=1)
    assert Theta.model_validate(out["best"]["theta"]).k == 200
    assert read(lab, 0, "diagnosis.json")["proposal"]["clamped"] == [
        {"path": "k", "asked": 9000, "given": 200}
    ]


def test_an_unknown_dimension_is_a_wish_and_changes_nothing(tmp_path):
    out, _, lab = looped(tmp_path, by_k, changes(rerank__model="big", k=40), rounds=1)
    proposal = read(lab, 0, "diagnosis.json")["proposal"]
    assert [one["path"] for one in proposal["proposed"]] == ["rerank.model"]
    assert proposal["applied"] == {"k": 40}
    assert "rerank" not in out["best"]["theta"]


def test_a_malformed_value_is_refused_and_the_others_count(tmp_path):
    _, _, lab = looped(tmp_path, by_k, changes(k="lots", fusion="sideways", density=0.3), rounds=1)
    proposal = read(lab, 0, "diagnosis.json")["proposal"]
    assert {one["path"] for one in proposal["refused"]} == {"k", "fusion"}
    assert proposal["applied"] == {"density": 0.3}


def test_a_diagnoser_that_fails_changes_nothing(tmp_path):
    failed = RoleFailed("diagnoser", "no JSON", "as I said")
    out, _, lab = looped(tmp_path, by_k, failed, changes(k=40), rounds=2)
    assert [row["guard"] for row in out["rows"]] == [0.3, 0.3, 0.4]
    assert read(lab, 0, "diagnosis.json")["failed"] == "role 'diagnoser' failed"


def test_the_diagnosis_sees_the_training_split_alone(tmp_path):
    def score(theta, split, memory):
        return {"train": 0.25, "guard": 0.75}[split]

    out, seen, lab = looped(tmp_path, score, rounds=1)
    assert seen[0].score == 0.25
    assert [row["guard"] for row in out["rows"]] == [0.75, 0.75]
    assert {split for _, split, _ in lab.asked} == {"train", "guard"}


def test_a_gain_on_training_questions_alone_is_taken_back(tmp_path):
    def score(theta, split, memory):
        return theta.k / 100 if split == "train" else 1 - theta.k / 100

    out, _, _ = looped(tmp_path, score, changes(k=60), rounds=1)
    assert out["rows"][1]["train"] > out["rows"][0]["train"]
    assert Theta.model_validate(out["best"]["theta"]).k == 30


def test_missing_coverage_has_memory_read_again(tmp_path):
    def score(theta, split, memory):
        return 0.3 + 0.2 * memory

    out, _, lab = looped(tmp_path, score, changes(missing="no facts of it"), rounds=1)
    assert [row["memory"] for row in out["rows"]] == [0, 1]
    assert out["best"]["memory"] == 1
    assert read(lab, 0, "decision.json")["reread"] is True


def test_a_new_dimension_of_writing_is_a_memory_of_its_own(tmp_path):
    out, _, _ = looped(tmp_path, by_k, changes(missing="no facts of it", extraction__coverage=0.5), rounds=1)
    assert [row["memory"] for row in out["rows"]] == [0, 0]


def test_the_state_is_plain_data(tmp_path):
    lab = ScoredLab(tmp_path, by_k, [missed()], rounds=2)
    roles, _ = scripted(changes(k=40))
    for part in build_evolve(roles, lab).stream({}, stream_mode="values"):
        assert json.loads(json.dumps(part)) == part


def test_the_graph_without_a_lab_says_what_it_needs():
    with pytest.raises(ValueError, match="'request'"):
        build_evolve().invoke({})


def test_the_figures_of_a_run(tmp_path):
    lab = ScoredLab(tmp_path, by_k, rounds=2, random_seeds=(0, 1, 2))
    roles, _ = scripted(changes(k=50))
    figures = run(lab, roles, command="memcycle evolve ...", ablate="held_out")
    assert {"rounds", "start", "best", "random", "theta"} <= set(figures)
    assert all({"round", "decision", "train", "guard"} <= set(row) for row in figures["rounds"])
    assert figures["start"]["held_out"] == 0.3
    assert figures["best"]["held_out"] == 0.5
    assert figures["gain"]["gain"] == pytest.approx(0.2)
    assert [one["seed"] for one in figures["random"]["seeds"]] == [0, 1, 2]
    assert figures["random"]["evaluations"] == 2
    low, high = figures["random"]["interval"]
    assert low <= figures["random"]["held_out"] <= high
    assert figures["changed"] == {"k": [30, 50]}
    assert Theta.load(lab.folder.best).k == 50
    assert {row["mechanism"] for row in figures["ablation"]["rows"]} >= {"entity swap", "lexical view"}
    assert lab.folder.run.plot.read_text().startswith("<svg")
    report = lab.folder.run.report.read_text()
    assert "## Held out" in report
    assert "`k` 50: it fails" in report


def test_held_out_questions_are_asked_of_what_is_reported_and_of_nothing_else(tmp_path):
    lab = ScoredLab(tmp_path, by_k, rounds=3)
    roles, _ = scripted(changes(k=40), changes(k=50), changes(k=10))
    run(lab, roles)
    best = fingerprint(Theta(k=50, token_budget=500))
    assert {mark for mark, split, _ in lab.asked if split == "held_out"} == {fingerprint(BEGUN), best}
