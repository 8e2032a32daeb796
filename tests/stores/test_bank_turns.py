import logging
import sqlite3

import pytest

from memcycle.core.errors import BadInput
from memcycle.core.turn import Turn
from tests.banks import ANN, BOB, SAID, add, open_bank, said, texts
from tests.fakes import FakeEmbeddings, with_nan


def ids(turns):
    return [turn.id for turn in turns]


def test_turns_are_stored_once_with_a_raw_entry_each(bank):
    given = [said(1, "hi"), said(2, "hello", speaker="Bea"), said(3, "hi")]
    assert bank.stage_turns(ANN, given) == given
    assert bank.stage_turns(ANN, given) == given
    assert bank.session_turns(ANN) == given
    raw = bank.raw_entries(ANN, ids(given))
    assert [(one.text, one.speaker, one.turns, one.status) for one in raw] == [
        ("hi", "Ann", ("D1:1",), "staged"),
        ("hello", "Bea", ("D1:2",), "staged"),
        ("hi", "Ann", ("D1:3",), "staged"),
    ]
    assert [one.observed_at for one in raw] == [turn.time for turn in given]
    assert bank.count(ANN) == {"raw": 3}
    assert [event.action for event in bank.history(ANN, raw[0].id)] == ["stage"]


def test_a_known_turn_is_not_embedded_again(tmp_path, list_index):
    embeddings = FakeEmbeddings()
    with open_bank(tmp_path / "h", embeddings=embeddings) as bank:
        bank.stage_turns(ANN, [said(1, "one")])
    with open_bank(tmp_path / "h", embeddings=embeddings) as bank:
        bank.stage_turns(ANN, [said(1, "one"), said(2, "two")])
    assert [call for call in embeddings.calls if call != ["dimension"]] == [["one"], ["two"]]


def test_a_message_id_is_what_makes_a_message_the_same(bank):
    first = said(1, "hi", message_id="m1")
    bank.stage_turns(ANN, [first])
    again = said(7, "hi", message_id="m1")
    assert bank.stage_turns(ANN, [again]) == [first]
    edited = said(7, "hi, edited", message_id="m1")
    assert bank.stage_turns(ANN, [edited]) == [edited.model_copy(update={"id": first.id, "position": 1})]
    # Many sources number each session from one.
    other = said(1, "hi", session="2", message_id="m1")
    assert bank.stage_turns(ANN.within("2"), [other]) == [other]


def test_a_taken_place_gives_the_next_free_one(bank):
    bank.stage_turns(ANN, [said(1, "one"), said(2, "two")])
    (moved,) = bank.stage_turns(ANN, [said(1, "another one")])
    assert (moved.id, moved.position) == ("D1:3", 3)
    # The same message asks for the same place again, or comes back as it was stored.
    assert bank.stage_turns(ANN, [said(1, "another one")]) == [moved]
    assert bank.stage_turns(ANN, [moved]) == [moved]
    assert bank.next_position(ANN) == 4


def test_an_own_id_is_kept_while_free(bank):
    (kept,) = bank.stage_turns(ANN, [said(1, "one", id="mine")])
    assert kept.id == "mine"
    (given,) = bank.stage_turns(ANN, [said(2, "two", id="mine")])
    assert given.id == "D1:2"


def test_an_own_id_in_the_way_is_walked_around(bank):
    bank.stage_turns(ANN.within("0"), [said(1, "zero", session="0", id="D1:1")])
    (placed,) = bank.stage_turns(ANN, [said(1, "one")])
    assert placed.position == 2
    assert placed.id == "D1:2"


def test_a_place_before_the_first_is_none(bank):
    (placed,) = bank.stage_turns(ANN, [said(0, "x")])
    assert placed.position == 1


def test_a_turn_of_another_session_is_refused_whole(bank):
    with pytest.raises(BadInput, match="turn D2:1 is of session '2'"):
        bank.stage_turns(ANN, [said(1), said(1, session="2")])
    assert bank.session_turns(ANN) == []
    with pytest.raises(BadInput, match="session"):
        bank.stage_turns(ANN.base, [said(1)])


def test_turns_of_other_users_are_unknown(bank):
    bank.stage_turns(ANN, [said(1)])
    assert bank.turns(BOB, ["D1:1"]) == []
    assert bank.session_turns(BOB) == []
    assert bank.turn_states(BOB, ["D1:1"]) == {}
    bank.apply(BOB, [], turns=["D1:1"], state="processed")
    assert bank.turn_states(ANN, ["D1:1"]) == {"D1:1": "staged"}


def test_a_window_of_turns(bank):
    bank.stage_turns(ANN, [said(n, str(n)) for n in range(1, 8)])
    assert texts(bank.session_turns(ANN, last=2)) == ["6", "7"]
    assert texts(bank.session_turns(ANN, last=2, before=4)) == ["2", "3"]
    assert texts(bank.session_turns(ANN, last=0)) == []
    assert texts(bank.turns(ANN, ["D1:3", "D1:1", "none", "D1:3"])) == ["3", "1"]


