"""`memcycle eval`: its figures, its folder, its refusals."""

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memcycle.cli.app import app
from memcycle.cli.measure import DATA_SETS, command_line
from tests.loopback import model_server

DATA = Path(__file__).parents[1] / "evals" / "data"
FIGURES = [
    "data", "conversations", "n", "recall", "all_evidence", "recall_at_tokens", "session_any", "f1", "bleu1",
    "accuracy", "abstained", "by_category", "baselines", "usage", "seconds",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    for name in ("MEMCYCLE_HOME", "MEMCYCLE_DEBUG", "MEMCYCLE_EMBEDDER", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def run(*args, code=0):
    result = CliRunner().invoke(app, ["eval", *map(str, args)])
    assert result.exit_code == code, result.output
    return result


def refused(*args, code=2):
    result = run(*args, code=code)
    assert result.stdout == ""
    [line] = [line for line in result.stderr.splitlines() if line.strip()]
    assert line.startswith("Error: ")
    return line


def locomo(*args):
    return ("locomo", "--data", DATA / "locomo.json", "--workers", "1", *args)


def test_figures_as_json(tmp_path):
    figures = json.loads(run(*locomo("--facts", "observations", "--out", tmp_path / "out", "--json")).stdout)
    assert [name for name in figures if name in FIGURES] == FIGURES
    assert list(figures["recall"]) == ["5", "10", "20", "30"]
    assert list(figures["recall_at_tokens"]) == ["250", "500", "1000", "2000", "4000"]
    assert list(figures["session_any"]) == ["5", "10"]
    assert set(figures["abstained"]) == {"right", "wrong"}
    assert figures["accuracy"] is None
    assert 0 < figures["recall"]["10"] <= 1
    assert figures == json.loads((tmp_path / "out" / "summary.json").read_text())
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "config.json", "records.jsonl", "stored.jsonl", "summary.json", "report.md", "recall_by_tokens.svg",
    }  # fmt: skip


def test_the_folder_says_what_was_run(tmp_path):
    run(*locomo("--facts", "none", "--k", "7", "--token-budget", "300", "--out", tmp_path / "out", "--json"))
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["plan"]["k"], config["plan"]["token_budget"], config["plan"]["facts"]) == (7, 300, "none")
    assert re.fullmatch(r"[0-9a-f]{64}", config["plan"]["sha256"])
    assert config["plan"]["settings"]["theta"]["weights"]
    assert "home" not in config["plan"]["settings"]
    assert config["versions"]["memcycle"]
    assert config["seeds"] == []


def test_figures_as_people_read_them(tmp_path):
    out = tmp_path / "out"
    result = run(*locomo("--facts", "none", "--no-answers", "--out", out))
    assert "memcycle" in result.stdout
    assert "weighted_sum" in result.stdout
    assert str(out / "report.md") in result.stdout.replace("\n", "")
    assert "storing made-up-1: 5" in result.stderr
    assert "asking made-up-1: 4" in result.stderr


def test_a_run_is_resumed_and_another_is_refused(tmp_path):
    out = ("--facts", "none", "--no-answers", "--out", tmp_path / "out")
    first = json.loads(run(*locomo(*out, "--json")).stdout)
    again = json.loads(run(*locomo(*out, "--resume", "--json")).stdout)
    assert again == first | {"seconds": again["seconds"]}
    assert "--resume" in refused(*locomo(*out))
    assert "plan.k" in refused(*locomo(*out, "--resume", "--k", "3"))


def test_other_data_under_the_same_name_is_another_run(tmp_path):
    data = tmp_path / "data.json"
    shutil.copy(DATA / "locomo.json", data)
    args = (
        "locomo",
        "--data",
        data,
        "--workers",
        "1",
        "--no-answers",
        "--facts",
        "none",
        "--out",
        tmp_path / "out",
    )
    run(*args)
    data.write_text(data.read_text() + "\n")
    assert "sha256" in refused(*args, "--resume")


def test_every_data_set_can_be_asked():
    for kind in DATA_SETS:
        file = {"jsonl": "own.jsonl"}.get(kind, f"{kind}.json")
        args = (
            kind,
            "--data",
            DATA / file,
            "--facts",
            "none",
            "--no-answers",
            "--no-baselines",
            "--workers",
            "1",
        )
        figures = json.loads(run(*args, "--json").stdout)
        assert figures["data"] == kind, kind
        assert figures["n"] > 0, kind
        assert figures["failed"] == 0, kind
        assert figures["baselines"] == {}, kind


@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_a_model_reads_answers_and_judges():
    with model_server() as server:
        args = ("--facts", "openai:any", "--judge", "openai:any", "--base-url", server.url, "--limit", "2")
        figures = json.loads(run(*locomo(*args, "--json")).stdout)
    assert {"constructor", "answerer", "evaluation judge"} <= set(figures["usage"])
    assert figures["accuracy"] is not None
    assert 1 <= figures["calls_per_question"] <= 4  # with that of the judge
    assert figures["failed"] == 0


@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_a_server_that_is_gone_stops_the_run(tmp_path):
    with model_server() as server:
        address = server.url
    args = ("--facts", "none", "--model", "openai:any", "--base-url", address, "--out", tmp_path / "out")
    assert "cannot be reached" in run(*locomo(*args), code=1).stderr.splitlines()[-1]
    assert not (tmp_path / "out" / "report.md").exists()


def test_what_cannot_be_asked():
    for args, words in [
        (("--conversations", "conv-99"), ["conv-99", "made-up-1"]),
        (("--facts", "magic"), ["--facts", "'magic'", "observations"]),
        (("--model", "none"), ["--model", "'none'"]),
        (("--judge", "gpt"), ["--judge", "openai:NAME"]),
        (("--resume",), ["--out"]),
        (("--keep",), ["--out"]),
        (("--timezone", "Mars/Base"), ["timezone"]),
    ]:
        error = refused(*locomo(*args))
        assert all(word in error for word in words), error


def test_data_that_are_not_there(tmp_path):
    assert "no such file" in refused("locomo", "--data", tmp_path / "gone.json")
    assert "Missing option" in run("locomo", code=2).stderr
    assert "ships no facts" in refused(
        "jsonl", "--data", DATA / "own.jsonl", "--conversations", "1", "--facts", "observations"
    )


def test_a_key_that_is_missing_is_said_before_the_first_question(tmp_path):
    error = refused(*locomo("--facts", "openai:any", "--out", tmp_path / "out"), code=1)
    assert "OPENAI_API_KEY" in error


def test_the_group_shows_what_there_is():
    assert all(kind in run().stdout for kind in DATA_SETS)


def test_every_command_has_examples():
    for kind in DATA_SETS:
        shown = CliRunner().invoke(app, ["eval", kind, "--help"], env={"COLUMNS": "200"}).stdout
        assert "Examples" in shown, kind
        assert f"memcycle eval {kind} --data" in shown, kind


def test_a_servers_address_is_not_written_down():
    told = command_line(
        ["eval", "locomo", "--base-url", "http://me:secret@host/v1", "--base-url=http://x:y@z"]
    )
    assert told == "memcycle eval locomo --base-url URL --base-url=URL"
