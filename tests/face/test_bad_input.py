"""Bad input at the public doors: one error that says what, where, and what may be given."""

import dataclasses
import inspect

import pytest
from langchain_core.runnables import RunnableLambda

from memcycle import MemcycleStore, Memory, Roles, Settings, build_memory, build_recall
from memcycle.core.errors import BadInput
from memcycle.integrations import memory_tools


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path / "home", user="ann") as opened:
        opened.add("I keep two hives in Linz.")
        yield opened


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda m: m.memories(granularity="facts"), "must be 'raw', 'fact' or 'episode', not 'facts'"),
        (lambda m: m.memories(kind="hobby"), "kind must be 'episodic', .*not 'hobby'"),
        (lambda m: m.memories(statuses="active"), "statuses must be a list, not 'active'"),
        (lambda m: m.memories(statuses=["old"]), r"statuses\[0\] must be 'staged', 'active'"),
        (lambda m: m.memories(status="active"), "memories: no 'status'; did you mean 'statuses'"),
        (lambda m: m.memories(limit=-1), "limit must be greater than or equal to 0, not -1"),
        (lambda m: m.memories(search=7), "search must be a valid string"),
        (lambda m: m.memories(user=""), "user must be 1 to 512 characters"),
        (lambda m: m.add([{"role": "user"}]), "message 1: field 'content' is missing"),
        (lambda m: m.add([("user", "I ski."), {"role": "user", "contents": "x"}]), "message 2: field"),
        (lambda m: m.add({"role": "assistant"}), "message 1: field 'content' is missing"),
        (lambda m: m.add(None), "messages must be"),
        (lambda m: m.add("I ski.", session=""), "session must be 1 to 512 characters"),
        (lambda m: m.add("I ski.", bulk="no"), "bulk must be a valid boolean"),
        (lambda m: m.add("I ski.", now=7), "now must be a valid datetime or a valid string"),
        (lambda m: m.ask(["Where?"]), "question must be a valid string, not a list"),
        (lambda m: m.ask("Where?", limit=3), "ask: no 'limit'; there are question, user"),
        (lambda m: m.recall("Where?", k="3"), "recall: k must be a valid integer"),
        (lambda m: m.get(["x"]), "entry_id must be a valid string, not a list"),
        (lambda m: m.forget(None), "forget: entry_id must be a valid string, not None"),
        (lambda m: m.forget_user(None), "forget_user: user must be a valid string, not None"),
        (lambda m: m.edit("x", 7), "text must be a valid string"),
        (lambda m: m.import_("x"), "record 1: expected an object"),
        (lambda m: m.import_([7]), "record 1: expected an object"),
        (lambda m: m.probes_over([7]), r"entries\[0\]"),
        (lambda m: m.maintain(dryrun=True), "did you mean 'dry_run'"),
        (lambda _: Memory.open("a\0b"), "home: a folder must be named, without NUL"),
        (lambda _: Memory.open(""), "home: a folder must be named"),
        (lambda _: Memory.open("x", settings={"idle_after": 5}), "settings must be an instance of Settings"),
        (lambda _: Memory.open("x", roles={"judge": 1}), "roles must be Roles, not a dict"),
        (lambda _: Memory.open("x", embeddings="minilm"), "must be a LangChain embedder, not a str"),
        (lambda _: Memory.open("x", overrides="rules", model="openai:x"), "overrides must be a dict"),
        (lambda _: Settings(home="a\0b"), "home: a folder must be named"),
        (lambda _: Settings(idle="5"), "settings: no 'idle'; there are home"),
        (lambda _: Settings(switches={"verfy": False}), "switches: no 'verfy'; did you mean 'verify'"),
        (lambda _: Settings(approval={"deletes": True}), "approval: no 'deletes'; did you mean 'delete'"),
        (lambda _: Settings(timezone="Mars"), "timezone 'Mars' is not an IANA zone"),
        (lambda _: build_memory(settings={"shards": 2}), "settings must be an instance of Settings"),
        (lambda _: build_recall(roles="rules"), "build_recall: roles must be an instance of Roles"),
        (lambda _: build_memory(bank="home"), "bank must be a Bank"),
        (lambda _: build_memory(setting=None), "build_memory: no 'setting'; did you mean 'settings'"),
        (lambda _: memory_tools(7), "memory_tools: memory must be an instance of Memory"),
        (lambda _: MemcycleStore(7).get(("a",), "k"), "memory must be a bank, Settings or"),
        (lambda _: MemcycleStore("a\0b").get(("a",), "k"), "home: a folder must be named"),
        (lambda _: dataclasses.replace(Roles.rules(), judge=len), "judge must be a Runnable"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(memory, tmp_path, monkeypatch, call, why):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=why):
        call(memory)
    assert [one.text for one in memory.memories(granularity="raw")] == ["I keep two hives in Linz."]


async def test_so_does_each_awaitable_form(memory):
    with pytest.raises(BadInput, match="amemories: granularity must be"):
        await memory.amemories(granularity="facts")
    with pytest.raises(BadInput, match="aask: k must be"):
        await memory.aask("Where?", k="3")
    with pytest.raises(BadInput, match="arecall: no 'evidence_only'"):
        await memory.arecall("Where?", evidence_only=True)


def test_signatures_stay_those_of_the_methods():
    for name in ("add", "ask", "recall", "memories", "end_session", "forget"):
        method, twin = getattr(Memory, name), getattr(Memory, f"a{name}")
        assert inspect.signature(method) == inspect.signature(twin)
        assert inspect.iscoroutinefunction(twin)
    assert "granularity" in inspect.signature(Memory.amemories).parameters


def test_an_assistants_message_of_tool_calls_alone_is_no_mistake(memory):
    calls = [{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    spoken = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "user", "content": "I ski."},
    ]
    assert memory.add(spoken, session="tools").turns == ["Dtools:1"]


def test_a_fact_that_two_turns_say_is_listed_once(memory):
    added = memory.add(["I breed alpacas in Graz.", "I breed alpacas in Graz."], session="twice")
    assert len(added.facts) == len(set(added.facts))


@pytest.mark.parametrize(
    ("role", "gives", "why"),
    [
        ("guide", 7, "role 'guide' failed: its runnable gave a int, not a GuideOutput"),
        ("retriever", {"queries": 7}, "role 'retriever' failed: its runnable gave a dict, not a Retriever"),
        ("constructor", ["Skis"], "role 'constructor' failed: its runnable gave a list"),
    ],
)  # fmt: skip
def test_a_role_of_ones_own_that_gives_something_else_is_named(tmp_path, role, gives, why):
    own = dataclasses.replace(Roles.rules(), **{role: RunnableLambda(lambda _: gives)})
    with Memory.open(tmp_path / "home", user="ann", roles=own) as memory:
        memory.add("I keep two hives in Linz.")
        assert why in " ".join(memory.add("I keep three hives in Linz.").warnings)


def test_a_role_of_ones_own_may_give_a_plain_dict(tmp_path):
    facts = {
        "facts": [{"text": "Ann keeps two hives in Linz.", "turn": 1, "quote": "I keep two hives in Linz."}]
    }
    own = dataclasses.replace(Roles.rules(), constructor=RunnableLambda(lambda _: facts))
    with Memory.open(tmp_path / "home", user="ann", roles=own) as memory:
        added = memory.add("I keep two hives in Linz.")
        assert (len(added.facts), added.warnings) == (1, [])
