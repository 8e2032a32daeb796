import json
import logging
import shutil
import subprocess
import sys
from datetime import timedelta

import pytest

from memcycle.core.errors import EmbedderMismatch, StoreError
from memcycle.core.settings import Settings
from memcycle.core.world import World
from memcycle.stores import doctor
from memcycle.stores.bank import Bank
from memcycle.stores.search.request import Query, SearchRequest
from tests.banks import ANN, BOB, START, ListIndex, add, clock, open_bank, said
from tests.fakes import FakeEmbeddings


def filled(bank, n=5):
    bank.stage_turns(ANN, [said(i, f"line {i}") for i in range(1, n + 1)])
    bank.apply(ANN, [add("Ann lives in Graz", "D1:1"), add("Ann has a cat", "D1:2")])
    bank.commit_session(ANN)
    return bank


def found(bank, text, scope=ANN):
    (hits,) = bank.search(SearchRequest(scope=scope, queries=(Query(text=text),), k=3))
    return [hit.entry.text for hit in hits]


class Unreachable(ListIndex):
    """An index that does not take writes while `down`."""

    down = True

    def upsert(self, items, batch):
        if self.down:
            raise StoreError("the Chroma server does not answer")
        super().upsert(items, batch)


def test_a_commit_stands_when_the_index_is_down(tmp_path, list_index, caplog):
    home = tmp_path / "h"
    list_index[home] = index = Unreachable(Settings(home=home))
    with open_bank(home) as bank, caplog.at_level(logging.WARNING):
        filled(bank)
        assert bank.sessions(ANN)[0].status == "committed"
        assert bank.check()["outbox"] == 7
        assert bank.check()["index"] == {"missing": 7, "stray": 0}
        assert "the index is behind the ledger" in caplog.text
        with pytest.raises(StoreError, match="does not answer"):
            bank.drain()
        index.down = False
        assert bank.drain(3) == 7
        assert bank.drain() == 0
        assert bank.check()["index"] == {"missing": 0, "stray": 0}


def test_the_outbox_is_replayed_by_the_next_process(tmp_path, list_index):
    home = tmp_path / "h"
    list_index[home] = index = Unreachable(Settings(home=home))
    with open_bank(home) as bank:
        filled(bank)
    index.down = False
    with open_bank(home) as bank:
        assert bank.drain() == 7
        assert len(index.held) == 7


def test_rows_leave_the_outbox_only_when_taken(tmp_path, list_index):
    home = tmp_path / "h"
    list_index[home] = index = Unreachable(Settings(home=home))
    with open_bank(home) as bank:
        filled(bank)
        taken = []

        def takes_two_batches(items, batch):
            if len(taken) == 2:
                raise StoreError("gone again")
            taken.append(len(items))

        index.upsert = takes_two_batches
        with pytest.raises(StoreError):
            bank.drain(2)
        assert bank.check()["outbox"] == 7 - 4


def test_drift_is_seen_and_rebuilt(bank, list_index):
    filled(bank)
    index = list_index[bank.settings.home]
    lost = next(iter(index.held))
    entry, vector = index.held.pop(lost)
    index.held["stray"] = (entry, vector)
    with bank.ledger.write() as conn:
        conn.execute("DELETE FROM lexical_words")
    report = bank.check()
    assert (report["index"], report["ledger_drift"]) == ({"missing": 1, "stray": 1}, 7)
    assert bank.rebuild() == 7
    report = bank.check()
    assert (report["index"], report["ledger_drift"]) == ({"missing": 0, "stray": 0}, 0)
    assert found(bank, "Graz")[0] == "Ann lives in Graz"


def test_a_broken_index_of_words_is_made_anew_by_the_doctor(tmp_path):
    with open_bank(tmp_path / "h") as bank:
        filled(bank)
        with bank.ledger.write() as conn:
            conn.execute("DELETE FROM lexical_data")
    with open_bank(tmp_path / "h") as bank:
        with pytest.raises(StoreError, match="`memcycle doctor` makes it anew"), bank.ledger.look() as conn:
            conn.execute("SELECT rowid FROM lexical WHERE lexical MATCH 'graz'").fetchall()
        assert [one.name for one in bank.mend().mended] == ["ledger_drift"]
        assert found(bank, "Graz")[0] == "Ann lives in Graz"


def test_complaints_about_the_words_do_not_damn_the_ledger():
    assert doctor.is_of_an_index("malformed inverted index for FTS5 table main.lexical")
    assert doctor.is_of_an_index('fts5: corrupt structure record for table "lexical"')
    assert doctor.is_of_an_index("row 3 missing from index lexical_words_scope")
    assert not doctor.is_of_an_index("Tree 7 page 9: btreeInitPage() returns error code 11")


def test_a_lost_or_damaged_chroma_is_rebuilt_from_the_ledger(tmp_path):
    home = tmp_path / "h"
    with open_bank(home) as bank:
        filled(bank)
    shutil.rmtree(home / "chroma")
    (home / "chroma").mkdir()
    (home / "chroma" / "chroma.sqlite3").write_bytes(b"no database" * 1000)
    with open_bank(home) as bank:
        bank.stage_turns(BOB, [said(1, "the ledger takes it")])
        assert bank.rebuild() == 7
        assert bank.check()["index"] == {"missing": 0, "stray": 0}


