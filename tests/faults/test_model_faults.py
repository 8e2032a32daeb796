"""What a model's server can do wrong, over HTTP: no word is lost, nothing hangs, the message says what."""

import json
from datetime import UTC

import openai
import pytest

from memcycle.agents.provider_errors import explain_model_error
from memcycle.core.errors import KEPT, ModelUnavailable, StoreError
from memcycle.core.messages import read_messages
from memcycle.core.settings import Settings
from memcycle.core.turn import Conversation, Session
from memcycle.core.world import World
from memcycle.ingest import ingest
from memcycle.memory import Memory
from tests.fakes import FakeEmbeddings
from tests.hand_clock import HandClock
from tests.loopback import Reply, html, model_server, rate_limited

LINES = ["I live in Graz.", "I have a cat called Miso.", "I play the cello."]


@pytest.fixture
def server(socket_enabled):
    with model_server() as running:
        yield running


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def memory(request, server, tmp_path, clock):
    """Its calls end soon only where the server hangs: a busy machine is no fault of the server."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    with Memory.open(
        settings=Settings(home=tmp_path / "home", profile="paper"),
        model="openai:test",
        base_url=server.url,
        api_key="none",
        user="ann",
        embeddings=FakeEmbeddings(),
        world=World(now=clock),
        timeout=1 if parameters.get("fault") == "hang" else 60,
        max_retries=0,
    ) as opened:
        yield opened


def heal(server) -> None:
    """The server answers again."""
    server._scripts.clear()


def raw(memory) -> list[str]:
    return sorted(entry.text for entry in memory.memories(granularity="raw"))


def facts(memory) -> str:
    return " ".join(entry.text for entry in memory.memories(granularity="fact"))


SERVER_FAULTS = {
    "429": (
        Reply(status=429, error="slow down", headers={"retry-after": "0"}),
        openai.RateLimitError,
        "rate limit",
    ),
    "500": (Reply(status=500, error="boom"), openai.InternalServerError, "5xx"),
    "hang": (Reply(hang=30), openai.APITimeoutError, "did not answer in time"),
    "html": (html(), ModelUnavailable, "base URL"),
}


@pytest.mark.parametrize("fault", SERVER_FAULTS)
def test_a_server_that_fails_costs_no_word(server, memory, clock, fault):
    reply, error, words = SERVER_FAULTS[fault]
    server.script("constructor", reply)
    with pytest.raises(error) as raised:
        memory.add(LINES[0])
    assert words in str(explain_model_error(raised.value))
    assert raw(memory) == LINES[:1]
    heal(server)
    memory.add(LINES[1])
    assert "Graz" in facts(memory)
    assert "Miso" in facts(memory)


@pytest.mark.parametrize("fault", SERVER_FAULTS)
def test_a_server_that_fails_is_no_empty_memory(server, memory, fault):
    reply, error, words = SERVER_FAULTS[fault]
    memory.add(LINES[0])
    server.script("answerer", reply)
    with pytest.raises(error) as raised:
        memory.ask("Where do I live?")
    assert words in str(explain_model_error(raised.value))
    assert "Graz" in memory.ask("Where do I live?").answer


@pytest.mark.parametrize("fault", SERVER_FAULTS)
def test_a_server_that_fails_leaves_a_session_to_be_ended_again(server, memory, fault):
    reply, error, _ = SERVER_FAULTS[fault]
    server.script("constructor", reply, reply)
    with pytest.raises(error):
        memory.add(LINES[0])
    with pytest.raises(error):
        memory.end_session()
    assert memory.sessions()[0].status != "committed"
    assert memory.end_session().status == "committed"
    assert "Graz" in memory.ask("Where do I live?", session="another").answer


def told(result, role) -> bool:
    return any(f"role {role!r} failed: its provider failed" in warning for warning in result.warnings)


@pytest.mark.parametrize("fault", SERVER_FAULTS)
@pytest.mark.parametrize("role", ["retriever", "judge", "guide"])
def test_a_chunk_is_read_without_a_role_that_fails(server, memory, fault, role):
    memory.add(LINES[0])
    server.script(role, *[SERVER_FAULTS[fault][0]] * 3)
    added = memory.add("I live in Graz with my cat Miso.")
    assert told(added, role)
    assert added.facts
    assert added.unextracted == []
    assert "boom" not in str(added.warnings)


@pytest.mark.parametrize("role", ["retriever", "judge", "answerability", "query_reasoner"])
def test_a_question_is_answered_without_a_role_that_fails(server, memory, role):
    memory.add(LINES[0])
    server.script("judge", *[{"relevant": [], "sufficient": False}] * 4)
    server.script("answerability", {"answerable": False, "gap": "the town"})
    server._scripts[role] = [Reply(status=500, error="boom")] * 5
    answer = memory.ask("Where do I live?")
    assert "Graz" in answer.answer
    assert told(answer, role)


@pytest.mark.parametrize("role", ["prober", "answerer", "grader", "episode_writer"])
def test_a_session_ends_without_a_role_that_fails(server, memory, role):
    for line in LINES:
        memory.add(line)
    server.script(role, *[Reply(status=503, error="busy")] * 9)
    ended = memory.end_session()
    assert ended.status == ("committed" if role == "episode_writer" else "committed_unverified")
    assert any(role in warning for warning in ended.warnings)
    assert memory.sessions()[0].staged == 0


def test_an_ingest_goes_on_without_a_role_that_fails_twelve_times(server, memory):
    said = [f"My friend number {n} is called Name{n}." for n in range(12)]
    for role in ("retriever", "guide"):
        server.script(role, *[Reply(status=500, error="boom")] * 12)
    sessions = tuple(
        Session(f"s{n}", tuple(read_messages(line, session=f"s{n}", now=memory.bank.world.now(), zone=UTC)))
        for n, line in enumerate(said)
    )
    done = ingest(memory, Conversation("c", sessions))
    assert done.sessions == len(said)
    assert told(done, "guide")
    assert [n for n in range(12) if f"Name{n}" not in facts(memory)] == []


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("role", ["retriever", "guide", "prober"])
def test_a_key_that_is_refused_is_no_failure_of_a_role(server, memory, role, status):
    memory.add(LINES[0])
    server.script(role, Reply(status=status, error="bad key"))
    with pytest.raises(openai.APIStatusError):
        memory.end_session() if role == "prober" else memory.add(LINES[1])


def test_what_is_good_of_a_reply_is_stored_and_the_rest_is_told(server, memory):
    good = {"text": "The user lives in Graz", "turn": 1}
    server.script(
        "constructor", {"facts": [good, None, {**good, "text": "The user has a cat", "kind": "pet"}]}
    )
    added = memory.add("I live in Graz and have a cat.")
    assert len(server.of("constructor")) == 1
    assert len(added.facts) == 2
    assert any("'constructor'" in warning and "facts.kind" in warning for warning in added.warnings)
    server.script("answerer", {"answer": "Graz", "answerable": True, "citations": [0, None], "confidence": 3})
    answer = memory.ask("Where do I live?")
    assert (answer.answer, answer.answerable) == ("Graz", True)
    assert any("citations" in warning for warning in answer.warnings)
    server.script(
        "prober",
        {
            "probes": [
                {"question": "Where?"},
                {"question": "Where does the user live?", "answer": "in Graz", "turn": 1},
            ]
        },
    )
    ended = memory.end_session()
    assert ended.probes == 1
    assert any("probes.answer" in warning for warning in ended.warnings)


def test_a_server_error_once_is_not_noticed(server, tmp_path):
    with Memory.open(
        settings=Settings(home=tmp_path / "home", profile="paper"),
        model="openai:test", base_url=server.url, api_key="none", user="ann",
        embeddings=FakeEmbeddings(), max_retries=1,
    ) as memory:  # fmt: skip
        server.script("constructor", Reply(status=500, error="boom", headers={"retry-after-ms": "1"}))
        assert memory.add(LINES[0]).facts
        assert len(server.of("constructor")) == 2


def test_a_server_error_twelve_times_loses_nothing(server, memory, clock):
    server.script("constructor", *[Reply(status=500, error="boom")] * 12)
    said = [f"My friend number {n} is called Name{n}." for n in range(12)]
    for line in said:
        with pytest.raises(openai.InternalServerError):
            memory.add(line)
    assert raw(memory) == sorted(said)
    assert facts(memory) == ""
    heal(server)
    assert memory.end_session().status == "committed"
    assert [line for n, line in enumerate(said) if f"Name{n}" not in facts(memory)] == []


@pytest.mark.parametrize(
    "chunk",
    [
        "I breed alpacas.",
        [("user", "I breed alpacas."), ("assistant", "How many?"), ("user", "Seven.")],
        ["Yes.", "Yes."],
    ],
)
async def test_a_retry_after_a_server_error_doubles_nothing(server, memory, chunk):
    """The error says that the words are kept; said once more when they were read, they are said twice."""
    memory.add("I live in Graz.")
    server.script("constructor", *[Reply(status=500, error="boom")] * 4)
    for _ in range(3):
        with pytest.raises(openai.InternalServerError) as raised:
            await memory.aadd(chunk)
        assert KEPT in raised.value.__notes__
    with pytest.raises(openai.InternalServerError):
        memory.add("I have a cat called Miso.")
    said = [chunk] if isinstance(chunk, str) else chunk
    words = [one if isinstance(one, str) else one[1] for one in said]
    added = memory.add(chunk)
    stored = ["I live in Graz.", *words, "I have a cat called Miso."]
    assert [entry.text for entry in memory.memories(granularity="raw")] == stored
    assert len(added.turns) == len(words)
    memory.end_session()
    memory.add(chunk)
    assert raw(memory) == sorted([*stored, *words])


def test_a_longer_chunk_that_begins_with_what_failed_adds_the_rest(server, memory):
    server.script("constructor", Reply(status=500, error="boom"))
    with pytest.raises(openai.InternalServerError):
        memory.add("I breed alpacas.")
    memory.add(["I breed alpacas.", "One is called Pepe."])
    assert raw(memory) == ["I breed alpacas.", "One is called Pepe."]


def test_a_store_that_cannot_be_written_keeps_nothing_and_does_not_say_so(memory, monkeypatch):
    def full(*_, **__):
        raise StoreError("the disk is full")

    monkeypatch.setattr(memory.bank, "stage_turns", full)
    with pytest.raises(StoreError) as raised:
        memory.add(LINES[0])
    assert KEPT not in getattr(raised.value, "__notes__", ())


def test_retry_after_is_waited_for(server, tmp_path):
    with Memory.open(
        settings=Settings(home=tmp_path / "home", profile="paper"),
        model="openai:test", base_url=server.url, api_key="none", user="ann",
        embeddings=FakeEmbeddings(), max_retries=1,
    ) as memory:  # fmt: skip
        server.script("constructor", rate_limited(20))
        assert memory.add(LINES[0]).facts
        again = server.of("constructor")[1]["headers"]
        assert again["x-stainless-retry-count"] == "1"


REPLY_FAULTS = {
    "empty choices": (Reply(choices=False), "no choices"),
    "refusal": (Reply(refusal="I will not"), "refused"),
    "content filter": (Reply("{", finish="content_filter"), "content filter"),
    "cut off": (Reply('{"facts": [{"text": "Ann li', finish="length"), "token limit"),
    "wrong schema": (json.dumps({"x": 1}), "Field required"),
    "no JSON": ("I would rather talk about the weather.", "no JSON"),
    "empty reply": ("", "empty"),
}


@pytest.mark.parametrize("fault", REPLY_FAULTS)
def test_a_reply_that_cannot_be_used_leaves_the_turn_waiting(server, memory, fault):
    reply, words = REPLY_FAULTS[fault]
    server.script("constructor", reply, reply)
    added = memory.add(LINES[0])
    assert added.unextracted == added.turns != []
    assert any(words in warning for warning in added.warnings), added.warnings
    assert raw(memory) == LINES[:1]
    assert len(server.of("constructor")) <= 2
    server._scripts.clear()
    assert memory.add(LINES[1]).unextracted == []
    assert "Graz" in facts(memory)


@pytest.mark.parametrize("fault", REPLY_FAULTS)
def test_a_reply_that_cannot_be_used_still_gives_the_evidence(server, memory, fault):
    reply, _ = REPLY_FAULTS[fault]
    memory.add(LINES[0])
    server.script("answerer", *[reply] * 4)
    answer = memory.ask("Where do I live?")
    assert any("Graz" in one.text for one in answer.evidence)
    assert answer.warnings


@pytest.mark.parametrize("fault", REPLY_FAULTS)
def test_a_reply_that_cannot_be_used_commits_the_session_unverified(server, memory, fault):
    reply, _ = REPLY_FAULTS[fault]
    memory.add(LINES[0])
    server.script("prober", reply, reply)
    ended = memory.end_session()
    assert ended.status == "committed_unverified"
    assert "prober" in ended.reason
    server._scripts.clear()
    assert memory.verify_session("main").status == "committed"


def test_a_hang_ends_after_the_timeout_of_each_attempt(server, tmp_path):
    with Memory.open(
        settings=Settings(home=tmp_path / "home", profile="paper"),
        model="openai:test", base_url=server.url, api_key="none", user="ann",
        embeddings=FakeEmbeddings(), timeout=0.2, max_retries=1,
    ) as memory:  # fmt: skip
        server.script("constructor", *[Reply(hang=600)] * 9)
        with pytest.raises(openai.APITimeoutError):
            memory.add(LINES[0])
        assert len(server.of("constructor")) == 2
        assert raw(memory) == LINES[:1]


async def test_a_server_that_fails_costs_no_word_when_awaited(server, memory, clock):
    server.script("constructor", Reply(status=500, error="boom"))
    with pytest.raises(openai.InternalServerError):
        await memory.aadd(LINES[0])
    assert raw(memory) == LINES[:1]
    heal(server)
    await memory.aadd(LINES[1])
    assert "Graz" in facts(memory)
