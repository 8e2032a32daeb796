"""Each thing the doctor finds: damage it, see it found and left alone, see it mended, see it gone."""

import json
import shutil
from contextlib import contextmanager
from datetime import UTC, datetime

import numpy as np
import pytest

from memcycle.core.settings import Settings
from memcycle.core.world import World
from memcycle.stores.bank import LEDGER_FILE, Bank
from memcycle.stores.doctor import KINDS
from tests.banks import ANN, said
from tests.fakes import FakeEmbeddings

DAMAGES = {}


def damage(*names):
    """Registers a function that makes findings of these names."""

    def register(function):
        DAMAGES[function.__name__] = (function, names)
        return function

    return register


@contextmanager
def chroma(home, **settings):
    """Chroma's own client on the home, and how the names of its collections begin."""
    with Bank.open(Settings(home=home, **settings)) as bank, bank.indexes.mirror.index().client() as opened:
        yield opened


def first_collection(client, names):
    found = [one for one in client.list_collections() if one.name.removeprefix(names).isdecimal()]
    return client.get_collection(sorted(one.name for one in found)[0], embedding_function=None)


@damage("index_drift")
def an_entry_missing_in_chroma(home, sql):
    with chroma(home) as (client, names):
        collection = first_collection(client, names)
        collection.delete(ids=collection.get(include=[])["ids"][:2])


@damage("index_drift")
def chromas_folder_gone(home, sql):
    shutil.rmtree(home / "chroma")


@damage("index_drift")
def an_entry_left_over_in_chroma(home, sql):
    with chroma(home) as (client, names):
        collection = first_collection(client, names)
        collection.add(ids=["stray"], embeddings=[[1.0] * 256], documents=["gone"], metadatas=[{"user": "x"}])


@damage("index_drift")
def an_entry_in_a_wrong_shard_as_well(home, sql):
    with chroma(home) as (client, names):
        right = first_collection(client, names)
        one = right.get(limit=1, include=["embeddings", "documents", "metadatas"])
        taken = {one.name for one in client.list_collections()}
        free = next(f"{names}{n:02d}" for n in range(32) if f"{names}{n:02d}" not in taken)
        client.create_collection(
            free, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        ).add(
            ids=one["ids"],
            embeddings=one["embeddings"],
            documents=one["documents"],
            metadatas=one["metadatas"],
        )


@damage("index_drift")
def another_vector_in_chroma(home, sql):
    with chroma(home) as (client, names):
        collection = first_collection(client, names)
        collection.update(ids=collection.get(limit=1, include=[])["ids"], embeddings=[[0.5] * 256])


@damage("index_drift")
def collections_of_another_number_of_shards(home, sql):
    with Bank.open(Settings(home=home, shards=1000)) as bank:
        bank.rebuild()


@damage("index_unusable")
def chromas_database_damaged(home, sql):
    (home / "chroma" / "chroma.sqlite3").write_bytes(b"no database" * 1000)


@damage("ledger_drift")
def a_link_to_nothing(home, sql):
    sql("INSERT INTO links SELECT scope_key, id, 'related', 'gone' FROM entries LIMIT 1")


@damage("ledger_drift")
def a_source_lost(home, sql):
    sql("DELETE FROM sources WHERE row = (SELECT min(row) FROM sources)")


@damage("ledger_drift")
def words_left_over(home, sql):
    # As many too many as missing: a comparison of sums would not see it.
    sql("UPDATE lexical_words SET row = 4711 WHERE row = (SELECT min(row) FROM lexical_words)")


@damage("ledger_drift")
def an_index_of_words_that_cannot_be_opened(home, sql):
    sql("DELETE FROM lexical_data")


@damage("stuck_sessions")
def a_session_broken_off_while_it_was_examined(home, sql):
    with Bank.open(Settings(home=home)) as bank:
        bank.stage_turns(ANN.within("2"), [said(1, "A late word of Ann", session="2", id="D2:1")])
        bank.begin_verification(ANN.within("2"))


