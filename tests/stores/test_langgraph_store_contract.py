"""One contract for LangGraph's stores and ours: what all three do, run through each of them.

Where they differ, `MemcycleStore` does what its column says (each held by a test here or in
`test_langgraph_store.py`):

| case | InMemoryStore | SqliteStore | MemcycleStore |
| --- | --- | --- | --- |
| async methods of the sync store | yes | no, `AsyncSqliteStore` has them | yes, off the loop |
| order without a query | as inserted | last written first | last written first |
| `created_at` after a second put | the second | the second | the first |
| times | aware, UTC | naive, to the second | aware, UTC |
| items without a vector, with a query | after the others, score None | left out | left out |
| pages of a query after the second | as the first | empty: 2 x limit vectors are looked at | as the first |
| vectors of paths a second put lacks | stay | stay | go |
| two items of one batch with the same text | ValueError | both found | both found |
| `$ne` and a missing key | matches | does not | matches |
| `$gt` and a missing or unordered value | TypeError, ValueError | does not match | does not match |
| `$gt` of two texts | as numbers, else ValueError | as texts | as texts |
| a nested object in a filter | each named part | operators only | each named part |
| a key with a dot, or other signs, in a filter | that key | a path; other signs ValueError | that key |
| a namespace that was read, or emptied | is listed | is not | is not |
| a period in a label, in `batch` | accepted | refused | refused |
| values | any object, the same one | JSON (orjson) | JSON, and what pydantic makes JSON of |
| TTL | NotImplementedError | yes | yes |
| an item that expired and was not swept | - | is found | is gone, unless `omit_expired` is False |
| TTL runs anew when read | - | only with `refresh_on_read` True | unless it is False, as documented |
| fields that are embedded | `fields` | `text_fields` | `fields` |
| without an index configuration | no vectors | no vectors | the bank's embedder; `index=False` for none |
"""

import sqlite3
from contextlib import closing, contextmanager

import aiosqlite
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from memcycle.core.settings import Settings
from memcycle.stores.langgraph_store import MemcycleStore
from tests.banks import clock
from tests.fakes import FakeEmbeddings

# Python 3.12 warns of how SqliteStore stores times.
pytestmark = pytest.mark.filterwarnings("ignore:The default datetime adapter:DeprecationWarning")

STORES = ["InMemoryStore", "SqliteStore", "MemcycleStore"]
FIELDS = ["text", "tags[*]"]
PEOPLE = ("people",)


class Connection(sqlite3.Connection):
    """SqliteStore's connection. Where Python was built without extensions, the one function of sqlite-vec
    that it calls stands in for the extension."""

    if not hasattr(sqlite3.Connection, "enable_load_extension"):

        def enable_load_extension(self, on):
            return None

        def load_extension(self, path):
            self.create_function("vec_distance_cosine", 2, cosine_distance)


def cosine_distance(one, other):
    a, b = (np.frombuffer(blob, dtype=np.float32).astype(float) for blob in (one, other))
    return float(1 - a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def sqlite_store(**config):
    # As its `from_conn_string` does.
    conn = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None, factory=Connection)
    return SqliteStore(conn, **config)


def index(field="fields"):
    return {"dims": 32, "embed": FakeEmbeddings(), field: FIELDS}


@contextmanager
def opened(kind, folder):
    if kind == "InMemoryStore":
        yield InMemoryStore(index=index())
    elif kind == "SqliteStore":
        made = sqlite_store(index=index("text_fields"))
        with closing(made.conn):
            yield made
    else:
        with MemcycleStore(Settings(home=folder), index=index(), world=clock()) as made:
            yield made


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    with opened(request.param, tmp_path / "home") as made:
        yield made


def keys(found):
    return [one.key for one in found]


def fill(store, **values):
    for key, value in values.items():
        store.put(PEOPLE, key, value)


# Items


def test_an_item_is_read_as_it_was_put(store):
    value = {
        "text": "Ann",
        "age": 3,
        "ratio": 0.5,
        "none": None,
        "yes": True,
        "deep": {"list": [1, {"a": "b"}]},
    }
    assert store.put(PEOPLE, "ann", value) is None
    item = store.get(PEOPLE, "ann")
    assert (item.namespace, item.key, item.value) == (PEOPLE, "ann", value)
    assert item.created_at
    assert item.updated_at


