"""What an embedder can do wrong: the turns are kept without vectors, and get them when it is back."""

import pytest

from memcycle import build_memory, build_recall
from memcycle.core.errors import EmbedderMismatch, EmbeddingFailed
from memcycle.core.settings import Settings
from memcycle.core.world import World
from memcycle.memory import Memory
from memcycle.stores.bank import Bank
from memcycle.stores.embedders import find_model
from tests.banks import ANN
from tests.fakes import FakeEmbeddings, TooManyRequests, too_short, with_nan, wrong_dimension
from tests.hand_clock import HandClock

FAULTS = {
    "429": (TooManyRequests("1"), EmbeddingFailed, "429"),
    "wrong dimension": (wrong_dimension, EmbeddingFailed, "shape"),
    "NaN": (with_nan, EmbeddingFailed, "NaN"),
    "partial batch": (too_short, EmbeddingFailed, "vectors for"),
    "connection": (ConnectionError("no route to the embedder"), ConnectionError, "no route"),
}
LINE = "I have a cat called Miso."


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def embeddings():
    return FakeEmbeddings()


@pytest.fixture
def memory(tmp_path, embeddings, clock):
    world = World(now=clock, sleep=lambda seconds: None)
    with Memory.open(tmp_path / "home", user="ann", embeddings=embeddings, world=world) as opened:
        opened.add("I live in Graz.")
        yield opened


@pytest.mark.parametrize("fault", FAULTS)
def test_an_embedder_that_fails_costs_no_word(memory, embeddings, clock, fault):
    step, error, words = FAULTS[fault]
    embeddings.script = [step] * 99
    with pytest.raises(error, match=words):
        memory.add(LINE)
    assert LINE in [entry.text for entry in memory.memories(granularity="raw")]
    assert memory.bank.check()["without_vector"] == 1
    found = memory.ask("What is my cat called?")
    assert "Miso" in found.answer
    assert [one for one in found.warnings if "by words alone" in one and error.__name__ in one]
    with pytest.raises(error, match=words):
        memory.ask("Welche Instrumente spiele ich?")  # none of its words is there: no empty memory
    embeddings.script.clear()
    clock.pass_(3600)
    assert memory.end_session().status == "committed"
    assert memory.bank.check()["without_vector"] == 0
    assert "Miso" in memory.ask("What is my cat called?").answer


def test_a_turn_is_written_before_the_embedder_is_asked(tmp_path):
    written = []

    class Watched(FakeEmbeddings):
        def embed_documents(self, texts):
            written.append([entry.text for entry in memory.memories()])
            return super().embed_documents(texts)

    with Memory.open(tmp_path / "home", user="ann", embeddings=Watched()) as memory:
        memory.add(LINE)
        assert written[0] == [LINE]
        assert memory.bank.check()["without_vector"] == 0


def test_turns_without_vectors_get_them_with_the_next_ones(memory, embeddings):
    embeddings.script = [ConnectionError("down")] * 2
    with pytest.raises(ConnectionError, match="down"):
        memory.add(LINE)
    assert memory.bank.check()["without_vector"] == 1
    memory.add("I play the cello.")
    assert memory.bank.check()["without_vector"] == 0


@pytest.mark.parametrize("first_use", [False, True])
async def test_a_chat_turn_outlives_an_embedder_that_is_down(tmp_path, first_use):
    embeddings = FakeEmbeddings()
    with Bank.open(Settings(home=tmp_path / "home"), embeddings=embeddings) as bank:
        graph, context = build_memory(bank=bank), {"user": "ann", "session": "s"}
        if not first_use:
            graph.invoke({"messages": [("user", "I keep geese in Graz.")]}, context=context)
        embeddings.script = [ConnectionError("down")] * 99
        for text in ("Where do I keep geese?", "Das Alpaka heißt Pepe."):
            with pytest.raises(ConnectionError, match="down"):
                await graph.ainvoke({"messages": [("user", text)]}, context=context)
        assert {"Where do I keep geese?", "Das Alpaka heißt Pepe."} <= {
            one.text for one in bank.entries(ANN.base)
        }
        answer = build_recall(bank=bank).invoke({"question": "How is Pepe?"}, context=context)["answer"]
        assert "Pepe" in answer["evidence"][0]["text"]
        assert "searched by words alone: the embedder failed (ConnectionError)" in answer["warnings"]


def test_a_429_is_waited_for_as_asked(tmp_path):
    waited = []
    embeddings = FakeEmbeddings(script=[None, TooManyRequests("7")])
    world = World(sleep=waited.append)
    with Memory.open(tmp_path / "home", user="ann", embeddings=embeddings, world=world) as memory:
        memory.add(f"{LINE} It sleeps all day.")
        assert waited == [7.0]
        assert memory.bank.check()["without_vector"] == 0


def test_another_model_under_the_same_name_costs_no_word(tmp_path):
    home = tmp_path / "home"
    with Memory.open(home, user="ann", embeddings=FakeEmbeddings()) as memory:
        memory.add("I live in Graz.")
        memory.end_session()
    with Memory.open(home, user="ann", embeddings=FakeEmbeddings(dim=16)) as memory:
        with pytest.raises(EmbeddingFailed, match=r"shape \(16,\), expected \(32,\).*doctor --reembed"):
            memory.add(LINE)
        assert LINE in [entry.text for entry in memory.memories(granularity="raw")]
        assert "Graz" in memory.ask("Where do I live?").answer
        with pytest.raises(EmbeddingFailed, match="expected"):
            memory.end_session()
    with Bank.open(Settings(home=home), embeddings=FakeEmbeddings(dim=16), repair=True) as bank:
        left = bank.mend().left
        assert [one.name for one in left] == ["without_vector"]
        assert "doctor --reembed" in left[0].remedy
        bank.reembed()
        assert bank.mend().left == []
    with Memory.open(home, user="ann", embeddings=FakeEmbeddings(dim=16)) as memory:
        assert "Graz" in memory.ask("Where do I live?").answer


def test_another_process_that_was_first_costs_no_word(tmp_path):
    home = tmp_path / "home"
    with Memory.open(home, user="ann", embeddings=FakeEmbeddings(model="mine")) as memory:
        memory.bank.ledger  # noqa: B018 - open, before any vector is recorded
        with memory.bank.ledger.write() as conn:
            conn.execute("INSERT INTO meta VALUES ('embedder', 'theirs'), ('dimension', '8')")
        with pytest.raises(EmbedderMismatch, match=r"theirs.*doctor --reembed"):
            memory.add(LINE)
        assert [entry.text for entry in memory.memories()] == [LINE]


def test_an_embedders_server_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    made = find_model("openai:any").load()
    assert made.__self__.request_timeout == 60
