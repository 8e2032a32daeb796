"""What can happen to the ledger, its disk and the clock."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from memcycle.core.errors import LedgerDamaged, StoreBusy, StoreError
from memcycle.core.world import World
from memcycle.memory import Memory
from memcycle.stores.bank import LEDGER_FILE
from memcycle.stores.ledger import connection
from tests.banks import ANN, open_bank, said, texts
from tests.fakes import FakeEmbeddings
from tests.hand_clock import HandClock
from tests.nobody import become_nobody, give_to_nobody, open_folder, run_apart


def test_a_ledger_that_is_locked_says_so_and_keeps_what_it_has(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.05)
    with open_bank(tmp_path / "h") as bank:
        bank.stage_turns(ANN, [said(1, "first")])
        with closing(sqlite3.connect(tmp_path / "h" / LEDGER_FILE, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusy, match="written by another process; try again"):
                bank.stage_turns(ANN, [said(2, "second")])
            assert texts(bank.entries(ANN)) == ["first"]
            other.execute("ROLLBACK")
        bank.stage_turns(ANN, [said(2, "second")])
        assert texts(bank.entries(ANN)) == ["first", "second"]


def test_a_full_disk_says_so_and_keeps_what_it_has(tmp_path, monkeypatch):
    connect = connection.Ledger._connect

    def small(self):
        conn = connect(self)
        conn.execute(f"PRAGMA max_page_count = {pages}")
        return conn

    pages = 10**6
    monkeypatch.setattr(connection.Ledger, "_connect", small)
    with open_bank(tmp_path / "h") as bank:
        bank.stage_turns(ANN, [said(1, "first")])
    with closing(sqlite3.connect(tmp_path / "h" / LEDGER_FILE)) as conn:
        pages = conn.execute("PRAGMA page_count").fetchone()[0] + 2
    with open_bank(tmp_path / "h") as bank:
        with pytest.raises(StoreError, match=r"ledger\.sqlite3: database or disk is full; check disk space"):
            bank.stage_turns(ANN, [said(n, "x" * 5000) for n in range(2, 12)])
        assert texts(bank.entries(ANN)) == ["first"]
    pages = 10**6
    with open_bank(tmp_path / "h") as bank:
        bank.stage_turns(ANN, [said(2, "second")])
        bank.commit_session(ANN)
        assert bank.mend().found == []
        assert texts(bank.entries(ANN)) == ["first", "second"]


def test_a_corrupt_ledger_is_named_with_what_to_do_and_left_alone(tmp_path):
    home = tmp_path / "h"
    home.mkdir()
    (home / LEDGER_FILE).write_bytes(b"no database" * 4000)
    with pytest.raises(
        LedgerDamaged, match=r"damaged or no ledger.*backup.*doctor --rebuild.*memcycle import"
    ):
        open_bank(home)
    assert (home / LEDGER_FILE).read_bytes() == b"no database" * 4000


RIGHTS = {
    "home read-only": (0o555, None, "check disk space and permissions"),
    "home closed": (0o000, None, "Permission denied; choose another one"),
    "ledger read-only": (0o755, 0o444, "check disk space and permissions"),
}


def _without_rights(folder):
    """Opens and writes each home as nobody; prints the errors."""
    become_nobody()
    for name, (home_mode, ledger_mode, words) in RIGHTS.items():
        home = Path(folder) / name
        if ledger_mode is not None:
            (home / LEDGER_FILE).chmod(ledger_mode)
        home.chmod(home_mode)
        try:
            with pytest.raises(StoreError, match=words) as error, open_bank(home) as bank:
                bank.stage_turns(ANN, [said(2, "second")])
            assert str(home) in str(error.value)
        finally:
            home.chmod(0o755)


@pytest.mark.slow
def test_a_home_without_rights_is_named():
    with open_folder() as folder:
        for name in RIGHTS:
            with open_bank(folder / name) as bank:
                bank.stage_turns(ANN, [said(1, "first")])
            give_to_nobody(folder / name)
        done = run_apart(__file__, "_without_rights", folder)
        assert done.returncode == 0, done.stderr
        for name in RIGHTS:
            (folder / name / LEDGER_FILE).chmod(0o644)
            with open_bank(folder / name) as bank:
                assert texts(bank.entries(ANN)) == ["first"]


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def memory(tmp_path, clock):
    with Memory.open(
        tmp_path / "home", user="ann", embeddings=FakeEmbeddings(), world=World(now=clock)
    ) as opened:
        yield opened


def test_what_is_said_after_the_clock_was_put_back_is_newer_still(memory, clock):
    memory.add("I live in Graz.")
    clock.pass_(-3600)
    memory.add("I live in Linz now.")
    assert "Linz" in memory.ask("Where do I live?").answer
    memory.end_session()
    assert "Linz" in memory.ask("Where do I live?", session="another").answer
    first, second = sorted(memory.memories(granularity="raw"), key=lambda one: one.turns)
    assert second.observed_at == first.observed_at


def test_a_clock_that_was_wrong_by_days_is_believed_once_it_is_right(memory, clock):
    memory.add("I live in Graz.")
    clock.pass_(-30 * 86_400)
    memory.add("I went to Rome yesterday.")
    late = next(one for one in memory.memories(granularity="raw") if "Rome" in one.text)
    assert late.observed_at == clock()
    assert memory.end_session().status == "committed"


def test_a_time_that_is_given_is_taken_as_it_is(memory, clock):
    memory.add("I live in Graz.")
    memory.add("I lived in Rome.", now="2024-03-01T08:30:00+00:00")
    late = next(one for one in memory.memories(granularity="raw") if "Rome" in one.text)
    assert late.observed_at.isoformat() == "2024-03-01T08:30:00+00:00"


def test_nothing_hangs_or_is_lost_when_the_clock_goes_back(memory, clock):
    for hours in (0, -1, -50, 3, -100):
        clock.pass_(3600 * hours)
        memory.add(f"My friend number {hours} is called Name{abs(hours)}.")
        memory.edit(memory.memories(granularity="raw")[0].id, f"A better text {hours}")
    done = threading.Event()
    worker = threading.Thread(target=lambda: (memory.end_session(), done.set()), daemon=True)
    worker.start()
    assert done.wait(60)
    worker.join()
    assert len(memory.memories(granularity="raw")) == 5
    assert memory.bank.mend().found == []
