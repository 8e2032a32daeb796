"""Runs of a memory's graphs: each on a thread of its own where checkpoints are kept, so that it can go on.

LangGraph keeps neither a run's context nor its graph with its checkpoints, and no owner. Each checkpoint's
metadata names them here, so that a run goes on with what it was begun with, and only for its own user.
"""

import asyncio
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from memcycle.core.errors import BadInput
from memcycle.core.messages import WORDED
from memcycle.core.redaction import Redactor
from memcycle.core.scope import Scope
from memcycle.core.settings import Approval, Settings
from memcycle.core.theta import Switches
from memcycle.core.turn import Turn, sound
from memcycle.core.world import World
from memcycle.graph.context import MAIN_SESSION, Context
from memcycle.results import Added, Answer, Ended, Outcome, PendingApproval, ThreadSummary

# What loads LangGraph is loaded when a run begins: who only lists memories does without that second.
if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.types import StateSnapshot

    from memcycle.checkpoints import Checkpointer
    from memcycle.stores.bank import Bank

    Checkpoints = str | PathLike[str] | Checkpointer | BaseCheckpointSaver[Any]
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
    def config(self) -> "RunnableConfig":
        """What a graph is run with, and its state is read with."""
        metadata = {
            _GRAPH: self.graph,
            _USER: self.context.user,
            _WORKSPACE: self.context.workspace,
            _CONTEXT: self.context.model_dump_json(),
            _SHAPE: self.shape.model_dump_json(),
        }
        return {"configurable": {"thread_id": self.thread_id}, "metadata": metadata}


@dataclass(frozen=True)
class Threads:
    """The threads in one place for checkpoints.

    Attributes:
        saver: LangGraph's, for sync and async graphs. place: where it writes, in words that may be shown.
        world: Clock and ids of new threads. shape: of the graphs that their runs are begun in.
        opened: What `close` closes.
    """

    saver: "BaseCheckpointSaver[Any]"
    place: str
    world: World
    shape: Shape
    opened: ExitStack = field(default_factory=ExitStack)

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
            return cls(for_both(checkpoints), "the given saver", world, shape)
        if not isinstance(checkpoints, str | PathLike | Checkpointer):
            raise BadInput(f"checkpoints: {type(checkpoints).__name__} is no place for them; give {FORMS}")
        opener = checkpoints if isinstance(checkpoints, Checkpointer) else checkpointer(checkpoints)
        opened = ExitStack()
        return cls(opened.enter_context(opener), opener.place, world, shape, opened)

    def close(self) -> None:
        """Closes what `open` opened."""
        self.opened.close()

    def begin(self, thread_id: str | None, graph: str, context: Context) -> Thread:
        """A thread for a new run, which goes on later with the time that it began at.

        Raises:
            BadInput: an id that cannot be one, or that another run has.
        """
        dated = context if context.now is not None else context.model_copy(update={"now": self.world.now()})
        if thread_id is not None and self._metadata(thread_id) is not None:
            raise BadInput(
                f"thread {thread_id!r} has a run already: resume it, or give the new run another thread_id"
            )
        return Thread(self.world.new_id() if thread_id is None else thread_id, graph, dated, self.shape)

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
        begun, here = dict(thread.shape), dict(self.shape)
        other = ", ".join(f"{name}={begun[name]!r}" for name in begun if begun[name] != here[name])
        if other:
            raise BadInput(
                f"the run of thread {thread.thread_id!r} was begun with other settings: open the memory with "
                f"Settings({other}) to resume it"
            )

    def approval_of(self, thread_id: str) -> Approval | None:
        """What was to be approved in the run of this thread, or in those under it; None where it has none."""
        metadata = self._metadata(thread_id)
        thread = None if metadata is None else _read(thread_id, metadata)
        thread = thread or next(self._distinct({}, f"{thread_id}."), None)
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
        found = [*self._distinct({_USER: owner.user, _WORKSPACE: owner.workspace}, prefix)]
        if not found and any(self._distinct({}, prefix)):
            raise BadInput(
                f"thread {thread_id!r} is another user's, or of another workspace: its runs go on only there"
            )
        return found

    def _distinct(self, wanted: Mapping[str, str], prefix: str = "") -> Iterator[Thread]:
        seen: set[str] = set()
        for found in self.saver.list(None, filter=dict(wanted)):
            thread_id = found.config["configurable"]["thread_id"]
            if thread_id in seen or not thread_id.startswith(prefix):
                continue
            seen.add(thread_id)
            thread = _read(thread_id, found.metadata)
            if thread is not None:
                yield thread

    def _metadata(self, thread_id: str) -> Mapping[str, Any] | None:
        if (
            not isinstance(thread_id, str)
            or not 0 < len(thread_id) <= _LONGEST
            or sound(thread_id) != thread_id
        ):
            raise BadInput(f"thread_id: give a text of 1 to {_LONGEST} characters")
        found = self.saver.get_tuple({"configurable": {"thread_id": thread_id}})
        return None if found is None else found.metadata


