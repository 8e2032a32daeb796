"""One question, asked and scored. Its words and its time are all that search and answer see of it.

It is the Grader's role and prompt, on a model of one's choice (or the rules, which know words, no meaning).
It sees question, gold and answer, never the evidence, so it may not be the one who answered.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from langchain_core.runnables import Runnable

from memcycle.agents.grader import GradeItem, GraderInput, GraderOutput
from memcycle.agents.roles import Roles
from memcycle.core.entry import Entry
from memcycle.core.errors import EmbeddingFailed, ModelUnavailable, RoleFailed, StoreError
from memcycle.core.language.questions import abstains
from memcycle.core.probe import Usage, add_usage
from memcycle.core.scope import Scope
from memcycle.core.theta import Theta
from memcycle.evals.baselines import FULL_CONTEXT, Baselines
from memcycle.evals.dataset import Question
from memcycle.evals.metrics import ADVERSARIAL, NOT_MENTIONED, bleu1, token_f1
from memcycle.evals.records import Found, Plan, Record, Scores, Verdict
from memcycle.evals.scoring import MANY, assembled, counted_turns, crashed, scores, tokens_of, whole_context
from memcycle.graph.node import Call, Step, node
from memcycle.memory import Memory, roles_of
from memcycle.results import Answer
from memcycle.stores.search.request import Hit, Query, SearchRequest

COUNTED_AS = "evaluation judge"
"""Under which name its calls are counted, apart from those of the role in memory's own work."""


class Judged(NamedTuple):
    """A verdict, or why there is none, and what it took."""

    verdict: Verdict | None
    error: str | None
    usage: Usage


class AnswerJudge:
    """Judges answers. Safe to share between threads."""

    def __init__(self, model: str, *, base_url: str | None = None) -> None:
        """On a model by name, or `rules`.

        Raises:
            ModelUnavailable: an unknown name, or no key for it.
        """
        roles = roles_of(model, None, None, {"base_url": base_url}) or Roles.rules()
        self._grader: Runnable[GraderInput, GraderOutput] = roles.grader
        # As a node of a graph, so that its calls and tokens are counted as theirs are.
        self._node = node(COUNTED_AS, self._step)

    def judge(self, question: str, gold: str, answer: str) -> Judged:
        """The verdict on one answer. A judge whose reply cannot be used gives none, with the reason.

        Raises:
            Exception: errors of the provider, as they are.
        """
        item = GradeItem(n=1, question=question, gold=gold, answer=answer)
        said = self._node.invoke(GraderInput(items=[item]))
        return Judged(said["verdict"], said["error"], said.get("usage") or {})

    def _step(self, value: GraderInput) -> Step:
        try:
            output: GraderOutput = yield Call(COUNTED_AS, self._grader, value)
        except RoleFailed as failed:
            return {"verdict": None, "error": str(failed)}
        grade = next((grade for grade in output.grades if grade.n == 1), None)
        if grade is None:
            return {"verdict": None, "error": "the judge gave no grade"}
        return {"verdict": "CORRECT" if grade.correct else "WRONG", "error": None}


WRITTEN = 30
"""Found entries that are written down of each question."""

ABSTAINING = NOT_MENTIONED[0].capitalize()
"""What an answer that abstains is scored as: LoCoMo knows it by these words alone."""


def stops_the_run(error: BaseException) -> bool:
    """Whether an error is of the server, the key or the disk: every further question would meet it too.

    Any other is the question's own, which then counts as wrong.
    """
    if isinstance(error, ModelUnavailable):
        return True
    if isinstance(error, StoreError):
        return not isinstance(error, EmbeddingFailed)
    openai = sys.modules.get("openai")  # who has not loaded it has no error of its
    if openai is None or not isinstance(error, openai.APIError):
        return False
    return not isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError)


