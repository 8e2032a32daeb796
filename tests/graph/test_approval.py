"""Human approval: nothing is written before it, no role is asked twice, and the answer is kept to."""

import json
from dataclasses import replace

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from memcycle import Memory, Settings, build_memory, build_remember, build_session
from memcycle.agents.constructor import ConstructorOutput, FactDraft
from memcycle.agents.refresher import Refresh, RefresherOutput
from memcycle.agents.roles import Roles
from memcycle.core.edit import Edit
from memcycle.core.errors import BadInput
from memcycle.core.settings import Approval
from memcycle.graph import approval
from memcycle.graph.environment import GraphRun, make_env
from tests.banks import fact
from tests.graph.conftest import ANA, Cycle
from tests.graph.test_remember_graph import QUIET, conflict_with, facts
from tests.graph.test_session_graph import ALLERGY, SAID, adds, knows, plain
from tests.scripted import Always, Scripted

MOVED = "I no longer live in Vienna, I moved to Graz."


def settings(cycle, named, **approval) -> Settings:
    changed = {"approval": Approval(**approval), "user_name": named}
    return cycle.bank.settings.model_copy(update=changed)


class Asked:
    """A thread of one of the graphs that asks."""

    def __init__(self, build, cycle, roles=None, named="user", **approval) -> None:
        self.cycle, self.roles = cycle, roles or Roles.rules()
        graph = build(self.roles, cycle.bank, settings(cycle, named, **approval))
        self.graph = graph.builder.compile(checkpointer=InMemorySaver())
        self.config = {"configurable": {"thread_id": "t"}}

    def run(self, value) -> dict:
        return self.graph.invoke(value, self.config, context={"user": "ana", "session": "s1"})

    def told(self, *said) -> dict:
        return self.run({"turns": self.cycle.turns(*said)})

    def answer(self, given) -> dict:
        return self.run(Command(resume=given))


def payload(out: dict) -> dict:
    (one,) = out["__interrupt__"]
    return one.value


def counting(**roles) -> tuple[Roles, list[str]]:
    """Rules that note each call."""
    calls: list[str] = []

    def counted(name, own):
        def call(value):
            calls.append(name)
            return own.invoke(value)

        return RunnableLambda(call)

    rules = replace(Roles.rules(), **roles)
    names = [name for name in rules.names() if getattr(rules, name) is not None]
    return replace(rules, **{name: counted(name, getattr(rules, name)) for name in names}), calls


@pytest.fixture
def moved(cycle):
    """Remembers that Ana lives in Vienna, then hears that she moved; stops there."""
    cycle.remember("I live in Vienna.")
    cycle.end(verify=False)
    roles, calls = counting()
    asked = Asked(build_remember, cycle, roles, update=True)
    return asked, asked.told(MOVED), calls


def texts(cycle: Cycle, *statuses: str) -> set[str]:
    found = cycle.bank.entries(ANA, granularity="fact", statuses=statuses or ("active", "staged"))
    return {entry.text for entry in found}


def test_nothing_is_written_before_it_and_the_payload_is_plain(cycle, moved):
    _, out, _ = moved
    asked = payload(out)
    (item,) = asked["items"]
    assert (asked["user"], asked["session"], item["action"]) == ("ana", "s1", "UPDATE")
    assert (item["before"], "Graz" in item["after"]) == ("I live in Vienna.", True)
    assert item["said"] == [f"Ana: {MOVED}"]
    assert json.loads(json.dumps(asked)) == asked
    assert texts(cycle) == {"I live in Vienna."}


@pytest.mark.parametrize("given", ["approve", [{"n": 1, "decision": "approve"}], {"decision": "approve"}])
def test_what_is_approved_is_written_once_and_no_role_is_asked_again(cycle, moved, given):
    asked, _, calls = moved
    before = list(calls)
    out = asked.answer(given)
    assert "__interrupt__" not in out
    assert calls[: len(before)] == before
    assert not set(calls[len(before) :]) & set(before), "a role was asked again"
    (entry,) = cycle.bank.entries(ANA, granularity="fact")
    assert "Graz" in entry.text
    last = cycle.bank.history(ANA, entry.id)[-1]
    assert "approved by a person" in last.why
    assert [event.action for event in cycle.bank.history(ANA, entry.id)].count("supersede") == 1


