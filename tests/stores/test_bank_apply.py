from datetime import UTC, datetime, timedelta

import pytest

from memcycle.core.edit import Edit
from memcycle.core.entry import new_entry
from memcycle.core.scope import Scope
from tests.banks import ANN, BOB, SAID, add, apply, fact, open_bank, said, texts, update
from tests.fakes import FakeEmbeddings, with_nan

LATER = SAID + timedelta(days=30)


def one(bank, entry_id):
    (entry,) = bank.get(ANN, [entry_id])
    return entry


def added(bank, *args, **fields):
    (entry_id,) = apply(bank, ANN, [add(*args, **fields)]).added
    return entry_id


def refusal(bank, edit):
    applied = apply(bank, ANN, [edit])
    (rejected,) = applied.rejected
    assert not (applied.added or applied.updated or applied.superseded or applied.merged or applied.deleted)
    assert rejected.target == edit.target
    return rejected.why


def test_an_added_fact_is_stored_with_its_provenance(bank):
    entry = added(bank, "Ann lives in Graz", "D1:1", actor="constructor", quote="I live in Graz")
    stored = one(bank, entry)
    assert (stored.quote, stored.valid_from, stored.valid_until) == ("I live in Graz", SAID, None)
    assert stored.recorded_at is not None
    assert stored.embedder == bank.embedder_id
    (event,) = bank.history(ANN, entry)
    assert (event.action, event.before, event.after["text"]) == ("add", None, "Ann lives in Graz")


def test_a_fact_is_staged_while_its_session_is_open(bank):
    assert one(bank, added(bank, "no such session")).status == "active"
    bank.stage_turns(ANN, [said(1)])
    assert one(bank, added(bank, "open session")).status == "staged"


@pytest.mark.parametrize("again", ["Ann lives in Graz", "ann lives  in graz!", "Ann lives in Graz ."])
def test_the_same_words_are_merged(bank, again):
    first = added(bank, "Ann lives in Graz.", "D1:1")
    assert apply(bank, ANN, [add(again, "D1:5")]).merged == [first]
    assert one(bank, first).turns == ("D1:1", "D1:5")
    assert [event.action for event in bank.history(ANN, first)] == ["add", "merge"]
    assert [entry.id for entry in bank.by_turns(ANN, ["D1:5"])] == [first]


def test_a_repeated_write_changes_nothing(bank):
    first = added(bank, "Ann lives in Graz", "D1:1")
    assert apply(bank, ANN, [add("Ann lives in Graz", "D1:1")]).merged == [first]
    assert len(bank.history(ANN, first)) == 1


def test_duplicates_within_one_call_are_merged_too(bank):
    applied = apply(bank, ANN, [add("x", "D1:1"), add("X.", "D1:2")])
    assert applied.added == applied.merged
    assert one(bank, applied.added[0]).turns == ("D1:1", "D1:2")


def test_other_users_sessions_and_granularities_are_no_duplicates(bank):
    added(bank, "x", "D1:1")
    assert apply(bank, BOB, [add("x", "D1:1", scope=BOB)]).added
    assert apply(bank, ANN, [add("x", "D1:1", granularity="episode")]).added
    assert apply(bank, ANN.within("2"), [add("x", "D2:1", scope=ANN.within("2"))]).merged


def test_the_same_words_about_two_days_are_two_occurrences(bank):
    day = datetime(2023, 5, 6, tzinfo=UTC)
    first = added(bank, "Ann ran yesterday", "D1:1", event_time=day)
    second = added(bank, "Ann ran yesterday", "D1:9", event_time=day + timedelta(days=7))
    assert first != second
    # A time that is only the time of saying it is no reading.
    plain = added(bank, "Ann runs", "D1:1", event_time=SAID, observed_at=SAID)
    assert apply(bank, ANN, [add("Ann runs", "D1:9", event_time=LATER, observed_at=LATER)]).merged == [plain]


