"""kill -9 in a round: the next process goes on in that round, and ends as if nothing had happened."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from memcycle.core.errors import BadInput
from tests.evolution.evolve_and_die import evolve

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    path = tmp_path_factory.mktemp("unbroken") / "out"
    return path, evolve(path)


def kill_at(path, question):
    done = subprocess.run(
        [sys.executable, "-m", "tests.evolution.evolve_and_die", str(path), str(question)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=300,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("question", [4, 21, 52])
def test_a_killed_run_goes_on_with_the_round_it_was_in(tmp_path, unbroken, question):
    """In the first round's training questions, in the second's guard questions, in the held-out figures."""
    kill_at(tmp_path / "out", question)
    before = (tmp_path / "asked.txt").read_text().splitlines()
    assert len(before) == question - 1
    figures = evolve(tmp_path / "out", resume=True)
    assert {key: figures[key] for key in ("rounds", "best", "start", "gain", "theta")} == {
        key: unbroken[1][key] for key in ("rounds", "best", "start", "gain", "theta")
    }
    times = Counter((tmp_path / "asked.txt").read_text().splitlines())
    assert set(times.values()) == {1}, "no question is asked again"
    diagnosed = (tmp_path / "diagnosed.txt").read_text().splitlines()
    assert len(diagnosed) == len(figures["rounds"]) - 1, "and no finished node is run again"


def test_a_finished_run_is_read_not_run_and_not_gone_on_with_unasked(unbroken):
    path, figures = unbroken
    asked = path.parent / "asked.txt"
    before = asked.read_text()
    assert evolve(path, resume=True)["rounds"] == figures["rounds"]
    assert asked.read_text() == before
    with pytest.raises(BadInput, match="add --resume"):
        evolve(path)
