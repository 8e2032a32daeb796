import pytest

from memcycle.core.edit import Edit
from memcycle.core.errors import BadInput, UnknownEntry
from tests.banks import ANN, BOB, SAID, add, apply, said, texts, update


def added(bank, *args, **fields):
    (entry_id,) = apply(bank, ANN, [add(*args, **fields)]).added
    return entry_id


def one(bank, entry_id):
    (entry,) = bank.get(ANN, [entry_id])
    return entry


def shown(bank):
    return texts(bank.entries(ANN))


def test_an_edit_inserts_a_successor_that_keeps_the_rest(bank):
    old = added(bank, "Ann lives in Gras", "D1:1", kind="preference", speaker="Ann", model="m")
    new = bank.edit(ANN, old, "Ann lives in Graz", why="typo")
    before = one(bank, old)
    assert (before.text, before.status, before.superseded_by) == ("Ann lives in Gras", "superseded", new.id)
    assert (new.kind, new.speaker, new.turns, new.observed_at) == ("preference", "Ann", ("D1:1",), SAID)
    assert (new.supersedes, new.status, new.actor, new.model) == ((old,), "active", "user", None)
    last = bank.history(ANN, old)[-1]
    assert (last.actor, last.why, last.before["text"], last.after["text"]) == (
        "user", "typo", "Ann lives in Gras", "Ann lives in Graz",
    )  # fmt: skip


def test_an_edit_keeps_the_names_that_its_words_bear_out(bank):
    labels = {
        "entities": ("Ann", "Graz"),
        "persons": ("Ann",),
        "locations": ("Graz",),
        "keywords": ("lives",),
    }
    (graz,) = apply(bank, ANN, [add("Ann lives in Graz", "D1:1", **labels)]).added
    linz = bank.edit(ANN, graz, "Ann is living in Linz")
    assert (linz.entities, linz.persons, linz.locations) == (("Ann",), ("Ann",), ())
    assert linz.keywords == ("lives",)


def test_an_edited_entry_is_found_by_its_new_words(bank, list_index):
    bank.stage_turns(ANN, [said(1, "quokka")])
    bank.commit_session(ANN)
    (raw,) = bank.raw_entries(ANN, ["D1:1"])
    new = bank.edit(ANN, raw.id, "wombat")
    assert list_index[bank.settings.home].ids() == {new.id}
    assert bank.raw_entries(ANN, ["D1:1"]) == [new]
    assert texts(bank.session_turns(ANN)) == ["quokka"]


def test_an_edit_of_a_staged_entry_stays_staged(bank):
    bank.stage_turns(ANN, [said(1)])
    assert bank.edit(ANN, added(bank, "a", "D1:1"), "b").status == "staged"


def test_case_and_full_stops_can_be_edited(bank):
    new = bank.edit(ANN, added(bank, "ann lives in graz", "D1:1"), "Ann lives in Graz.")
    assert shown(bank) == ["Ann lives in Graz."]
    assert new.text == "Ann lives in Graz."


def test_the_same_text_is_no_edit(bank):
    entry = added(bank, "a", "D1:1")
    assert bank.edit(ANN, entry, "a").id == entry
    assert len(bank.history(ANN, entry)) == 1


def test_editing_to_what_another_entry_says_ends_in_one(bank):
    old, other = added(bank, "a", "D1:1"), added(bank, "b", "D1:2")
    assert bank.edit(ANN, old, "B.").id == other
    assert one(bank, other).turns == ("D1:2", "D1:1")
    assert shown(bank) == ["b"]
    assert bank.undo(ANN, old).id == old
    assert sorted(shown(bank)) == ["a", "b"]


def test_editing_back_to_an_earlier_text_revives_it(bank):
    first = added(bank, "a", "D1:1")
    second = bank.edit(ANN, first, "b")
    assert bank.edit(ANN, second.id, "a").id == first
    assert one(bank, second.id).superseded_by == first
    assert one(bank, first).superseded_by is None
    assert len(bank.history(ANN, first)) == 5
    assert bank.undo(ANN, first).text == "b"
    assert shown(bank) == ["b"]
    assert bank.undo(ANN, first).text == "a"
    assert shown(bank) == ["a"]


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_edit_needs_a_text(bank, text):
    with pytest.raises(BadInput, match="is empty"):
        bank.edit(ANN, added(bank, "a", "D1:1"), text)


