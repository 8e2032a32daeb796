"""`memcycle program`: versions made, shown, compared; a tree grown, drawn, and taken from."""

import json

import pytest
from typer.testing import CliRunner

from memcycle.agents.pipeline import Pipeline
from memcycle.cli.app import app
from memcycle.prompts import PromptSet
from tests.evolution.test_cli_evolve import SPLITS, ours  # noqa: F401 - conversations as a file


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    for name in ("MEMCYCLE_HOME", "MEMCYCLE_PIPELINE", "MEMCYCLE_EMBEDDER", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def run(*args, code=0):
    result = CliRunner().invoke(app, [*map(str, args)])
    assert result.exit_code == code, result.output
    return result


def test_a_version_is_made_shown_and_compared(tmp_path):
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    (prompts / "judge.txt").write_text(PromptSet.shipped().text("judge") + "\nBe strict.")
    theta = tmp_path / "theta.json"
    theta.write_text('{"k": 5}')
    shipped = json.loads(run("program", "init", tmp_path / "a", "--json").stdout)
    assert shipped["version"] == Pipeline().version
    run("program", "init", tmp_path / "b", "--theta", theta, "--prompts", prompts)
    assert "pipeline.json" not in run("program", "show", tmp_path / "a").stdout
    changed = json.loads(run("program", "diff", tmp_path / "a", tmp_path / "b", "--json").stdout)
    assert changed["theta.k"] == [Pipeline().theta.k, 5]
    assert changed["prompts.judge"][1].endswith("Be strict.")
    assert set(changed) == {"theta.k", "prompts.judge"}
    assert json.loads(run("program", "show", tmp_path / "b", "--json").stdout)["changes"] == changed
    assert "theta.k" in run("program", "show", tmp_path / "b").stdout
    assert "holds a pipeline" in run("program", "init", tmp_path / "a", code=2).stderr


def test_commands_run_a_version(tmp_path, monkeypatch):
    Pipeline(theta={"k": 5}).save(tmp_path / "v")
    said = tmp_path / "said.jsonl"
    turn = {"session": "1", "speaker": "Ann", "role": "human", "time": "2024-05-01T09:00:00Z"}
    said.write_text(json.dumps({**turn, "text": "I keep two canoes in Bergen."}))
    home = ("--user", "ann", "--home", tmp_path / "home")
    run("ingest", said, *home, "--pipeline", tmp_path / "v")
    monkeypatch.setenv("MEMCYCLE_PIPELINE", str(tmp_path / "v"))
    assert "Bergen" in run("ask", "Where are the canoes?", *home).stdout
    versions = {one["pipeline"] for one in json.loads(run("memories", *home, "--json").stdout)}
    assert Pipeline(theta={"k": 5}).version in versions
    monkeypatch.setenv("MEMCYCLE_PIPELINE", str(tmp_path))
    assert "no pipeline.json there" in run("ask", "Where?", *home, code=2).stderr


def test_a_tree_is_grown_drawn_and_taken_from(tmp_path, ours):  # noqa: F811
    out = tmp_path / "out"
    asked = ("program", "evolve", "jsonl", "--data", ours, *SPLITS, "--out", out, "--facts", "none")
    asked = (*asked, "--start", "weak", "--rounds", 3, "--token-budget", 60)
    figures = json.loads(run(*asked, "--json").stdout)
    nodes = figures["tree"]["nodes"]
    assert len(nodes) == 4
    assert {one["folder"] for one in nodes} == {path.name for path in (out / "versions").iterdir()}
    assert 0 <= figures["held_out"]["root"]["held_out"] <= 1
    assert "add --resume" in run(*asked, code=2).stderr
    again = run(*asked, "--resume").stdout
    assert "held out" in again
    assert "the root" in again
    drawn = json.loads(run("program", "tree", out, "--json").stdout)
    assert drawn["nodes"] == nodes
    assert drawn["best"] == figures["best"]["number"]
    assert run("program", "tree", out, "--mermaid").stdout.startswith("flowchart TD")
    assert "accepted" in run("program", "tree", out).stdout
    run("program", "export", out, tmp_path / "mine")
    assert Pipeline.load(tmp_path / "mine").version == nodes[drawn["best"]]["version"]
    run("program", "export", out, tmp_path / "first", "0")
    assert Pipeline.load(tmp_path / "first").version == nodes[0]["version"]
    assert "is there already" in run("program", "export", out, tmp_path / "mine", code=2).stderr
    assert "number from 0 to 3" in run("program", "export", out, tmp_path / "other", "9", code=2).stderr


def test_a_folder_without_a_tree_is_told(tmp_path):
    assert "tree.json" in run("program", "tree", tmp_path, code=2).stderr


@pytest.mark.parametrize("command", [(), ("evolve",)])
def test_alone_it_shows_its_help(command):
    assert "Usage" in run("program", *command).stdout
