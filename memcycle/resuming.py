"""The part of `Memory` that goes on with runs which broke off, or wait for a person."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.ending import Ending
from memcycle.results import Added, Answer, Ended, PendingApproval, ThreadSummary
from memcycle.runs import Run, awaited, off_loop, runs

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from memcycle.threads import Thread, Threads

Decisions = Literal["approve", "reject"] | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A person's answer: one for all, or `{"n": 1, "decision": "approve" | "edit" | "reject", "text": "..."}` by
item; what is not named is rejected."""

_RUNS: Mapping[str, Literal["add", "ask", "end_session"]] = {
    "remember": "add",
    "recall": "ask",
    "session": "end_session",
}


class Resuming(Ending):
    """Goes on with runs by the id of their thread."""

    @runs
    def resume(
        self,
        thread_id: str,
        decisions: Decisions | None = None,
        *,
        user: str | None = None,
        workspace: str | None = None,
    ) -> Run[Added | Answer | Ended]:
        """Goes on with a run that broke off, or that waits for a person, where it stopped.

        What its finished nodes did is not done again: no model is asked twice for it, nothing is written
        twice. A node in the middle of which the process died begins anew.

        Args:
            thread_id: As the run's result, or its error, names it.
            decisions: The answer to what waits for approval, as `pending.how` says; without one, a run that
                waits is only shown again.
            user: Whose run. workspace: a second wall inside that user.

        Returns:
            What the method that began the run gives back.

        Raises:
            BadInput: no such thread, another user's, a finished one, one begun with other `approval` or
                `switches`, an answer that nothing waits for or that cannot be read; the run is as it was.
        """
        threads = self._kept()
        thread = threads.find(thread_id, self.scope(user, workspace))
        threads.check_shape(thread)
        state = self._state(thread)
        read = self._reads(thread, state)
        if _is_finished(state):
            raise BadInput(f"nothing to resume: the run of thread {thread_id!r} is finished")
        if state.interrupts and decisions is None:
            shown = {**state.values, "__interrupt__": state.interrupts}
            return Run(thread.graph, shown, thread.context, read, thread=thread, is_over=True)
        if decisions is not None and not state.interrupts:
            raise BadInput(
                f"the run of thread {thread_id!r} waits for no approval: resume it without decisions"
            )
        if decisions is None:
            return Run(thread.graph, None, thread.context, read, thread=thread)
        from langgraph.types import Command

        value: Command[Any] = Command(resume=list(decisions) if isinstance(decisions, tuple) else decisions)
        return Run(thread.graph, value, thread.context, _understood(read), thread=thread)

    aresume = awaited(resume, reads=True)

    def thread(
        self, thread_id: str, *, user: str | None = None, workspace: str | None = None
    ) -> ThreadSummary:
        """How far the run of a thread is, and what it waits for.

        Raises:
            BadInput: no such thread, or another user's.
        """
        found = self._kept().find(thread_id, self.scope(user, workspace))
        return _summary(found, self._state(found))

    def unfinished(self, *, user: str | None = None, workspace: str | None = None) -> list[ThreadSummary]:
        """The runs that broke off or wait for a person, the last one first; reads all of a user's threads.

        A run that is going on right now, here or in another process, is among them.
        """
        scope = self.scope(user, workspace)
        found = [
            _summary(thread, self._state(thread)) for thread in self._kept().of(scope.user, scope.workspace)
        ]
        return [one for one in found if not one.finished]

    def threads_under(
        self, thread_id: str, *, user: str | None = None, workspace: str | None = None
    ) -> list[ThreadSummary]:
        """The runs of a conversation ingested under this id, finished or not; empty where there are none.

        Raises:
            BadInput: they are another user's.
        """
        found = self._kept().under(thread_id, self.scope(user, workspace))
        return [_summary(thread, self._state(thread)) for thread in found]

    def delete_thread(self, thread_id: str, *, user: str | None = None, workspace: str | None = None) -> None:
        """Erases the checkpoints of a run, with the words it was given: it cannot go on then.

        Raises:
            BadInput: no such thread, or another user's.
        """
        self._kept().delete(self._kept().find(thread_id, self.scope(user, workspace)).thread_id)

    athread = off_loop(thread)
    aunfinished = off_loop(unfinished)
    adelete_thread = off_loop(delete_thread)

    def _kept(self) -> "Threads":
        if self.threads is None:
            raise BadInput("this memory keeps no runs: open it with checkpoints=... to resume them")
        return self.threads

    def _state(self, thread: "Thread") -> "StateSnapshot":
        state: StateSnapshot = self.graphs[thread.graph].get_state(thread.config)
        return state

    def _reads(
        self, thread: "Thread", state: "StateSnapshot"
    ) -> Callable[[Mapping[str, Any]], Added | Answer | Ended]:
        if thread.graph == "recall":
            return functools.partial(Answer.of, state.values.get("question", ""))
        if thread.graph == "session":
            return self._reads_end(thread.context)
        return self._speaking(thread.context, Added.of)

    def _forget_runs(self, user: str, workspace: str | None) -> None:
        if self.threads is not None:
            for thread in self.threads.of(user, workspace):
                self.threads.delete(thread.thread_id)

    def _waits(self, scope: Scope) -> bool:
        if self.threads is None or not self.settings.approval.is_asked:
            return False
        open_runs = self.unfinished(user=scope.user, workspace=scope.workspace)
        return any(
            one.run == "end_session" and one.session == scope.session and one.pending is not None
            for one in open_runs
        )


def _is_finished(state: "StateSnapshot") -> bool:
    return not state.next and not state.interrupts


def _summary(thread: "Thread", state: "StateSnapshot") -> ThreadSummary:
    waiting = state.interrupts
    return ThreadSummary(
        thread_id=thread.thread_id,
        run=_RUNS[thread.graph],
        session=thread.context.session,
        begun=thread.context.now,
        finished=_is_finished(state),
        pending=PendingApproval.model_validate(waiting[0].value) if waiting else None,
    )


def _understood(
    read: Callable[[Mapping[str, Any]], Added | Answer | Ended],
) -> Callable[[Mapping[str, Any]], Added | Answer | Ended]:
    """Refuses an answer that the graph asks for again."""

    def checked(out: Mapping[str, Any]) -> Added | Answer | Ended:
        for waiting in out.get("__interrupt__") or ():
            if waiting.value.get("problem"):
                raise BadInput(waiting.value["problem"])
        return read(out)

    return checked
