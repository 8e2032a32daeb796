"""Every example of the README and of the pages in docs/ runs as it stands; links and drawn graphs hold."""

import asyncio
import importlib.util
import io
import json
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memcycle.cli.app import PANELS, app
from tests.loopback import Reply, model_server

ROOT = Path(__file__).parents[1]
TEXTS = {
    page.relative_to(ROOT).as_posix(): page.read_text("utf-8")
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
MADE = {"docs/cli.md"}
"""Pages that are made when the site is built."""


def blocks(language: str) -> list[tuple[str, str]]:
    """Pairs (page, code); what is fenced as `sh` needs data, a person or a server that no test has."""
    fenced = rf"^```{language}\n(.*?)^```"
    return [
        (page, code)
        for page, text in TEXTS.items()
        for code in re.findall(fenced, text, flags=re.MULTILINE | re.DOTALL)
    ]


PYTHON, BASH = blocks("python"), blocks("bash")
JSONL = (
    re.search(r"`(\{\"session\".*?\})`", TEXTS["docs/index.md"], flags=re.DOTALL).group(1).replace("\n", " ")
)

EXPECTED = {
    "memory.ask(": "7 May 2024",
    'api_key="none"\n)\nprint(memory.add': "constructor",
    "What do I keep on the roof?": "beehives",
    "What does the user play?": "cello",
    "memory.session(": "->",
    'checkpointer("': "['Dt2:1']",
    "class Desk": "Heron",
    "create_agent(": "fencing",
    "MemoryRetriever(memory": "'memory_history']\nI repair accordions in Graz.\n",
    "MemcycleStore(": "greenhouse key",
    "Command(resume": "-> I no longer",
    "memory.resume(": "in Vienna. => I no longer live in Vienna, I moved to Graz.\nNone []",
    "prompts.text(": "",
    "Theta().with_changes(": "k: 500 is out of range, 200 is used\nTom sold me a red canoe.",
    'pipeline="careful"': "True",
    'memory.graphs["remember"]': "gpt-4.1 True",
    'stream_mode="custom"': "remember stage staged",
    "lenient = ": "",
    "Redact(patterns": "My badge is [redacted: badge], my password is [redacted: password].",
}
"""What an example prints, by words that it alone has, or it and the same one told shorter."""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEMCYCLE_HOME", raising=False)


def test_the_examples_are_those_this_module_knows():
    known = [[mark for mark in EXPECTED if mark in code] for _, code in PYTHON]
    assert [code for (_, code), marks in zip(PYTHON, known, strict=True) if len(marks) != 1] == []
    assert {marks[0] for marks in known} == set(EXPECTED)
    assert len(BASH) == 7


@pytest.mark.parametrize(("page", "code"), PYTHON, ids=[f"{page}-{n}" for n, (page, _) in enumerate(PYTHON)])
def test_python_example(page, code, socket_enabled):
    printed = io.StringIO()
    with model_server() as server, redirect_stdout(printed):
        server.script("search_memory", Reply("Good to know."))
        exec(compile(code.replace("http://localhost:8000/v1", server.url), page, "exec"), {})
    assert next(told for mark, told in EXPECTED.items() if mark in code) in printed.getvalue()


def test_the_embedding_example_runs_awaited_too():
    """A parent with keys and a context of its own, as the page builds it."""
    page, code = next((page, code) for page, code in PYTHON if "class Desk" in code)
    names: dict = {}
    with redirect_stdout(io.StringIO()):
        exec(compile(code, page, "exec"), names)
    value = {"heard": ["My bicycle is called Swift."], "ask": "What is my bicycle called?"}
    done = asyncio.run(names["parent"].compile().ainvoke(value))
    assert "Swift" in done["known"]["answer"]
    assert set(done) == set(names["Desk"].__annotations__)


@pytest.mark.parametrize(("page", "code"), BASH, ids=[page for page, _ in BASH])
def test_bash_examples(page, code, tmp_path, socket_enabled):
    """Each begins where Ana's chat is taken in, as the first page does it."""
    (tmp_path / "chat.jsonl").write_text(JSONL + "\n")
    with model_server() as server:
        _run("memcycle ingest chat.jsonl --user ana", server.url)
        _run_all(code, server.url)


def _run(line: str, url: str) -> str:
    command, _, target = line.partition(" > ")
    arguments = shlex.split(command)
    assert arguments[0] == "memcycle"
    extra = ["--yes"] if arguments[1] == "forget" else []
    extra += ["--base-url", url] if "--model" in arguments else []
    done = CliRunner().invoke(app, [*arguments[1:], *extra])
    assert done.exit_code == 0, f"{line}: {done.output}"
    if target:
        Path(target).write_text(done.stdout)
    if arguments[1] == "ask":
        assert "Graz" in done.stdout
    return arguments[1]


def _run_all(code: str, url: str) -> None:
    fact = ""
    for line in code.splitlines():
        done = _run(line.replace(" ID ", f" {fact} "), url)
        if "--granularity fact" in line:
            fact = _listed("--granularity", "fact")[0]["id"]
        if done == "edit":
            fact = next(row["id"] for row in _listed() if "Linz" in row["text"])
        if line == "memcycle forget --user ana":
            assert _listed() == []


def _listed(*options: str) -> list[dict]:
    return json.loads(CliRunner().invoke(app, ["memories", "--user", "ana", "--json", *options]).stdout)


def test_the_jsonl_example_is_one_turn():
    assert set(json.loads(JSONL)) == {"session", "speaker", "role", "text", "time"}


def test_the_readme_is_a_first_look():
    assert len(TEXTS["README.md"].splitlines()) <= 160


@pytest.mark.parametrize("page", [*TEXTS, "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    # A page that stands in docs/ by a link is read beside the others.
    there = [((ROOT / page).parent / link).resolve() for link in links]
    assert [one for one in there if not one.exists() and one.relative_to(ROOT).as_posix() not in MADE] == []


def _script(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_drawn_graphs_are_those_that_run():
    """`python docs/draw.py` draws them anew."""
    draw = _script("draw")
    for name in draw.NAMES:
        drawn = (draw.FOLDER / f"{name}.svg").read_text("utf-8")
        assert drawn.startswith(f"<!-- {draw.source(name)}\n-->\n<svg"), name
        assert f"graphs/{name}.svg" in TEXTS["docs/concepts.md"]


def test_the_page_of_commands_has_all_of_them():
    page = _script("hooks").commands()
    for names in PANELS.values():
        for name in names:
            assert f"\n### `memcycle {name}`\n" in page
    assert "**Examples**:\n\n```sh\nmemcycle sessions verify 3" in page
    assert "[bold]" not in page
