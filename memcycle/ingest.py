"""Feeding a whole conversation to a memory, chunk by chunk, so that it can be broken off and resumed.

Each has a thread of its own: the conversation's id, a label of what the run does, and a number. So one that
broke off is found again by what it was doing, whoever ingests the same conversation under the same id.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TypeVar, cast

from memcycle.core.errors import BadInput
from memcycle.core.probe import add_usage
from memcycle.core.scope import Scope
from memcycle.core.turn import Conversation, Turn
from memcycle.memory import Memory
from memcycle.results import Added, Ended, Ingested, PendingApproval
from memcycle.runs import Decisions

R = TypeVar("R", Added, Ended)

Decide = Callable[[PendingApproval], Decisions | None]
"""Asks a person; None leaves the run waiting."""


class Waits(Exception):
    """A run waits for a person, and so does all that comes after it."""

    def __init__(self, pending: PendingApproval) -> None:
        super().__init__("a run waits for approval")
        self.pending = pending


class IngestRuns:
    """Begins the runs of a conversation, and goes on with those that broke off.

    Attributes:
        memory: Where they run. thread_id: what their threads' ids begin with; None where none are kept.
    """

    def __init__(self, memory: Memory, scope: Scope, thread_id: str | None, decide: Decide) -> None:
        """Under a new id where none is given and runs are kept.

        Raises:
            BadInput: an id, where no runs are kept.
        """
        self.memory, self.thread_id, self._decide = memory, thread_id, decide
        self._finished: dict[str, bool] = {}
        if thread_id is not None:
            known = memory.threads_under(thread_id, user=scope.user, workspace=scope.workspace)
            self._finished = {one.thread_id: one.finished for one in known}
        elif memory.threads is not None:
            self.thread_id = memory.threads.world.new_id()

    def label(self, scope: Scope, content: Sequence[str]) -> str:
        """What tells a run from the others: the same for the same content of the same session."""
        words = json.dumps([scope.user, scope.workspace, scope.session, *content])
        return hashlib.sha256(words.encode()).hexdigest()[:16]

    def find_open(self, label: str) -> str | None:
        """The thread of this label's run that broke off, or waits for a person."""
        return next((one for one in self._of(label) if not self._finished[one]), None)

    def run(self, scope: Scope, label: str, begin: Callable[..., R]) -> R:
        """Goes on with the run of this label where one is open, else begins one on a thread of its own.

        Raises:
            Waits: it waits for a person, and nobody decides.
        """
        opened = self.find_open(label)
        if opened is not None:
            result = self._resumed(scope, opened, None)
        else:
            number = len(self._of(label)) + 1
            thread_id = None if self.thread_id is None else f"{self.thread_id}.{label}.{number}"
            result = begin(user=scope.user, workspace=scope.workspace, thread_id=thread_id)
        while result.pending is not None:
            decisions = self._decide(result.pending)
            if decisions is None:
                raise Waits(result.pending)
            result = self._resumed(scope, str(result.thread_id), decisions)
        return cast("R", result)

    def _resumed(self, scope: Scope, thread_id: str, decisions: Decisions | None) -> Added | Ended:
        found = self.memory.resume(thread_id, decisions, user=scope.user, workspace=scope.workspace)
        return cast("Added | Ended", found)

    def _of(self, label: str) -> list[str]:
        return [one for one in self._finished if one.startswith(f"{self.thread_id}.{label}.")]


@dataclass(frozen=True)
class Progress:
    """A chunk that is stored for good, or was already.

    Attributes:
        first, last: Ids of its first and last turn in the file.
        done, total: Turns of the conversation so far, and in all.
        new: Whether this run stored it.
    """

    first: str
    last: str
    done: int
    total: int
    new: bool


