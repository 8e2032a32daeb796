"""A model and a memory used on one event loop after another, or on two at once, over HTTP."""

import asyncio
import threading

import httpx
import openai
import pytest

from memcycle import Memory, Settings
from memcycle.agents.models import open_model
from tests.fakes import FakeEmbeddings


def opened(server, **given):
    server.script("unknown", *["Hello."] * 20)
    return open_model("openai:test", **{"base_url": server.url, "api_key": "k", "max_retries": 0} | given)


async def three(model):
    return [reply.text for reply in await asyncio.gather(*(model.ainvoke("Hello?") for _ in range(3)))]


def test_one_loop_after_another(server):
    model = opened(server)
    for _ in range(4):
        assert asyncio.run(three(model)) == ["Hello."] * 3


def test_two_loops_at_once(server):
    model, both = opened(server), threading.Barrier(2)
    server.latency = 0.05
    got: list[list[str]] = []

    def use() -> None:
        both.wait()
        got.extend([asyncio.run(three(model)), asyncio.run(three(model))])

    beside = threading.Thread(target=use)
    beside.start()
    use()
    beside.join()
    assert got == [["Hello."] * 3] * 4


@pytest.mark.parametrize("awaited", [False, True])
def test_proxies_of_the_environment_are_used(server, monkeypatch, awaited):
    monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
    model = opened(server, base_url="http://model.test/v1")
    reply = asyncio.run(model.ainvoke("Hello?")) if awaited else model.invoke("Hello?")
    assert reply.text == "Hello."
    assert server.requests[-1]["headers"]["Host"] == "model.test"


@pytest.mark.parametrize(
    ("does", "error"),
    [
        ("hangs", openai.APITimeoutError),
        ("closes", openai.APIConnectionError),
        ("answers half", openai.APIConnectionError),
        ("is gone", openai.APIConnectionError),
    ],
)
async def test_only_what_took_too_long_is_a_timeout(socket_enabled, does, error):
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        if does == "hangs":
            await reader.read()
        if does == "answers half":
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
        if does == "is gone":
            listening.close()
        model = open_model("openai:test", base_url=url, api_key="k", max_retries=0, timeout=0.3)
        with pytest.raises(openai.APIConnectionError) as raised:
            await model.ainvoke("Hello?")
        assert isinstance(raised.value, openai.APITimeoutError) is (error is openai.APITimeoutError)


def test_how_a_caller_connects_is_left_to_the_caller():
    own = httpx.AsyncClient()
    model = open_model("openai:test", api_key="k", http_async_client=own)
    assert model.http_async_client is own
    assert model.http_client is None
    assert open_model("openai:test", api_key="k", openai_proxy="http://proxy.test:3128").openai_proxy


def test_a_memory_is_used_on_one_loop_after_another(server, tmp_path):
    settings = Settings(home=tmp_path / "home", shards=2)
    with Memory.open(
        settings=settings, model="openai:test", base_url=server.url, api_key="k", embeddings=FakeEmbeddings()
    ) as memory:
        asyncio.run(memory.aadd("I repair accordions.", user="ana", session="s1"))
        ended = asyncio.run(memory.aend_session("s1", user="ana"))
        answer = asyncio.run(memory.aask("What do I repair?", user="ana"))
    assert not ended.warnings
    assert "I repair accordions." in answer.answer
