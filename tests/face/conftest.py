"""The command line as a test calls it: in this process, with its streams apart."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from memcycle.cli.app import app

TURN = {
    "session": "1",
    "speaker": "Ann",
    "role": "human",
    "text": "My dog is called Pixel.",
    "time": "2024-05-08T12:00:00+00:00",
}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the tests are run on several cores, their runner says how wide its own terminal is."""
    monkeypatch.delenv("COLUMNS", raising=False)


@dataclass
class Cli:
    """Runs commands in one home."""

    home: Path

    def run(self, *args: str, code: int = 0, stdin: str | None = None):
        # A runner's own COLUMNS would make tables narrow.
        result = CliRunner().invoke(app, [args[0], "--home", str(self.home), *args[1:]], input=stdin)
        assert result.exit_code == code, f"{result.exit_code}: {result.output}"
        return result

    def json(self, *args: str) -> Any:
        return json.loads(self.run(*args, "--json").stdout)

    def fails(self, *args: str, code: int) -> str:
        """The one line of an error, on standard error, with nothing on standard output."""
        result = self.run(*args, code=code)
        assert result.stdout == ""
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        assert len(lines) == 1, result.stderr
        assert lines[0].startswith("Error: ")
        return lines[0]


@pytest.fixture
def cli(tmp_path, monkeypatch):
    for name in ("MEMCYCLE_HOME", "MEMCYCLE_DEBUG", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    return Cli(tmp_path / "home")


def written(path: Path, *changes: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps({**TURN, **change}) + "\n" for change in changes))
    return str(path)


@pytest.fixture
def chat(tmp_path):
    """Writes a JSONL file of turns given as changes to a default one."""

    def write(*changes: dict[str, Any], name: str = "chat.jsonl") -> str:
        return written(tmp_path / name, *changes)

    return write


SMALL = (
    {"text": "I moved to Graz last Friday."},
    {},
    {"speaker": "Ben", "text": "Nice! I work as a baker."},
    {"session": "2", "text": "I made a blue bowl yesterday.", "time": "2024-06-01T12:00:00+00:00"},
    {"session": "2", "speaker": "Ben", "text": "I live in Oslo.", "time": "2024-06-01T12:01:00+00:00"},
)


@pytest.fixture
def small(chat):
    """A conversation of two sessions."""
    return chat(*SMALL)


@pytest.fixture(scope="session")
def home_of_small(tmp_path_factory):
    """A home into which user ann ingested that conversation."""
    folder = tmp_path_factory.mktemp("small")
    Cli(folder / "home").run("ingest", written(folder / "chat.jsonl", *SMALL), "--user", "ann")
    return folder / "home"


@pytest.fixture
def ingested(cli, home_of_small):
    """The home of the test is a copy of that one."""
    shutil.copytree(home_of_small, cli.home)
