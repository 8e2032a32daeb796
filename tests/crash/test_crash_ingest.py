"""kill -9 in the middle of an ingest: nothing acknowledged is lost, nothing doubled."""

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from memcycle.cli.demo import conversation
from tests.crash.ingest_and_die import open_memory

ROOT = Path(__file__).resolve().parents[2]
CLOCK_FIELDS = {"recorded_at", "log"}
pytestmark = pytest.mark.slow
KILLS = 12


def run(home: Path, fatal: int, moment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.crash.ingest_and_die", str(home), str(fatal), moment],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def exported(home: Path) -> list[dict]:
    with open_memory(home) as memory:
        rows = list(memory.export())
    return [{key: value for key, value in row.items() if key not in CLOCK_FIELDS} for row in rows]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    home = tmp_path_factory.mktemp("unbroken") / "home"
    finished = run(home, 0, "after")
    assert finished.returncode == 0, finished.stderr
    return exported(home)


def test_killed_at_many_points_one_ingest_ends_as_if_unbroken(tmp_path, unbroken):
    """One ingest, killed again and again a little further on, each time resumed by a new process."""
    home, choice, said = tmp_path / "home", random.Random(11), [turn.text for turn in conversation().turns]
    for kill in range(KILLS):
        moment = "before" if kill % 2 else "after"
        died = run(home, choice.randint(1, 9) if kill else 2, moment)
        assert died.returncode == -9, f"kill {kill} did not happen: {died.stderr}"
        acknowledged = max((int(line) for line in died.stdout.split()), default=0)
        stored = Counter(row["text"] for row in exported(home) if row["granularity"] == "raw")
        assert all(stored[text] >= 1 for text in said[:acknowledged])
        assert not stored - Counter(said), "a turn stands twice"
    finished = run(home, 0, "after")
    assert finished.returncode == 0, finished.stderr
    assert exported(home) == unbroken


def test_a_finished_ingest_run_again_does_nothing(tmp_path, unbroken):
    home = tmp_path / "home"
    assert run(home, 0, "after").returncode == 0
    assert run(home, 0, "after").returncode == 0
    assert exported(home) == unbroken
