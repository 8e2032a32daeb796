"""Sessions of several users that end at once: none waits for another's model calls, nothing gets mixed."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.runnables import RunnableLambda

from memcycle import build_remember, build_session
from memcycle.agents.answerer import AnswererOutput
from memcycle.agents.constructor import ConstructorOutput, FactDraft
from memcycle.agents.grader import Grade, GraderOutput
from memcycle.agents.prober import ProbeDraft, ProberOutput
from memcycle.agents.repairer import RepairerOutput, RepairFact
from memcycle.agents.roles import Roles
from memcycle.core.scope import Scope
from tests.banks import said

USERS = [f"user{n}" for n in range(8)]
PATIENCE = 30
"""Seconds until a barrier says that somebody waits for somebody: far more than all of it takes."""


def text_of(user: str) -> str:
    return f"I keep the bees of {user} in Linz."


def context_of(user: str) -> dict:
    return {"user": user, "session": "1"}


def probes_of(value) -> ProberOutput:
    return ProberOutput(
        probes=[ProbeDraft(question="Whose bees are kept in Linz?", answer=value.turns[0].text, turn=1)]
    )


def repair_of(value) -> RepairerOutput:
    words = value.turns[0].text
    return RepairerOutput(op="ADD_FACT", fact=RepairFact(text=f"Ann said: {words}", turn=1, quote=words))


def roles_with(**given) -> Roles:
    """Roles whose answers are what is stored, and right."""

    def answer(value):
        return AnswererOutput(answer=value.evidence[0].text, answerable=True, citations=[0])

    def grade(value):
        return GraderOutput(grades=[Grade(n=item.n, correct=True) for item in value.items])

    return Roles(answerer=RunnableLambda(answer), grader=RunnableLambda(grade), **given)


@pytest.fixture
def told(bank):
    """Eight users, each with a session of which nothing but the turn was stored."""
    roles = Roles(constructor=RunnableLambda(lambda _: ConstructorOutput(facts=list[FactDraft]())))
    graph = build_remember(roles, bank)
    for user in USERS:
        value = {"turns": [said(1, text_of(user)).model_dump(mode="json")]}
        graph.invoke(value, context=context_of(user))
    return bank


def check(bank) -> None:
    for user in USERS:
        scope = Scope(user=user)
        entries = bank.entries(scope)
        assert {entry.status for entry in entries} == {"active"}
        assert all(user in entry.text for entry in entries)
        assert len(bank.entries(scope, granularity="fact")) == 1, "the repair is there, once"
        assert [probe.gold for probe in bank.probes(scope)] == [text_of(user)]
    report = bank.check()
    assert (report["outbox"], report["index"]) == (0, {"missing": 0, "stray": 0})


async def test_awaited(told):
    meeting = {role: asyncio.Barrier(len(USERS)) for role in ("prober", "repairer")}

    def met(role, answer):
        async def run(value):
            async with asyncio.timeout(PATIENCE):
                await meeting[role].wait()
            return answer(value)

        return RunnableLambda(answer, afunc=run)

    roles = roles_with(prober=met("prober", probes_of), repairer=met("repairer", repair_of))
    graph = build_session(roles, told)
    await asyncio.gather(*(graph.ainvoke({}, context=context_of(user)) for user in USERS))
    check(told)


def test_in_threads(told):
    meeting = {role: threading.Barrier(len(USERS)) for role in ("prober", "repairer")}

    def met(role, answer):
        def run(value):
            meeting[role].wait(PATIENCE)
            return answer(value)

        return RunnableLambda(run)

    roles = roles_with(prober=met("prober", probes_of), repairer=met("repairer", repair_of))
    graph = build_session(roles, told)
    with ThreadPoolExecutor(len(USERS)) as pool:
        list(pool.map(lambda user: graph.invoke({}, context=context_of(user)), USERS))
    check(told)
