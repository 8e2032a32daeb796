"""What our LangGraph store does that others do otherwise or not at all; see the table in the contract."""

import asyncio
import sqlite3
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import pytest
from blockbuster import blockbuster_ctx
from langgraph.store.base import InvalidNamespaceError, PutOp, SearchOp

from memcycle.core.errors import BadInput, EmbedderMismatch, EmbeddingFailed, StoreError
from memcycle.core.settings import Settings
from memcycle.stores.bank import LEDGER_FILE, Bank, shared_bank
from memcycle.stores.langgraph_store import MemcycleStore, served_store
from memcycle.stores.ledger import entries, items, schema
from tests.banks import ANN, clock, fact, open_bank, said, texts
from tests.fakes import FakeEmbeddings, bag_of_words
from tests.hand_clock import START, HandClock
from tests.items import PEOPLE, fake, keys, open_store


@pytest.fixture
def now():
    return HandClock()


@pytest.fixture
def store(tmp_path, now):
    with open_store(tmp_path / "home", now) as made:
        yield made


# Items


def test_times_are_of_the_first_and_the_last_put(store, now):
    store.put(PEOPLE, "a", {"n": 1})
    now.pass_(60 * 5)
    store.put(PEOPLE, "a", {"n": 2})
    item = store.search(PEOPLE)[0]
    assert (item.created_at, item.updated_at) == (START, now.time)
    assert store.get(PEOPLE, "a").updated_at == now.time


def test_the_last_written_is_listed_first(store, now):
    for key in ("a", "b", "c", "a"):
        store.put(PEOPLE, key, {"n": key})
        now.pass_(60 * 1)
    assert keys(store.search(PEOPLE)) == ["a", "c", "b"]


@dataclass
class Point:
    x: int


def test_what_is_no_json_is_written_as_pydantic_writes_it(store):
    some = uuid.UUID(int=7)
    store.put(PEOPLE, "a", {"at": START, "id": some, "point": Point(1), "pair": (1, 2)})
    assert store.get(PEOPLE, "a").value == {
        "at": "2024-03-01T09:00:00Z", "id": str(some), "point": {"x": 1}, "pair": [1, 2],
    }  # fmt: skip


def test_what_cannot_be_json_is_refused_and_nothing_is_written(store):
    with pytest.raises(
        BadInput, match=r"the value for the key 'b' in \('people',\) cannot be written as JSON"
    ):
        store.batch([PutOp(PEOPLE, "a", {"n": 1}), PutOp(PEOPLE, "b", {"n": object()})])
    assert store.search(PEOPLE) == []


def test_a_label_of_a_batch_is_checked_too(store):
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a.b",), "k", {"n": 1})])


def test_what_was_read_or_emptied_is_no_namespace(store):
    store.get(("read",), "k")
    store.put(PEOPLE, "a", {"n": 1})
    store.delete(PEOPLE, "a")
    assert store.list_namespaces() == []


def test_half_an_emoji_is_found_again(store):
    store.put(("a\ud83d",), "k\ud83d", {"text": "b\ud83d"})
    assert store.get(("a\ud83d",), "k\ud83d").value == {"text": "b\ufffd"}
    assert keys(store.search(("a\ud83d",), query="b\ud83d")) == ["k\ufffd"]


# Filters


VALUE = {
    "size": "12", "born": "2020-05-01", "tags": ["a", "b"], "home": {"city": "Graz", "zip": 8010}, "a.b": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"home": {"city": "Graz"}}, True),
        ({"home": {"city": "Linz"}}, False),
        ({"home": {"zip": {"$gt": 8000}}}, True),
        ({"size": {"city": "Graz"}}, False),
        ({"tags": ["a", "b"]}, True),
        ({"tags": ("a", {"$gt": "a"})}, True),
        ({"tags": ["a"]}, False),
        ({"size": ["1"]}, False),
        ({"a.b": 1}, True),
        ({"home.city": "Graz"}, False),
        ({"x' OR 1=1 --": 1}, False),
        ({"unknown": {"$ne": 1}}, True),
        ({"unknown": {"$gt": 1}}, False),
        ({"tags": {"$lt": 1}}, False),
        ({"size": {"$gt": 9}}, True),
        ({"size": {"$gt": "9"}}, False),
        ({"born": {"$gte": "2020-01-01", "$lt": "2021-01-01"}}, True),
        ({"born": {"$gt": 2000}}, False),
        ({"home": {"$eq": {"city": "Graz", "zip": 8010}}}, True),
        ({}, True),
    ],
)
def test_a_filter_reads_values_as_they_are(store, wanted, found):
    store.put(PEOPLE, "a", VALUE)
    assert bool(store.search(PEOPLE, filter=wanted)) is found
    assert bool(store.search(PEOPLE, filter=wanted, query="Graz")) is found


