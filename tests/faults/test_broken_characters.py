"""Characters that no file, no database and no model takes: half an emoji, NUL; from users and models."""

import json
from datetime import UTC, datetime

import pytest
from langchain_core.messages import HumanMessage

from memcycle import build_memory
from memcycle.core.errors import BadInput, UnknownEntry
from memcycle.core.settings import Settings
from memcycle.core.turn import Turn, sound, sound_data
from memcycle.memory import Memory
from memcycle.prompts import PromptSet
from memcycle.stores.langgraph_store.store import MemcycleStore
from tests.fakes import FakeEmbeddings
from tests.loopback import model_server

HALF = "\ud83c"
ODD = f"bees {HALF} and \0 wax \udf89"
NOW = datetime(2024, 5, 1, tzinfo=UTC)


def whole(value) -> bool:
    """Whether every text in it can be written."""
    said = json.dumps(value, ensure_ascii=False, default=str)
    return said.encode() and "\\u0000" not in said and "\0" not in said


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Grüße 🎉", "Grüße 🎉"),
        ("a\ud83c\udf89b", "a🎉b"),
        (f"a{HALF}b", "a\ufffdb"),
        (f"a{HALF}", "a\ufffd"),
        ("\udf89\ud83c\0", "\ufffd\ufffd\ufffd"),
        ("\udcff from a shell", "\ufffd from a shell"),
    ],
)
def test_what_cannot_be_written_is_replaced(given, kept):
    assert sound(given) == kept
    assert sound(kept) == kept
    assert sound_data({given: [given, 1, None]}) == {kept: [kept, 1, None]}


@pytest.fixture
def memory(tmp_path):
    with Memory.open(
        tmp_path / "home", user="ann", embeddings=FakeEmbeddings(), checkpoints=tmp_path / "cp.sqlite3"
    ) as opened:
        yield opened


SAID = {
    "text": f"I keep {ODD} in Graz.",
    "message": HumanMessage(f"I keep {ODD} in Graz.", id=f"m{HALF}", name=f"Ann{HALF}"),
    "dict": {"role": "user", "content": f"I keep {ODD}", "id": f"\0{HALF}", "metadata": {HALF: ODD}},
    "turn": [
        Turn(id=f"Dmain:{HALF}", session="main", position=1, speaker=ODD, text=f"I keep {ODD}", time=NOW)
    ],
}


@pytest.mark.parametrize("kind", SAID)
def test_a_user_may_say_them(memory, kind):
    added = memory.add(SAID[kind])
    assert added.turns
    assert "bees" in memory.ask(f"What do I keep, {ODD}?").answer
    if kind != "text":  # a message with an identity of its own is the same message, however it is written
        assert memory.add(SAID[kind]).turns == []
    assert memory.end_session().status == "committed"
    assert whole(memory.export())


def test_what_is_edited_and_imported_is_kept(memory):
    memory.add("I keep bees.")
    (entry,) = memory.memories(granularity="raw")
    edited = memory.edit(entry.id, f"Keeps {ODD}")
    assert edited.text == sound(f"Keeps {ODD}")
    row = {**memory.export()[0], "text": ODD, "metadata": {HALF: ODD}, "turns": [f"D{HALF}:1"], "actor": ODD}
    assert memory.import_([row], user="bob") == 1
    assert whole(memory.export(user="bob"))


def test_a_name_with_them_is_unknown_or_refused_in_words(memory):
    memory.add("I keep bees.")
    for call in (memory.get, memory.history, memory.undo, memory.holders):
        with pytest.raises(UnknownEntry):
            call(HALF)
    assert memory.bank.find(memory.scope(), HALF) == []
    assert memory.forget(HALF) == []
    for refused in (
        lambda: memory.add("x", session=HALF),
        lambda: memory.add("x", user=HALF),
        lambda: memory.add("x", thread_id=HALF),
        lambda: memory.resume(HALF),
    ):
        with pytest.raises(BadInput):
            refused()


def test_a_store_takes_them_in_keys_names_and_values(tmp_path):
    with MemcycleStore(tmp_path / "home") as store:
        store.put((f"n{HALF}",), f"k{HALF}", {f"t{HALF}": ODD, "more": [ODD]})
        item = store.get((f"n{HALF}",), f"k{HALF}")
        assert whole([item.key, item.namespace, item.value])
        assert store.search((f"n{HALF}",), query=ODD, filter={f"t{HALF}": ODD})[0].key == item.key
        store.delete((f"n{HALF}",), f"k{HALF}")
        assert store.get((f"n{HALF}",), f"k{HALF}") is None
        assert store.delete_namespace((f"n{HALF}",)) == 0


