"""Asked in words to forget: what goes, with a model and without one, and what is told where it does not."""

import pytest
from langchain_core.messages import HumanMessage

from memcycle import MemcycleStore, Memory, Settings, build_memory
from memcycle.agents.constructor import ConstructorOutput, FactDraft
from memcycle.agents.refresher import Refresh, RefresherOutput
from memcycle.core.entry import STATUSES
from memcycle.graph.forgetting import DONE
from tests.banks import files_holding
from tests.graph.conftest import ANA
from tests.graph.test_remember_graph import PASS, QUIET, conflict_with, facts
from tests.scripted import Scripted

SUGAR, ASK = "I take sugar in my coffee.", "Forget that I take sugar in my coffee."


def all_texts(bank) -> list[str]:
    return [entry.text for entry in bank.entries(ANA, statuses=STATUSES)]


@pytest.mark.parametrize(
    ("said", "ask", "word"),
    [
        (SUGAR, ASK, "sugar"),
        ("My doctor's number is 555-0199.", "Please forget my doctor's number.", "555-0199"),
        ("My ex Tom broke my nose.", "Delete what I said about my ex.", "nose"),
        ("I sold my canoe.", "Please forget that I sold my canoe.", "canoe"),
        ("Ich nehme Zucker in meinen Kaffee.", "Vergiss, dass ich Zucker in meinen Kaffee nehme.", "Zucker"),
        ("Je prends du sucre dans mon café.", "Oublie que je prends du sucre dans mon café.", "sucre"),
        ("Tomo azúcar en el café.", "Olvida que tomo azúcar en el café.", "café"),
        ("Prendo lo zucchero nel caffè.", "Dimentica che prendo lo zucchero nel caffè.", "zucchero"),
    ],
)
def test_without_a_model_every_word_of_it_goes(tmp_path, said, ask, word):
    with Memory.open(settings=Settings(home=tmp_path / "h")) as memory:
        memory.add(
            [{"role": "user", "content": f"{said} I keep geese.", "id": "m1"}], user="ana", session="a"
        )
        memory.end_session("a", user="ana")
        asking = [{"role": "user", "content": ask, "id": "m2"}]
        added = memory.add(asking, user="ana", session="b")
        assert added.forgetting == [DONE]
        assert [entry.text for entry in memory.memories(user="ana")] == ["I keep geese."]
        assert memory.add(asking, user="ana", session="b").turns == []
    assert files_holding(tmp_path, word.encode()) == []


def test_what_holds_it_goes_and_the_rest_stays(cycle):
    cycle.remember(SUGAR, "My sister takes sugar in her tea.", "I drink coffee at noon.")
    cycle.remember("Do I take sugar in my coffee?", ("ai", "Yes, you take sugar in your coffee."))
    cycle.end()
    out = cycle.remember("I keep geese.", ASK, ("ai", "Done: I forgot that you take sugar in your coffee."))
    assert out["result"]["forgetting"] == [DONE]
    assert set(all_texts(cycle.bank)) == {
        "My sister takes sugar in her tea.",
        "I drink coffee at noon.",
        "I keep geese.",
    }
    assert not [one for one in cycle.bank.probes(ANA) if "sugar" in one.model_dump_json()]


@pytest.mark.parametrize("how", ["fact", "turn", "add", "refresher"])
def test_a_model_may_name_the_fact_or_the_turn_or_neither(cycle, how):
    text = "Ana takes sugar in her coffee"
    cycle.remember(SUGAR, constructor=facts(text), **QUIET)
    wanted = text if how == "fact" else SUGAR

    def construct(value):
        target = next((view.n for view in value.memories if view.text == wanted), None)
        edit = {"edit": "DELETE", "target": target, "quote": ASK} if how in ("fact", "turn") else {}
        return ConstructorOutput(facts=[FactDraft(text=text, turn=1, **edit)])

    roles = {"judge": PASS}
    if how == "refresher":
        edit = Refresh(op="DELETE", memory=0, quote="Forget that I take sugar")
        roles = {"judge": conflict_with(text), "refresher": Scripted(RefresherOutput(edits=[edit]))}
    out = cycle.remember(ASK, constructor=Scripted(construct), **roles, **QUIET)
    assert out["result"]["forgetting"] == [DONE]
    assert all_texts(cycle.bank) == []


