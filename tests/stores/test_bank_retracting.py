"""Taking back what a role wrote: only its last write, once, and nothing of what came since."""

import pytest

from memcycle.core.edit import Edit
from memcycle.core.entry import departure
from tests.banks import ANN, BOB, add, apply, fact, said, texts, update

REPAIRER, WHY = "repairer", "it did not help"


@pytest.fixture
def open_session(bank):
    bank.stage_turns(ANN, [said(n) for n in range(1, 10)])
    return bank


def write(bank, *edits):
    applied = apply(bank, ANN, [edit.model_copy(update={"actor": REPAIRER}) for edit in edits])
    return [*applied.added, *applied.updated, *applied.merged]


def retract(bank, *ids, scope=ANN):
    return bank.settle_repairs(scope, {}, [(one, WHY) for one in ids])


def one(bank, entry_id):
    (entry,) = bank.get(ANN, [entry_id])
    return entry


def merge(target, *turns):
    return Edit(op="MERGE", target=target, entry=fact("says the same", *turns))


def test_what_was_added_is_withdrawn_once(open_session):
    bank = open_session
    (entry,) = write(bank, add("Ann keeps bees", "D1:1"))
    assert retract(bank, entry) == [entry]
    gone = one(bank, entry)
    assert (gone.status, departure(gone), gone.valid_until is not None) == ("forgotten", "withdrawn", True)
    last = bank.history(ANN, entry)[-1]
    assert (last.action, last.actor, last.why) == ("undo", REPAIRER, WHY)
    before = list(bank.export(ANN.base)), bank.history(ANN, entry)
    assert retract(bank, entry) == []
    assert (list(bank.export(ANN.base)), bank.history(ANN, entry)) == before


def test_an_active_entry_leaves_the_index_too(bank, list_index):
    (entry,) = write(bank, add("Ann keeps bees", "D1:1"))
    bank.drain()
    assert list_index[bank.settings.home].ids() == {entry}
    retract(bank, entry)
    assert list_index[bank.settings.home].ids() == set()


def test_turns_that_were_united_leave_again(open_session):
    bank = open_session
    (entry,) = apply(bank, ANN, [add("Ann keeps bees", "D1:1")]).added
    write(bank, merge(entry, "D1:2", "D1:1"))
    assert one(bank, entry).turns == ("D1:1", "D1:2")
    assert retract(bank, entry) == [entry]
    assert (one(bank, entry).turns, one(bank, entry).status) == (("D1:1",), "staged")
    assert retract(bank, entry) == []
    assert bank.by_turns(ANN, ["D1:2"], "fact") == []


def test_what_was_replaced_holds_again(open_session):
    bank = open_session
    (old,) = apply(bank, ANN, [add("Ann keeps bees", "D1:1")]).added
    (new,) = write(bank, update(old, "Ann keeps bees and hens", "D1:1", "D1:2"))
    assert retract(bank, new) == [new]
    assert (one(bank, old).status, one(bank, old).superseded_by) == ("staged", None)
    assert departure(one(bank, new)) == "withdrawn"
    assert retract(bank, new, old) == []
    assert texts(bank.entries(ANN, granularity="fact")) == ["Ann keeps bees"]


def test_two_writes_one_upon_the_other_are_taken_back_in_turn(open_session):
    bank = open_session
    (first,) = write(bank, add("Ann keeps bees", "D1:1"))
    (second,) = write(bank, update(first, "Ann keeps bees and hens", "D1:1", "D1:2"))
    assert retract(bank, first) == []
    assert [retract(bank, second), retract(bank, first)] == [[second], [first]]
    assert bank.entries(ANN, granularity="fact") == []
    assert retract(bank, second, first) == []


