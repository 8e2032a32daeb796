import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from memcycle.core.edit import Edit
from memcycle.core.errors import BadInput
from memcycle.core.probe import REPAIRER, SessionReport
from memcycle.core.settings import Settings
from memcycle.stores.chroma import mirror
from memcycle.stores.search.request import Query, SearchRequest
from tests.banks import ANN, BOB, ListIndex, add, fact, open_bank, said, texts, update
from tests.fakes import FakeEmbeddings


def info(bank, scope=ANN):
    (found,) = bank.sessions(scope)
    return found


def stage(bank, *positions, scope=ANN):
    """Turns, each with a fact."""
    bank.stage_turns(scope, [said(n, f"line {n}", session=scope.session) for n in positions])
    for n in positions:
        bank.apply(scope, [add(f"fact {n}", f"D{scope.session}:{n}", scope=scope)])


def statuses(bank, scope=ANN):
    return {entry.text: entry.status for entry in bank.entries(scope)}


def examine(bank, scope=ANN, **options):
    part = bank.begin_verification(scope)
    return bank.commit_session(scope, until=part.until, **options)


def commits(bank, scope=ANN):
    """How often each entry was committed, by the log."""
    return {
        entry.text: sum(event.action == "commit" for event in bank.history(scope, entry.id))
        for entry in bank.entries(scope)
    }


def test_an_examination_is_of_a_session_that_exists(bank):
    with pytest.raises(BadInput, match="there is no session '1'"):
        bank.begin_verification(ANN)
    assert bank.sessions(ANN.base) == []
    with pytest.raises(BadInput, match="a scope with a session"):
        bank.begin_verification(ANN.base)
    stage(bank, 1)
    with pytest.raises(BadInput, match="there is no session"):
        bank.begin_verification(BOB)
    assert info(bank).status == "open"


def test_what_is_written_under_examination_is_staged(bank):
    stage(bank, 1, 2)
    assert bank.begin_verification(ANN)[:2] == (1, 2)
    assert (info(bank).status, info(bank).part) == ("verifying", 1)
    (repair,) = bank.apply(ANN, [add("repaired", "D1:1")]).added
    assert bank.get(ANN, [repair])[0].status == "staged"
    assert bank.commit_session(ANN, until=2) == 5
    assert set(statuses(bank).values()) == {"active"}
    assert (info(bank).status, info(bank).part, info(bank).report.committed) == ("committed", 1, 5)


@pytest.mark.parametrize("ends_first", ["1", "2"])
def test_a_fact_of_an_open_session_that_another_replaces_stays_replaced(bank, ends_first):
    elsewhere = ANN.within("2")
    stage(bank, 1)
    bank.stage_turns(elsewhere, [said(1, "line 2", session="2")])
    (old,) = bank.entries(ANN, granularity="fact")
    (new,) = bank.apply(elsewhere, [update(old.id, "fact 2", "D2:1", scope=elsewhere)]).updated
    for session in (ends_first, *({"1", "2"} - {ends_first})):
        bank.begin_verification(ANN.within(session))
        bank.commit_session(ANN.within(session))
    assert statuses(bank, ANN.base) == {"line 1": "active", "line 2": "active", "fact 2": "active"}
    assert bank.get(ANN, [old.id])[0].superseded_by == new
    assert bank.undo(ANN, new).id == old.id


def test_a_repair_that_another_session_replaced_is_not_taken_back_from_it(bank):
    elsewhere = ANN.within("2")
    stage(bank, 1)
    bank.stage_turns(elsewhere, [said(1, "line 2", session="2")])
    bank.begin_verification(ANN)
    repaired = Edit(op="ADD", entry=fact("repaired", "D1:1"), actor=REPAIRER)
    (old,) = bank.apply(ANN, [repaired]).added
    (new,) = bank.apply(elsewhere, [update(old, "better", "D2:1", scope=elsewhere)]).updated
    assert bank.settle_repairs(ANN, {}, [(old, "it did not help")]) == []
    bank.commit_session(ANN)
    bank.commit_session(elsewhere)
    assert [one.status for one in bank.get(ANN, [old, new])] == ["superseded", "active"]


