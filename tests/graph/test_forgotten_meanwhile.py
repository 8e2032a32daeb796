"""What is forgotten while a graph runs stays forgotten, and the run ends as if it had never been said."""

import threading
from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from langchain_core.runnables import RunnableLambda

from memcycle import build_remember, build_session
from memcycle.agents.answerer import AnswererOutput
from memcycle.agents.consolidator import ConsolidatorOutput
from memcycle.agents.episode_writer import EpisodeWriterOutput
from memcycle.agents.grader import Grade, GraderOutput
from memcycle.agents.prober import ProbeDraft, ProberOutput
from memcycle.agents.repairer import RepairerOutput, RepairFact
from memcycle.agents.roles import Roles
from memcycle.core.errors import BadInput, RoleFailed, StoreError
from memcycle.core.settings import Settings
from memcycle.core.theta import Switches
from memcycle.core.turn import Turn
from tests.graph.conftest import ANA
from tests.graph.test_session_graph import knows
from tests.scripted import Always

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
    own, alone = getattr(rules, name), threading.Lock()

    def slow(value):
        reply = own.invoke(value)
        with alone:
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
    assert untried == {
        "episode_trigger", "query_reasoner", "answerability", "verifier", "diagnoser", "model_name",
    }  # fmt: skip


def cases(roles, writer):
    """Each role with a turn forgotten meanwhile, one with the user, who comes back below with each."""
    return [*((name, forget_turn) for name in roles), (writer, forget_user)]


@pytest.mark.parametrize(("name", "forget"), cases([*REMEMBERING, "episode_writer"], "constructor"))
def test_what_is_forgotten_while_it_is_remembered_is_not_stored(cycle, name, forget):
    cycle.remember(
        "I live in Vienna.", f"Our {MARKER} is called Bruno.", "Thanks, bye. Let us change the subject."
    )
    asked: list[str] = []
    graph = build_remember(forgetting(name, lambda: forget(cycle.bank), asked), cycle.bank)
    graph.invoke({"turns": cycle.turns(*SAID)}, context={"user": "ana", "session": "s1"})
    assert asked, f"the {name} was not asked"
    assert MARKER not in held(cycle.bank)
    end_again(cycle, forget)
    assert MARKER not in held(cycle.bank)


def end_again(cycle, forget) -> None:
    """Ends the session, of which nothing is left to end; who was forgotten has none."""
    if forget is forget_user:
        with pytest.raises(BadInput, match="no session 's1'"):
            cycle.end()
    else:
        assert cycle.end()["result"]["status"].startswith("committed")


@pytest.mark.parametrize(("name", "forget"), cases(ENDING, "repairer"))
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
    end_again(cycle, forget)
    assert MARKER not in held(cycle.bank)


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


def come_back(cycle) -> None:
    """The user is forgotten, and speaks again in the same session: its turns have the same ids."""
    cycle.bank.forget_user("ana")
    said = cycle.turns("Hello again.", "The weather is fine.", "I drink tea.", "Bye.")
    cycle.bank.stage_turns(ANA, [Turn.model_validate(turn) for turn in said])


@pytest.mark.parametrize("name", [*REMEMBERING, "episode_writer"])
def test_who_comes_back_while_it_is_remembered_has_nothing_of_it(cycle, name):
    cycle.remember(
        "I live in Vienna.", f"Our {MARKER} is called Bruno.", "Thanks, bye. Let us change the subject."
    )
    asked: list[str] = []
    graph = build_remember(forgetting(name, lambda: come_back(cycle), asked), cycle.bank)
    graph.invoke({"turns": cycle.turns(*SAID)}, context={"user": "ana", "session": "s1"})
    assert asked, f"the {name} was not asked"
    assert MARKER not in held(cycle.bank)
    assert len(cycle.bank.unprocessed(ANA)) == 4, "what was said since waits to be read"


@pytest.mark.parametrize("name", ENDING)
def test_who_comes_back_while_a_session_ends_has_nothing_of_it(cycle, name):
    cycle.remember(*SAID)
    for entry in cycle.bank.entries(ANA, granularity="fact")[::2]:
        cycle.bank.forget(ANA, entry.id, only=True)
    asked: list[str] = []
    graph = build_session(forgetting(name, lambda: come_back(cycle), asked), cycle.bank)
    result = graph.invoke({}, context={"user": "ana", "session": "s1"})["result"]
    assert asked, f"the {name} was not asked"
    assert (MARKER in held(cycle.bank), cycle.bank.probes(ANA)) == (False, [])
    (info,) = cycle.bank.sessions(ANA)
    assert (info.status, info.staged, info.report.probes, result["status"]) == ("open", 4, 0, "open")


