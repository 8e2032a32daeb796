"""Ends sessions in which nobody has spoken for a while, in the background."""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from memcycle.core.errors import BadInput, describe_error
from memcycle.core.scope import Scope

_log = logging.getLogger(__name__)

FIRST_RETRY = 10.0
"""Seconds from a failed end to the next try of it; each further one waits twice as long."""

LONGEST_RETRY = 600.0

FIRST_LOOK = 60.0
"""Seconds at least to the end of what others left open: who opens a home only to ask is gone by then."""

LONGEST_LOOK = 60.0
"""Seconds after which the clock is read again, whatever it said: a machine may have slept meanwhile."""

MAX_FAILURES = 1000

Outcome = Literal["retry", "spoken_again", "given_up", "lost"]
"""What followed a failure: another try; another end, once those who spoke meanwhile fall silent; the last
resort. `lost`: the session stays open in the ledger, since the last resort failed too, or the memory was
closed before another try."""


class Waiting(NamedTuple):
    """A session that waits, and the seconds until it is due (0 when it is)."""

    scope: Scope
    seconds: float


class Failure(NamedTuple):
    """An end that failed: how often since somebody last spoke, and what followed. The error is told without
    its message, which may quote a conversation."""

    scope: Scope
    attempts: int
    error: str
    outcome: Outcome


@dataclass(slots=True)
class _Wait:
    """Of a session to be ended, or being ended: when it is due, when it was last spoken in, how often its end
    failed since, and whether a flush wants it now."""

    due: float
    heard: datetime
    failed: int = 0
    urgent: bool = False


