"""`memcycle evolve`: its figures, its folder, its refusals."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memcycle.cli.app import app
from memcycle.core.errors import BadInput
from memcycle.core.theta import Theta
from memcycle.evolution.evolve import build_evolve
from tests.evolution.made_evolution import SAMPLES

DATA = Path(__file__).parents[1] / "evals" / "data"
SPLITS = ("--train", "1", "--guard", "2", "--held-out", "3")


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    for name in ("MEMCYCLE_HOME", "MEMCYCLE_DEBUG", "MEMCYCLE_EMBEDDER", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ours(tmp_path):
    """The small conversations as a file of one's own."""
    path = tmp_path / "ours.jsonl"
    lines = [
        json.dumps(
            {
                "id": sample.id,
                "turns": [
                    {
                        "session": turn.session,
                        "speaker": turn.speaker,
                        "role": "human",
                        "text": turn.text,
                        "time": turn.time.isoformat(),
                    }
                    for turn in sample.conversation.turns
                ],
                "questions": [
                    {
                        "question": one.question,
                        "answer": one.answer,
                        "evidence": list(one.evidence),
                        "category": one.category,
                    }
                    for one in sample.questions
                ],
            }
        )
        for sample in SAMPLES.values()
    ]
    path.write_text("\n".join(lines))
    return path


def run(*args, code=0):
    result = CliRunner().invoke(app, ["evolve", *map(str, args)])
    assert result.exit_code == code, result.output
    return result


def refused(*args):
    result = run(*args, code=2)
    assert result.stdout == ""
    [line] = [line for line in result.stderr.splitlines() if line.strip()]
    assert line.startswith("Error: ")
    return line


def test_figures_artefacts_and_the_theta_that_is_handed_over(tmp_path, ours):
    out = tmp_path / "out"
    asked = ("jsonl", "--data", ours, *SPLITS, "--out", out, "--facts", "none", "--start", "weak")
    asked = (*asked, "--rounds", "2", "--token-budget", "60")
    result = run(*asked, "--ablate", "held-out", "--json")
    figures = json.loads(result.stdout)
    assert {"rounds", "start", "best", "random", "theta"} <= set(figures)
    for number, row in enumerate(figures["rounds"]):
        assert row["round"] == number
        assert row["decision"] in ("apply", "revert", "explore", "stop")
        assert 0 <= row["train"] <= 1
        assert 0 <= row["guard"] <= 1
        names = {path.name for path in (out / "rounds" / str(number)).iterdir()}
        last = number == len(figures["rounds"]) - 1
        wanted = {"theta.json", "records.jsonl", "decision.json"}
        assert names >= (wanted if last else {*wanted, "diagnosis.json"})
    assert 0 <= figures["start"]["held_out"] <= figures["best"]["held_out"] <= 1
    assert len(figures["random"]["seeds"]) == 3
    best = Theta.load(out / "best_theta.json")
    assert best.model_dump(mode="json") == figures["theta"]
    assert best.version.startswith("evolved-")
    assert (out / "trajectory.svg").read_text().startswith("<svg")
    assert "## Ablation" in (out / "report.md").read_text()
    assert json.loads((out / "summary.json").read_text()) == figures
    records = (out / "rounds" / "0" / "records.jsonl").read_text().splitlines()
    assert {json.loads(line)["conversation"] for line in records} == {"one", "two"}
    assert "asking held_out: 6" in result.stderr

    assert "add --resume" in refused(*asked)
    again = json.loads(run(*asked, "--ablate", "held-out", "--resume", "--json").stdout)
    assert again == figures
    other = (*asked[:-1], "80", "--resume")
    assert "token_budget was 60 and is now 80" in refused(*other)

    shown = run(*asked, "--resume").stdout
    assert "held out" in shown
    assert "best_theta.json" in shown


