"""A copy of a scope brought up to date after any writes is what reading it whole gives."""

import contextlib
import tempfile
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memcycle.core.edit import Edit
from memcycle.core.errors import BadInput, UnknownEntry
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores.bank import Bank
from memcycle.stores.ledger import changes
from memcycle.stores.search import snapshot as reading
from tests.banks import ANN, ListIndex, add, clock, said, update
from tests.fakes import FakeEmbeddings

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
    bank._views.mirror._client = bank._views.mirror._index = ListIndex(chosen)
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
        with bank.ledger.write(HER) as conn:
            conn.execute("UPDATE entries SET reinforcement = 0.1 WHERE id = ?", (old.id,))
    else:
        with contextlib.suppress(BadInput, UnknownEntry):
            bank.edit(HER, old.id, text) if kind == "edit" else bank.undo(HER, old.id)


def whole(bank, scope=HER):
    with bank.ledger.read() as conn:
        return changes.number(conn, scope) or 0, reading.whole(conn, scope, bank.embedder_id, DIM)


def renewed(bank, kept):
    """The copy brought up to date, and whether it could be without reading all of it."""
    change, copy = kept
    with bank.ledger.read() as conn:
        rows = changes.after(conn, HER, change)
        if rows is None:
            return None
        return reading.renewed(conn, HER, bank.embedder_id, DIM, copy=copy, rows=rows)


def assert_same(one, other):
    for field in fields(one):
        own, theirs = getattr(one, field.name), getattr(other, field.name)
        if field.name == "documents":
            assert [part.tolist() for part in own] == [part.tolist() for part in theirs]
        elif isinstance(own, np.ndarray):
            np.testing.assert_array_equal(own, theirs, err_msg=field.name)
            assert own.dtype == theirs.dtype
        else:
            assert own == theirs, field.name


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=1, max_size=40))
@example([("delete", SESSIONS[0], 1, 28, "Graz?"), ("edit", SESSIONS[0], 1, 4, "Graz?")])
def test_a_renewed_copy_is_what_reading_the_scope_whole_gives(steps):
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
def kept(bank):
    bank.stage_turns(ANN, [said(n, f"turn {n}") for n in (1, 2, 3)])
    return whole(bank)


def test_what_changed_is_told_by_entry(bank, kept):
    bank.stage_turns(ANN, [said(4, "turn 4")])
    [fourth] = [one for one in bank.entries(HER) if one.text == "turn 4"]
    with bank.ledger.read() as conn:
        [row] = changes.after(conn, HER, kept[0])
        assert conn.execute("SELECT id FROM entries WHERE row = ?", (row,)).fetchone()[0] == fourth.id
        assert changes.after(conn, HER, row) is not None
        assert changes.after(conn, Scope(user="bob"), 0) is None


def test_after_a_deletion_nothing_is_brought_up_to_date(bank, kept):
    first = bank.entries(HER)[0]
    bank.forget(HER, first.id)
    assert renewed(bank, kept) is None
    assert renewed(bank, whole(bank)) is not None


def test_after_wiping_a_user_nothing_tells_of_them(bank, kept):
    bank.forget_user("ann")
    assert renewed(bank, kept) is None
    bank.stage_turns(ANN, [said(1, "anew")])
    assert renewed(bank, kept) is None
    bank.forget_user("ann")
    with bank.ledger.read() as conn:
        assert conn.execute("SELECT count(*) FROM changed").fetchone()[0] == 0


def test_only_the_last_changes_are_kept(bank, kept):
    with bank.ledger.write(ANN) as conn:
        for _ in range(changes.KEPT // 3 + 1):
            conn.execute("UPDATE entries SET importance = 0.4")
    with bank.ledger.read() as conn:
        assert conn.execute("SELECT count(*) FROM changed").fetchone()[0] == changes.KEPT
    assert renewed(bank, kept) is None
    assert renewed(bank, whole(bank)) is not None
