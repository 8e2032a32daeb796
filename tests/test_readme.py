"""Every example of the README runs, as it stands there."""

import asyncio
import io
import json
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memcycle.cli.app import app
from tests.loopback import Reply, model_server

TEXT = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
PYTHON = [code for language, code in BLOCKS if language == "python"]
BASH = [code for language, code in BLOCKS if language == "bash"]
JSONL = re.search(r"`(\{\"session\".*?\})`", TEXT, flags=re.DOTALL).group(1).replace("\n", " ")

EXPECTED = {
    "When did the user adopt a cat?": "7 May 2024",
    "openai:gpt-4o-mini": "constructor",
    "What do I keep on the roof?": "beehives",
    "What does the user play?": "cello",
    "memory.session(": "->",
    "checkpointer(": "['Dt2:1']",
    "class Desk": "Heron",
    "create_agent(": "fencing",
    "MemcycleStore(": "greenhouse key",
    "Command(resume": "-> I no longer",
    "memory.resume(": "in Vienna. => I no longer live in Vienna, I moved to Graz.\nNone []",
    "prompts.text(": "",
    "Theta().with_changes(": "k: 500 is out of range, 200 is used\nTom sold me a red canoe.",
    "memory.graphs[": "gpt-4.1 True",
    'stream_mode="custom"': "remember stage staged",
    "lenient = ": "",
    "Redact(patterns": "My badge is [redacted: badge], my password is [redacted: password].",
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEMCYCLE_HOME", raising=False)


def test_the_readme_has_the_examples_this_module_knows():
    assert len(PYTHON) == len(EXPECTED)
    assert len(BASH) == 5


@pytest.mark.parametrize("mark", EXPECTED)
def test_python_example(mark, socket_enabled):
    code = next(code for code in PYTHON if mark in code)
    printed = io.StringIO()
    with model_server() as server, redirect_stdout(printed):
        server.script("search_memory", Reply("Good to know."))
        exec(compile(code.replace("http://localhost:8000/v1", server.url), "README.md", "exec"), {})
    assert EXPECTED[mark] in printed.getvalue()


def test_the_embedding_example_runs_awaited_too():
    """A parent with keys and a context of its own, as the README builds it."""
    code = next(code for code in PYTHON if "class Desk" in code)
    names: dict = {}
    with redirect_stdout(io.StringIO()):
        exec(compile(code, "README.md", "exec"), names)
    value = {"heard": ["My bicycle is called Swift."], "ask": "What is my bicycle called?"}
    done = asyncio.run(names["parent"].compile().ainvoke(value))
    assert "Swift" in done["known"]["answer"]
    assert set(done) == set(names["Desk"].__annotations__)


def test_bash_examples(tmp_path, socket_enabled):
    with model_server() as server:
        _run_all(tmp_path, server.url)


def _run_all(tmp_path, url: str) -> None:
    (tmp_path / "chat.jsonl").write_text(JSONL + "\n")
    fact = ""
    for line in "".join(BASH).splitlines():
        command, _, target = line.replace(" ID ", f" {fact} ").partition(" > ")
        arguments = shlex.split(command)
        assert arguments[0] == "memcycle"
        extra = ["--yes"] if arguments[1] == "forget" else []
        extra += ["--base-url", url] if "--model" in arguments else []
        done = CliRunner().invoke(app, [*arguments[1:], *extra])
        assert done.exit_code == 0, f"{line}: {done.output}"
        if target:
            Path(target).write_text(done.stdout)
        if "--granularity fact" in line:
            listed = CliRunner().invoke(app, ["memories", "--user", "ana", "--granularity", "fact", "--json"])
            fact = json.loads(listed.stdout)[0]["id"]
        if arguments[1] == "ask":
            assert "Graz" in done.stdout
        if arguments[1] == "edit":
            edited = CliRunner().invoke(app, ["memories", "--user", "ana", "--json"])
            fact = next(row["id"] for row in json.loads(edited.stdout) if "Linz" in row["text"])
    left = CliRunner().invoke(app, ["memories", "--user", "ana", "--json"])
    assert json.loads(left.stdout) == []


def test_the_jsonl_example_is_one_turn():
    assert set(json.loads(JSONL)) == {"session", "speaker", "role", "text", "time"}


def test_the_drawn_graph_is_what_the_command_draws():
    drawn = [code for language, code in BLOCKS if language == "mermaid"][1]
    assert drawn.rstrip() == CliRunner().invoke(app, ["graph", "memory"]).stdout.rstrip()