def test_an_update_supersedes(bank):
    old = added(bank, "Ann lives in Graz", "D1:1")
    applied = apply(bank, ANN, [update(old, "Ann lives in Linz", "D1:9", observed_at=LATER, event_time=None)])
    (new,) = applied.updated
    assert applied.superseded == [old]
    before, after = one(bank, old), one(bank, new)
    assert (before.status, before.superseded_by, before.valid_until) == ("superseded", new, LATER)
    assert (after.status, after.supersedes, after.turns) == ("active", (old,), ("D1:9",))
    assert [event.action for event in bank.history(ANN, old)] == ["add", "supersede", "update"]
    assert bank.history(ANN, old) == bank.history(ANN, new)
    assert texts(bank.entries(ANN)) == ["Ann lives in Linz"]


def test_the_end_of_validity_is_the_event_where_it_is_known(bank):
    moved = datetime(2023, 6, 1, tzinfo=UTC)
    old = added(bank, "Ann lives in Graz", "D1:1")
    apply(bank, ANN, [update(old, "Ann lives in Linz", "D1:9", observed_at=LATER, event_time=moved)])
    assert one(bank, old).valid_until == moved


def test_an_update_run_again_after_a_crash_answers_the_same(bank):
    old = added(bank, "a", "D1:1")
    edit = update(old, "b", "D1:2")
    first = apply(bank, ANN, [edit])
    log = bank.history(ANN, old)
    assert apply(bank, ANN, [edit]) == first
    assert bank.history(ANN, old) == log


def test_an_update_to_what_is_known_already_ends_in_one_entry(bank):
    old, known = added(bank, "Ann lives in Graz", "D1:1"), added(bank, "Ann lives in Linz", "D1:2")
    assert apply(bank, ANN, [update(old, "ann lives in linz", "D1:3")]).updated == [known]
    assert one(bank, old).superseded_by == known
    assert one(bank, known).turns == ("D1:2", "D1:3")
    assert one(bank, known).supersedes == (old,)
    assert texts(bank.entries(ANN)) == ["Ann lives in Linz"]


DAY = timedelta(days=1)
JUNE = datetime(2023, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        ({"observed_at": SAID}, {"observed_at": SAID - DAY}, False),
        ({"observed_at": SAID}, {"observed_at": SAID}, True),
        ({"observed_at": SAID}, {"observed_at": None}, True),
        (
            {"event_time": JUNE, "observed_at": JUNE + DAY},
            {"event_time": JUNE - DAY, "observed_at": LATER},
            False,
        ),
        # Old news told late.
        ({"observed_at": SAID}, {"event_time": SAID - 400 * DAY, "observed_at": LATER}, False),
        # A plan of ours is evidence of the day it was made: it can be changed before it comes true.
        ({"event_time": SAID + 300 * DAY, "observed_at": SAID}, {"observed_at": SAID + DAY}, True),
        ({"event_time": JUNE, "observed_at": SAID}, {"event_time": JUNE - DAY, "observed_at": SAID}, False),
        # "I moved today", told at noon to someone who heard the old address at ten.
        (
            {"observed_at": SAID},
            {
                "event_time": SAID.replace(hour=0),
                "event_precision": "day",
                "observed_at": SAID + timedelta(hours=2),
            },
            True,
        ),
        # "This year I moved."
        (
            {"observed_at": SAID},
            {
                "event_time": datetime(2023, 1, 1, tzinfo=UTC),
                "event_precision": "year",
                "observed_at": SAID + 90 * DAY,
            },
            True,
        ),
    ],
)
def test_older_evidence_never_overwrites_newer(bank, old, new, allowed):
    target = added(bank, "Ann lives in Graz", "D1:1", **old)
    applied = apply(bank, ANN, [update(target, "Ann lives in Linz", "D1:2", **new)])
    assert bool(applied.updated) == allowed
    if not allowed:
        [before] = bank.get(ANN, applied.added)
        assert (before.status, before.superseded_by) == ("superseded", target)
        assert one(bank, target).status == "active"