def test_what_is_forgotten_is_gone_from_the_session_that_goes_on_elsewhere(bank):
    elsewhere = ANN.within("2")
    stage(bank, 1)
    bank.stage_turns(elsewhere, [said(1, "line 2", session="2")])
    (old,) = bank.entries(ANN, granularity="fact")
    (new,) = bank.apply(elsewhere, [update(old.id, "fact 2", "D2:1", scope=elsewhere)]).updated
    assert len(bank.forget(elsewhere, new)) == 2
    bank.commit_session(ANN)
    bank.commit_session(elsewhere)
    assert statuses(bank, ANN.base) == {"line 1": "active"}
    assert bank.get(ANN, [old.id])[0].status == "forgotten"


def test_walled_in_repairs_are_found_in_their_session_only(list_index, tmp_path):
    with open_bank(tmp_path / "home", visibility="session") as bank:
        _found_in_their_session_only(bank)


def _found_in_their_session_only(bank):
    stage(bank, 1)
    bank.begin_verification(ANN)
    bank.apply(ANN, [add("the walnuts were repaired", "D1:1")])

    def found(scope):
        (hits,) = bank.search(SearchRequest(scope=scope, queries=(Query(text="walnuts repaired"),), k=3))
        return "the walnuts were repaired" in texts(hit.entry for hit in hits)

    assert found(ANN)
    assert not found(ANN.within("2"))
    bank.commit_session(ANN)
    assert found(ANN.within("2"))


def test_beginning_again_is_the_same_part_with_the_turns_since(bank):
    stage(bank, 1)
    assert bank.begin_verification(ANN)[:2] == bank.begin_verification(ANN)[:2] == (1, 1)
    stage(bank, 2)
    assert info(bank).status == "verifying"
    assert bank.begin_verification(ANN)[:2] == (1, 2)
    assert bank.commit_session(ANN, until=2) == 4
    assert info(bank).status == "committed"


def test_a_late_turn_under_examination_becomes_the_next_part(bank):
    stage(bank, 1, 2)
    part = bank.begin_verification(ANN)
    stage(bank, 3)
    assert (info(bank).status, info(bank).part) == ("verifying", 1)
    assert bank.commit_session(ANN, until=part.until) == 4
    assert (info(bank).status, info(bank).part, info(bank).staged) == ("open", 2, 2)
    assert statuses(bank) == {
        "line 1": "active", "line 2": "active", "fact 1": "active", "fact 2": "active",
        "line 3": "staged", "fact 3": "staged",
    }  # fmt: skip
    assert bank.begin_verification(ANN)[:2] == (2, 3)
    assert texts(bank.part_turns(ANN, 3)) == ["line 3"]
    assert bank.commit_session(ANN, until=3) == 2
    assert (info(bank).status, info(bank).part, info(bank).report.committed) == ("committed", 2, 6)
    assert set(commits(bank).values()) == {1}


def test_a_late_turn_after_examination_reopens_the_session_once(bank):
    stage(bank, 1)
    examine(bank)
    stage(bank, 2)
    stage(bank, 3)
    assert (info(bank).status, info(bank).part) == ("open", 2)
    assert bank.begin_verification(ANN)[:2] == (2, 3)
    assert texts(bank.part_turns(ANN, 3)) == ["line 2", "line 3"]


def test_a_turn_known_already_reopens_nothing(bank):
    stage(bank, 1)
    examine(bank)
    bank.stage_turns(ANN, [said(1, "line 1")])
    assert (info(bank).status, info(bank).part) == ("committed", 1)


def test_part_turns_are_all_where_none_waits(bank):
    stage(bank, 1, 2, 3)
    assert texts(bank.part_turns(ANN, 2)) == ["line 1", "line 2"]
    examine(bank)
    assert texts(bank.part_turns(ANN, 2)) == ["line 1", "line 2"]
    assert bank.part_turns(BOB, 3) == bank.part_turns(ANN.within("2"), 3) == []


def test_a_committed_session_is_examined_again(bank):
    stage(bank, 1, 2)
    examine(bank, report=SessionReport(probes=5, passed_before=2, passed_after=2))
    assert bank.begin_verification(ANN)[:2] == (1, 2)
    assert texts(bank.part_turns(ANN, 2)) == ["line 1", "line 2"]
    bank.apply(ANN, [add("repaired", "D1:2")])
    assert bank.commit_session(ANN, until=2, report=SessionReport(probes=4, passed_after=4)) == 5
    report = info(bank).report
    assert (report.probes, report.passed_before, report.passed_after, report.committed) == (4, 0, 4, 5)
    assert (info(bank).status, info(bank).part) == ("committed", 1)