def test_what_was_taken_back_may_be_written_again(open_session):
    bank = open_session
    (old,) = apply(bank, ANN, [add("Ann keeps bees", "D1:1")]).added
    for _ in range(2):
        (new,) = write(bank, update(old, "Ann keeps bees and hens", "D1:1", "D1:2"))
        assert (one(bank, new).status, departure(one(bank, new)), one(bank, new).supersedes) == (
            "staged",
            None,
            (old,),
        )
        assert one(bank, old).superseded_by == new
        assert retract(bank, new) == [new]
        assert texts(bank.entries(ANN, granularity="fact")) == ["Ann keeps bees"]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_writes_upon_each_other_are_taken_back_in_whatever_order_they_are_named(open_session, order):
    bank = open_session
    (old,) = apply(bank, ANN, [add("Ann keeps bees", "D1:1")]).added
    (first,) = write(bank, update(old, "Ann keeps bees and hens", "D1:1", "D1:2"))
    write(bank, merge(first, "D1:3"))
    (second,) = write(bank, update(first, "Ann keeps bees, hens and geese", "D1:1", "D1:2", "D1:3", "D1:4"))
    named = [first, first, second]
    assert set(retract(bank, *(named[n] for n in order))) == {first, second}
    (left,) = bank.entries(ANN, granularity="fact")
    assert (left.id, left.turns, left.superseded_by) == (old, ("D1:1",), None)
    assert retract(bank, *named) == []


def test_an_id_named_twice_stands_for_two_writes(open_session):
    bank = open_session
    (entry,) = apply(bank, ANN, [add("Ann keeps bees", "D1:1")]).added
    write(bank, merge(entry, "D1:2"))
    write(bank, merge(entry, "D1:3"))
    assert retract(bank, entry, entry) == [entry]
    assert one(bank, entry).turns == ("D1:1",)
    assert retract(bank, entry, entry) == []


def test_what_another_rests_on_stays_with_its_turns(open_session):
    bank = open_session
    (entry,) = write(bank, add("Ann keeps bees", "D1:1", quote="I keep bees"))
    apply(bank, ANN, [add("Ann keeps bees.", "D1:2")])
    assert retract(bank, entry) == [entry]
    left = one(bank, entry)
    assert (left.status, left.turns, left.quote) == ("staged", ("D1:2",), None)


def test_a_replacement_by_an_entry_that_was_there_gives_both_back(open_session):
    bank = open_session
    old, other = apply(bank, ANN, [add("Ann has bees", "D1:1"), add("Ann has hens", "D1:2")]).added
    write(bank, update(old, "Ann has hens", "D1:3"))
    assert one(bank, other).turns == ("D1:2", "D1:3")
    assert retract(bank, other) == [other]
    assert (one(bank, old).status, one(bank, other).turns) == ("staged", ("D1:2",))


def test_what_came_since_is_left_alone(open_session):
    bank = open_session
    (entry,) = write(bank, add("Ann keeps bees", "D1:1"))
    corrected = bank.edit(ANN, entry, "Ann keeps wasps")
    before = list(bank.export(ANN.base))
    assert retract(bank, entry) == retract(bank, corrected.id) == []
    assert list(bank.export(ANN.base)) == before


def test_the_unknown_and_another_users(open_session):
    bank = open_session
    (entry,) = write(bank, add("Ann keeps bees", "D1:1"))
    assert retract(bank, "nonsense") == retract(bank, entry, scope=BOB) == retract(bank) == []
    assert one(bank, entry).status == "staged"


def test_a_person_can_say_it_after_all(open_session):
    bank = open_session
    (entry,) = write(bank, add("Ann keeps bees", "D1:1"))
    retract(bank, entry)
    (again,) = apply(bank, ANN, [add("Ann keeps bees", "D1:2")]).added
    assert one(bank, again).status == "staged"
    assert bank.edit(ANN, again, "Ann keeps 2 hives of bees").status == "staged"


def test_undoing_a_persons_edit_leaves_no_contradiction_behind(bank):
    (entry,) = apply(bank, ANN, [add("Ann lives in Graz", "D1:1")]).added
    new = bank.edit(ANN, entry, "Ann lives in Linz")
    bank.undo(ANN, entry)
    assert departure(one(bank, new.id)) == "withdrawn"
    assert bank.edit(ANN, entry, "Ann lives in Linz").id == new.id
    assert (one(bank, new.id).metadata, one(bank, new.id).status) == ({}, "active")
