"""Lifetimes of the items of our LangGraph store."""

import pytest

from tests.hand_clock import HandClock
from tests.items import PEOPLE, keys, open_store


@pytest.fixture
def now():
    return HandClock()


@pytest.fixture
def mortal(tmp_path, now):
    made = []

    def opened(**ttl):
        made.append(open_store(tmp_path, now, ttl=ttl or None))
        return made[-1]

    yield opened
    for one in made:
        one.close()


def test_what_is_expired_is_gone_at_once(mortal, now):
    store = mortal()
    store.put(PEOPLE, "a", {"n": "red"}, ttl=10)
    now.pass_(60 * 10)
    assert store.get(PEOPLE, "a") is None
    assert store.search(PEOPLE) == store.search(PEOPLE, query="red") == []
    assert store.list_namespaces() == []
    assert store.sweep_ttl() == 1


def test_what_is_expired_may_be_kept_until_it_is_swept(mortal, now):
    store = mortal(omit_expired=False)
    store.put(PEOPLE, "a", {"n": "red"}, ttl=10)
    now.pass_(60 * 20)
    assert store.get(PEOPLE, "a", refresh_ttl=False).value == {"n": "red"}
    assert keys(store.search(PEOPLE, query="red", refresh_ttl=False)) == ["a"]
    assert store.list_namespaces() == [PEOPLE]
    assert store.sweep_ttl() == 1
    assert store.get(PEOPLE, "a") is None


def test_any_write_removes_what_is_expired(mortal, now):
    store = mortal(omit_expired=False)
    store.put(PEOPLE, "a", {"n": "red"}, ttl=10)
    now.pass_(60 * 10)
    store.put(PEOPLE, "b", {"n": "red"})
    assert store.get(PEOPLE, "a") is None
    assert store.sweep_ttl() == 0


def test_an_expired_item_that_is_put_again_is_a_new_one(mortal, now):
    store = mortal()
    store.put(PEOPLE, "a", {"n": 1}, ttl=10)
    now.pass_(60 * 20)
    store.put(PEOPLE, "a", {"n": 2})
    assert store.get(PEOPLE, "a").created_at == now.time


@pytest.mark.parametrize("ttl", [{}, {"refresh_on_read": True}, {"default_ttl": 10}])
@pytest.mark.parametrize("query", [None, "red"])
def test_a_read_lets_the_time_run_anew(mortal, now, ttl, query):
    store = mortal(**ttl)
    store.put(PEOPLE, "got", {"n": "red"}, ttl=10)
    store.put(PEOPLE, "found", {"n": "red"}, ttl=10)
    store.put(PEOPLE, "not", {"n": "green"}, ttl=10)
    now.pass_(60 * 8)
    store.get(PEOPLE, "got")
    store.search(PEOPLE, query=query, filter={"n": "red"})
    now.pass_(60 * 8)
    assert set(keys(store.search(PEOPLE))) == {"got", "found"}


def test_a_read_leaves_the_time_where_it_is_told_so(mortal, now):
    store = mortal(refresh_on_read=False, default_ttl=10)
    store.put(PEOPLE, "a", {"n": 1})
    store.put(PEOPLE, "b", {"n": 1})
    store.put(PEOPLE, "ever", {"n": 1}, ttl=None)
    now.pass_(60 * 8)
    store.get(PEOPLE, "a")
    store.get(PEOPLE, "b", refresh_ttl=True)
    store.search(PEOPLE)
    now.pass_(60 * 8)
    assert set(keys(store.search(PEOPLE))) == {"b", "ever"}
