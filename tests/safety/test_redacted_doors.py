"""With redaction on no secret reaches a file, an embedder, a model, a log or a result, through any door."""

import asyncio
import json
import logging

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from memcycle import MemcycleStore, Memory, Settings, build_memory, build_recall, build_remember
from memcycle.core.edit import Edit
from memcycle.core.errors import BadInput, StoreError
from memcycle.core.redaction import Redact, mark
from memcycle.core.scope import Scope
from memcycle.core.settings import Approval
from memcycle.core.turn import Turn
from memcycle.graph.remember.chunk import new_turns
from memcycle.stores.search.request import Query, SearchRequest
from tests.banks import SAID, fact, open_bank, said
from tests.cases.adapter import FM, facts
from tests.fakes import FakeEmbeddings

KEY = "sk-proj-abcDEF1234567890abcd"
ANA = Scope(user="ana", session="main")
ROLES = ("constructor", "retriever", "judge", "answerer", "prober", "episode_writer", "guide")


class Watched:
    """A memory that redacts, all that its embedder and its models were shown, and all its files."""

    def __init__(self, home, roles=ROLES, **settings) -> None:
        self.home, self.embeddings = home, FakeEmbeddings()
        self.models = {role: FM(script=[lambda _: "{}"] * 40) for role in roles}
        self.settings = Settings(home=home, **{"shards": 2, "redact": True, "profile": "paper"} | settings)
        self.memory = Memory.open(
            settings=self.settings, embeddings=self.embeddings, overrides=self.models, user="ana"
        )

    def leaks(self, secret: str = KEY) -> list[str]:
        """Where the secret is; closes the store first, so that all is written."""
        self.memory.close()
        found = ["embedder"] if secret in json.dumps(self.embeddings.calls, ensure_ascii=False) else []
        found += [role for role, model in self.models.items() if secret in "".join(model.prompts)]
        files = [path for path in self.home.rglob("*") if path.is_file()]
        return found + [path.name for path in files if secret.encode() in path.read_bytes()]


@pytest.fixture
def watched(tmp_path, caplog):
    caplog.set_level(logging.DEBUG, "memcycle")
    one = Watched(tmp_path / "home")
    yield one
    one.memory.close()
    assert KEY not in caplog.text


def test_without_it_the_text_is_kept_as_said(tmp_path):
    """What makes the other tests here mean something."""
    one = Watched(tmp_path / "home", redact=None)
    one.memory.add(f"Use {KEY} for the loom server.")
    assert {"embedder", "constructor", "ledger.sqlite3"} <= {*one.leaks()}


MESSAGES = {
    "text": f"Use {KEY} for the loom server.",
    "message": HumanMessage(f"Use {KEY} for the loom server."),
    "blocks": HumanMessage([{"type": "text", "text": "Use"}, {"type": "text", "text": KEY}]),
    "caption": {"role": "user", "content": [{"type": "image", "caption": f"a note that says {KEY}"}]},
    "speaker": {"role": "user", "content": "Hello there.", "name": KEY},
    "tool": {"role": "tool", "content": json.dumps({"key": KEY}), "tool_call_id": "c"},
    "call": AIMessage(
        "I call it.", tool_calls=[{"name": "login", "args": {"key": KEY, "password": "x"}, "id": "c"}]
    ),
    "turn": Turn(id="Dmain:1", session="main", position=1, speaker="Ana", text=f"Use {KEY}.", time=SAID),
}


@pytest.mark.parametrize("shape", MESSAGES)
def test_a_message_of_any_shape(watched, shape):
    """Here the models see all and answer nothing that can be used."""
    given = MESSAGES[shape]
    added = watched.memory.add([given] if isinstance(given, Turn) else given)
    ended = watched.memory.end_session()
    answer = watched.memory.ask("What is used for the loom server?")
    assert KEY not in f"{added!r}{ended!r}{answer!r}{watched.memory.export()}"
    assert watched.leaks() == []


@pytest.mark.parametrize("shape", MESSAGES)
def test_a_message_of_any_shape_by_rules(tmp_path, shape):
    """Here facts, an episode and probes are made of it."""
    given = MESSAGES[shape]
    one = Watched(tmp_path / "home", roles=())
    one.memory.add([given] if isinstance(given, Turn) else given)
    one.memory.end_session()
    assert one.memory.memories() != []
    assert KEY not in f"{one.memory.ask('What is used for the loom server?')!r}{one.memory.export()}"
    assert one.leaks() == []


