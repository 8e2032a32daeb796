"""What a repair wrote and nobody weighed never becomes permanent, whatever comes between."""

import pytest

from memcycle.core.edit import Edit
from memcycle.core.probe import REPAIRER, Attempt, Probe, Repair, SessionReport, probe_id
from memcycle.core.settings import Retention
from tests.banks import ANN, add, fact, open_bank, said, texts, update

FAILED = Attempt(verdict="failed")


def stage(bank, *positions):
    bank.stage_turns(ANN, [said(n, f"line {n}") for n in positions])


def probe(bank, n=1, part=1, **fields):
    seq = bank.session_seq(ANN)
    values = {"kind": "single-hop", "question": f"question {n}?", "gold": f"gold {n}", "before": FAILED}
    values |= {"turn": f"D1:{n}"} | fields
    return Probe(id=probe_id(ANN, seq, part, n), session="1", part=part, n=n, **values)


def write(bank, edit, n=1, considered=(), **fields):
    """A probe whose repair wrote something; gives the repair."""
    asked = probe(bank, n, repair=Repair(draft={"text": "x"}, turn=f"D1:{n}"), **fields)
    bank.save_probes(ANN, [asked])
    by = edit.model_copy(update={"actor": REPAIRER})
    return bank.write_repair(ANN, asked.id, by, {"decision": "INSERT", "considered": considered})


def facts(bank):
    return sorted(texts(bank.entries(ANN, granularity="fact")))


def repairs(bank):
    return [one.repair for one in bank.probes(ANN)]


def forget_turn(bank):
    (raw,) = bank.raw_entries(ANN, ["D1:3"])
    bank.forget(ANN, raw.id)


def forget_evidence(bank):
    (tea,) = [one for one in bank.entries(ANN, granularity="fact") if "tea" in one.text]
    bank.forget(ANN, tea.id, only=True)


@pytest.mark.parametrize("forget", [forget_turn, forget_evidence])
@pytest.mark.parametrize("state", ["written", "kept"])
def test_it_goes_with_its_probe(bank, forget, state):
    stage(bank, 1, 2, 3)
    (tea,) = bank.apply(ANN, [add("Ann drinks tea", "D1:2")]).added
    seen = Attempt(evidence=(tea,), verdict="failed")
    repair = write(bank, add("Ann keeps bees", "D1:1"), before=seen)
    change = {"repair": repair.model_copy(update={"state": state})}
    bank.update_probes(ANN, {probe(bank).id: change})
    forget(bank)
    assert bank.probes(ANN) == []
    assert ("Ann keeps bees" in facts(bank)) is (state == "kept")


def test_forgetting_what_it_took_the_place_of_leaves_none_of_its_chain(bank):
    stage(bank, 1, 2)
    (oldest,) = bank.apply(ANN, [add("Ann lives in Graz", "D1:1")]).added
    (old,) = bank.apply(ANN, [update(oldest, "Ann lives in Linz", "D1:1")]).updated
    merged = update(old, "Ann lives in Linz with Eva", "D1:1", "D1:2")
    write(bank, merged, considered=[old])
    bank.forget(ANN, old, only=True)
    assert bank.entries(ANN, granularity="fact") == []
    (left,) = bank.get(ANN, [oldest])
    assert (left.status, left.superseded_by) == ("forgotten", None)


@pytest.mark.parametrize("given", [{"until": 2}, {"unverified": "it could not be ended: OSError"}, {}])
def test_no_commit_lets_it_in(bank, given):
    stage(bank, 1, 2)
    (old,) = bank.apply(ANN, [add("Ann keeps bees", "D1:1")]).added
    bank.begin_verification(ANN)
    write(bank, update(old, "Ann keeps bees and hens", "D1:1", "D1:2"))
    write(bank, add("Ann rows", "D1:2"), 2)
    committed = bank.commit_session(ANN, **given)
    assert (facts(bank), bank.get(ANN, [old])[0].status) == (["Ann keeps bees"], "active")
    assert committed == 3
    assert [(one.state, one.why) for one in repairs(bank)] == [("rolled_back", "nobody weighed it")] * 2
    assert bank.commit_session(ANN, **given) == 3


