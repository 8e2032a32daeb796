"""Lifetimes of the items of our LangGraph store."""

import threading

import pytest

from memcycle.core.errors import StoreError
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


def test_a_configured_sweeper_starts_with_the_store_and_ends_with_it(mortal, monkeypatch):
    store = mortal(sweep_interval_minutes=60)
    store.get(PEOPLE, "a")
    named = [one for one in threading.enumerate() if one.name == "memcycle-sweeper"]
    assert len(named) == 1
    store.close()
    assert not named[0].is_alive()


def test_a_sweeper_sweeps_and_outlives_a_failure(mortal, caplog, monkeypatch):
    swept, calls, store = threading.Event(), [], mortal()

    def sweep():
        calls.append(1)
        if len(calls) == 1:
            raise StoreError("busy")
        swept.set()
        return 1

    monkeypatch.setattr(store, "sweep_ttl", sweep)
    store.start_ttl_sweeper(1e-5)
    assert swept.wait(60)
    assert store.stop_ttl_sweeper(60)
    assert "expired items could not be removed: busy" in caplog.text