def test_what_an_update_may_not_do(bank):
    target = added(bank, "Ann lives in Graz", "D1:1")
    theirs = apply(bank, BOB, [add("Bob lives in Rome", "D1:1", scope=BOB)]).added[0]
    assert "says the same" in refusal(bank, update(target, "ann lives in graz", "D1:2"))
    assert f"no entry {theirs}" in refusal(bank, update(theirs, "Bob lives in Bonn", "D1:2"))
    assert "no entry nonsense" in refusal(bank, update("nonsense", "x"))
    assert "names no target" in refusal(bank, update(None, "x"))
    assert "cannot replace a fact" in refusal(bank, update(target, "x", granularity="episode"))
    apply(bank, ANN, [update(target, "Ann lives in Linz", "D1:3")])
    assert "already superseded by" in refusal(bank, update(target, "Ann lives in Wels", "D1:4"))


def test_what_an_add_may_not_do(bank):
    assert "another user" in refusal(bank, add("x", scope=BOB))
    assert "another user" in refusal(bank, add("x", scope=Scope(user="ann", workspace="w", session="1")))
    assert "without an entry" in refusal(bank, Edit(op="ADD"))
    assert "is empty" in refusal(bank, add("  "))
    assert refusal(bank, Edit(op="NONE", entry=fact("x"), reason="in doubt")) == "in doubt"


def test_a_replaced_fact_is_not_brought_back_by_its_old_evidence(bank):
    old = added(bank, "Ann lives in Graz", "D1:1")
    apply(bank, ANN, [update(old, "Ann lives in Linz", "D1:2")])
    assert "already superseded" in refusal(bank, add("Ann lives in Graz", "D1:1"))
    back = added(bank, "Ann lives in Graz", "D1:9")
    assert back != old


def test_an_entry_without_a_session_gets_the_scopes(bank):
    entry = new_entry(ANN.base, "fact", "x")
    (made,) = apply(bank, ANN, [Edit(op="ADD", entry=entry)]).added
    assert made != entry.id
    assert one(bank, made).scope == ANN
    assert "names no session" in apply(bank, ANN.base, [Edit(op="ADD", entry=entry)]).rejected[0].why


def test_an_id_that_another_user_will_derive_cannot_be_taken(bank):
    future = fact("Bob's own", "D1:1", scope=BOB)
    forged = fact("Ann's", "D1:1").model_copy(update={"id": future.id})
    assert apply(bank, ANN, [Edit(op="ADD", entry=forged)]).added != [future.id]
    assert apply(bank, BOB, [Edit(op="ADD", entry=future)]).added == [future.id]


def test_merge_unites_turns_and_inserts_nothing(bank):
    target = added(bank, "Ann lives in Graz", "D1:1")
    edit = Edit(op="MERGE", target=target, entry=fact("Ann is from Graz", "D1:2"), actor="consolidator")
    assert apply(bank, ANN, [edit]).merged == [target]
    assert one(bank, target).turns == ("D1:1", "D1:2")
    assert bank.count(ANN) == {"fact": 1}
    assert bank.history(ANN, target)[-1].actor == "consolidator"


def test_deleting_needs_the_users_words_or_a_passed_limit(bank):
    target = added(bank, "Ann lives in Graz", "D1:1")
    assert "user's own words" in refusal(bank, Edit(op="DELETE", target=target))
    assert "user's own words" in refusal(bank, Edit(op="DELETE", target=target, quote="  "))
    edit = Edit(op="DELETE", target=target, quote="forget where I live", actor="refresher", reason="asked")
    assert apply(bank, ANN, [edit]).deleted == [target]
    assert one(bank, target).status == "forgotten"
    assert bank.entries(ANN) == []
    event = bank.history(ANN, target)[-1]
    assert (event.action, event.actor, event.why) == ("delete", "refresher", "asked")
    assert "was forgotten" in refusal(bank, edit)
    assert "was forgotten" in refusal(bank, add("Ann lives in Graz", "D1:1"))
    other = added(bank, "old", "D1:1")
    assert apply(bank, ANN, [Edit(op="DELETE", target=other, retention=True)]).deleted == [other]
    assert bank.history(ANN, other)[-1].action == "expire"


