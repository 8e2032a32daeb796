"""Maintenance of a bank: planned, done, undone; a dry run says exactly what the real run then does."""

from datetime import timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memcycle.core.entry import departure
from memcycle.core.errors import StoreError
from memcycle.core.settings import Retention
from memcycle.stores.bank import Bank
from memcycle.stores.chroma import mirror
from tests.banks import ANN, BOB, SAID, ListIndex, add, apply, open_bank, said, texts

LONG = "Nora brought a tin of roasted walnuts to the choir rehearsal in the old church"
CASHEWS, THE, DETAIL = (
    LONG.replace("walnuts", "cashews"),
    LONG.replace("a tin", "the tin"),
    LONG.replace("a tin", "a blue tin"),
)
LATER = SAID + timedelta(days=1)


def put(bank, *made, scope=ANN):
    edits = [add(text, turn, scope=scope, **fields) for text, turn, fields in made]
    return apply(bank, scope, edits).added


def facts(bank, scope=ANN):
    return texts(bank.entries(scope, granularity="fact"))


def one(bank, entry_id):
    (entry,) = bank.get(ANN, [entry_id])
    return entry


def told(done):
    """A maintenance by ids."""
    pairs = [[(pair.keep.id, pair.drop.id) for pair in pairs] for pairs in (done.united, done.renewed)]
    return (*pairs, [(gone.entry.id, gone.why) for gone in done.expired], done.reinforced)


def reinforced(bank):
    return bank.maintain(ANN, []).reinforced


def expired(bank, **options):
    return [one.entry for one in bank.maintain(ANN, [], **options).expired]


def limited(bank, *rules):
    """The same home, opened with limits."""
    bank.close()
    return open_bank(bank.settings.home, retention=rules)


def test_paraphrases_are_united_and_walnuts_are_no_cashews(bank, list_index):
    ids = put(
        bank,
        (LONG, "D1:1", {}),
        (CASHEWS, "D1:2", {}),
        (THE, "D1:3", {"importance": 0.9}),
        (DETAIL, "D1:4", {}),
    )
    done = bank.maintain(ANN.base)
    assert len(done.united) == 2
    assert sorted(facts(bank)) == sorted([CASHEWS, DETAIL])
    kept = one(bank, ids[3])
    assert (set(kept.turns), kept.importance, kept.supersedes) == ({"D1:1", "D1:3", "D1:4"}, 0.9, ())
    gone = one(bank, ids[0])
    assert (gone.status, departure(gone)) == ("superseded", "united")
    assert list_index[bank.settings.home].ids() == {ids[1], ids[3]}
    assert list_index[bank.settings.home].held[ids[3]][0].turns == kept.turns
    assert told(bank.maintain(ANN.base)) == ([], [], [], 0)


def test_undo_gives_both_back_and_they_stay_apart(bank):
    first, second = put(
        bank, (LONG, "D1:1", {"importance": 0.9}), (DETAIL, "D1:2", {"related_turns": ("D1:7",)})
    )
    before = bank.get(ANN, [first, second])
    bank.maintain(ANN.base)
    actions = [(event.entry_id, event.action, event.actor) for event in bank.history(ANN, second)[-2:]]
    assert actions == [(first, "supersede", "maintenance"), (second, "merge", "maintenance")]
    assert bank.undo(ANN, second).id == first
    assert bank.get(ANN, [first, second]) == before
    assert told(bank.maintain(ANN.base)) == ([], [], [], 0)


def test_undo_takes_back_only_what_the_union_brought(bank):
    first, second = put(bank, (LONG, "D1:1", {}), (DETAIL, "D1:2", {}))
    bank.maintain(ANN.base)
    apply(bank, ANN, [add(DETAIL, "D1:3")])
    bank.undo(ANN, first)
    assert one(bank, second).turns == ("D1:2", "D1:3")


def test_a_correction_after_a_union_is_undone_first(bank):
    first, second = put(bank, (LONG, "D1:1", {}), (DETAIL, "D1:2", {}))
    bank.maintain(ANN.base)
    bank.edit(ANN, second, "Nora brought a cake")
    assert bank.undo(ANN, first).id == second
    assert bank.undo(ANN, first).id == first


