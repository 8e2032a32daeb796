"""Whatever is said, at whatever length, is taken in: what a model or embedder refuses as too long is cut."""

from collections import Counter

import pytest

from memcycle.core.messages import read_messages
from memcycle.core.settings import Settings
from memcycle.core.theta import Theta
from memcycle.core.world import World
from memcycle.memory import Memory
from memcycle.stores.embedders import Embedder, langchain_model
from tests.fakes import FakeEmbeddings
from tests.loopback import Reply, model_server

SAID = [f"My friend number {n} is called Name{n} and lives in Town{n}." for n in range(60)]
BOATS = " ".join(f"In year {1900 + n} my cousin Kim{n} bought boat number {n}." for n in range(150))
"""One message, 7,600 characters."""


def length(body) -> int:
    return sum(len(str(message["content"])) for message in body["messages"])


WORDS = {
    "openai": Reply(status=400, error="This model's maximum context length is 2048 tokens."),
    "llama.cpp": Reply(status=400, error="the request exceeds the available context size"),
    "413": Reply(status=413, error="Request Entity Too Large"),
}


@pytest.fixture
def server(socket_enabled):
    """Takes as many characters of a prompt as `limit` says."""
    with model_server() as running:
        answer, running.limit, running.words = running._answer, 10_000, WORDS["openai"]
        running._answer = lambda body: running.words if length(body) > running.limit else answer(body)
        yield running


@pytest.fixture
def memory(server, tmp_path):
    with Memory.open(
        settings=Settings(home=tmp_path / "home", profile="paper"),
        model="openai:test", base_url=server.url, api_key="none", user="ann",
        embeddings=FakeEmbeddings(), max_retries=0,
    ) as opened:  # fmt: skip
        yield opened


def missing(memory, said=SAID) -> list[str]:
    """Names of what was said that no fact holds."""
    facts = " ".join(entry.text for entry in memory.memories(granularity="fact"))
    return [line for n, line in enumerate(said) if f"Name{n} " not in facts]


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("bulk", [False, True])
def test_many_turns_at_once_are_all_read(server, memory, words, bulk):
    server.words = WORDS[words]
    added = memory.add(SAID, bulk=bulk)
    assert len(added.turns) == len(SAID)
    assert (added.unextracted, missing(memory)) == ([], [])
    assert memory.end_session(verify=False).status == "committed_unverified"


def test_what_is_added_at_once_is_read_in_chunks_of_a_size(server, tmp_path):
    settings = Settings(
        home=tmp_path / "home", profile="paper", theta=Theta().with_changes({"extraction.tokens": 600})[0]
    )
    with Memory.open(
        settings=settings, model="openai:test", base_url=server.url, api_key="none", user="ann",
        embeddings=FakeEmbeddings(), max_retries=0,
    ) as memory:  # fmt: skip
        server.limit = 1_000_000
        added = memory.add(SAID)
        assert (added.unextracted, missing(memory), added.warnings) == ([], [], [])
        asked = server.of("constructor")
        assert len(asked) > 4
        shown = Counter(
            n for n in range(60) for body in asked if f"Name{n} " in body["messages"][-1]["content"]
        )
        assert set(shown) == set(range(60))
        assert max(map(length, server.requests)) < 15_000
        assert len(set(added.turns)) == len(added.turns) == len(SAID)
        assert len(set(added.facts)) == len(added.facts) == len(SAID)
        assert [
            len(memory.bank.by_turns(memory.scope(), [turn], "episode")) for turn in added.turns[:20]
        ] == [1] * 20


async def test_the_same_awaited(server, memory):
    added = await memory.aadd(SAID)
    assert (added.unextracted, missing(memory)) == ([], [])


def test_one_message_that_is_too_long_is_read_in_pieces(server, memory):
    added = memory.add(BOATS)
    assert added.unextracted == []
    facts = " ".join(entry.text for entry in memory.memories(granularity="fact"))
    assert [n for n in range(150) if f"Kim{n} " not in facts] == []
    assert {turn for one in memory.memories(granularity="fact") for turn in one.turns} == {"Dmain:1"}
    assert memory.add("I keep bees in Graz.").unextracted == []
    assert "Graz" in memory.ask("Where do I keep bees?").answer