def test_a_graph_with_a_prompt_of_the_users_takes_them(memory):
    text = f"{PromptSet.shipped().text('constructor')}{ODD}"
    assert whole(PromptSet.shipped().overlay({"constructor": text}).text("constructor"))
    context = {"user": "ann", "prompts": {"constructor": text}}
    graph = build_memory(bank=memory.bank, settings=memory.settings)
    out = graph.invoke({"messages": [HumanMessage(f"I keep {ODD}. Where?", id=HALF)]}, context=context)
    assert out["remembered"]["turns"]


@pytest.fixture
def server(socket_enabled):
    with model_server() as running:
        yield running


@pytest.fixture
def on_model(server, tmp_path):
    with Memory.open(
        settings=Settings(home=tmp_path / "home", profile="paper"),
        model="openai:test", base_url=server.url, api_key="none", user="ann",
        embeddings=FakeEmbeddings(), max_retries=0, checkpoints=tmp_path / "cp.sqlite3",
    ) as opened:  # fmt: skip
        yield opened


def script(server, role, *replies):
    """As a model writes them: escapes in JSON."""
    server.script(role, *(json.dumps(reply) for reply in replies))


FACT = {"text": f"The user keeps {ODD}", "turn": 1, "quote": ODD, "entities": [ODD], "event_time": HALF}


def test_a_model_may_say_them_in_every_role(server, on_model):
    memory = on_model
    memory.add("I live in Graz.")
    script(server, "retriever", {"plans": [{"n": 1, "query": ODD, "k": 3, "speaker": HALF, "parts": [ODD],
            "intent": {"fine": False, "abs": False, "event": False, "atomic": True}}]})  # fmt: skip
    script(server, "guide", {"keep": [ODD], "conflicts": [HALF]})
    script(server, "judge", {"relevant": [0], "sufficient": True, "missing": ODD})
    script(server, "constructor", {"facts": [FACT]})
    script(server, "fact_judge", {"verdicts": [{"n": 1, "supported": True, "why": ODD}]})
    added = memory.add("I keep bees and wax.")
    assert len(added.facts) == 1
    script(server, "episode_writer", {"title": ODD, "text": f"Bees {HALF}", "topics": [ODD]})
    script(
        server,
        "prober",
        {"probes": [{"question": f"What is kept {HALF}?", "answer": f"bees {HALF}", "turn": 2}]},
    )
    script(server, "answerer", {"answer": f"wax {HALF}", "answerable": True, "citations": [0]})
    script(server, "grader", {"grades": [{"n": 1, "correct": False, "why": ODD}]})
    script(server, "repairer", {"op": "ADD_FACT", "cause": "missing", "why": ODD,
            "fact": {**FACT, "turn": 2, "quote": "I keep bees and wax."}})  # fmt: skip
    ended = memory.end_session()
    assert ended.probes == 1
    assert ended.status in ("committed", "committed_unverified")
    script(server, "answerer", {"answer": f"bees {HALF}", "answerable": True, "citations": [0]})
    answer = memory.ask("What do I keep?")
    assert answer.answer == "bees \ufffd"
    assert whole([memory.export(), answer.model_dump(), ended.model_dump(), added.model_dump()])
    assert whole([probe.model_dump() for probe in memory.session("main").examined])


def test_a_reply_that_cannot_be_used_is_shown_back_whole(server, on_model):
    server.script("constructor", f'no facts {json.dumps(HALF)} {{"x": "', json.dumps({"facts": [FACT]}))
    server.script(
        "constructor", *[f"still {HALF}".encode("utf-8", "surrogatepass").decode("utf-8", "replace")]
    )
    assert len(on_model.add("I keep bees and wax.").facts) == 1


def test_a_session_that_was_left_under_examination_is_freed_by_the_next_end(on_model):
    on_model.add("I keep bees.")
    on_model.bank.begin_verification(on_model.scope(session="main"))
    assert on_model.sessions()[0].status == "verifying"
    assert on_model.end_session().status == "committed"
