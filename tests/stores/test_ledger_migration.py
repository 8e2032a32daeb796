"""A ledger of the first version, as it was released, opened by this one."""

import hashlib
import sqlite3

import pytest

from memcycle.core.errors import StoreError
from memcycle.core.probe import Probe, SessionReport
from memcycle.core.settings import Settings
from memcycle.stores.bank import LEDGER_FILE, Bank
from memcycle.stores.ledger import schema
from tests.banks import ANN, BOB, add, clock, open_bank, said

TABLES = (
    "meta", "sessions", "turns", "entries", "sources", "links", "events", "outbox", "conflicts", "tombstones",
    "scrubs", "lexical", "lexical_words",
)  # fmt: skip
TWO = ANN.within("2")
PROBE = Probe(id="p", session="1", part=2, n=1, kind="temporal", question="When?", gold="Then", turn="D1:3")


@pytest.fixture
def home(tmp_path, list_index):
    """A home of version 1: its tables as they were, with the rows of a conversation."""
    home, now = tmp_path / "home", tmp_path / "now"
    with open_bank(now) as bank:
        bank.stage_turns(ANN, [said(1, "line 1"), said(2, "line 2")])
        bank.apply(ANN, [add("Ann lives in Graz", "D1:1")], close_segment_at=1)
        bank.commit_session(ANN)
        bank.stage_turns(TWO, [said(n, f"late {n}", session="2") for n in (1, 2)])
        bank.stage_turns(BOB, [said(1, "hello")])
        bank.commit_session(BOB)
    home.mkdir()
    list_index[home] = list_index[now]
    conn = sqlite3.connect(home / LEDGER_FILE)
    conn.executescript(schema.MIGRATIONS[0])
    conn.execute("ATTACH ? AS now", (str(now / LEDGER_FILE),))
    for table in TABLES:
        names = ["rowid"] if table == "lexical" else []
        names += [row[1] for row in conn.execute(f"PRAGMA main.table_info({table})")]
        columns = ", ".join(names)
        conn.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM now.{table}")
    conn.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    conn.execute("PRAGMA user_version = 1")
    conn.commit()
    conn.execute("PRAGMA journal_mode = WAL")
    conn.close()
    return home


def query(home, sql):
    conn = sqlite3.connect(home / LEDGER_FILE)
    try:
        return conn.execute(sql).fetchall()
    finally:
        conn.close()


def version(home):
    return query(home, "PRAGMA user_version")[0][0]


def test_the_first_step_is_the_one_that_was_released():
    digest = hashlib.sha256(schema.MIGRATIONS[0].encode()).hexdigest()
    assert digest == "f6785ef2476b9cb41128986207bb950eecd62babc68817552be075edd78c3163"


def test_sessions_keep_what_they_were(home):
    old = query(home, "SELECT * FROM sessions ORDER BY seq")
    assert [row[5:8] for row in old] == [("committed", 2, 1), ("open", 2, 0), ("committed", 1, 0)]
    with open_bank(home) as bank:
        found = bank.sessions(ANN.base)
        assert [(one.session, one.status, one.turns, one.staged) for one in found] == [
            ("1", "committed", 2, 0),
            ("2", "open", 2, 2),
        ]
        assert [(one.part, one.reason, one.report) for one in found] == [(1, "", SessionReport())] * 2
        assert [turn.text for turn in bank.open_segment(ANN)] == ["line 2"]
        assert [bank.next_position(scope) for scope in (ANN, TWO, BOB)] == [3, 3, 2]
    assert version(home) == schema.VERSION
    columns = "seq, scope_key, user, workspace, session, status, last_position, closed_position, touched_at"
    assert query(home, f"SELECT {columns} FROM sessions ORDER BY seq") == old


def test_all_else_stays_as_it_was(home):
    kept = [table for table in TABLES if table != "sessions"]
    before = {table: query(home, f"SELECT * FROM {table}") for table in kept}
    before["lexical_words"] = [(*row, None) for row in before["lexical_words"]]  # traits, not known yet
    with open_bank(home) as bank:
        report = bank.check()
    assert (report["integrity"], report["ledger_drift"], report["outbox"]) == ("ok", 0, 0)
    assert report["index"] == {"missing": 0, "stray": 0}
    assert {table: query(home, f"SELECT * FROM {table}") for table in kept} == before
    assert query(home, "PRAGMA foreign_key_check") == []


def test_sessions_are_ended_and_reopened_after_it(home):
    with open_bank(home) as bank:
        assert bank.commit_session(ANN) == 0
        part = bank.begin_verification(TWO)
        assert part[:2] == (1, 2)
        assert bank.commit_session(TWO, until=part.until, unverified="why") == 2
        bank.stage_turns(ANN, [said(3, "line 3")])
        assert [(one.status, one.part) for one in bank.sessions(ANN.base)] == [
            ("open", 2),
            ("committed_unverified", 1),
        ]
        bank.save_probes(ANN, [PROBE])
        assert bank.probes(ANN.base) == [PROBE]


def test_an_old_session_is_unique_still(home):
    open_bank(home).close()
    insert = (
        "INSERT INTO sessions (scope_key, user, workspace, session, status, touched_at)"
        " SELECT scope_key, user, workspace, session, status, touched_at FROM sessions"
    )
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        query(home, insert)
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        query(home, "UPDATE sessions SET status = 'ended'")


def test_reading_an_old_home_says_what_to_do_and_changes_nothing(home):
    before = (home / LEDGER_FILE).read_bytes()
    with pytest.raises(
        StoreError, match=r"of an older schema version; `memcycle doctor` brings it up to date"
    ):
        Bank.open(Settings(home=home), world=clock(), read_only=True)
    assert version(home) == 1
    assert (home / LEDGER_FILE).read_bytes() == before
    open_bank(home).close()
    with Bank.open(Settings(home=home), world=clock(), read_only=True) as reader:
        assert [one.session for one in reader.sessions(ANN.base)] == ["1", "2"]
        assert reader.probes(ANN.base) == []


def test_a_step_that_fails_leaves_the_old_home(home, monkeypatch):
    broken = schema.MIGRATIONS[1] + "\nCREATE TABLE probes (again TEXT);\n"
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (schema.MIGRATIONS[0], broken))
        with pytest.raises(sqlite3.OperationalError, match="already exists"):
            open_bank(home)
    assert version(home) == 1
    assert [row[5] for row in query(home, "SELECT * FROM sessions")] == ["committed", "open", "committed"]
    with open_bank(home) as bank:
        assert len(bank.sessions(ANN.base)) == 2