# Queries


def test_an_item_without_a_vector_is_not_like_anything(store):
    store.put(PEOPLE, "a", {"text": "red"}, index=False)
    store.put(PEOPLE, "b", {"text": "red"}, index=["unknown"])
    store.put(PEOPLE, "c", {"text": "red"})
    assert keys(store.search(PEOPLE, query="red")) == ["c"]
    assert len(store.search(PEOPLE)) == 3


def test_a_blank_query_lists_all(store):
    store.put(PEOPLE, "a", {"text": "red"}, index=False)
    assert [(one.key, one.score) for one in store.search(PEOPLE, query=" \n")] == [("a", None)]


def test_what_a_second_put_no_longer_says_is_not_found(store):
    store.put(PEOPLE, "a", {"x": "red", "y": "blue"}, index=["x", "y"])
    store.put(PEOPLE, "a", {"x": "green"}, index=["x"])
    store.put(PEOPLE, "b", {"x": "blue blue sea"}, index=["x"])
    assert keys(store.search(PEOPLE, query="blue")) == ["b", "a"]
    store.put(PEOPLE, "b", {"x": "blue"}, index=False)
    assert keys(store.search(PEOPLE, query="blue")) == ["a"]


def test_two_items_of_a_batch_may_say_the_same_and_cost_one_call(tmp_path):
    embed = FakeEmbeddings()
    with MemcycleStore(tmp_path, index={"embed": embed}) as store:
        store.batch([PutOp(PEOPLE, key, {"text": "red"}) for key in "ab"] + [SearchOp(PEOPLE, query="sea")])
        assert [sorted(call) for call in embed.calls] == [["sea", '{"text": "red"}']]
        assert set(keys(store.search(PEOPLE, query="red"))) == {"a", "b"}


def test_pages_of_a_query_never_end_early(store):
    for n in range(30):
        store.put(PEOPLE, f"k{n}", {"x": ["red", "red sea", f"word{n}"]}, index=["x[*]"])
    pages = [keys(store.search(PEOPLE, query="red", limit=4, offset=n)) for n in range(0, 32, 4)]
    assert sorted(key for page in pages for key in page) == sorted(f"k{n}" for n in range(30))


def test_by_default_the_banks_embedder_finds_the_value_as_a_whole(tmp_path):
    with MemcycleStore(tmp_path) as store:
        store.put(PEOPLE, "a", {"content": "Ann plays the cello"})
        store.put(PEOPLE, "b", {"content": "The weather is cold in winter"})
        assert keys(store.search(PEOPLE, query="Which musical instrument does she play?", limit=1)) == ["a"]


def test_without_an_index_nothing_is_embedded(tmp_path):
    with MemcycleStore(tmp_path, index=False) as store:
        store.put(PEOPLE, "a", {"content": "x"}, index=["content"])
        assert [one.score for one in store.search(PEOPLE, query="x")] == [None]
        assert store.reembed() == 0


def test_a_failing_embedder_leaves_all_as_it_was(tmp_path):
    embed = FakeEmbeddings(script=[None, ConnectionError("down"), ConnectionError("down")])
    with MemcycleStore(tmp_path, index={"embed": embed}) as store:
        store.put(PEOPLE, "a", {"n": "old"})
        with pytest.raises(ConnectionError):
            store.put(PEOPLE, "a", {"n": "new"})
        with pytest.raises(ConnectionError):
            store.search(PEOPLE, query="unseen")
        assert store.get(PEOPLE, "a").value == {"n": "old"}


def test_an_embedder_may_be_a_function(tmp_path):
    def embed(texts):
        return [bag_of_words(text, 16) for text in texts]

    with MemcycleStore(tmp_path, index={"embed": embed, "dims": 16, "fields": ["text"]}) as store:
        store.put(PEOPLE, "a", {"text": "red"})
        assert keys(store.search(PEOPLE, query="red")) == ["a"]


async def test_an_async_embedder_always_runs_in_the_same_loop(tmp_path):
    loops = set()

    async def embed(texts):
        loops.add(asyncio.get_running_loop())
        return [bag_of_words(text, 16) for text in texts]

    async with MemcycleStore(tmp_path, index={"embed": embed, "fields": ["text"]}) as store:
        await store.aput(PEOPLE, "a", {"text": "red"})
        store.put(PEOPLE, "b", {"text": "blue"})
        assert keys(await store.asearch(PEOPLE, query="red sea")) == ["a", "b"]
    (loop,) = loops
    assert loop.is_closed()


