"""One body for sync and async: a generator yields what it needs from outside and is sent what came of it.

Nodes of the graphs are written so, which yield role calls, and roles on models, which yield requests.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

Request = TypeVar("Request")
Result = TypeVar("Result")


def drive(body: Generator[Request, Any, Result], answer: Callable[[Request], Any]) -> Result:
    """What a body, not begun yet, returns in the end; what `answer` raises is raised at its yield."""
    over, step = _advance(body, None, None)
    while not over:
        try:
            reply, error = answer(step), None
        except Exception as raised:  # noqa: BLE001 - handed to the body, which knows what to do
            reply, error = None, raised
        over, step = _advance(body, reply, error)
    result: Result = step
    return result


async def adrive(
    body: Generator[Request, Any, Result],
    answer: Callable[[Request], Awaitable[Any]],
    *,
    in_thread: bool = False,
) -> Result:
    """As `drive`, with answers awaited; `in_thread` where the body's own work may block the event loop."""

    async def advance(reply: Any, error: Exception | None) -> tuple[bool, Any]:
        if in_thread:
            return await asyncio.to_thread(_advance, body, reply, error)
        return _advance(body, reply, error)

    over, step = await advance(None, None)
    while not over:
        try:
            reply, error = await answer(step), None
        except Exception as raised:  # noqa: BLE001 - handed to the body, which knows what to do
            reply, error = None, raised
        over, step = await advance(reply, error)
    result: Result = step
    return result


def _advance(body: Generator[Any, Any, Any], reply: Any, error: Exception | None) -> tuple[bool, Any]:
    """Runs a body to its next yield: (False, request), or (True, result).

    StopIteration cannot cross a thread's future, so the end is a value.
    """
    try:
        return False, (body.throw(error) if error is not None else body.send(reply))
    except StopIteration as end:
        return True, end.value
