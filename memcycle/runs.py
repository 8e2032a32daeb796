"""One body for a method and its awaitable form, and one way to run what it prepares.

LangGraph keeps neither a run's context nor its graph with its checkpoints, and no owner. Each checkpoint's
metadata names them here, so that a run goes on with what it was begun with, and only for its own user.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command
from pydantic import BaseModel, ConfigDict

from memcycle.core.errors import BadInput
from memcycle.core.redaction import Redactor
from memcycle.core.scope import Scope
from memcycle.core.settings import Approval, Settings
from memcycle.core.theta import Switches
from memcycle.core.turn import Turn
from memcycle.core.world import World
from memcycle.graph.context import Context
from memcycle.results import Outcome, PendingApproval

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from memcycle.checkpoints import Checkpointer

    Checkpoints = str | PathLike[str] | Checkpointer[Any, Any] | BaseCheckpointSaver[Any]
    """Where runs are kept: a URL as `memcycle.checkpointer` reads it, or what that or LangGraph makes."""
    from memcycle.stores.bank import Bank

_GRAPH, _USER, _WORKSPACE, _CONTEXT, _SHAPE = (
    "memcycle_graph", "memcycle_user", "memcycle_workspace", "memcycle_context", "memcycle_shape",
)  # fmt: skip
"""Keys of a checkpoint's metadata. The context is JSON: metadata holds plain values only."""

_LONGEST = 200
"""Characters of a thread id."""


class Shape(BaseModel):
    """The settings that say which nodes a graph has: a run goes on only in a graph of the same.

    With another approval a resumed run could write what a person was to be asked about.
    """

    model_config = ConfigDict(frozen=True)

    approval: Approval = Approval()
    switches: Switches = Switches()


@dataclass(frozen=True)
class Thread:
    """The thread of one run: what it runs, what it was told, and with which settings."""

    thread_id: str
    graph: str
    context: Context
    shape: Shape

    @property
    def config(self) -> RunnableConfig:
        """What a graph is run with, and its state is read with."""
        metadata = {
            _GRAPH: self.graph,
            _USER: self.context.user,
            _WORKSPACE: self.context.workspace,
            _CONTEXT: self.context.model_dump_json(),
            _SHAPE: self.shape.model_dump_json(),
        }
        return {"configurable": {"thread_id": self.thread_id}, "metadata": metadata}


class Threads:
    """The threads in one place for checkpoints. Use it as a context manager."""

    def __init__(
        self,
        saver: "BaseCheckpointSaver[Any]",
        place: str,
        close: ExitStack,
        *,
        world: World,
        shape: Shape,
    ) -> None:
        self.saver, self.place = saver, place
        self._close, self._world, self._shape = close, world, shape

    @classmethod
    def open(cls, checkpoints: "Checkpoints", world: World, settings: Settings) -> Self:
        """Opens the place; a saver that is given is used as it is and left open.

        Args:
            checkpoints: The place. world: clock and ids of new threads.
            settings: Those their runs are begun with.

        Raises:
            BadInput: a URL that cannot be read. StoreError: a place that cannot be used.
        """
        from langgraph.checkpoint.base import BaseCheckpointSaver

        from memcycle.checkpoints import FORMS, Checkpointer, checkpointer, for_both

        shape = Shape(approval=settings.approval, switches=settings.switches)
        if isinstance(checkpoints, BaseCheckpointSaver):
            return cls(for_both(checkpoints), "the given saver", ExitStack(), world=world, shape=shape)
        if not isinstance(checkpoints, str | PathLike | Checkpointer):
            raise BadInput(f"checkpoints: {type(checkpoints).__name__} is no place for them; give {FORMS}")
        kept = checkpoints if isinstance(checkpoints, Checkpointer) else checkpointer(checkpoints)
        with ExitStack() as stack:
            saver = stack.enter_context(kept)
            return cls(for_both(saver), kept.place, stack.pop_all(), world=world, shape=shape)

    def close(self) -> None:
        """Closes what `open` opened."""
        self._close.close()

    def begin(self, thread_id: str | None, graph: str, context: Context) -> Thread:
        """A thread for a new run, which goes on later with the time that it began at.

        Raises:
            BadInput: an id that cannot be one, or that another run has.
        """
        kept = context if context.now is not None else context.model_copy(update={"now": self._world.now()})
        if thread_id is None:
            return Thread(self.new_id(), graph, kept, self._shape)
        if self._metadata(thread_id) is not None:
            raise BadInput(
                f"thread {thread_id!r} has a run already: resume it, or give the new run another thread_id"
            )
        return Thread(thread_id, graph, kept, self._shape)

    def find(self, thread_id: str, owner: Scope) -> Thread:
        """The thread of this id, if it is this user's and workspace's.

        Raises:
            BadInput: there is none, it is another user's, or no run of a memory was begun in it.
        """
        metadata = self._metadata(thread_id)
        if metadata is None:
            raise BadInput(f"no thread {thread_id!r} in {self.place}: see that id and place are right")
        thread = _read(thread_id, metadata)
        if thread is None:
            raise BadInput(f"thread {thread_id!r} in {self.place} holds no run of a memory: resume its graph")
        if thread.context.user != owner.user:
            raise BadInput(f"thread {thread_id!r} is another user's: only that user's runs go on in it")
        if thread.context.workspace != owner.workspace:
            raise BadInput(
                f"thread {thread_id!r} is of workspace {thread.context.workspace!r}, not {owner.workspace!r}"
            )
        return thread

    def check_shape(self, thread: Thread) -> None:
        """Refuses a run that would go on in a graph with other nodes.

        Raises:
            BadInput: it was begun with another `approval` or other `switches`; names which.
        """
        begun, here = dict(thread.shape), dict(self._shape)
        other = ", ".join(f"{name}={begun[name]!r}" for name in begun if begun[name] != here[name])
        if other:
            raise BadInput(
                f"the run of thread {thread.thread_id!r} was begun with other settings: open the memory with "
                f"Settings({other}) to resume it"
            )

    def approval_of(self, thread_id: str) -> Approval | None:
        """What was to be approved in the run of this thread, or in those under it; None where it has none."""
        found = self.saver.get_tuple({"configurable": {"thread_id": thread_id}})
        thread = None if found is None else _read(thread_id, found.metadata)
        if thread is None:
            below = (one for one in self._distinct({}) if one.thread_id.startswith(f"{thread_id}."))
            thread = next(below, None)
        return None if thread is None else thread.shape.approval

    def of(self, user: str, workspace: str | None = None) -> list[Thread]:
        """All threads of a user, the last one first; those of one workspace where it is named."""
        wanted = {_USER: user} if workspace is None else {_USER: user, _WORKSPACE: workspace}
        return [*self._distinct(wanted)]

    def under(self, thread_id: str, owner: Scope) -> list[Thread]:
        """A user's threads whose ids begin with this one and a dot.

        Raises:
            BadInput: there are none, but another user's.
        """
        self._metadata(thread_id)
        prefix = f"{thread_id}."
        found = [one for one in self.of(owner.user, owner.workspace) if one.thread_id.startswith(prefix)]
        if not found and any(one.thread_id.startswith(prefix) for one in self._distinct({})):
            raise BadInput(
                f"thread {thread_id!r} is another user's, or of another workspace: its runs go on only there"
            )
        return found

    def new_id(self) -> str:
        """An id for a thread."""
        return self._world.new_id()

    def delete(self, thread_id: str) -> None:
        """Removes a thread with all its checkpoints."""
        self.saver.delete_thread(thread_id)

    def _distinct(self, wanted: Mapping[str, str]) -> Iterator[Thread]:
        seen: set[str] = set()
        for found in self.saver.list(None, filter=dict(wanted)):
            thread_id = found.config["configurable"]["thread_id"]
            thread = _read(thread_id, found.metadata) if thread_id not in seen else None
            seen.add(thread_id)
            if thread is not None:
                yield thread

    def _metadata(self, thread_id: str) -> Mapping[str, Any] | None:
        if not isinstance(thread_id, str) or not 0 < len(thread_id) <= _LONGEST or "\0" in thread_id:
            raise BadInput(f"thread_id: give a text of 1 to {_LONGEST} characters")
        found = self.saver.get_tuple({"configurable": {"thread_id": thread_id}})
        return None if found is None else found.metadata