def test_dims_must_be_those_of_the_embedder(tmp_path):
    said = r"dims=99, but the embedder wordllama\S+ makes vectors of 256 numbers"
    with (
        MemcycleStore(tmp_path / "a", index={"dims": 99}) as store,
        pytest.raises(BadInput, match=said),
    ):
        store.put(PEOPLE, "a", {"n": 1})
    with (
        MemcycleStore(tmp_path / "b", index=fake(dims=99)) as store,
        pytest.raises(EmbeddingFailed, match=r"expected \(99,\)"),
    ):
        store.put(PEOPLE, "a", {"n": "x"})
    with MemcycleStore(tmp_path / "c", index={"dims": 256}) as store:
        store.put(PEOPLE, "a", {"n": 1})


def test_vectors_of_another_embedder_are_refused_until_made_anew(tmp_path):
    old, new = FakeEmbeddings(model="old"), FakeEmbeddings(model="new", dim=16)
    with MemcycleStore(tmp_path, index={"embed": old, "fields": ["text"]}) as store:
        for n in range(3):
            store.put(PEOPLE, f"k{n}", {"text": f"word{n}", "more": ["red", "sea"]})
        store.put(PEOPLE, "own", {"more": ["red", "sea"]}, index=["more[*]"])
        store.put(("other",), "not", {"text": "red"}, index=False)
    with MemcycleStore(tmp_path, index={"embed": new}) as store:
        with pytest.raises(
            EmbedderMismatch, match=r"langchain:old, not of langchain:new.*`MemcycleStore.reembed`"
        ):
            store.search(PEOPLE, query="red")
        assert store.search(("other",), query="red") == []
        assert (store.reembed(), store.reembed()) == (4, 0)
        assert keys(store.search((), query="sea"))[0] == "own"
        assert len(store.search((), query="sea")) == 4


def test_the_doctors_reembed_takes_the_items_along(tmp_path):
    home = tmp_path / "home"
    with open_bank(home, embeddings=FakeEmbeddings(model="old")) as bank:
        MemcycleStore(bank).put(PEOPLE, "a", {"text": "red"})
        MemcycleStore(bank, index={"embed": FakeEmbeddings(model="own", dim=8)}).put(
            ("b",), "b", {"text": "red"}
        )
    new = FakeEmbeddings(model="new", dim=16)
    settings = Settings(home=home, shards=2)
    with pytest.raises(EmbedderMismatch):
        Bank.open(settings, embeddings=new)
    with Bank.open(settings, embeddings=new, world=clock(), repair=True) as bank:
        bank.reembed()
        assert keys(MemcycleStore(bank).search(PEOPLE, query="red")) == ["a"]
        with bank.ledger.read() as conn:
            assert items.count_vectors(conn) == {"langchain:new": 1, "langchain:own": 1}


# Opening and closing


def test_a_bank_that_is_handed_over_stays_open(tmp_path):
    with open_bank(tmp_path / "home") as bank:
        with MemcycleStore(bank) as store:
            store.put(PEOPLE, "a", {"n": 1})
        assert bank.check()["integrity"] == "ok"
        with MemcycleStore(bank) as store:
            assert store.get(PEOPLE, "a").value == {"n": 1}


def test_a_home_is_shared_with_all_else_in_the_process(tmp_path):
    settings = Settings(home=tmp_path)
    bank = shared_bank(settings)
    store, other = MemcycleStore(settings), MemcycleStore(tmp_path)
    store.put(PEOPLE, "a", {"n": 1})
    assert other.get(PEOPLE, "a").value == {"n": 1}
    store.close()
    store.close()
    other.close()
    assert bank.check()["integrity"] == "ok"
    bank.close()
    with pytest.raises(StoreError, match="is closed"):
        bank.check()


def test_a_closed_store_opens_again(store):
    store.put(PEOPLE, "a", {"n": 1})
    store.close()
    assert store.get(PEOPLE, "a").value == {"n": 1}


def test_a_store_that_cannot_be_opened_holds_nothing(tmp_path):
    store = MemcycleStore(tmp_path, index={"dims": 3})
    for _ in range(2):
        with pytest.raises(BadInput):
            store.get(PEOPLE, "a")
    shared_bank(Settings(home=tmp_path, shards=7)).close()


def test_by_default_the_home_is_that_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMCYCLE_HOME", str(tmp_path / "there"))
    with MemcycleStore() as store:
        store.put(PEOPLE, "a", {"n": 1})
    with MemcycleStore(str(tmp_path / "there")) as store:
        assert store.get(PEOPLE, "a") is not None