def test_only_facts_of_the_given_turns_are_compared(bank):
    put(
        bank,
        (LONG, "D1:1", {}),
        (DETAIL, "D1:2", {}),
        ("Ann has bees", "D1:3", {}),
        ("Ann has the bees", "D1:4", {}),
    )
    assert told(bank.maintain(ANN, ["D1:9"])) == ([], [], [], 0)
    assert [pair.drop.text for pair in bank.maintain(ANN, ["D1:1"]).united] == [LONG]
    assert len(bank.maintain(ANN.base).united) == 1


def test_a_sessions_facts_meet_what_another_session_has_staged(bank):
    second, third = ANN.within("2"), ANN.within("3")
    for scope in (second, third):
        bank.stage_turns(scope, [said(1, session=scope.session)])
    (mine,) = put(bank, (DETAIL, "D2:1", {}), scope=second)
    (theirs,) = put(bank, (THE, "D3:1", {}), scope=third)
    assert told(bank.maintain(second, ["D2:1"])) == ([(mine, theirs)], [], [], 0)
    bank.commit_session(third)
    assert one(bank, theirs).superseded_by == mine
    bank.commit_session(second)
    assert (one(bank, mine).status, one(bank, mine).turns) == ("active", ("D2:1", "D3:1"))
    assert bank.undo(ANN, theirs).status == "active"


def test_walled_in_facts_meet_what_is_committed_and_no_other_sessions(list_index, tmp_path):
    with open_bank(tmp_path / "home", visibility="session") as bank:
        _meets_no_other_sessions(bank)


def _meets_no_other_sessions(bank):
    (known,) = put(bank, (LONG, "D1:1", {}))
    second, third = ANN.within("2"), ANN.within("3")
    for scope in (second, third):
        bank.stage_turns(scope, [said(1, session=scope.session)])
    (mine,) = put(bank, (DETAIL, "D2:1", {}), scope=second)
    (theirs,) = put(bank, (THE, "D3:1", {}), scope=third)
    assert told(bank.maintain(ANN.base)) == ([], [], [], 0)
    assert told(bank.maintain(second, ["D2:1"])) == ([(mine, known)], [], [], 0)
    assert one(bank, theirs).status == "staged"
    bank.commit_session(second)
    bank.commit_session(third)
    assert told(bank.maintain(ANN.base)) == ([(mine, theirs)], [], [], 0)


def test_nobody_meets_another_users_facts(bank):
    put(bank, (LONG, "D1:1", {}))
    put(bank, (DETAIL, "D1:1", {}), scope=BOB)
    assert told(bank.maintain(ANN.base)) == told(bank.maintain(BOB, ["D1:1"])) == ([], [], [], 0)


def summary(text, turn, topic, at=SAID, **fields):
    return (text, turn, {"kind": "working_summary", "topics": topic, "observed_at": at} | fields)


def test_a_later_summary_of_the_same_takes_the_place_of_the_earlier(bank):
    ids = put(
        bank,
        summary("Rooms are booked", "D1:1", ["Trip"]),
        summary("Rooms and trains are booked", "D1:5", ["trip"], LATER),
        summary("All is booked", "D1:9", ["trip"], LATER + timedelta(days=1)),
        summary("The tent is lent", "D1:2", ["tent"]),
        summary("Nothing is known", "D1:3", []),
        summary("Trains are cheap", "D1:9", ["trip"], LATER + timedelta(days=1)),
    )
    first, second, third, tent, bare, same = ids
    done = bank.maintain(ANN.base)
    assert sorted((pair.keep.id, pair.drop.id) for pair in done.renewed)[0][0] in (second, third, same)
    assert {pair.drop.id for pair in done.renewed} == {first, second}
    assert {entry.id for entry in bank.entries(ANN)} == {third, same, tent, bare}
    assert departure(one(bank, first)) == "renewed"
    assert told(bank.maintain(ANN.base)) == ([], [], [], 0)
    assert bank.undo(ANN, first).id in (first, second)
    assert told(bank.maintain(ANN.base)) == ([], [], [], 0)


