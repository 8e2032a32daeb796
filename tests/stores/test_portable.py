import copy
import json

import pytest

from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.stores.search.request import Query, SearchRequest
from tests.banks import ANN, BOB, add, apply, open_bank, said, texts, update

NEW_HOME = Scope(user="ann")


def fill(bank, *, backwards=False):
    """Two sessions with a replaced, a merged and a forgotten fact; the same content in either order."""
    sessions = ["1", "2"]
    for session in reversed(sessions) if backwards else sessions:
        scope = ANN.within(session)
        spoken = [said(n, f"{session}: line {n}", session=session, message_id=f"m{n}") for n in (1, 2, 3)]
        bank.stage_turns(scope, spoken)
        made = [add(f"fact {n} of {session}", f"D{session}:{n}", scope=scope) for n in (1, 2, 3)]
        apply(bank, scope, made[::-1] if backwards else made)
        apply(
            bank, scope, [add(f"summary of {session}", f"D{session}:1", scope=scope, granularity="episode")]
        )
        bank.commit_session(scope)
    (old,) = [one for one in bank.entries(ANN.base) if one.text == "fact 2 of 1"]
    apply(bank, ANN, [update(old.id, "fact 2 corrected", "D2:2", scope=ANN.within("2"))])
    return bank


def rows(bank, scope=NEW_HOME):
    return list(bank.export(scope))


CLOCK = ("recorded_at",)


def without_clock(row):
    return {name: value for name, value in row.items() if name not in CLOCK}


def test_an_export_is_json_with_all_fields_in_conversation_order(bank):
    exported = rows(fill(bank))
    assert json.loads(json.dumps(exported)) == exported
    # Facts of one turn stand in order of id.
    assert [row["text"] for row in exported if row["text"] not in ("fact 2 of 2", "fact 2 corrected")] == [
        "1: line 1", "fact 1 of 1", "summary of 1", "1: line 2", "fact 2 of 1", "1: line 3", "fact 3 of 1",
        "2: line 1", "fact 1 of 2", "summary of 2", "2: line 2", "2: line 3", "fact 3 of 2",
    ]  # fmt: skip
    assert {row["status"] for row in exported} == {"active", "superseded"}
    assert list(bank.export(ANN.within("2"))) == [row for row in exported if row["scope"]["session"] == "2"]


def test_its_order_does_not_depend_on_when_things_were_written(tmp_path, list_index):
    with open_bank(tmp_path / "a") as one, open_bank(tmp_path / "b") as other:
        forwards = [without_clock(row) for row in rows(fill(one))]
        backwards = [without_clock(row) for row in rows(fill(other, backwards=True))]
    assert forwards == backwards


def test_a_round_trip_loses_nothing(tmp_path, list_index):
    with open_bank(tmp_path / "a") as one, open_bank(tmp_path / "b") as other:
        exported = rows(fill(one))
        assert other.import_(NEW_HOME, exported) == len(exported)
        assert rows(other) == exported
        assert other.import_(NEW_HOME, exported) == 0
        assert rows(other) == exported
        assert other.check()["index"] == {"missing": 0, "stray": 0}
        # Sessions and turns are back, so the same conversation is not taken in again.
        assert [(i.session, i.status, i.turns) for i in other.sessions(NEW_HOME)] == [
            ("1", "committed", 3), ("2", "committed", 3),
        ]  # fmt: skip
        assert other.session_turns(ANN) == one.session_turns(ANN)
        assert other.stage_turns(ANN, one.session_turns(ANN)) == one.session_turns(ANN)
        assert rows(other) == exported
        assert other.unprocessed(NEW_HOME) == []
        corrected = next(row for row in exported if row["text"] == "fact 2 corrected")
        assert other.history(NEW_HOME, corrected["id"])[-1].action == "import"
        assert len({event.entry_id for event in other.history(NEW_HOME, corrected["id"])}) == 2


def test_a_staged_part_comes_back_staged(tmp_path, list_index):
    with open_bank(tmp_path / "a") as one, open_bank(tmp_path / "b") as other:
        one.stage_turns(ANN, [said(1)])
        other.import_(NEW_HOME, rows(one))
        assert other.sessions(NEW_HOME)[0].status == "open"
        assert other.commit_session(ANN) == 1


def test_a_corrected_turn_comes_back_as_it_was_said(tmp_path, list_index):
    with open_bank(tmp_path / "a") as one, open_bank(tmp_path / "b") as other:
        one.stage_turns(ANN, [said(1, "helo")])
        one.edit(ANN, one.raw_entries(ANN, ["D1:1"])[0].id, "hello")
        other.import_(NEW_HOME, rows(one))
        assert texts(other.session_turns(ANN)) == ["helo"]
        assert texts(other.raw_entries(ANN, ["D1:1"])) == ["hello"]


def test_another_users_export_becomes_ones_own_and_touches_nothing_of_theirs(bank):
    fill(bank)
    before = rows(bank)
    assert bank.import_(Scope(user="bob", workspace="w"), before) == len(before)
    assert rows(bank) == before
    mine = rows(bank, Scope(user="bob", workspace="w"))
    assert [row["text"] for row in mine] == [row["text"] for row in before]
    assert not {row["id"] for row in mine} & {row["id"] for row in before}
    assert {(row["scope"]["user"], row["scope"]["workspace"]) for row in mine} == {("bob", "w")}
    by_id = {row["id"]: row for row in mine}
    (old,) = [row for row in mine if row["status"] == "superseded"]
    assert by_id[old["superseded_by"]]["supersedes"] == [old["id"]]


