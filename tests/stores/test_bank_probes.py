import json

import pytest

from memcycle.core.edit import Edit
from memcycle.core.errors import BadInput
from memcycle.core.probe import REPAIRER, Attempt, Probe, Repair, SessionReport, probe_id
from memcycle.core.scope import Scope
from memcycle.stores.ledger import probes
from tests.banks import ANN, BOB, add, files_holding, open_bank, said, texts

MARKER = "Zebraquux"


def probe(n=1, turn=None, *, scope=ANN, part=1, **fields):
    values = {"kind": "single-hop", "question": f"question {n}?", "gold": f"gold {n}"} | fields
    turn = turn or f"D{scope.session}:{n}"
    return Probe(
        id=probe_id(scope, 1, part, n), session=scope.session, part=part, n=n, turn=turn, **values
    )  # fmt: skip


def stage(bank, *positions, scope=ANN):
    """Turns, each with a fact; gives the facts' ids."""
    bank.stage_turns(scope, [said(n, f"line {n}", session=scope.session) for n in positions])
    edits = [add(f"fact {n}", f"D{scope.session}:{n}", scope=scope) for n in positions]
    return bank.apply(scope, edits).added


def numbers(probes):
    return [one.n for one in probes]


def rich(fact, words):
    """A probe with these words in every field that can hold some."""
    tried = {"answer": words, "evidence": (fact,), "cited": (fact,), "why": words}
    repair = Repair(
        cause="missing", draft={"text": words}, turn="D1:2", decision="INSERT", entry=fact, state="written",
        why=words,
    )  # fmt: skip
    return probe(
        1, question=words, gold=words, memories=(fact,), before=Attempt(**tried, verdict="failed"),
        after=Attempt(**tried, verdict="passed"), repair=repair,
    )  # fmt: skip


def test_probes_keep_all_they_hold(bank):
    (fact, _) = stage(bank, 1, 2)
    given = rich(fact, "Grüße, \"quoted\" 'words'; -- and\nlines")
    bank.save_probes(ANN, [given])
    assert bank.probes(ANN) == [given]


def test_a_probe_takes_the_place_of_the_one_with_its_id(bank):
    stage(bank, 1, 2)
    bank.save_probes(ANN, [probe(1), probe(2)])
    answered = probe(1, before=Attempt(answer="x", verdict="passed"))
    bank.save_probes(ANN, [answered])
    assert bank.probes(ANN) == [answered, probe(2)]


def test_a_parts_probes_are_made_anew(bank):
    stage(bank, 1, 2, 3)
    bank.save_probes(ANN, [probe(1), probe(2)], replace_part=1)
    bank.save_probes(ANN, [probe(1, "D1:3", part=2)], replace_part=2)
    bank.save_probes(ANN, [probe(1, question="another?")], replace_part=1)
    assert [(one.part, one.question) for one in bank.probes(ANN)] == [(1, "another?"), (2, "question 1?")]
    assert numbers(bank.probes(ANN, part=2)) == [1]
    bank.save_probes(ANN, [], replace_part=1)
    assert [one.part for one in bank.probes(ANN)] == [2]


def test_probes_come_as_sessions_began(bank):
    first, second = ANN.within("z"), ANN.within("a")
    for scope in (first, second):
        stage(bank, 1, 2, scope=scope)
    bank.save_probes(second, [probe(2, scope=second), probe(1, scope=second)])
    bank.save_probes(first, [probe(1, "Dz:2", scope=first, part=2), probe(2, scope=first)])
    found = [(one.session, one.part, one.n) for one in bank.probes(ANN.base)]
    assert found == [("z", 1, 2), ("z", 2, 1), ("a", 1, 1), ("a", 1, 2)]
    assert [one.session for one in bank.probes(ANN.base, part=2)] == ["z"]


def test_a_probe_of_another_session_is_refused_whole(bank):
    stage(bank, 1)
    other = ANN.within("2")
    stage(bank, 1, scope=other)
    with pytest.raises(BadInput, match="is of session '2', the scope names '1'"):
        bank.save_probes(ANN, [probe(1), probe(1, scope=other)], replace_part=1)
    assert bank.probes(ANN.base) == []
    with pytest.raises(BadInput, match="a scope with a session"):
        bank.save_probes(ANN.base, [])


def test_probes_of_users_and_workspaces_are_apart(bank):
    work = Scope(user="ann", workspace="work", session="1")
    for scope in (ANN, BOB, work):
        (fact,) = stage(bank, 1, scope=scope)
        bank.save_probes(scope, [probe(1, scope=scope, gold=scope.key, memories=(fact,))])
    # The same id in another's scope is another probe.
    bank.save_probes(BOB, [probe(1, gold="bob's own")], replace_part=1)
    assert [one.gold for one in bank.probes(BOB.base)] == ["bob's own"]
    assert [one.gold for one in bank.probes(ANN.base)] == [ANN.key]
    bank.save_probes(BOB, [], replace_part=1)
    assert [one.gold for one in bank.probes(work.base)] == [work.key]
    bank.forget_user("ann", "work")
    assert bank.probes(work) == []
    assert [one.gold for one in bank.probes(ANN)] == [ANN.key]


