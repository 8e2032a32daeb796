"""Work apart from the run that is going on: nothing of it is streamed, traced or checkpointed there.

LangChain and LangGraph hand the configuration of a run on in context variables; an empty context has none.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def apart(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls in an empty context."""
    return contextvars.Context().run(call, *args, **kwargs)


def task_apart(coroutine: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """A task with an empty context, on the running loop."""
    return asyncio.get_running_loop().create_task(coroutine, context=contextvars.Context())
