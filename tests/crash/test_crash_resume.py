"""kill -9 while a model answers: `--resume` finishes, and each model call that was answered is made once."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import ModelServer, Reply, model_server

ROOT = Path(__file__).resolve().parents[2]
SAID = (
    ("1", "I live in Vienna and teach pottery."),
    ("1", "My sister Eva keeps bees in Graz."),
    ("2", "I moved to Linz last week."),
)
CLOCK_FIELDS = {"recorded_at", "log"}
pytestmark = [pytest.mark.slow, pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]


@dataclass
class Command:
    """Runs the command line as processes on one home and one file of checkpoints."""

    folder: Path
    server: ModelServer

    def start(self, *args: str) -> subprocess.Popen[str]:
        named = ["--home", "home", "--user", "ana", "--model", "openai:any", "--base-url", self.server.url]
        return subprocess.Popen(
            [sys.executable, "-m", "memcycle", *args, *named, "--checkpoints", "runs.sqlite3", "--json"],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, *args: str) -> Any:
        running = self.start(*args)
        out, err = running.communicate(timeout=120)
        assert running.returncode == 0, err
        return json.loads(out)

    def kill_while(self, role: str, *args: str) -> str:
        """Kills the process when it has asked this role and got no answer; gives the thread it named."""
        asked = threading.Event()

        def hang(_: Any) -> Reply:
            asked.set()
            return Reply(hang=120)

        self.server.script(role, hang)
        running = self.start(*args)
        assert asked.wait(120), "the role was never asked"
        running.send_signal(signal.SIGKILL)
        _, err = running.communicate(timeout=60)
        assert running.returncode == -signal.SIGKILL
        return re.search(r"^Thread (\w+);", err, flags=re.MULTILINE).group(1)

    def calls(self) -> Counter[str]:
        return Counter(request["role"] for request in self.server.requests)

    def exported(self) -> list[dict[str, Any]]:
        done = subprocess.run(
            [sys.executable, "-m", "memcycle", "export", "--home", "home", "--user", "ana"],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        return [{key: value for key, value in row.items() if key not in CLOCK_FIELDS} for row in rows]


@pytest.fixture
def server():
    with model_server() as running:
        yield running


def command(folder: Path, server: ModelServer) -> Command:
    folder.mkdir()
    lines = [
        {
            "session": session,
            "speaker": "Ana",
            "role": "human",
            "text": text,
            "time": f"2024-05-0{n}T12:00:00Z",
        }
        for n, (session, text) in enumerate(SAID, 1)
    ]
    (folder / "chat.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Command(folder, server)


INGEST = ("ingest", "chat.jsonl")
ASK = ("ask", "Where does Ana live?")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    with model_server() as server:
        one = command(tmp_path_factory.mktemp("unbroken") / "folder", server)
        one.finish(*INGEST)
        ingested, rows = one.calls(), one.exported()
        answer = one.finish(*ASK)["answer"]
        asked = one.calls() - ingested
        return {"ingest": ingested, "ask": asked, "rows": rows, "answer": answer, "folder": one.folder}


@pytest.mark.parametrize("role", ["constructor", "answerer"])
def test_an_ingest_killed_while_a_model_answers_goes_on_there(tmp_path, server, unbroken, role):
    one = command(tmp_path / "folder", server)
    thread = one.kill_while(role, *INGEST)
    result = one.finish(*INGEST, "--resume", thread)
    assert (result["thread_id"], result.get("pending")) == (thread, None)
    assert one.calls() == unbroken["ingest"] + Counter([role])
    assert one.exported() == unbroken["rows"]


def test_a_question_killed_while_a_model_answers_goes_on_there(tmp_path, server, unbroken):
    one = Command(shutil.copytree(unbroken["folder"], tmp_path / "folder"), server)
    thread = one.kill_while("answerer", *ASK)
    result = one.finish("ask", "--resume", thread)
    assert (result["thread_id"], result["answer"]) == (thread, unbroken["answer"])
    assert one.calls() == unbroken["ask"] + Counter(["answerer"])
