"""Connections of a model's client: closed when nothing uses them any more, those of each event loop apart."""

import asyncio
import ssl
import sys
import weakref
from collections.abc import AsyncGenerator
from functools import cached_property
from typing import Any

import aiohttp
import openai

Loops = dict[asyncio.AbstractEventLoop, tuple[AsyncGenerator[Any, None], Any]]
"""By loop what is closed when the loop ends, and the client it keeps."""


def _nobody() -> ssl.SSLContext:
    """Trusts nobody, for a client that sends nothing itself; reading whom to trust takes 50 ms."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Client(openai.DefaultHttpxClient):
    """A synchronous HTTP client whose connections are closed when it is dropped."""

    def __init__(self) -> None:
        super().__init__(verify=_nobody())

    @cached_property
    def _sender(self) -> Any:
        # Dropped in a circle with its own connections, a client could not close them first.
        sender = openai.DefaultHttpxClient()
        weakref.finalize(self, sender.close)
        return sender

    def send(self, request: Any, **options: Any) -> Any:
        """As httpx's."""
        return self._sender.send(request, **options)

    def close(self) -> None:
        """Closes what is open."""
        self._sender.close()
        super().close()


class LoopClient(openai.DefaultAsyncHttpxClient):
    """An HTTP client that may be used on one event loop after another, and leaves nothing open behind one.

    A connection belongs to the loop it was opened on: kept alive beyond `asyncio.run`, it fails the first
    call of the next one ("Event loop is closed"), and nobody can close it any more. So each loop has a client
    of its own here, closed when the loop ends its asynchronous generators, as `asyncio.run` does.

    They send through aiohttp: httpx asks the system about each idle connection twice a call, and waits each
    time for the interpreter where other threads use it.
    """

    def __init__(self) -> None:
        super().__init__(verify=_nobody())
        self._loops: Loops = {}
        # Held beside this too: were they dropped in a circle with it, none could be closed in order.
        weakref.finalize(self, _close_soon, self._loops).atexit = False
        # Made now, since reading the certificates would hold the event loop up.
        self._ready: list[Any] = [openai.DefaultAioHttpClient()]

    async def send(self, request: Any, **options: Any) -> Any:
        """As httpx's, by the client of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            await self._open(loop)
        try:
            return await self._loops[loop][1].send(request, **options)
        except Exception as error:
            cause = error.__cause__
            if not isinstance(cause, aiohttp.ClientConnectionError) or isinstance(cause, TimeoutError):
                raise
            # Refused or broken off at once, which the transport calls a timeout. The SDK stands on httpx or
            # httpx2, by its version, and knows its errors only.
            raise sys.modules[type(error).__module__].ConnectError(str(cause)) from cause

    async def _open(self, loop: asyncio.AbstractEventLoop) -> None:
        for gone in [one for one in self._loops if one.is_closed()]:
            del self._loops[gone]
        # Not asked first whether there is one: loops of two threads may want it at once.
        try:
            client = self._ready.pop()
        except IndexError:
            client = openai.DefaultAioHttpClient()
        kept = _keep(client, self._loops, loop)
        self._loops[loop] = kept, await anext(kept)

    async def aclose(self) -> None:
        """Closes what the running loop has open."""
        kept = self._loops.get(asyncio.get_running_loop())
        if kept is not None:
            await kept[0].aclose()
        await super().aclose()


async def _keep(client: Any, loops: Loops, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[Any, None]:
    try:
        yield client
    finally:
        del loops[loop]
        await client.aclose()


def _close_soon(loops: Loops) -> None:
    for loop, (kept, _) in list(loops.items()):
        if not loop.is_closed():
            asyncio.run_coroutine_threadsafe(kept.aclose(), loop)
