"""The half of `Memory` that ends sessions, and shows how they ended."""

import asyncio
import functools
from abc import abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from memcycle.core.clock import World
from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.timestamps import read_time
from memcycle.graph.context import MAIN_SESSION, Context
from memcycle.idle import IdleSessions
from memcycle.results import Ended, SessionDetail, SessionSummary
from memcycle.runs import Run, awaited, execute, off_loop, runs
from memcycle.stored import Stored, first_complaint
from memcycle.stores.bank import Bank
from memcycle.stores.ledger.sessions import SessionInfo

if TYPE_CHECKING:
    from memcycle.threads import Threads

T = TypeVar("T")

_LISTED = 5
"""Sessions named where another was asked for."""


class Ending(Stored):
    """Ends sessions: what they say is examined, repaired and committed (MemMA 3.4).

    Attributes:
        settings: As opened with.
        idle: Ends sessions in which nobody spoke for `settings.idle_after` seconds, and tells what waits and
            what failed; None where none are ended so.
    """

    settings: Settings
    idle: IdleSessions | None = None

    @property
    @abstractmethod
    def graphs(self) -> Mapping[str, Any]:
        """The compiled graphs, by name."""

    @property
    @abstractmethod
    def threads(self) -> "Threads | None":
        """The threads of runs; None where no checkpoints are kept."""

    @abstractmethod
    def _waits(self, scope: Scope) -> bool:
        """Whether the end of this session waits for a person."""

    @runs
    def end_session(
        self,
        session: str | None = None,
        *,
        user: str | None = None,
        workspace: str | None = None,
        verify: bool | None = None,
        thread_id: str | None = None,
    ) -> Run[Ended]:
        """Ends a session: its last turns become an episode, all of it is examined, repaired and committed.

        A session that was broken off while it ended is ended by calling this again. A role that fails never
        holds it up: it is then committed unverified, with the reason.

        Args:
            session: By default `main`.
            user: Whose memory. workspace: a second wall inside it.
            verify: None examines what is new of it, and does nothing where nothing is. False commits at once,
                unverified. True examines it again although it is committed.
            thread_id: As in `add`.

        Raises:
            BadInput: no user, or a name that cannot be one. Provider errors are raised as themselves.
        """
        named = session or MAIN_SESSION
        context = self._context(user, workspace, named, None)
        return Run("session", {"verify": verify}, context, self._reads_end(context), thread_id)

    aend_session = awaited(end_session)

    def verify_session(
        self,
        session: str,
        *,
        user: str | None = None,
        workspace: str | None = None,
        thread_id: str | None = None,
    ) -> Ended:
        """Examines a session again, committed or not, as `end_session` with `verify=True`.

        Raises:
            BadInput: no such session.
        """
        self._known(session, user, workspace)
        return self.end_session(session, user=user, workspace=workspace, verify=True, thread_id=thread_id)

    async def averify_session(
        self,
        session: str,
        *,
        user: str | None = None,
        workspace: str | None = None,
        thread_id: str | None = None,
    ) -> Ended:
        """Awaitable `verify_session`."""
        await asyncio.to_thread(self._known, session, user, workspace)
        return await self.aend_session(
            session, user=user, workspace=workspace, verify=True, thread_id=thread_id
        )

    def sessions(self, *, user: str | None = None, workspace: str | None = None) -> list[SessionSummary]:
        """Every session of a user, as they began: how far it is, and what its examination found."""
        return [SessionSummary.of(info) for info in self.bank.sessions(self.scope(user, workspace))]

    def session(
        self, session: str, *, user: str | None = None, workspace: str | None = None
    ) -> SessionDetail:
        """One session, with each question it was examined with, the answers, and what was repaired.

        Raises:
            BadInput: no such session.
        """
        info = self._known(session, user, workspace)
        scope = self._in_session(session, user, workspace)
        return SessionDetail.of(info, examined=self.bank.probes(scope))

    asessions = off_loop(sessions)
    asession = off_loop(session)

    def _idle_sessions(self, world: World) -> IdleSessions | None:
        after = self.settings.idle_after
        if after is None:
            return None
        return IdleSessions(self._end_idle, after, now=world.now, give_up=self._give_up)

    def _end_idle(self, scope: Scope) -> None:
        if not self._waits(scope):
            context = Context(user=scope.user, workspace=scope.workspace, session=scope.session)
            execute(self, Run("session", {}, context, functools.partial(Ended.of, scope.session or "")))

    def _reads_end(self, context: Context) -> Callable[[Mapping[str, Any]], Ended]:
        named = functools.partial(Ended.of, context.session or MAIN_SESSION)
        return self._no_longer_waiting(context, named)

    def _await_silence(self, bank: Bank) -> None:
        """Sessions that another process left open, silent for long, are ended too, once nobody comes back."""
        if self.idle is not None and self.settings.idle_after is not None:
            silent_since = bank.world.now() - timedelta(seconds=self.settings.idle_after)
            for scope in bank.open_sessions(silent_since):
                self.idle.touch(scope)

    def _no_longer_waiting(
        self, context: Context, read: Callable[[Mapping[str, Any]], T]
    ) -> Callable[[Mapping[str, Any]], T]:
        """Drops a session's wait once it has ended; an end that fails leaves it waiting."""
        idle, scope = self.idle, _scope_of(context)
        if idle is None:
            return read
        idle.touch(scope)

        def read_and_forget(out: Mapping[str, Any]) -> T:
            # Open again: somebody spoke while it ended. One that a person is asked about is in hand.
            if (out.get("result") or {}).get("status") != "open":
                idle.forget(scope)
            return read(out)

        return read_and_forget

    def _give_up(self, scope: Scope, error: Exception) -> None:
        """The last resort: nothing said waits for ever. The error's words are left out: they may quote it."""
        self.bank.commit_session(scope, unverified=f"it could not be ended: {type(error).__name__}")

    def _speaking(
        self, context: Context, read: Callable[[Mapping[str, Any]], T]
    ) -> Callable[[Mapping[str, Any]], T]:
        """Notes that somebody speaks in a session, so that it is not idle; again when the run is read.

        A chunk may take a model longer than a session may be silent.
        """
        idle, scope = self.idle, _scope_of(context)
        if idle is None:
            return read
        idle.touch(scope)

        def read_and_touch(out: Mapping[str, Any]) -> T:
            idle.touch(scope)
            return read(out)

        return read_and_touch

    def _known(self, session: str, user: str | None, workspace: str | None) -> SessionInfo:
        scope = self._in_session(session, user, workspace)
        found = self.bank.sessions(scope)
        if not found:
            there = [info.session for info in self.bank.sessions(scope.base)]
            listed = ", ".join(there[:_LISTED]) or "none"
            more = f" and {len(there) - _LISTED} more" if len(there) > _LISTED else ""
            raise BadInput(
                f"no session {session!r} of user {scope.user!r} in workspace {scope.workspace!r}; "
                f"sessions there: {listed}{more}"
            )
        return found[0]

    def _in_session(self, session: str, user: str | None, workspace: str | None) -> Scope:
        try:
            return self.scope(user, workspace).within(session)
        except ValidationError as error:
            raise BadInput(first_complaint(error)) from error

    def _context(
        self,
        user: str | None,
        workspace: str | None,
        session: str,
        now: datetime | str | None,
        **more: Any,
    ) -> Context:
        """What a run of a graph is told."""
        scope = self._in_session(session, user, workspace)
        try:
            time = None if now is None else read_time(now, self.settings.zone)
            return Context(user=scope.user, workspace=scope.workspace, session=session, now=time, **more)
        except ValidationError as error:
            raise BadInput(first_complaint(error)) from error
        except ValueError as error:
            raise BadInput(f"now: {error}") from error


def _scope_of(context: Context) -> Scope:
    return Scope(user=context.user, workspace=context.workspace, session=context.session)