class IdleSessions:
    """Ends each session after `after` seconds without a word in it. Thread-safe.

    Every `touch` restarts its session's wait, so one run of `end` holds all that was said since the last.
    Up to `at_once` sessions are ended side by side, and a user with none going on comes first: as long as
    no more fall silent together, none waits for another's model calls. A failed end is tried again after
    10, 20, 40 ... seconds (at most ten minutes); after `attempts` failures in a row `give_up` is called.

    No thread exists before the first touch, and none while nothing waits. The one that watches the clock
    touches no store and so may be a daemon: a program that ends without `close` is not held back by it.
    Those that end sessions are no daemons and are never killed within a write; such a program waits for
    the ends already begun, and what only waits stays open in the ledger.
    """

    def __init__(
        self,
        end: Callable[[Scope], Any],
        after: float,
        *,
        now: Callable[[], datetime],
        give_up: Callable[[Scope, BaseException], None],
        attempts: int = 3,
        at_once: int = 8,
        verb: str = "end",
    ) -> None:
        """Starts nothing yet.

        Args:
            end: Ends a session, whatever waits in it; raises when it cannot. Called on a thread of its own,
                never twice at once for one session.
            after: Seconds of silence.
            now: The present, aware.
            give_up: The last resort for a session whose end keeps failing, with the last error.
            attempts: Failed ends in a row before the last resort.
            at_once: Sessions that are ended side by side at most.
            verb: For the log, where `end` does something else to a session in which nobody speaks.
        """
        if not after > 0 or attempts < 1 or at_once < 1:
            raise BadInput("after must be above 0, attempts and at_once at least 1")
        self._end, self._give_up, self._now = end, give_up, now
        self._after, self._attempts, self._at_once, self._verb = after, attempts, at_once, verb
        # A session waits, is being ended, or both: spoken in while being ended.
        self._waits: dict[Scope, _Wait] = {}
        self._runs: dict[Scope, _Wait] = {}
        self._state = threading.Condition()
        self._failures: deque[Failure] = deque(maxlen=MAX_FAILURES)
        self._threads: list[threading.Thread] = []
        self._watched = self._closing = self._stopped = False

    def touch(self, scope: Scope, heard: datetime | None = None) -> None:
        """Somebody spoke in this session: its wait starts anew, and so does the count of its failures.

        Args:
            heard: When they did, if that was earlier and elsewhere; its end then waits a minute at least.

        Raises:
            BadInput: the scope names no session.
        """
        if scope.session is None:
            raise BadInput("only a session can fall silent: this scope names none")
        with self._state:
            closing = self._closing
            if not closing:
                now = self._now()
                due = now.timestamp() + self._after
                if heard is not None:
                    pause = min(FIRST_LOOK, self._after)
                    due = max(heard.timestamp() + self._after, now.timestamp() + pause)
                self._waits[scope] = _Wait(due, heard or now)
                self._watch()
        if closing:
            _log.warning("%s was spoken in after close: nothing will %s it", _named(scope), self._verb)

    def heard(self, scope: Scope) -> datetime | None:
        """When a session that is being ended was last spoken in; None where its end is tried again."""
        with self._state:
            run = self._runs.get(scope)
            return None if run is None or run.failed else run.heard

    def forget(self, scope: Scope) -> None:
        """Drops a session's wait, since it was ended explicitly."""
        with self._state:
            self._waits.pop(scope, None)

    def run_due(self) -> None:
        """Starts ending what is due by the clock, without waiting for the thread that watches it."""
        with self._state:
            self._start_due()

    def flush(self, timeout: float | None = None) -> list[Scope]:
        """Ends all waiting sessions now and waits for them; failed ones are tried again without a pause.

        A session spoken in after this call keeps its wait. Not to be called inside `end`.

        Args:
            timeout: Seconds to wait at most; None waits as long as it takes.

        Returns:
            What is not ended yet, by user and session: empty unless the time ran out or no thread could
            be started.
        """
        until = None if timeout is None else time.monotonic() + timeout
        with self._state:
            wanted = {*self._waits, *self._runs}
            for scope in wanted:
                for state in self._states(scope):
                    state.urgent = True
            while left := [one for one in wanted if any(state.urgent for state in self._states(one))]:
                self._start_due()
                if not self._runs or not self._state.wait(
                    None if until is None else until - time.monotonic()
                ):
                    break
        return sorted(left, key=lambda scope: (scope.key, scope.session or ""))

    def close(self, timeout: float = 30.0, *, flush: bool = True) -> None:
        """Flushes and stops the threads. Idempotent.

        What is still being ended after `timeout` seconds runs on and is named in the log; what only waits
        then stays open in the ledger and is named too.

        Args:
            flush: Whether what waits is ended now; else it is left as it is, and not named.
        """
        until = time.monotonic() + timeout
        with self._state:
            if self._stopped:
                return
            self._closing, self._stopped = True, not flush
        if flush:
            self.flush(timeout)
        with self._state:
            self._stopped = True
            self._state.notify_all()
            while self._runs and self._state.wait(until - time.monotonic()):
                pass
            threads = list(self._threads)
            running, left = list(self._runs), list(self._waits) if flush else []
        if running:
            _log.warning("closed while it took long to %s: %s", self._verb, _names(running))
        if left:
            _log.warning("closed too early to %s, left as they are: %s", self._verb, _names(left))
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    @property
    def waiting(self) -> list[Waiting]:
        """The sessions that wait, each with its seconds left, the next one first."""
        with self._state:
            now = self._time()
            found = [
                Waiting(scope, 0.0 if wait.urgent else max(0.0, wait.due - now))
                for scope, wait in self._waits.items()
            ]
        return sorted(found, key=lambda one: one.seconds)

    @property
    def running(self) -> list[Scope]:
        """The sessions being ended, in the order they were taken."""
        with self._state:
            return list(self._runs)

    @property
    def failures(self) -> list[Failure]:
        """The last 1,000 failures, oldest first."""
        with self._state:
            return list(self._failures)

    # These are called with the lock held.

    def _time(self) -> float:
        return self._now().timestamp()

    def _states(self, scope: Scope) -> list[_Wait]:
        return [state for state in (self._waits.get(scope), self._runs.get(scope)) if state is not None]

    def _next(self) -> Scope | None:
        """What is ended next: the longest due, but of a user with few ends going on before others."""
        going, now = Counter(scope.key for scope in self._runs), self._time()
        ready = (
            (going[scope.key], wait.due, n, scope)
            for n, (scope, wait) in enumerate(self._waits.items())
            if scope not in self._runs and (wait.urgent or wait.due <= now)
        )
        return min(ready, default=(0, 0.0, 0, None))[-1]

    def _watch(self) -> None:
        if self._waits and not self._watched:
            self._watched = self._start("clock", self._tick, daemon=True)

    def _start_due(self) -> None:
        """A thread for each session that is due, up to the bound."""
        while len(self._runs) < self._at_once and (scope := self._next()) is not None:
            if not self._start("worker", self._run, scope, daemon=False):
                return
            self._runs[scope] = self._waits.pop(scope)

    def _start(self, name: str, target: Callable[..., None], *args: Scope, daemon: bool) -> bool:
        if not self._may_run():
            return False
        thread = threading.Thread(target=target, args=args, name=f"memcycle-idle-{name}", daemon=daemon)
        try:
            thread.start()
        except RuntimeError:
            _log.warning("no thread could be started: %d sessions go on waiting", len(self._waits))
            return False
        self._threads = [*(known for known in self._threads if known.is_alive()), thread]
        return True

    def _may_run(self) -> bool:
        """Not when closed, nor when the program is ending: the graphs' own thread pools are gone by then."""
        return not self._stopped and threading.main_thread().is_alive()

    def _next_try(self, run: _Wait, scope: Scope) -> Outcome:
        """What follows a failed end that is not given up."""
        spoken = scope in self._waits
        if not spoken:
            run.due = self._time() + min(FIRST_RETRY * 2 ** min(run.failed - 1, 30), LONGEST_RETRY)
            self._waits[scope] = run
        return "lost" if self._stopped else "spoken_again" if spoken else "retry"

    # What threads do

    def _tick(self) -> None:
        with self._state:
            try:
                while self._waits and self._may_run():
                    self._start_due()
                    now = self._time()
                    left = [wait.due - now for wait in self._waits.values() if wait.due > now]
                    # Never longer than `after`: then no later touch can be due before the next look, and
                    # a touch need not wake this thread.
                    self._state.wait(min([self._after, LONGEST_LOOK, *left]))
            finally:
                self._watched = False

    def _run(self, scope: Scope) -> None:
        failure = None
        try:
            self._end(scope)
        except BaseException as error:  # noqa: BLE001 - recorded, logged and tried again, whatever it is
            failure = self._failed(scope, error)
        with self._state:
            run = self._runs.pop(scope)
            if failure is not None:
                if failure.outcome == "retry":
                    failure = failure._replace(outcome=self._next_try(run, scope))
                self._failures.append(failure)
            self._start_due()
            self._watch()
            self._state.notify_all()
        if failure is not None:
            _log.warning("could not %s %s (%d): %s; %s", self._verb, _named(scope), *failure[1:])

    def _failed(self, scope: Scope, error: BaseException) -> Failure:
        """Counts a failure; the last in a row calls the last resort, while the session is still in hand."""
        with self._state:
            run = self._runs[scope]
            run.failed += 1
            is_last = run.failed >= self._attempts and scope not in self._waits
        failure = Failure(scope, run.failed, describe_error(error), "retry")
        if not is_last:
            return failure
        try:
            self._give_up(scope, error)
        except Exception as raised:  # noqa: BLE001 - the last resort's own failure is recorded as such
            return failure._replace(error=f"{failure.error}; then {describe_error(raised)}", outcome="lost")
        return failure._replace(outcome="given_up")


def _named(scope: Scope) -> str:
    return f"session {scope.session!r} of {scope.user!r} in {scope.workspace!r}"


def _names(scopes: Iterable[Scope]) -> str:
    return ", ".join(_named(scope) for scope in scopes)
