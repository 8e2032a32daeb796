"""A pure function as LangGraph runs it: what is over at once needs neither a thread nor a run of its own."""

from collections.abc import Callable
from typing import Any, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, set_config_context

StateT = TypeVar("StateT")


def inline(function: Callable[[StateT], Any]) -> Runnable[StateT, Any]:
    """A function as a runnable, sync and async, that stays on the event loop.

    A plain function is handed to a thread when a graph runs async, which costs more than a route does, and
    waits behind all other threads of a busy process.

    Args:
        function: Pure, from the state (and the run's context): a route, or a mapping of states.
    """
    return _Inline(function)


class _Inline(Runnable[StateT, Any]):
    def __init__(self, function: Callable[[StateT], Any]) -> None:
        self.name = getattr(getattr(function, "func", function), "__name__", None)
        self._function = function

    def invoke(self, input: StateT, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """What the function gives."""
        with set_config_context(ensure_config(config)) as context:
            return context.run(self._function, input)

    async def ainvoke(self, input: StateT, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """As `invoke`."""
        return self.invoke(input, config)
