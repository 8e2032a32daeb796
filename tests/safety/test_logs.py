"""What runs say to logs and streams, and keep of errors: ids, counts, kinds; no words of a conversation."""

import contextlib
import json
import logging
from dataclasses import replace

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda

from memcycle import MemcycleStore, Memory, Roles, Settings, build_memory, build_session
from memcycle.core.errors import EmbeddingFailed, RoleFailed
from memcycle.core.world import World
from memcycle.integrations import memory_tools
from memcycle.integrations.background import Recorder
from tests.cases.adapter import FM
from tests.fakes import FakeEmbeddings, with_nan
from tests.hand_clock import HandClock

WORDS = ("quokka", "zeppelin", "marzipan", "oboe")
SAID = [
    HumanMessage("My quokka is called Zeppelin.", id="1"),
    AIMessage("A zeppelin of a quokka!", id="2"),
    HumanMessage("I no longer play the oboe. I moved to Graz. I eat marzipan.", id="3"),
]
ASKED = "What is the quokka called, and who eats marzipan?"


def spoken(text: str) -> list[str]:
    return [word for word in WORDS if word in text.casefold()]


@pytest.fixture
def quiet(caplog, capfd):
    """Everything is logged from DEBUG on, by every library; afterwards no word of the talk may be in it."""
    caplog.set_level(logging.DEBUG)
    yield caplog
    out, err = capfd.readouterr()
    assert spoken(out + err) == []
    told = [record for record in caplog.records if spoken(record.getMessage() + (record.exc_text or ""))]
    assert [f"{record.name}: {record.getMessage()}" for record in told] == []


def everything(memory: Memory) -> None:
    """A whole life: said, asked, ended and examined, corrected, taken back, exported, forgotten."""
    for message in SAID:
        memory.add(message, user="ana")
    memory.add("I play the oboe.", user="ana", session="early", now="2020-01-01T00:00:00Z")
    memory.ask(ASKED, user="ana")
    for session in ("early", "main"):
        memory.end_session(session, user="ana")
    memory.ask(ASKED, user="ana")
    entry = memory.memories(user="ana")[0]
    new = memory.edit(entry.id, "My quokka is called Marzipan.", user="ana")
    memory.undo(new.id, user="ana")
    memory.maintain(user="ana")
    memory.import_(memory.export(user="ana"), user="ben")
    memory.bank.check()
    memory.forget(entry.id, user="ana")
    memory.forget_user("ben")


def test_a_whole_life_by_rules(quiet, tmp_path):
    with Memory.open(Settings(home=tmp_path / "h").home, embeddings=FakeEmbeddings()) as memory:
        everything(memory)


REPLIES = {"nonsense": "The quokka eats marzipan {", "echo": json.dumps({"facts": 7, "zeppelin": "quokka"})}


@pytest.mark.parametrize("reply", REPLIES)
def test_models_that_answer_with_words_of_the_talk(quiet, tmp_path, reply):
    """Every role fails, and says so: by its name, without its reply."""
    roles = Roles.rules().names()
    models = {role: FM(script=[lambda _: REPLIES[reply]] * 99) for role in roles}
    with Memory.open(tmp_path / "h", embeddings=FakeEmbeddings(), overrides=models) as memory:
        everything(memory)


def test_an_embedder_that_fails(quiet, tmp_path):
    fails = [ConnectionError("could not embed 'My quokka'"), with_nan, ValueError("quokka")] * 20
    with Memory.open(tmp_path / "h", embeddings=FakeEmbeddings(script=fails)) as memory:
        for _ in range(3):
            # What fails is raised to the caller as it is; here only what is logged of it counts.
            with contextlib.suppress(ConnectionError, ValueError, EmbeddingFailed):
                memory.add("My quokka is called Zeppelin.", user="ana")
        with contextlib.suppress(ConnectionError, ValueError, EmbeddingFailed):
            memory.end_session(user="ana")
        memory.bank.check()
        assert memory.memories(user="ana") != []


def test_the_chat_graph_the_tools_and_the_middleware(quiet, tmp_path):
    with Memory.open(tmp_path / "h", embeddings=FakeEmbeddings()) as memory:
        context = {"user": "ana", "session": "main"}
        build_memory(bank=memory.bank).invoke({"messages": SAID}, context=context)
        build_session(bank=memory.bank).invoke({}, context=context)
        assert [tool.name for tool in memory_tools(memory)]
        recorder = Recorder(memory)
        recorder.later(memory.scope("ana").within("later"), SAID)
        assert recorder.flush(60) == []
        recorder.close()
        with MemcycleStore(memory.bank) as store:
            store.put(("ana",), "1", {"text": "My quokka is called Zeppelin."})
            store.search(("ana",), query="quokka")


def test_an_end_of_an_idle_session_that_fails(quiet, tmp_path):
    """The error's own words quote a reply; what is logged and kept of it names its kind and role."""

    def fails(_):
        raise RoleFailed("episode_writer", "quokka is no time", "My quokka")

    def breaks(_):
        raise RuntimeError("cannot write 'My quokka'")

    roles, clock = Roles.rules(), HandClock()
    for broken in (fails, breaks):
        chosen = replace(roles, episode_writer=RunnableLambda(broken), prober=RunnableLambda(broken))
        with Memory.open(
            tmp_path / broken.__name__, roles=chosen, embeddings=FakeEmbeddings(), world=World(now=clock)
        ) as memory:
            memory.add(SAID, user="ana")
            clock.pass_(3600)
            (ended,) = memory.end_idle().values()
            assert ended.warnings
            if broken is breaks:
                assert ended.warnings == ["a session that had gone idle was not ended: RuntimeError"]


def test_a_graph_streams_no_words_in_its_custom_events(tmp_path):
    with Memory.open(tmp_path / "h", embeddings=FakeEmbeddings()) as memory:
        graph = build_memory(bank=memory.bank)
        context = {"user": "ana", "session": "main"}
        told = list(graph.stream({"messages": SAID}, context=context, stream_mode="custom", subgraphs=True))
    assert spoken(json.dumps(told, default=str)) == []
