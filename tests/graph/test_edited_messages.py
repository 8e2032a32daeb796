"""A message that is edited where it was said keeps its id: its turn says the new words, at every door."""

import asyncio
from datetime import UTC, datetime
from functools import partial

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from memcycle import Memory, build_memory, build_remember
from memcycle.core.jsonl import read_jsonl
from memcycle.core.turn import Conversation, Session, Turn
from memcycle.ingest import ingest
from memcycle.integrations import MemoryMiddleware, memory_tools
from tests.fakes import FakeEmbeddings
from tests.integrations.conftest import thread

ANN = {"user": "ann", "session": "s"}
EVERY = ("staged", "active", "superseded", "forgotten")


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path / "home", user="ann", embeddings=FakeEmbeddings()) as opened:
        yield opened


def by_add(memory):
    return lambda text: memory.add({"role": "user", "content": text, "id": "m1"}, session="s")


def by_aadd(memory):
    return lambda text: asyncio.run(memory.aadd(HumanMessage(text, id="m1"), session="s"))


def by_remember(memory):
    graph = build_remember(bank=memory.bank)
    return lambda text: graph.invoke({"messages": [HumanMessage(text, id="m1")]}, context=ANN)


def by_memory(memory):
    """A thread, in which a message under a known id takes the place of the old one."""
    graph = build_memory(bank=memory.bank).builder.compile(checkpointer=InMemorySaver())
    return lambda text: graph.invoke(
        {"messages": [HumanMessage(text, id="m1")]}, thread("s"), context={"user": "ann"}
    )


def by_agent(memory, background=False):
    remembers = MemoryMiddleware(memory, background=background)
    model = FakeListChatModel(responses=["Nice."])
    agent = create_agent(model, middleware=[remembers], checkpointer=InMemorySaver())

    def say(text):
        agent.invoke({"messages": [HumanMessage(text, id="m1")]}, thread("s"), context={"user": "ann"})
        remembers.flush()

    return say


def by_tool(memory):
    remember = next(one for one in memory_tools(memory) if one.name == "remember")

    def say(text):
        state = {"messages": [HumanMessage(text, id="m1")]}
        runtime = ToolRuntimeOf(state, thread("s") | {"configurable": {"thread_id": "s", "user_id": "ann"}})
        remember.func(text=text, runtime=runtime)

    return say


class ToolRuntimeOf:
    """What a tool is given of a run."""

    def __init__(self, state, config):
        self.state, self.config, self.context, self.tool_call_id = state, config, None, None


def by_file(memory):
    line = '{"session": "s", "speaker": "user", "role": "user", "text": %r, "time": "2024-05-01", "id": "m1"}'
    return lambda text: ingest(
        memory, read_jsonl((line % text).replace("'", '"'), zone=UTC, name="chat"), verify=False
    )


DOORS = [
    by_add,
    by_aadd,
    by_remember,
    by_memory,
    by_agent,
    partial(by_agent, background=True),
    by_tool,
    by_file,
]


def texts(memory, granularity, *statuses):
    found = memory.memories(granularity=granularity, statuses=statuses or ("staged", "active"))
    return sorted(one.text for one in found if one.speaker != "assistant")


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("door", DOORS, ids=lambda door: str(getattr(door, "__name__", "in background")))
def test_an_edited_message_is_a_new_version_of_its_turn(memory, door, ended):
    say = door(memory)
    say("I keep two hives in Graz.")
    memory.add("I play the cello.", session="s")
    if ended:
        memory.end_session("s", verify=False)
    say("I keep three hives in Graz.")
    for _ in range(2):  # the same message again is nothing
        assert texts(memory, "raw") == ["I keep three hives in Graz.", "I play the cello."]
        assert texts(memory, "fact") == ["I keep three hives in Graz.", "I play the cello."]
        assert "two" not in " ".join(texts(memory, "episode"))
        say("I keep three hives in Graz.")
    assert "three" in memory.ask("How many hives do I keep?", session="s").answer
    [new] = [one for one in memory.memories(granularity="raw") if "three" in one.text and one.role == "human"]
    told = [event.after["text"] for event in memory.history(new.id) if "text" in (event.after or {})]
    known = {one.id: one.text for one in memory.memories(statuses=EVERY)}
    assert {"I keep two hives in Graz.", "I keep three hives in Graz."} <= {
        *told, *(known[event.entry_id] for event in memory.history(new.id)),
    }  # fmt: skip
    memory.end_session("s", verify=False)
    assert {one.status for one in memory.memories()} == {"active"}
    assert len(memory.bank.session_turns(memory.scope().within("s"))) == len(
        memory.memories(granularity="raw")
    )
    found = memory.bank.check()
    assert (found["ledger_drift"], found["index"]) == (0, {"missing": 0, "stray": 0})


def test_it_is_quoted_with_the_speaker_and_the_time_of_the_edit(memory):
    first = {"role": "user", "name": "Ann", "content": "I keep two hives.", "id": "m1", "time": "2024-05-01"}
    memory.add(first)
    memory.end_session()
    memory.add({**first, "name": "Ann Lee", "content": "I keep three hives.", "time": "2024-05-03"})
    [best, *_] = memory.ask("How many hives do I keep?").evidence
    assert (best.text, best.speaker, best.time) == (
        "I keep three hives.", "Ann Lee", datetime(2024, 5, 3, tzinfo=UTC),
    )  # fmt: skip


