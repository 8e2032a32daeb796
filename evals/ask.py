"""One question, asked and scored. Its words and its time are all that search and answer see of it.

The judge is the Grader's role and prompt, on a model of one's choice (or the rules, which know words, no
meaning). It sees question, gold and answer, never the evidence, so it may not be the one who answered.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from langchain_core.runnables import Runnable

from memcycle.agents.grader import GradeItem, GraderInput, GraderOutput
from memcycle.agents.roles import Roles
from memcycle.core.entry import Entry
from memcycle.core.errors import EmbeddingFailed, ModelUnavailable, RoleFailed, StoreError
from memcycle.core.language.questions import abstains
from memcycle.core.language.token_count import token_counter
from memcycle.core.probe import add_usage
from memcycle.core.scope import Scope
from memcycle.core.theta import Theta
from memcycle.evals.baselines import FULL_CONTEXT, Baselines
from memcycle.evals.dataset import Question
from memcycle.evals.metrics import (
    ADVERSARIAL,
    MANY,
    NOT_MENTIONED,
    bleu1,
    counted_turns,
    scores,
    token_f1,
    tokens_of,
    whole_context,
)
from memcycle.evals.records import Found, Plan, Record, Scores
from memcycle.graph.node import Call, Node, Step
from memcycle.graph.recall.evidence import Limits, Piece, assemble
from memcycle.memory import Memory, roles_of
from memcycle.stores.search.request import Hit, Query, SearchRequest

COUNTED_AS = "evaluation judge"
"""Under which name its calls are counted, apart from those of the role in memory's own work."""
ASKED_AT_ONCE = 8
"""Questions of a conversation that wait for a model at the same time."""
WRITTEN = 30
"""Found entries that are written down of each question."""
ABSTAINING = NOT_MENTIONED[0].capitalize()
"""What an answer that abstains is scored as: LoCoMo knows it by these words alone."""


R = TypeVar("R")


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
        self._node = Node(COUNTED_AS, self._step)

    def judge(self, question: str, gold: str, answer: str) -> dict[str, Any]:
        """`verdict` on one answer and `usage`; where the reply cannot be used no verdict, but `judge_error`.

        Raises:
            Exception: errors of the provider, as they are.
        """
        item = GradeItem(n=1, question=question, gold=gold, answer=answer)
        said = self._node.invoke(GraderInput(items=[item]))
        return {**said, "usage": said.get("usage") or {}}

    def _step(self, value: GraderInput) -> Step:
        try:
            output: GraderOutput = yield Call(COUNTED_AS, self._grader, value)
        except RoleFailed as failed:
            return {"verdict": None, "judge_error": str(failed)}
        grade = next((grade for grade in output.grades if grade.n == 1), None)
        if grade is None:
            return {"verdict": None, "judge_error": "the judge gave no grade"}
        return {"verdict": "CORRECT" if grade.correct else "WRONG", "judge_error": None}


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


def gold_turns(question: Question) -> tuple[str, ...]:
    """The turns to be found: none for an adversarial question, since those it names are its bait's."""
    return () if question.adversarial else question.evidence


def run_steps(
    steps: Sequence[Callable[[], dict[str, Any]]], wrong: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """What steps find of a question, their `usage` summed; where one crashes, with what `wrong` says of that.

    Raises:
        Exception: what stops the run; see `stops_the_run`.
    """
    done: dict[str, Any] = {"usage": {}}
    try:
        for step in steps:
            more = step()
            done |= {**more, "usage": add_usage(done["usage"], more.get("usage", {}))}
    except Exception as error:
        if stops_the_run(error):
            raise
        told = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
        return {**done, **wrong(done), "error": told}
    return done


def ask_all(ask: Callable[[Question], R], questions: Iterable[Question], *, waits: bool) -> Iterator[R]:
    """Asks questions in order; several at a time where a model is waited for: rules only compete."""
    if not waits:
        yield from map(ask, questions)
        return
    with ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="asking") as pool:
        yield from pool.map(ask, questions)


def scored_answer(
    question: Question, answer: str | None, answerable: bool | None, judge: AnswerJudge | None
) -> dict[str, Any]:
    """How an answer did: `answer`, `abstained`, `f1`, `bleu1`, `verdict`, `judge_error`, the judge's `usage`.

    F1 and BLEU-1 are there as far as the question has something to compare with. An adversarial question
    needs no judge: abstaining is right, all else is wrong.
    """
    said = answer or ""
    abstained = answerable is False or abstains(said)
    judged: dict[str, Any] = {"verdict": None, "judge_error": None, "usage": {}}
    if judge is not None and question.adversarial:
        judged["verdict"] = "CORRECT" if abstained else "WRONG"
    elif judge is not None and question.answer is not None:
        judged = judge.judge(question.question, question.answer, said)
    return {
        "answer": answer,
        "abstained": abstained,
        **_overlaps(question, ABSTAINING if abstained else said),
        **judged,
    }


