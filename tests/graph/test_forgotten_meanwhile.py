"""What is forgotten while a graph runs stays forgotten, and the run ends as if it had never been said."""

from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from langchain_core.runnables import RunnableLambda

from memcycle.agents.grader import Grade, GraderOutput
from memcycle.agents.roles import Roles
from memcycle.core.errors import StoreError
from memcycle.graph import build_remember, build_session
from tests.graph.conftest import ANA

MARKER = "quokka"
SAID = (
    f"My {MARKER} Bruno moved to Graz on 3 May 2023.",
    "I am allergic to walnuts and I love raspberries.",
    f"Yesterday I bought a red lamp for the {MARKER} in Linz.",
    "I no longer live in Vienna, I moved to Graz.",
)
REMEMBERING = ("retriever", "judge", "guide", "constructor", "fact_judge", "refresher")
ENDING = ("episode_writer", "prober", "answerer", "grader", "repairer", "consolidator")


def forget_turn(bank) -> None:
    for raw in bank.entries(ANA, granularity="raw"):
        if MARKER in raw.text:
            bank.forget(ANA, raw.id)


def forget_user(bank) -> None:
    bank.forget_user("ana")


STRICT = RunnableLambda(
    lambda value: GraderOutput(grades=[Grade(n=item.n, correct=False) for item in value.items])
)
"""A Grader that lets nothing pass, so that every probe is repaired."""


def forgetting(name: str, forget: Callable[[], None], asked: list[str]) -> Roles:
    """Rules, of which one role is slow: when its reply comes, something was forgotten meanwhile."""
    rules = replace(Roles.rules(), grader=STRICT)
    own = getattr(rules, name)

    def slow(value):
        reply = own.invoke(value)
        if not asked:
            forget()
        asked.append(name)
        return reply

    return replace(rules, **{name: RunnableLambda(slow)})


def held(bank) -> str:
    """All that the ledger holds, as text."""
    with bank.ledger.read() as conn:
        tables = [row["name"] for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = [
            tuple(row)
            for table in tables
            if not table.startswith(("lexical_data", "lexical_idx"))
            for row in conn.execute(f'SELECT * FROM "{table}"')
        ]
    return repr(rows).casefold()


def test_every_role_is_tried():
    untried = {field.name for field in fields(Roles)} - {*REMEMBERING, *ENDING}
    assert untried == {"episode_trigger", "query_reasoner", "answerability", "model_name"}


@pytest.mark.parametrize("forget", [forget_turn, forget_user])
@pytest.mark.parametrize("name", [*REMEMBERING, "episode_writer"])
def test_what_is_forgotten_while_it_is_remembered_is_not_stored(cycle, name, forget):
    cycle.remember(
        "I live in Vienna.", f"Our {MARKER} is called Bruno.", "Thanks, bye. Let us change the subject."
    )
    asked: list[str] = []
    graph = build_remember(forgetting(name, lambda: forget(cycle.bank), asked), cycle.bank)
    graph.invoke({"turns": cycle.turns(*SAID)}, context={"user": "ana", "session": "s1"})
    assert asked, f"the {name} was not asked"
    assert MARKER not in held(cycle.bank)
    cycle.end()
    assert MARKER not in held(cycle.bank)


@pytest.mark.parametrize("forget", [forget_turn, forget_user])
@pytest.mark.parametrize("name", ENDING)
def test_what_is_forgotten_while_a_session_ends_is_not_committed(cycle, name, forget):
    cycle.remember(*SAID)
    for entry in cycle.bank.entries(ANA, granularity="fact")[::2]:
        cycle.bank.forget(ANA, entry.id, only=True)
    asked: list[str] = []
    graph = build_session(forgetting(name, lambda: forget(cycle.bank), asked), cycle.bank)
    result = graph.invoke({}, context={"user": "ana", "session": "s1"})["result"]
    assert asked, f"the {name} was not asked"
    assert MARKER not in held(cycle.bank)
    assert result["status"].startswith("committed")
    assert all(info.is_committed for info in cycle.bank.sessions(ANA.base))
    again = cycle.end()["result"]
    assert (again["committed"], MARKER in held(cycle.bank)) == (0, False)


def test_a_user_forgotten_just_before_the_end_has_nothing_to_end(cycle, monkeypatch):
    cycle.remember(*SAID)
    begin = cycle.bank.begin_verification

    def late(scope):
        forget_user(cycle.bank)
        return begin(scope)

    monkeypatch.setattr(cycle.bank, "begin_verification", late)
    assert cycle.end()["result"]["status"] == "committed"
    assert cycle.bank.sessions(ANA.base) == []


def test_store_errors_are_told_and_not_taken_for_a_forgotten_user(cycle, monkeypatch):
    cycle.remember(*SAID)

    def broken(scope):
        raise StoreError("the disk is full")

    monkeypatch.setattr(cycle.bank, "begin_verification", broken)
    with pytest.raises(StoreError, match="disk is full"):
        cycle.end()
