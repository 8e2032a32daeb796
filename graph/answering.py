"""Nodes of recall that answer: present, answer, and after an unsure answer reflect and verify."""

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig

from memcycle.agents.answerer import AnswererInput, AnswererOutput
from memcycle.agents.query_reasoner import QueryReasonerInput, QueryReasonerOutput
from memcycle.agents.verifier import VerifierInput, VerifierOutput
from memcycle.core.errors import RoleFailed
from memcycle.graph.node import Step
from memcycle.graph.planning import Planning
from memcycle.graph.present import Shown, answer, chronological, evidence, evidence_item, shown_views
from memcycle.graph.states import RecallState

NOTHING = "I have nothing in memory about that."
UNPHRASED = "The evidence below was found, but it could not be phrased as an answer."


class Answering(Planning):
    """The nodes from the evidence on."""

    def present(self, state: RecallState, config: RunnableConfig) -> dict[str, Any]:
        """Retrieval only: the evidence, best first."""
        found = self.evidence(state, config)
        items = [evidence_item(one) for one in found]
        return {
            "answer": answer(
                state, "evidence", items, shown=found, text=None, answerable=None, confidence=None
            )
        }

    def evidence(self, state: RecallState, config: RunnableConfig) -> list[Shown]:
        """What is shown, best first."""
        return evidence(self.env, self.env.scope(config), state)

    def answer(self, state: RecallState, config: RunnableConfig) -> Step:
        """The Answerer, from chronological evidence; it cites what it rests on, or abstains.

        After a reflection the surer of the two answers stands.
        """
        scope, theta = self.env.scope(config), self.theta(state)
        found = evidence(self.env, scope, state)
        if not found:
            text = answer(state, "answer", [], text=NOTHING, answerable=False, confidence=1.0)
            return {"answer": text}
        shown = chronological(self.env, scope, found)
        value = AnswererInput(
            question=state["question"],
            evidence=shown_views(shown),
            window=self.window(scope, theta),
            style=theta.answer_style or self.env.settings.answer_style,
            now=self.env.now(),
        )
        draft = state["answer"] if state.get("reflections") else None
        try:
            output: AnswererOutput = yield self.env.call("answerer", value)
        except RoleFailed as failed:
            said: RecallState = {**state, "warnings": [*state["warnings"], str(failed)]}
            unphrased = answer(
                said,
                "evidence",
                [evidence_item(one) for one in found],
                shown=found,
                text=UNPHRASED,
                answerable=None,
                confidence=0.0,
            )
            return {"answer": {**draft, "warnings": said["warnings"]} if draft else unphrased}
        made = _phrased(state, output, found, shown)
        return {"answer": made if draft is None else _surer(draft, made)}

    def reflect(self, state: RecallState) -> Step:
        """After an unsure answer the Query-Reasoner asks once more, knowing that answer (EvolveMem 3.2)."""
        draft = state["answer"]
        gap = f"a surer answer than: {draft['answer']}" if draft["answerable"] else state["question"]
        value = QueryReasonerInput(question=state["question"], gap=gap, tried=state["tried"])
        try:
            output: QueryReasonerOutput = yield self.env.call("query_reasoner", value)
        except RoleFailed as failed:
            warnings = [*state["warnings"], str(failed)]
            return {"plans": [], "warnings": warnings, "answer": {**draft, "warnings": warnings}}
        return self.further(state, output.query, output.speaker, rounds="reflections")

    def verify(self, state: RecallState, config: RunnableConfig) -> Step:
        """The Verifier reads an unsure answer against the evidence; what it says stands (EvolveMem 3.2)."""
        scope, theta, draft = self.env.scope(config), self.theta(state), state["answer"]
        found = evidence(self.env, scope, state)
        shown = chronological(self.env, scope, found)
        value = VerifierInput(
            question=state["question"],
            answer=draft["answer"] or "",
            answerable=bool(draft["answerable"]),
            evidence=shown_views(shown),
            window=self.window(scope, theta),
            style=theta.answer_style or self.env.settings.answer_style,
            candidates=theta.verification == "multi_candidate",
            now=self.env.now(),
        )
        try:
            output: VerifierOutput = yield self.env.call("verifier", value)
        except RoleFailed as failed:
            return {"answer": {**draft, "warnings": [*state["warnings"], str(failed)]}}
        return {"answer": _phrased(state, output, found, shown)}


def _phrased(
    state: RecallState,
    output: AnswererOutput | VerifierOutput,
    found: Sequence[Shown],
    shown: Sequence[Shown],
) -> dict[str, Any]:
    """What a role answered, with what it cites.

    Args:
        found: The evidence, best first. shown: the same as the role was shown it.
    """
    cited = [evidence_item(shown[n]) for n in dict.fromkeys(output.citations) if 0 <= n < len(shown)]
    ranked = [evidence_item(one) for one in found] if output.answerable else []
    return answer(
        state,
        "extractive" if output.extractive else "answer",
        cited or ranked,
        shown=found,
        text=output.answer,
        answerable=output.answerable,
        confidence=output.confidence,
    )


def _surer(draft: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """The answer that says more, else the one with more confidence; what was searched counts for both."""
    says = bool(made["answerable"]), bool(draft["answerable"])
    better = says[0] if says[0] != says[1] else made["confidence"] >= draft["confidence"]
    return made if better else {**draft, "rounds": made["rounds"], "warnings": made["warnings"]}
