"""Which sessions wait to be ended, and when each is due: plain state, without threads and without a clock."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

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