def test_turns_and_entries_of_another_user_carry_no_probe(bank):
    (fact,) = stage(bank, 1)
    stage(bank, 2, scope=BOB)
    bank.save_probes(BOB, [probe(1, scope=BOB), probe(2, scope=BOB, memories=(fact,)), probe(3, "D1:2")])
    assert numbers(bank.probes(BOB)) == [3]


@pytest.mark.parametrize(
    "holding",
    [
        lambda fact: {"memories": (fact,)},
        lambda fact: {"before": Attempt(evidence=(fact,))},
        lambda fact: {"before": Attempt(cited=(fact,))},
        lambda fact: {"after": Attempt(evidence=(fact,))},
        lambda fact: {"after": Attempt(cited=(fact,))},
        lambda fact: {"repair": Repair(entry=fact)},
        lambda fact: {"repair": Repair(considered=(fact,))},
    ],
)
def test_a_probe_goes_with_any_entry_it_may_hold_words_of(bank, holding):
    facts = stage(bank, 1, 2, 3)
    bank.commit_session(ANN)
    bank.save_probes(ANN, [probe(3), probe(2, **holding(facts[0]))])
    (theirs,) = stage(bank, 1, scope=BOB)
    bank.save_probes(BOB, [probe(1, scope=BOB, memories=(theirs,))])
    bank.forget(ANN, facts[0], only=True)
    assert numbers(bank.probes(ANN)) == [3]
    assert numbers(bank.probes(BOB)) == [1]


def test_the_probes_of_a_session_go_with_any_of_its_turns(bank):
    """Who made a probe was shown them all, and may have put words of one into a question about another."""
    other = ANN.within("2")
    stage(bank, 1, 2, 3)
    stage(bank, 1, scope=other)
    bank.save_probes(ANN, [probe(2), probe(3, part=2)])
    bank.save_probes(
        other, [probe(1, scope=other), probe(2, "D1:1", scope=other), probe(3, "D2:1", scope=other)]
    )
    stage(bank, 1, scope=BOB)
    bank.save_probes(BOB, [probe(1, scope=BOB)])
    bank.commit_session(ANN, report=SessionReport(probes=2))
    (raw,) = bank.raw_entries(ANN, ["D1:1"])
    bank.forget(ANN, raw.id)
    assert bank.probes(ANN) == []
    assert numbers(bank.probes(other)) == [1, 3], "but for the one that rests on the turn itself"
    assert numbers(bank.probes(BOB)) == [1]
    assert bank.sessions(ANN)[0].report.probes == 2


def test_what_was_forgotten_meanwhile_is_not_stored_again(bank):
    facts = stage(bank, 1, 2, 3)
    held = [probe(1), probe(2, before=Attempt(evidence=(facts[0],))), probe(3)]
    bank.save_probes(ANN, held)
    bank.forget(ANN, facts[0])
    assert bank.probes(ANN) == []
    bank.save_probes(ANN, held)
    assert numbers(bank.probes(ANN)) == [3]
    bank.forget_user("ann")
    bank.save_probes(ANN, held)
    assert bank.probes(ANN) == []
    stage(bank, 3)
    assert bank.probes(ANN) == []


def test_an_entry_that_was_taken_back_leaves_its_probe(bank):
    (fact,) = stage(bank, 1)
    bank.save_probes(ANN, [probe(1, repair=Repair(entry=fact, state="written"))])
    bank.apply(ANN, [Edit(op="DELETE", target=fact, quote="no")])
    rolled_back = probe(1, repair=Repair(entry=fact, state="rolled_back"))
    bank.save_probes(ANN, [rolled_back])
    assert bank.probes(ANN) == [rolled_back]


@pytest.mark.parametrize("all_of_it", [False, True])
def test_forgetting_leaves_no_byte_of_a_probe(tmp_path, list_index, all_of_it):
    with open_bank(tmp_path / "h") as bank:
        fact, _ = stage(bank, 1, 2)
        bank.save_probes(ANN, [rich(fact, MARKER)])
        bank.commit_session(ANN, report=SessionReport(probes=1))
        assert files_holding(tmp_path / "h", MARKER.encode())
        if all_of_it:
            assert bank.forget_user("ann") == 4
        else:
            bank.forget(ANN, fact)
        assert bank.probes(ANN) == []
        assert files_holding(tmp_path / "h", MARKER.encode()) == []


def test_exports_hold_no_probes(bank, tmp_path):
    stage(bank, 1)
    before = list(bank.export(ANN.base))
    bank.save_probes(ANN, [probe(1, gold=MARKER)])
    assert list(bank.export(ANN.base)) == before
    with open_bank(tmp_path / "other") as other:
        other.import_(ANN.base, before)
        assert other.probes(ANN.base) == []
        assert bank.import_(ANN.base, before) == 0
    assert numbers(bank.probes(ANN)) == [1]