def quoting(**more) -> Roles:
    """Roles that put the marker, which their own turn does not hold, into all they say."""
    walnuts = RepairFact(text="Ana is allergic to walnuts", turn=2, quote="I am allergic to walnuts")
    draft = ProbeDraft(question=f"What is Ana, who has a {MARKER}, allergic to?", answer="walnuts", turn=2)

    def answer(value):
        found = [view.n for view in value.evidence if "walnuts" in view.text]
        return AnswererOutput(
            answer=f"walnuts, not the {MARKER}", answerable=bool(found), citations=found[:1]
        )

    def grade(value):
        return GraderOutput(
            grades=[Grade(n=item.n, correct=True, why=f"no {MARKER}") for item in value.items]
        )

    given = {
        "prober": Always(ProberOutput(probes=[draft])),
        "answerer": Always(answer),
        "grader": Always(grade),
        "repairer": Always(RepairerOutput(op="ADD_FACT", fact=walnuts, why=f"not the {MARKER}")),
        "consolidator": Always(ConsolidatorOutput(decision="INSERT", why=f"not of the {MARKER}")),
    }
    return replace(Roles.rules(), **(given | more))


def test_what_roles_said_of_another_turn_goes_with_that_turn(cycle):
    cycle.remember(*SAID, constructor=knows())
    only_facts = Settings(switches=Switches(granularity="fact"))
    graph = build_session(quoting(), cycle.bank, only_facts)
    result = graph.invoke({}, context={"user": "ana", "session": "s1"})["result"]
    assert (result["repairs"], MARKER in held(cycle.bank)) == (1, True)
    forget_turn(cycle.bank)
    assert MARKER not in held(cycle.bank)
    assert cycle.facts() == ["Ana is allergic to walnuts"], "it was weighed, and stays"
    assert cycle.bank.sessions(ANA)[0].report.repairs == 1


@pytest.mark.parametrize("name", ["prober", "answerer", "grader", "repairer"])
def test_what_roles_said_of_another_turn_is_not_stored_where_that_is_forgotten_meanwhile(cycle, name):
    cycle.remember(*SAID, constructor=knows())
    asked: list[str] = []
    own = getattr(quoting(), name)

    def slow(value):
        reply = own.invoke(value)
        if not asked:
            forget_turn(cycle.bank)
        asked.append(name)
        return reply

    graph = build_session(quoting(**{name: RunnableLambda(slow)}), cycle.bank)
    result = graph.invoke({}, context={"user": "ana", "session": "s1"})["result"]
    assert asked
    assert MARKER not in held(cycle.bank)
    assert result["status"] == ("committed_unverified" if name == "prober" else "committed")


def test_what_the_consolidator_said_of_another_fact_goes_with_that_fact(cycle):
    cycle.remember(
        f"I keep a {MARKER} in Linz.", session="s0", constructor=knows(f"Ana keeps a {MARKER} in Linz")
    )
    cycle.end("s0", verify=False)
    cycle.remember("I keep two beehives in Linz.", "I row.", constructor=knows())
    draft = ProbeDraft(question="What does Ana keep in Linz?", answer="two beehives", turn=1)
    bees = RepairFact(text="Ana keeps two beehives in Linz", turn=1, quote="I keep two beehives in Linz")

    def answer(value):
        found = [view.n for view in value.evidence if "beehives" in view.text]
        return AnswererOutput(answer="two beehives", answerable=bool(found), citations=found[:1])

    roles = quoting(
        prober=Always(ProberOutput(probes=[draft])),
        answerer=Always(answer),
        repairer=Always(RepairerOutput(op="ADD_FACT", fact=bees)),
        episode_writer=Always(EpisodeWriterOutput(title="News", text="Ana told her news.")),
    )
    build_session(roles, cycle.bank).invoke({}, context={"user": "ana", "session": "s1"})
    assert f"not of the {MARKER}" in held(cycle.bank)
    (told,) = cycle.bank.entries(ANA.within("s0"), granularity="fact")
    cycle.bank.forget(ANA, told.id)
    assert MARKER not in held(cycle.bank)
    assert cycle.facts() == [bees.text]


@pytest.mark.parametrize("name", ENDING)
def test_a_reply_that_does_not_fit_is_never_stored(cycle, name):
    cycle.remember(*SAID, constructor=knows("Ana has a walnut allergy"))
    failing = Always(RoleFailed(name, "no JSON: 'axolotl'", excerpt="Sure! Your axolotl"))
    grader = quoting().grader if name in ("repairer", "consolidator") else STRICT
    graph = build_session(quoting(**({"grader": grader} | {name: failing})), cycle.bank)
    result = graph.invoke({}, context={"user": "ana", "session": "s1"})["result"]
    assert failing.seen, f"the {name} was not asked"
    assert "axolotl" not in held(cycle.bank)
    if name in ("prober", "grader", "answerer", "repairer"):
        assert result["reason"] == f"role '{name}' failed"
    assert "axolotl" in " ".join(result["warnings"]), "who is there is told all"