def _read(thread_id: str, metadata: Mapping[str, Any]) -> Thread | None:
    if not {_GRAPH, _CONTEXT, _SHAPE} <= metadata.keys():
        return None
    context = Context.model_validate_json(metadata[_CONTEXT])
    return Thread(thread_id, metadata[_GRAPH], context, Shape.model_validate_json(metadata[_SHAPE]))


_WORDS = (
    "content",
    "text",
    "caption",
    "alt",
    "name",
    "speaker",
    "tool_calls",
    "additional_kwargs",
    "metadata",
)
"""What of a message may hold words; ids, roles and times are left as they are."""


def redacted_input(redactor: Redactor, value: Any) -> Any:
    """The input of a graph, or the answer it goes on with, as it may be kept.

    Args:
        redactor: That of the store.
        value: A graph's input (`messages`, `turns`, `question`), a `Command`, or None.
    """
    if isinstance(value, Command):
        return replace(value, resume=redactor.data(value.resume))
    if not isinstance(value, Mapping):
        return value
    kept = dict(value)
    if kept.get("messages") is not None:
        kept["messages"] = _messages(redactor, kept["messages"])
    if kept.get("turns") is not None:
        kept["turns"] = [
            redactor.turn(Turn.model_validate(turn)).model_dump(mode="json") for turn in kept["turns"]
        ]
    if isinstance(kept.get("question"), str):
        kept["question"] = redactor.text(kept["question"])
    return kept


def _messages(redactor: Redactor, messages: Any) -> Any:
    """Messages in any of the shapes that are read; what is none of them is left for its reader to refuse."""
    if isinstance(messages, str):
        return redactor.text(messages)
    if isinstance(messages, BaseMessage):
        held = {name: getattr(messages, name) for name in _WORDS if getattr(messages, name, None)}
        held.pop("text", None)  # a view of the content
        return messages.model_copy(update=redactor.data(held))
    if isinstance(messages, Mapping):
        return {
            key: redactor.data({key: one})[key] if key in _WORDS else one for key, one in messages.items()
        }
    if isinstance(messages, list | tuple):
        return type(messages)(_messages(redactor, one) for one in messages)
    return messages


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
    started = await asyncio.to_thread(_Started, runner, run)
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
            return await aexecute(self, await asyncio.to_thread(make, self, *args, **kwargs))
        return await aexecute(self, make(self, *args, **kwargs))

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
