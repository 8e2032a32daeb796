"""The lab: conversations stored once, and configurations evaluated on a split, question by question."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from memcycle.core.errors import StoreError
from memcycle.core.theta import Theta
from memcycle.core.usage import add_usage
from memcycle.evals.conversation import ASKED_AT_ONCE
from memcycle.evals.dataset import Question, Sample
from memcycle.evals.judge import AnswerJudge
from memcycle.evals.plan import RULES
from memcycle.evals.subjects import Stored, base_scope, open_memory, store, stored_conversation
from memcycle.evolution.asking import Asker
from memcycle.evolution.folder import EvolveFolder, home_key
from memcycle.evolution.records import QuestionRecord, StoredHome
from memcycle.evolution.space import fingerprint, writing
from memcycle.evolution.splits import Split
from memcycle.evolution.task import Task
from memcycle.memory import Memory

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from memcycle.agents.roles import Roles


class Progress(NamedTuple):
    """So much is done of what is being done.

    Attributes:
        what: `storing` a conversation or `asking` a split. name: which one.
    """

    what: str
    name: str
    done: int
    total: int


Watch = Callable[[Progress], None]


@dataclass
class Lab:
    """Evaluates configurations. Memories stay open between evaluations; `with` closes them.

    Attributes:
        samples: Conversations by id. folder: where all is written down.
        roles: Who answers; None for those of the task's model. base_url: server of the models.
        embeddings: An embedder in place of the one the settings name.
        watch: Told of progress.
    """

    task: Task
    samples: dict[str, Sample]
    folder: EvolveFolder
    roles: "Roles | None" = None
    base_url: str | None = None
    embeddings: "Embeddings | None" = None
    watch: Watch = lambda _: None

    def __post_init__(self) -> None:
        self._open: dict[str, Memory] = {}
        self._judge: AnswerJudge | None = None

    def __enter__(self) -> "Lab":
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def questions(self, split: Split) -> list[tuple[str, Question]]:
        """The questions of a split with their conversations."""
        found: list[tuple[str, Question]] = []
        for name, ids in self.task.splits[split].items():
            known = {question.id: question for question in self.samples[name].questions}
            found.extend((name, known[one]) for one in ids)
        return found

    def evaluate(self, theta: Theta, split: Split, memory: int = 0) -> list[QuestionRecord]:
        """A configuration on a split: one record a question, each on disk as soon as it is made.

        Questions that were asked under it before are read, not asked again.

        Args:
            memory: How often conversations have been read anew.

        Raises:
            StoreError: the records are of another configuration.
            Exception: what stops the run.
        """
        mark = fingerprint(theta)
        lines = self.folder.evaluation(mark, memory, split)
        kept = {record.key: record for record in lines.read()}
        asked = self.questions(split)
        for name in dict.fromkeys(name for name, _ in asked):
            todo = [one for own, one in asked if own == name and (own, one.id) not in kept]
            for record in self._ask(theta, name, memory, todo) if todo else ():
                lines.add(record)
                kept[record.key] = record
                self.watch(Progress("asking", split, len(kept), len(asked)))
        records = [kept[name, question.id] for name, question in asked]
        foreign = {record.theta for record in records} - {mark}
        if foreign:
            raise StoreError(f"{lines.path} holds records of {foreign.pop()}, not of {mark}: remove it")
        return records

    def _ask(
        self, theta: Theta, name: str, memory: int, todo: Sequence[Question]
    ) -> Iterator[QuestionRecord]:
        opened = self._memory(theta, name, memory)
        asker = Asker(
            task=self.task,
            theta=theta,
            memory=opened,
            roles=self.roles or opened.roles,
            scope=base_scope(self.samples[name]),
            read=memory,
            judge=self._judging(),
        )
        if self.task.model == RULES:
            yield from map(asker.ask, todo)
            return
        # A model is waited for; the questions of a conversation wait together.
        with ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="asking") as pool:
            yield from pool.map(asker.ask, todo)

    def _judging(self) -> AnswerJudge | None:
        if self.task.judge and self._judge is None:
            self._judge = AnswerJudge(self.task.judge, base_url=self.base_url)
        return self._judge

    def _memory(self, theta: Theta, name: str, memory: int) -> Memory:
        """The memory of a conversation as this configuration writes it, stored if it is not."""
        task = self.task
        key = home_key(task.sha256, name, task.facts, task.settings.embedder, writing(theta), memory)
        if key not in self._open:
            if all(one.home != key for one in self.folder.homes.read()):
                self._store(theta, name, key, memory)
            self._open[key] = self._opened(theta, name, key, task.model)
        return self._open[key]

    def _opened(self, theta: Theta, name: str, key: str, model: str) -> Memory:
        home, plan = self.folder.home(key), self.task.storing(theta)
        return open_memory(
            plan, self.samples[name], home, model, base_url=self.base_url, embeddings=self.embeddings
        )

    def _store(self, theta: Theta, name: str, key: str, memory: int) -> None:
        """Stores a conversation, or what is left of it; read anew, what was not extracted is tried again."""
        sample, began = self.samples[name], perf_counter()

        def told(done: int, total: int) -> None:
            self.watch(Progress("storing", name, done, total))

        with self._opened(theta, name, key, self.task.reader) as opened:
            readings = [store(opened, sample, self.task.facts, told) for _ in range(memory + 1)]
            done = Stored(reduce(add_usage, (one.usage for one in readings), {}), readings[0].refused)
            made = stored_conversation(opened.bank, sample, self.task.facts, done, perf_counter() - began)
        self.folder.shelf.mkdir(parents=True, exist_ok=True)
        self.folder.homes.add(StoredHome(home=key, memory=memory, stored=made))
