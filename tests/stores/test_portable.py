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


CLOCK = ("recorded_at", "log")


def without_clock(row):
    return {name: value for name, value in row.items() if name not in CLOCK}


def without_log(exported):
    return [{name: value for name, value in row.items() if name != "log"} for row in exported]


def told(bank, scope, entry_id):
    """Its history without the ids of lines, which are those of one ledger, and without the import."""
    events = [event.model_dump(mode="json", exclude={"id"}) for event in bank.history(scope, entry_id)]
    return [event for event in events if event["action"] != "import"]


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
        assert without_log(rows(other)) == without_log(exported)
        assert other.import_(NEW_HOME, exported) == 0
        assert without_log(rows(other)) == without_log(exported)
        assert other.check()["index"] == {"missing": 0, "stray": 0}
        # Sessions and turns are back, so the same conversation is not taken in again.
        assert [(i.session, i.status, i.turns) for i in other.sessions(NEW_HOME)] == [
            ("1", "committed", 3), ("2", "committed", 3),
        ]  # fmt: skip
        assert other.session_turns(ANN) == one.session_turns(ANN)
        assert other.stage_turns(ANN, one.session_turns(ANN)) == one.session_turns(ANN)
        assert without_log(rows(other)) == without_log(exported)
        assert other.unprocessed(NEW_HOME) == []
        corrected = next(row for row in exported if row["text"] == "fact 2 corrected")
        assert other.history(NEW_HOME, corrected["id"])[-1].action == "import"
        assert len({event.entry_id for event in other.history(NEW_HOME, corrected["id"])}) == 2


def test_in_a_copy_history_tells_what_happened_and_undo_takes_it_back(tmp_path, list_index):
    with open_bank(tmp_path / "a") as one, open_bank(tmp_path / "b") as other:
        exported = rows(fill(one))
        cy = Scope(user="cy", workspace="w")
        for bank, scope in ((other, NEW_HOME), (other, cy), (one, cy)):
            for _ in range(2):
                bank.import_(scope, exported)
            theirs = {
                entry.text: entry.id for entry in bank.entries(scope, statuses=("active", "superseded"))
            }
            for row in exported:
                told_there = json.dumps(told(one, NEW_HOME, row["id"]))
                for text, entry_id in theirs.items():
                    (mine,) = (row["id"] for row in exported if row["text"] == text)
                    told_there = told_there.replace(mine, entry_id)
                assert json.dumps(told(bank, scope, theirs[row["text"]])) == told_there
        for bank, scope in ((one, NEW_HOME), (other, NEW_HOME), (other, cy)):
            (new,) = [entry for entry in bank.entries(scope) if entry.text == "fact 2 corrected"]
            restored = bank.undo(scope, new.id)
            assert (restored.text, restored.status) == ("fact 2 of 1", "active")
            assert [one.text for one in bank.entries(scope) if one.text.startswith("fact 2")] == [
                "fact 2 of 1", "fact 2 of 2",
            ]  # fmt: skip
            with pytest.raises(BadInput, match="no change to undo"):
                bank.undo(scope, new.id)
    with open_bank(tmp_path / "c") as third, open_bank(tmp_path / "b") as other:
        # What was taken back is taken back in a copy of the copy, too.
        third.import_(NEW_HOME, rows(other))
        (old,) = [entry for entry in third.entries(NEW_HOME) if entry.text == "fact 2 of 1"]
        assert "undo" in [event.action for event in third.history(NEW_HOME, old.id)]
        with pytest.raises(BadInput, match="no change to undo"):
            third.undo(NEW_HOME, old.id)


def test_a_chain_of_corrections_is_undone_step_by_step_in_a_copy(tmp_path, list_index):
    with open_bank(tmp_path / "a") as one, open_bank(tmp_path / "b") as other:
        fill(one)
        (entry,) = [entry for entry in one.entries(NEW_HOME) if entry.text == "fact 1 of 1"]
        for text in ("first", "second", "third"):
            entry = one.edit(NEW_HOME, entry.id, text, why=f"it is {text}")
        exported = rows(one)
        # Twins in a file make it come in in parts.
        other.import_(NEW_HOME, [*exported[::-1], exported[-1] | {"id": "", "turns": ["D2:9"]}])
        assert told(other, NEW_HOME, entry.id) == told(one, NEW_HOME, entry.id)
        assert [other.undo(NEW_HOME, entry.id).text for _ in range(3)] == ["second", "first", "fact 1 of 1"]


def test_the_log_is_small_beside_its_entries(bank):
    exported = rows(fill(bank))
    assert all(row["log"] for row in exported)
    assert len(json.dumps(exported)) < 1.35 * len(json.dumps(without_log(exported)))


def test_nothing_that_was_forgotten_is_in_an_export_or_comes_back_in_a_log(tmp_path, list_index):
    with open_bank(tmp_path / "a") as one, open_bank(tmp_path / "b") as other:
        exported = rows(fill(one))
        old, new = (
            next(row for row in exported if row["text"] == text)
            for text in ("fact 2 of 1", "fact 2 corrected")
        )
        for row in exported:
            row["log"] = [line | {"why": "fact 2 of 1 is out of date"} for line in row["log"]]
        other.import_(NEW_HOME, exported)
        other.forget(NEW_HOME, old["id"])
        assert "2 of 1" not in json.dumps(rows(other))
        other.forget(NEW_HOME, new["id"])
        other.import_(NEW_HOME, exported)
        one.forget(NEW_HOME, old["id"], only=True)
        one.import_(NEW_HOME, exported)
        for bank in (one, other):
            assert "2 of 1" not in json.dumps(rows(bank))
            with bank.ledger.read() as conn:
                assert not conn.execute(
                    "SELECT 1 FROM events WHERE why || before || after LIKE '%2 of 1%'"
                ).fetchall()


def test_an_entry_that_is_here_already_takes_no_log_over(bank):
    fill(bank)
    exported = rows(bank)
    cy = Scope(user="cy", session="1")
    apply(bank, cy, [add("Fact 1 of 1!", "D1:9", scope=cy)])
    bank.import_(cy.base, exported)
    with bank.ledger.read() as conn:
        orphans = conn.execute(
            "SELECT count(*) FROM events WHERE entry NOT IN (SELECT id FROM entries)"
        ).fetchone()
    assert orphans[0] == 0


def test_an_export_without_logs_is_still_read(tmp_path, list_index):
    with open_bank(tmp_path / "a") as one, open_bank(tmp_path / "b") as other:
        exported = without_log(rows(fill(one)))
        assert other.import_(NEW_HOME, exported) == len(exported)
        assert {event.action for row in exported for event in other.history(NEW_HOME, row["id"])} == {
            "import"
        }


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ({"n": "x"}, "record 1, field log.0.n"),
        ({"action": "explode"}, "record 1, field log.0.action"),
        ({"at": "2024-03-01"}, "record 1, field log.0.at"),
        ({"before": {"status": "gone"}}, "record 1, field log.0.before.status"),
        ({"after": {"valid_until": "soon"}}, "record 1, field log.0.after.valid_until"),
        ({"after": {"colour": "red"}}, "record 1, field log.0.after.colour"),
        ({"colour": "red"}, "record 1, field log.0.colour"),
    ],
)
def test_a_bad_line_of_a_log_is_named_and_nothing_is_imported(tmp_path, list_index, line, named):
    with open_bank(tmp_path / "a") as one, open_bank(tmp_path / "b") as other:
        exported = rows(fill(one))
        exported[0]["log"][0] |= line
        with pytest.raises(BadInput, match=named):
            other.import_(NEW_HOME, exported)
        assert rows(other) == []


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