def test_an_unknown_item_is_none(store):
    store.put(PEOPLE, "ann", {"text": "Ann"})
    assert store.get(PEOPLE, "bob") is None
    assert store.get(("nobody",), "ann") is None
    assert store.get(("people", "x"), "ann") is None


def test_a_second_put_replaces_the_value(store):
    fill(store, ann={"text": "Ann", "age": 3})
    fill(store, ann={"text": "Anna"})
    assert store.get(PEOPLE, "ann").value == {"text": "Anna"}
    assert keys(store.search(PEOPLE)) == ["ann"]


def test_a_deleted_item_is_gone_and_may_be_deleted_again(store):
    fill(store, ann={"text": "Ann"}, bob={"text": "Bob"})
    for _ in range(2):
        assert store.delete(PEOPLE, "ann") is None
        assert store.get(PEOPLE, "ann") is None
    assert keys(store.search(PEOPLE)) == ["bob"]
    assert keys(store.search(PEOPLE, query="Ann")) == ["bob"]


def test_the_same_key_in_two_namespaces_is_two_items(store):
    store.put(("a",), "k", {"text": "one"})
    store.put(("b",), "k", {"text": "two"})
    store.delete(("a",), "k")
    assert store.get(("b",), "k").value == {"text": "two"}


def test_any_text_is_a_key_a_label_and_a_value(store):
    odd = "'; DROP TABLE items; -- \" % _ * ? [a] \\ \n äöü 漢字 🦜"
    store.put((odd, "*"), odd, {"text": odd, odd: odd})
    assert store.get((odd, "*"), odd).value == {"text": odd, odd: odd}
    assert keys(store.search((odd,), query=odd)) == [odd]
    assert store.list_namespaces() == [(odd, "*")]


def test_a_bad_namespace_is_refused(store):
    for namespace in [(), ("a", ""), ("a.b",), ("a", 1), ("langgraph", "x"), ("a\x00b",)]:
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {"text": "t"})
    for namespace in [("a", ""), ("a.b",), ("a", 1)]:
        for call in (store.get, store.delete):
            with pytest.raises(InvalidNamespaceError):
                call(namespace, "k")
        with pytest.raises(InvalidNamespaceError):
            store.search(namespace)
        for end in ("prefix", "suffix"):
            with pytest.raises(InvalidNamespaceError):
                store.list_namespaces(**{end: namespace})


# Namespaces


NAMESPACES = [
    ("a",),
    ("a", "b"),
    ("a", "b", "c"),
    ("a", "bb"),
    ("ab",),
    ("A", "b"),
    ("a b",),
    ("a%",),
    ("a_", "b"),
]


def test_a_search_is_of_a_namespace_and_what_is_below_it(store):
    for namespace in NAMESPACES:
        store.put(namespace, "/".join(namespace), {"text": "same words"})
    for prefix in [(), ("a",), ("a", "b"), ("ab",), ("A",), ("a%",), ("a_",), ("b",), ("a", "b", "c", "d")]:
        below = {"/".join(one) for one in NAMESPACES if one[: len(prefix)] == prefix}
        assert set(keys(store.search(prefix, limit=50))) == below
        assert set(keys(store.search(prefix, query="same words", limit=50))) == below


