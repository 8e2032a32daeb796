"""Copies of scopes in memory: bounded, and never older than the ledger."""

import threading
from datetime import UTC, datetime

import pytest

from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.turn import Turn
from memcycle.core.world import World
from memcycle.stores.bank import Bank
from memcycle.stores.ledger import changes
from memcycle.stores.search import snapshot as reading
from memcycle.stores.search.request import Query, SearchRequest
from memcycle.stores.search.snapshot import Copies

MAY_7 = datetime(2023, 5, 7, 12, tzinfo=UTC)


def say(bank, user, *texts, session="1"):
    scope = Scope(user=user, session=session)
    first = bank.next_position(scope)
    turns = [
        Turn(id=f"D{session}:{n}", session=session, position=n, speaker="Ann", text=text, time=MAY_7)
        for n, text in enumerate(texts, start=first)
    ]
    bank.stage_turns(scope, turns)
    bank.commit_session(scope)


def found(bank, user, text):
    [hits] = bank.search(SearchRequest(scope=Scope(user=user), queries=(Query(text=text),)))
    return [hit.entry.text for hit in hits if any(why.view == "bm25" for why in hit.why)]


@pytest.fixture
def bank(tmp_path):
    with Bank.open(Settings(home=tmp_path), world=World(now=lambda: MAY_7)) as bank:
        yield bank


def reads(bank, monkeypatch):
    """The scopes that are read whole, each time they are."""
    seen = []
    real = reading.whole
    monkeypatch.setattr(
        reading, "whole", lambda conn, scope, *rest: seen.append(scope) or real(conn, scope, *rest)
    )
    return seen


def test_a_scope_is_read_whole_once_until_something_of_it_is_deleted(bank, monkeypatch):
    say(bank, "ana", "the heron")
    say(bank, "bo", "the kite")
    seen = reads(bank, monkeypatch)
    for _ in range(3):
        assert found(bank, "ana", "heron") == ["the heron"]
    say(bank, "bo", "the swan")
    assert found(bank, "ana", "heron") == ["the heron"]
    assert len(seen) == 1
    say(bank, "ana", "a heron more")
    assert set(found(bank, "ana", "heron")) == {"the heron", "a heron more"}
    assert len(seen) == 1
    [entry] = [one for one in bank.entries(Scope(user="ana")) if one.text == "the heron"]
    bank.forget(Scope(user="ana"), entry.id)
    assert found(bank, "ana", "heron") == ["a heron more"]
    assert len(seen) == 2


def test_what_another_process_writes_is_found_and_what_it_forgets_is_not(bank, tmp_path):
    say(bank, "ana", "the heron", "the weir")
    assert found(bank, "ana", "heron") == ["the heron"]
    scope = Scope(user="ana")
    [entry] = [one for one in bank.entries(scope) if one.text == "the heron"]
    bank.forget(scope, entry.id)
    assert found(bank, "ana", "heron") == []
    assert found(bank, "ana", "weir") == ["the weir"]


def test_a_wiped_and_refilled_scope_is_another_one(bank):
    say(bank, "ana", "the heron")
    assert found(bank, "ana", "heron") == ["the heron"]
    bank.forget_user("ana")
    with bank.ledger.read() as conn:
        assert changes.number(conn, Scope(user="ana")) is None
    assert found(bank, "ana", "heron") == []
    say(bank, "ana", "the kite", session="2")
    assert found(bank, "ana", "heron") == []
    assert found(bank, "ana", "kite") == ["the kite"]


def test_access_counts_are_no_change(bank):
    say(bank, "ana", "the heron")
    with bank.ledger.read() as conn:
        before = changes.number(conn, Scope(user="ana"))
    with bank.ledger.write() as conn:
        conn.execute("UPDATE entries SET access_count = access_count + 1")
    with bank.ledger.read() as conn:
        assert changes.number(conn, Scope(user="ana")) == before


def test_copies_keep_to_their_bound_and_drop_the_longest_unused(bank):
    scopes = [Scope(user=name) for name in ("ana", "bo", "cy")]
    for scope in scopes:
        say(bank, scope.user, "the heron", "the weir")
    with bank.ledger.read() as conn:
        made = [reading.whole(conn, scope, bank.embedder_id, 256) for scope in scopes]
    copies = Copies(most=2 * made[0].nbytes + 100)
    copies.put(scopes[0], 1, made[0])
    copies.put(scopes[1], 1, made[1])
    assert copies.get(scopes[0]) == (1, made[0])
    copies.put(scopes[2], 1, made[2])
    assert copies.nbytes <= 2 * made[0].nbytes + 100
    assert copies.get(scopes[1]) is None
    assert copies.get(scopes[0]) == (1, made[0])
    copies.put(scopes[0], 3, made[1])
    copies.put(scopes[0], 2, made[2])
    assert copies.get(scopes[0]) == (3, made[1])
    copies.drop(scopes[0])
    assert copies.get(scopes[0]) is None
    assert copies.nbytes == made[2].nbytes
    small = Copies(most=1)
    small.put(scopes[0], 1, made[0])
    assert (small.get(scopes[0]), small.nbytes) == (None, 0)


def test_rows_of_an_older_schema_are_read_from_their_text(bank):
    say(bank, "ana", "We went to see the heron?")
    scope = Scope(user="ana")
    with bank.ledger.read() as conn:
        new = reading.whole(conn, scope, bank.embedder_id, 256)
    with bank.ledger.write() as conn:
        conn.execute("UPDATE lexical_words SET traits = NULL, words = x''")
    with bank.ledger.read() as conn:
        old = reading.whole(conn, scope, bank.embedder_id, 256)
    assert old.documents.words.tolist() == new.documents.words.tolist()
    assert old.traits.tolist() == new.traits.tolist() != [0]


def test_threads_share_copies(bank):
    say(bank, "ana", *[f"the heron {n}" for n in range(20)])
    wrong = []

    def ask():
        for _ in range(10):
            if len(found(bank, "ana", "heron")) != 20:
                wrong.append(1)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
