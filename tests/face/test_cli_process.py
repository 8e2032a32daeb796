"""The command line as a process of its own: being killed, two at once, poor terminals."""

import json
import os
import signal
import subprocess
import sys
from importlib.resources import files

import pytest

from memcycle import Memory

pytestmark = pytest.mark.slow

CLOCKS = {"recorded_at", "log"}
DEMO = str(files("memcycle") / "demo.jsonl")


def command(home, *args: str) -> list[str]:
    return [sys.executable, "-m", "memcycle", args[0], "--home", str(home), *args[1:]]


def run(home, *args: str, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command(home, *args),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
        timeout=120,
    )


def ingest(home) -> list[str]:
    return command(home, "ingest", DEMO, "--user", "ann", "--chunk-turns", "3")


def exported(home) -> list[dict]:
    with Memory.open(home, user="ann", read_only=True) as memory:
        return [{key: value for key, value in row.items() if key not in CLOCKS} for row in memory.export()]


def killed_after(home, lines: int) -> int:
    """Ingests until so many lines of progress are read, then kills; gives how many turns were named."""
    with subprocess.Popen(
        ingest(home), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stderr is not None
        told = [process.stderr.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        told += process.stderr.readlines()
    assert process.returncode == -signal.SIGKILL
    whole = [line for line in told if "stored" in line and line.endswith("turns)\n")]
    return int(whole[-1].rpartition("(")[2].partition("/")[0])


def test_a_killed_ingest_is_finished_by_the_next(tmp_path):
    subprocess.run(ingest(tmp_path / "whole"), check=True, capture_output=True, timeout=120)
    broken = tmp_path / "broken"
    for lines in (1, 5, 8):
        acknowledged = killed_after(broken, lines)
        with Memory.open(broken, user="ann", read_only=True) as memory:
            assert len(memory.memories(granularity="raw")) >= acknowledged
    subprocess.run(ingest(broken), check=True, capture_output=True, timeout=120)
    whole, mended = exported(tmp_path / "whole"), exported(broken)
    assert [row["id"] for row in mended] == [row["id"] for row in whole]
    assert mended == whole


def test_reading_and_writing_work_beside_a_writer(tmp_path):
    with subprocess.Popen(
        ingest(tmp_path), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as writer:
        assert writer.stderr is not None
        writer.stderr.readline()
        assert json.loads(run(tmp_path, "memories", "--user", "ann", "--json").stdout)
        second = run(tmp_path, "ingest", DEMO, "--user", "ben", "--chunk-turns", "3")
        writer.stderr.read()
    assert (writer.returncode, second.returncode) == (0, 0)
    whole = {
        user: json.loads(run(tmp_path, "memories", "-u", user, "--json").stdout) for user in ("ann", "ben")
    }
    # Facts of one turn stand by id, and each user's are other ones.
    assert sorted(one["text"] for one in whole["ann"]) == sorted(one["text"] for one in whole["ben"])
    assert run(tmp_path, "doctor").returncode == 0


def test_poor_terminals_and_closed_pipes(tmp_path):
    path = tmp_path / "chat.jsonl"
    turn = {"session": "1", "speaker": "Zoë", "role": "human", "text": "Žluťoučký 🐎", "time": "2024-05-08"}
    path.write_text(json.dumps(turn) + "\n")
    assert run(tmp_path / "home", "ingest", str(path), "--user", "ann").returncode == 0
    listed = run(tmp_path / "home", "memories", "--user", "ann", PYTHONIOENCODING="ascii")
    assert listed.returncode == 0
    assert "?lu?ou?k" in listed.stdout
    export = command(tmp_path / "home", "export", "--user", "ann")
    with subprocess.Popen(export, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
