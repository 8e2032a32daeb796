"""Conversations side by side in processes of their own: rules use one core a process, and homes are apart."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess
from multiprocessing.queues import Queue
from queue import Empty

from memcycle.core.errors import BadInput, MemcycleError, ModelUnavailable, StoreError
from memcycle.evals.conversation import Event, Finished, Job, Tell, run_conversation

LOOK_SECONDS = 0.5
"""How often it is looked whether a silent worker is still there."""

_GO_HOME = None
_KINDS: tuple[type[MemcycleError], ...] = (BadInput, ModelUnavailable, StoreError, MemcycleError)
Told = Event | tuple[type[MemcycleError], str]
"""What a worker tells: an event, or the error that stops the run."""


def run_jobs(jobs: Sequence[Job], workers: int, tell: Tell) -> None:
    """Runs jobs, several at the same time; what they tell arrives here, in this process and thread.

    Raises:
        MemcycleError: what stops the run, said by the first worker that met it; the others are ended.
    """
    if workers <= 1 or len(jobs) <= 1:
        for job in jobs:
            run_conversation(job, tell)
        return
    context = multiprocessing.get_context("spawn")
    tasks: Queue[Job | None] = context.Queue()
    told: Queue[Told] = context.Queue()
    count = min(workers, len(jobs))
    # The longest first: whoever comes last with a long one would be waited for.
    for job in sorted(jobs, key=lambda job: -len(job.sample.conversation.turns)):
        tasks.put(job)
    for _ in range(count):
        tasks.put(_GO_HOME)
    processes = [
        context.Process(target=_serve, args=(tasks, told), daemon=True, name=f"eval-{n}")
        for n in range(1, count + 1)
    ]
    with running(processes):
        left = len(jobs)
        while left:
            said = _next(told, processes)
            if isinstance(said, tuple):
                kind, words = said
                raise kind(words)
            tell(said)
            left -= isinstance(said, Finished)


@contextmanager
def running(processes: Sequence[SpawnProcess]) -> Iterator[None]:
    """Started for the length of a `with` block, and ended after it."""
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _next(told: "Queue[Told]", processes: Sequence[SpawnProcess]) -> Told:
    while True:
        try:
            return told.get(timeout=LOOK_SECONDS)
        except Empty:
            died = [process for process in processes if process.exitcode not in (None, 0)]
            if died:
                raise StoreError(
                    f"worker {died[0].name} died (exit code {died[0].exitcode}); run again with --resume, "
                    "and with --workers 1 where memory is short"
                ) from None


def _serve(tasks: "Queue[Job | None]", told: "Queue[Told]") -> None:
    """A worker's life: jobs until there is none."""
    # Ctrl-C reaches the whole group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=die_with_parent, daemon=True).start()
    while (job := tasks.get()) is not _GO_HOME:
        try:
            run_conversation(job, told.put)
        except Exception as error:  # noqa: BLE001 - it stops the run, in the parent
            told.put(portable(error))
            return


def die_with_parent() -> None:
    """A killed parent leaves nobody to listen, and a home that its next run needs."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def portable(error: Exception) -> tuple[type[MemcycleError], str]:
    """An error as its kind and its words: those of providers cannot be sent to another process."""
    from memcycle.agents.models import explain_model_error

    explained = explain_model_error(error)
    if explained is not None:
        return ModelUnavailable, str(explained)
    if isinstance(error, MemcycleError):
        return next(kind for kind in _KINDS if isinstance(error, kind)), str(error)
    return MemcycleError, f"{type(error).__name__}: {error}"
