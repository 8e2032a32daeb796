"""Our LangGraph store with many items, threads and loops; erasing."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from blockbuster import blockbuster_ctx
from langgraph.store.base import InvalidNamespaceError

from memcycle.core.settings import Settings
from memcycle.stores.bank import LEDGER_FILE
from memcycle.stores.langgraph_store import MemcycleStore
from tests.banks import ANN, open_bank, said
from tests.hand_clock import HandClock
from tests.items import PEOPLE, fake, keys, open_store


@pytest.fixture
def now():
    return HandClock()


@pytest.fixture
def store(tmp_path, now):
    with open_store(tmp_path / "home", now) as made:
        yield made


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
            async with MemcycleStore(tmp_path, ttl={"default_ttl": 5, "sweep_interval_minutes": 60}) as store:
                await asyncio.gather(*(store.aput(PEOPLE, f"k{n}", {"text": f"word{n}"}) for n in range(8)))
                found = await store.asearch(PEOPLE, query="word3", limit=1)
                assert await store.alist_namespaces() == [PEOPLE]
                await store.adelete(PEOPLE, "k1")
                assert await store.asweep_ttl() == 0
                assert await store.adelete_namespace(PEOPLE) == 7
        return found

    assert keys(asyncio.run(use())) == ["k3"]
