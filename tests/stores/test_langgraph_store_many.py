"""Our LangGraph store with many items, threads and loops: Chroma finds what comparing all finds; erasing."""

import asyncio
import hashlib
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from blockbuster import blockbuster_ctx
from langgraph.store.base import InvalidNamespaceError

from memcycle.core.errors import StoreBusy, StoreError
from memcycle.core.settings import Settings
from memcycle.stores.bank import LEDGER_FILE, Bank
from memcycle.stores.chroma import mirror
from memcycle.stores.items import store as item_search
from memcycle.stores.items.store import MemcycleStore
from memcycle.stores.ledger import item_vectors
from tests.banks import ANN, clock, open_bank, said
from tests.fakes import FakeEmbeddings
from tests.hand_clock import HandClock
from tests.items import PEOPLE, fake, keys, open_store


@pytest.fixture
def now():
    return HandClock()


@pytest.fixture
def store(tmp_path, now):
    with open_store(tmp_path / "home", now) as made:
        yield made


@pytest.fixture
def few_are_many(monkeypatch):
    """Above five vectors Chroma finds them."""
    monkeypatch.setattr(item_search, "EXACT_UP_TO", 5)


@pytest.fixture
def asked(monkeypatch):
    """How many results Chroma was asked for, call by call."""
    made, query = [], item_search.ItemIndex.query

    def counted(self, prefix, vector, k):
        made.append(k)
        return query(self, prefix, vector, k)

    monkeypatch.setattr(item_search.ItemIndex, "query", counted)
    return made


NAMESPACES = (("a",), ("a", "b"), ("ab",))


def write(store, number=40):
    """Items of four texts each; every text is another one."""
    for n in range(number):
        value = {"x": [f"w{n % 7} x{n}", f"w{n % 5} y{n}", f"z{n}"], "y": f"v{n % 3} u{n}"}
        store.put(NAMESPACES[n % 3], f"k{n:02}", value, index=["x[*]", "y"])


def answers(store):
    asked = itertools.product(
        ((), ("a",), ("a", "b"), ("ab",), ("b",)), ("w1", "w2 v1", "u7"), ((3, 0), (3, 3), (10, 2), (50, 0))
    )
    return [
        [
            (one.namespace, one.key, round(one.score, 5))
            for one in store.search(prefix, query=query, limit=limit, offset=offset)
        ]
        for prefix, query, (limit, offset) in asked
    ]


class Directions(FakeEmbeddings):
    """Each text another direction, so that no two scores are equal."""

    def embed_documents(self, texts):
        seeds = (
            int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") for text in texts
        )
        return [np.random.default_rng(seed).standard_normal(self.dim).tolist() for seed in seeds]


def test_chroma_finds_what_comparing_all_finds(tmp_path, few_are_many, asked, monkeypatch):
    with MemcycleStore(tmp_path, index={"embed": Directions()}) as store:
        write(store)
        with monkeypatch.context() as exact:
            exact.setattr(item_search, "EXACT_UP_TO", 10_000)
            expected = answers(store)
        assert not asked
        assert answers(store) == expected
    assert len(asked) >= 36


def test_chroma_follows_puts_deletes_and_lifetimes(store, few_are_many, asked, now):
    write(store)
    store.put(("a",), "new", {"y": "unseen"})
    store.put(("a",), "mortal", {"y": "unseen"}, ttl=5)
    store.put(("a",), "k00", {"y": "unseen thing"}, index=["y"])
    assert set(keys(store.search(("a",), query="unseen", limit=3))) == {"new", "mortal", "k00"}
    store.delete(("a",), "new")
    now.pass_(60 * 6)
    store.put(("a",), "k00", {"y": "unseen"}, index=False)
    found = keys(store.search(("a",), query="unseen", limit=50))
    assert {"new", "mortal", "k00"}.isdisjoint(found)
    assert len(found) == 26
    assert asked


def collections(bank):
    with bank.views.mirror.index().client() as (client, prefix):
        return [one for one in client.list_collections() if one.name.startswith(f"{prefix}items-")]