def _read(thread_id: str, metadata: Mapping[str, Any]) -> Thread | None:
    if not {_GRAPH, _CONTEXT, _SHAPE} <= metadata.keys():
        return None
    context = Context.model_validate_json(metadata[_CONTEXT])
    return Thread(thread_id, metadata[_GRAPH], context, Shape.model_validate_json(metadata[_SHAPE]))


Decisions = Literal["approve", "reject"] | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A person's answer: one for all, or `{"n": 1, "decision": "approve" | "edit" | "reject", "text": "..."}` by
item; what is not named is rejected."""

R = TypeVar("R", bound=Outcome)


@dataclass(frozen=True)
class Run(Generic[R]):
    """A run that is to be made: of which graph, with what, and how its output is read.

    Attributes:
        value: The graph's input; None for a run that goes on.
        thread_id: Of a new run, where it is named. thread: of one that goes on.
        decisions: Answer to what that one waits for.
    """

    graph: str
    value: Mapping[str, Any] | None
    context: Context
    read: Callable[[Mapping[str, Any]], R]
    thread_id: str | None = None
    thread: Thread | None = None
    decisions: Decisions | None = None


@dataclass(frozen=True)
class Runs:
    """Begins runs, says how far they are, and goes on with them.

    Attributes:
        graphs: Compiled, by name. bank: the store they were built with.
        threads: None where no checkpoints are kept.
    """

    graphs: Mapping[str, Any]
    bank: "Bank"
    threads: Threads | None

    def invoke(self, run: Run[R]) -> R:
        """Makes the run on its thread and reads its output.

        Raises:
            BadInput: a thread id that cannot be one, that has a run, or that needs checkpoints.
        """
        graph, value, thread = self._begin(run)
        with _told(thread):
            return self._finish(run, thread, graph.invoke(value, **_options(run, thread)))

    async def ainvoke(self, run: Run[R]) -> R:
        """Awaitable `invoke`: model calls are awaited natively, the rest is done off the event loop."""
        graph, value, thread = await asyncio.to_thread(self._begin, run)
        with _told(thread):
            return self._finish(run, thread, await graph.ainvoke(value, **_options(run, thread)))

    def _begin(self, run: Run[R]) -> tuple[Any, Any, Thread | None]:
        """The graph, its input, and the thread of the run."""
        graph, value, thread = self.graphs[run.graph], run.value, run.thread
        if self.threads is None:
            if run.thread_id is not None:
                raise BadInput(
                    "a thread_id needs checkpoints to go under: open the memory with checkpoints=..."
                )
            graph = detached(graph)
        elif thread is None:
            thread = self.threads.begin(run.thread_id, run.graph, run.context)
        if thread is not None:
            value = _redacted(self.bank.redactor, run)
        return graph, value, thread

    def _finish(self, run: Run[R], thread: Thread | None, out: Mapping[str, Any]) -> R:
        pending = _pending(out.get("__interrupt__"))
        if run.decisions is not None and pending is not None and pending.problem:
            raise BadInput(pending.problem)
        result = run.read(out)
        if thread is None:
            return result
        return result.model_copy(update={"thread_id": thread.thread_id, "pending": pending})

    def resumption(
        self, thread_id: str, decisions: Decisions | None, owner: Scope
    ) -> Run[Added | Answer | Ended]:
        """The run that goes on in this thread; one that waits shows again what for where nothing is decided.

        Raises:
            BadInput: no such thread, another user's, a finished one, one begun with other settings, or an
                answer that nothing waits for.
        """
        threads = self._kept()
        thread = threads.find(thread_id, owner)
        threads.check_shape(thread)
        state = self._state(thread)
        if _is_finished(state):
            raise BadInput(f"nothing to resume: the run of thread {thread_id!r} is finished")
        if decisions is not None and not state.interrupts:
            raise BadInput(
                f"the run of thread {thread_id!r} waits for no approval: resume it without decisions"
            )
        context, question = thread.context, state.values.get("question", "")
        reads: Mapping[str, Callable[[Mapping[str, Any]], Added | Answer | Ended]] = {
            "remember": Added.of,
            "recall": functools.partial(Answer.of, question),
            "session": functools.partial(Ended.of, context.session or MAIN_SESSION),
        }
        return Run(thread.graph, None, context, reads[thread.graph], thread=thread, decisions=decisions)

    def summary(self, thread_id: str, owner: Scope) -> ThreadSummary:
        """How far the run of a thread is, and what it waits for."""
        return self._summary(self._kept().find(thread_id, owner))

    def unfinished(self, owner: Scope) -> list[ThreadSummary]:
        """The runs that broke off or wait for a person, the last one first."""
        found = [self._summary(one) for one in self._kept().of(owner.user, owner.workspace)]
        return [one for one in found if not one.finished]

    def under(self, thread_id: str, owner: Scope) -> list[ThreadSummary]:
        """The runs whose thread ids begin with this one and a dot."""
        return [self._summary(one) for one in self._kept().under(thread_id, owner)]

    def delete(self, thread_id: str, owner: Scope) -> None:
        """Removes the checkpoints of a run."""
        threads = self._kept()
        threads.saver.delete_thread(threads.find(thread_id, owner).thread_id)

    def _kept(self) -> Threads:
        if self.threads is None:
            raise BadInput("this memory keeps no runs: open it with checkpoints=... to resume them")
        return self.threads

    def _state(self, thread: Thread) -> "StateSnapshot":
        state: StateSnapshot = self.graphs[thread.graph].get_state(thread.config)
        return state

    def _summary(self, thread: Thread) -> ThreadSummary:
        state = self._state(thread)
        return ThreadSummary(
            thread_id=thread.thread_id,
            run=_METHODS[thread.graph],
            session=thread.context.session,
            begun=thread.context.now,
            finished=_is_finished(state),
            pending=_pending(state.interrupts),
        )


_METHODS: Mapping[str, Literal["add", "ask", "end_session"]] = {
    "remember": "add",
    "recall": "ask",
    "session": "end_session",
}


def _options(run: Run[Any], thread: Thread | None) -> dict[str, Any]:
    if thread is None:
        return {"context": run.context}
    # What a node's models said must be kept before the next is asked.
    return {"context": run.context, "config": thread.config, "durability": "sync"}


@contextmanager
def _told(thread: Thread | None) -> Iterator[None]:
    """A run that breaks off says what a provider's error means, and how it goes on."""
    try:
        yield
    except BaseException as error:
        from memcycle.agents.provider_errors import explain_model_error

        if (explained := explain_model_error(error)) is not None and explained is not error:
            error.add_note(f"{explained}.")
        if thread is not None:
            error.add_note(f"This run can go on where it broke off: resume({thread.thread_id!r})")
        raise