def test_namespaces_are_listed(store):
    for namespace in [("b",), ("a", "c", "d"), ("a", "b"), ("ab", "c"), ("a", "c", "b")]:
        store.put(namespace, "k", {"text": "t"})
        store.put(namespace, "k2", {"text": "t"})
    for conditions, expected in [
        ({}, [("a", "b"), ("a", "c", "b"), ("a", "c", "d"), ("ab", "c"), ("b",)]),
        ({"prefix": ("a",)}, [("a", "b"), ("a", "c", "b"), ("a", "c", "d")]),
        ({"prefix": ("a", "*", "d")}, [("a", "c", "d")]),
        ({"prefix": ("*", "c")}, [("a", "c", "b"), ("a", "c", "d"), ("ab", "c")]),
        ({"suffix": ("b",)}, [("a", "b"), ("a", "c", "b"), ("b",)]),
        ({"suffix": ("c", "*")}, [("a", "c", "b"), ("a", "c", "d")]),
        ({"prefix": ("a",), "suffix": ("b",)}, [("a", "b"), ("a", "c", "b")]),
        ({"prefix": ("a", "b", "c", "d")}, []),
        ({"max_depth": 1}, [("a",), ("ab",), ("b",)]),
        ({"max_depth": 2}, [("a", "b"), ("a", "c"), ("ab", "c"), ("b",)]),
        ({"prefix": ("a",), "max_depth": 2}, [("a", "b"), ("a", "c")]),
        ({"limit": 2}, [("a", "b"), ("a", "c", "b")]),
        ({"limit": 2, "offset": 3}, [("ab", "c"), ("b",)]),
        ({"max_depth": 1, "limit": 1, "offset": 1}, [("ab",)]),
    ]:
        assert store.list_namespaces(**conditions) == expected, conditions


def test_conditions_are_given_to_a_batch_too(store):
    for namespace in [("a", "x", "b"), ("a", "b"), ("c", "b")]:
        store.put(namespace, "k", {"text": "t"})
    ends = (MatchCondition("prefix", ("a",)), MatchCondition("suffix", ("*", "b")))
    assert store.batch([ListNamespacesOp(match_conditions=ends)]) == [[("a", "b"), ("a", "x", "b")]]


# Filters


PETS = {
    "cat": {"text": "cat", "legs": 4, "weight": 4.5, "tame": True, "born": "2020-05-01", "owner": None},
    "dog": {"text": "dog", "legs": 4, "weight": 20, "tame": True, "born": "2021-01-01", "owner": "Ann"},
    "emu": {"text": "emu", "legs": 2, "weight": 40, "tame": False, "born": "2019-07-07", "owner": "Bob"},
}


def test_a_search_is_filtered(store):
    fill(store, **PETS)
    for wanted, expected in [
        ({"legs": 4}, {"cat", "dog"}),
        ({"legs": 4, "owner": "Ann"}, {"dog"}),
        ({"tame": False}, {"emu"}),
        ({"owner": None}, {"cat"}),
        ({"unknown": "x"}, set()),
        ({"owner": {"$eq": "Bob"}}, {"emu"}),
        ({"legs": {"$ne": 4}}, {"emu"}),
        ({"weight": {"$gt": 20}}, {"emu"}),
        ({"weight": {"$gte": 20}}, {"dog", "emu"}),
        ({"weight": {"$lt": 20}}, {"cat"}),
        ({"weight": {"$lte": 20}}, {"cat", "dog"}),
        ({"weight": {"$gt": 4, "$lt": 30}}, {"cat", "dog"}),
        ({"tame": {"$eq": True}, "weight": {"$gt": 10}}, {"dog"}),
    ]:
        assert set(keys(store.search(PEOPLE, filter=wanted))) == expected, wanted
        assert set(keys(store.search(PEOPLE, filter=wanted, query="cat dog emu"))) == expected, wanted


def test_an_unknown_operator_is_an_error(store):
    fill(store, **PETS)
    with pytest.raises(ValueError, match=r"\$near"):
        store.search(PEOPLE, filter={"legs": {"$near": 4}})


def test_a_page_comes_after_the_filter(store):
    fill(store, **{f"k{n}": {"text": "t", "even": n % 2 == 0} for n in range(10)})
    pages = [keys(store.search(PEOPLE, filter={"even": True}, limit=2, offset=n)) for n in (0, 2, 4, 6)]
    assert [len(page) for page in pages] == [2, 2, 1, 0]
    assert {key for page in pages for key in page} == {"k0", "k2", "k4", "k6", "k8"}


def test_ten_are_found_unless_said_otherwise(store):
    fill(store, **{f"k{n:02}": {"text": f"word{n}"} for n in range(15)})
    assert len(store.search(PEOPLE)) == 10
    assert len(store.search(PEOPLE, query="word3")) == 10
    assert len(store.search(PEOPLE, limit=20)) == 15


