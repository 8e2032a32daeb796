"""An end that was broken off leaves nothing that its examination would have taken back."""

from dataclasses import replace

import pytest
from langchain_core.runnables import RunnableLambda

from memcycle.agents.answerer import AnswererOutput
from memcycle.agents.consolidator import ConsolidatorOutput
from memcycle.agents.roles import Roles
from memcycle.graph import build_session
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


class Provider(Exception):
    """What a provider raises when it cannot be reached."""


def answers_once_then_breaks():
    return Scripted(AnswererOutput(answer="Memory does not say.", answerable=False), Provider("away"))


def repairs(bank):
    return [entry.text for entry in bank.entries(ANA, granularity="fact") if entry.actor == "repairer"]


def test_a_repair_nobody_weighed_is_weighed_by_the_next_end(cycle):
    with pytest.raises(Provider):
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
    with pytest.raises(Provider):
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
    assert probe.repair.settled
    result = cycle.end(verify=True, **(plain() | {"episode_writer": Scripted()}))["result"]
    assert (result["passed_before"], repairs(cycle.bank)) == (1, [ALLERGY.text])


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
