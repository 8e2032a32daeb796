"""Nodes of recall: listen, judge, settle, think, reason; `planning` and `answering` hold the others."""

from typing import Any

from langchain_core.runnables import RunnableConfig

from memcycle.agents.judge import JudgeInput
from memcycle.agents.meta_thinker import AnswerabilityInput, AnswerabilityOutput
from memcycle.agents.query_reasoner import QueryReasonerInput
from memcycle.core.edit import Edit
from memcycle.core.errors import BadInput, RoleFailed
from memcycle.core.language.questions import question_category
from memcycle.core.validity import is_older, same_source
from memcycle.graph.answering import Answering
from memcycle.graph.approval import approved
from memcycle.graph.evidence import PASS_UNJUDGED, memory_views, read_verdict
from memcycle.graph.node import Step
from memcycle.graph.present import evidence, judged, shown_views
from memcycle.graph.refresh import propose
from memcycle.graph.states import Gap, RecallState


class Asking(Answering):
    """The nodes of recall, over one environment."""

    def listen(self, state: RecallState) -> dict[str, Any]:
        """Checks the question, takes out its secrets if the settings say so, starts a run's counts anew."""
        if not isinstance(state.get("question"), str) or not state["question"].strip():
            raise BadInput("recall needs a question: invoke it with {'question': 'some words'}")
        question = self.env.bank().redactor.text(state["question"])
        return {
            "question": question,
            "category": question_category(question),
            "plans": [],
            "parts": [],
            "candidates": [],
            "round": 0,
            "verdict": PASS_UNJUDGED,
            "outdated": [],
            "tried": [],
            "refinements": 0,
            "reflections": 0,
            "answer": {},
            "warnings": self.env.clamped(),
            "usage": None,
        }

    def judge(self, state: RecallState, config: RunnableConfig) -> Step:
        """The Judge's verdicts on the evidence; sees the short-term window W_t."""
        scope = self.env.scope(config)
        shown = judged(self.env, scope, state)
        value = JudgeInput(
            purpose="recall",
            items=[self.item(state)],
            queries=[plan["query"] for plan in state["plans"]],
            candidates=memory_views(shown),
            window=self.window(scope, self.theta(state)),
            now=self.env.now(),
        )
        try:
            output = yield self.env.call("judge", value)
        except RoleFailed as failed:
            return {"verdict": PASS_UNJUDGED, "warnings": [*state["warnings"], str(failed)]}
        verdict, warnings = read_verdict(output, shown)
        known = {conflict["memory"] for conflict in verdict["conflicts"]} & set(state["outdated"])
        verdict["conflicts"] = [ref for ref in verdict["conflicts"] if ref["memory"] not in known]
        return {"verdict": verdict, "warnings": [*state["warnings"], *warnings]}

    def settle(self, state: RecallState, config: RunnableConfig) -> dict[str, Any]:
        """A conflict is settled for this answer by event time, and queued for the next remember."""
        scope, bank = self.env.scope(config), self.env.bank()
        old = list(state["outdated"])
        for ref in state["verdict"]["conflicts"]:
            found = {entry.id: entry for entry in bank.get(scope, [ref["memory"], ref["other"] or ""])}
            first, second = found.get(ref["memory"]), found.get(ref["other"] or "")
            if first is None or second is None or same_source(first, second):
                continue
            older, newer = (second, first) if is_older(second, first) else (first, second)
            old.append(older.id)
            if not self.env.settings.switches.recall_refresh:
                bank.queue_conflict(scope, older.id, newer.id, ref["why"])
        return {"outdated": list(dict.fromkeys(old))}

    def refresh(self, state: RecallState, config: RunnableConfig) -> Step:
        """By switch only: the Refresher proposes at once what the next remember would."""
        refs = state["verdict"]["conflicts"]
        guarded = yield from propose(self.env, self.env.scope(config), refs, [])
        return {
            "edits": [edit.model_dump(mode="json") for edit in guarded.edits],
            "warnings": [*state["warnings"], *guarded.warnings],
        }

    def approve_refresh(self, state: RecallState, config: RunnableConfig) -> dict[str, Any]:
        """A person lets the edits stand, changes or rejects them, where the settings ask for that."""
        edits = [Edit.model_validate(edit) for edit in state["edits"]]
        found = approved(self.env, self.env.scope(config), edits)
        told = [f"{one['why']}: {one['text']}" for one in found.rejected]
        return {
            "edits": [edit.model_dump(mode="json") for edit in found.edits],
            "warnings": [*state["warnings"], *told],
        }

    def apply_refresh(self, state: RecallState, config: RunnableConfig) -> dict[str, Any]:
        """Writes what the guards let through."""
        self.env.bank().apply(self.env.scope(config), [Edit.model_validate(edit) for edit in state["edits"]])
        return {"edits": []}

    def think(self, state: RecallState, config: RunnableConfig) -> Step:
        """The Meta-Thinker: does a gap block the short answer? A failure ends the loop."""
        scope = self.env.scope(config)
        value = AnswerabilityInput(
            question=state["question"],
            evidence=shown_views(evidence(self.env, scope, state)),
            window=self.window(scope, self.theta(state)),
            tried=state["tried"],
            round=state["refinements"],
            now=self.env.now(),
        )
        try:
            output: AnswerabilityOutput = yield self.env.call("answerability", value)
        except RoleFailed as failed:
            gap = Gap(answerable=True, gap="", speaker=None, needs_time=False, avoid=[])
            return {"gap": gap, "warnings": [*state["warnings"], str(failed)]}
        return {
            "gap": Gap(
                answerable=output.answerable,
                gap=output.gap,
                speaker=output.speaker,
                needs_time=output.needs_time,
                avoid=output.avoid,
            )
        }

    def reason(self, state: RecallState, config: RunnableConfig) -> Step:
        """The Query-Reasoner: one new query for the top gap; a repeat or a failure ends the loop."""
        scope, gap = self.env.scope(config), state["gap"]
        value = QueryReasonerInput(
            question=state["question"],
            gap=gap["gap"],
            tried=state["tried"],
            evidence=shown_views(evidence(self.env, scope, state)),
            avoid=gap["avoid"],
            speaker=gap["speaker"],
            needs_time=gap["needs_time"],
        )
        try:
            output = yield self.env.call("query_reasoner", value)
        except RoleFailed as failed:
            return {"plans": [], "warnings": [*state["warnings"], str(failed)]}
        speaker = output.speaker or gap["speaker"]
        return self.further(state, output.query, speaker, rounds="refinements")