# Queries


def test_the_nearest_is_found_first_with_its_score(store):
    fill(store, a={"text": "red apple pie"}, b={"text": "blue sea"}, c={"text": "red apple"})
    found = store.search(PEOPLE, query="red apple", limit=2)
    assert keys(found) == ["c", "a"]
    assert found[0].score == pytest.approx(1.0, abs=1e-5)
    assert found[0].score > found[1].score
    assert found[0].namespace == PEOPLE


def test_without_a_query_there_is_no_score(store):
    fill(store, a={"text": "red"})
    for query in (None, ""):
        assert [one.score for one in store.search(PEOPLE, query=query)] == [None]


def test_pages_of_a_query_follow_each_other(store):
    fill(store, **{f"k{n}": {"text": " ".join(["red"] * n + ["sea"] * (6 - n))} for n in range(6)})
    whole = keys(store.search(PEOPLE, query="red", limit=6))
    pages = [keys(store.search(PEOPLE, query="red", limit=2, offset=n)) for n in (0, 2)]
    assert pages == [whole[:2], whole[2:4]]


def test_the_best_of_an_items_texts_counts_and_it_is_found_once(store):
    fill(store, a={"text": "blue sea", "tags": ["green", "red apple"]}, b={"text": "red sea"})
    assert keys(store.search(PEOPLE, query="red apple")) == ["a", "b"]


def test_only_configured_fields_are_embedded(store):
    fill(store, a={"text": "blue sea", "note": "red apple"}, b={"text": "red sea"})
    assert keys(store.search(PEOPLE, query="red apple"))[0] == "b"


def test_a_put_may_name_its_own_fields(store):
    store.put(PEOPLE, "a", {"text": "blue", "notes": [{"of": "red apple"}]}, index=["notes[*].of"])
    store.put(PEOPLE, "b", {"text": "red sea"})
    found = store.search(PEOPLE, query="red apple")
    assert keys(found) == ["a", "b"]
    assert found[0].score == pytest.approx(1.0, abs=1e-5)


def test_an_item_put_without_index_has_no_score(store):
    store.put(PEOPLE, "a", {"text": "red apple"}, index=False)
    store.put(PEOPLE, "b", {"text": "red sea"})
    assert [(one.key, one.score is None) for one in store.search(PEOPLE, query="red apple")][:1] == [
        ("b", False)
    ]
    assert store.get(PEOPLE, "a").value == {"text": "red apple"}
    assert set(keys(store.search(PEOPLE))) == {"a", "b"}


def test_a_second_put_is_found_by_its_new_words(store):
    fill(store, a={"text": "red apple"}, b={"text": "red sea"})
    fill(store, a={"text": "blue sky"})
    assert keys(store.search(PEOPLE, query="red apple")) == ["b", "a"]


# Batches


def test_a_batch_answers_in_order_and_reads_before_it_writes(store):
    fill(store, a={"text": "old"})
    found = store.batch(
        [
            PutOp(PEOPLE, "a", {"text": "new"}),
            GetOp(PEOPLE, "a"),
            PutOp(PEOPLE, "b", {"text": "b"}),
            SearchOp(PEOPLE, limit=5),
            GetOp(PEOPLE, "unknown"),
            ListNamespacesOp(),
        ]
    )
    assert (found[0], found[2], found[4], found[5]) == (None, None, None, [PEOPLE])
    assert found[1].value == {"text": "old"}
    assert keys(found[3]) == ["a"]
    assert store.get(PEOPLE, "a").value == {"text": "new"}


def test_of_two_writes_of_a_batch_the_last_counts(store):
    store.batch([PutOp(PEOPLE, "a", {"text": "one"}), PutOp(PEOPLE, "a", {"text": "two"})])
    assert store.get(PEOPLE, "a").value == {"text": "two"}
    store.batch([PutOp(PEOPLE, "a", {"text": "three"}), PutOp(PEOPLE, "a", None)])
    assert store.get(PEOPLE, "a") is None


