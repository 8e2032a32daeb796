"""The lab: conversations stored once, and configurations evaluated on a split, question by question.

Figures of configurations come with 95 % intervals.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from math import fsum, sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from memcycle.agents.diagnoser import ShownView
from memcycle.agents.roles import Roles
from memcycle.checkpoints import checkpointer
from memcycle.core.errors import BadInput, StoreError
from memcycle.core.language.token_count import token_counter
from memcycle.core.probe import add_usage
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.theta import Theta
from memcycle.evals.ask import AnswerJudge, ask_all, gold_turns, run_steps, scored_answer, wrong_answer
from memcycle.evals.dataset import Question, Sample
from memcycle.evals.metrics import counted, recall
from memcycle.evals.records import RULES, reader_of
from memcycle.evals.run import Progress, Watch, base_scope, open_memory, store
from memcycle.evolution.records import EvolveFolder, QuestionRecord, StoredHome, home_key
from memcycle.evolution.splits import Split
from memcycle.evolution.task import Request, Task, read_request
from memcycle.evolution.theta.diagnosis import standing_of
from memcycle.evolution.theta.space import fingerprint, writing
from memcycle.graph.recall.graph import build_recall
from memcycle.memory import Memory
from memcycle.runs import detached

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langgraph.types import StateSnapshot


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
        wanted = gold_turns(question)
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
        steps = [
            partial(self._searched, question, wanted),
            *([partial(self._answered, question)] if self.task.answers else []),
        ]

        def wrong(_: dict[str, Any]) -> dict[str, Any]:
            answer = wrong_answer(question, self.judge) if self.task.answers else {}
            return {"recall": 0.0 if wanted else None, **_known(answer)}

        return record.model_copy(update=run_steps(steps, wrong))

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
        standing: dict[str, Any] = {}
        if wanted:
            standing = standing_of(
                self.memory.bank,
                self.scope,
                self.theta,
                question.question,
                missed=[turn for turn in wanted if turn not in found],
                shown=[turn for turn in wanted if turn in found],
                full=len(items) >= self.theta.k,
            )
        return {
            "recall": recall(found, wanted) if wanted else None,
            "evidence": tuple(item["id"] for item in items),
            "shown": ShownView(
                entries=dict(entries), tokens=dict(tokens), k=self.theta.k, token_budget=self._budget
            ),
            **standing,
            "usage": out.get("usage") or {},
        }

    def _answered(self, question: Question) -> dict[str, Any]:
        out = self._run(question, evidence_only=False)
        said = out["answer"]
        done = scored_answer(question, said["answer"] or "", said["answerable"], self.judge)
        # A judge that fails counts against the configuration: none gains by confusing it.
        verdict = "WRONG" if done["judge_error"] else done["verdict"]
        usage = add_usage(out.get("usage") or {}, done["usage"])
        return _known(done) | {"verdict": verdict, "usage": usage}


def _known(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Of how an answer did, what is written down."""
    return {name: value for name, value in answer.items() if name in QuestionRecord.model_fields}


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
    roles: Roles | None = None
    base_url: str | None = None
    embeddings: "Embeddings | None" = None
    watch: Watch = lambda _: None

    def __post_init__(self) -> None:
        self._open: dict[str, Memory] = {}

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
            judge=self._judge,
        )
        return ask_all(asker.ask, todo, waits=self.task.model != RULES)

    @cached_property
    def _judge(self) -> AnswerJudge | None:
        return AnswerJudge(self.task.judge, base_url=self.base_url) if self.task.judge else None

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
        return open_memory(
            self.task.storing(theta),
            self.samples[name],
            self.folder.shelf / key,
            model,
            base_url=self.base_url,
            embeddings=self.embeddings,
        )

    def _store(self, theta: Theta, name: str, key: str, memory: int) -> None:
        """Stores a conversation, or what is left of it; read anew, what was not extracted is tried again."""
        sample, facts = self.samples[name], self.task.facts
        with self._opened(theta, name, key, reader_of(facts)) as opened:
            readings = [store(opened, sample, facts, self.watch) for _ in range(memory + 1)]
        took = {
            "usage": reduce(add_usage, (one.usage for one in readings)),
            "refused": readings[0].refused,
            "seconds": round(fsum(one.seconds for one in readings), 3),
        }
        made = readings[-1].model_copy(update=took)
        self.folder.shelf.mkdir(parents=True, exist_ok=True)
        self.folder.homes.add(StoredHome(home=key, memory=memory, stored=made))