def test_a_repeated_commit_changes_nothing_and_drains(bank, list_index):
    stage(bank, 1, 2)
    part = bank.begin_verification(ANN)
    report = SessionReport(probes=3, passed_before=1, passed_after=2)
    assert bank.commit_session(ANN, until=part.until, report=report) == 4
    before = (info(bank), list(bank.export(ANN)), commits(bank))
    index = list_index[bank.settings.home]
    with bank.ledger.write() as conn:
        index.held.clear()
        mirror.outbox.put_active(conn, ANN)
    again = bank.commit_session(ANN, until=part.until, unverified="no", report=SessionReport(probes=9))
    assert (again, info(bank), list(bank.export(ANN)), commits(bank)) == (4, *before)
    assert bank.commit_session(ANN) == 4
    assert index.ids() == {entry.id for entry in bank.entries(ANN)}


def test_a_repeated_commit_leaves_the_next_part_alone(bank):
    stage(bank, 1, 2)
    part = bank.begin_verification(ANN)
    stage(bank, 3)
    bank.commit_session(ANN, until=part.until, report=SessionReport(probes=3))
    # A fact of the new part that rests on an old turn too.
    bank.apply(ANN, [add("both", "D1:1", "D1:3")])
    before = (info(bank), statuses(bank))
    assert bank.commit_session(ANN, until=part.until, report=SessionReport(probes=3)) == 4
    assert (info(bank), statuses(bank)) == before
    assert statuses(bank)["both"] == "staged"
    assert examine(bank) == 3
    assert info(bank).report.probes == 3


def test_what_has_no_place_in_the_session_is_committed_with_any_part(bank):
    stage(bank, 1)
    other = ANN.within("2")
    stage(bank, 8, 9, scope=other)
    part = bank.begin_verification(ANN)
    bank.apply(ANN, [add("of no turn"), add("of another session's turn", "D2:9"), add("of none known", "x")])
    stage(bank, 2)
    bank.commit_session(ANN, until=part.until)
    assert {text for text, status in statuses(bank).items() if status == "staged"} == {"line 2", "fact 2"}
    assert set(statuses(bank, other).values()) == {"staged"}


def test_a_fact_united_with_a_late_turn_belongs_to_its_first(bank):
    stage(bank, 1, 2)
    part = bank.begin_verification(ANN)
    stage(bank, 3)
    (united,) = bank.apply(ANN, [add("fact 1", "D1:3")]).merged
    bank.commit_session(ANN, until=part.until)
    (entry,) = bank.get(ANN, [united])
    assert (entry.status, entry.turns) == ("active", ("D1:1", "D1:3"))
    assert examine(bank) == 2


def test_a_forgotten_late_turn_leaves_nothing_to_reopen(bank):
    stage(bank, 1)
    part = bank.begin_verification(ANN)
    stage(bank, 2)
    (late,) = bank.raw_entries(ANN, ["D1:2"])
    bank.forget(ANN, late.id)
    bank.commit_session(ANN, until=part.until)
    assert (info(bank).status, info(bank).staged) == ("committed", 0)


def test_committed_unverified_says_why_and_is_listed(bank):
    stage(bank, 1)
    assert examine(bank, unverified="the Prober failed") == 2
    assert (info(bank).status, info(bank).reason) == ("committed_unverified", "the Prober failed")
    assert set(statuses(bank).values()) == {"active"}
    assert bank.check()["unverified_sessions"] == [
        {"user": "ann", "workspace": "default", "session": "1", "reason": "the Prober failed"}
    ]
    assert examine(bank) == 2
    assert (info(bank).status, info(bank).reason) == ("committed", "")
    assert bank.check()["unverified_sessions"] == []


def test_examining_a_late_part_does_not_vouch_for_an_earlier_one(bank):
    stage(bank, 1)
    examine(bank, unverified="the Prober failed")
    stage(bank, 2)
    assert (info(bank).status, info(bank).reason) == ("open", "the Prober failed")
    examine(bank)
    assert (info(bank).status, info(bank).reason) == ("committed_unverified", "the Prober failed")
    # Now nothing waits, so the whole session is what is examined.
    examine(bank)
    assert (info(bank).status, info(bank).reason) == ("committed", "")


def test_a_late_turn_does_not_hide_that_a_part_is_unverified(bank):
    stage(bank, 1)
    part = bank.begin_verification(ANN)
    stage(bank, 2)
    bank.commit_session(ANN, until=part.until, unverified="the Grader failed")
    assert (info(bank).status, info(bank).reason) == ("open", "the Grader failed")
    examine(bank)
    assert info(bank).status == "committed_unverified"