def test_an_empty_batch_is_empty(store):
    assert store.batch([]) == []


# The same, asked at random


LABELS = st.text(st.sampled_from("ab*%_\"'\\[],-^é "), min_size=1, max_size=3)
PATHS = st.lists(LABELS, min_size=1, max_size=3).map(tuple)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    written=st.lists(PATHS, max_size=8),
    asked=st.lists(LABELS, max_size=3).map(tuple),
    depth=st.integers(1, 3),
)
def test_ours_and_in_memory_agree_on_namespaces(tmp_path_factory, written, asked, depth):
    theirs = InMemoryStore()
    with MemcycleStore(Settings(home=tmp_path_factory.mktemp("home")), index=False, world=clock()) as ours:
        for store in (ours, theirs):
            for number, namespace in enumerate(written):
                store.put(namespace, str(number), {"n": number})
        for prefix in (asked, *[one[:1] for one in written], ()):
            assert set(keys(ours.search(prefix, limit=99))) == set(keys(theirs.search(prefix, limit=99)))
        for listed in ({"prefix": asked}, {"suffix": asked}, {"max_depth": depth}):
            assert ours.list_namespaces(**listed) == theirs.list_namespaces(**listed)


# Async


@pytest.fixture(params=STORES)
async def astore(request, tmp_path):
    if request.param == "SqliteStore":
        async with aiosqlite.connect(":memory:", isolation_level=None, factory=Connection) as conn:
            yield AsyncSqliteStore(conn, index=index("text_fields"))
    else:
        with opened(request.param, tmp_path / "home") as made:
            yield made


async def test_the_async_methods_do_the_same(astore):
    await astore.aput(PEOPLE, "a", {"text": "red apple", "n": 1})
    await astore.aput(("people", "b"), "b", {"text": "red sea", "n": 2})
    assert (await astore.aget(PEOPLE, "a")).value == {"text": "red apple", "n": 1}
    assert keys(await astore.asearch(PEOPLE, query="red apple")) == ["a", "b"]
    assert keys(await astore.asearch(PEOPLE, filter={"n": {"$gt": 1}})) == ["b"]
    assert await astore.alist_namespaces(suffix=("b",)) == [("people", "b")]
    await astore.adelete(PEOPLE, "a")
    assert await astore.aget(PEOPLE, "a") is None
    put, got = await astore.abatch([PutOp(PEOPLE, "c", {"text": "c"}), GetOp(("people", "b"), "b")])
    assert (put, got.key) == (None, "b")


# Lifetimes, of the two that have them


@pytest.fixture(params=["SqliteStore", "MemcycleStore"])
def mortal(request, tmp_path):
    ttl = {"default_ttl": 10, "refresh_on_read": True}
    if request.param == "SqliteStore":
        made = sqlite_store(ttl=ttl)
        with closing(made.conn):
            yield made
    else:
        with MemcycleStore(Settings(home=tmp_path / "home"), index=False, ttl=ttl, world=clock()) as made:
            yield made


def test_what_is_expired_goes_when_it_is_swept(mortal):
    assert mortal.supports_ttl
    mortal.put(PEOPLE, "kept", {"text": "t"}, ttl=None)
    mortal.put(PEOPLE, "default", {"text": "t"})
    mortal.put(PEOPLE, "over", {"text": "t"}, ttl=-1)
    assert mortal.sweep_ttl() == 1
    assert mortal.sweep_ttl() == 0
    assert set(keys(mortal.search(PEOPLE))) == {"kept", "default"}


def test_a_second_put_sets_the_lifetime_anew(mortal):
    mortal.put(PEOPLE, "a", {"text": "t"}, ttl=-1)
    mortal.put(PEOPLE, "a", {"text": "t"}, ttl=None)
    assert mortal.sweep_ttl() == 0
    assert mortal.get(PEOPLE, "a") is not None


def test_the_store_without_lifetimes_refuses_them():
    with pytest.raises(NotImplementedError, match="TTL is not supported"):
        InMemoryStore().put(PEOPLE, "a", {"text": "t"}, ttl=1)
