"""One question through the real recall graph under one configuration. Its words are all that recall sees."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from memcycle.agents.diagnoser import ShownView
from memcycle.agents.roles import Roles
from memcycle.agents.rules.grader import abstains
from memcycle.core.language.token_count import token_counter
from memcycle.core.scope import Scope
from memcycle.core.theta import Theta
from memcycle.core.usage import add_usage
from memcycle.evals.asking import ABSTAINING, stops_the_run
from memcycle.evals.dataset import Question
from memcycle.evals.judge import AnswerJudge
from memcycle.evals.metrics import ADVERSARIAL, counted, recall, token_f1
from memcycle.evolution.records import QuestionRecord
from memcycle.evolution.signals import stood
from memcycle.evolution.space import fingerprint
from memcycle.evolution.task import Task
from memcycle.graph.recall import build_recall
from memcycle.memory import Memory
from memcycle.runs import apart


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
        return apart(build_recall(self.roles, self.memory.bank, self._settings))

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
