"""`memcycle theta`, and `--theta FILE` on the commands that read and search."""

import json

import pytest
from typer.testing import CliRunner

from memcycle.cli.app import app
from memcycle.core.theta import Theta


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")

    def invoke(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return invoke


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text('{"k": 1, "overrides": {"temporal": {"k": 2}}}')
    return path


@pytest.fixture
def wrong(tmp_path):
    path = tmp_path / "wrong.json"
    path.write_text('{"k": 300, "wieghts": {"bm25": 1}}')
    return path


def test_show_lists_every_dimension_with_its_range(run, mine):
    shipped = run("theta")
    assert shipped.exit_code == 0
    assert all(path in shipped.stdout for path in Theta.dimensions())
    assert "1 to 200" in shipped.stdout
    own = run("theta", "show", mine)
    assert "overrides.temporal.k" in own.stdout


def test_show_as_json_is_a_file_again(run, tmp_path, mine):
    again = tmp_path / "again.json"
    again.write_text(run("theta", "show", mine, "--json").stdout)
    assert Theta.load(again) == Theta.load(mine)


def test_diff_names_what_differs(run, tmp_path, mine):
    rows = json.loads(run("theta", "diff", mine, "--json").stdout)
    assert rows == [
        {"path": "k", "mine": 1, "other": 30},
        {"path": "overrides.temporal.k", "mine": 2, "other": None},
    ]
    assert "overrides.temporal.k" in run("theta", "diff", mine).stdout
    assert run("theta", "diff", mine, mine).stdout == "No difference.\n"


def test_check_tells_every_fault(run, mine, wrong):
    fine, bad = run("theta", "check", mine), run("theta", "check", wrong)
    assert (fine.exit_code, bad.exit_code) == (0, 1)
    assert "fine" in fine.stdout
    faults = json.loads(run("theta", "check", wrong, "--json").stdout)["faults"]
    assert faults == [
        "k: expected a whole number from 1 to 200, got 300",
        "wieghts.bm25 is unknown; did you mean weights.bm25?",
    ]
    assert all(fault in bad.stdout for fault in faults)


@pytest.mark.parametrize(
    "command",
    [
        ("theta", "show", "FILE"),
        ("theta", "diff", "FILE"),
        ("ask", "Where?", "--user", "ann", "--theta", "FILE"),
        ("ingest", "chat.jsonl", "--user", "ann", "--theta", "FILE"),
        ("eval", "jsonl", "--data", "chat.jsonl", "--theta", "FILE"),
    ],
)
def test_a_file_that_does_not_fit_is_bad_use(run, wrong, command):
    done = run(*(wrong if word == "FILE" else word for word in command))
    assert done.exit_code == 2
    assert "did you mean weights.bm25?" in done.stderr


def test_a_file_is_used_for_reading_and_asking(run, tmp_path, mine):
    chat, home = tmp_path / "chat.jsonl", tmp_path / "home"
    lines = [
        {"session": "1", "speaker": "Ann", "role": "human", "text": text, "time": f"2024-05-08T10:0{n}:00Z"}
        for n, text in enumerate(
            ["I keep bees on the roof.", "My bees made dark honey.", "Bees like lavender."]
        )
    ]
    chat.write_text("".join(json.dumps(line) + "\n" for line in lines))
    windows = tmp_path / "windows.json"
    windows.write_text('{"extraction": {"window": 3, "overlap": 1}}')
    told = run("ingest", chat, "--user", "ann", "--home", home, "--theta", windows, "--no-verify", "--json")
    assert told.exit_code == 0, told.stderr
    assert [line.split(" (")[0] for line in told.stderr.splitlines() if line.startswith("stored")] == [
        "stored D1:1 to D1:2",
        "stored D1:3 to D1:3",
    ]
    ask = ("ask", "What of the bees?", "--user", "ann", "--home", home, "--evidence-only", "--json")
    many = json.loads(run(*ask).stdout)["evidence"]
    few = json.loads(run(*ask, "--theta", mine).stdout)["evidence"]
    assert len(many) > len(few) == 1
