"""The lab: conversations stored once, and configurations evaluated on a split, question by question."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, reduce
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from memcycle.agents.diagnoser import Cut, MissedView, ShownView
from memcycle.agents.roles import Roles
from memcycle.core.errors import StoreError
from memcycle.core.language.questions import abstains
from memcycle.core.language.token_count import token_counter
from memcycle.core.probe import add_usage
from memcycle.core.scope import Scope
from memcycle.core.theta import Theta, Views
from memcycle.evals.ask import ABSTAINING, AnswerJudge, stops_the_run
from memcycle.evals.dataset import Question, Sample
from memcycle.evals.metrics import ADVERSARIAL, counted, recall, token_f1
from memcycle.evals.records import RULES
from memcycle.evals.run import ASKED_AT_ONCE
from memcycle.evals.subjects import Stored, base_scope, open_memory, store, stored_conversation
from memcycle.evolution.folder import EvolveFolder, home_key
from memcycle.evolution.space import fingerprint, writing
from memcycle.evolution.task import QuestionRecord, Split, StoredHome, Task
from memcycle.graph.recall.graph import build_recall
from memcycle.memory import Memory
from memcycle.runs import detached
from memcycle.stores.bank import Bank
from memcycle.stores.search.ranker import EVIDENCE, NAMES
from memcycle.stores.search.request import Query, SearchRequest
from memcycle.stores.search.search import Looked

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from memcycle.agents.roles import Roles

LOOKED = 150
"""Turns down to which the order is read."""
RIVALS = 10
"""The best others that a wanted turn is compared with."""
_FAINT = 0.005
"""Smaller differences are left out."""


class Stood(NamedTuple):
    """Where a question's wanted turns stood.

    Attributes:
        missed: Those that were not shown.
        held: By signal what those that were shown have more of than the best others, in the mean.
    """

    missed: tuple[MissedView, ...]
    held: dict[str, float]


def stood(
    bank: Bank,
    scope: Scope,
    theta: Theta,
    question: str,
    *,
    missed: Sequence[str],
    shown: Sequence[str],
    full: bool,
) -> Stood:
    """How the search ranks wanted turns, among all turns as they were said.

    Args:
        bank, scope: Where they are.
        theta: What the question was asked under. Single views are read whole, open or not.
        question: Its words.
        missed, shown: Ids of the wanted turns, of which one at least.
        full: Whether all places for entries were taken.
    """
    request = SearchRequest(
        scope=scope, queries=(Query(text=question),), granularities=("raw",), k=LOOKED, theta=theta
    )
    [hits] = bank.search(request)
    open_ = theta.model_copy(update={"views": Views()})
    [looked] = bank.views.search.look(request.model_copy(update={"theta": open_}))
    facts = bank.by_turns(scope, set(missed), "fact") if missed else []
    wanted = {*missed, *shown}
    at = {looked.copy.ids[place]: n for n, place in enumerate(looked.places.tolist())}
    others = [hit.entry.id for hit in hits if wanted.isdisjoint(hit.entry.turns)][:RIVALS]
    rivals = [at[name] for name in others if name in at]
    own = {turn: n for n, place in enumerate(looked.places.tolist()) for turn in looked.copy.turns[place]}
    edges = {turn: _edges(looked, own[turn], rivals) for turn in wanted if turn in own}
    ranks = {turn: rank for rank, hit in reversed(list(enumerate(hits, 1))) for turn in hit.entry.turns}
    views = tuple(
        MissedView(
            rank=ranks.get(turn),
            cut=_cut(ranks.get(turn), full=full),
            facts=sum(turn in fact.turns for fact in facts),
            views=_places(looked, own[turn]) if turn in own else {},
            edges=edges.get(turn, {}),
        )
        for turn in missed
    )
    return Stood(views, _mean([edges[turn] for turn in shown if turn in edges]))


def _cut(rank: int | None, *, full: bool) -> Cut:
    if rank is None:
        return "not found"
    return "entries" if full else "tokens"


def _mean(edges: Sequence[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for one in edges for name in one)
    return {name: round(fmean(one.get(name, 0.0) for one in edges), 3) for name in names}


def _places(looked: Looked, own: int) -> dict[str, int]:
    """Its place in each view that gives it anything; equal values share one."""
    values = looked.measured.values
    return {
        name: int(1 + (values[at] > values[at, own]).sum())
        for at, name in enumerate(NAMES)
        if EVIDENCE[at] and values[at, own] > 0
    }


def _edges(looked: Looked, own: int, rivals: Sequence[int]) -> dict[str, float]:
    """By signal what it has more of than the rivals in the mean, evidence relative to the best."""
    if not rivals:
        return {}
    values = looked.measured.relative()
    differences = values[:, own] - np.mean(values[:, list(rivals)], axis=1)
    return {
        name: round(float(difference), 3)
        for name, difference in zip(NAMES, differences, strict=True)
        if abs(difference) >= _FAINT
    }


@dataclass(frozen=True)
class Asker:
    """Asks the questions of one stored conversation under one configuration.

    Attributes:
        memory: Where it is stored. scope: whose. read: how often it was read anew. roles: who runs recall.
        judge: None where answers are not judged.
    """

    task: Task
    theta: Theta
    memory: Memory
    roles: Roles
    scope: Scope
    read: int
    judge: AnswerJudge | None = None

    @cached_property
    def _budget(self) -> int:
        return min(self.theta.token_budget, self.task.token_budget)

    @cached_property
    def _settings(self) -> Any:
        return self.memory.settings.model_copy(update={"theta": self.theta})

    @cached_property
    def _recall(self) -> Any:
        return detached(build_recall(self.roles, self.memory.bank, self._settings))

    def ask(self, question: Question) -> QuestionRecord:
        """One question, searched, answered where the objective needs it, and scored.

        A question that crashes counts as wrong.

        Raises:
            Exception: what stops the run: the server, the key or the disk.
        """
        wanted = () if question.adversarial else question.evidence
        record = QuestionRecord(
            conversation=self.scope.user,
            id=question.id,
            # Of what recall was built with, so that a record cannot claim another configuration.
            theta=fingerprint(self._settings.theta),
            memory=self.read,
            question=question.question,
            category=question.category,
            gold=question.answer,
            wanted=wanted,
        )
        try:
            record = record.model_copy(update=self._searched(question, wanted))
            if self.task.answers:
                record = record.model_copy(update=self._answered(question, record))
        except Exception as error:
            if stops_the_run(error):
                raise
            return record.model_copy(update=self._crashed(question, wanted, error))
        return record

    def _run(self, question: Question, *, evidence_only: bool) -> Mapping[str, Any]:
        out: Mapping[str, Any] = self._recall.invoke(
            {"question": question.question},
            context={
                "user": self.scope.user,
                "now": question.asked_at,
                "token_budget": self._budget,
                "evidence_only": evidence_only,
            },
        )
        return out

    def _searched(self, question: Question, wanted: tuple[str, ...]) -> dict[str, Any]:
        out = self._run(question, evidence_only=True)
        items = out["answer"]["evidence"]
        found = {turn for item in items for turn in counted(item["turns"], item["granularity"])}
        tokens, entries = Counter[str](), Counter[str]()
        for item in items:
            entries[item["granularity"]] += 1
            tokens[item["granularity"]] += token_counter().count(item["text"])
        missing = [turn for turn in wanted if turn not in found]
        return {
            "recall": recall(found, wanted) if wanted else None,
            "evidence": tuple(item["id"] for item in items),
            "shown": ShownView(
                entries=dict(entries), tokens=dict(tokens), k=self.theta.k, token_budget=self._budget
            ),
            **(self._stood(question, missing, full=len(items) >= self.theta.k) if wanted else {}),
            "usage": out.get("usage") or {},
        }

    def _stood(self, question: Question, missing: list[str], *, full: bool) -> dict[str, Any]:
        found = stood(
            self.memory.bank,
            self.scope,
            self.theta,
            question.question,
            missed=missing,
            shown=[turn for turn in question.evidence if turn not in missing],
            full=full,
        )
        return found._asdict()

    def _answered(self, question: Question, record: QuestionRecord) -> dict[str, Any]:
        out = self._run(question, evidence_only=False)
        said = out["answer"]["answer"] or ""
        abstained = out["answer"]["answerable"] is False or abstains(said)
        usage = add_usage(record.usage, out.get("usage") or {})
        update: dict[str, Any] = {"answer": said, "abstained": abstained, "usage": usage}
        counted_as = ABSTAINING if abstained else said
        if question.adversarial:
            right = token_f1(counted_as, "", ADVERSARIAL)
            return update | {"f1": right, "verdict": "CORRECT" if right else "WRONG"}
        if question.answer is None:
            return update
        update["f1"] = token_f1(counted_as, question.answer, question.category)
        if self.judge is not None:
            judged = self.judge.judge(question.question, question.answer, said)
            update |= {"verdict": judged.verdict or "WRONG", "usage": add_usage(usage, judged.usage)}
        return update

    def _crashed(self, question: Question, wanted: tuple[str, ...], error: Exception) -> dict[str, Any]:
        answered = self.task.answers and (question.adversarial or question.answer is not None)
        return {
            "recall": 0.0 if wanted else None,
            "f1": 0.0 if answered else None,
            "verdict": "WRONG" if answered and self.judge is not None else None,
            "error": f"{type(error).__name__}: {' '.join(str(error).split())}"[:500],
        }


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
