"""Memory beside an agent's run: recalled within a time limit, recorded at once or later, failures kept.

LangChain and LangGraph hand the configuration of a run on in context variables: what is called in an empty
context is no part of that run.
"""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, ParamSpec, TypeVar

from langchain_core.messages import BaseMessage

from memcycle.core.errors import BadInput, describe_error
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.graph.remember.chunk import new_turns
from memcycle.integrations.messages import Recall, RecallRequest
from memcycle.memory import Memory
from memcycle.results import Added, Answer

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)


def call_detached(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls outside the run that is going on."""
    return contextvars.Context().run(call, *args, **kwargs)


def task_detached(coroutine: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """A task outside the run that is going on, on the running loop."""
    return asyncio.get_running_loop().create_task(coroutine, context=contextvars.Context())


CACHED = 64
"""Recalls that are kept for the further model calls of their turn."""

CACHED_FOR = 300.0
"""Seconds after which one is not used again, where its turn broke off and nobody dropped it."""

MOST_LATE = 4
"""Recalls past their time that may still run; while so many do, memory is not asked again."""


@dataclass
class _Attempt:
    """One recall: what it will give, and until when it is waited for (by the monotonic clock)."""

    started: float
    until: float
    future: "concurrent.futures.Future[Answer]" = field(default_factory=concurrent.futures.Future)

    @property
    def left(self) -> float:
        return max(0.0, self.until - time.monotonic())


class Recaller:
    """Recalls for a conversation, once for each message, and never waits longer than `limit`.

    A recall is no part of the run that wants it: nothing of it is streamed or checkpointed there. One that is
    late is not broken off; the next model call of the same turn may find it done. Thread-safe, and for any
    event loop.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        limit: float,
        k: int | None = None,
        token_budget: int | None = None,
    ) -> None:
        """Starts nothing yet.

        Args:
            memory: Where is looked.
            limit: Seconds that one message waits for it at most, over all its model calls.
            k: Entries at most. token_budget: their tokens at most.
        """
        if not limit > 0:
            raise BadInput("the time limit of a recall must be above 0 seconds")
        self.memory, self.limit = memory, limit
        self._k, self._token_budget = k, token_budget
        self._lock = threading.Lock()
        self._cached: OrderedDict[RecallRequest, _Attempt] = OrderedDict()
        self._running: list[_Attempt] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def recall(self, request: RecallRequest, seen: Sequence[BaseMessage] = ()) -> Recall:
        """What memory holds on what is asked, beyond the messages that are seen anyway."""
        attempt = self._attempt(request, seen, self._in_thread)
        if attempt is not None:
            concurrent.futures.wait([attempt.future], timeout=attempt.left)
        return self._read(attempt)

    async def arecall(self, request: RecallRequest, seen: Sequence[BaseMessage] = ()) -> Recall:
        """Awaitable `recall`: models are awaited natively."""
        attempt = self._attempt(request, seen, self._in_task)
        if attempt is not None and not attempt.future.done():
            await _settled(attempt)
        return self._read(attempt)

    def drop(self, request: RecallRequest) -> None:
        """The turn is over: asked again, this is another recall."""
        with self._lock:
            self._cached.pop(request, None)

    def _attempt(
        self,
        request: RecallRequest,
        seen: Sequence[BaseMessage],
        start: Callable[[str, dict[str, Any], _Attempt], None],
    ) -> _Attempt | None:
        """The recall of this message, begun if it is not; None while too many late ones still run."""
        now = time.monotonic()
        with self._lock:
            known = self._cached.get(request)
            if known is not None and now < known.started + CACHED_FOR:
                return known
            self._running = [one for one in self._running if not one.future.done()]
            late = sum(one.until <= now for one in self._running)
            if late >= MOST_LATE:
                _log.warning("memory is not asked: %d recalls are late and still run", late)
                return None
            attempt = _Attempt(now, now + self.limit)
            self._running.append(attempt)
            if request.message_id is not None:
                self._cached[request] = attempt
                while len(self._cached) > CACHED:
                    self._cached.popitem(last=False)
        k = self._k if request.k is None else request.k
        options = {**request.scope.model_dump(), "k": k, "token_budget": self._token_budget}
        start(request.question, {**options, "seen": list(seen)}, attempt)
        return attempt

    def _read(self, attempt: _Attempt | None) -> Recall:
        if attempt is None:
            return Recall("unavailable", why="late")
        future, seconds = attempt.future, min(time.monotonic() - attempt.started, self.limit)
        if not future.done():
            _log.warning("memory is unavailable: no recall within %.3g seconds", self.limit)
            return Recall("unavailable", why="late", seconds=seconds)
        error = future.exception()
        if error is not None:
            why = describe_error(error)
            _log.warning("memory is unavailable: %s", why)
            return Recall("unavailable", why=why, seconds=seconds)
        return Recall.of(future.result().evidence, seconds)

    def _in_thread(self, question: str, options: dict[str, Any], attempt: _Attempt) -> None:
        """Runs it in a thread of its own. A daemon: recall writes no memory, and may hang for good."""

        def run() -> None:
            try:
                attempt.future.set_result(self.memory.recall(question, **options))
            except BaseException as error:  # noqa: BLE001 - raised to whoever waits, whatever it is
                attempt.future.set_exception(error)

        try:
            threading.Thread(target=call_detached, args=(run,), name="memcycle-recall", daemon=True).start()
        except RuntimeError as error:  # no thread to be had
            attempt.future.set_exception(error)

    def _in_task(self, question: str, options: dict[str, Any], attempt: _Attempt) -> None:
        async def run() -> None:
            try:
                attempt.future.set_result(await self.memory.arecall(question, **options))
            except BaseException as error:
                attempt.future.set_exception(error)
                if not isinstance(error, Exception):
                    raise

        task = task_detached(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _settled(attempt: _Attempt) -> None:
    """Waits until the recall is done or its time is over, on whatever loop or thread it runs."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def wake(_: object) -> None:
        # The loop may be gone by now, and nobody waits on it any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(done.set)

    attempt.future.add_done_callback(wake)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(done.wait(), attempt.left)


RECENT = 200
"""Messages of a conversation that are looked at: what failed in earlier turns is among them."""

MAX_FAILURES = 1000

AT_ONCE = 8
"""Conversations that are read side by side at most."""


class Failure(NamedTuple):
    """What was said and not read. The error is told without its message, which may quote a conversation."""

    scope: Scope
    error: str


class Recorder:
    """Records conversations in a memory. What the ledger holds already is not added again.

    What is said is written down at once and read later. It is the ledger that tells what is new and what is
    not read yet: what failed is made good by the next turn of its conversation. Thread-safe.
    """

    def __init__(self, memory: Memory) -> None:
        """Starts no thread before something is given for later.

        Args:
            memory: Where it is stored.
        """
        self.memory = memory
        self._state = threading.Condition()
        # By conversation, until all of it is read: what nobody has begun to read.
        self._waiting: dict[Scope, list[Sequence[BaseMessage]]] = {}
        self._reading: set[Scope] = set()
        self._failed: deque[Failure] = deque(maxlen=MAX_FAILURES)
        self._threads = 0
        self._closed = False

    def stage(self, scope: Scope, said: Sequence[BaseMessage]) -> None:
        """Writes down what is new of it, or said otherwise now, and asks no model: what comes may fail.

        A failure is recorded: whoever speaks next tries again.
        """
        try:
            self._stage(scope, said)
        except Exception as error:  # noqa: BLE001 - recorded and logged; the reply is worth more
            self._failure(scope, error)

    def now(self, scope: Scope, said: Sequence[BaseMessage]) -> Added | Failure:
        """Remembers what is new of it. That it failed is told, not raised: the reply is worth more."""
        try:
            return self._add(scope, said)
        except Exception as error:  # noqa: BLE001 - recorded and logged; the next turn tries again
            return self._failure(scope, error)

    async def anow(self, scope: Scope, said: Sequence[BaseMessage]) -> Added | Failure:
        """Awaitable `now`: models are awaited natively."""
        try:
            return await task_detached(self._aadd(scope, said))
        except Exception as error:  # noqa: BLE001 - recorded and logged; the next turn tries again
            return self._failure(scope, error)

    def later(self, scope: Scope, said: Sequence[BaseMessage]) -> None:
        """Remembers it in the background, after what waits of the conversation; after `close`, at once."""
        with self._state:
            closed = self._closed
            if not closed:
                self._waiting.setdefault(scope, []).append(said)
                if self._threads < min(AT_ONCE, len(self._waiting)):
                    self._start(scope)
        if closed:
            self.now(scope, said)

    def flush(self, timeout: float | None = None) -> list[Scope]:
        """Waits until everything given is remembered; gives what is not when the time is over."""
        with self._state:
            wanted = set(self._waiting)
            self._state.wait_for(lambda: wanted.isdisjoint(self._waiting), timeout)
            return sorted(wanted & self._waiting.keys(), key=lambda scope: (scope.key, scope.session or ""))

    def close(self, timeout: float = 30.0) -> None:
        """Flushes and stops. What failed is in the log and in `failures`.

        What is being read after `timeout` seconds runs on; what only waits then is left to the next turn of
        its conversation. Both are named in the log.
        """
        with self._state:
            self._closed = True
        left = self.flush(timeout)
        if left:
            names = ", ".join(f"session {scope.session!r} of {scope.user!r}" for scope in left)
            _log.warning("closed before all was remembered; left: %s", names)
        with self._state:
            self._waiting = {scope: [] for scope in self._reading}

    @property
    def waiting(self) -> list[Scope]:
        """The conversations of which something waits, or is being remembered now."""
        with self._state:
            return list(self._waiting)

    @property
    def failures(self) -> list[Failure]:
        """The last failures, at once and in the background."""
        return list(self._failed)

    def _stage(self, scope: Scope, said: Sequence[BaseMessage]) -> None:
        memory, bank = self.memory, self.memory.bank
        turns = new_turns(list(said[-RECENT:]), bank, scope, memory.settings, task=bank.world.new_id())
        if turns:
            bank.stage_turns(scope, turns, state="unextracted", embed=False)

    def _unread(self, scope: Scope, said: Sequence[BaseMessage]) -> list[Turn]:
        """What is written down of the session and in nobody's hands, once this is."""
        self._stage(scope, said)
        waiting = self.memory.bank.unprocessed(scope)
        states = self.memory.bank.turn_states(scope, [turn.id for turn in waiting])
        return [turn for turn in waiting if states[turn.id] == "unextracted"]

    def _add(self, scope: Scope, said: Sequence[BaseMessage]) -> Added:
        turns = self._unread(scope, said)
        return call_detached(self.memory.add, turns, **scope.model_dump()) if turns else Added()

    async def _aadd(self, scope: Scope, said: Sequence[BaseMessage]) -> Added:
        turns = await asyncio.to_thread(self._unread, scope, said)
        return await self.memory.aadd(turns, **scope.model_dump()) if turns else Added()

    # `_start` and `_done` are called with the state in hand.

    def _start(self, scope: Scope) -> None:
        # No daemon, which could be killed within a write; an executor's would ask models of all that waits
        # before the program could end.
        thread = threading.Thread(target=self._read_waiting, name="memcycle-remember")
        try:
            thread.start()
            self._threads += 1
        except RuntimeError as error:  # no thread to be had
            self._failure(scope, error)
            self._waiting[scope].clear()
            self._done(scope)

    def _read_waiting(self) -> None:
        """Reads what waits until nothing does, of each conversation one chunk at a time."""
        while (found := self._next()) is not None:
            scope, said = found
            # A program that ends has no thread pools for graphs any more: the words are kept all the same.
            act = self._add if threading.main_thread().is_alive() else self._stage
            try:
                act(scope, said)
            except BaseException as error:  # noqa: BLE001 - recorded and logged; the next turn tries again
                self._failure(scope, error)
            with self._state:
                self._reading.discard(scope)
                self._done(scope)

    def _next(self) -> tuple[Scope, Sequence[BaseMessage]] | None:
        with self._state:
            for scope, waiting in self._waiting.items():
                if waiting and scope not in self._reading:
                    self._reading.add(scope)
                    return scope, waiting.pop(0)
            self._threads -= 1
            return None

    def _done(self, scope: Scope) -> None:
        if not self._waiting[scope] and scope not in self._reading:
            del self._waiting[scope]
            self._state.notify_all()

    def _failure(self, scope: Scope, error: BaseException) -> Failure:
        failure = Failure(scope, describe_error(error))
        self._failed.append(failure)
        _log.warning("session %r of %r was not remembered: %s", scope.session, scope.user, failure.error)
        return failure
