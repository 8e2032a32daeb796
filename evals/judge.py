"""The judge of answers: CORRECT where an answer says what the gold answer says, else WRONG.

It is the Grader's role and prompt, on a model of one's choice (or the rules, which know words, no meaning).
It sees question, gold and answer, never the evidence, so it may not be the one who answered.
"""

from typing import NamedTuple

from langchain_core.runnables import Runnable

from memcycle.agents.grader import GradeItem, GraderInput, GraderOutput
from memcycle.agents.roles import Roles
from memcycle.core.errors import RoleFailed
from memcycle.core.usage import Usage
from memcycle.evals.record import Verdict
from memcycle.graph.node import Call, Step, node
from memcycle.opening import roles_of

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