@pytest.mark.parametrize("given", ["reject", [], [{"n": 1, "decision": "reject"}]])
def test_what_is_not_approved_is_not_written(cycle, moved, given):
    asked, _, _ = moved
    out = asked.answer(given)
    assert "a person rejected it" in {one["why"] for one in out["result"]["rejected"]}
    assert "I live in Vienna." in texts(cycle)
    assert texts(cycle, "superseded") == set()


def test_an_edited_text_is_what_is_written(cycle, moved):
    asked, _, _ = moved
    asked.answer([{"n": 1, "decision": "edit", "text": "I no longer live in Vienna, I moved to Linz."}])
    (entry,) = cycle.bank.entries(ANA, granularity="fact")
    assert (entry.text, entry.quote) == ("I no longer live in Vienna, I moved to Linz.", None)
    assert "edited by a person" in cycle.bank.history(ANA, entry.id)[-1].why


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("yes please", "is no decision"),
        ([{"n": 2, "decision": "approve"}], "the items are 1"),
        ([{"n": 1, "decision": "edit"}], "an edit needs a text"),
        ({"n": "1", "decision": "approve"}, "there is no item"),
        ([7], "is no decision"),
    ],
)
def test_an_answer_that_cannot_be_read_is_asked_for_again(cycle, moved, given, problem):
    asked, _, _ = moved
    again = payload(asked.answer(given))
    assert problem in again["problem"]
    assert texts(cycle) == {"I live in Vienna."}
    asked.answer("approve")
    assert texts(cycle, "superseded") == {"I live in Vienna."}


def test_only_what_the_settings_name_is_asked_about(cycle):
    asked = Asked(build_remember, cycle, delete=True)
    assert "__interrupt__" not in asked.told("I live in Vienna.")
    assert "__interrupt__" not in asked.told(MOVED)
    assert texts(cycle, "superseded") == {"I live in Vienna."}


@pytest.mark.parametrize(("given", "stays"), [("approve", False), ("reject", True)])
def test_a_deletion_waits_too(cycle, given, stays):
    cycle.remember("My address is Elm Road", constructor=facts("Ana's address is Elm Road"), **QUIET)
    wanted = RefresherOutput(edits=[Refresh(op="DELETE", memory=0, quote="forget my address")])
    scripted = {"judge": conflict_with("Ana's address is Elm Road"), "refresher": Scripted(wanted)}
    roles = replace(Roles.rules(), **(QUIET | scripted | {"constructor": facts()}))
    asked = Asked(build_remember, cycle, roles, delete=True)
    (item,) = payload(asked.told("Please forget my address"))["items"]
    assert (item["action"], item["before"], item["after"]) == ("DELETE", "Ana's address is Elm Road", None)
    asked.answer(given)
    assert ("Ana's address is Elm Road" in texts(cycle)) == stays


def test_every_write_about_a_kind_waits(cycle):
    draft = FactDraft(text="Ana loves walnuts", turn=1, kind="preference")
    roles = replace(Roles.rules(), constructor=Always(ConstructorOutput(facts=[draft])))
    asked = Asked(build_remember, cycle, roles, kinds=("preference",))
    (item,) = payload(asked.told("I love walnuts."))["items"]
    assert (item["action"], item["kind"], item["before"]) == ("ADD", "preference", None)
    assert texts(cycle) == set()
    asked.answer("approve")
    assert texts(cycle) == {"Ana loves walnuts"}


