"""The runs of one conversation that is ingested, where the memory keeps its runs.

Each has a thread of its own: the conversation's id, a label of what the run does, and a number. So one that
broke off is found again by what it was doing, whoever ingests the same conversation under the same id.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from memcycle.core.scope import Scope
from memcycle.memory import Memory
from memcycle.results import Added, Ended, PendingApproval
from memcycle.resuming import Decisions

R = TypeVar("R", Added, Ended)

Decide = Callable[[PendingApproval], Decisions | None]
"""Asks a person; None leaves the run waiting."""


class Waits(Exception):
    """A run waits for a person, and so does all that comes after it."""

    def __init__(self, pending: PendingApproval) -> None:
        super().__init__("a run waits for approval")
        self.pending = pending


class IngestRuns:
    """Begins runs, and goes on with those that broke off."""

    def __init__(
        self, memory: Memory, thread_id: str | None, decide: Decide, finished: dict[str, bool]
    ) -> None:
        self.memory, self.thread_id = memory, thread_id
        self._decide, self._finished = decide, finished

    @classmethod
    def of(cls, memory: Memory, scope: Scope, thread_id: str | None, decide: Decide) -> "IngestRuns":
        """Those under this id; under a new one where none is given and runs are kept.

        Raises:
            BadInput: an id, where no runs are kept.
        """
        if thread_id is None:
            threads = memory.threads
            return cls(memory, None if threads is None else threads.new_id(), decide, {})
        known = memory.threads_under(thread_id, user=scope.user, workspace=scope.workspace)
        return cls(memory, thread_id, decide, {one.thread_id: one.finished for one in known})

    def label(self, scope: Scope, content: Sequence[str]) -> str:
        """What tells a run from the others: the same for the same content of the same session."""
        words = json.dumps([scope.user, scope.workspace, scope.session, *content])
        return hashlib.sha256(words.encode()).hexdigest()[:16]

    def is_open(self, label: str) -> bool:
        """Whether a run of this label broke off, or waits for a person."""
        return self._open(label) is not None

    def run(self, scope: Scope, label: str, begin: Callable[[str | None], R]) -> R:
        """Goes on with the run of this label where one is open, else begins one.

        Raises:
            Waits: it waits for a person, and nobody decides.
        """
        opened = self._open(label)
        result = begin(self._new(label)) if opened is None else self._resumed(scope, opened, None)
        while result.pending is not None:
            decisions = self._decide(result.pending)
            if decisions is None:
                raise Waits(result.pending)
            result = self._resumed(scope, str(result.thread_id), decisions)
        return cast("R", result)

    def _resumed(self, scope: Scope, thread_id: str, decisions: Decisions | None) -> Added | Ended:
        found = self.memory.resume(thread_id, decisions, user=scope.user, workspace=scope.workspace)
        return cast("Added | Ended", found)

    def _open(self, label: str) -> str | None:
        return next((one for one in self._of(label) if not self._finished[one]), None)

    def _new(self, label: str) -> str | None:
        return None if self.thread_id is None else f"{self._prefix(label)}{len(self._of(label)) + 1}"

    def _of(self, label: str) -> list[str]:
        return [one for one in self._finished if one.startswith(self._prefix(label))]

    def _prefix(self, label: str) -> str:
        return f"{self.thread_id}.{label}."
