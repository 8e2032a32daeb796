"""One conversation of a run: stored, then asked everything that is not answered yet."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from memcycle.core.clock import World
from memcycle.evals.asking import Asker
from memcycle.evals.baselines import Baselines
from memcycle.evals.dataset import Question, Sample
from memcycle.evals.judge import AnswerJudge
from memcycle.evals.plan import NONE, OBSERVATIONS, RULES, Plan
from memcycle.evals.record import Record, StoredConversation
from memcycle.evals.subjects import base_scope, open_memory, store, stored_conversation
from memcycle.memory import Memory
from memcycle.stores.embedders import open_embedder

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

ASKED_AT_ONCE = 8
"""Questions of a conversation that wait for a model at the same time."""


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
class Storing:
    """So many turns of a conversation are stored."""

    conversation: str
    done: int
    total: int


@dataclass(frozen=True)
class Finished:
    """All questions of a conversation are asked, and its home is closed."""

    conversation: str


Event = Storing | StoredConversation | Record | Finished
Tell = Callable[[Event], None]


def run_conversation(job: Job, tell: Tell, *, embeddings: "Embeddings | None" = None) -> None:
    """Stores a conversation and asks its questions; each is told as soon as it is done.

    Raises:
        Exception: what stops the run.
    """
    if not job.stored:
        _store(job, tell, embeddings)
    model = job.plan.model if job.plan.answers else RULES
    with open_memory(
        job.plan, job.sample, job.home, model, base_url=job.base_url, embeddings=embeddings
    ) as memory:
        asker = _asker(job, memory, embeddings)
        for record in _records(asker, job.todo, at_once=_at_once(job.plan)):
            tell(record)
    tell(Finished(job.sample.id))


def _store(job: Job, tell: Tell, embeddings: "Embeddings | None") -> None:
    facts, name = job.plan.facts, job.sample.id
    reader = RULES if facts in (NONE, OBSERVATIONS) else facts
    started = perf_counter()
    with open_memory(
        job.plan, job.sample, job.home, reader, base_url=job.base_url, embeddings=embeddings
    ) as memory:
        done = store(memory, job.sample, facts, lambda ready, total: tell(Storing(name, ready, total)))
        took = perf_counter() - started
        tell(stored_conversation(memory.bank, job.sample, facts, done, took))


def _asker(job: Job, memory: Memory, embeddings: "Embeddings | None") -> Asker:
    plan, scope, bank = job.plan, base_scope(job.sample), memory.bank
    baselines = None
    if plan.baselines:
        embedder = open_embedder(memory.settings, embeddings, World())
        baselines = Baselines(bank.entries(scope), embedder.embed)
    return Asker(
        plan=plan,
        memory=memory,
        scope=scope,
        sessions={turn.id: turn.session for turn in job.sample.conversation.turns},
        baselines=baselines,
        judge=AnswerJudge(plan.judge, base_url=job.base_url) if plan.judge and plan.answers else None,
    )


def _at_once(plan: Plan) -> int:
    """Rules only compete for the processor; a model is waited for."""
    waits = plan.answers and (plan.model != RULES or plan.judge not in (None, RULES))
    return ASKED_AT_ONCE if waits else 1


def _records(asker: Asker, questions: Iterable[Question], *, at_once: int) -> Iterator[Record]:
    if at_once == 1:
        yield from map(asker.ask, questions)
        return
    with ThreadPoolExecutor(at_once, thread_name_prefix="asking") as pool:
        yield from pool.map(asker.ask, questions)
