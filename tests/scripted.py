"""Roles that answer from a script, and remember what they were shown."""

from collections.abc import Callable
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig


class Scripted(Runnable[Any, Any]):
    """Gives its outputs in order; a callable is called with the input, an exception is raised.

    Asked more often than scripted, it fails the test.
    """

    def __init__(self, *outputs: Any) -> None:
        self.outputs = list(outputs)
        self.seen: list[Any] = []

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        self.seen.append(input)
        assert self.outputs, f"asked more often than scripted: {input!r}"
        output = self.outputs.pop(0)
        if isinstance(output, Exception):
            raise output
        return output(input) if isinstance(output, Callable) else output


class Always(Scripted):
    """Gives the same output, or calls the same function, every time."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        self.outputs = [self.outputs[0], self.outputs[0]]
        return super().invoke(input, config, **kwargs)