def test_what_the_new_words_still_say_is_still_known(memory):
    memory.add({"role": "user", "content": "I live in Graz. I keep two hives.", "id": "m1"})
    memory.add({"role": "user", "content": "I live in Graz.", "id": "m2"})
    memory.end_session()
    memory.add({"role": "user", "content": "I keep three hives.", "id": "m1"})
    assert texts(memory, "fact") == ["I keep three hives.", "I live in Graz."]
    [home] = [one for one in memory.memories(granularity="fact") if "Graz" in one.text]
    assert home.turns == ("Dmain:2",)


def test_what_another_session_says_too_stays_there(memory):
    for session in ("one", "two"):
        memory.add({"role": "user", "content": "I keep two hives.", "id": "m1"}, session=session)
        memory.end_session(session)
    memory.add({"role": "user", "content": "I keep geese.", "id": "m1"}, session="two")
    assert texts(memory, "fact") == ["I keep geese.", "I keep two hives."]


def test_an_edit_is_taken_back_and_made_anew(memory):
    """By the source, which gives the old words again, and by a person, who undoes it."""
    say = by_add(memory)
    for text in ("I keep two hives.", "I keep three hives.", "I keep two hives."):
        say(text)
        assert (texts(memory, "raw"), texts(memory, "fact")) == ([text], [text])
    say("I keep three hives.")
    [raw] = memory.memories(granularity="raw")
    assert memory.undo(raw.id).text == "I keep two hives."
    assert texts(memory, "raw") == ["I keep two hives."]
    assert len(memory.forget(memory.memories(granularity="raw")[0].id)) == 4
    assert memory.memories(statuses=EVERY) == []
    say("I keep four hives.")
    assert memory.memories(statuses=EVERY) == []  # the message was forgotten, whatever it says


def test_the_summary_of_a_session_is_written_anew(memory):
    for n, text in enumerate(("I keep two hives.", "They stand in Graz.", "I sell the honey.")):
        memory.add({"role": "user", "content": text, "id": str(n)})
    memory.end_session()
    [before] = memory.memories(granularity="episode")
    memory.add({"role": "user", "content": "They stand in Linz.", "id": "1"})
    [after] = memory.memories(granularity="episode")
    assert (after.turns, "Graz" in before.text, "Graz" in after.text) == (before.turns, True, False)


def test_an_edited_turn_survives_export_and_import(memory, tmp_path):
    say = by_add(memory)
    say("I keep two hives.")
    say("I keep three hives.")
    memory.end_session("s")
    with Memory.open(tmp_path / "other", user="ann", embeddings=FakeEmbeddings()) as other:
        other.bank.import_(other.scope(), list(memory.bank.export(memory.scope())))
        by_add(other)("I keep three hives.")
        assert texts(other, "raw", *EVERY) == texts(memory, "raw", *EVERY)
        by_add(other)("I keep four hives.")
        assert texts(other, "raw") == ["I keep four hives."]


def spoken(*said, day=1):
    return [
        Turn(
            id=f"D1:{n}", session="1", position=n, speaker=speaker, text=text,
            time=datetime(2024, 5, day, tzinfo=UTC),
        )
        for n, (speaker, text) in enumerate(said, 1)
    ]  # fmt: skip


def take_in(memory, turns):
    ingest(memory, Conversation("chat", (Session("1", tuple(turns)),)), verify=False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Look at this!", "Look at this!\n[image: a red kayak on a lake]"),
        ("I teach fencing in Lintz.", "I teach fencing in Linz."),
        ("I keep two hives.", "I keep three hives."),
        ("我住在格拉茨，养了两只鹅。", "我住在格拉茨，养了三只鹅。"),
    ],
)
def test_a_file_without_ids_that_was_edited_doubles_no_turn(memory, old, new):
    before = spoken(("Ann", old), ("Ben", "Nice!"), ("Ann", "Thanks."))
    take_in(memory, before)
    after = spoken(("Ann", new), ("Ben", "Nice!"), ("Ann", "Thanks."), ("Ben", "See you."))
    for _ in range(2):
        take_in(memory, after)
        assert texts(memory, "raw") == sorted(turn.text for turn in after)
    assert {one.status for one in memory.memories()} == {"active"}


@pytest.mark.parametrize(
    "other",
    [
        spoken(("Ann", "I teach fencing in Linz."), day=2),
        spoken(("Ben", "I teach fencing in Linz.")),
        spoken(("Ann", "We sold the boat.")),
    ],
)
def test_another_conversation_at_the_same_place_is_no_edit(memory, other):
    take_in(memory, spoken(("Ann", "I teach fencing in Graz.")))
    take_in(memory, other)
    assert texts(memory, "raw") == sorted(["I teach fencing in Graz.", other[0].text])


def test_an_edited_reply_of_the_assistant_is_no_evidence(memory):
    memory.add([AIMessage("You keep two hives.", id="a1")])
    memory.add([AIMessage("You keep three hives.", id="a1")])
    assert [one.text for one in memory.memories()] == ["You keep three hives."]


def test_secrets_are_taken_out_of_an_edit(tmp_path):
    from memcycle import Settings

    settings = Settings(home=tmp_path / "home", redact=True)
    with Memory.open(settings=settings, user="ann", embeddings=FakeEmbeddings()) as memory:
        say = by_add(memory)
        say("My name is Ann.")
        for _ in range(2):
            say("Use sk-proj-abcDEF1234567890abcd.")
        assert texts(memory, "raw", *EVERY) == ["My name is Ann.", "Use [redacted: api key]."]