def test_reading_is_followed_turn_by_turn(bank):
    bank.stage_turns(ANN, [said(n, str(n)) for n in range(1, 4)])
    bank.stage_turns(ANN.within("2"), [said(1, "x", session="2")])
    bank.apply(ANN, [add("one", "D1:1")], turns=["D1:1"], state="processed")
    bank.apply(ANN, [], turns=["D1:2"], state="unextracted")
    assert ids(bank.unprocessed(ANN)) == ["D1:2", "D1:3"]
    assert ids(bank.unprocessed(ANN.base)) == ["D1:2", "D1:3", "D2:1"]


def test_a_bad_state_undoes_the_edits_too(bank):
    bank.stage_turns(ANN, [said(1)])
    with pytest.raises(sqlite3.IntegrityError):
        bank.apply(ANN, [add("one", "D1:1")], turns=["D1:1"], state="done")
    assert bank.entries(ANN, granularity="fact") == []


def test_the_open_segment_begins_after_the_last_episode(bank):
    bank.stage_turns(ANN, [said(n, str(n)) for n in range(1, 6)])
    assert len(bank.open_segment(ANN)) == 5
    bank.apply(ANN, [add("summary", "D1:1", "D1:2", granularity="episode")], close_segment_at=2)
    assert ids(bank.open_segment(ANN)) == ["D1:3", "D1:4", "D1:5"]
    bank.apply(ANN, [], close_segment_at=1)
    assert len(bank.open_segment(ANN)) == 3


def test_a_failing_embedder_loses_no_turn(tmp_path, list_index, caplog):
    embeddings = FakeEmbeddings(script=[ConnectionError("http://key@host down")])
    with open_bank(tmp_path / "h", embeddings=embeddings) as bank:
        with caplog.at_level(logging.WARNING):
            bank.stage_turns(ANN, [said(1, "a secret")])
        assert texts(bank.session_turns(ANN)) == ["a secret"]
        assert bank.check()["without_vector"] == 1
        assert "1 texts stored without a vector: ConnectionError" in caplog.text
        assert "secret" not in caplog.text
        assert "key" not in caplog.text
        bank.commit_session(ANN)
        assert bank.check()["without_vector"] == 0
        assert len(list_index[bank.settings.home].ids()) == 1


def test_one_bad_text_spoils_no_other(tmp_path, list_index):
    embeddings = FakeEmbeddings(script=[None, with_nan, None, with_nan])
    with open_bank(tmp_path / "h", embeddings=embeddings) as bank:
        bank.stage_turns(ANN, [said(1, "warm up")])
        bank.stage_turns(ANN, [said(2, "good"), said(3, "worse")])
        assert bank.check()["without_vector"] == 1
        assert bank.rebuild() == 0
        assert bank.check()["without_vector"] == 0


def test_a_blank_turn_is_stored_and_needs_no_vector(bank):
    bank.stage_turns(ANN, [said(1, " ")])
    assert bank.commit_session(ANN) == 1
    report = bank.check()
    assert (report["without_vector"], report["index"]) == (0, {"missing": 0, "stray": 0})


def test_commit_makes_staged_entries_active_once(bank, list_index):
    bank.stage_turns(ANN, [said(1), said(2)])
    bank.apply(ANN, [add("fact", "D1:1")])
    assert bank.commit_session(ANN) == 3
    assert bank.commit_session(ANN) == 3
    assert {one.status for one in bank.entries(ANN)} == {"active"}
    assert list_index[bank.settings.home].ids() == {one.id for one in bank.entries(ANN)}
    assert bank.commit_session(ANN.within("never seen")) == 0
    assert [info.session for info in bank.sessions(ANN)] == ["1"]
    (info,) = bank.sessions(ANN.base)
    assert (info.status, info.turns, info.staged) == ("committed", 2, 0)
    assert (info.first, info.last) == (said(1).time, said(2).time)


def test_late_turns_reopen_a_session_as_a_new_staged_part(bank):
    bank.stage_turns(ANN, [said(1, "early")])
    bank.commit_session(ANN)
    bank.stage_turns(ANN, [said(1, "early")])
    assert bank.sessions(ANN)[0].status == "committed"
    bank.stage_turns(ANN, [said(2, "late")])
    assert bank.sessions(ANN)[0].status == "open"
    assert {one.text: one.status for one in bank.entries(ANN)} == {"early": "active", "late": "staged"}
    assert bank.commit_session(ANN) == 1


def test_an_entry_of_a_committed_session_is_active_at_once(bank):
    bank.stage_turns(ANN, [said(1)])
    bank.commit_session(ANN)
    (made,) = bank.apply(ANN, [add("found later", "D1:1")]).added
    assert bank.get(ANN, [made])[0].status == "active"
    assert bank.drain() == 1


def test_lexical_windows_are_the_two_turns_before(bank):
    from memcycle.stores.search import lexical

    bank.stage_turns(ANN, [said(1, "quokka"), said(2, "b"), said(3, "c"), said(4, "d")])
    bank.commit_session(ANN)
    with bank.ledger.read() as conn:
        (found,) = [lexical.score(conn, ANN.key, "raw", [["quokka"]])][0]
    assert len(found.rows) == 3


def test_turns_keep_their_fields(bank):
    turn = Turn(
        id="x", session="1", position=4, speaker="tool", role="tool", text="t", time=SAID, message_id="m"
    )
    bank.stage_turns(ANN, [turn])
    assert bank.turns(ANN, ["x"]) == [turn]
    assert bank.next_position(ANN) == 5