def test_by_share_of_questions_and_transfer(tmp_path, ours):
    shares = ("--train", "40%", "--guard", "30%", "--held-out", "30%")
    fixed = ("--data", ours, *shares, "--facts", "none", "--no-random", "--rounds", "1", "--json")
    first = json.loads(run("jsonl", *fixed, "--out", tmp_path / "a").stdout)
    assert first["random"] is None
    Theta(version="elsewhere", k=2).save(tmp_path / "mine.json")
    theta = ("transfer", "--theta", tmp_path / "mine.json")
    moved = json.loads(run(*theta, "jsonl", *fixed, "--out", tmp_path / "b").stdout)
    assert moved["start"]["name"] == "mine.json"
    assert moved["beside"]["shipped"]["held_out"] == first["start"]["held_out"]
    assert moved["best"]["held_out"] >= 0


def needed(tmp_path, **changes):
    values = {
        "--data": DATA / "own.jsonl",
        "--train": "1",
        "--guard": "2",
        "--held-out": "1",
        "--out": tmp_path / "out",
    }
    return [part for pair in (values | changes).items() for part in pair]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "--train and --held-out both hold garden club"),
        (
            {"--train": "9"},
            "--train: no conversation '9' in the data; give places 1-2, or an id: garden club, 2",
        ),
        ({"--held-out": "50%"}, "all by shares of questions"),
        ({"--train": "1%", "--guard": "1%", "--held-out": "1%"}, "--train 1% holds no question"),
        ({"--data": DATA / "missing.jsonl"}, "missing.jsonl"),
        ({"--start": "wek"}, "--start 'wek' is no file and no start"),
        ({"--objective": "recal"}, "measures are recall, f1, judge"),
        ({"--objective": "judge"}, "needs --judge MODEL"),
        ({"--model": "gpt"}, "--model 'gpt' is unknown"),
        ({"--diagnoser": "gpt"}, "--diagnoser 'gpt' is unknown"),
    ],
)
def test_refusals(tmp_path, changes, says):
    assert says in refused("jsonl", *needed(tmp_path, **changes))
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_is_left_alone(tmp_path, ours):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    asked = ("jsonl", "--data", ours, *SPLITS, "--out", tmp_path / "out")
    assert "holds other files (mine.txt)" in refused(*asked)


def test_transfer_starts_from_its_theta(tmp_path, ours):
    asked = ("--data", ours, *SPLITS, "--out", tmp_path / "out", "--start", "weak")
    assert "leave --start out" in refused("transfer", "--theta", tmp_path / "t.json", "jsonl", *asked)


def test_help_names_the_starts():
    assert "wrong-weights" in " ".join(run("locomo", "--help").stdout.split())


async def test_the_graph_opens_the_lab_of_its_request(tmp_path, ours):
    asked = {"kind": "jsonl", "data": str(ours), "train": "1", "guard": "2", "held_out": "3"}
    request = {**asked, "facts": "none", "start": "weak", "rounds": 1, "out": str(tmp_path / "out")}
    out = await build_evolve().ainvoke({"request": request})
    assert [row["round"] for row in out["rows"]] == [0, 1]
    assert out["best"]["guard"] == max(row["guard"] for row in out["rows"])
    with pytest.raises(BadInput, match="request: train: Field required"):
        await build_evolve().ainvoke({"request": {"data": str(ours)}})


def test_ask_with_the_evolved_file_shows_the_evidence_of_the_report(ours, tmp_path):
    out = tmp_path / "out"
    args = ("jsonl", "--data", ours, *SPLITS, "--start", "weak", "--rounds", "2", "--no-random", "--json")
    figures = json.loads(run(*args, "--out", out).stdout)
    name = f"{figures['best']['theta']}-0-held_out.jsonl"
    records = [json.loads(line) for line in (out / "evaluations" / name).read_text().splitlines()]
    shelves = [json.loads(line) for line in next(out.rglob("stored.jsonl")).read_text().splitlines()]
    homes = {one["stored"]["conversation"]: one["home"] for one in shelves}
    assert any(record["evidence"] for record in records)
    for record in records:
        home = next(out.rglob(homes[record["conversation"]]))
        asked = ("ask", record["question"], "--user", record["conversation"], "--home", str(home))
        how = ("--theta", str(out / "best_theta.json"), "--token-budget", "500", "--evidence-only", "--json")
        result = CliRunner().invoke(app, [*asked, *how])
        assert result.exit_code == 0, result.output
        assert [item["id"] for item in json.loads(result.stdout)["evidence"]] == record["evidence"]