@pytest.mark.parametrize(("given", "stored"), [("approve", True), ("reject", False)])
def test_a_repair_waits_when_the_session_ends(cycle, given, stored):
    cycle.remember(*SAID, constructor=knows())
    fact = ALLERGY.model_copy(update={"kind": "preference"})
    roles = replace(Roles.rules(), **(plain() | {"repairer": Scripted(adds(fact))}))
    asked = Asked(build_session, cycle, roles, kinds=("preference",))
    (item,) = payload(asked.run({}))["items"]
    assert (item["action"], item["after"]) == ("ADD", ALLERGY.text)
    result = asked.answer(given)["result"]
    assert (result["status"], result["repairs"]) == ("committed", int(stored))
    assert (ALLERGY.text in texts(cycle)) == stored


def test_an_embedded_graph_asks_through_its_parent(cycle):
    cycle.remember("I live in Vienna.")
    cycle.end(verify=False)
    asked = Asked(build_memory, cycle, update=True, named="Ana")
    out = asked.run({"messages": [("user", MOVED)]})
    assert payload(out)["items"][0]["before"] == "I live in Vienna."
    out = asked.answer("approve")
    assert "__interrupt__" not in out
    assert texts(cycle, "superseded") == {"I live in Vienna."}


async def test_awaited_it_asks_too(cycle):
    cycle.remember("I live in Vienna.")
    cycle.end(verify=False)
    asked = Asked(build_remember, cycle, update=True)
    context = {"user": "ana", "session": "s1"}
    out = await asked.graph.ainvoke({"turns": cycle.turns(MOVED)}, asked.config, context=context)
    assert payload(out)["items"]
    await asked.graph.ainvoke(Command(resume="approve"), asked.config, context=context)
    assert texts(cycle, "superseded") == {"I live in Vienna."}


def test_a_memory_without_checkpoints_refuses_to_ask(tmp_path):
    with pytest.raises(BadInput, match="checkpointer"):
        Memory.open(settings=Settings(home=tmp_path / "home", approval=Approval(update=True)))


def test_without_approval_no_node_is_in_the_way(cycle):
    graph = build_remember(Roles.rules(), cycle.bank)
    assert not [name for name in graph.nodes if name.startswith("approve")]


def outside(env) -> GraphRun:
    """A run of nobody's graph."""
    run = GraphRun(env, {})
    run.scope = ANA
    return run


@pytest.mark.parametrize("op", ["UPDATE", "MERGE"])
def test_what_is_forgotten_meanwhile_does_not_shift_the_others(cycle, monkeypatch, op):
    """Only the first was approved; it is gone when the answer comes."""
    cycle.remember(
        "Tea, please. And walnuts!", constructor=facts("Ana likes tea", "Ana eats walnuts"), **QUIET
    )
    tea, walnuts = cycle.bank.entries(ANA, granularity="fact")
    new = fact("Ana eats cashews", "Ds1:1", scope=ANA)
    edits = [Edit(op="DELETE", target=tea.id, quote="x"), Edit(op=op, target=walnuts.id, entry=new)]
    run = outside(make_env(None, cycle.bank, settings(cycle, "user", kinds=(tea.kind,))))
    shown: list[dict] = []

    def answer(asked):
        shown.append(asked)
        return [{"n": 1, "decision": "approve"}]

    monkeypatch.setattr(approval, "interrupt", answer)
    monkeypatch.setattr(type(cycle.bank), "decline", lambda *_: None)  # the run broke off before it
    assert [edit.target for edit in approval.approved(run, edits).edits] == [tea.id]
    cycle.bank.forget(ANA, tea.id, only=True)
    kept = approval.approved(run, edits)
    assert [[item["n"] for item in asked["items"]] for asked in shown] == [[1, 2], [2]]
    assert walnuts.id not in [edit.target for edit in kept.edits], "nobody approved this one"