async def test_the_served_store_is_closed_with_the_server(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMCYCLE_HOME", str(tmp_path))
    async with served_store() as store:
        await store.aput(PEOPLE, "a", {"n": 1})
    shared_bank(Settings(home=tmp_path, shards=7)).close()


# An older home


def test_a_home_of_the_version_before_gets_the_tables(tmp_path, monkeypatch):
    before = 3
    with monkeypatch.context() as older:
        older.setattr(schema, "VERSION", before)
        with closing(sqlite3.connect(tmp_path / LEDGER_FILE, isolation_level=None)) as conn:
            schema.migrate(conn)
            entries.insert(conn, [(fact("Ann says hello", status="active"), None)])
            with pytest.raises(sqlite3.OperationalError, match="no such table"):
                conn.execute("SELECT * FROM items")
    with open_bank(tmp_path) as bank:
        assert texts(bank.entries(ANN)) == ["Ann says hello"]
        MemcycleStore(bank).put(PEOPLE, "a", {"n": 1})
        with bank.ledger.read() as conn:
            assert schema.version_of(conn) == schema.VERSION


NAMESPACES = (("a",), ("a", "b"), ("ab",))


def write(store, number=40):
    """Items of four texts each; every text is another one."""
    for n in range(number):
        value = {"x": [f"w{n % 7} x{n}", f"w{n % 5} y{n}", f"z{n}"], "y": f"v{n % 3} u{n}"}
        store.put(NAMESPACES[n % 3], f"k{n:02}", value, index=["x[*]", "y"])


# Erasing


def test_a_namespace_is_deleted_with_all_below_it_and_wiped_from_the_files(tmp_path):
    home, secret = tmp_path / "home", "zanzibar"
    with MemcycleStore(Settings(home=home), index=fake()) as store:
        write(store)
        for namespace in (("m", "ann"), ("m", "ann", "x"), ("m", "anna"), ("m",)):
            word = "public" if namespace[-1] != "ann" and "ann" not in namespace else secret
            for n in range(5):
                store.put(namespace, f"{word}{n}", {"text": word})
        store.put(("m", "ann"), "gone before", {"text": secret}, ttl=-1)
        store.search((), query=secret)
        assert store.delete_namespace(("m", "ann")) == 11
        assert store.delete_namespace(("m", "ann")) == 0
        assert {one for one in store.list_namespaces() if one[0] == "m"} == {("m",), ("m", "anna")}
        assert len(store.search(("m",), query="public", limit=50)) == 10
    files = [path for path in home.rglob("*") if path.is_file()]
    assert home / LEDGER_FILE in files
    assert not [path for path in files if secret.encode() in path.read_bytes()]


def test_the_whole_store_is_no_namespace_to_delete(store):
    with pytest.raises(InvalidNamespaceError, match="whole store"):
        store.delete_namespace(())


def test_forgetting_a_user_leaves_items_and_deleting_items_leaves_memories(tmp_path):
    with open_bank(tmp_path / "home") as bank:
        store = MemcycleStore(bank)
        store.put(("ann",), "a", {"n": 1})
        bank.stage_turns(ANN, [said(1, "hello")])
        store.delete_namespace(("ann",))
        assert len(bank.entries(ANN)) == 1
        store.put(("ann",), "a", {"n": 1})
        assert bank.forget_user("ann") == 1
        assert store.get(("ann",), "a") is not None


# Threads and loops


def test_threads_write_and_read_at_once(store):
    def work(n):
        for m in range(10):
            store.put(("t", str(n)), f"k{m}", {"text": f"word{n} word{m}"})
            assert keys(store.search(("t", str(n)), query=f"word{m}", limit=50)).count(f"k{m}") == 1
        store.delete(("t", str(n)), "k0")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(store.search(("t",), limit=100)) == 72
    assert len(store.search(("t",), query="word1", limit=100)) == 72


def test_no_call_blocks_the_loop(tmp_path):
    async def use():
        with blockbuster_ctx():
            async with MemcycleStore(tmp_path, ttl={"default_ttl": 5}) as store:
                await asyncio.gather(*(store.aput(PEOPLE, f"k{n}", {"text": f"word{n}"}) for n in range(8)))
                found = await store.asearch(PEOPLE, query="word3", limit=1)
                assert await store.alist_namespaces() == [PEOPLE]
                await store.adelete(PEOPLE, "k1")
                assert await store.asweep_ttl() == 0
                assert await store.adelete_namespace(PEOPLE) == 7
        return found

    assert keys(asyncio.run(use())) == ["k3"]
