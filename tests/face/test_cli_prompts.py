"""`memcycle prompts`: listed, shown, exported, checked, compared; and used."""

import json

import pytest
from typer.testing import CliRunner

from memcycle.cli.app import app
from memcycle.prompts import PromptSet
from tests.loopback import model_server

SHIPPED = PromptSet.shipped()


def run(*args: str, code: int = 0):
    result = CliRunner().invoke(app, ["prompts", *args])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def folder(tmp_path):
    """All shipped prompts, as files."""
    run("export", str(tmp_path / "mine"))
    return tmp_path / "mine"


def alter(path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_every_prompt_is_listed_with_its_version():
    rows = json.loads(run("--json").stdout)
    assert [row["role"] for row in rows] == SHIPPED.roles()
    assert [row["version"] for row in rows] == [SHIPPED.version(role) for role in SHIPPED.roles()]
    assert all(row["shipped"] for row in rows)
    told = run().stdout
    assert all(SHIPPED.version(role) in told for role in SHIPPED.roles())


def test_a_prompt_is_shown_as_written():
    assert run("show", "judge").stdout.strip() == SHIPPED.text("judge").strip()
    assert json.loads(run("show", "judge", "--json").stdout)["text"] == SHIPPED.text("judge")
    assert "there are prompts for answerability" in run("show", "nobody", code=2).stderr


def test_what_is_exported_is_what_is_shipped(folder):
    assert {path.stem: path.read_text() for path in folder.glob("*.txt")} == {
        role: SHIPPED.text(role) for role in SHIPPED.roles()
    }
    assert run("diff", str(folder)).stdout == "No difference to the shipped prompts.\n"
    assert json.loads(run("check", str(folder), "--json").stdout)["faults"] == []


def test_only_named_roles_are_exported(tmp_path):
    run("export", str(tmp_path / "few"), "judge", "answerer")
    assert sorted(path.name for path in (tmp_path / "few").iterdir()) == ["answerer.txt", "judge.txt"]
    run("export", str(tmp_path / "few"), "nobody", code=2)


def test_edited_prompts_are_not_replaced_unasked(folder):
    (folder / "judge.txt").write_text("mine")
    assert "judge" in run("export", str(folder), code=2).stderr
    assert (folder / "judge.txt").read_text() == "mine"
    run("export", str(folder), "--yes")
    assert (folder / "judge.txt").read_text() == SHIPPED.text("judge")


def test_a_check_tells_every_fault_at_once(folder):
    alter(folder / "judge.txt", "${memories}", "nothing")
    alter(folder / "answerer.txt", "Style: $style", "Costs $: $question $datum")
    (folder / "nobody.txt").write_text("Hello")
    faults = json.loads(run("check", str(folder), "--json", code=1).stdout)["faults"]
    assert len(faults) == 3
    told = run("check", str(folder), code=1).stdout
    for words in ("required placeholder $memories is missing", "stray $", "unknown role 'nobody'"):
        assert words in told
    assert "retriever" in told


@pytest.mark.parametrize("command", ["check", "diff"])
def test_a_folder_that_is_not_there_is_named(tmp_path, command):
    assert "does not exist" in run(command, str(tmp_path / "none"), code=2).stderr


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    assert "is a file" in run("export", str(tmp_path / "file"), code=2).stderr


def test_changes_are_shown_by_line(folder):
    alter(folder / "judge.txt", "\n---\n", "\nBe kind.\n---\n")
    lines = run("diff", str(folder)).stdout.splitlines()
    assert lines[:2] == ["--- shipped/judge.txt", "+++ own/judge.txt"]
    assert [line for line in lines[2:] if line.startswith(("+", "-"))] == ["+Be kind."]
    listed = {row["role"]: row for row in json.loads(run("--folder", str(folder), "--json").stdout)}
    assert [role for role, row in listed.items() if not row["shipped"]] == ["judge"]


@pytest.mark.allow_hosts(["127.0.0.1"])
def test_a_model_reads_the_prompts_of_the_folder(cli, chat, folder, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    alter(folder / "constructor.txt", "\n---\n", "\nMind the gap.\n---\n")
    with model_server() as server:
        model = ["--model", "openai:any", "--base-url", server.url, "--prompts", str(folder)]
        cli.run("ingest", chat({}), "--user", "ann", *model)
        assert any("Mind the gap." in json.dumps(request) for request in server.requests)


def test_rules_read_no_prompts(cli, chat, folder):
    told = cli.fails("ingest", chat({}), "--user", "ann", "--prompts", str(folder), code=2)
    assert "--prompts needs a model" in told