def wrong_answer(question: Question, judge: AnswerJudge | None) -> dict[str, Any]:
    """What a question that crashed counts as, in the same fields."""
    judged = judge is not None and (question.answer is not None or question.adversarial)
    return {
        **dict.fromkeys(_overlaps(question, ""), 0.0),
        "abstained": False,
        "verdict": "WRONG" if judged else None,
    }


def _overlaps(question: Question, said: str) -> dict[str, float]:
    if question.adversarial:
        return {"f1": token_f1(said, "", ADVERSARIAL)}
    if question.answer is None:
        return {}
    return {
        "f1": token_f1(said, question.answer, question.category),
        "bleu1": bleu1(said, question.answer),
    }


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
        gold = gold_turns(question)
        record = Record(
            conversation=self.scope.user,
            id=question.id,
            question=question.question,
            category=question.category,
            adversarial=question.adversarial,
            gold=question.answer,
            gold_turns=gold,
        )
        score = partial(scores, gold=gold, plan=self.plan, sessions=self.sessions)
        steps = [
            partial(self._compared, question, gold, score),
            partial(self._searched, question, score),
            *([partial(self._answered, question)] if self.plan.answers else []),
        ]

        def wrong(done: dict[str, Any]) -> dict[str, Any]:
            found = done["scores"] if "scores" in done else score([])
            return {"scores": found, **(wrong_answer(question, self.judge) if self.plan.answers else {})}

        return record.model_copy(update=run_steps(steps, wrong))

    def _compared(
        self, question: Question, gold: Sequence[str], score: Callable[..., Scores]
    ) -> dict[str, Any]:
        """The same question in the ways of the baselines, whatever becomes of it in memcycle's."""
        if self.baselines is None:
            return {}
        ranked = self.baselines.rankings(question.question)
        compared = {name: score(entries[:MANY]) for name, entries in ranked.items()}
        return {"baselines": {**compared, FULL_CONTEXT: whole_context(self.baselines.turns, gold)}}

    def _searched(self, question: Question, score: Callable[..., Scores]) -> dict[str, Any]:
        theta = self.plan.settings.theta
        request = SearchRequest(
            scope=self.scope,
            queries=(Query(text=question.question),),
            granularities=("raw", "fact"),
            k=MANY,
            theta=theta,
        )
        started = perf_counter()
        [hits] = self.memory.bank.search(request)
        took = perf_counter() - started
        entries = [hit.entry for hit in hits]
        choose = partial(_assembled, hits, theta)
        return {
            "found": tuple(
                Found(id=one.id, granularity=one.granularity, turns=one.turns, tokens=tokens_of(one))
                for one in entries[:WRITTEN]
            ),
            "turns": tuple(counted_turns(entries)[:WRITTEN]),
            "shown": tuple(one.id for one in choose(self.plan.k, self.plan.token_budget)),
            "scores": score(entries, assembled=choose),
            "search_ms": round(1000 * took, 3),
        }

    def _answered(self, question: Question) -> dict[str, Any]:
        started = perf_counter()
        answer = self.memory.ask(
            question.question,
            user=self.scope.user,
            now=question.asked_at,
            k=self.plan.k,
            token_budget=self.plan.token_budget,
        )
        took = perf_counter() - started
        done = scored_answer(question, answer.answer, answer.answerable, self.judge)
        usage = add_usage(answer.usage, done["usage"])
        return {
            **done,
            "cited": tuple(dict.fromkeys(turn for item in answer.evidence for turn in item.turns)),
            "evidence_tokens": answer.tokens,
            "usage": usage,
            "calls": sum(count["calls"] for count in usage.values()),
            "tokens": sum(count["input_tokens"] + count["output_tokens"] for count in usage.values()),
            "answer_ms": round(1000 * took, 3),
        }


def _assembled(hits: Sequence[Hit], theta: Theta, k: int, token_budget: int) -> list[Entry]:
    """What memcycle shows of what it found, best first, within k entries and a budget of tokens."""
    pieces = [Piece(hit.entry, hit.score) for hit in hits]
    limits = Limits(k=k, token_budget=token_budget, turns_first=theta.turns_first)
    return [piece.entry for piece in assemble(pieces, limits, token_counter().count)]
