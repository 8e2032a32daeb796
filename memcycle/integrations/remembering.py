"""Remembering what a conversation said: at once or in the background, each message once, failures kept."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from langchain_core.messages import BaseMessage

from memcycle.core.scope import Scope
from memcycle.idle import KEPT_FAILURES, Failure, IdleSessions, Wording, told
from memcycle.integrations.apart import apart, task_apart
from memcycle.integrations.asked import not_stored
from memcycle.memory import Memory
from memcycle.results import Added

_log = logging.getLogger(__name__)

LAST = 200
"""Messages of a conversation that are looked at: what failed in earlier turns is among them."""

MARGIN = 50
"""Stored turns looked at beyond those: a session may hold turns of others too."""

SOON = 0.05
"""Seconds before what was handed over is remembered, so that what comes together is read together."""

WORDING = Wording("remembering what was said in", "remembered", "as they are; the next turn hands them over")


class Remembering:
    """Hands conversations to a memory. What the ledger holds already is not handed over again.

    It is the ledger that tells what is new: what failed, or was lost with its process, is made good by the
    next turn of its conversation. Thread-safe.
    """

    def __init__(self, memory: Memory, *, attempts: int = 3, at_once: int = 8) -> None:
        """Starts no thread before something is handed over for later.

        Args:
            memory: Where it is stored.
            attempts: Tries in the background, after 10 and 20 seconds, before one is given up.
            at_once: Conversations remembered side by side; of one conversation only one chunk at a time.
        """
        self.memory = memory
        self._lock = threading.Lock()
        self._waiting: dict[Scope, list[BaseMessage]] = {}
        self._unread: set[Scope] = set()
        self._failed: deque[Failure] = deque(maxlen=KEPT_FAILURES)
        self._closed = False
        self._later = IdleSessions(
            self._remember_waiting,
            SOON,
            now=lambda: datetime.now(UTC),
            give_up=self._give_up,
            attempts=attempts,
            at_once=at_once,
            wording=WORDING,
        )

    def now(self, scope: Scope, said: Sequence[BaseMessage]) -> Added | Failure:
        """Remembers what is new of it. That it failed is told, not raised: the reply is worth more."""
        try:
            return self._add(scope, said)
        except Exception as error:  # noqa: BLE001 - recorded and logged; the next turn tries again
            return self._failure(scope, error)

    async def anow(self, scope: Scope, said: Sequence[BaseMessage]) -> Added | Failure:
        """Awaitable `now`: models are awaited natively."""
        try:
            return await task_apart(self._aadd(scope, said))
        except Exception as error:  # noqa: BLE001 - recorded and logged; the next turn tries again
            return self._failure(scope, error)

    def later(self, scope: Scope, said: Sequence[BaseMessage]) -> None:
        """Remembers it in the background; after `close`, at once."""
        with self._lock:
            if not self._closed:
                # The same conversation, longer: what waited of it is in it, unless it was cut meanwhile.
                given = {message.id for message in said}
                kept = [message for message in self._waiting.get(scope, []) if message.id not in given]
                self._waiting[scope] = [*kept, *said]
        if self._closed:
            self.now(scope, said)
        else:
            self._later.touch(scope)

    def flush(self, timeout: float | None = None) -> list[Scope]:
        """Waits until everything handed over is remembered; gives what is not when the time is over."""
        return self._later.flush(timeout)

    def close(self, timeout: float = 30.0) -> None:
        """Flushes and stops. What could not be remembered is named in the log, and is in `failures`."""
        with self._lock:
            self._closed = True
        self._later.close(timeout)

    @property
    def waiting(self) -> list[Scope]:
        """The conversations of which something waits, or is being remembered now."""
        with self._lock:
            return list(self._waiting)

    @property
    def failures(self) -> list[Failure]:
        """The last failures, at once and in the background."""
        return [*self._failed, *self._later.failures]

    def _add(self, scope: Scope, said: Sequence[BaseMessage]) -> Added:
        added = Added()
        with self._reading(scope):
            for chunk in self._chunks(scope, said):
                added = apart(self.memory.add, chunk, **scope.model_dump())
        return added

    async def _aadd(self, scope: Scope, said: Sequence[BaseMessage]) -> Added:
        added = Added()
        with self._reading(scope):
            for chunk in await asyncio.to_thread(self._chunks, scope, said):
                added = await self.memory.aadd(chunk, **scope.model_dump())
        return added

    @contextmanager
    def _reading(self, scope: Scope) -> Iterator[None]:
        try:
            yield
        except Exception:
            self._unread.add(scope)
            raise
        self._unread.discard(scope)

    def _chunks(self, scope: Scope, said: Sequence[BaseMessage]) -> list[list[BaseMessage]]:
        """What is to be added: what an attempt that failed wrote down and did not read, then what is new."""
        recent = list(said[-LAST:])
        stored = self.memory.bank.session_turns(scope, last=2 * len(recent) + MARGIN)
        new = not_stored(recent, stored, self.memory.bank.redactor.text)
        return [*([[]] if scope in self._unread else []), *([new] if new else [])]

    def _remember_waiting(self, scope: Scope) -> None:
        with self._lock:
            given = list(self._waiting.get(scope, []))
        self._add(scope, given)
        self._taken(scope, given)

    def _taken(self, scope: Scope, given: Sequence[BaseMessage]) -> None:
        """Drops what was given; what came meanwhile stays."""
        done = {id(message) for message in given}
        with self._lock:
            left = [message for message in self._waiting.get(scope, []) if id(message) not in done]
            if left:
                self._waiting[scope] = left
            else:
                self._waiting.pop(scope, None)

    def _give_up(self, scope: Scope, _: Exception) -> None:
        """Drops what waits. `IdleSessions` has told of it, and the next turn hands it over again."""
        with self._lock:
            given = list(self._waiting.get(scope, []))
        self._taken(scope, given)

    def _failure(self, scope: Scope, error: Exception) -> Failure:
        failure = Failure(scope, 1, told(error), "retry")
        self._failed.append(failure)
        _log.warning("session %r of %r was not remembered: %s", scope.session, scope.user, failure.error)
        return failure
