"""One body for a method and its awaitable form."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from memcycle.graph.context import Context

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Run(Generic[T]):
    """One run of a graph: what it is given, and how its output is read. Awaited or not, it is the same."""

    graph: str
    value: dict[str, Any]
    context: Context
    read: Callable[[Mapping[str, Any]], T]


class Runner(Protocol):
    """What holds the compiled graphs, by name."""

    @property
    def graphs(self) -> Mapping[str, Any]:
        """Compiled graphs by name; opens the store if it is not open."""
        ...


M = TypeVar("M", bound=Runner)


def runs(make: Callable[Concatenate[M, P], Run[T]]) -> Callable[Concatenate[M, P], T]:
    """A method that runs what `make` prepares and gives back what it reads."""

    def run(self: M, /, *args: P.args, **kwargs: P.kwargs) -> T:
        prepared = make(self, *args, **kwargs)
        return prepared.read(self.graphs[prepared.graph].invoke(prepared.value, context=prepared.context))

    functools.update_wrapper(run, make)
    return run


def awaited(method: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], Awaitable[T]]:
    """The awaitable form of a method made by `runs`: model calls are awaited natively."""
    make: Callable[Concatenate[M, P], Run[T]] = method.__wrapped__  # type: ignore[attr-defined]

    async def run(self: M, /, *args: P.args, **kwargs: P.kwargs) -> T:
        prepared = make(self, *args, **kwargs)
        graphs = await asyncio.to_thread(lambda: self.graphs)
        return prepared.read(await graphs[prepared.graph].ainvoke(prepared.value, context=prepared.context))

    return _named(run, method)


S = TypeVar("S")


def off_loop(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Awaitable[T]]:
    """The awaitable form of a method that only touches the store: the same code, in a thread."""

    async def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(method, self, *args, **kwargs)

    return _named(run, method)


def _named(run: Callable[P, T], after: Callable[..., Any]) -> Callable[P, T]:
    run.__name__ = f"a{after.__name__}"
    run.__qualname__ = f"Memory.{run.__name__}"
    run.__doc__ = f"Awaitable `{after.__name__}`."
    return run