def test_another_embedder_is_refused_at_open_by_name(tmp_path, list_index):
    with open_bank(tmp_path / "h") as bank:
        filled(bank)
    other = FakeEmbeddings(dim=16, model="other-model")
    with pytest.raises(EmbedderMismatch, match=r"fake-bag.*32.*other-model.*doctor --reembed"):
        open_bank(tmp_path / "h", embeddings=other)


def test_reembedding_keeps_ids_texts_and_times(tmp_path, list_index):
    home = tmp_path / "h"
    with open_bank(home) as bank:
        filled(bank)
        before = list(bank.export(ANN.base))
    other = FakeEmbeddings(dim=16, model="other-model")
    with Bank.open(Settings(home=home), embeddings=other, world=clock(), repair=True) as bank:
        assert "index" not in bank.check()
        with pytest.raises(EmbedderMismatch):
            bank.rebuild()
        assert bank.reembed() == 7
        report = bank.check()
        assert report["embedder"] == {
            "recorded": bank.embedder_id, "dimension": 16, "current": bank.embedder_id,
        }  # fmt: skip
        assert report["index"] == {"missing": 0, "stray": 0}
        assert {row["embedder"] for row in bank.export(ANN.base)} == {bank.embedder_id}
        assert [row | {"embedder": None} for row in bank.export(ANN.base)] == [
            row | {"embedder": None} for row in before
        ]
    with open_bank(home, embeddings=other) as bank:
        assert found(bank, "Graz")[0] == "Ann lives in Graz"


def test_a_failing_reembed_changes_nothing(tmp_path, list_index):
    home = tmp_path / "h"
    with open_bank(home) as bank:
        filled(bank)
    other = FakeEmbeddings(dim=16, model="other", script=[None, None, ConnectionError("down")])
    settings = Settings(home=home, bulk_batch=2)
    with Bank.open(settings, embeddings=other, world=clock(), repair=True) as bank:
        with pytest.raises(ConnectionError):
            bank.reembed()
        assert bank.check()["embedder"]["dimension"] == 32
    with open_bank(home) as bank:
        assert found(bank, "Graz")[0] == "Ann lives in Graz"


def test_a_forgotten_session_is_reported_as_stuck(tmp_path, list_index):
    now = [START]
    settings = Settings(home=tmp_path / "h")
    with Bank.open(settings, embeddings=FakeEmbeddings(), world=World(now=lambda: now[0])) as bank:
        bank.stage_turns(ANN, [said(1)])
        assert bank.check()["stuck_sessions"] == 0
        now[0] += timedelta(days=2)
        assert bank.check()["stuck_sessions"] == 1
        bank.commit_session(ANN)
        assert bank.check()["stuck_sessions"] == 0


def test_a_check_tells_nothing_of_anybody(bank):
    filled(bank)
    report = json.dumps(bank.check())
    assert not [
        word for word in ("Graz", "line 1", "ann") if word in report.replace(str(bank.settings.home), "")
    ]


def test_reading_needs_no_embedder_no_index_and_no_lock(tmp_path, monkeypatch):
    home = tmp_path / "h"
    with open_bank(home) as writer:
        filled(writer)
        with Bank.open(Settings(home=home, embedder="no-such"), read_only=True) as reader:
            assert reader.entries(ANN) == writer.entries(ANN)
            assert list(reader.export(ANN.base)) == list(writer.export(ANN.base))
            (entry, *_) = reader.entries(ANN, granularity="fact")
            assert reader.history(ANN, entry.id) == writer.history(ANN, entry.id)
            assert reader.embedder_id == writer.embedder_id
            assert reader.check()["entries"]["active"] == 7
            writes = (
                lambda: reader.edit(ANN, entry.id, "x"),
                lambda: reader.stage_turns(ANN, [said(9)]),
                lambda: reader.apply(ANN, []),
                lambda: reader.forget(ANN, entry.id),
                lambda: reader.forget_user("ann"),
                lambda: reader.commit_session(ANN),
                lambda: reader.begin_verification(ANN),
                lambda: reader.save_probes(ANN, []),
                lambda: reader.settle_conflicts(ANN, [("a", "b")]),
                lambda: found(reader, "x"),
                reader.rebuild,
                reader.drain,
            )
            for write in writes:
                with pytest.raises(StoreError, match="for reading its ledger only"):
                    write()


def test_reading_loads_neither_chroma_nor_an_embedder(tmp_path):
    with open_bank(tmp_path / "h") as bank:
        filled(bank)
    program = (
        "import sys; from pathlib import Path; from memcycle.core.settings import Settings;"
        "from memcycle.stores.bank import Bank; from memcycle.core.scope import Scope;"
        f"bank = Bank.open(Settings(home=Path({str(tmp_path / 'h')!r})), read_only=True);"
        "assert len(bank.entries(Scope(user='ann'))) == 7;"
        "print([name for name in ('chromadb', 'langchain_core', 'wordllama') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
