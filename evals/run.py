"""Runs a plan: stores its conversations, asks their questions, and gives figures that can be repeated.

Each conversation is stored in a home of its own: turns alone, with the data set's facts, or as memcycle does
it. Storing again what is stored changes nothing, so that a run which was broken off is finished by the next.
"""

import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from multiprocessing.context import SpawnProcess
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty
from time import perf_counter
from typing import TYPE_CHECKING, Any

from memcycle.core.edit import Edit
from memcycle.core.entry import new_entry
from memcycle.core.errors import BadInput, MemcycleError, ModelUnavailable, StoreError
from memcycle.core.probe import Usage
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.core.world import World
from memcycle.evals.ask import AnswerJudge, Asker, ask_all
from memcycle.evals.baselines import Baselines
from memcycle.evals.dataset import GivenFact, Question, Sample
from memcycle.evals.folder import RunFolder, write_json
from memcycle.evals.records import NONE, OBSERVATIONS, RULES, Plan, Record, StoredConversation, reader_of
from memcycle.evals.report import recall_plot, report, summarized
from memcycle.ingest import ingest
from memcycle.memory import Memory, roles_of
from memcycle.stores.bank import Bank
from memcycle.stores.embedders import open_embedder

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


@dataclass(frozen=True)
class Progress:
    """So much is done of what is being done.

    Attributes:
        what: `storing` (turns) or `asking` (questions). name: of which conversation, or which questions.
    """

    what: str
    name: str
    done: int
    total: int


Watch = Callable[[Progress], None]


def base_scope(sample: Sample) -> Scope:
    """Whose memory a sample is."""
    return Scope(user=sample.id)


def open_memory(
    plan: Plan,
    sample: Sample,
    home: Path,
    model: str,
    *,
    base_url: str | None = None,
    embeddings: "Embeddings | None" = None,
) -> Memory:
    """The memory of one conversation, with a clock that begins where the conversation ends.

    So figures do not change with the day on which they are made: what is long ago is so by the
    conversation's own time.

    Raises:
        ModelUnavailable, StoreError: as `Memory.open`.
    """
    start, began = max(turn.time for turn in sample.conversation.turns), perf_counter()
    return Memory(
        plan.settings.model_copy(update={"home": home}),
        roles_of(model, None, None, {"base_url": base_url}),
        embeddings=embeddings,
        user=sample.id,
        world=World(now=lambda: start + timedelta(seconds=perf_counter() - began)),
    )


def store(memory: Memory, sample: Sample, facts: str, watch: Watch = lambda _: None) -> StoredConversation:
    """Stores a conversation and ends its sessions; says what is stored and what it took.

    Args:
        memory: Where to; its roles are those that read facts, where `facts` is not of the data set.
        facts: `none`, `observations`, or who reads them, as in `Plan`.
        watch: Told how many turns are stored.
    """
    began, bank, usage, refused = perf_counter(), memory.bank, Usage(), 0
    given = sample.facts if facts == OBSERVATIONS else ()
    if facts in (NONE, OBSERVATIONS):
        refused = _store_given(bank, sample, given, watch)
    else:
        usage = ingest(
            memory,
            sample.conversation,
            user=sample.id,
            on_progress=lambda at: watch(Progress("storing", sample.id, at.done, at.total)),
        ).usage
    counts = bank.count(base_scope(sample))
    return StoredConversation(
        conversation=sample.id,
        turns=counts.get("raw", 0),
        facts=counts.get("fact", 0),
        unsourced=sum(not fact.turns for fact in given),
        refused=refused,
        embedder=bank.embedder_id,
        usage=usage,
        seconds=round(perf_counter() - began, 3),
    )


def _store_given(bank: Bank, sample: Sample, facts: Sequence[GivenFact], watch: Watch) -> int:
    """Turns first, since a fact may rest on a turn of another session; then facts, session after session."""
    scope, sessions, total = base_scope(sample), sample.conversation.sessions, len(sample.conversation.turns)
    for session in sessions:
        bank.stage_turns(scope.within(session.name), session.turns)
    done = refused = 0
    for session in sessions:
        within = scope.within(session.name)
        own = [fact for fact in facts if fact.session == session.name]
        refused += len(bank.apply(within, _edits(within, own, session.turns)).rejected) if own else 0
        bank.commit_session(within)
        done += len(session.turns)
        watch(Progress("storing", sample.id, done, total))
    return refused


def _edits(scope: Scope, facts: Sequence[GivenFact], turns: Sequence[Turn]) -> list[Edit]:
    """A data set's facts of one session, said when their first turn was, else when the session began."""
    times = {turn.id: turn.time for turn in turns}
    return [
        Edit(
            op="ADD",
            entry=new_entry(
                scope,
                "fact",
                fact.text,
                fact.turns,
                speaker=fact.speaker,
                observed_at=next((times[name] for name in fact.turns if name in times), turns[0].time),
                actor="given",
            ),
        )
        for fact in facts
    ]


@dataclass(frozen=True)
class Job:
    """What is to be done of one conversation; plain data, for another process too.

    Attributes:
        todo: Questions still to ask. stored: whether it is stored whole already.
        home: Where it is stored. base_url: server of the models.
    """

    plan: Plan
    sample: Sample
    todo: tuple[Question, ...]
    home: Path
    stored: bool = False
    base_url: str | None = None


@dataclass(frozen=True)
class Finished:
    """All questions of a conversation are asked, and its home is closed."""

    conversation: str


Event = Progress | StoredConversation | Record | Finished
Tell = Callable[[Event], None]


