"""`--redact` and `MEMCYCLE_REDACT` on the command line."""

import json

import pytest
from typer.testing import CliRunner

from memcycle.cli.app import app
from memcycle.core.redaction import mark

KEY = "sk-proj-abcDEF1234567890abcd"
TURN = {
    "session": "1",
    "speaker": "Eva",
    "role": "human",
    "time": "2024-05-08T12:00:00Z",
    "text": f"Use {KEY}.",
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.delenv("MEMCYCLE_REDACT", raising=False)
    chat = tmp_path / "chat.jsonl"
    chat.write_text(json.dumps(TURN) + "\n")

    def run(*args: str, code: int = 0) -> str:
        given = [str(chat) if arg == "CHAT" else arg for arg in args]
        result = CliRunner().invoke(app, [given[0], "--home", str(tmp_path / "home"), *given[1:]])
        assert result.exit_code == code, result.output
        return result.stdout if code == 0 else result.output

    return run


def leaks(tmp_path) -> list[str]:
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    return [path.name for path in files if KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("switched", ["option", "environment"])
def test_an_ingest_and_all_that_follows(run, tmp_path, monkeypatch, switched):
    option = ["--redact"] if switched == "option" else []
    if switched == "environment":
        monkeypatch.setenv("MEMCYCLE_REDACT", "true")
    run("ingest", "CHAT", "--user=eva", *option)
    again = json.loads(run("ingest", "CHAT", "--user=eva", "--json", *option))
    assert again["turns"] == 0
    assert mark("api key") in run("ask", f"What is {KEY} for?", "--user=eva", *option)
    (raw,) = json.loads(run("memories", "--user=eva", "--granularity=raw", "--json"))
    run("edit", raw["id"], f"Use {KEY} now.", "--user=eva", *option)
    exported = tmp_path / "out.jsonl"
    run("export", "--user=eva", "-o", str(exported))
    assert KEY not in exported.read_text()
    exported.write_text(exported.read_text().replace(mark("api key"), KEY))
    run("import", str(exported), "--user=ben", *option)
    assert leaks(tmp_path) == []


def test_without_it_nothing_is_taken_out(run, tmp_path):
    run("ingest", "CHAT", "--user=eva")
    assert "ledger.sqlite3" in leaks(tmp_path)


def test_the_option_wins_over_the_environment(run, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMCYCLE_REDACT", "true")
    run("ingest", "CHAT", "--user=eva", "--no-redact")
    assert leaks(tmp_path) != []


def test_a_value_that_is_none_is_named(run, monkeypatch):
    monkeypatch.setenv("MEMCYCLE_REDACT", "perhaps")
    assert "redact" in run("ingest", "CHAT", "--user=eva", code=2)
