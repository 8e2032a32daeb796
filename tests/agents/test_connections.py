"""A model and a memory used on one event loop after another, or on two at once, over HTTP."""

import asyncio
import gc
import threading

import openai
import pytest

from memcycle import Memory, Settings
from memcycle.agents.connections import LoopClient
from memcycle.agents.models import open_model
from tests.fakes import FakeEmbeddings

PROXY = "http://proxy.test:3128"


def opened(server):
    server.script("unknown", *["Hello."] * 20)
    return open_model("openai:test", base_url=server.url, api_key="k", max_retries=0)


async def three(model):
    return [reply.text for reply in await asyncio.gather(*(model.ainvoke("Hello?") for _ in range(3)))]


def test_one_loop_after_another(server):
    model = opened(server)
    for _ in range(3):
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


def test_a_loop_leaves_no_connection_open(server):
    model = opened(server)
    asyncio.run(three(model))
    assert model.http_async_client._loops == {}
    del model
    gc.collect()  # an open connection would warn, and warnings are errors here


def test_a_model_that_is_dropped_leaves_no_connection_open(server):
    model = opened(server)
    assert model.invoke("Hello?").text == "Hello."
    sender = model.http_client._sender
    del model
    gc.collect()
    assert sender.is_closed


def test_closing_it_closes_what_is_open(server):
    model = opened(server)
    assert model.invoke("Hello?").text == "Hello."
    model.http_client.close()
    assert model.http_client._sender.is_closed


def test_a_loop_that_was_closed_at_once_is_not_kept(server):
    model = opened(server)

    async def closed():
        await three(model)
        await model.http_async_client._loops[asyncio.get_running_loop()][1].aclose()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(closed())
    loop.close()
    assert asyncio.run(three(model)) == ["Hello."] * 3
    assert model.http_async_client._loops == {}


def test_closing_it_on_a_loop_closes_what_the_loop_has_open(server):
    model = opened(server)

    async def close_and_go_on():
        await three(model)
        ((_, client),) = model.http_async_client._loops.values()
        await model.http_async_client.aclose()
        return client.is_closed, await three(model)

    assert asyncio.run(close_and_go_on()) == (True, ["Hello."] * 3)


def test_a_model_that_is_dropped_in_a_circle_closes_what_its_loop_has_open(server):
    async def dropped():
        model = opened(server)
        await three(model)
        ((_, client),) = model.http_async_client._loops.values()
        model.__dict__["circle"] = model
        del model
        gc.collect()
        while not client.is_closed:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(dropped(), 10))


def routed(client):
    return client._transport_for_url(client.build_request("GET", "https://model.test").url)


def test_proxies_of_the_environment_are_used(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    model = open_model("openai:test", api_key="k")
    assert bytes(routed(model.http_client._sender)._pool._proxy_url) == f"{PROXY}/".encode()
    assert str(routed(LoopClient()._ready[0]).proxy.url) == PROXY


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
        assert type(raised.value) is error


def test_how_a_caller_connects_is_left_to_the_caller():
    own = LoopClient()
    assert open_model("openai:test", api_key="k", http_async_client=own).http_async_client is own
    through = open_model("openai:test", api_key="k", openai_proxy=PROXY)
    assert not isinstance(through.root_async_client._client, LoopClient)


def test_a_memory_is_used_on_one_loop_after_another(server, tmp_path):
    settings = Settings(home=tmp_path / "home", shards=2)
    with Memory.open(
        settings=settings, model="openai:test", base_url=server.url, api_key="k", embeddings=FakeEmbeddings()
    ) as memory:
        asyncio.run(memory.aadd("I repair accordions.", user="ana", session="s1"))
        ended = asyncio.run(memory.aend_session("s1", user="ana"))
        answer = asyncio.run(memory.aask("What do I repair?", user="ana"))
    assert not ended.warnings
    assert answer.answer == "accordions"
