"""One body for a method and its awaitable form, and one way to run what it prepares."""

import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from memcycle.core.errors import BadInput
from memcycle.core.in_turn import in_turn
from memcycle.graph.context import Context
from memcycle.redacted import redacted_input
from memcycle.results import Outcome, PendingApproval

if TYPE_CHECKING:
    from memcycle.stores.bank import Bank
    from memcycle.threads import Thread, Threads

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", bound=Outcome)


@dataclass(frozen=True)
class Run(Generic[R]):
    """One run of a graph: what it is given, and how its output is read. Awaited or not, it is the same.

    Attributes:
        value: Its input; None or a `Command` for one that goes on.
        thread_id: Of a new run, where it is named. thread: of one that goes on.
        is_over: Whether `value` is its output already, so that there is nothing to run.
    """

    graph: str
    value: Any
    context: Context
    read: Callable[[Mapping[str, Any]], R]
    thread_id: str | None = None
    thread: "Thread | None" = None
    is_over: bool = False


class Runner(Protocol):
    """What holds the compiled graphs, by name, and the threads of their runs."""

    @property
    def graphs(self) -> Mapping[str, Any]:
        """Compiled graphs by name; opens the store if it is not open."""
        ...

    @property
    def bank(self) -> "Bank":
        """The store."""
        ...

    @property
    def threads(self) -> "Threads | None":
        """Threads of runs; None where no checkpoints are kept."""
        ...


M = TypeVar("M", bound=Runner)


_DURABILITY = "__pregel_durability"


def apart(graph: Any) -> Any:
    """The graph as a run of its own, also where it is called inside a node of another one.

    It would be kept among that one's checkpoints, and after a resume go on with an earlier question.
    """
    # LangGraph hands `durability` down as well, and waits for a checkpoint that nobody writes.
    return graph.copy({"checkpointer": False}).with_config({"configurable": {_DURABILITY: "async"}})


class _Started(Generic[R]):
    """A run on its thread, if checkpoints are kept: what the graph is called with, how its output is read."""

    def __init__(self, runner: Runner, run: Run[R]) -> None:
        self.graph, self._run, threads = runner.graphs[run.graph], run, runner.threads
        if threads is None:
            self.graph = apart(self.graph)
        if threads is None and run.thread_id is not None:
            raise BadInput("a thread_id needs checkpoints to go under: open the memory with checkpoints=...")
        self.thread = run.thread
        if threads is not None and run.thread is None:
            self.thread = threads.begin(run.thread_id, run.graph, run.context)
        self.options: dict[str, Any] = {"context": run.context}
        if self.thread is not None:
            # What a node's models said must be kept before the next is asked.
            self.options |= {"config": self.thread.config, "durability": "sync"}
        self.value = run.value if self.thread is None else redacted_input(runner.bank.redactor, run.value)

    @contextmanager
    def told(self) -> Iterator[None]:
        """A run that breaks off says how it goes on."""
        try:
            yield
        except BaseException as error:
            if self.thread is not None:
                error.add_note(f"This run can go on where it broke off: resume({self.thread.thread_id!r})")
            raise

    def read(self, out: Mapping[str, Any]) -> R:
        result = self._run.read(out)
        if self.thread is None:
            return result
        return result.model_copy(update={"thread_id": self.thread.thread_id, "pending": _pending(out)})


def _pending(out: Mapping[str, Any]) -> PendingApproval | None:
    waiting = out.get("__interrupt__")
    return PendingApproval.model_validate(waiting[0].value) if waiting else None


def execute(runner: Runner, run: Run[R]) -> R:
    """Runs it, under a thread where checkpoints are kept."""
    started = _Started(runner, run)
    if run.is_over:
        return started.read(run.value)
    with started.told():
        return started.read(started.graph.invoke(started.value, **started.options))


async def aexecute(runner: Runner, run: Run[R]) -> R:
    """Awaitable `execute`: model calls are awaited natively, the rest is done off the event loop."""
    started = await in_turn(_Started, runner, run)
    if run.is_over:
        return started.read(run.value)
    with started.told():
        return started.read(await started.graph.ainvoke(started.value, **started.options))


def runs(make: Callable[Concatenate[M, P], Run[R]]) -> Callable[Concatenate[M, P], R]:
    """A method that runs what `make` prepares and gives back what it reads."""

    def run(self: M, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return execute(self, make(self, *args, **kwargs))

    functools.update_wrapper(run, make)
    return run


def awaited(
    method: Callable[Concatenate[M, P], R], *, reads: bool = False
) -> Callable[Concatenate[M, P], Awaitable[R]]:
    """The awaitable form of a method made by `runs`: model calls are awaited natively.

    Args:
        method: Made by `runs`.
        reads: Whether preparing it reads what is stored, and so is done off the event loop.
    """
    make: Callable[Concatenate[M, P], Run[R]] = method.__wrapped__  # type: ignore[attr-defined]

    async def run(self: M, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if reads:
            return await aexecute(self, await in_turn(make, self, *args, **kwargs))
        return await aexecute(self, make(self, *args, **kwargs))

    return _named(run, method)


S = TypeVar("S")


def off_loop(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Awaitable[T]]:
    """The awaitable form of a method that only touches the store: the same code, in a thread."""

    async def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await in_turn(method, self, *args, **kwargs)

    return _named(run, method)


def _named(run: Callable[P, T], after: Callable[..., Any]) -> Callable[P, T]:
    run.__name__ = f"a{after.__name__}"
    run.__qualname__ = f"Memory.{run.__name__}"
    run.__doc__ = f"Awaitable `{after.__name__}`."
    return run