_Z, _T = 1.96, {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""Two-sided 95 % quantiles of the normal distribution, and of Student's t by the number of values."""


def held_out(lab: Lab, theta: Theta, memory: int = 0) -> dict[str, Any]:
    """A configuration on the held-out split: its score with a 95 % interval over the questions, by category,
    and the tokens of evidence it took. To be asked once of each configuration that is reported."""
    records = lab.evaluate(theta, "held_out", memory)
    own = [lab.task.value(one) for one in records]
    known = [one for one in own if one is not None]
    categories = sorted({record.category for record in records if record.category is not None})
    return {
        "held_out": lab.task.score(records),
        "interval": interval(known, _Z),
        "n": len(known),
        "by_category": {
            name: lab.task.score([one for one in records if one.category == name]) for name in categories
        },
        "tokens": round(fmean(sum(one.shown.tokens.values()) for one in records), 1) if records else None,
        "failed": sum(one.error is not None for one in records),
        "theta": fingerprint(theta),
    }


def interval(values: Sequence[float], quantile: float | None = None) -> list[float] | None:
    """The 95 % interval of a mean: by Student's t over few values, unless a quantile is given; None over
    fewer than two."""
    if len(values) < 2:  # noqa: PLR2004 - one value has no spread
        return None
    wide = quantile if quantile is not None else _T.get(len(values), _Z)
    half = wide * stdev(values) / sqrt(len(values))
    mean = fsum(values) / len(values)
    return [round(mean - half, 6), round(mean + half, 6)]


def between(ends: Sequence[float] | None) -> str:
    """An interval in words."""
    return "" if ends is None else f"[{ends[0]:.3f}, {ends[1]:.3f}]"


def paired(lab: Lab, one: Sequence[QuestionRecord], other: Sequence[QuestionRecord]) -> dict[str, Any]:
    """The mean gain of one configuration over another on the same questions, with its 95 % interval."""
    before = {record.key: lab.task.value(record) for record in other}
    pairs = [(lab.task.value(record), before.get(record.key)) for record in one]
    gains = [left - right for left, right in pairs if left is not None and right is not None]
    return {"gain": round(fmean(gains), 6) if gains else None, "interval": interval(gains, _Z)}


def open_lab(
    request: Request, settings: Settings, base_url: str | None = None, watch: Watch = lambda _: None
) -> Lab:
    """The lab of a request, to be used as a context manager; arguments as in `Request.task` and `Lab`."""
    task, samples = request.task(settings)
    folder = EvolveFolder(request.out, request.stored)
    return Lab(task, samples, folder, base_url=base_url, watch=watch)


def lab_opener() -> Callable[[Mapping[str, Any]], Lab]:
    """What opens the lab of an input's request, once; settings and server are those of the environment."""
    labs: dict[str, Lab] = {}

    def opened(state: Mapping[str, Any]) -> Lab:
        if "request" not in state:
            raise BadInput("evolve needs {'request': {'data': ..., 'train': ..., 'guard': ..., ...}}")
        request = read_request(state["request"])
        key = request.model_dump_json()
        if key not in labs:
            lab = open_lab(request, Settings.from_env(), os.environ.get("OPENAI_BASE_URL"))
            lab.folder.run.start(lab.task.plain(), "", resume=True)
            labs[key] = lab
        return labs[key]

    return opened


def finished(graph: Any, lab: Lab, thread: str, most: int) -> dict[str, Any]:
    """The last state of a loop, kept in the lab's folder: begun, gone on with, or read where it has ended.

    Args:
        most: Steps; LangGraph's own limit is of loops that never end.
    """
    with checkpointer(lab.folder.checkpoints) as saver:
        loop = graph.builder.compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": most}
        known: StateSnapshot = loop.get_state(config)
        if known.next or not known.values:
            loop.invoke(None if known.next else {}, config, durability="sync")
            known = loop.get_state(config)
        return dict(known.values)
