"""Snapshots of scopes in memory: bounded, never older than the ledger, the same renewed as read whole."""

import contextlib
import tempfile
import threading
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memcycle.core.edit import Edit
from memcycle.core.errors import BadInput, UnknownEntry
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.turn import Turn
from memcycle.core.world import World
from memcycle.stores.bank import Bank
from memcycle.stores.ledger import events, schema
from memcycle.stores.search import snapshot
from memcycle.stores.search.request import Query, SearchRequest
from memcycle.stores.search.snapshot import Snapshots
from tests.banks import ANN, ListIndex, add, clock, open_bank, said, update
from tests.fakes import FakeEmbeddings

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
    real = snapshot.read_whole
    monkeypatch.setattr(
        snapshot,
        "read_whole",
        lambda conn, scope, *rest, **more: seen.append(scope) or real(conn, scope, *rest, **more),
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
        assert events.last_change(conn, Scope(user="ana")) is None
    assert found(bank, "ana", "heron") == []
    say(bank, "ana", "the kite", session="2")
    assert found(bank, "ana", "heron") == []
    assert found(bank, "ana", "kite") == ["the kite"]


def test_access_counts_are_no_change(bank):
    say(bank, "ana", "the heron")
    with bank.ledger.read() as conn:
        before = events.last_change(conn, Scope(user="ana"))
    with bank.ledger.write() as conn:
        conn.execute("UPDATE entries SET access_count = access_count + 1")
    with bank.ledger.read() as conn:
        assert events.last_change(conn, Scope(user="ana")) == before


def test_snapshots_keep_to_their_bound_and_drop_the_longest_unused(bank):
    scopes = [Scope(user=name) for name in ("ana", "bo", "cy")]
    for scope in scopes:
        say(bank, scope.user, "the heron", "the weir")
    with bank.ledger.read() as conn:
        made = [snapshot.read_whole(conn, scope, bank.embedder_id, 256) for scope in scopes]
    kept = Snapshots(most=2 * made[0].vectors.nbytes + 100)
    kept.put(scopes[0], 1, made[0])
    kept.put(scopes[1], 1, made[1])
    assert kept.get(scopes[0]) == (1, made[0])
    kept.put(scopes[2], 1, made[2])
    assert kept.nbytes <= 2 * made[0].vectors.nbytes + 100
    assert kept.get(scopes[1]) is None
    assert kept.get(scopes[0]) == (1, made[0])
    kept.put(scopes[0], 3, made[1])
    kept.put(scopes[0], 2, made[2])
    assert kept.get(scopes[0]) == (3, made[1])
    kept.drop(scopes[0])
    assert kept.get(scopes[0]) is None
    assert kept.nbytes == made[2].vectors.nbytes
    small = Snapshots(most=1)
    small.put(scopes[0], 1, made[0])
    assert (small.get(scopes[0]), small.nbytes) == (None, 0)


def test_rows_of_an_older_schema_are_read_from_their_text(bank):
    say(bank, "ana", "We went to see the heron?")
    scope = Scope(user="ana")
    with bank.ledger.read() as conn:
        new = snapshot.read_whole(conn, scope, bank.embedder_id, 256)
    with bank.ledger.write() as conn:
        conn.execute("UPDATE lexical_words SET traits = NULL, words = x''")
    with bank.ledger.read() as conn:
        old = snapshot.read_whole(conn, scope, bank.embedder_id, 256)
    assert old.documents.words.tolist() == new.documents.words.tolist()
    assert old.traits.tolist() == new.traits.tolist() != [0]


def test_threads_share_snapshots(bank):
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


# Renewed after writes


HER = ANN.base
SESSIONS = [ANN, ANN.within("2")]
WORDS = st.sampled_from(["Graz?", "I went to Linz in May", "a cat", "two cats", "Bo saw Wels", "7 teas"])
DIM = FakeEmbeddings().dim
ALL = ("staged", "active", "superseded", "forgotten")
STEPS = st.tuples(
    st.sampled_from(
        "stage stage add add update delete edit undo commit weigh forget wipe look".split()  # noqa: SIM905
    ),
    st.sampled_from(SESSIONS),
    st.integers(1, 6),
    st.integers(0, 30),
    WORDS,
)  # fmt: skip


def opened(home) -> Bank:
    chosen = Settings(home=Path(home), shards=1)
    bank = Bank.open(chosen, embeddings=FakeEmbeddings(), world=clock())
    bank._indexes.mirror._client = bank._indexes.mirror._index = ListIndex(chosen)
    return bank


def do(bank, step):
    kind, scope, turn, pick, text = step
    speaker = ("Ann", "Bo")[pick % 2]
    found = bank.entries(HER, statuses=ALL)
    old = found[pick % len(found)] if found else None
    if kind == "stage":
        bank.stage_turns(scope, [said(turn, text, session=scope.session, speaker=speaker)])
    elif kind == "add":
        granularity = ("fact", "fact", "episode")[pick % 3]
        edit = add(text, f"D{scope.session}:{turn}", scope=scope, granularity=granularity, speaker=speaker)
        bank.apply(scope, [edit])
    elif kind == "commit":
        bank.commit_session(scope)
    elif kind == "wipe" and pick < 5:
        bank.forget_user("ann")
    elif old is None:
        return
    elif kind == "update":
        bank.apply(
            old.scope, [update(old.id, text, *old.turns, scope=old.scope, granularity=old.granularity)]
        )
    elif kind == "delete":
        bank.apply(old.scope, [Edit(op="DELETE", target=old.id, quote="forget that")])
    elif kind == "forget":
        bank.forget(HER, old.id, only=pick % 2 == 0)
    elif kind == "weigh":
        with bank.ledger.write() as conn:
            conn.execute("UPDATE entries SET reinforcement = 0.1 WHERE id = ?", (old.id,))
    else:
        with contextlib.suppress(BadInput, UnknownEntry):
            bank.edit(HER, old.id, text) if kind == "edit" else bank.undo(HER, old.id)


def whole(bank, scope=HER):
    with bank.ledger.read() as conn:
        return events.last_change(conn, scope) or 0, snapshot.read_whole(conn, scope, bank.embedder_id, DIM)


def renewed(bank, kept):
    """The snapshot brought up to date, None where it could be without reading all of it."""
    change, copy = kept
    with bank.ledger.read() as conn:
        rows = events.changed_since(conn, HER, change)
        if rows is None:
            return None
        return snapshot.renew(conn, HER, bank.embedder_id, DIM, old=copy, rows=rows)


def assert_same(one, other):
    for field in fields(one):
        own, theirs = getattr(one, field.name), getattr(other, field.name)
        if field.name in {"own", "once"}:
            assert [part.tolist() for part in own] == [part.tolist() for part in theirs]
        elif isinstance(own, np.ndarray):
            np.testing.assert_array_equal(own, theirs, err_msg=field.name)
            assert own.dtype == theirs.dtype
        else:
            assert own == theirs, field.name


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=1, max_size=40))
@example([("delete", SESSIONS[0], 1, 28, "Graz?"), ("edit", SESSIONS[0], 1, 4, "Graz?")])
def test_a_renewed_snapshot_is_what_reading_the_scope_whole_gives(steps):
    with tempfile.TemporaryDirectory() as folder, opened(folder) as one, opened(folder) as other:
        for scope in SESSIONS:
            one.stage_turns(scope, [said(n, f"turn {n}", session=scope.session) for n in (1, 2, 4)])
        always, seldom = whole(one), whole(one)
        for step in steps:
            do((one, other)[step[3] % 2], step)
            now = whole(one)
            copy = renewed(one, always)
            if copy is not None:
                assert_same(copy, now[1])
            always = (now[0], copy or now[1])
            if step[0] == "look":
                copy = renewed(one, seldom)
                if copy is not None:
                    assert_same(copy, now[1])
                seldom = (now[0], copy or now[1])