def test_a_question_and_what_is_remembered_of_it(watched):
    watched.memory.add("Hello, I weave.")
    for answer in (watched.memory.ask(f"What is {KEY} for?"), watched.memory.recall(f"Who has {KEY}?")):
        assert KEY not in answer.model_dump_json()
        assert mark("api key") in answer.question
    asyncio.run(watched.memory.aask(f"And {KEY}?"))
    request = SearchRequest(scope=ANA, queries=(Query(text=KEY),))
    watched.memory.bank.search(request)
    assert watched.leaks() == []


def test_what_a_model_makes_up(tmp_path):
    """A role that knows a secret from elsewhere cannot bring it in either."""
    one = Watched(tmp_path / "home", roles=("constructor", "fact_judge"))
    one.models["constructor"].script[:] = [facts(f"Uses the loom server, {KEY}")]
    one.models["fact_judge"].script[:] = ['{"verdicts": [{"n": 1, "supported": true}]}']
    one.memory.add("I use the loom server with the api key.")
    assert [entry.text for entry in one.memory.memories(granularity="fact")] == [
        "Uses the loom server, [redacted: api key]"
    ]
    one.memory.end_session()
    one.models.clear()  # they were shown what one of them made up
    assert one.leaks() == []


def test_an_edit_and_its_reason(watched):
    watched.memory.add("I weave.")
    (raw,) = watched.memory.memories(granularity="raw")
    new = watched.memory.edit(raw.id, f"I weave with {KEY}", why=f"since {KEY} is mine")
    assert new.text == "I weave with [redacted: api key]"
    assert "[redacted: api key]" in watched.memory.history(new.id)[-1].why
    assert watched.memory.undo(new.id).text == "I weave."
    assert watched.leaks() == []


def test_what_a_person_types_when_asked(watched):
    asking = watched.settings.model_copy(update={"approval": Approval(kinds=("episodic",))})
    roles = watched.memory.roles
    watched.models["constructor"].script[:] = [facts("Weaves linen")]
    graph = build_remember(roles, watched.memory.bank, asking).builder.compile(checkpointer=InMemorySaver())
    thread, context = {"configurable": {"thread_id": "t"}}, {"user": "ana", "session": "main"}
    graph.invoke({"messages": ["I weave linen."]}, thread, context=context)
    typed = [{"n": 1, "decision": "edit", "text": f"Weaves linen with {KEY}"}]
    graph.invoke(Command(resume=typed), thread, context=context)
    assert [one.text for one in watched.memory.memories(granularity="fact")] == [
        "Weaves linen with [redacted: api key]"
    ]
    assert watched.leaks() == []


def test_an_import(watched, tmp_path):
    with Memory.open(tmp_path / "other", embeddings=FakeEmbeddings(), user="ana") as other:
        other.add(
            {"role": "user", "content": f"Use {KEY}, my password is hunter2.", "id": "4111111111111111"}
        )
        other.end_session()
        rows = [{**row, "metadata": {**row["metadata"], "note": KEY}} for row in other.export()]
    assert watched.memory.import_(rows) == len(rows)
    assert watched.memory.import_(rows) == 0
    again = watched.memory.export()
    assert watched.memory.import_(again) == 0, "what was redacted is what it was"
    raw = next(row for row in again if row["granularity"] == "raw")
    assert raw["metadata"]["message_id"] == "4111111111111111"
    watched.memory.add(
        {"role": "user", "content": f"Use {KEY}, my password is hunter2.", "id": "4111111111111111"}
    )
    assert len(watched.memory.memories(granularity="raw")) == 1
    assert watched.leaks() == watched.leaks("hunter2") == []


def test_the_whole_chat_graph(watched):
    graph = build_memory(watched.memory.roles, watched.memory.bank)
    context = {"user": "ana", "session": "main"}
    out = graph.invoke({"messages": [("user", f"Is {KEY} mine?")]}, context=context)
    assert KEY not in json.dumps(out["recalled"]) + json.dumps(out["remembered"])
    assert watched.leaks() == []


def test_items_of_the_store(watched):
    with MemcycleStore(watched.memory.bank) as store:
        store.put(("ana",), "1", {"password": "swordfish", "notes": [f"use {KEY}"], "plain": "weaves"})
        (item,) = store.search(("ana",), query=f"{KEY}", limit=5)
        assert item.value == {
            "password": mark("password"), "notes": [f"use {mark('api key')}"], "plain": "weaves"
        }  # fmt: skip
    assert watched.leaks() == watched.leaks("swordfish") == []


TWICE = [f"my password is hunter2, {KEY}", "hello", f"again {KEY}"]