def test_a_summary_of_another_session_stays(bank):
    put(bank, summary("Rooms are booked", "D1:1", ["trip"]))
    put(bank, summary("Trains are booked", "D2:1", ["trip"], LATER), scope=ANN.within("2"))
    assert told(bank.maintain(ANN.base)) == ([], [], [], 0)


def test_mentions_reinforce_whom_and_what_they_name_once(bank):
    ann, graz, ben = put(
        bank,
        ("Ann has bees", "D1:1", {"persons": ["Ann"]}),
        ("Ann lives in Graz", "D1:2", {"persons": ["Ann"], "entities": ["Graz"]}),
        ("Ben has hens", "D1:3", {"persons": ["Ben"]}),
    )
    bank.mention(ANN, ["ANN", "ann ", ""])
    bank.mention(ANN.base, ["Graz"])
    bank.mention(BOB, ["Ben"])
    assert told(bank.maintain(ANN, [], dry_run=True)) == ([], [], [], 2)
    assert reinforced(bank) == 2
    assert [one(bank, entry).reinforcement for entry in (ann, graz, ben)] == [0.05, 0.1, 0.0]
    assert reinforced(bank) == 0
    for _ in range(9):
        bank.mention(ANN, ["Graz"])
    assert [reinforced(bank), one(bank, graz).reinforcement] == [1, 0.3]
    bank.mention(ANN, ["Graz"])
    assert reinforced(bank) == 0


def test_staged_entries_are_reinforced_when_they_are_committed(bank):
    bank.stage_turns(ANN, [said(1)])
    put(bank, ("Ann has bees", "D1:1", {"persons": ["Ann"]}))
    bank.mention(ANN, ["Ann"])
    assert reinforced(bank) == 0


@pytest.mark.parametrize("erase", ["entry", "user"])
def test_forgetting_leaves_no_mention(bank, erase):
    (entry,) = put(bank, ("Ann has bees", "D1:1", {"persons": ["Ann"]}))
    bank.mention(ANN, ["Zebulon"])
    if erase == "entry":
        bank.forget(ANN, entry)
    else:
        bank.forget_user("ann")
    with bank.ledger.read() as conn:
        assert conn.execute("SELECT count(*) FROM mentions").fetchone()[0] == 0
    bank.close()
    assert not any(
        b"zebulon" in path.read_bytes() for path in bank.settings.home.rglob("*") if path.is_file()
    )


def test_a_mention_needs_a_ledger_to_write_to_and_no_index(bank, tmp_path):
    bank.mention(ANN, ["Ann"])
    with Bank.open(bank.settings, read_only=True) as reading, pytest.raises(StoreError, match="reading only"):
        reading.mention(ANN, ["Ann"])


def test_what_expires_is_said_undone_and_then_left(bank):
    ids = put(
        bank,
        ("a", "D1:1", {"importance": 0.2}),
        ("b", "D1:2", {"importance": 0.8}),
        ("c", "D1:3", {"importance": 0.9}),
    )
    with limited(bank, Retention(granularity="fact", max_entries=1)) as again:
        planned = expired(again, dry_run=True)
        assert sorted(facts(again)) == ["a", "b", "c"]
        assert [entry.id for entry in planned] == ids[:2]
        assert expired(again) == planned
        assert facts(again) == ["c"]
        gone = one(again, ids[0])
        assert (gone.status, departure(gone)) == ("forgotten", "expired")
        last = again.history(ANN, ids[0])[-1]
        assert (last.action, last.actor, last.why[:9]) == ("expire", "maintenance", "at most 1")
        assert expired(again) == []
        restored = again.undo(ANN, ids[0])
        assert (restored.id, restored.status, restored.metadata) == (ids[0], "active", {})
        assert expired(again) == []
        assert sorted(facts(again)) == ["a", "c"]


def test_age_counts_from_the_last_time_it_was_said(bank):
    bank.stage_turns(ANN, [said(1), said(2, time=SAID + timedelta(days=280))])
    put(bank, ("a", "D1:1", {}), ("b", "D1:1", {}))
    apply(bank, ANN, [add("b", "D1:2")])
    bank.commit_session(ANN)
    with limited(bank, Retention(granularity="fact", max_age_days=100)) as again:
        assert texts(expired(again)) == ["a"]