def test_a_failed_second_look_is_told(bank):
    stage(bank, 1)
    examine(bank)
    examine(bank, unverified="the Prober failed")
    assert info(bank).status == "committed_unverified"


def test_reports_are_summed_over_parts(bank):
    used = {"prober": {"calls": 1, "input_tokens": 10, "output_tokens": 2}}
    first = SessionReport(probes=5, passed_before=2, passed_after=4, ungraded=1, repairs=2, usage=used)
    second = SessionReport(probes=3, passed_after=3, rolled_back=1, merged=1, committed=77, usage=used)
    assert info_of_nothing(bank) == SessionReport()
    stage(bank, 1, 2)
    examine(bank, report=first)
    stage(bank, 3)
    examine(bank, report=second)
    assert info(bank).report == SessionReport(
        probes=8, passed_before=2, passed_after=7, ungraded=1, repairs=2, rolled_back=1, merged=1,
        committed=6, usage={"prober": {"calls": 2, "input_tokens": 20, "output_tokens": 4}},
    )  # fmt: skip


def info_of_nothing(bank):
    bank.stage_turns(BOB, [said(1)])
    return info(bank, BOB).report


def test_sessions_of_one_user_end_apart(bank):
    other = ANN.within("2")
    stage(bank, 1)
    bank.stage_turns(other, [said(1, session="2")])
    bank.begin_verification(ANN)
    assert bank.commit_session(other) == 1
    assert info(bank, other).status == "committed"
    assert info(bank).status == "verifying"
    assert set(statuses(bank).values()) == {"staged"}


def test_ending_a_session_from_several_threads_ends_it_once(bank):
    stage(bank, 1, 2)
    part = bank.begin_verification(ANN)
    with ThreadPoolExecutor(4) as pool:
        ends = [pool.submit(bank.commit_session, ANN, until=part.until) for _ in range(6)]
        late = pool.submit(bank.stage_turns, ANN, [said(3, "late")])
        assert {end.result() for end in ends} == {4}
        late.result()
    assert statuses(bank)["late"] == "staged"
    assert (info(bank).status, info(bank).part, info(bank).report.committed) == ("open", 2, 4)
    assert sum(commits(bank).values()) == 4


def test_undoing_under_examination_stays_staged(bank):
    stage(bank, 1)
    (fact,) = bank.entries(ANN, granularity="fact")
    bank.begin_verification(ANN)
    bank.apply(ANN, [Edit(op="DELETE", target=fact.id, quote="forget it")])
    assert bank.undo(ANN, fact.id).status == "staged"


def test_what_had_no_vector_is_embedded_with_its_part(tmp_path, list_index):
    embeddings = FakeEmbeddings(script=[ConnectionError("down")] * 2)
    with open_bank(tmp_path / "h", embeddings=embeddings) as bank:
        bank.stage_turns(ANN, [said(1, "one")])
        part = bank.begin_verification(ANN)
        bank.stage_turns(ANN, [said(2, "two")])
        assert bank.check()["without_vector"] == 2
        bank.commit_session(ANN, until=part.until)
        assert bank.check()["without_vector"] == 0
        assert len(list_index[bank.settings.home].ids()) == 1


def test_an_index_that_is_down_delays_no_commit(tmp_path, list_index, caplog):
    home = tmp_path / "h"
    list_index[home] = index = ListIndex(Settings(home=home))
    taking = index.upsert

    def down(items, batch):
        raise mirror.StoreError("the Chroma server does not answer")

    index.upsert = down
    with open_bank(home) as bank, caplog.at_level(logging.WARNING):
        stage(bank, 1)
        assert examine(bank) == 2
        assert info(bank).status == "committed"
        index.upsert = taking
        assert bank.drain() == 2
        assert bank.check()["index"] == {"missing": 0, "stray": 0}


def test_a_forgotten_user_has_no_session_to_end(bank):
    stage(bank, 1)
    part = bank.begin_verification(ANN)
    bank.forget_user("ann")
    assert bank.commit_session(ANN, until=part.until, unverified="why", report=SessionReport(probes=1)) == 0
    assert bank.sessions(ANN.base) == []
    with pytest.raises(BadInput, match="there is no session"):
        bank.begin_verification(ANN)