def run_conversation(job: Job, tell: Tell, *, embeddings: "Embeddings | None" = None) -> None:
    """Stores a conversation and asks its questions; each is told as soon as it is done.

    Raises:
        Exception: what stops the run.
    """
    plan, sample = job.plan, job.sample
    opened = partial(open_memory, plan, sample, job.home, base_url=job.base_url, embeddings=embeddings)
    if not job.stored:
        with opened(reader_of(plan.facts)) as memory:
            tell(store(memory, sample, plan.facts, tell))
    with opened(plan.model if plan.answers else RULES) as memory:
        baselines = None
        if plan.baselines:
            embedder = open_embedder(memory.settings, embeddings, World())
            baselines = Baselines(memory.bank.entries(base_scope(sample)), embedder.embed)
        judged = plan.judge if plan.answers else None
        asker = Asker(
            plan=plan,
            memory=memory,
            scope=base_scope(sample),
            sessions={turn.id: turn.session for turn in sample.conversation.turns},
            baselines=baselines,
            judge=AnswerJudge(judged, base_url=job.base_url) if judged else None,
        )
        waits = plan.answers and (plan.model != RULES or plan.judge not in (None, RULES))
        for record in ask_all(asker.ask, job.todo, waits=waits):
            tell(record)
    tell(Finished(sample.id))


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
    from memcycle.agents.provider_errors import explain_model_error

    explained = explain_model_error(error)
    if explained is not None:
        return ModelUnavailable, str(explained)
    if isinstance(error, MemcycleError):
        return next(kind for kind in _KINDS if isinstance(error, kind)), str(error)
    return MemcycleError, f"{type(error).__name__}: {error}"


class _Done:
    """What is done so far, written down as it is told.

    Attributes:
        records: By conversation and question id. stored: by conversation.
        before: Seconds that earlier runs took.
    """

    def __init__(self, folder: RunFolder, samples: Sequence[Sample], *, keep: bool, watch: Watch) -> None:
        self.folder, self.samples, self.keep, self.watch = folder, samples, keep, watch
        self.records = {record.key: record for record in folder.records.read()}
        self.stored = {one.conversation: one for one in folder.stored.read()}
        self.before = max((record.elapsed for record in self.records.values()), default=0.0)
        self.began = perf_counter()
        self._questions = {sample.id: len(sample.questions) for sample in samples}
        self._asked = Counter(name for name, _ in self.records)

    @property
    def seconds(self) -> float:
        """Wall time of all runs so far, but for what was not written down when one was killed."""
        return round(self.before + perf_counter() - self.began, 3)

    def note(self, event: Event) -> None:
        """Writes down what a conversation tells."""
        if isinstance(event, Progress):
            self.watch(event)
        elif isinstance(event, Record):
            name, record = event.conversation, event.model_copy(update={"elapsed": self.seconds})
            self.folder.records.add(record)
            self.records[record.key] = record
            self._asked[name] += 1
            self.watch(Progress("asking", name, self._asked[name], self._questions[name]))
        elif isinstance(event, StoredConversation):
            self.folder.stored.add(event)
            self.stored[event.conversation] = event
        elif not self.keep:
            self.folder.drop_home(event.conversation)

    def jobs(self, plan: Plan, base_url: str | None) -> list[Job]:
        """What is left to do."""
        jobs = []
        for sample in self.samples:
            home = self.folder.home(sample.id)
            if todo := tuple(one for one in sample.questions if (sample.id, one.id) not in self.records):
                is_stored = sample.id in self.stored and home.is_dir()
                jobs.append(Job(plan, sample, todo, home, is_stored, base_url))
        return jobs


def run(
    plan: Plan,
    samples: Sequence[Sample],
    folder: RunFolder,
    *,
    command: str = "",
    resume: bool = False,
    keep: bool = False,
    workers: int = 1,
    base_url: str | None = None,
    watch: Watch = lambda _: None,
    run_jobs: Callable[[Sequence[Job], int, Tell], None] = run_jobs,
) -> dict[str, Any]:
    """Runs a plan, or what is left of it, and gives its figures, as the command prints them with `--json`.

    Args:
        plan: What is measured.
        samples: Its conversations.
        folder: Where everything is written down.
        command: The command line, for the report.
        resume: Goes on with the run in the folder.
        keep: Leaves the stored conversations in the folder.
        workers: Conversations at the same time, each in a process of its own.
        base_url: Server of the models.
        watch: Told of progress.
        run_jobs: Runs the jobs.

    Raises:
        BadInput: the folder cannot be used, or the data lack what the plan asks for.
        MemcycleError: the run had to stop; what is done is written, and `resume` goes on.
    """
    if plan.facts == OBSERVATIONS and not any(sample.facts for sample in samples):
        raise BadInput(f"{plan.file} ships no facts: --facts {OBSERVATIONS} has nothing to store")
    folder.start(plan.plain(), command, resume=resume)
    done = _Done(folder, samples, keep=keep, watch=watch)
    jobs = done.jobs(plan, base_url)
    run_jobs(jobs, workers, done.note)
    if not keep:
        folder.drop_homes()
    records = [done.records[sample.id, question.id] for sample in samples for question in sample.questions]
    stored = [done.stored[sample.id] for sample in samples if sample.id in done.stored]
    summary = summarized(plan, records, stored, seconds=done.seconds if jobs else done.before)
    write_json(folder.summary, summary)
    folder.plot.write_text(recall_plot(summary), "utf-8")
    folder.report.write_text(
        report(plan, summary, records, stored, command=command, plot=folder.plot.name), "utf-8"
    )
    return summary
