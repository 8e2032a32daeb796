import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from memcycle.core.errors import StoreError
from memcycle.core.world import World
from memcycle.stores.ledger import meta, schema
from memcycle.stores.ledger.connection import LOG_BYTES, Ledger


@pytest.fixture
def path(tmp_path):
    return tmp_path / "home" / "ledger.sqlite3"


def opened(path, **options):
    return Ledger.open(path, World(), **options)


def version(path):
    conn = sqlite3.connect(path)
    found = conn.execute("PRAGMA user_version").fetchone()[0]
    conn.close()
    return found


def test_it_is_created_with_its_folder_in_the_present_version(path):
    ledger = opened(path)
    with ledger.read() as conn:
        assert meta.embedder(conn) is None
    ledger.close()
    assert version(path) == schema.VERSION == len(schema.MIGRATIONS)
    assert (path.parent.stat().st_mode & 0o077) == 0


def test_durability_settings_hold_on_every_connection(path):
    ledger = opened(path)
    with ledger.write() as outer, ledger.read() as inner:
        for conn in (outer, inner):
            names = ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "wal_autocheckpoint")
            assert [conn.execute(f"PRAGMA {name}").fetchone()[0] for name in names] == ["wal", 1, 1, 1, 0]
    ledger.close()


def log_of(path):
    return path.with_name(f"{path.name}-wal")


def fill(ledger, number):
    """Writes some 300 KB."""
    with ledger.write() as conn:
        conn.execute("INSERT OR REPLACE INTO meta VALUES (?, hex(randomblob(150000)))", (f"n{number}",))


def test_the_log_is_brought_into_the_file_and_stays_small(path):
    ledger = opened(path)
    for number in range(100):
        fill(ledger, number % 30)
    assert LOG_BYTES / 2 < log_of(path).stat().st_size < 1.5 * LOG_BYTES
    assert path.stat().st_size > LOG_BYTES
    ledger.close()


def test_a_reader_that_stays_hinders_no_write_and_the_log_shrinks_after_it(path):
    ledger = opened(path)
    with ledger.read() as conn:
        assert meta.embedder(conn) is None
        for number in range(50):
            fill(ledger, number % 30)
        assert log_of(path).stat().st_size > 3 * LOG_BYTES
        assert meta.embedder(conn) is None
    for number in range(3):
        fill(ledger, number)
    assert log_of(path).stat().st_size <= LOG_BYTES
    ledger.close()


def test_nobody_writes_while_the_log_is_brought_into_the_file(path, monkeypatch):
    seen, connect = [], Ledger._connect

    def look(statement):
        if "wal_checkpoint" in statement:
            with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
                try:
                    other.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    seen.append((statement, str(error)))
                else:
                    seen.append((statement, "could write"))

    def watched(self):
        conn = connect(self)
        conn.set_trace_callback(look)
        return conn

    monkeypatch.setattr(Ledger, "_connect", watched)
    ledger = opened(path)
    for number in range(30):
        fill(ledger, number)
    ledger.close()
    assert seen != []
    assert set(seen) == {("PRAGMA wal_checkpoint(PASSIVE)", "database is locked")}


def test_later_steps_are_applied_to_an_older_ledger(path, monkeypatch):
    opened(path).close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "CREATE TABLE later (x TEXT);"))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    ledger = opened(path, read_only=True)
    with ledger.read() as conn:
        assert conn.execute("SELECT count(*) FROM later").fetchone()[0] == 0
    ledger.close()
    assert version(path) == schema.VERSION


def test_a_failing_step_leaves_the_version_before_it(path, monkeypatch):
    opened(path).close()
    before = version(path)
    step = "CREATE TABLE half (x TEXT);\nCREATE TABLE half (x TEXT);"
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, step))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    with pytest.raises(sqlite3.OperationalError):
        opened(path)
    assert version(path) == before
    conn = sqlite3.connect(path)
    assert conn.execute("SELECT 1 FROM sqlite_master WHERE name = 'half'").fetchone() is None
    conn.close()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_ledger_is_refused(path, read_only):
    opened(path).close()
    conn = sqlite3.connect(path)
    conn.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    conn.close()
    with pytest.raises(StoreError, match="upgrade memcycle"):
        opened(path, read_only=read_only)


