"""The command line as a process of its own: streams, exit codes, being killed, two at once."""

import json
import os
import signal
import subprocess
import sys
from importlib.resources import files

import pytest

CLOCKS = {"recorded_at"}
DEMO = str(files("memcycle") / "demo.jsonl")


def command(home, *args: str) -> list[str]:
    return [sys.executable, "-m", "memcycle", args[0], "--home", str(home), *args[1:]]


def run(home, *args: str) -> str:
    done = subprocess.run(command(home, *args), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def exported(home) -> list[dict]:
    rows = json.loads(run(home, "export", "--user", "ann", "--json"))
    return [{key: value for key, value in row.items() if key not in CLOCKS} for row in rows]


def ingest(home) -> list[str]:
    return command(home, "ingest", DEMO, "--user", "ann", "--chunk-turns", "3")


def killed_after(home, lines: int) -> list[str]:
    """Ingests until so many lines of progress are read, then kills; gives the turns that were named."""
    with subprocess.Popen(
        ingest(home), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stderr is not None
        told = [process.stderr.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        told += process.stderr.readlines()
    assert process.returncode == -signal.SIGKILL
    return [line for line in told if "stored" in line and line.endswith("turns)\n")]


def test_a_killed_ingest_is_finished_by_the_next(tmp_path):
    subprocess.run(ingest(tmp_path / "whole"), check=True, capture_output=True, timeout=120)
    broken = tmp_path / "broken"
    for lines in (1, 4, 7):
        told = killed_after(broken, lines)
        done = int(told[-1].rpartition("(")[2].partition("/")[0])
        raw = json.loads(run(broken, "memories", "--user", "ann", "--granularity", "raw", "--json"))
        assert len(raw) >= done
    subprocess.run(ingest(broken), check=True, capture_output=True, timeout=120)
    whole, mended = exported(tmp_path / "whole"), exported(broken)
    assert [row["id"] for row in mended] == [row["id"] for row in whole]
    assert mended == whole


def test_reading_works_beside_a_writer_and_a_second_writer_is_refused(tmp_path):
    home = tmp_path / "home"
    with subprocess.Popen(
        ingest(home), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as writer:
        assert writer.stderr is not None
        writer.stderr.readline()
        os.kill(writer.pid, signal.SIGSTOP)
        try:
            assert json.loads(run(home, "memories", "--user", "ann", "--json"))
            assert run(home, "export", "--user", "ann")
            second = subprocess.run(
                command(home, "ask", "Who?", "--user", "ann"),
                capture_output=True,
                text=True,
                check=False,
                timeout=30,
            )
        finally:
            os.kill(writer.pid, signal.SIGCONT)
        writer.stderr.read()
    assert writer.returncode == 0
    assert second.returncode == 1
    assert second.stdout == ""
    assert str(writer.pid) in second.stderr
    assert len(second.stderr.splitlines()) == 1


def test_a_closed_pipe_is_no_error_message(tmp_path):
    subprocess.run(ingest(tmp_path), check=True, capture_output=True, timeout=120)
    with subprocess.Popen(
        command(tmp_path, "export", "--user", "ann"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("variables", [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {}])
def test_a_terminal_without_letters(tmp_path, variables):
    path = tmp_path / "chat.jsonl"
    turn = {"session": "1", "speaker": "Zoë", "role": "human", "text": "Žluťoučký 🐎", "time": "2024-05-08"}
    path.write_text(json.dumps(turn) + "\n")
    home = tmp_path / "home"
    for args in (["ingest", str(path), "--user", "zoë"], ["memories", "--user", "zoë"]):
        done = subprocess.run(
            command(home, *args),
            capture_output=True,
            check=False,
            env={**os.environ, **variables},
            timeout=120,
        )
        assert done.returncode == 0, done.stderr


def test_the_demo(tmp_path):
    shown = json.loads(run(tmp_path / "home", "demo", "--json"))
    assert list(shown) == ["turns", "facts", "episodes", "refreshed", "questions"]
    assert shown["turns"] == 34
    assert shown["refreshed"] >= 1
    answers = {item["question"]: item for item in shown["questions"]}
    assert "Lisbon" in answers["Where does Tomas live now?"]["answer"]
    assert "27 February 2024" in answers["When did Nora start her pottery class?"]["answer"]
    assert "Biscuit" in answers["What is Nora's dog called?"]["answer"]
    assert answers["What car does Ines drive?"]["answerable"] is False
    assert set(shown["questions"][0]) == {"question", "answer", "answerable", "evidence"}
    assert set(shown["questions"][0]["evidence"][0]) == {"id", "granularity", "text", "turns"}
    spoken = run(tmp_path / "home", "demo")
    assert "judge" in spoken
    assert "extractive" in spoken
