"""What a model's server can do wrong, over HTTP: no word is lost, nothing hangs, the message says what."""

import json

import openai
import pytest

from memcycle.agents.provider_errors import explain_model_error
from memcycle.core.errors import ModelUnavailable
from memcycle.core.world import World
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
        tmp_path / "home",
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


def heal(server, clock) -> None:
    """The server answers again, and what an earlier run left is old enough to be taken up."""
    server._scripts.clear()
    clock.pass_(3600)


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
@pytest.mark.parametrize("role", ["retriever", "constructor"])
def test_a_server_that_fails_costs_no_word(server, memory, clock, fault, role):
    reply, error, words = SERVER_FAULTS[fault]
    server.script(role, reply)
    with pytest.raises(error) as raised:
        memory.add(LINES[0])
    assert words in str(explain_model_error(raised.value))
    assert raw(memory) == LINES[:1]
    heal(server, clock)
    memory.add(LINES[1])
    assert "Graz" in facts(memory)
    assert "Miso" in facts(memory)


@pytest.mark.parametrize("fault", SERVER_FAULTS)
def test_a_server_that_fails_is_no_empty_memory(server, memory, fault):
    reply, error, words = SERVER_FAULTS[fault]
    memory.add(LINES[0])
    server.script("retriever", reply)
    with pytest.raises(error) as raised:
        memory.ask("Where do I live?")
    assert words in str(explain_model_error(raised.value))
    assert "Graz" in memory.ask("Where do I live?").answer


@pytest.mark.parametrize("fault", SERVER_FAULTS)
def test_a_server_that_fails_leaves_a_session_to_be_ended_again(server, memory, fault):
    reply, error, _ = SERVER_FAULTS[fault]
    memory.add(LINES[0])
    server.script("prober", reply)
    with pytest.raises(error):
        memory.end_session()
    assert memory.sessions()[0].status != "committed"
    assert memory.end_session().status == "committed"
    assert "Graz" in memory.ask("Where do I live?", session="another").answer


def test_a_server_error_once_is_not_noticed(server, tmp_path):
    with Memory.open(
        tmp_path / "home", model="openai:test", base_url=server.url, api_key="none", user="ann",
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
    heal(server, clock)
    assert memory.end_session().status == "committed"
    assert [line for n, line in enumerate(said) if f"Name{n}" not in facts(memory)] == []


def test_retry_after_is_waited_for(server, tmp_path):
    with Memory.open(
        tmp_path / "home", model="openai:test", base_url=server.url, api_key="none", user="ann",
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
        tmp_path / "home", model="openai:test", base_url=server.url, api_key="none", user="ann",
        embeddings=FakeEmbeddings(), timeout=0.2, max_retries=1,
    ) as memory:  # fmt: skip
        server.script("retriever", *[Reply(hang=600)] * 9)
        with pytest.raises(openai.APITimeoutError):
            memory.add(LINES[0])
        assert len(server.requests) == 2
        assert raw(memory) == LINES[:1]


async def test_a_server_that_fails_costs_no_word_when_awaited(server, memory, clock):
    server.script("constructor", Reply(status=500, error="boom"))
    with pytest.raises(openai.InternalServerError):
        await memory.aadd(LINES[0])
    assert raw(memory) == LINES[:1]
    heal(server, clock)
    await memory.aadd(LINES[1])
    assert "Graz" in facts(memory)
