"""The Chroma index: one contract for the embedded and the server mode, then what is particular to each."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memcycle.core.entry import Entry, Granularity, new_entry
from memcycle.core.errors import StoreBusy, StoreError
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores.chroma.client import open_client
from memcycle.stores.chroma.files import DATABASE
from memcycle.stores.chroma.index import ChromaIndex, scope_field, shard_of
from memcycle.stores.ledger import full_text
from tests.banks import files_holding
from tests.chroma_server import chroma_server, free_port
from tests.fakes import bag_of_words

# The server mode speaks to a real `chroma run` on the loopback.
pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

DIM = 32
HOME = "0123"
NOON = datetime(2024, 5, 7, 12, 0, tzinfo=UTC)
ANA = Scope(user="ana", session="1")
Open = Callable[..., ChromaIndex]


def opened(config: Settings, store: str = HOME, *, fresh: bool = False) -> ChromaIndex:
    return ChromaIndex(open_client(config, store, fresh=fresh), config.shards, DIM)


def vector(text: str) -> np.ndarray:
    raw = np.array(bag_of_words(text, DIM), dtype=np.float32)
    return raw / (np.linalg.norm(raw) or 1)


def entry(text: str, scope: Scope = ANA, granularity: Granularity = "raw", **fields: Any) -> Entry:
    return new_entry(scope, granularity, text, ("D1:1",), **{"status": "active", **fields})


def put(index: ChromaIndex, *entries: Entry, batch: int = 50) -> None:
    index.upsert([(item, vector(item.text)) for item in entries], batch)


def ask(index: ChromaIndex, text: str, scope: Scope = ANA, k: int = 10, **filters: Any) -> list[str]:
    return [id_ for id_, _ in index.query(scope, vector(text)[None], k, **filters)[0]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(tmp_path_factory.mktemp("server")) as (url, _):
        yield url


@pytest.fixture(params=["embedded", pytest.param("server", marks=pytest.mark.slow)])
def open_index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    url = None if request.param == "embedded" else request.getfixturevalue("server")
    made: list[ChromaIndex] = []

    def open_(shards: int = 4, *, fresh: bool = False) -> ChromaIndex:
        config = Settings(home=tmp_path / "home", chroma_url=url, shards=shards, lock_timeout=0.2)
        made.append(opened(config, fresh=fresh))
        return made[-1]

    yield open_
    for index in made:
        index.close()


@pytest.fixture
def index(open_index: Open) -> ChromaIndex:
    return open_index(fresh=True)


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[ChromaIndex]:
    index = opened(Settings(home=tmp_path, shards=4, lock_timeout=0))
    yield index
    index.close()


# The contract


def test_the_nearest_comes_first_with_its_cosine(index: ChromaIndex) -> None:
    dogs, birds = entry("dogs like long walks"), entry("birds fly south")
    put(index, birds, dogs)
    found = index.query(ANA, vector("dogs like walks")[None], 10)[0]
    assert [id_ for id_, _ in found] == [dogs.id, birds.id]
    cosines = [float(vector("dogs like walks") @ vector(item.text)) for item in (dogs, birds)]
    assert [score for _, score in found] == pytest.approx([max(0.0, cosine) for cosine in cosines], abs=1e-5)


def test_many_queries_in_one_call_keep_their_order_and_a_blank_one_finds_nothing(index: ChromaIndex) -> None:
    dogs, birds = entry("dogs like long walks"), entry("birds fly south")
    put(index, dogs, birds)
    queries = np.stack([vector("birds fly"), np.zeros(DIM, dtype=np.float32), vector("long walks")])
    found = index.query(ANA, queries, 1)
    assert [[id_ for id_, _ in hits] for hits in found] == [[birds.id], [], [dogs.id]]


def test_an_opposite_vector_scores_zero_and_a_zero_vector_is_kept(index: ChromaIndex) -> None:
    opposite, blank = entry("opposite"), entry(" ")
    index.upsert([(opposite, -vector("dogs")), (blank, np.zeros(DIM, dtype=np.float32))], 50)
    found = index.query(ANA, vector("dogs")[None], 10)[0]
    assert found == sorted([(opposite.id, 0.0), (blank.id, 0.0)])
    assert index.ids() == {opposite.id, blank.id}


def test_an_empty_index_answers(index: ChromaIndex) -> None:
    assert ask(index, "dogs") == []
    assert index.ids() == index.ids(ANA) == set()
    index.delete([(ANA, "none")])
    index.drop_shards([index.shard_of(ANA)])


def test_scopes_are_compared_whole(open_index: Open) -> None:
    index = open_index(shards=1, fresh=True)
    names = ["ana", "ana2", "ana:b", "Ana", "an", 'ana"', "ana' OR 1=1", '["ana"]', "$ne", "*", "á"]
    scopes = [Scope(user=name, session="1") for name in names]
    scopes += [Scope(user="ana", workspace=name, session="1") for name in ("ana", "w")]
    entries = [entry("the same words", scope) for scope in scopes]
    put(index, *entries)
    assert len(index.ids()) == len(scopes)
    for scope, item in zip(scopes, entries, strict=True):
        assert ask(index, "the same words", scope) == [item.id]
        assert index.ids(scope) == {item.id}


def test_all_sessions_of_a_base_scope_are_searched_together(index: ChromaIndex) -> None:
    items = [entry("dogs", Scope(user="ana", session=session)) for session in ("1", "2")]
    put(index, *items)
    for scope in (ANA, ANA.base, Scope(user="ana", session="3")):
        assert set(ask(index, "dogs", scope)) == {item.id for item in items}


def test_a_granularity_narrows(index: ChromaIndex) -> None:
    items = {name: entry("dogs like walks", granularity=name) for name in ("raw", "fact", "episode")}
    put(index, *items.values())
    for name, item in items.items():
        assert ask(index, "dogs", granularity=name) == [item.id]
    assert len(ask(index, "dogs")) == 3


def test_of_one_id_twice_in_a_batch_the_last_wins(index: ChromaIndex) -> None:
    item = entry("dogs")
    index.upsert([(item, vector("birds")), (entry("cats"), vector("cats")), (item, vector("dogs"))], 50)
    assert len(index.ids()) == 2
    assert index.query(ANA, vector("dogs")[None], 1)[0] == [(item.id, pytest.approx(1, abs=1e-5))]


def test_an_upsert_replaces_what_may_change(index: ChromaIndex, raw_records: Callable[..., Any]) -> None:
    first, new = entry("dogs", speaker="Ana", valid_until=NOON), entry("cats", speaker="Ben")
    put(index, first)
    put(index, first.model_copy(update={"valid_until": None, "turns": ("D1:1", "D1:2")}), new)
    records = raw_records(index)
    assert json.loads(records[first.id][1]["turns"]) == ["D1:1", "D1:2"]
    assert "valid_until" not in records[first.id][1]["rest"]
    assert {id_: fields["speaker"] for id_, (_, fields) in records.items()} == {
        first.id: "Ana",
        new.id: "Ben",
    }


def test_repeating_a_write_changes_nothing(index: ChromaIndex) -> None:
    items = [entry(f"note {number}") for number in range(7)]
    for _ in range(2):
        put(index, *items, batch=2)
    assert index.ids() == {item.id for item in items}
    assert len(ask(index, "note", k=100)) == 7


def test_deleting_is_repeatable_and_leaves_the_rest(index: ChromaIndex) -> None:
    keep, drop = entry("dogs like walks"), entry("dogs like naps")
    put(index, keep, drop)
    for _ in range(2):
        index.delete([(ANA, drop.id), (ANA, drop.id), (ANA, "never there")])
        assert ask(index, "dogs") == [keep.id]
        assert index.ids(ANA) == {keep.id}


def test_dropping_a_shard_takes_its_other_scopes_along_and_no_other_shard(index: ChromaIndex) -> None:
    scopes = [Scope(user=f"u{number}", session="1") for number in range(12)]
    entries = [entry("dogs", scope) for scope in scopes]
    put(index, *entries)
    index.drop_shards([index.shard_of(scopes[0])])
    dropped = index.shard_of(scopes[0])
    stay = {item.id for item in entries if shard_of(item.scope, 4) != dropped}
    assert 0 < len(stay) < len(entries)
    assert index.ids() == stay
    put(index, entries[0])
    assert ask(index, "dogs", scopes[0]) == [entries[0].id]


def test_collections_that_are_none_of_its_shards_are_counted(open_index: Open) -> None:
    before = open_index(shards=8, fresh=True)
    items = [entry("dogs", Scope(user=f"u{number}", session="1")) for number in range(30)]
    put(before, *items)
    before.close()
    index = open_index(shards=4)
    with index.client() as (client, names):
        client.create_collection(f"{names}items-00ff", embedding_function=None)
    assert index.leftover() == 5
    assert 0 < len(index.ids()) < 30


def test_it_reopens_with_what_was_there_and_fresh_removes_it(open_index: Open) -> None:
    index = open_index(fresh=True)
    item = entry("dogs")
    put(index, item)
    index.close()
    index.close()
    index = open_index()
    assert ask(index, "dogs") == [item.id]
    index.close()
    assert open_index(fresh=True).ids() == set()


def test_a_closed_index_says_so(index: ChromaIndex) -> None:
    index.close()
    for use in (lambda: ask(index, "dogs"), lambda: put(index, entry("dogs")), index.ids):
        with pytest.raises(StoreError, match="is closed; open the memory again"):
            use()


@pytest.mark.parametrize("bad", [np.zeros(DIM + 1), np.full(DIM, np.nan), np.full(DIM, np.inf)])
def test_an_unfit_vector_is_refused_before_anything_is_written(index: ChromaIndex, bad: np.ndarray) -> None:
    with pytest.raises(StoreError, match=r"finite vectors of 32 numbers.*--reembed"):
        index.upsert([(entry("good"), vector("good")), (entry("bad"), bad)], 50)
    assert index.ids() == set()


def test_a_collection_of_another_dimension_is_explained(open_index: Open, tmp_path: Path) -> None:
    index = open_index(fresh=True)
    put(index, entry("dogs"))
    index._dim = DIM + 1
    with pytest.raises(StoreError, match=r"Chroma failed while writing .*doctor --rebuild"):
        index.upsert([(entry("cats"), np.ones(DIM + 1, dtype=np.float32))], 50)


@pytest.fixture
def raw_records() -> Callable[[ChromaIndex], dict[str, tuple[str, dict[str, Any]]]]:
    """Reads the collections as any Chroma tool would: id to document and metadata."""

    def read(index: ChromaIndex) -> dict[str, tuple[str, dict[str, Any]]]:
        records: dict[str, tuple[str, dict[str, Any]]] = {}
        for collection in index._client.api.list_collections():
            page = collection.get(include=["documents", "metadatas"])
            for id_, document, metadata in zip(
                page["ids"], page["documents"], page["metadatas"], strict=True
            ):
                records[id_] = (document, metadata)
        return records

    return read


def test_chroma_holds_each_entry_whole(index: ChromaIndex, raw_records: Callable[..., Any]) -> None:
    item = entry(
        "Ana moved to {Graz} 🙂 O'Brien", granularity="fact", kind="semantic", speaker="Ana", event_time=NOON,
        event_precision="day", observed_at=NOON, recorded_at=NOON, related_turns=("D1:2",), quote="moved",
    )  # fmt: skip
    put(index, item)
    document, metadata = raw_records(index)[item.id]
    assert document == item.text
    expected = {
        "user": "ana", "workspace": "default", "session": "1", "granularity": "fact", "kind": "semantic",
        "speaker": "Ana", "event_time": NOON.isoformat(), "observed_at": NOON.isoformat(),
    }  # fmt: skip
    assert {name: metadata[name] for name in expected} == expected
    assert json.loads(metadata["turns"]) == ["D1:1"]
    rest = json.loads(metadata["rest"])
    assert {name: rest[name] for name in ("status", "quote", "event_precision", "related_turns")} == {
        "status": "active", "quote": "moved", "event_precision": "day", "related_turns": ["D1:2"],
    }  # fmt: skip
    assert datetime.fromisoformat(rest["recorded_at"]) == NOON
    assert all(isinstance(value, str | int | float | bool) for value in metadata.values())


def test_many_threads_write_and_read_at_once(index: ChromaIndex) -> None:
    scopes = [Scope(user=f"u{number}", session="1") for number in range(8)]

    def work(scope: Scope) -> int:
        items = [entry(f"note {number}", scope) for number in range(6)]
        put(index, *items, batch=2)
        index.delete([(scope, items[0].id)])
        return len(ask(index, "note", scope, k=50))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, scopes)) == [5] * 8
    assert len(index.ids()) == 40


# Scopes and shards

NAMES = st.text(min_size=1, max_size=12).filter(lambda name: name.strip() and "\0" not in name)


@given(st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES))
def test_two_scopes_share_a_key_only_when_they_are_one(one: tuple[str, str], other: tuple[str, str]) -> None:
    fields = [scope_field(Scope(user=user, workspace=workspace)) for user, workspace in (one, other)]
    assert (fields[0] == fields[1]) == (one == other)


@given(NAMES, NAMES, st.integers(1, 1024))
def test_a_shard_is_in_range_and_the_same_for_all_sessions(user: str, session: str, shards: int) -> None:
    scope = Scope(user=user, session=session)
    assert 0 <= shard_of(scope, shards) < shards
    assert shard_of(scope, shards) == shard_of(scope.base, shards)


def test_the_shard_of_a_scope_never_changes() -> None:
    """A change would lose every entry of an existing index."""
    assert [shard_of(Scope(user=name), 32) for name in ("ana", "ana2", "ana:b")] == SHARDS


SHARDS = [9, 26, 30]


@given(queries=st.lists(NAMES, min_size=1, max_size=3), k=st.integers(1, 30))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_query_gives_the_exact_nearest_of_its_scope(
    embedded: ChromaIndex, queries: list[str], k: int
) -> None:
    texts = [f"word{number} word{number % 5} common" for number in range(20)]
    entries = [entry(text, Scope(user=user, session="1")) for user in ("ana", "bob") for text in texts]
    put(embedded, *entries)
    vectors = np.stack([vector(query) for query in queries])
    for query, hits in zip(vectors, embedded.query(ANA, vectors, k), strict=True):
        if not query.any():
            assert hits == []
            continue
        scores = {item.id: float(query @ vector(item.text)) for item in entries if item.scope == ANA}
        assert len(hits) == min(k, len(scores))
        assert [s for _, s in hits] == sorted((s for _, s in hits), reverse=True)
        assert all(s == pytest.approx(max(0.0, scores[id_]), abs=1e-5) for id_, s in hits)
        best = sorted((max(0.0, score) for score in scores.values()), reverse=True)[: len(hits)]
        assert [s for _, s in hits] == pytest.approx(best, abs=1e-5)


# The embedded directory


@pytest.mark.parametrize(
    ("count", "worn"), [(3, False), (1200, False), (3, True)], ids=["queued", "synced", "worn"]
)
def test_a_scrub_after_a_dropped_shard_leaves_no_byte(
    embedded: ChromaIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, worn: bool
) -> None:
    if worn:
        monkeypatch.setattr(full_text, "WORN", 0)
    keep = [entry(f"plain words {number}") for number in range(count)]
    gone = [
        entry(f"plain words MARKERTEXT ⸘⸘⸘ {number}", quote="MARKERTEXT", speaker="MARKERTEXT")
        for number in range(count)
    ]
    put(embedded, *keep, *gone, batch=500)
    ids = [item.id.encode() for item in gone[:3]]
    embedded.delete([(item.scope, item.id) for item in gone])
    embedded.drop_shards([embedded.shard_of(ANA)])
    put(embedded, *keep, batch=500)
    embedded.scrub()
    assert embedded.note is None
    # The full-text index holds words in pieces of three characters: three of a kind nothing else has.
    marks = (b"MARKERTEXT", "⸘".encode(), *ids)
    assert [files_holding(tmp_path, mark) for mark in marks] == [[]] * 5
    assert embedded.ids() == {item.id for item in keep}
    assert len(ask(embedded, "plain words", k=3)) == 3
    embedded.close()
    assert files_holding(tmp_path, b"MARKERTEXT") == []


@pytest.mark.slow
def test_chromas_full_text_index_does_not_wear_out(
    embedded: ChromaIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_text, "WORN", 50)
    lengths = []
    # Only an index of some size gets a level each time.
    put(embedded, *(entry(" ".join(f"word{n + m}" for m in range(50))) for n in range(0, 2000, 50)))
    for number in range(40):
        put(embedded, entry(f"plain words {number}"))
        embedded.scrub()
        with closing(sqlite3.connect(tmp_path / "chroma" / DATABASE)) as conn:
            levels = "SELECT length(block) FROM embedding_fulltext_search_data WHERE id = 10"
            lengths.append(conn.execute(levels).fetchone()[0])
    assert max(lengths) < 80
    assert len(ask(embedded, "plain words", k=3)) == 3


def test_a_scrub_also_cleans_where_nothing_is_filled_in_again(embedded: ChromaIndex, tmp_path: Path) -> None:
    put(embedded, entry("MARKERTEXT", Scope(user="MARKERTEXT", session="1")))
    embedded.drop_shards([embedded.shard_of(Scope(user="MARKERTEXT"))])
    embedded.scrub()
    embedded.scrub()
    assert files_holding(tmp_path, b"MARKERTEXT") == []
    assert embedded.ids() == set()


def test_a_scrub_removes_files_of_dropped_collections(embedded: ChromaIndex, tmp_path: Path) -> None:
    for _ in range(3):
        put(embedded, entry("dogs"))
        ask(embedded, "dogs")
        embedded.drop_shards([embedded.shard_of(ANA)])
    put(embedded, entry("dogs"))
    embedded.scrub()
    assert len([path for path in (tmp_path / "chroma").iterdir() if path.is_dir()]) <= 1
    assert len(ask(embedded, "dogs")) == 1


def test_readers_do_not_notice_a_scrub(embedded: ChromaIndex) -> None:
    put(embedded, *(entry(f"note {number}") for number in range(5)))
    with ThreadPoolExecutor(4) as pool:
        reads = [pool.submit(ask, embedded, "note") for _ in range(20)]
        for _ in range(3):
            embedded.scrub()
        assert [len(read.result()) for read in reads] == [5] * 20


def test_a_second_opening_is_refused_and_works_after_close(embedded: ChromaIndex, tmp_path: Path) -> None:
    config = Settings(home=tmp_path, shards=4, lock_timeout=0)
    with pytest.raises(StoreBusy, match="already open in this process"):
        opened(config)
    embedded.close()
    opened(config).close()


def open_files(folder: Path) -> list[str]:
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            links.append(str(descriptor.readlink()))
        except OSError:
            continue
    return [link for link in links if link.startswith(str(folder))]


def test_chroma_keeps_more_pages_in_memory_than_sqlite_would(embedded: ChromaIndex, tmp_path: Path) -> None:
    put(embedded, entry("tea"))
    with closing(sqlite3.connect(tmp_path / "chroma" / DATABASE)) as connection:
        assert connection.execute("PRAGMA default_cache_size").fetchone() == (8192,)
        assert connection.execute("SELECT count(*) FROM embeddings").fetchone() == (1,)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="lists open files through /proc")
def test_close_frees_the_files(tmp_path: Path) -> None:
    for _ in range(3):
        index = opened(Settings(home=tmp_path, shards=2, lock_timeout=0))
        put(index, entry("dogs"))
        ask(index, "dogs")
        assert open_files(tmp_path)
        index.close()
    # Chroma closes its SQLite pool in the background.
    for _ in range(200):
        if not open_files(tmp_path):
            break
        time.sleep(0.05)
    assert open_files(tmp_path) == []


def test_a_damaged_index_says_how_to_rebuild_frees_its_lock_and_opens_fresh(tmp_path: Path) -> None:
    config = Settings(home=tmp_path, shards=2, lock_timeout=0)
    (tmp_path / "chroma").mkdir()
    (tmp_path / "chroma" / "chroma.sqlite3").write_bytes(b"this is no database" * 1000)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"Chroma failed while opening .*doctor --rebuild"):
            opened(config)
    index = opened(config, fresh=True)
    put(index, entry("dogs"))
    assert len(index.ids()) == 1
    index.close()


def test_a_home_that_is_a_file_is_explained(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(StoreError, match="cannot write the memory home"):
        opened(Settings(home=tmp_path / "home"))


def test_importing_the_index_does_not_import_chroma() -> None:
    program = "import sys, memcycle.stores.chroma.index; assert 'chromadb' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# The server


def test_an_unreachable_server_says_where_and_how_to_start_it(tmp_path: Path) -> None:
    port = free_port()
    config = Settings(home=tmp_path, chroma_url=f"http://127.0.0.1:{port}")
    with pytest.raises(StoreError) as failure:
        opened(config)
    assert f"http://127.0.0.1:{port} does not answer" in str(failure.value)
    assert f"start it with: chroma run --path DIR --port {port}" in str(failure.value)


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://127.0.0.1", "http://", "http://127.0.0.1:port"])
def test_an_address_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(StoreError, match=r"is no address of a Chroma server.*give http://HOST:PORT"):
        opened(Settings(home=tmp_path, chroma_url=url))


@pytest.mark.slow
def test_a_server_that_is_gone_later_is_named(tmp_path: Path) -> None:
    with chroma_server(tmp_path) as (url, process):
        index = opened(Settings(home=tmp_path, chroma_url=url))
        put(index, entry("dogs"))
        process.kill()
        process.wait()
        with pytest.raises(StoreError, match=f"{url} does not answer .* while reading"):
            ask(index, "dogs")
        with pytest.raises(StoreError, match=f"{url} does not answer .* while writing"):
            put(index, entry("cats"))
        index.close()


@pytest.mark.slow
def test_a_server_that_never_answers_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcycle.stores.chroma.client.CALL_PATIENCE", 0.1)
    with chroma_server(tmp_path) as (url, process):
        index = opened(Settings(home=tmp_path, chroma_url=url))
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)  # stopped now, not soon
        with pytest.raises(StoreError, match=f"{url} does not answer .ReadTimeout. while reading"):
            ask(index, "dogs")
        index.close()


@pytest.mark.slow
def test_two_stores_on_a_server_do_not_see_each_other(server: str, tmp_path: Path) -> None:
    config = Settings(home=tmp_path, chroma_url=server, shards=2)
    one, other = (opened(config, store, fresh=True) for store in ("one", "other"))
    item = entry("dogs")
    put(one, item)
    assert (ask(other, "dogs"), other.ids()) == ([], set())
    other.drop_shards([other.shard_of(ANA)])
    opened(config, "other", fresh=True).close()
    assert ask(one, "dogs") == [item.id]
    for index in (one, other):
        index.close()


@pytest.mark.slow
def test_two_writers_share_a_server_and_one_may_drop_what_the_other_holds(
    server: str, tmp_path: Path
) -> None:
    config = Settings(home=tmp_path, chroma_url=server, shards=2)
    one, other = (opened(config, fresh=True) for _ in range(2))
    item = entry("dogs")
    put(one, item)
    assert ask(other, "dogs") == [item.id]
    one.drop_shards([one.shard_of(ANA)])
    assert ask(other, "dogs") == []
    put(other, item)
    assert ask(one, "dogs") == [item.id]
    for index in (one, other):
        index.close()


@pytest.mark.slow
def test_what_is_opened_afresh_leaves_collections_of_others(server: str, tmp_path: Path) -> None:
    config = Settings(home=tmp_path, chroma_url=server)
    index = opened(config)
    index._client.api.get_or_create_collection("others", embedding_function=None)
    put(index, entry("dogs"))
    index.close()
    index = opened(config, fresh=True)
    assert index.ids() == set()
    assert "others" in [collection.name for collection in index._client.api.list_collections()]
    index.close()
