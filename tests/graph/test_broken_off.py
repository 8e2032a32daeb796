"""An end that was broken off leaves nothing that its examination would have taken back."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from langchain_core.runnables import RunnableLambda

from memcycle import build_session
from memcycle.agents.answerer import AnswererOutput
from memcycle.agents.consolidator import ConsolidatorOutput
from memcycle.agents.prober import ProbeDraft, ProberOutput
from memcycle.agents.repairer import RepairFact
from memcycle.agents.roles import Roles
from memcycle.core.errors import MemcycleError, RoleFailed
from tests.graph.conftest import ANA
from tests.graph.test_session_graph import (
    ALLERGY,
    BEES,
    NOOP,
    SAID,
    WALNUTS,
    adds,
    asks,
    knows,
    lost,
    plain,
    probes,
)
from tests.scripted import Always, Scripted

NEVER = Always(AnswererOutput(answer="Memory does not say.", answerable=False))


PATIENCE = 30
"""Seconds until a wait says that nobody comes."""
WALNUT_PROBE = ProbeDraft(question=WALNUTS[0], answer=WALNUTS[1], turn=1)


class Broken(MemcycleError):
    """What breaks a run off: a disk that is full, a process that ends."""


def answers_once_then_breaks():
    return Scripted(AnswererOutput(answer="Memory does not say.", answerable=False), Broken("away"))


def repairs(bank):
    return [entry.text for entry in bank.entries(ANA, granularity="fact") if entry.actor == "repairer"]


def test_a_repair_nobody_weighed_is_weighed_by_the_next_end(cycle):
    with pytest.raises(Broken):
        lost(cycle, answerer=answers_once_then_breaks(), repairer=Scripted(adds(ALLERGY)))
    assert repairs(cycle.bank) == [ALLERGY.text]
    again = plain() | {"episode_writer": Scripted(), "answerer": NEVER, "repairer": Scripted(adds(ALLERGY))}
    result = cycle.end(**again)["result"]
    assert (result["status"], result["repairs"], result["rolled_back"]) == ("committed", 0, 1)
    assert repairs(cycle.bank) == []


def test_turns_merged_into_a_stored_fact_leave_it_with_the_broken_off_end(cycle):
    stored = "Ana is allergic to walnuts"
    cycle.remember(SAID[0], constructor=knows(stored))
    cycle.end(verify=False)
    cycle.remember(*SAID[1:], "I am allergic to walnuts, as I said.", session="s2", constructor=knows())
    merging = Scripted(ConsolidatorOutput(decision="MERGE", memory=0, text=stored))
    fact = ALLERGY.model_copy(
        update={"turn": 3, "quote": "allergic to walnuts", "text": "Allergic to walnuts"}
    )
    roles = plain() | {
        "prober": asks((*WALNUTS[:2], 3)),
        "repairer": Scripted(adds(fact)),
        "consolidator": merging,
    }
    with pytest.raises(Broken):
        cycle.end("s2", **(roles | {"answerer": answers_once_then_breaks()}))
    (united,) = cycle.bank.entries(ANA.base, granularity="fact")
    assert united.turns == ("Ds1:1", "Ds2:3")
    again = plain() | {"prober": asks((*WALNUTS[:2], 3)), "episode_writer": Scripted(), "answerer": NEVER}
    cycle.end("s2", **(again | {"repairer": Scripted(NOOP)}))
    (left,) = cycle.bank.entries(ANA.base, granularity="fact")
    assert left.turns == ("Ds1:1",)


def test_a_repair_that_was_weighed_stays_when_the_session_is_examined_again(cycle):
    lost(cycle, repairer=Scripted(adds(ALLERGY)))
    (probe,) = probes(cycle)
    assert probe.repair.state == "kept"
    result = cycle.end(verify=True, **(plain() | {"episode_writer": Scripted()}))["result"]
    assert (result["passed_before"], repairs(cycle.bank)) == (1, [ALLERGY.text])


def give_up(cycle):
    cycle.bank.commit_session(ANA, unverified="it could not be ended: Broken")


def forget_another_turn(cycle):
    (raw,) = [one for one in cycle.bank.entries(ANA, granularity="raw") if "loom" in one.text]
    cycle.bank.forget(ANA, raw.id)
    cycle.end(prober=asks(), episode_writer=Scripted())


@pytest.mark.parametrize(
    "then",
    [give_up, forget_another_turn, lambda cycle: cycle.end(verify=False)],
    ids=["given up", "another turn forgotten", "ended unverified"],
)
def test_a_repair_nobody_weighed_is_not_committed(cycle, then):
    with pytest.raises(Broken):
        lost(cycle, answerer=answers_once_then_breaks(), repairer=Scripted(adds(ALLERGY)))
    assert repairs(cycle.bank) == [ALLERGY.text]
    then(cycle)
    assert (repairs(cycle.bank), cycle.bank.sessions(ANA)[0].is_committed) == ([], True)
    assert cycle.bank.sessions(ANA)[0].report.repairs == 0


def test_what_is_forgotten_while_repairs_are_weighed_takes_them_along(cycle):
    asked = []

    def answer(_):
        asked.append(1)
        if len(asked) > 1:
            (row,) = [one for one in cycle.bank.entries(ANA, granularity="fact") if "Eva" in one.text]
            cycle.bank.forget(ANA, row.id)
        return AnswererOutput(answer="Memory does not say.", answerable=False)

    result = lost(cycle, "Eva keeps bees", answerer=Always(answer), repairer=Scripted(adds(ALLERGY)))[
        "result"
    ]
    assert (len(asked), repairs(cycle.bank), result["repairs"]) == (2, [], 0)


def test_a_repair_whose_second_answer_could_not_be_graded_is_weighed_by_the_next_examination(cycle):
    answers = Scripted(
        AnswererOutput(answer="Memory does not say.", answerable=False),
        AnswererOutput(answer="walnuts", answerable=True, citations=[0]),
    )
    failing = Scripted(RoleFailed("grader", "cut"))
    result = lost(cycle, answerer=answers, grader=failing, repairer=Scripted(adds(ALLERGY)))["result"]
    assert (result["status"], result["ungraded"]) == ("committed_unverified", 1)
    assert repairs(cycle.bank) == [ALLERGY.text], "it is grounded: until then it stays"
    again = plain() | {"episode_writer": Scripted(), "answerer": NEVER, "repairer": Scripted(NOOP)}
    assert cycle.end(verify=True, **again)["result"]["status"] == "committed"
    assert repairs(cycle.bank) == []


CHAIN = (
    "I have a walnut allergy.",
    "My walnut allergy is bad in spring.",
    "My walnut allergy in spring comes with a rash.",
)


def chained(**given):
    """Two repairs, of which the second is merged with what the first became."""

    def repair(value):
        bad = "Ana has a bad walnut allergy in spring"
        if "bad" in value.question:
            return adds(RepairFact(text=bad, turn=value.source, quote="allergy is bad in spring"))
        text = f"{bad} with a rash"
        return adds(RepairFact(text=text, turn=value.source, quote="in spring comes with a rash"))

    return {
        "prober": asks(("When is it bad?", "spring", 2), ("What comes as a rash?", "the walnut allergy", 3)),
        "repairer": Always(repair),
        "consolidator": Always(lambda v: ConsolidatorOutput(decision="MERGE", memory=0, text=v.text)),
    } | given


@pytest.mark.parametrize("broken_off", [False, True])
def test_repairs_merged_upon_each_other_are_all_taken_back(cycle, broken_off):
    cycle.remember(*CHAIN, constructor=knows("Ana has a walnut allergy"))
    roles = plain() | chained(answerer=NEVER)
    if broken_off:
        never = AnswererOutput(answer="Memory does not say.", answerable=False)
        with pytest.raises(Broken):
            # Both probes are asked about at once: the second may have begun when the first failed.
            away = (Broken("away"), Broken("away"))
            cycle.end(**(roles | {"answerer": Scripted(never, never, *away)}))
        assert repairs(cycle.bank) == ["Ana has a bad walnut allergy in spring with a rash"]
        roles |= {"repairer": Always(NOOP), "prober": chained()["prober"], "episode_writer": Scripted()}
    result = cycle.end(**roles)["result"]
    assert cycle.facts() == ["Ana has a walnut allergy"]
    assert (result["repairs"], result["rolled_back"]) == (0, 0 if broken_off else 2)


def test_repairs_merged_into_one_that_helps_all_stay(cycle):
    def answer(value):
        held = [view.n for view in value.evidence if "spring" in view.text and "bad" in value.question]
        return AnswererOutput(answer="spring", answerable=bool(held), citations=held[:1])

    cycle.remember(*CHAIN, constructor=knows("Ana has a walnut allergy"))
    result = cycle.end(**(plain() | chained(answerer=Always(answer))))["result"]
    assert cycle.facts() == ["Ana has a bad walnut allergy in spring with a rash"]
    assert (result["repairs"], result["rolled_back"], result["merged"]) == (2, 0, 2)
    assert (result["passed_after"], result["warnings"]) == (1, [])


def test_a_repair_that_changes_nothing_does_not_take_an_earlier_one_along(cycle):
    may, april = (
        ALLERGY.model_copy(update={"event_time": datetime(2024, n, 1, tzinfo=UTC), "event_precision": "day"})
        for n in (5, 4)
    )
    lost(cycle, repairer=Scripted(adds(may)))
    again = plain() | {"episode_writer": Scripted(), "answerer": NEVER, "repairer": Scripted(adds(april))}
    result = cycle.end(verify=True, **again)["result"]
    assert (result["rolled_back"], repairs(cycle.bank)) == (0, [ALLERGY.text])


@pytest.mark.parametrize("second", [NOOP, adds(ALLERGY)])
def test_of_two_ends_at_once_neither_loses_the_note_of_a_repair(cycle, second):
    """The second end has its Repairer asked while the first one writes, and commits before that weighs it."""
    cycle.remember(*SAID, constructor=knows())
    at = {name: threading.Event() for name in ("first repairs", "second repairs", "written", "committed")}

    def repair_first(_):
        at["first repairs"].set()
        assert at["second repairs"].wait(PATIENCE)
        return adds(ALLERGY.model_copy(update={"text": "Ana dislikes every nut"}))

    def repair_second(_):
        at["second repairs"].set()
        assert at["written"].wait(PATIENCE)
        return second

    def answer_first(value):
        if value.evidence and any("nut" in view.text for view in value.evidence):
            at["written"].set()
            assert at["committed"].wait(PATIENCE)
        return AnswererOutput(answer="Memory does not say.", answerable=False)

    roles = plain() | {"prober": Always(ProberOutput(probes=[WALNUT_PROBE])), "answerer": NEVER}
    with ThreadPoolExecutor() as pool:
        first = roles | {"answerer": Always(answer_first), "repairer": Always(repair_first)}
        running = pool.submit(cycle.end, **first)
        assert at["first repairs"].wait(PATIENCE)
        other = cycle.end(**(roles | {"episode_writer": Scripted(), "repairer": Always(repair_second)}))
        at["committed"].set()
        result = running.result(PATIENCE)["result"]
    assert repairs(cycle.bank) == []
    assert [one["repairs"] for one in (other["result"], result)] == [0, 0]


@pytest.mark.parametrize("name", ["prober", "answerer", "repairer", "consolidator"])
def test_an_end_that_another_end_of_the_same_session_overtakes_ends_too(cycle, name):
    """The other one runs whole while a role of the first is asked."""
    cycle.remember(*SAID, constructor=knows("Ana has a walnut allergy"))
    others: list[dict] = []

    def roles():
        return {
            "prober": asks(WALNUTS, BEES),
            "answerer": NEVER,
            "repairer": Always(adds(ALLERGY)),
            "consolidator": Always(ConsolidatorOutput(decision="INSERT")),
        }

    first = roles()
    own = first.get(name) or getattr(Roles.rules(), name)

    def slow(value):
        if not others:
            others.append({})
            others.append(cycle.end(**roles())["result"])
        return own.invoke(value)

    slowed = replace(Roles.rules(), **(first | {name: RunnableLambda(slow)}))
    graph = build_session(slowed, cycle.bank)
    result = graph.invoke({}, context={"user": "ana", "session": "s1"})["result"]
    assert (others[1]["status"], result["status"]) == ("committed", "committed")
    assert repairs(cycle.bank) == [], "no answer rests on a repair: none may stay"
    assert {entry.status for entry in cycle.bank.entries(ANA)} == {"active"}
