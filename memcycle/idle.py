"""Ends sessions in which nobody has spoken for a while, in the background."""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from memcycle.core.errors import BadInput, RoleFailed, StoreError
from memcycle.core.scope import Scope

FIRST_RETRY = 10.0
"""Seconds from a failed end to the next try of it; each further one waits twice as long."""

LONGEST_RETRY = 600.0

Verdict = Literal["retry", "spoken_again", "forgotten", "give_up"]
"""What follows a failed end: another try; another end once those who spoke meanwhile fall silent; nothing,
since somebody ended the session otherwise; or the last resort."""


class Waiting(NamedTuple):
    """A session that waits, and the seconds until it is due (0 when it is)."""

    scope: Scope
    seconds: float


@dataclass(slots=True)
class _Wait:
    due: float
    failed: int = 0
    urgent: bool = False


@dataclass(slots=True)
class _Run:
    failed: int
    urgent: bool
    forgotten: bool = False


class Silence:
    """The sessions somebody has spoken in, each waiting for `after` seconds of silence. Not thread-safe.

    A session is in one of three places: waiting, being ended, or both (spoken in while being ended).
    """

    def __init__(self, after: float, attempts: int) -> None:
        self._after, self._attempts = after, attempts
        self._waits: dict[Scope, _Wait] = {}
        self._runs: dict[Scope, _Run] = {}

    def touch(self, scope: Scope, now: datetime) -> None:
        """Somebody spoke: the session's wait starts anew, and so does the count of its failures."""
        self._waits[scope] = _Wait(now.timestamp() + self._after)

    def forget(self, scope: Scope) -> None:
        """Drops the session's wait; an end of it that is going on is not tried again if it fails."""
        self._waits.pop(scope, None)
        if scope in self._runs:
            self._runs[scope].forgotten = True

    def hurry(self, but: Scope | None = None) -> set[Scope]:
        """Makes all that wait due at once, and the failures of those being ended too, `but` one.

        Returns:
            All of them.
        """
        scopes = {*self._waits, *self._runs} - {but}
        for scope in scopes:
            for state in (self._waits.get(scope), self._runs.get(scope)):
                if state is not None:
                    state.urgent = True
        return scopes

    def hurried(self, scopes: set[Scope]) -> set[Scope]:
        """Those of `scopes` still hurried: neither ended since, nor spoken in again."""
        return {
            scope
            for scope in scopes
            for state in (self._waits.get(scope), self._runs.get(scope))
            if state is not None and state.urgent
        }

    def due(self, now: datetime) -> list[Scope]:
        """What can be ended now, the longest due first, but users with few ends going on before others."""
        going = Counter((scope.user, scope.workspace) for scope in self._runs)
        time = now.timestamp()
        ready = [
            (going[scope.user, scope.workspace], wait.due, place, scope)
            for place, (scope, wait) in enumerate(self._waits.items())
            if scope not in self._runs and (wait.urgent or wait.due <= time)
        ]
        return [scope for *_, scope in sorted(ready, key=lambda found: found[:3])]

    def take(self, now: datetime) -> Scope | None:
        """The first that is due, from now on being ended: `done` or `failed` must follow."""
        ready = self.due(now)
        if not ready:
            return None
        wait = self._waits.pop(ready[0])
        self._runs[ready[0]] = _Run(wait.failed, wait.urgent)
        return ready[0]

    def done(self, scope: Scope) -> None:
        """The session was ended, or given up. If it was spoken in meanwhile it goes on waiting."""
        del self._runs[scope]

    def failed(self, scope: Scope, now: datetime) -> tuple[int, Verdict]:
        """The end of a session failed.

        Returns:
            How often it failed since somebody last spoke in it, and what follows. After `give_up` the
            session counts as being ended until `done`.
        """
        run = self._runs[scope]
        run.failed += 1
        if scope not in self._waits and not run.forgotten and run.failed >= self._attempts:
            return run.failed, "give_up"
        del self._runs[scope]
        if scope in self._waits:
            return run.failed, "spoken_again"
        if run.forgotten:
            return run.failed, "forgotten"
        pause = min(FIRST_RETRY * 2 ** min(run.failed - 1, 30), LONGEST_RETRY)
        self._waits[scope] = _Wait(now.timestamp() + pause, run.failed, run.urgent)
        return run.failed, "retry"

    def seconds_left(self, now: datetime) -> float | None:
        """Until the next one falls due; None when nothing waits but what is due already."""
        time = now.timestamp()
        return min((wait.due - time for wait in self._waits.values() if wait.due > time), default=None)

    def waiting(self, now: datetime) -> list[Waiting]:
        """All that wait, the next one first."""
        time = now.timestamp()
        found = [
            Waiting(scope, 0.0 if wait.urgent else max(0.0, wait.due - time))
            for scope, wait in self._waits.items()
        ]
        return sorted(found, key=lambda waiting: waiting.seconds)

    @property
    def running(self) -> list[Scope]:
        """Those being ended, in the order they were taken."""
        return list(self._runs)

    def __bool__(self) -> bool:
        """Whether any session waits."""
        return bool(self._waits)