def test_a_forged_id_is_derived_anew(bank):
    fill(bank)
    (row, *_) = rows(bank)
    forged = row | {"text": "something else", "granularity": "fact"}
    assert bank.import_(BOB.base, [forged]) == 1
    assert bank.get(NEW_HOME, [row["id"]])[0].text == row["text"]
    forged["scope"] = {"user": "ann", "workspace": "default", "session": "1"}
    assert bank.import_(NEW_HOME, [forged]) == 1
    assert bank.get(NEW_HOME, [row["id"]])[0].text == row["text"]


def test_the_same_words_are_merged_into_what_is_there(bank):
    apply(bank, ANN, [add("Ann lives in Graz", "D1:1")])
    record = {
        "scope": {"user": "x", "session": "7"}, "granularity": "fact", "text": "ann lives in graz.",
        "turns": ["D7:1"], "status": "active",
    }  # fmt: skip
    assert bank.import_(NEW_HOME, [record]) == 0
    (only,) = bank.entries(NEW_HOME)
    assert only.turns == ("D1:1", "D7:1")


def test_a_successor_that_merges_takes_its_predecessors_along(bank):
    fill(bank)
    exported = rows(bank)
    with_twin = Scope(user="carl", session="1")
    apply(bank, with_twin, [add("Fact 2 corrected!", "D1:9", scope=with_twin)])
    bank.import_(with_twin.base, exported)
    (old,) = bank.entries(with_twin.base, statuses=["superseded"])
    (twin,) = bank.get(with_twin, [old.superseded_by])
    assert twin.text == "Fact 2 corrected!"


def test_what_was_forgotten_is_not_imported(bank):
    fill(bank)
    exported = rows(bank)
    (corrected,) = [row for row in exported if row["text"] == "fact 2 corrected"]
    bank.forget(NEW_HOME, corrected["id"])
    left = rows(bank)
    bank.import_(NEW_HOME, exported)
    assert {row["text"] for row in rows(bank)} == {row["text"] for row in left}


def broken(**changes):
    good = {
        "scope": {"user": "x", "workspace": "default", "session": "1"},
        "granularity": "fact", "text": "fine", "turns": ["D1:1"], "status": "active",
    }  # fmt: skip
    row = copy.deepcopy(good) | changes
    return [good | {"text": "first"}, {name: value for name, value in row.items() if value is not Ellipsis}]


@pytest.mark.parametrize(
    ("records", "named"),
    [
        (broken(text=...), "record 2, field text"),
        (broken(text="  "), "record 2, field text"),
        (broken(granularity="novel"), "record 2, field granularity"),
        (broken(event_time="7 May 2023"), "record 2, field event_time"),
        (broken(observed_at="2023-05-07T12:00:00"), "record 2, field observed_at"),
        (broken(importance=7), "record 2, field importance"),
        (broken(turns="D1:1"), "record 2, field turns"),
        (broken(scope={"user": "x"}), "record 2, field scope.session"),
        (broken(scope={"user": "", "session": "1"}), "record 2, field scope.user"),
        (broken(colour="red"), "record 2, field colour"),
        (broken(status="superseded", superseded_by="nowhere"), "record 2, field superseded_by"),
        ([*broken()[:1], "text"], "record 2: expected an object"),
        ([*broken()[:1], {"text": {1}}], "record 2: not plain JSON"),
    ],
)
def test_a_bad_record_is_named_and_nothing_is_imported(bank, records, named):
    with pytest.raises(BadInput, match=named):
        bank.import_(NEW_HOME, records)
    assert rows(bank) == []
    assert bank.sessions(NEW_HOME) == []


def test_in_bulk_the_index_follows_at_the_end(bank, list_index):
    home, scopes = bank.settings.home, [Scope(user=name) for name in ("ann", "bob", "cy")]
    row = {"granularity": "fact", "status": "active", "turns": ["D1:1"]}
    with bank.bulk():
        for scope in scopes:
            made = [row | {"scope": scope.within("1").model_dump(), "text": f"{n} herons"} for n in range(3)]
            assert bank.import_(scope, made) == 3
            query = Query(text="2 herons")
            [hits] = bank.search(SearchRequest(scope=scope, queries=(query,)))
            assert hits[0].entry.text == "2 herons"
        assert bank.check()["outbox"] == 9
        assert home not in list_index or not list_index[home].ids()
    assert bank.check()["outbox"] == 0
    assert [len(list_index[home].ids(scope)) for scope in scopes] == [3, 3, 3]


def test_the_same_words_twice_in_one_file_are_one_entry(bank):
    row = {"granularity": "fact", "status": "active", "scope": ANN.model_dump()}
    made = [row | {"text": "Tea!", "turns": ["D1:1"]}, row | {"text": "tea", "turns": ["D1:2"]}]
    assert bank.import_(ANN, made) == 1
    [one] = bank.entries(ANN.base)
    assert (one.text, one.turns) == ("Tea!", ("D1:1", "D1:2"))