def test_answers_from_what_no_commit_lets_in_do_not_count(bank):
    stage(bank, 1)
    repair = write(bank, add("Ann keeps bees", "D1:1"))
    passed = Attempt(answer="bees", cited=(repair.entry,), verdict="passed")
    bank.update_probes(ANN, {probe(bank).id: {"after": passed}})
    bank.commit_session(ANN)
    (left,) = bank.probes(ANN)
    assert (left.verdict, left.as_before) == ("failed", True)


def test_a_weighed_one_is_committed(bank):
    stage(bank, 1)
    repair = write(bank, add("Ann keeps bees", "D1:1"))
    bank.settle_repairs(ANN, {probe(bank).id: {"repair": repair.model_copy(update={"state": "kept"})}}, [])
    bank.commit_session(ANN, until=1)
    assert facts(bank) == ["Ann keeps bees"]


def test_one_that_could_not_be_graded_stays_until_it_is_examined_anew(bank):
    stage(bank, 1)
    repair = write(bank, add("Ann keeps bees", "D1:1"))
    kept = {"repair": repair.model_copy(update={"state": "kept"}), "after": Attempt(answer="bees")}
    bank.update_probes(ANN, {probe(bank).id: kept})
    bank.commit_session(ANN, until=1, unverified="role 'grader' failed")
    assert facts(bank) == ["Ann keeps bees"]
    bank.begin_verification(ANN)
    bank.save_probes(ANN, [], replace_part=1)
    assert facts(bank) == []


@pytest.mark.parametrize(
    "note", [Repair(state="skipped", decision="NOOP", why="none"), Repair(draft={"text": "y"}, turn="D1:1")]
)
def test_another_ends_repairer_does_not_overwrite_its_note(bank, note):
    stage(bank, 1)
    repair = write(bank, add("Ann keeps bees", "D1:1"))
    bank.update_probes(ANN, {probe(bank).id: {"repair": note, "after": FAILED}})
    (left,) = bank.probes(ANN)
    assert (left.repair, left.after) == (repair, FAILED)


def test_a_note_of_what_became_of_it_is_the_last(bank):
    stage(bank, 1)
    repair = write(bank, add("Ann keeps bees", "D1:1"))
    bank.commit_session(ANN)
    bank.update_probes(ANN, {probe(bank).id: {"repair": repair.model_copy(update={"state": "kept"})}})
    assert [one.state for one in repairs(bank)] == ["rolled_back"]


def test_nothing_is_written_after_another_end_committed(bank):
    stage(bank, 1)
    bank.commit_session(ANN)
    repair = write(bank, add("Ann keeps bees", "D1:1"))
    assert (repair.decision, repair.state, facts(bank)) == ("REFUSED", "refused", [])
    assert repair.why == "another end of the session committed it meanwhile"


def test_what_it_was_decided_by_must_be_there_still(bank):
    stage(bank, 1, 2)
    (tea,) = bank.apply(ANN, [add("Ann drinks tea", "D1:2")]).added
    asked = probe(bank, repair=Repair(draft={"text": "x"}, turn="D1:1"))
    bank.save_probes(ANN, [asked])
    bank.forget(ANN, tea, only=True)
    decided = {"decision": "INSERT", "why": "not the tea", "considered": [tea]}
    assert bank.write_repair(ANN, asked.id, add("Ann keeps bees", "D1:1"), decided) is None
    assert (repairs(bank), facts(bank)) == ([asked.repair], [])


@pytest.mark.parametrize("edit", ["ADD", "MERGE"])
def test_a_write_that_changes_nothing_is_none(bank, edit):
    stage(bank, 1)
    (old,) = bank.apply(ANN, [add("Ann keeps bees", "D1:1", actor=REPAIRER)]).added
    said_again = (
        add("Ann keeps bees.", "D1:1")
        if edit == "ADD"
        else Edit(op="MERGE", target=old, entry=fact("bees", "D1:1"))
    )
    repair = write(bank, said_again)
    assert (repair.decision, repair.state, repair.entry) == ("SKIP", "skipped", old)
    bank.commit_session(ANN)
    assert facts(bank) == ["Ann keeps bees"]