def test_chroma_has_each_vector_once_and_no_text(tmp_path, few_are_many):
    with Bank.open(Settings(home=tmp_path, shards=2), world=clock()) as bank:
        store = MemcycleStore(bank, index=fake())
        write(store)
        store.delete(("a",), "k00")
        store.search((), query="w1")
        (collection,) = collections(bank)
        held = collection.get(include=["documents", "metadatas"])
        with bank.ledger.read() as conn:
            rows = {str(row[0]) for row in conn.execute("SELECT row FROM item_vectors")}
            assert item_vectors.gone(conn, "langchain:fake-bag", 9) == []
        assert set(held["ids"]) == rows
        assert held["documents"] == [None] * len(rows)
        assert all(key.startswith("below_") for one in held["metadatas"] for key in one)


def test_an_index_made_anew_is_filled_anew(tmp_path, few_are_many, asked):
    with Bank.open(Settings(home=tmp_path, shards=2), world=clock()) as bank:
        store = MemcycleStore(bank, index={"embed": Directions()})
        write(store)
        before = answers(store)
        bank.rebuild()
        assert collections(bank) == []
        assert answers(store) == before
        assert len(collections(bank)) == 1


def test_what_is_removed_while_it_is_brought_in_leaves_again(tmp_path, few_are_many, monkeypatch):
    with Bank.open(Settings(home=tmp_path, shards=2), world=clock()) as bank:
        store = MemcycleStore(bank, index=fake())
        write(store, 20)
        given = item_vectors.given

        def meanwhile(conn, embedder, rows):
            conn.execute("DELETE FROM item_vectors WHERE row = ?", (rows[0],))
            given(conn, embedder, rows)

        bank.rebuild()
        with monkeypatch.context() as patch:
            patch.setattr(item_vectors, "given", meanwhile)
            store.search((), query="w1")
        store.search((), query="w1")
        (collection,) = collections(bank)
        with bank.ledger.read() as conn:
            assert collection.count() == conn.execute("SELECT count(*) FROM item_vectors").fetchone()[0]


@pytest.mark.parametrize("error", [StoreBusy("held by another"), StoreError("broken")])
def test_without_chroma_all_are_compared(store, few_are_many, monkeypatch, caplog, error):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(mirror, "open_client", refuse)
    write(store)
    assert len(store.search(("a",), query="w1", limit=50)) == 27
    assert {record.getMessage() for record in caplog.records} == {
        f"the index of the items is behind the ledger: {error}",
        f"items are compared one by one, the index cannot be used: {error}",
    }


def test_a_filter_and_a_deep_page_are_exact(store, few_are_many, asked):
    write(store)
    assert len(store.search((), query="w1", filter={"y": {"$ne": "no"}}, limit=40)) == 40
    assert len(store.search((), query="w1", limit=200, offset=30)) == 10
    assert not asked


# Erasing


def test_a_namespace_is_deleted_with_all_below_it_and_wiped_from_the_files(tmp_path, few_are_many):
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


def test_threads_write_and_read_at_once(store, few_are_many):
    def work(n):
        for m in range(10):
            store.put(("t", str(n)), f"k{m}", {"text": f"word{n} word{m}"})
            assert keys(store.search(("t", str(n)), query=f"word{m}", limit=50)).count(f"k{m}") == 1
        store.delete(("t", str(n)), "k0")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(store.search(("t",), limit=100)) == 72
    assert len(store.search(("t",), query="word1", limit=100)) == 72


def test_no_call_blocks_the_loop(tmp_path, few_are_many):
    async def use():
        with blockbuster_ctx():
            async with MemcycleStore(tmp_path, ttl={"default_ttl": 5, "sweep_interval_minutes": 60}) as store:
                await asyncio.gather(*(store.aput(PEOPLE, f"k{n}", {"text": f"word{n}"}) for n in range(8)))
                found = await store.asearch(PEOPLE, query="word3", limit=1)
                assert await store.alist_namespaces() == [PEOPLE]
                await store.adelete(PEOPLE, "k1")
                assert await store.asweep_ttl() == 0
                assert await store.adelete_namespace(PEOPLE) == 7
        return found

    assert keys(asyncio.run(use())) == ["k3"]
