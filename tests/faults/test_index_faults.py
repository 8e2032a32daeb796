"""What can happen to Chroma: the ledger takes everything meanwhile, searches answer, and the index heals."""

import os
import subprocess
from pathlib import Path

import pytest

from memcycle.core.errors import BadInput, StoreError
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores.bank import Bank
from memcycle.stores.chroma import client as chroma_embedded
from memcycle.stores.chroma.files import free_server
from memcycle.stores.search import search
from memcycle.stores.search.request import Query, SearchRequest
from tests.banks import ANN, clock, files_holding, open_bank, said
from tests.chroma_server import chroma_server
from tests.fakes import FakeEmbeddings
from tests.nobody import become_nobody, give_to_nobody, open_folder, run_apart

REQUEST = SearchRequest(scope=ANN.base, queries=(Query(text="Where does Ann live?"),), k=3)


def found(bank):
    return [hit.entry.text for hit in bank.search(REQUEST)[0]]


def remember(bank, n, text="Ann lives in Graz"):
    scope = ANN.within(str(n))
    bank.stage_turns(scope, [said(1, f"{text}, she says ({n})", session=str(n), id=f"D{n}:1")])
    bank.commit_session(scope)


def whole(bank):
    report = bank.check()
    return (report["outbox"], report["index"]) == (0, {"missing": 0, "stray": 0})


def on_server(home, url, shards=2):
    settings = Settings(home=home, chroma_url=url, shards=shards)
    return Bank.open(settings, embeddings=FakeEmbeddings(), world=clock())


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.enable_socket
@pytest.mark.slow
def test_a_server_that_is_down_holds_nothing_up(tmp_path, caplog):
    with chroma_server(tmp_path / "chroma") as (url, process), on_server(tmp_path / "h", url) as bank:
        remember(bank, 1)
        process.kill()
        process.wait()
        remember(bank, 2)
        assert "the index is behind the ledger" in caplog.text
        assert len(found(bank)) == 2
        report = bank.check()
        assert report["outbox"] == 1
        assert "does not answer" in report["index_trouble"]
        left = {one.name: one.remedy for one in bank.mend().left}
        assert "chroma run" in left["index_unusable"]
        with pytest.raises(StoreError, match="does not answer"):
            bank.drain()


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.enable_socket
@pytest.mark.slow
def test_a_server_that_was_restarted_is_used_again(tmp_path):
    folder = tmp_path / "chroma"
    with chroma_server(folder) as (url, process):
        bank = on_server(tmp_path / "h", url)
        remember(bank, 1)
        process.kill()
        process.wait()
        remember(bank, 2)
    port = int(url.rpartition(":")[2])
    with bank, chroma_server(folder, port=port):
        remember(bank, 3)
        assert whole(bank)
        assert len(found(bank)) == 3


def tells(bank, user, *texts):
    """Something a user says, in a session of its own each."""
    for n, text in enumerate(texts, 1):
        scope = Scope(user=user, session=f"{user} {n}")
        bank.stage_turns(scope, [said(n, text, session=scope.session, id=f"{user}:{n}")])
        bank.commit_session(scope)


def collections(bank):
    """Texts by id of each collection of a server."""
    with bank.indexes.mirror.index().client() as (client, _):
        return {str(one.id): sorted(one.get()["documents"]) for one in client.list_collections()}