def test_an_edited_union_becomes_a_replacement(cycle, monkeypatch):
    cycle.remember("And walnuts!", constructor=facts("Ana eats walnuts"), **QUIET)
    (walnuts,) = cycle.bank.entries(ANA, granularity="fact")
    edits = [Edit(op="MERGE", target=walnuts.id, entry=fact("Ana eats walnuts", "Ds1:1", scope=ANA))]
    run = outside(make_env(None, cycle.bank, settings(cycle, "user", kinds=(walnuts.kind,))))
    text = "Ana eats no walnuts"
    monkeypatch.setattr(approval, "interrupt", lambda _: [{"n": 1, "decision": "edit", "text": text}])
    (edit,) = approval.approved(run, edits).edits
    assert (edit.op, edit.target, edit.entry.text) == ("UPDATE", walnuts.id, text)


def test_a_rejected_change_is_asked_about_once(cycle, moved):
    """Not by the Constructor after it, nor of the same turns read again, nor in the next session."""
    asked, _, _ = moved
    out = asked.answer("reject")
    assert "__interrupt__" not in out
    assert texts(cycle) == {"I live in Vienna."}
    cycle.bank.apply(ANA, [], turns=out["result"]["turns"], state="unextracted")
    again = asked.run({})
    assert "__interrupt__" not in again
    assert any("rejected it before" in one["why"] for one in again["result"]["rejected"])
    later = Asked(build_remember, cycle, update=True)
    later.config = {"configurable": {"thread_id": "later"}}
    turns = cycle.turns(MOVED, session="s2")
    out = later.graph.invoke({"turns": turns}, later.config, context={"user": "ana", "session": "s2"})
    assert "__interrupt__" not in out
    assert texts(cycle) == {"I live in Vienna."}


@pytest.mark.parametrize("edit", ["UPDATE", "ADD"])
def test_what_was_rejected_does_not_come_back_in_other_words(cycle, edit):
    """The Refresher's change is rejected; the Constructor words it otherwise."""
    cycle.remember("I teach at Larkfield", constructor=facts("Ana teaches at Larkfield"), **QUIET)

    def construct(value):
        n = next(view.n for view in value.memories if view.text == "Ana teaches at Larkfield")
        draft = FactDraft(text="Ana now teaches at Quarry Lane school", turn=1, edit=edit, target=n)
        return ConstructorOutput(facts=[draft])

    change = RefresherOutput(
        edits=[Refresh(op="UPDATE", memory=0, text="Ana teaches at Quarry Lane", turn=1)]
    )
    scripted = {"judge": conflict_with("Ana teaches at Larkfield"), "refresher": Scripted(change)}
    roles = replace(Roles.rules(), **(QUIET | scripted | {"constructor": Scripted(construct)}))
    asked = Asked(build_remember, cycle, roles, update=True)
    assert payload(asked.told("I teach at Quarry Lane now"))["items"]
    assert "__interrupt__" not in asked.answer("reject")
    assert texts(cycle) == {"Ana teaches at Larkfield"}


def test_of_two_changes_the_rejected_one_stays_away(cycle):
    cycle.remember("I live in Vienna. I work at Siemens.")
    asked = Asked(build_remember, cycle, update=True)
    items = payload(asked.told("I moved to Graz. I joined Bosch."))["items"]
    numbers = {item["before"]: item["n"] for item in items}
    assert set(numbers) == {"I live in Vienna.", "I work at Siemens."}
    answer = [{"n": numbers["I live in Vienna."], "decision": "approve"}]
    assert "__interrupt__" not in asked.answer(answer)
    assert texts(cycle) == {"I moved to Graz.", "I work at Siemens."}


@pytest.mark.parametrize(("given", "left"), [("approve", set()), ("reject", {"I take sugar in my coffee."})])
def test_a_request_to_forget_waits_and_says_what_came_of_it(cycle, given, left):
    cycle.remember("I take sugar in my coffee.")
    asked = Asked(build_remember, cycle, delete=True)
    (item,) = payload(asked.told("Forget that I take sugar in my coffee."))["items"]
    assert (item["action"], item["before"]) == ("DELETE", "I take sugar in my coffee.")
    (told,) = asked.answer(given)["result"]["forgetting"]
    assert ("Not forgotten" in told) == (given == "reject")
    assert texts(cycle) == left
