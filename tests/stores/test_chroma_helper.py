"""The helper that fills the vector index beside a bulk import, in a process of its own."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from memcycle.core.scope import Scope
from memcycle.stores import doctor as drift
from memcycle.stores.bank import Bank
from memcycle.stores.chroma import mirror as mirror_module
from memcycle.stores.chroma_helper import Helper
from tests.banks import open_bank

USERS = 6
EACH = 4


@pytest.fixture
def started(monkeypatch):
    """The helpers that were started."""
    made: list[Helper] = []

    class Noted(Helper):
        @classmethod
        def start(cls, task):
            made.append(super().start(task))
            return made[-1]

    monkeypatch.setattr(mirror_module, "Helper", Noted)
    return made


@pytest.fixture
def bank(tmp_path):
    with open_bank(tmp_path / "home", bulk_batch=3) as opened:
        yield opened


def fill(bank: Bank, users=range(USERS)) -> None:
    for number in users:
        scope = Scope(user=f"u{number}")
        row = {"granularity": "fact", "status": "active", "turns": ["D1:1"]}
        row["scope"] = scope.within("1").model_dump()
        assert bank.import_(scope, [row | {"text": f"{n} herons of {number}"} for n in range(EACH)]) == EACH


def is_whole(bank: Bank, entries=USERS * EACH) -> bool:
    """Whether the index holds what the ledger says, each copy as it should be."""
    apart = drift.compare(bank.ledger, bank.views.mirror, bank.embedder_id)
    held = bank.views.mirror.index().ids()
    return apart == (set(), set(), set(), 0) and len(held) == entries and bank.check()["outbox"] == 0


def test_a_bulk_import_is_brought_in_by_one_helper(bank, started):
    with bank.bulk():
        fill(bank)
        assert len(started) == 1
    assert started[0]._process.returncode == 0
    assert is_whole(bank)


def test_a_small_bulk_import_has_none(bank, started):
    with bank.bulk():
        fill(bank, range(1))
    assert started == []
    assert is_whole(bank, EACH)


def test_who_needs_the_index_takes_it_back(bank, started):
    with bank.bulk():
        fill(bank, range(3))
        assert started[0]._process.poll() is None
        bank.views.mirror.index().ids()
        assert started[0]._process.returncode is not None
        fill(bank, range(3, USERS))
        assert bank.drain() <= USERS * EACH
    assert len(started) == 1
    assert is_whole(bank)


def test_a_drain_waits_for_no_helper(bank, started):
    with bank.bulk():
        fill(bank)
        bank.drain()
        assert started[0]._process.returncode is not None
        assert bank.check()["outbox"] == 0
    assert is_whole(bank)


def test_a_helper_that_is_killed_is_no_loss(bank, started, caplog):
    with bank.bulk():
        fill(bank, range(3))
        os.kill(started[0]._process.pid, signal.SIGKILL)
        fill(bank, range(3, USERS))
    assert "the helper that fills the index ended with -9" in caplog.text
    assert is_whole(bank)


def test_without_an_interpreter_the_import_fills_the_index_itself(bank, monkeypatch, caplog):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with bank.bulk():
        fill(bank)
    assert "no helper to fill the index" in caplog.text
    assert is_whole(bank)


def test_closing_within_a_bulk_import_ends_it(tmp_path, started):
    with open_bank(tmp_path / "home", bulk_batch=3) as bank, bank.bulk():
        fill(bank)
        bank.close()
    assert started[0]._process.returncode is not None
    with open_bank(tmp_path / "home") as again:
        again.drain()
        assert is_whole(again)


DIES = """
import os, sys
from tests.banks import open_bank
from tests.stores.test_chroma_helper import fill
from pathlib import Path
bank = open_bank(Path(sys.argv[1]), bulk_batch=3)
with bank.bulk():
    fill(bank)
    os.kill(os.getpid(), 9)
"""


def test_when_the_importing_process_is_killed_the_next_one_finishes(tmp_path):
    root = Path(__file__).parents[2]
    died = subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], cwd=root, check=False)
    assert died.returncode == -signal.SIGKILL
    # Waits for the helper, which may be within a call.
    with open_bank(tmp_path) as bank:
        bank.drain()
        assert is_whole(bank)


def test_chroma_keeps_more_pages_in_memory_than_sqlite_would(chroma_bank):
    fill(chroma_bank, range(1))
    with closing(sqlite3.connect(chroma_bank.settings.home / "chroma" / "chroma.sqlite3")) as connection:
        assert connection.execute("PRAGMA default_cache_size").fetchone() == (8192,)
        assert connection.execute("SELECT count(*) FROM embeddings").fetchone() == (EACH,)