def test_applied_tells_which_merges_changed_nothing(bank):
    stage(bank, 1, 2)
    (old,) = bank.apply(ANN, [add("Ann keeps bees", "D1:1")]).added
    again = bank.apply(ANN, [add("Ann keeps bees", "D1:1")])
    assert (again.merged, again.unchanged) == ([old], [old])
    more = bank.apply(ANN, [add("Ann keeps bees.", "D1:2")])
    assert (more.merged, more.unchanged) == ([old], [])


def test_probes_stored_before_it_are_read_still(bank):
    stage(bank, 1)
    bank.save_probes(ANN, [probe(bank, repair=Repair(draft={"text": "x"}, turn="D1:1", decision="NOOP"))])
    with bank.ledger.write() as conn:
        conn.execute("UPDATE probes SET data = json_remove(data, '$.repair.considered')")
    assert [one.considered for one in repairs(bank)] == [()]


# A session that began anew under the name of a forgotten one


@pytest.fixture
def anew(bank):
    """A session, forgotten, whose name and turn ids another has now; gives the number of the first."""
    stage(bank, 1)
    seq = bank.begin_verification(ANN).seq
    bank.forget_user("ann")
    stage(bank, 1)
    return seq


def test_its_number_is_another_one(bank, anew):
    assert bank.session_seq(ANN) > anew
    assert bank.begin_verification(ANN).seq == bank.session_seq(ANN)
    assert bank.session_seq(ANN.within("never")) is None


def test_edits_that_stem_from_the_forgotten_one_are_refused(bank, anew):
    applied = bank.apply(
        ANN, [add("Ann keeps bees", "D1:1")], turns=["D1:1"], state="processed", close_segment_at=1, seq=anew
    )
    assert [one.why for one in applied.rejected] == ["its session was forgotten meanwhile"]
    assert (facts(bank), len(bank.unprocessed(ANN)), len(bank.open_segment(ANN))) == ([], 1, 1)
    assert bank.apply(ANN, [add("Ann keeps bees", "D1:1")], seq=bank.session_seq(ANN)).added


def test_probes_of_the_forgotten_one_are_refused(bank, anew):
    own = probe(bank)
    bank.save_probes(ANN, [own], replace_part=1, seq=bank.session_seq(ANN))
    stale = own.model_copy(update={"id": probe_id(ANN, anew, 1, 1), "question": "of the forgotten one?"})
    assert stale.id != own.id
    assert not bank.save_probes(ANN, [stale], replace_part=1, seq=anew)
    assert bank.probes(ANN) == [own]


def test_the_end_of_the_forgotten_one_commits_nothing(bank, anew):
    assert bank.commit_session(ANN, until=1, report=SessionReport(probes=9), seq=anew) == 0
    (info,) = bank.sessions(ANN)
    assert (info.status, info.staged, info.report.probes) == ("open", 1, 0)


def test_probes_are_not_stored_where_a_turn_they_were_made_of_is_gone(bank):
    stage(bank, 1, 2)
    assert bank.save_probes(ANN, [probe(bank)], shown=["D1:1", "D1:2"])
    (raw,) = bank.raw_entries(ANN, ["D1:2"])
    bank.forget(ANN, raw.id)
    assert not bank.save_probes(ANN, [probe(bank)], shown=["D1:1", "D1:2"])
    assert bank.probes(ANN) == []


@pytest.mark.parametrize("rules", [(), (Retention(granularity="raw", max_entries=0),)])
def test_an_unexamined_part_stays_told_of_after_a_later_one(tmp_path, list_index, rules):
    with open_bank(tmp_path / "h", retention=rules) as bank:
        stage(bank, 1)
        bank.maintain(ANN)
        bank.commit_session(ANN, unverified="skipped")
        stage(bank, 2)
        until = bank.begin_verification(ANN).until
        bank.maintain(ANN)
        bank.commit_session(ANN, until=until)
        assert bank.sessions(ANN)[0].reason == "skipped"
        bank.begin_verification(ANN)
        bank.commit_session(ANN, until=until)
        assert bank.sessions(ANN)[0].reason == ""