def test_a_model_that_takes_nothing_holds_nobody_up(server, memory):
    server.limit = 500
    added = memory.add([*SAID[:3], BOATS])
    assert len(added.unextracted) == 4
    assert any("longer than the model takes" in warning for warning in added.warnings)
    assert memory.end_session().status == "committed_unverified"
    assert memory.sessions()[0].staged == 0
    server.limit = 10_000
    assert memory.add("I keep bees in Graz.").unextracted == []
    assert missing(memory, SAID[:3]) == []


@pytest.mark.parametrize("door", ["end", "end unverified", "add"])
def test_a_session_that_was_stuck_is_freed(server, memory, door):
    """As older versions left it: all turns taken in, none read, its end begun."""
    scope, bank = memory.scope(session="main"), memory.bank
    now, zone = bank.world.now(), memory.settings.zone
    bank.stage_turns(scope, read_messages(SAID, session="main", now=now, zone=zone))
    bank.apply(scope, [], turns=[f"Dmain:{n + 1}" for n in range(60)], state="unextracted")
    bank.begin_verification(scope)
    if door == "add":
        assert memory.add("I keep bees in Graz.").unextracted == []
    ended = memory.end_session(verify=False if door == "end unverified" else None)
    assert ended.status.startswith("committed")
    assert missing(memory) == []


def test_what_fails_after_some_chunks_costs_no_word(server, tmp_path):
    settings = Settings(
        home=tmp_path / "home", profile="paper", theta=Theta().with_changes({"extraction.tokens": 600})[0]
    )
    with Memory.open(
        settings=settings, model="openai:test", base_url=server.url, api_key="none", user="ann",
        embeddings=FakeEmbeddings(), max_retries=0,
    ) as memory:  # fmt: skip

        def first_only(body):
            return (
                Reply(status=500, error="boom")
                if "Name59 " in body["messages"][-1]["content"]
                else answer(body)
            )

        answer, server._answer = server._answer, first_only
        with pytest.raises(Exception, match="boom"):
            memory.add(SAID)
        assert len(missing(memory)) < 30
        server._answer = answer
        memory.end_session()
        assert missing(memory) == []


class Short(FakeEmbeddings):
    """Takes so many characters of a text, and so many texts of a call."""

    def __init__(self, longest: int, error, most: int = 1000) -> None:
        super().__init__()
        self.longest, self.error, self.most = longest, error, most

    def embed_documents(self, texts):
        if max(map(len, texts)) > self.longest or len(texts) > self.most:
            self.calls.append(["refused"])
            raise self.error
        return super().embed_documents(texts)


class Refused(Exception):
    status_code = 400


@pytest.mark.parametrize(
    "error", [ValueError("input is too long"), Refused("maximum 2000 characters"), Refused("no")]
)
def test_a_message_an_embedder_refuses_is_embedded_in_pieces(tmp_path, error):
    embeddings = Short(2000, error)
    with Memory.open(tmp_path / "home", user="ann", embeddings=embeddings) as memory:
        added = memory.add(["I keep bees in Graz.", BOATS[:3021], "My dog is called Miso."])
        assert len(added.turns) == 3
        assert memory.end_session().status == "committed"
        assert memory.bank.check()["without_vector"] == 0
        assert "Graz" in memory.ask("Where do I keep bees?").answer
        refusals = embeddings.calls.count(["refused"])
        memory.add(BOATS[100:3500], session="later")
        assert embeddings.calls.count(["refused"]) == refusals, "what it takes is remembered"


def test_pieces_are_as_near_as_what_they_are_made_of(tmp_path):
    whole = Embedder(langchain_model(FakeEmbeddings()), World())
    short = Embedder(langchain_model(Short(500, Refused("too long"), most=2)), World())
    texts = ["bees in Graz", BOATS[:3000], "a dog"]
    mine, other = short.embed(texts), whole.embed(texts)
    assert [round(float(a @ b), 2) >= 0.9 for a, b in zip(mine, other, strict=True)] == [True] * 3
    with pytest.raises(Refused):
        Embedder(langchain_model(Short(10, Refused("too long"))), World()).embed([BOATS])
