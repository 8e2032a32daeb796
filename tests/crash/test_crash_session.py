"""kill -9 at every node of the session graph: a new process goes on there, and memory ends as if unbroken."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.crash.end_and_die import NODES, SCOPE, bank_of, remember

ROOT = Path(__file__).resolve().parents[2]
CLOCK_FIELDS = {"recorded_at", "log"}
pytestmark = pytest.mark.slow
ASKED = {
    "close_episode": {"episode_writer"},
    "probe": {"prober"},
    "examine": {"answerer"},
    "grade": {"grader"},
    "repair": {"repairer"},
    "consolidate": {"consolidator"},
}
"""Roles that each node asks: after a death behind its body, these calls alone may be made again."""


@pytest.fixture(scope="module")
def runner():
    """Starts ends of sessions, each in a process of its own; gives their exit status."""
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.end_and_die"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def run(home: Path, node: str = "", moment: str = "") -> int:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(json.dumps({"home": str(home), "node": node, "moment": moment}) + "\n")
        running.stdin.flush()
        return int(running.stdout.readline())

    yield run
    running.communicate(timeout=60)


@pytest.fixture(scope="module")
def remembered(tmp_path_factory):
    home = tmp_path_factory.mktemp("remembered") / "home"
    remember(home)
    return home


def calls(home: Path) -> Counter[str]:
    return Counter((home / "calls.txt").read_text().split())


def outcome(home: Path) -> tuple[list[dict], list[dict], dict]:
    """Entries, probes and session as they stand; Chroma must equal the ledger."""
    with bank_of(home) as bank:
        report = bank.check()
        assert (report["outbox"], report["index"]) == (0, {"missing": 0, "stray": 0})
        rows = [
            {key: value for key, value in row.items() if key not in CLOCK_FIELDS}
            for row in bank.export(SCOPE)
        ]
        (info,) = bank.sessions(SCOPE)
        return rows, [one.model_dump() for one in bank.probes(SCOPE)], info.model_dump()


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory, remembered, runner):
    home = shutil.copytree(remembered, tmp_path_factory.mktemp("unbroken") / "home")
    assert runner(home) == 0
    return calls(home), outcome(home)


def test_the_unbroken_end_goes_through_every_node(unbroken):
    made, (rows, probes, info) = unbroken
    assert set(made) >= {role for asked in ASKED.values() for role in asked}
    assert [probe["repair"] and probe["repair"]["state"] for probe in probes] == [
        "kept",
        "kept",
        None,
        "rolled_back",
    ]
    assert (info["status"], info["report"]["passed_before"], info["report"]["passed_after"]) == (
        "committed",
        1,
        3,
    )
    assert {row["status"] for row in rows} == {"active", "forgotten"}


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("node", [*NODES, "mirror"])
def test_killed_at_a_node_it_ends_as_if_unbroken(tmp_path, remembered, runner, unbroken, node, moment):
    home = shutil.copytree(remembered, tmp_path / "home")
    assert runner(home, node, moment) == -9, "it did not die"
    assert runner(home) == 0
    again = calls(home) - unbroken[0]
    assert set(again) <= (ASKED.get(node, set()) if moment == "after" else set())
    assert not unbroken[0] - calls(home)
    assert outcome(home) == unbroken[1]