@pytest.fixture
def listed(tmp_path, list_index):
    with open_bank(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def kept(listed):
    listed.stage_turns(ANN, [said(n, f"turn {n}") for n in (1, 2, 3)])
    return whole(listed)


def test_what_changed_is_told_by_entry(listed, kept):
    listed.stage_turns(ANN, [said(4, "turn 4")])
    [fourth] = [one for one in listed.entries(HER) if one.text == "turn 4"]
    with listed.ledger.read() as conn:
        [row] = events.changed_since(conn, HER, kept[0])
        assert conn.execute("SELECT id FROM entries WHERE row = ?", (row,)).fetchone()[0] == fourth.id
        assert events.changed_since(conn, HER, row) is not None
        assert events.changed_since(conn, Scope(user="bob"), 0) is None


def test_after_a_deletion_nothing_is_brought_up_to_date(listed, kept):
    first = listed.entries(HER)[0]
    listed.forget(HER, first.id)
    assert renewed(listed, kept) is None
    assert renewed(listed, whole(listed)) is not None


def test_after_wiping_a_user_nothing_tells_of_them(listed, kept):
    listed.forget_user("ann")
    assert renewed(listed, kept) is None
    listed.stage_turns(ANN, [said(1, "anew")])
    assert renewed(listed, kept) is None
    listed.forget_user("ann")
    with listed.ledger.read() as conn:
        assert conn.execute("SELECT count(*) FROM changed").fetchone()[0] == 0


def test_only_the_last_changes_are_kept(listed, kept):
    with listed.ledger.write() as conn:
        for _ in range(schema.CHANGES_KEPT // 3 + 1):
            conn.execute("UPDATE entries SET importance = 0.4")
    with listed.ledger.read() as conn:
        assert conn.execute("SELECT count(*) FROM changed").fetchone()[0] == schema.CHANGES_KEPT
    assert renewed(listed, kept) is None
    assert renewed(listed, whole(listed)) is not None