def in_other_shards(bank, *, but):
    """A user in each other shard than that of `but`."""
    shard_of = bank.indexes.mirror.index().shard_of
    names = {shard_of(Scope(user=f"user-{n}")): f"user-{n}" for n in range(100)}
    del names[shard_of(Scope(user=but))]
    return list(names.values())


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.enable_socket
@pytest.mark.slow
def test_what_a_server_forgets_leaves_its_files_as_the_note_says(tmp_path):
    """A server keeps 2.6 MB of every collection it ever had."""
    home, data, mark = tmp_path / "h", tmp_path / "chroma", "⸘⸘⸘⸘⸘⸘"
    with chroma_server(data) as (url, process), on_server(home, url, shards=3) as bank:
        bob, cleo = in_other_shards(bank, but="ann")
        tells(bank, "ann", "Ann lives in Graz", f"Ann's code is {mark}", "Ann lives in Linz")
        tells(bank, bob, f"Bob's code is {mark}")
        tells(bank, cleo, "Cleo lives in Rome")
        before = collections(bank)
        assert len(before) == 3

        bank.forget(Scope(user="ann"), bank.entries(Scope(user="ann"))[1].id)
        bank.forget_user(bob)
        assert collections(bank).keys() == before.keys()
        assert sorted(collections(bank).values()) == [
            [], ["Ann lives in Graz", "Ann lives in Linz"], ["Cleo lives in Rome"],
        ]  # fmt: skip
        assert (files_holding(home, mark.encode()), files_holding(home, bob.encode())) == ([], [])
        assert bank.check()["wipes_owed"] == 0
        assert f"files of the Chroma server at {url}: run `memcycle doctor --rebuild`" in bank.operator_note
        bank.rebuild()
        after = collections(bank)
        assert not after.keys() & before.keys()
        assert sorted(after.values()) == [["Ann lives in Graz", "Ann lives in Linz"], ["Cleo lives in Rome"]]
        assert whole(bank)
        with pytest.raises(BadInput, match=f"process {process.pid} has .* open: stop the server first"):
            free_server(data)
        process.terminate()
        process.wait()
    assert "chroma.sqlite3" in files_holding(data, mark.encode())
    (data / "photos").mkdir()  # of the person who keeps it there
    assert free_server(data) is None
    assert (data / "photos").is_dir()
    assert files_holding(data, mark[:3].encode()) == []  # nor a trigram of it
    with chroma_server(data) as (url, _), on_server(tmp_path / "h", url, shards=3) as bank:
        assert sorted(collections(bank).values()) == sorted(after.values())


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.enable_socket
@pytest.mark.slow
def test_a_server_that_lost_all_is_seen_and_filled_again(tmp_path):
    with chroma_server(tmp_path / "chroma") as (url, _), on_server(tmp_path / "h", url) as bank:
        remember(bank, 1)
    port = int(url.rpartition(":")[2])
    with chroma_server(tmp_path / "empty", port=port), on_server(tmp_path / "h", url) as bank:
        assert bank.check()["index"] == {"missing": 1, "stray": 0}
        assert [one.name for one in bank.mend().mended] == ["index_drift"]
        assert whole(bank)


def _with_a_full_disk(home, folder):
    """The folder of Chroma has no room; then it has."""
    with open_bank(home) as bank:
        lines = [said(n, f"line {n} " + "x" * 500, id=f"D1:{n}") for n in range(1, 41)]
        bank.stage_turns(ANN, lines)
        assert bank.commit_session(ANN) == 40
        for _ in range(3):  # the second call after the first failure never returned
            assert "its disk has room" in bank.check()["index_trouble"]
        assert found(bank)
        assert len(bank.entries(ANN)) == 40
        left = {one.name for one in bank.mend().left}
        assert left in ({"outbox", "index_unusable"}, {"outbox", "index_drift"})
        subprocess.run(["mount", "-o", "remount,size=200m", folder], check=True)
        assert bank.mend().left == []
        assert whole(bank)


@pytest.mark.slow
def test_a_full_disk_of_chroma_costs_nothing_and_hangs_nothing(tmp_path):
    folder = tmp_path / "h" / "chroma"
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk needs the right to mount one")
    try:
        done = run_apart(__file__, "_with_a_full_disk", tmp_path / "h", folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
    assert done.returncode == 0, done.stderr[-2000:]


def _without_the_right_to_write(home):
    become_nobody()
    parts = [Path(home) / "chroma", *(Path(home) / "chroma").rglob("*")]
    for part in parts:
        part.chmod(0o555)
    with open_bank(home) as bank:
        remember(bank, 2)
        assert len(found(bank)) == 2
        report = bank.check()
        assert report["outbox"] == 1
        assert "Permission denied" in report["index_trouble"]
        assert {one.name for one in bank.mend().left} == {"outbox", "index_unusable"}
        for part in parts:
            part.chmod(0o755)
        assert bank.mend().left == []
        assert whole(bank)


@pytest.mark.slow
def test_a_chroma_that_cannot_be_written_costs_nothing():
    with open_folder() as folder:
        home = folder / "h"
        with open_bank(home) as bank:
            remember(bank, 1)
        give_to_nobody(home)
        done = run_apart(__file__, "_without_the_right_to_write", home)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_collection_that_is_missing_is_searched_without_and_seen(tmp_path, monkeypatch):
    with open_bank(tmp_path / "h") as bank:
        remember(bank, 1)
        with bank.indexes.mirror.index().client() as (client, _):
            for one in client.list_collections():
                client.delete_collection(one.name)
        bank.indexes.mirror.close()
        monkeypatch.setattr(search, "SCANNED_WHOLE", 0)
        assert found(bank) == ["Ann lives in Graz, she says (1)"]
        assert [one.name for one in bank.mend().mended] == ["index_drift"]
        assert whole(bank)


def test_an_index_that_cannot_be_removed_says_so(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    with open_bank(tmp_path / "h") as bank:
        remember(bank, 1)
        monkeypatch.setattr(chroma_embedded.shutil, "rmtree", refuse)
        with pytest.raises(StoreError, match=r"removing it in .* \(Permission denied\)"):
            bank.rebuild()
