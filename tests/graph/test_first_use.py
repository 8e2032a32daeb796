"""The first use in a fresh process: home, embedder and Chroma are opened inside the loop, and never on it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def use(what: str, home: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    # Unbuffered: an interpreter that blockbuster was used in crashes where it flushes stdout at its end.
    env = {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "MEMCYCLE_HOME": str(home)}
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.graph.use_first", what],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory):
    """A home with a committed session, and one with a session that is still open, each by one first use."""
    homes = tmp_path_factory.mktemp("homes")
    return {what: (homes / what, use(what, homes / what)) for what in ("memory", "remember")}


@pytest.mark.parametrize("what", ["memory", "remember"])
def test_the_first_use_of_a_new_home_blocks_nothing(what, lived_in):
    home, done = lived_in[what]
    assert done.returncode == 0, done.stderr
    # The index is opened where a session ends; before that the ledger alone is asked.
    assert (home / "ledger.sqlite3").exists()
    assert (home / "chroma").exists() == (what == "memory")


@pytest.mark.parametrize(("what", "before"), [("recall", "memory"), ("session", "remember")])
def test_the_first_use_of_a_home_in_a_process_blocks_nothing(what, before, lived_in):
    done = use(what, lived_in[before][0])
    assert done.returncode == 0, done.stderr


def test_the_first_use_of_the_store_blocks_nothing(tmp_path):
    done = use("store", tmp_path / "home")
    assert done.returncode == 0, done.stderr


def test_the_watch_sees_what_runs_on_the_loop(tmp_path):
    done = use("on the loop", tmp_path / "home")
    assert done.returncode == 1
    for code in ("ledger/connection.py", "tokenizers/", "chroma/client.py", "chromadb/"):
        assert code in done.stderr
