"""The threads of a memory's runs: each run goes under one of its own, which says whose it is.

LangGraph keeps neither a run's context nor its graph with its checkpoints, and no owner. Each checkpoint's
metadata names them here, so that a run goes on with what it was begun with, and only for its own user.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ConfigDict

from memcycle.core.clock import World
from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.core.settings import Approval, Settings
from memcycle.core.theta import Switches
from memcycle.graph.context import Context

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from memcycle.checkpoints_kind import Checkpointer

    Checkpoints = str | PathLike[str] | Checkpointer[Any, Any] | BaseCheckpointSaver[Any]
    """Where runs are kept: a URL as `memcycle.checkpointer` reads it, or what that or LangGraph makes."""

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

        from memcycle.checkpoints import FORMS, Checkpointer, checkpointer
        from memcycle.checkpoints_off_loop import for_both

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
