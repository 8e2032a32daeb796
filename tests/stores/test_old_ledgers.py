"""Ledgers of every former schema version are opened, brought up to date, and hold what they held."""

import hashlib
import re
import sqlite3
from contextlib import closing

import pytest

from memcycle.core.settings import Settings
from memcycle.stores.bank import LEDGER_FILE, Bank
from memcycle.stores.langgraph_store import MemcycleStore
from memcycle.stores.ledger import schema
from memcycle.stores.search.request import Query, SearchRequest
from tests.banks import ANN, BOB, said
from tests.stores.old_ledgers import FIXTURES, NOTES, TWO, content, expected, opened, unpack

KEPT = sorted(int(re.findall(r"\d+", file.name)[0]) for file in FIXTURES.glob("*.json"))

RELEASED = (
    "f6785ef2476b9cb41128986207bb950eecd62babc68817552be075edd78c3163",
    "f457e57d88142bf5df054f27b801c4e438b2a502d9c907a7f633c2cf505b3996",
    "0894d99d804f2a83e2cd4deff689ee2da6a8fc937ef5154bf83aac8ba41fd626",
    "38550dfd769f1f1e2e57753e142c14cfeee20021b044941b704da8867eb0275b",
    "47bfe4617b5f98ebe6a7cb0a702930ca240bb715865e7a366095f6676989c0a2",
    "ceb76fabc95c2a63ee628355978bdaaa7c74f435538bd9116ebb8d343cc75246",
    "cb8cb31d5d5f3513e96a38f685c001f324e87a0cd6babd9bbaf951820afb743c",
)
"""Hashes of the steps that were released."""


def query(home, statement):
    with closing(sqlite3.connect(home / LEDGER_FILE)) as conn:
        return conn.execute(statement).fetchall()


def as_of(version, home):
    """The newest kept ledger, written back into the tables of an older version."""
    unpack(KEPT[-1], home)
    (home / LEDGER_FILE).rename(home / "new")
    with closing(sqlite3.connect(home / LEDGER_FILE)) as conn:
        for step in schema.MIGRATIONS[:version]:
            step(conn) if callable(step) else conn.executescript(step)
        conn.execute("ATTACH ? AS new", (str(home / "new"),))
        shadow = re.compile("lexical_(data|idx|content|docsize|config)|sqlite_.*|change[sd]")
        tables = [row[0] for row in conn.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'")]
        for table in tables:
            if shadow.fullmatch(table):
                continue
            names = ["rowid"] if table == "lexical" else []
            names += [row[1] for row in conn.execute(f"PRAGMA main.table_info({table})")]
            columns = ", ".join(names)
            rows = f"SELECT {columns} FROM new.{table}"
            if table == "sessions" and version == 1:
                # The status of a session that was not examined came with the second version.
                rows = rows.replace("status", "iif(status LIKE 'committed%', 'committed', 'open')")
            conn.execute(f"INSERT INTO main.{table} ({columns}) {rows}")
        conn.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        conn.execute(f"PRAGMA user_version = {version}")
        conn.commit()
    (home / "new").unlink()


def test_released_steps_never_change():
    assert (
        tuple(hashlib.sha256(step.encode()).hexdigest() for step in schema.MIGRATIONS[: len(RELEASED)])
        == RELEASED
    )


@pytest.mark.parametrize("version", KEPT)
def test_a_kept_ledger_holds_what_it_held(tmp_path, version):
    home = tmp_path / "home"
    unpack(version, home)
    with opened(home) as bank:
        assert content(bank) == expected(version)
        assert [one.name for one in bank.mend().left] == []
        assert content(bank) == expected(version)
        works_on(bank)
        with MemcycleStore(bank) as store:
            assert store.get(NOTES, "a").value == {"text": "red wine", "n": [1, None]}
            assert {one.key for one in store.search(NOTES, query="red wine")} == {"a", "b"}
    assert query(home, "PRAGMA user_version") == [(schema.VERSION,)]


def works_on(bank):
    """Search, undo, tombstones, and a session that goes on."""
    (hits,) = bank.search(SearchRequest(scope=ANN, queries=(Query(text="Where does Ann live? Linz"),), k=5))
    moved = next(hit.entry for hit in hits if hit.entry.granularity == "fact" and "Linz" in hit.entry.text)
    assert [event.action for event in bank.history(ANN, moved.id)][:2] == ["add", "commit"]
    assert bank.undo(ANN, moved.id).text == "Ann lives in Graz"
    assert bank.stage_turns(BOB, [said(2, "Forget this", speaker="Bob")]) == []
    assert bank.next_position(TWO) == 2
    assert bank.commit_session(TWO) == 1


@pytest.mark.parametrize("version", range(1, KEPT[-1]))
def test_a_ledger_of_an_older_version_is_brought_up_to_date(tmp_path, version):
    home = tmp_path / "home"
    as_of(version, home)
    was = expected(KEPT[-1])
    if version < 2:
        was["probes"] = []
        for session in was["sessions"]:
            session.update(part=1, reason="", report={**session["report"], "committed": 0})
            session["status"] = session["status"].removesuffix("_unverified")
    with opened(home) as bank:
        assert content(bank) == was
        assert [one.name for one in bank.mend().left] == []
        works_on(bank)
    assert query(home, "PRAGMA user_version") == [(schema.VERSION,)]
    assert query(home, "PRAGMA foreign_key_check") == []


def test_vectors_of_words_that_were_kept_once_are_dropped(tmp_path):
    home = tmp_path / "home"
    unpack(KEPT[-1], home)
    with closing(sqlite3.connect(home / LEDGER_FILE)) as conn:
        conn.execute("INSERT INTO entry_words SELECT row, 'model', x'00' FROM entries")
        conn.execute("INSERT INTO meta VALUES ('words of model', '7')")
        conn.commit()
    with opened(home) as bank:
        assert content(bank) == expected(KEPT[-1])
    assert query(home, "SELECT name FROM sqlite_schema WHERE name GLOB 'entry_words*'") == []
    assert query(home, "SELECT * FROM meta WHERE key GLOB 'words*'") == []


def test_an_old_home_is_brought_up_to_date_for_whoever_only_reads(tmp_path):
    home = tmp_path / "home"
    unpack(KEPT[0], home)
    with Bank.open(Settings(home=home), read_only=True) as reader:
        assert [one.session for one in reader.sessions(ANN.base)] == ["1", "2"]


def test_a_step_that_fails_leaves_the_old_home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    as_of(1, home)
    broken = schema.MIGRATIONS[1] + "\nCREATE TABLE probes (again TEXT);\n"
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (schema.MIGRATIONS[0], broken))
        with pytest.raises(sqlite3.OperationalError, match="already exists"):
            opened(home)
    assert query(home, "PRAGMA user_version") == [(1,)]
    with opened(home) as bank:
        assert len(bank.sessions(ANN.base)) == 2