@dataclass(frozen=True)
class Asker:
    """Asks the questions of one stored conversation.

    Attributes:
        scope: Whose memory. sessions: session by turn.
        baselines: None where none are wanted. judge: None where answers are not judged.
    """

    plan: Plan
    memory: Memory
    scope: Scope
    sessions: Mapping[str, str]
    baselines: Baselines | None = None
    judge: AnswerJudge | None = None

    def ask(self, question: Question) -> Record:
        """One question, found, answered and scored.

        Raises:
            Exception: what stops the run; see `stops_the_run`.
        """
        # What an adversarial question names as evidence is its bait's: nothing is to be found for it.
        gold = () if question.adversarial else question.evidence
        record = Record(
            conversation=self.scope.user,
            id=question.id,
            question=question.question,
            category=question.category,
            adversarial=question.adversarial,
            gold=question.answer,
            gold_turns=gold,
        )
        steps = [self._compared, self._searched, *([self._answered] if self.plan.answers else [])]
        try:
            for step in steps:
                record = record.model_copy(update=step(question, gold))
        except Exception as error:
            if stops_the_run(error):
                raise
            found = record.scores if record.search_ms is not None else crashed(gold, self.plan)
            return record.model_copy(
                update={"scores": found, "error": _named(error), **self._wrong(question)}
            )
        return record

    def _compared(self, question: Question, gold: Sequence[str]) -> dict[str, Any]:
        """The same question in the ways of the baselines, whatever becomes of it in memcycle's."""
        if self.baselines is None:
            return {}
        score, ranked = self._scoring(gold), self.baselines.rankings(question.question)
        compared = {name: score(entries[:MANY]) for name, entries in ranked.items()}
        compared[FULL_CONTEXT] = whole_context(self.baselines.turns, gold, tokens_of)
        return {"baselines": compared}

    def _scoring(self, gold: Sequence[str]) -> Callable[..., Scores]:
        return partial(scores, gold=gold, plan=self.plan, sessions=self.sessions, tokens_of=tokens_of)

    def _searched(self, question: Question, gold: Sequence[str]) -> dict[str, Any]:
        request = SearchRequest(
            scope=self.scope,
            queries=(Query(text=question.question),),
            granularities=("raw", "fact"),
            k=MANY,
            theta=self.plan.settings.theta,
        )
        started = perf_counter()
        [hits] = self.memory.bank.search(request)
        took = perf_counter() - started
        entries = [hit.entry for hit in hits]
        choose = partial(_chosen, hits, self.plan.settings.theta)
        return {
            "found": tuple(
                Found(id=one.id, granularity=one.granularity, turns=one.turns, tokens=tokens_of(one))
                for one in entries[:WRITTEN]
            ),
            "turns": tuple(counted_turns(entries)[:WRITTEN]),
            "shown": tuple(one.id for one in choose(self.plan.k, self.plan.token_budget)),
            "scores": self._scoring(gold)(entries, assembled=choose),
            "search_ms": round(1000 * took, 3),
        }

    def _answered(self, question: Question, _: Sequence[str]) -> dict[str, Any]:
        started = perf_counter()
        answer = self.memory.ask(
            question.question,
            user=self.scope.user,
            now=question.asked_at,
            k=self.plan.k,
            token_budget=self.plan.token_budget,
        )
        took = perf_counter() - started
        abstained = answer.answerable is False or abstains(answer.answer or "")
        judged = self._judged(question, answer, abstained=abstained)
        usage = add_usage(answer.usage, judged.usage)
        return {
            "answer": answer.answer,
            "abstained": abstained,
            "cited": tuple(dict.fromkeys(turn for item in answer.evidence for turn in item.turns)),
            "evidence_tokens": answer.tokens,
            **_scored(question, ABSTAINING if abstained else answer.answer or ""),
            "verdict": judged.verdict,
            "judge_error": judged.error,
            "usage": usage,
            **_totals(usage),
            "answer_ms": round(1000 * took, 3),
        }

    def _judged(self, question: Question, answer: Answer, *, abstained: bool) -> Judged:
        """An adversarial question needs no judge: abstaining is right, all else is wrong."""
        if self.judge is None or (question.answer is None and not question.adversarial):
            return Judged(None, None, {})
        if question.adversarial:
            return Judged("CORRECT" if abstained else "WRONG", None, {})
        return self.judge.judge(question.question, question.answer or "", answer.answer or "")

    def _wrong(self, question: Question) -> dict[str, Any]:
        """What a question that crashed counts as."""
        if not self.plan.answers:
            return {}
        judged = self.judge is not None and (question.answer is not None or question.adversarial)
        return {
            **dict.fromkeys(_scored(question, ""), 0.0),
            "abstained": False,
            "verdict": "WRONG" if judged else None,
        }


def _chosen(hits: Sequence[Hit], theta: Theta, k: int, token_budget: int) -> list[Entry]:
    return assembled(hits, theta, k=k, token_budget=token_budget)


def _scored(question: Question, said: str) -> dict[str, float]:
    """F1 and BLEU-1 of what was said, as far as the question has something to compare with."""
    if question.adversarial:
        return {"f1": token_f1(said, "", ADVERSARIAL)}
    if question.answer is None:
        return {}
    return {
        "f1": token_f1(said, question.answer, question.category),
        "bleu1": bleu1(said, question.answer),
    }


def _totals(usage: Usage) -> dict[str, int]:
    return {
        "calls": sum(count["calls"] for count in usage.values()),
        "tokens": sum(count["input_tokens"] + count["output_tokens"] for count in usage.values()),
    }


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