def test_fields_of_a_probe_are_changed_beside_each_other(bank):
    bank.stage_turns(ANN, [said(1), said(2)])
    bank.save_probes(ANN, [probe(1), probe(2)])
    before, repair = Attempt(answer="bees"), Repair(decision="NOOP")
    bank.update_probes(ANN, {probe(1).id: {"before": before}})
    bank.update_probes(ANN, {probe(1).id: {"repair": repair}, "gone": {"before": before}})
    assert bank.probes(ANN) == [probe(1, before=before, repair=repair), probe(2)]


def test_a_repair_is_written_and_noted_at_once_or_not_at_all(bank, monkeypatch):
    bank.stage_turns(ANN, [said(1), said(2)])
    asked = probe(1, repair=Repair(draft={"text": "Ann keeps bees"}, turn="D1:1"))
    bank.save_probes(ANN, [asked])

    def broken(*_):
        raise OSError("the disk is full")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="full"):
        patched.setattr(probes, "put", broken)
        bank.write_repair(ANN, asked.id, add("Ann keeps bees", "D1:1"), {"decision": "INSERT"})
    assert bank.entries(ANN, granularity="fact") == []
    repair = bank.write_repair(ANN, asked.id, add("Ann keeps bees", "D1:1"), {"decision": "INSERT"})
    (entry,) = bank.entries(ANN, granularity="fact")
    assert (repair.state, repair.entry) == ("written", entry.id)
    assert bank.write_repair(ANN, asked.id, add("other", "D1:1"), {"decision": "INSERT"}) == repair
    assert bank.entries(ANN, granularity="fact") == [entry]


def test_a_repair_of_a_probe_that_is_gone_is_not_written(bank):
    bank.stage_turns(ANN, [said(1), said(2)])
    bank.save_probes(ANN, [probe(1)])
    assert bank.write_repair(ANN, probe(1).id, add("of no proposal", "D1:1"), {"decision": "INSERT"}) is None
    assert bank.write_repair(ANN, "gone", add("of no probe", "D1:1"), {"decision": "INSERT"}) is None
    assert bank.entries(ANN, granularity="fact") == []


def test_a_refused_repair_says_why(bank):
    bank.stage_turns(ANN, [said(1), said(2)])
    asked = probe(1, repair=Repair(draft={"text": "x"}, turn="D1:1"))
    bank.save_probes(ANN, [asked])
    repair = bank.write_repair(ANN, asked.id, add("x", "D1:99"), {"decision": "INSERT", "why": "new"})
    assert (repair.decision, repair.state, repair.entry) == ("REFUSED", "refused", None)
    assert "turn D1:99" in repair.why


@pytest.mark.parametrize("state", ["kept", "written"])
def test_probes_made_anew_take_back_what_nobody_weighed(bank, state):
    bank.stage_turns(ANN, [said(1), said(2)])
    failed = Attempt(verdict="failed")
    asked = probe(1, before=failed, repair=Repair(draft={"text": "x"}, turn="D1:1"))
    bank.save_probes(ANN, [asked])
    edit = add("Ann keeps bees", "D1:1").model_copy(update={"actor": REPAIRER})
    repair = bank.write_repair(ANN, asked.id, edit, {"decision": "INSERT"})
    bank.update_probes(ANN, {asked.id: {"repair": repair.model_copy(update={"state": state})}})
    bank.save_probes(ANN, [probe(1)], replace_part=1)
    assert texts(bank.entries(ANN, granularity="fact")) == (["Ann keeps bees"] if state == "kept" else [])


@pytest.mark.parametrize(
    ("flags", "decision", "state"),
    [
        ({}, None, "proposed"),
        ({"failed": True}, "NOOP", "failed"),
        ({}, "NOOP", "skipped"),
        ({}, "REFUSED", "refused"),
        ({"wrote": True}, "INSERT", "written"),
        ({"wrote": True, "settled": True}, "MERGE", "kept"),
        ({"wrote": True, "settled": True, "rolled_back": True}, "INSERT", "rolled_back"),
    ],
)
def test_repairs_of_former_versions_are_read(bank, flags, decision, state):
    bank.stage_turns(ANN, [said(1), said(2)])
    bank.save_probes(ANN, [probe(1, repair=Repair(draft={"text": "x"}, turn="D1:1"))])
    stored = {"draft": {"text": "x"}, "turn": "D1:1", "decision": decision, "entry": None, "why": ""}
    stored |= {"failed": False, "wrote": False, "settled": False, "rolled_back": False, **flags}
    with bank.ledger.write() as conn:
        conn.execute("UPDATE probes SET data = json_set(data, '$.repair', json(?))", (json.dumps(stored),))
    (left,) = bank.probes(ANN)
    assert (left.repair.state, left.repair.decision) == (state, decision)
