"""Maintenance at a session's end, and what recall makes of entries that left."""

import pytest

from memcycle.agents.answerer import AnswererOutput
from memcycle.agents.judge import JudgeOutput
from memcycle.core.edit import Edit
from memcycle.core.entry import new_entry
from memcycle.core.errors import StoreBusy
from memcycle.core.turn import Turn
from memcycle.graph.search import names_in
from tests.graph.conftest import ANA, START
from tests.scripted import Always

LONG = "Ana brought a tin of roasted walnuts to the choir rehearsal in the old church"
SAID = ["I brought walnuts to the choir", "I keep bees", "it was a blue tin"]
DETAIL = LONG.replace("a tin", "a blue tin")
QUIET = {
    "judge": Always(JudgeOutput(relevant=[0], sufficient=True)),
    "answerer": Always(AnswererOutput(answer="x", answerable=True, citations=[0])),
}


@pytest.fixture
def told(bank, cycle):
    """Turns, committed, and facts that rest on them."""
    cycle.bank.stage_turns(ANA, read(cycle.turns(*SAID)))
    return bank


def read(turns):
    return [Turn.model_validate(turn) for turn in turns]


def put(bank, text, *turns, **fields):
    entry = new_entry(ANA, "fact", text, turns, **{"observed_at": START, "actor": "constructor"} | fields)
    (added,) = bank.apply(ANA, [Edit(op="ADD", entry=entry)]).added
    return added


def outdated(cycle):
    """Turns that recall shows as outdated, by number."""
    answerer = Always(AnswererOutput(answer="x", answerable=True, citations=[0]))
    cycle.recall("walnuts, bees or a blue tin", **QUIET | {"answerer": answerer})
    raws = [view for view in answerer.seen[-1].evidence if view.granularity == "raw"]
    assert len(raws) == len(SAID)
    return sorted(1 + SAID.index(view.text) for view in raws if not view.current)


def test_the_facts_of_a_session_are_united(told):
    less, more = put(told, LONG, "Ds1:1", importance=0.9), put(told, DETAIL, "Ds1:3")
    put(told, LONG.replace("walnuts", "cashews"), "Ds1:2")
    turns = ["Ds1:1", "Ds1:2", "Ds1:3"]
    assert [len(told.maintain(ANA, turns).united) for _ in range(2)] == [1, 0]
    told.commit_session(ANA)
    kept, gone = told.get(ANA, [more, less])
    assert (kept.status, kept.turns, kept.importance) == ("active", ("Ds1:3", "Ds1:1"), 0.9)
    assert (gone.status, gone.superseded_by) == ("superseded", more)


def test_a_question_reinforces_whom_it_names_at_the_next_maintenance(told, cycle):
    entry = put(told, "Ana keeps bees in Graz", "Ds1:2", persons=("Ana",), entities=("Ana", "Graz"))
    told.commit_session(ANA)
    cycle.recall("What does Ana keep in Graz?", **QUIET)
    cycle.recall("What does ana keep?", **QUIET)
    assert [told.maintain(ANA, []).reinforced for _ in range(2)] == [1, 0]
    assert told.get(ANA, [entry])[0].reinforcement == 0.15


def test_an_answer_does_not_wait_for_a_mention(told, cycle, monkeypatch, caplog):
    def busy(*args):
        raise StoreBusy("another process writes")

    put(told, "Ana keeps bees", "Ds1:2")
    monkeypatch.setattr(told, "mention", busy)
    assert cycle.recall("What does Ana keep?", **QUIET)["answer"]["answer"] == "x"
    assert "Ana" not in caplog.text
    assert "not noted" in caplog.text


def test_names_of_a_question():
    for question, known, names in [
        ("Where does Ana live?", (), ["Ana"]),
        ("where does ana live?", ("Ana",), ["Ana"]),
        ("Did Ben take Pixel to Graz?", (), ["Ben", "Pixel", "Graz"]),
        ("what was it?", (), []),
        ("", ("",), []),
    ]:
        assert sorted(names_in(question, known)) == sorted(names), question


def test_a_united_fact_leaves_its_turns_up(told, cycle):
    less, more = put(told, LONG, "Ds1:1"), put(told, DETAIL, "Ds1:3")
    assert [one.drop.id for one in told.maintain(ANA).united] == [less]
    assert outdated(cycle) == []
    told.edit(ANA, more, "Ana brought nothing")
    assert outdated(cycle) == [1, 3]


def test_a_withdrawn_repair_leaves_its_turn_up(told, cycle):
    entry = put(told, LONG, "Ds1:1", actor="repairer")
    told.settle_repairs(ANA, {}, [(entry, "")])
    assert outdated(cycle) == []


def test_an_expired_fact_leaves_its_turn_up_and_a_deleted_one_does_not(told, cycle):
    expired, deleted = put(told, LONG, "Ds1:1"), put(told, "Ana keeps bees", "Ds1:2")
    told.apply(ANA, [Edit(op="DELETE", target=expired, retention=True)])
    told.apply(ANA, [Edit(op="DELETE", target=deleted, quote="forget the bees")])
    assert outdated(cycle) == [2]


def test_a_statement_that_took_over_all_turns_contradicts_none(told, cycle):
    old = put(told, LONG, "Ds1:1")
    entry = new_entry(ANA, "fact", DETAIL, ("Ds1:1", "Ds1:3"), observed_at=START, actor="repairer")
    told.apply(ANA, [Edit(op="UPDATE", target=old, entry=entry, actor="repairer")])
    assert outdated(cycle) == []


def test_a_newer_fact_and_a_persons_word_take_turns_down(told, cycle):
    bees, tin = put(told, "Ana keeps bees", "Ds1:2"), put(told, "The tin is blue", "Ds1:3")
    newer = new_entry(ANA, "fact", "Ana sold her bees", ("Ds1:1",), observed_at=START)
    told.apply(ANA, [Edit(op="UPDATE", target=bees, entry=newer)])
    assert outdated(cycle) == [2]
    told.edit(ANA, tin, "The tin is red")
    assert outdated(cycle) == [2, 3]
    told.undo(ANA, tin)
    assert outdated(cycle) == [2]


def test_a_person_who_prefers_another_fact_takes_the_turn_down(told, cycle):
    bees, _ = put(told, "Ana keeps bees", "Ds1:2"), put(told, "Ana keeps wasps", "Ds1:1")
    told.edit(ANA, bees, "Ana keeps wasps")
    assert outdated(cycle) == [2]
