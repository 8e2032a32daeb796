"""What is not loaded, so that starting stays short: a command pays for every module it does not need."""

import json
import subprocess
import sys

import pytest

from memcycle.memory import Memory

GRAPHS = {"langgraph", "langchain_core", "langsmith"}
LIBRARIES = {
    "chromadb", "openai", "langchain", "langchain_openai", "onnxruntime", "pandas", "wordllama", "psycopg",
}  # fmt: skip
"""Of no use before a model is asked or an index is written."""
SHELL = {"typer", "rich"}
MEASURING = {"memcycle.evals", "memcycle.evolution", "memcycle.integrations", "memcycle.ingest"}
PROGRAM = """
import json, sys
sys.argv = ["memcycle", *{arguments!r}]
try:
    {call}
except SystemExit as ended:
    assert not ended.code, ended.code
print(json.dumps([*sys.modules]), file=sys.stderr)
"""


def loaded(call: str, *arguments: str) -> set[str]:
    """Names of all modules, and of the packages they are in, after a process has done this."""
    program = PROGRAM.format(call=call, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = json.loads(done.stderr.splitlines()[-1])
    return {name.rsplit(".", cut)[0] for name in modules for cut in range(name.count(".") + 1)}


COMMAND = "from memcycle.cli import main; main()"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start") / "home"
    with Memory.open(folder, user="ann") as memory:
        memory.add("I moved to Graz.")
        memory.end_session()
    return folder


def test_the_face():
    unwanted = GRAPHS | LIBRARIES | SHELL | MEASURING | {"numpy", "tiktoken", "tokenizers", "filelock"}
    assert loaded("from memcycle import Memory") & unwanted == set()


def test_the_help_page():
    unwanted = GRAPHS | LIBRARIES | MEASURING | {"numpy", "pydantic", "memcycle.memory", "memcycle.stores"}
    assert loaded(COMMAND, "--help") & unwanted == set()


def test_a_question(home):
    """LangGraph is what answers it: with LangSmith, which it loads, two thirds of the second it takes."""
    others = {"memcycle.graph.remember", "memcycle.graph.session", "memcycle.cli.measure", "rich.markdown"}
    asked = loaded(COMMAND, "ask", "Where does Ann live?", "--user", "ann", "--home", str(home))
    assert asked & (LIBRARIES | MEASURING | others) == set()
    assert asked >= GRAPHS
