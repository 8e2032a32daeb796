"""Runs a plan: stores its conversations, asks their questions, and gives figures that can be repeated."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

from memcycle.core.errors import BadInput
from memcycle.evals.conversation import Event, Finished, Job, Tell
from memcycle.evals.dataset import Sample, chosen
from memcycle.evals.datasets import LOADERS
from memcycle.evals.folder import RunFolder
from memcycle.evals.plan import OBSERVATIONS, Plan
from memcycle.evals.record import Record, StoredConversation
from memcycle.evals.report import recall_plot, report
from memcycle.evals.summary import summarized
from memcycle.evals.workers import run_jobs

RunJobs = Callable[[Sequence[Job], int, Tell], None]


def load(
    kind: str, path: Path, *, zone: tzinfo, conversations: str | None, limit: int | None
) -> list[Sample]:
    """The chosen samples of a data set's file, with at most `limit` questions each.

    Raises:
        BadInput: an unreadable file, an unknown conversation, or nothing in it to ask.
    """
    samples = chosen(LOADERS[kind](path, zone=zone), conversations)
    asked = [replace(sample, questions=sample.questions[:limit]) for sample in samples]
    if not any(sample.questions for sample in asked):
        raise BadInput(f"{path}: there is no question in what was chosen")
    empty = next((sample.id for sample in asked if not sample.conversation.turns), None)
    if empty is not None:
        raise BadInput(f"{path}: conversation {empty!r} has no turn with text")
    return asked


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        digest = sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@dataclass
class _Kept:
    """What is done so far, written down as it is told.

    Attributes:
        records: By conversation and question id. stored: by conversation.
        before: Seconds that earlier runs took.
    """

    folder: RunFolder
    keep: bool
    watch: Tell
    records: dict[tuple[str, str], Record] = field(init=False)
    stored: dict[str, StoredConversation] = field(init=False)
    before: float = field(init=False)
    began: float = field(default_factory=perf_counter)

    def __post_init__(self) -> None:
        self.records = {record.key: record for record in self.folder.records.read()}
        self.stored = {one.conversation: one for one in self.folder.stored.read()}
        self.before = max((record.elapsed for record in self.records.values()), default=0.0)

    @property
    def seconds(self) -> float:
        """Wall time of all runs so far, but for what was not written down when one was killed."""
        return round(self.before + perf_counter() - self.began, 3)

    def told(self, event: Event) -> None:
        """Writes down what a conversation tells."""
        if isinstance(event, Record):
            event = event.model_copy(update={"elapsed": self.seconds})
            self.folder.records.add(event)
            self.records[event.key] = event
        elif isinstance(event, StoredConversation):
            self.folder.stored.add(event)
            self.stored[event.conversation] = event
        elif isinstance(event, Finished) and not self.keep:
            self.folder.drop_home(event.conversation)
        self.watch(event)

    def jobs(self, plan: Plan, samples: Sequence[Sample], base_url: str | None) -> list[Job]:
        """What is left to do."""
        jobs = []
        for sample in samples:
            todo = tuple(one for one in sample.questions if (sample.id, one.id) not in self.records)
            home = self.folder.home(sample.id)
            if todo:
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
    watch: Tell = lambda _: None,
    run_jobs: RunJobs = run_jobs,
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
        watch: Told of all that happens; at first of the questions that earlier runs have asked.
        run_jobs: Runs the jobs.

    Raises:
        BadInput: the folder cannot be used, or the data lack what the plan asks for.
        MemcycleError: the run had to stop; what is done is written, and `resume` goes on.
    """
    if plan.facts == OBSERVATIONS and not any(sample.facts for sample in samples):
        raise BadInput(f"{plan.file} ships no facts: --facts {OBSERVATIONS} has nothing to store")
    folder.start(plan, command, resume=resume)
    kept = _Kept(folder, keep, watch)
    for record in kept.records.values():
        watch(record)
    jobs = kept.jobs(plan, samples, base_url)
    run_jobs(jobs, workers, kept.told)
    if not keep:
        folder.drop_homes()
    records = [kept.records[sample.id, question.id] for sample in samples for question in sample.questions]
    stored = [kept.stored[sample.id] for sample in samples if sample.id in kept.stored]
    summary = summarized(plan, records, stored, seconds=kept.seconds if jobs else kept.before)
    text = json.dumps(summary, ensure_ascii=False, indent=2)
    folder.summary.write_text(text + "\n", "utf-8")
    folder.plot.write_text(recall_plot(summary), "utf-8")
    folder.report.write_text(
        report(plan, summary, records, stored, command=command, plot=folder.plot.name), "utf-8"
    )
    return summary