@damage("stuck_sessions")
def a_session_nobody_ended(home, sql):
    with Bank.open(Settings(home=home)) as bank:
        bank.stage_turns(ANN.within("2"), [said(1, "A late word of Ann", session="2", id="D2:1")])
    sql("UPDATE sessions SET touched_at = :old WHERE session = '2'", old="2024-01-01T00:00:00+00:00")


@damage("outbox")
def an_outbox_half_drained(home, sql):
    sql(
        "INSERT INTO outbox (user, workspace, entry)"
        " SELECT user, workspace, id FROM entries WHERE user = 'ann'"
    )
    with chroma(home) as (client, names):
        for found in client.list_collections():
            if found.name.removeprefix(names).isdecimal():
                client.get_collection(found.name, embedding_function=None).delete(where={"user": "ann"})


@damage("without_vector")
def an_entry_without_a_vector(home, sql):
    sql("UPDATE entries SET vector = NULL, embedder = NULL WHERE text = 'Ann lives in Linz'")


@damage("without_vector")
def a_vector_of_another_embedder(home, sql):
    sql("UPDATE entries SET embedder = 'other' WHERE text = 'Ann lives in Linz'")


@damage("without_vector")
def a_vector_of_another_length(home, sql):
    sql(
        "UPDATE entries SET vector = :short WHERE text = 'Ann lives in Linz'",
        short=np.ones(3, dtype=np.float32).tobytes() + b"x",
    )


@damage("wipes_owed")
def a_wipe_cut_short(home, sql):
    sql(
        "INSERT INTO scrubs (user, workspace) SELECT DISTINCT user, workspace FROM entries",
        "INSERT INTO meta VALUES ('compaction', 'owed')",
    )


@damage("ledger_drift")
def an_index_of_the_ledger_out_of_step(home, sql):
    sql(
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, '(scope_key, same)', '(scope_key, text)')"
        " WHERE name = 'entries_same'",
    )
    sql("UPDATE entries SET text = text WHERE 0", "REINDEX entries_same")
    sql(
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, '(scope_key, text)', '(scope_key, same)')"
        " WHERE name = 'entries_same'",
    )


MENDED_BY_HAND = {"ledger_damaged", "other_embedder"}


@pytest.mark.parametrize("name", DAMAGES)
def test_it_is_found_mended_and_gone(cli, home, sql, name):
    make, names = DAMAGES[name]
    before = {one["id"]: one["text"] for one in cli.json("memories", "--user", "ann")}
    make(home, sql)
    seen = json.loads(cli.run("doctor", "--dry-run", "--json", code=1).stdout)
    assert {one["name"] for one in seen["found"]} >= set(names)
    assert seen["left"] != []
    assert seen["mended"] == []
    mended = cli.json("doctor")
    assert set(mended["mended"]) >= set(names)
    assert mended["left"] == []
    assert cli.json("doctor")["found"] == []
    after = {one["id"]: one["text"] for one in cli.json("memories", "--user", "ann")}
    assert after.items() >= before.items()
    assert "Linz" in cli.json("ask", "Where does Ann live?", "--user", "ann")["answer"]


def test_a_person_is_told_what_is_wrong_mended_and_left(cli, home, sql):
    assert "Nothing is wrong." in cli.run("doctor").stdout
    a_link_to_nothing(home, sql)
    assert "left: 1 rows of the ledger" in cli.run("doctor", "--dry-run", code=1).stdout
    assert "mended: 1 rows of the ledger" in cli.run("doctor").stdout


def test_every_finding_has_a_test():
    tested = {name for _, names in DAMAGES.values() for name in names}
    assert tested | MENDED_BY_HAND == set(KINDS)


def test_a_whole_home_is_found_whole(cli, home):
    report = cli.json("doctor")
    assert report["found"] == report["mended"] == report["left"] == []
    assert report["items"] == {
        "stored": 2, "expired": 0, "vectors": {"wordllama-l2-supercat-256": 2},
    }  # fmt: skip