def test_a_rejected_edit_does_not_stop_the_others(bank):
    applied = apply(bank, ANN, [add("a"), update("nonsense", "b"), add("c")])
    assert len(applied.added) == 2
    assert [rejected.text for rejected in applied.rejected] == ["b"]


def test_what_cannot_be_embedded_is_reported_and_can_be_tried_again(tmp_path, list_index):
    embeddings = FakeEmbeddings(script=[None, with_nan, None, with_nan])
    with open_bank(tmp_path / "h", embeddings=embeddings) as bank:
        apply(bank, ANN, [add("warm up")])
        edits = [add("good", "D1:1"), add("bad fact", "D1:2")]
        applied = apply(bank, ANN, edits)
        assert texts(bank.get(ANN, applied.added)) == ["good"]
        assert [(r.text, "NaN" in r.why) for r in applied.rejected] == [("bad fact", True)]
        again = apply(bank, ANN, edits)
        assert (texts(bank.get(ANN, again.added)), again.merged) == (["bad fact"], applied.added)


def test_a_provider_that_cannot_be_reached_is_no_empty_answer(tmp_path, list_index):
    embeddings = FakeEmbeddings(script=[None, ConnectionError("down")])
    with open_bank(tmp_path / "h", embeddings=embeddings) as bank:
        apply(bank, ANN, [add("warm up")])
        with pytest.raises(ConnectionError):
            apply(bank, ANN, [add("x")])
        assert bank.count(ANN) == {"fact": 1}


def test_queued_conflicts_wait_until_they_are_settled(bank):
    bank.queue_conflict(ANN, "a", "b", "moved")
    bank.queue_conflict(ANN, "a", "b", "moved again")
    bank.queue_conflict(BOB, "a", "b", "theirs")
    assert bank.conflicts(ANN.within("2")) == [("a", "b", "moved")]
    assert bank.conflicts(ANN) == [("a", "b", "moved")]
    bank.settle_conflicts(ANN, [("a", "b"), ("x", "y")])
    assert bank.conflicts(ANN) == []
    assert bank.conflicts(BOB) == [("a", "b", "theirs")]


def test_a_turn_that_is_not_there_takes_what_rests_on_it_along(bank):
    """It was forgotten while a role read it: nothing in the role's words may come back."""
    bank.stage_turns(ANN, [said(1), said(2)])
    (raw,) = bank.raw_entries(ANN, ["D1:1"])
    kept = added(bank, "Ann lives in Graz", "D1:2")
    bank.forget(ANN, raw.id)
    edits = [
        add("Ann has a cat", "D1:1"),
        add("all of it", "D1:1", "D1:2", granularity="episode"),
        update(kept, "Ann lives in Linz", "D1:1", observed_at=LATER),
        Edit(op="MERGE", target=kept, entry=fact("Ann lives in Graz", "D1:1")),
        add("Ann is told of nowhere", "D1:77"),
    ]
    applied = bank.apply(ANN, [*edits, add("Ann has a dog", "D1:2")])
    assert len(applied.added) == 1
    assert [rejected.why.split(",")[0] for rejected in applied.rejected] == ["turn D1:1"] * 4 + ["turn D1:77"]
    assert one(bank, kept).turns == ("D1:2",)


def test_a_fact_keeps_the_forgotten_turns_it_was_left_with(bank):
    bank.stage_turns(ANN, [said(1, "hello there"), said(2)])
    kept = added(bank, "Ann lives in Graz", "D1:1", "D1:2")
    (raw,) = bank.raw_entries(ANN, ["D1:1"])
    bank.forget(ANN, raw.id, only=True)
    assert one(bank, kept).turns == ("D1:1", "D1:2")
    new = update(kept, "Ann lives in Linz", "D1:1", "D1:2", observed_at=LATER)
    assert len(bank.apply(ANN, [new]).updated) == 1