def ingest(
    memory: Memory,
    conversation: Conversation,
    *,
    user: str | None = None,
    workspace: str | None = None,
    chunk_turns: int | None = None,
    verify: bool | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    thread_id: str | None = None,
    decide: Decide = lambda _: None,
) -> Ingested:
    """Remembers a conversation, session after session; each session ends with its last turn.

    The ledger says what is still to do, not this function's memory of it: a run that was broken off
    anywhere is finished by the next, and one more run finds nothing to do.

    Args:
        memory: The memory.
        conversation: What was said.
        user: Whose memory. workspace: a second wall inside it.
        chunk_turns: New turns handled in one go, at least 1; by default those of a window of
            `theta.extraction`, whose guards are on.
        verify: False commits each session unverified, instead of examining it.
        on_progress: Told after each chunk, when all of it is stored for good.
        thread_id: Where the memory keeps its runs: those of this conversation go under ids that begin with
            it. With the same one a run of it that broke off goes on inside its chunk, instead of anew.
        decide: Asked where a run waits for a person; None leaves it waiting, and all that comes after it.

    Raises:
        BadInput: a conversation without turns, or a name that cannot be one; nothing is stored then.
    """
    if not conversation.turns:
        raise BadInput(f"conversation {conversation.name!r} is empty: it has no turn with text")
    started, scope = perf_counter(), memory.scope(user, workspace)
    runs = IngestRuns(memory, scope, thread_id, decide)
    size = chunk_turns or memory.settings.theta.extraction.new_turns
    total, done = len(conversation.turns), 0
    result = Ingested(thread_id=runs.thread_id, warnings=[*conversation.notes])
    try:
        for session in conversation.sessions:
            within = scope.within(session.name)
            for chunk in (session.turns[at : at + size] for at in range(0, len(session.turns), size)):
                new = _add(runs, within, chunk, result)
                done += len(chunk)
                on_progress(Progress(chunk[0].id, chunk[-1].id, done, total, new))
            _end(runs, within, result, verify=verify)
    except Waits as waits:
        result.pending = waits.pending
    return result.model_copy(update={"seconds": round(perf_counter() - started, 3)})


_ADDED = ("turns", "facts", "episodes", "refreshed", "unextracted", "reextracted", "uncovered")
_EXAMINED = ("probes", "passed_before", "passed_after", "ungraded", "repairs", "rolled_back", "merged")


def _add(runs: IngestRuns, scope: Scope, chunk: Sequence[Turn], result: Ingested) -> bool:
    """Remembers a chunk unless all of it is done; counts what that did."""
    bank, label = runs.memory.bank, runs.label(scope, [turn.model_dump_json() for turn in chunk])
    # Staging says under which ids the turns are stored, which may differ from the file's.
    ids = [turn.id for turn in bank.stage_turns(scope, chunk)]
    states = bank.turn_states(scope, ids)
    if all(states[name] == "processed" for name in ids) and runs.find_open(label) is None:
        return False

    added = runs.run(scope, label, partial(runs.memory.add, list(chunk), session=scope.session, bulk=True))
    for name in _ADDED:
        setattr(result, name, getattr(result, name) + len(getattr(added, name)))
    result.warnings += [*added.warnings, *added.forgetting]
    result.rejected += added.rejected
    result.usage = add_usage(result.usage, added.usage)
    return True


def _end(runs: IngestRuns, scope: Scope, result: Ingested, *, verify: bool | None) -> None:
    """Ends the session unless it has ended; one whose end was broken off is ended again."""
    label = runs.label(scope, ["end"])
    if all(info.is_committed for info in runs.memory.bank.sessions(scope)) and runs.find_open(label) is None:
        return

    ended = runs.run(scope, label, partial(runs.memory.end_session, scope.session, verify=verify))
    result.sessions += 1
    result.episodes += len(ended.episodes)
    for name in _EXAMINED:
        setattr(result, name, getattr(result, name) + getattr(ended, name))
    result.unverified += [ended.session] if ended.status == "committed_unverified" else []
    result.rejected += ended.rejected
    result.warnings += ended.warnings
    result.usage = add_usage(result.usage, ended.usage)