def test_a_model_that_names_something_else_erases_nothing_of_it(cycle):
    ask = "Forget that I swim each morning in the canal."
    cycle.remember("I rent a flat by the canal.", constructor=facts("Rents a flat by the canal"), **QUIET)

    def construct(value):
        n = next(view.n for view in value.memories if view.granularity == "fact")
        return ConstructorOutput(facts=[FactDraft(text="x", turn=1, edit="DELETE", target=n, quote=ask)])

    out = cycle.remember(ask, judge=PASS, constructor=Scripted(construct), **QUIET)
    assert cycle.facts() == ["Rents a flat by the canal"]
    [told] = out["result"]["forgetting"]
    assert "memory.forget(id)" in told
    assert "memcycle forget" in told


def test_where_several_fit_none_goes_and_each_is_named(cycle):
    cycle.remember("My doctor's number is 555-0199.", "My doctor's number at home is 555-7000.")
    out = cycle.remember("Please forget my doctor's number.")
    [told] = out["result"]["forgetting"]
    assert all(part in told for part in ('1. "', '2. "', "555-0199", "555-7000", "memory.forget(id)"))
    assert len([text for text in cycle.facts() if "number" in text]) == 2
    assert not [text for text in cycle.facts() if "forget" in text]


def test_everything_of_a_topic_is_asked_for_as_such(cycle):
    cycle.remember("Tom plays the cello.", "I met Tom in Rome.", "I keep geese.")
    out = cycle.remember("Forget everything about Tom.")
    assert out["result"]["forgetting"] == [DONE]
    assert cycle.facts() == ["I keep geese."]


def test_what_is_not_known_is_told_and_the_request_is_not_kept(cycle):
    cycle.remember("I keep geese.")
    out = cycle.remember("Forget that I am diabetic.", constructor=facts("Ana is diabetic"), **QUIET)
    assert "nothing in memory" in out["result"]["forgetting"][0]
    assert set(all_texts(cycle.bank)) == {"I keep geese."}


def test_what_was_said_just_before_in_the_chunk_goes_too(cycle):
    out = cycle.remember(SUGAR, "I keep geese.", ASK)
    assert out["result"]["forgetting"] == [DONE]
    assert set(all_texts(cycle.bank)) == {"I keep geese."}


def test_what_else_its_turn_says_is_kept_as_a_fact(cycle):
    cycle.remember(SUGAR)
    cycle.remember(f"I moved to Graz. {ASK}")
    assert cycle.facts() == ["I moved to Graz."]


def test_the_chat_is_told(tmp_path):
    graph = build_memory(settings=Settings(home=tmp_path / "h"))
    context = {"user": "ana", "session": "s"}
    graph.invoke({"messages": [HumanMessage(SUGAR, id="1")]}, context=context)
    out = graph.invoke({"messages": [HumanMessage(ASK, id="2")]}, context=context)
    assert out["messages"][-1].text == DONE
    out = graph.invoke({"messages": [HumanMessage("Forget that I smoke.", id="3")]}, context=context)
    assert "nothing in memory" in out["messages"][-1].text


def test_items_of_the_user_that_hold_it_go(tmp_path):
    home = tmp_path / "h"
    with Memory.open(settings=Settings(home=home)) as memory, MemcycleStore(memory.bank) as store:
        memory.add("I keep hens.", user="bob", session="s")
        store.put(("ana", "notes"), "1", {"text": SUGAR})
        store.put(("ana", "notes"), "2", {"text": "The key hangs behind the stove."})
        store.put(("bob", "notes"), "3", {"text": SUGAR})
        memory.add(SUGAR, user="ana", session="s")
        memory.add(ASK, user="ana", session="s")
        left = {item.key for name in ("ana", "bob") for item in store.search((name,))}
    assert left == {"2", "3"}