def test_what_cannot_be_edited(bank):
    first = added(bank, "a", "D1:1")
    second = bank.edit(ANN, first, "b")
    with pytest.raises(BadInput, match=f"was replaced by {second.id}"):
        bank.edit(ANN, first, "c")
    for scope, entry in ((BOB, second.id), (ANN, "nonsense")):
        with pytest.raises(UnknownEntry, match="no entry"):
            bank.edit(scope, entry, "c")
    apply(bank, ANN, [Edit(op="DELETE", target=second.id, quote="forget it")])
    with pytest.raises(UnknownEntry):
        bank.edit(ANN, second.id, "c")


def test_undo_goes_back_step_by_step(bank):
    entry = added(bank, "one", "D1:1")
    second = bank.edit(ANN, entry, "two")
    third = bank.edit(ANN, second.id, "three")
    assert bank.undo(ANN, third.id).text == "two"
    assert shown(bank) == ["two"]
    restored = bank.undo(ANN, third.id)
    assert (restored.text, restored.status, restored.superseded_by, restored.valid_until) == (
        "one", "active", None, None,
    )  # fmt: skip
    assert one(bank, third.id).status == "forgotten"
    assert [event.action for event in bank.history(ANN, entry)] == [
        "add", "supersede", "update", "supersede", "update", "undo", "undo", "undo", "undo",
    ]  # fmt: skip
    with pytest.raises(BadInput, match="no change to undo"):
        bank.undo(ANN, entry)


def test_an_undone_edit_can_be_made_again(bank):
    entry = added(bank, "one", "D1:1")
    second = bank.edit(ANN, entry, "two")
    bank.undo(ANN, entry)
    assert bank.edit(ANN, entry, "two").id == second.id
    assert shown(bank) == ["two"]


def test_undo_takes_back_what_a_role_did(bank):
    old = added(bank, "Ann lives in Graz", "D1:1")
    apply(bank, ANN, [update(old, "Ann lives in Linz", "D1:2", actor="refresher")])
    assert bank.undo(ANN, old).text == "Ann lives in Graz"
    apply(bank, ANN, [Edit(op="DELETE", target=old, quote="forget it")])
    assert shown(bank) == []
    restored = bank.undo(ANN, old)
    assert (restored.id, restored.status, restored.valid_until) == (old, "active", None)


def test_undo_after_a_commit_restores_an_active_entry(bank):
    bank.stage_turns(ANN, [said(1)])
    entry = added(bank, "one", "D1:1")
    bank.edit(ANN, entry, "two")
    bank.commit_session(ANN)
    assert bank.undo(ANN, entry).status == "active"


def test_undo_meets_the_same_words_written_anew(bank):
    old = added(bank, "Ann lives in Graz", "D1:1")
    apply(bank, ANN, [update(old, "Ann lives in Linz", "D1:2")])
    back = added(bank, "Ann lives in Graz", "D1:9")
    assert bank.undo(ANN, old).id == back
    assert shown(bank) == ["Ann lives in Graz"]
    assert one(bank, back).turns == ("D1:9", "D1:1")


@pytest.mark.parametrize("scope", [ANN, BOB])
def test_undo_and_history_of_the_unknown(bank, scope):
    known = added(bank, "a", "D1:1")
    asked = known if scope is BOB else "nonsense"
    for call in (bank.undo, bank.history, bank.holders):
        with pytest.raises(UnknownEntry, match=f"no entry {asked}"):
            call(scope, asked)


def test_a_long_text_and_odd_characters_survive_an_edit(bank):
    text = "Ann's \"C++\" — O'Brien; DROP TABLE entries; 日本語 🎉 {name} %s"
    new = bank.edit(ANN, added(bank, "a", "D1:1"), text)
    assert shown(bank) == [text]
    assert bank.find(ANN, new.id[:8]) == [new]
    assert bank.find(BOB, new.id[:8]) == []
    assert bank.find(ANN, "%") == []
    assert bank.users() == ["ann"]