def _is_finished(state: "StateSnapshot") -> bool:
    return not state.next and not state.interrupts


def _pending(interrupts: Sequence[Any] | None) -> PendingApproval | None:
    return PendingApproval.model_validate(interrupts[0].value) if interrupts else None


def detached(graph: Any) -> Any:
    """The graph as a run of its own, also where it is called inside a node of another one.

    It would be kept among that one's checkpoints, and after a resume go on with an earlier question.
    """
    # LangGraph hands `durability` down as well, and waits for a checkpoint that nobody writes.
    return graph.copy({"checkpointer": False}).with_config({"configurable": {"__pregel_durability": "async"}})


def _redacted(redactor: Redactor, run: Run[Any]) -> Any:
    """What a graph is given, as it may be kept among its checkpoints."""
    if run.decisions is not None:
        from langgraph.types import Command

        answer = list(run.decisions) if isinstance(run.decisions, tuple) else run.decisions
        return Command(resume=redactor.data(answer))
    if run.value is None:
        return None
    value = dict(run.value)
    for name in ("messages", "seen"):
        if value.get(name) is not None:
            value[name] = _redacted_messages(redactor, value[name])
    if value.get("turns") is not None:
        value["turns"] = [
            redactor.turn(Turn.model_validate(turn)).model_dump(mode="json") for turn in value["turns"]
        ]
    return value


def _redacted_messages(redactor: Redactor, messages: Any) -> Any:
    """Messages in any of the shapes that are read; what is none of them is left for its reader to refuse."""
    from langchain_core.messages import BaseMessage

    if isinstance(messages, str):
        return redactor.text(messages)
    if isinstance(messages, BaseMessage):
        words = {name: getattr(messages, name) for name in WORDED if getattr(messages, name, None)}
        words.pop("text", None)  # a view of the content
        return messages.model_copy(update=redactor.data(words))
    if isinstance(messages, Mapping):
        return {
            key: redactor.data({key: one})[key] if key in WORDED else one for key, one in messages.items()
        }
    if isinstance(messages, list | tuple):
        return type(messages)(_redacted_messages(redactor, one) for one in messages)
    return messages