def test_raw_turns_expire_and_come_back(bank):
    bank.stage_turns(ANN, [said(1, "hello"), said(2, "bye")])
    bank.commit_session(ANN)
    with limited(bank, Retention(granularity="raw", max_entries=1)) as again:
        (gone,) = expired(again)
        assert len(again.raw_entries(ANN, ["D1:1", "D1:2"])) == 1
        assert len(again.session_turns(ANN)) == 2
        assert again.undo(ANN, gone.id).status == "active"


def test_limits_count_what_the_steps_before_leave(bank):
    put(
        bank,
        (LONG, "D1:1", {"importance": 0.2}),
        (DETAIL, "D1:2", {"importance": 0.1}),
        ("Ann has bees", "D1:3", {}),
    )
    with limited(bank, Retention(max_entries=2)) as again:
        done = again.maintain(ANN.base)
        assert (len(done.united), done.expired) == (1, [])


TEXTS = st.sampled_from(
    [LONG, CASHEWS, THE, DETAIL, DETAIL + " with her sister", "Ann has bees", "Ann has the bees"]
)
MADE = st.tuples(
    TEXTS,
    st.sampled_from([0.1, 0.5, 0.9]),
    st.sampled_from(["episodic", "working_summary"]),
    st.sampled_from([SAID, LATER]),
)
RULES = st.lists(
    st.builds(
        Retention,
        max_entries=st.integers(0, 5),
        max_age_days=st.sampled_from([None, 298.0]),
        kind=st.sampled_from([None, "episodic"]),
    ),
    max_size=2,
)


CHOIR = "Nora brought {} tin of roasted walnuts to the choir rehearsal in the old church"


@example(
    # What is united keeps the time it was observed, and may be past its limit by that.
    made=[(CHOIR.format("a"), 0.1, "episodic", LATER), (CHOIR.format("the"), 0.1, "episodic", SAID)],
    rules=[Retention(max_entries=1, max_age_days=298.0)],
    named=[],
    whole=False,
)
@example(
    # What took the place of a fact takes its place in the comparisons left, too.
    made=[(CHOIR.format(word), 0.1, "episodic", SAID) for word in ("a", "a", "a", "the", "a blue")],
    rules=[],
    named=[],
    whole=False,
)
@settings(max_examples=12, deadline=None)
@given(
    st.lists(MADE, min_size=1, max_size=8),
    RULES,
    st.lists(st.sampled_from(["Ann", "Nora"]), max_size=3),
    st.booleans(),
)
def test_a_dry_run_says_exactly_what_is_then_done(tmp_path_factory, made, rules, named, whole):
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch, open_bank(home, retention=tuple(rules)) as bank:
        patch.setattr(mirror, "open_client", lambda settings, *_, **__: ListIndex(settings))
        patch.setattr(mirror, "ChromaIndex", lambda index, shards, dim: index)
        turns = [f"D1:{n}" for n in range(len(made))]
        for turn, (text, importance, kind, at) in zip(turns, made, strict=True):
            fields = {"importance": importance, "kind": kind, "observed_at": at, "topics": ["t"]}
            put(bank, (text, turn, fields | {"persons": ["Ann"] if "Ann" in text else ["Nora"]}))
        bank.mention(ANN, named)
        scope, of = (ANN.base, None) if whole else (ANN, turns[:3])
        before, log = list(bank.export(ANN.base)), history(bank)
        planned = bank.maintain(scope, of, dry_run=True)
        assert (list(bank.export(ANN.base)), history(bank)) == (before, log)
        assert bank.maintain(scope, of) == planned
        assert told(bank.maintain(scope, of)) == ([], [], [], 0)
        left = {row["id"] for row in bank.export(ANN.base)}
        assert left == {row["id"] for row in before}
        everything = len(planned.united) + len(planned.renewed) + len(planned.expired)
        assert len(bank.entries(ANN)) == len(before) - everything
        for pair in (*planned.united, *planned.renewed):
            assert bank.get(ANN, [pair.drop.id])[0].superseded_by == pair.keep.id


def history(bank):
    with bank.ledger.read() as conn:
        return [tuple(row) for row in conn.execute("SELECT * FROM events ORDER BY seq")]