def test_another_programs_database_is_left_alone(path):
    path.parent.mkdir(parents=True)
    conn = sqlite3.connect(path)
    conn.execute("CREATE TABLE theirs (x)")
    conn.close()
    with pytest.raises(StoreError, match="another program"):
        opened(path)
    conn = sqlite3.connect(path)
    assert [row[0] for row in conn.execute("SELECT name FROM sqlite_master")] == ["theirs"]
    conn.close()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_damaged_file_is_named(path, read_only):
    path.parent.mkdir(parents=True)
    path.write_bytes(b"this is no database at all" * 400)
    with pytest.raises(StoreError, match=r"ledger\.sqlite3 is damaged"):
        opened(path, read_only=read_only)


def test_a_home_that_is_a_file_is_named(tmp_path):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(StoreError, match=r"cannot use .*home as memory home: .*; choose another one"):
        opened(tmp_path / "home" / "ledger.sqlite3")


def test_a_ledger_that_is_a_folder_is_named(path):
    path.mkdir(parents=True)
    with pytest.raises(StoreError, match="cannot use"):
        opened(path)


def test_reading_needs_something_to_read(path):
    with pytest.raises(StoreError, match=r"no memory at .*; run `memcycle ingest`"):
        opened(path, read_only=True)
    assert not path.parent.exists()


def test_reading_works_beside_a_writer_and_never_writes(path):
    writer = opened(path)
    with writer.write() as conn:
        meta.set_embedder(conn, "first", 3)
    reader = opened(path, read_only=True)
    with writer.write() as conn:
        meta.set_embedder(conn, "second", 3)
        with reader.read() as other:
            assert meta.embedder(other) == ("first", 3)
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                other.execute("DELETE FROM meta")
    with reader.read() as other:
        assert meta.embedder(other) == ("second", 3)
    with pytest.raises(StoreError, match="for reading only"), reader.write():
        pass
    reader.close()
    writer.close()


def test_an_exception_rolls_the_write_back(path):
    ledger = opened(path)
    with pytest.raises(ZeroDivisionError), ledger.write() as conn:
        meta.set_embedder(conn, "lost", 3)
        raise ZeroDivisionError
    with ledger.read() as conn:
        assert meta.embedder(conn) is None
    ledger.close()


def test_a_closed_ledger_says_so(path):
    ledger = opened(path)
    ledger.close()
    ledger.close()
    with pytest.raises(StoreError, match="is closed"), ledger.read():
        pass


def test_writes_wait_for_each_other(path):
    ledger, order = opened(path), []
    inside, release = threading.Event(), threading.Event()

    def first():
        with ledger.write():
            inside.set()
            release.wait(10)
            order.append("first")

    def second():
        inside.wait(10)
        with ledger.write():
            order.append("second")

    with ThreadPoolExecutor(2) as pool:
        waits = [pool.submit(first), pool.submit(second)]
        inside.wait(10)
        release.set()
        for wait in waits:
            wait.result()
    assert order == ["first", "second"]
    ledger.close()


_CHILD = """
import sys
from pathlib import Path
from memcycle.core.world import World
from memcycle.stores.ledger.connection import Ledger

ledger = Ledger.open(Path(sys.argv[1]), World())
for _ in range(20):
    with ledger.write() as conn:
        row = conn.execute("SELECT value FROM meta WHERE key = 'n'").fetchone()
        number = int(row[0]) + 1 if row else 1
        conn.execute("INSERT OR REPLACE INTO meta VALUES ('n', ?)", (str(number),))
ledger.close()
"""


def test_processes_that_create_and_write_at_once_lose_nothing(path):
    children = [subprocess.Popen([sys.executable, "-c", _CHILD, str(path)]) for _ in range(3)]
    assert [child.wait(60) for child in children] == [0, 0, 0]
    ledger = opened(path)
    with ledger.read() as conn:
        assert conn.execute("SELECT value FROM meta WHERE key = 'n'").fetchone()[0] == "60"
    ledger.close()