_log = logging.getLogger(__name__)

LONGEST_LOOK = 60.0
"""Seconds after which the clock is read again, whatever it said: a machine may have slept meanwhile."""

KEPT_FAILURES = 1000

Outcome = Literal["retry", "spoken_again", "forgotten", "given_up", "lost"]
"""What followed a failure. `lost`: the session stays open in the ledger, since the last resort failed too
or the memory was closed before another try."""


class Failure(NamedTuple):
    """An end that failed. The error is told without its message, which may quote a conversation."""

    scope: Scope
    attempts: int
    error: str
    outcome: Outcome


class Wording(NamedTuple):
    """How the log tells of the work: what is done to a session, and how one stays where it was not."""

    doing: str = "ending"
    done: str = "ended"
    left: str = "open"


ENDING = Wording()


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
        give_up: Callable[[Scope, Exception], None],
        attempts: int = 3,
        at_once: int = 8,
        wording: Wording = ENDING,
    ) -> None:
        """Starts nothing yet.

        Args:
            end: Ends a session, whatever waits in it; raises when it cannot. Called on a worker thread,
                never twice at once for one session.
            after: Seconds of silence.
            now: The present, aware.
            give_up: The last resort for a session whose end keeps failing, with the last error.
            attempts: Failed ends in a row before the last resort.
            at_once: Worker threads at most.
            wording: For the log, where `end` does something else to a session in which nobody speaks.
        """
        if not after > 0 or attempts < 1 or at_once < 1:
            raise BadInput("after must be above 0, attempts and at_once at least 1")
        self._end, self._give_up, self._now = end, give_up, now
        self._after, self._at_once, self._wording = after, at_once, wording
        self._silence = Silence(after, attempts)
        self._state = threading.Condition()
        self._failures: deque[Failure] = deque(maxlen=KEPT_FAILURES)
        self._threads: list[threading.Thread] = []
        self._workers, self._watched = 0, False
        self._closing = self._stopped = False
        self._own = threading.local()

    def touch(self, scope: Scope) -> None:
        """Somebody spoke in this session.

        Raises:
            BadInput: the scope names no session.
        """
        if scope.session is None:
            raise BadInput("only a session can fall silent: this scope names none")
        with self._state:
            closing = self._closing
            if not closing:
                self._silence.touch(scope, self._now())
                self._watch()
        if closing:
            _log.warning(
                "%s was spoken in after close: it is not %s by itself", _named(scope), self._wording.done
            )

    def forget(self, scope: Scope) -> None:
        """Drops a session's wait, as before an explicit end of it. Does nothing inside `end` of the same one.

        Call it before that end, not after: what is said meanwhile must wait anew.
        """
        if scope != self._ending:
            with self._state:
                self._silence.forget(scope)

    def run_due(self) -> None:
        """Starts ending what is due by the clock, without waiting for the thread that watches it."""
        with self._state:
            self._start_due()

    def flush(self, timeout: float | None = None) -> list[Scope]:
        """Ends all waiting sessions now and waits for them; failed ones are tried again without a pause.

        A session spoken in after this call keeps its wait. Inside `end` its own session is left out
        (give a timeout there: the others may need this very thread).

        Args:
            timeout: Seconds to wait at most; None waits as long as it takes.

        Returns:
            What is not ended yet, by user and session: empty unless the time ran out or no thread could
            be started.
        """
        until = None if timeout is None else time.monotonic() + timeout
        with self._state:
            asked = self._silence.hurry(but=self._ending)
            while left := self._silence.hurried(asked):
                self._start_due()
                if not self._workers:
                    break
                if not self._state.wait(None if until is None else until - time.monotonic()):
                    break
        return sorted(left, key=lambda scope: (scope.key, scope.session or ""))

    def close(self, timeout: float = 30.0) -> None:
        """Flushes and stops the threads. Idempotent.

        What is still being ended after `timeout` seconds runs on and is named in the log; what only waits
        then stays open in the ledger and is named too.
        """
        until = time.monotonic() + timeout
        with self._state:
            if self._stopped:
                return
            self._closing = True
        self.flush(timeout)
        with self._state:
            self._stopped = True
            self._state.notify_all()
            threads = list(self._threads)
            running = [scope for scope in self._silence.running if scope != self._ending]
            left = [found.scope for found in self._silence.waiting(self._now())]
        if running:
            _log.warning("closed while still being %s: %s", self._wording.done, _names(running))
        if left:
            _log.warning(
                "closed before they were %s, so they stay %s: %s",
                self._wording.done,
                self._wording.left,
                _names(left),
            )
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))

    @property
    def waiting(self) -> list[Waiting]:
        """The sessions that wait, each with its seconds left, the next one first."""
        with self._state:
            return self._silence.waiting(self._now())

    @property
    def running(self) -> list[Scope]:
        """The sessions being ended."""
        with self._state:
            return self._silence.running

    @property
    def failures(self) -> list[Failure]:
        """The last 1,000 failures, oldest first."""
        with self._state:
            return list(self._failures)

    @property
    def _ending(self) -> Scope | None:
        """The session that the calling thread is ending."""
        return getattr(self._own, "scope", None)

    # The methods from here to `_start` are called with the lock held.

    def _watch(self) -> None:
        if self._silence and not self._watched:
            self._watched = self._start(self._tick, "clock", daemon=True)

    def _start_due(self) -> None:
        """A worker for each session due or being ended, up to the bound; a free one takes the next."""
        wanted = min(self._at_once, len(self._silence.running) + len(self._silence.due(self._now())))
        while self._workers < wanted and self._start(self._work, "worker", daemon=False):
            self._workers += 1

    def _start(self, target: Callable[[], None], name: str, *, daemon: bool) -> bool:
        if not self._may_run():
            return False
        thread = threading.Thread(target=target, name=f"memcycle-idle-{name}", daemon=daemon)
        try:
            thread.start()
        except RuntimeError:
            _log.warning("no thread could be started: %d sessions go on waiting", len(self.waiting))
            return False
        self._threads = [*(known for known in self._threads if known.is_alive()), thread]
        return True

    def _may_run(self) -> bool:
        """Not when closed, nor when the program is ending: the graphs' own thread pools are gone by then."""
        return not self._stopped and threading.main_thread().is_alive()

    def _tick(self) -> None:
        with self._state:
            try:
                while self._silence and self._may_run():
                    self._start_due()
                    left = self._silence.seconds_left(self._now())
                    # Never longer than `after`: then no later touch can be due before the next look, and
                    # a touch need not wake this thread.
                    self._state.wait(min(self._after, LONGEST_LOOK, LONGEST_LOOK if left is None else left))
            finally:
                self._watched = False

    def _work(self) -> None:
        try:
            while (scope := self._next()) is not None:
                self._run(scope)
        finally:
            with self._state:
                self._workers -= 1
                # Something may have fallen due since this worker last looked.
                self._start_due()
                self._state.notify_all()

    def _next(self) -> Scope | None:
        with self._state:
            return self._silence.take(self._now()) if self._may_run() else None

    def _run(self, scope: Scope) -> None:
        self._own.scope = scope
        error: Exception | None = RuntimeError("the end of a session was broken off")
        try:
            self._end(scope)
            error = None
        except Exception as raised:  # noqa: BLE001 - recorded, logged and tried again, whatever it is
            error = raised
        finally:
            if error is None:
                self._finish(scope)
            else:
                self._fail(scope, error)
            self._own.scope = None

    def _finish(self, scope: Scope) -> None:
        with self._state:
            self._silence.done(scope)
            self._wake()

    def _fail(self, scope: Scope, error: Exception) -> None:
        with self._state:
            attempts, verdict = self._silence.failed(scope, self._now())
            if verdict != "give_up":
                outcome: Outcome = "lost" if self._stopped and verdict != "forgotten" else verdict
                failure = Failure(scope, attempts, told(error), outcome)
                self._failures.append(failure)
                self._wake()
        if verdict == "give_up":
            failure = self._resign(scope, attempts, error)
        _log.warning(
            "%s %s failed (%d): %s; %s",
            self._wording.doing,
            _named(scope),
            attempts,
            failure.error,
            failure.outcome,
        )

    def _resign(self, scope: Scope, attempts: int, error: Exception) -> Failure:
        failure = Failure(scope, attempts, told(error), "lost")
        try:
            self._give_up(scope, error)
            failure = failure._replace(outcome="given_up")
        except Exception as raised:  # noqa: BLE001 - the last resort's own failure is recorded as such
            failure = failure._replace(error=f"{failure.error}; then {told(raised)}")
        finally:
            with self._state:
                self._failures.append(failure)
                self._finish(scope)
        return failure

    def _wake(self) -> None:
        self._start_due()
        self._watch()
        self._state.notify_all()


def told(error: Exception) -> str:
    """An error by its kind; by its words only where they are ours and quote nobody."""
    kind = type(error).__name__
    if isinstance(error, StoreError):
        return f"{kind}: {error}"
    if isinstance(error, RoleFailed):
        return f"{kind}: role {error.role!r}"
    status = getattr(error, "status_code", None)
    return f"{kind}: status {status}" if isinstance(status, int) else kind


def _named(scope: Scope) -> str:
    return f"session {scope.session!r} of {scope.user!r} in {scope.workspace!r}"


def _names(scopes: Iterable[Scope]) -> str:
    return ", ".join(_named(scope) for scope in scopes)