def test_a_damaged_ledger_is_told_with_how_to_restore_it(cli, home):
    path = home / LEDGER_FILE
    path.write_bytes(b"no database" * 4000)
    result = cli.run("doctor", "--json", code=1)
    [left] = json.loads(result.stdout)["left"]
    assert left["name"] == "ledger_damaged"
    assert "doctor --rebuild" in left["to_do"]
    assert "memcycle export" in left["to_do"]
    assert "left: 1 ledger that cannot be read" in cli.run("doctor", code=1).stdout
    assert path.read_bytes() == b"no database" * 4000


def test_a_ledger_damaged_in_a_page_is_left_as_it_is(cli, home, sql, caplog):
    [(page, size)] = sql(
        "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = 'events'"
    )
    sql("PRAGMA wal_checkpoint(TRUNCATE)")
    path = home / LEDGER_FILE
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = bytes(size)
    path.write_bytes(content)
    report = json.loads(cli.run("doctor", "--json", code=1).stdout)
    assert [one["name"] for one in report["left"]] == ["ledger_damaged"]
    assert report["mended"] == []
    assert [one["text"] for one in cli.json("export", "--user", "bob") if one["granularity"] == "raw"] == [
        f"Bob said line {n}" for n in (1, 2, 3)
    ]
    assert "exported without their history" in caplog.text


def test_a_restored_ledger_is_whole_again_after_a_rebuild(cli, home, whole_home, sql):
    sql("DELETE FROM entries WHERE user = 'ann'")
    for file in home.glob(f"{LEDGER_FILE}*"):
        file.unlink()
    shutil.copy(whole_home / LEDGER_FILE, home / LEDGER_FILE)
    assert cli.json("doctor", "--rebuild")["left"] == []
    assert "Linz" in cli.json("ask", "Where does Ann live?", "--user", "ann")["answer"]


def test_another_embedder_is_left_to_a_person(tmp_path):
    home = tmp_path / "h"
    with Bank.open(Settings(home=home), embeddings=FakeEmbeddings(model="old")) as bank:
        bank.stage_turns(ANN, [said(1, "hello")])
    with Bank.open(Settings(home=home), embeddings=FakeEmbeddings(model="new"), repair=True) as bank:
        result = bank.mend()
        assert [one.name for one in result.left] == ["other_embedder"]
        assert "doctor --reembed" in result.left[0].remedy
        bank.reembed()
        assert bank.mend().found == []


def test_what_an_embedder_that_is_down_keeps_from_being_mended_is_left_and_named(tmp_path):
    home = tmp_path / "h"
    down = FakeEmbeddings(script=[None, *[ConnectionError("down")] * 9])
    with Bank.open(Settings(home=home), embeddings=down) as bank:
        bank.stage_turns(ANN, [said(1, "hello"), said(2, "again")])
        bank.stage_turns(ANN, [said(3, "later")])
        bank.commit_session(ANN)
        [left] = bank.mend().left
        assert (left.name, left.count) == ("without_vector", 1)
        assert "embedder can be reached" in left.remedy
        down.script.clear()
        assert [one.name for one in bank.mend().mended] == ["without_vector"]


def test_a_session_under_examination_elsewhere_is_let_be(tmp_path):
    now = datetime(2024, 3, 1, tzinfo=UTC)
    with Bank.open(
        Settings(home=tmp_path / "h"), embeddings=FakeEmbeddings(), world=World(now=lambda: now)
    ) as bank:
        bank.stage_turns(ANN, [said(1, "hello")])
        bank.begin_verification(ANN)
        assert bank.mend().found == []
        assert [one.name for one in bank.mend(alone=True).mended] == ["stuck_sessions"]
        [session] = bank.sessions(ANN.base)
        assert (session.status, session.staged) == ("committed_unverified", 0)