def test_the_same_turns_are_the_same_turns(tmp_path):
    bank = open_bank(tmp_path / "home", redact=Redact())
    scope, turns = Scope(user="ana", session="1"), [said(n, text) for n, text in enumerate(TWICE, 1)]
    first = bank.stage_turns(scope, turns)
    assert [turn.position for turn in first] == [1, 2, 3]
    assert bank.stage_turns(scope, turns) == bank.stage_turns(scope, first) == first
    assert len(bank.session_turns(scope, last=9)) == 3
    bank.close()


def test_what_was_stored_or_forgotten_before_it_was_switched_on_is_known(tmp_path):
    scope, turns = Scope(user="ana", session="1"), [said(n, text) for n, text in enumerate(TWICE, 1)]
    with open_bank(tmp_path / "home") as bank:
        before = bank.stage_turns(scope, turns)
        (raw,) = bank.raw_entries(scope, ["D1:3"])
        bank.forget(scope, raw.id)
    with open_bank(tmp_path / "home", redact=Redact()) as bank:
        assert bank.stage_turns(scope, turns) == before[:2]
        assert len(bank.session_turns(scope, last=9)) == 2


def test_an_agent_that_keeps_no_thread_hands_its_history_over_anew(tmp_path):
    """The messages come with new ids each time and are told by their words, as they would be stored."""
    bank = open_bank(tmp_path / "home", redact=Redact())
    scope = Scope(user="ana", session="1")
    history = [HumanMessage(f"Use {KEY}.", id="1"), AIMessage("I do.", id="2")]
    bank.stage_turns(scope, new_turns(history, bank, scope, bank.settings, task="one"))
    again = [one.model_copy(update={"id": f"new-{one.id}"}) for one in history]
    said = [*again, HumanMessage("Thanks.", id="new-3")]
    [new] = bank.stage_turns(scope, new_turns(said, bank, scope, bank.settings, task="two"))
    assert new.text == "Thanks."
    said.append(AIMessage("Bye.", id="new-4"))  # after its run, whose words were written down before it
    [reply] = new_turns(said, bank, scope, bank.settings, task="three")
    assert (reply.text, reply.position) == ("Bye.", 4)
    bank.close()


def test_one_home_is_redacted_one_way(tmp_path):
    with Memory.open(settings=Settings(home=tmp_path / "h", redact=True), embeddings=FakeEmbeddings()) as one:
        with pytest.raises(StoreError, match="another redact"):
            Memory.open(settings=Settings(home=tmp_path / "h"), embeddings=one.bank.indexes.vectors)
        for build in (build_remember, build_recall, build_memory):
            with pytest.raises(BadInput, match=r"settings.redact"):
                build(bank=one.bank, settings=Settings(home=tmp_path / "h"))


def test_refused_edits_are_reported_without_it(tmp_path):
    bank = open_bank(tmp_path / "home", redact=Redact())
    edit = Edit(op="ADD", entry=fact(f"Owns {KEY}", "D9:9"))
    applied = bank.apply(Scope(user="ann", session="1"), [edit])
    assert [one.text for one in applied.rejected] == ["Owns [redacted: api key]"]
    bank.close()


@pytest.mark.parametrize("shape", MESSAGES)
def test_checkpoints_of_runs_hold_none(tmp_path, shape):
    """Where runs are kept, what they were given is kept with them."""
    given = MESSAGES[shape]
    settings = Settings(home=tmp_path / "home", shards=2, redact=True)
    place = f"sqlite:///{tmp_path / 'home' / 'runs.sqlite3'}"
    with Memory.open(settings=settings, embeddings=FakeEmbeddings(), user="ana", checkpoints=place) as memory:
        memory.add([given] if isinstance(given, Turn) else given)
        memory.ask(f"Who has {KEY}?")
        asyncio.run(memory.aadd([("user", f"And {KEY}")]))
        assert memory.memories(granularity="raw") != []
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert "runs.sqlite3" in {path.name for path in files}
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []


def test_an_answer_to_an_approval_is_kept_without_it(tmp_path):
    settings = Settings(
        home=tmp_path / "home",
        shards=2,
        redact=True,
        profile="paper",
        approval=Approval(kinds=("episodic", "preference")),
    )
    with Memory.open(
        settings=settings, embeddings=FakeEmbeddings(), user="ana",
        checkpoints=f"sqlite:///{tmp_path / 'runs.sqlite3'}",
        overrides={"constructor": FM(script=[facts("Weaves linen")])},
    ) as memory:  # fmt: skip
        stopped = memory.add("I weave linen.")
        memory.resume(stopped.thread_id, [{"n": 1, "decision": "edit", "text": f"Weaves linen, {KEY}"}])
        (one,) = memory.memories(granularity="fact")
        assert one.text == "Weaves linen, [redacted: api key]"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []
