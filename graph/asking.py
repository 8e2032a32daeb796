"""Nodes of recall: plan, search, judge, settle, think, reason, answer."""

from typing import Any

from langchain_core.runnables import RunnableConfig

from memcycle.agents.answerer import AnswererInput, AnswererOutput
from memcycle.agents.judge import JudgeInput
from memcycle.agents.meta_thinker import AnswerabilityInput, AnswerabilityOutput
from memcycle.agents.query_reasoner import QueryReasonerInput
from memcycle.agents.retriever import RetrieverInput
from memcycle.agents.views import TurnView
from memcycle.core.edit import Edit
from memcycle.core.errors import BadInput, RoleFailed
from memcycle.core.scope import Scope
from memcycle.core.validity import is_older, same_source
from memcycle.graph.approval import approved
from memcycle.graph.context import run_context
from memcycle.graph.environment import Env
from memcycle.graph.evidence import (
    PASS_UNJUDGED,
    as_is,
    find,
    memory_views,
    read_plans,
    read_verdict,
    related,
    turn_views,
    unite,
)
from memcycle.graph.mentions import mention
from memcycle.graph.node import Step
from memcycle.graph.present import answer, chronological, evidence, evidence_item, judged, shown_views
from memcycle.graph.refresh import propose
from memcycle.graph.states import Gap, Planned, RecallState

NOTHING = "I have nothing in memory about that."
SPARE = 2
"""How many times K are looked up: a turn and its facts are shown once, and their places go to others."""
UNPHRASED = "The evidence below was found, but it could not be phrased as an answer."


class Asking:
    """The nodes of recall, over one environment."""

    def __init__(self, env: Env) -> None:
        self.env = env

    def listen(self, state: RecallState) -> dict[str, Any]:
        """Checks the question and starts a run's counts anew."""
        if not isinstance(state.get("question"), str) or not state["question"].strip():
            raise BadInput("recall needs a question: invoke it with {'question': 'some words'}")
        return {
            "plans": [],
            "candidates": [],
            "round": 0,
            "verdict": PASS_UNJUDGED,
            "outdated": [],
            "tried": [],
            "refinements": 0,
            "warnings": [],
            "usage": None,
        }

    def _item(self, state: RecallState) -> TurnView:
        settings = self.env.settings
        return TurnView(
            n=1, speaker=settings.user_name, role="human", text=state["question"], time=self.env.now()
        )

    def _window(self, scope: Scope) -> list[TurnView]:
        size = self.env.settings.theta.window
        return turn_views(self.env.bank().session_turns(scope, last=size), first=2) if size else []

    def plan(self, state: RecallState, config: RunnableConfig) -> Step:
        """The Retriever rewrites the question so that it stands alone, and routes it by intent.

        The names it names are noted: what holds them counts for more from the next maintenance on.
        """
        scope, theta, items = self.env.scope(config), self.env.settings.theta, [self._item(state)]
        k = run_context().k or theta.k
        value = RetrieverInput(purpose="recall", items=items, window=self._window(scope), now=self.env.now())
        try:
            output = yield self.env.call("retriever", value)
        except RoleFailed as failed:
            plans, warnings = as_is(items, k), [*state["warnings"], str(failed)]
        else:
            plans, warnings = read_plans(output, items, k), state["warnings"]
        known = [turn.speaker for turn in value.window] + [plan["speaker"] or "" for plan in plans]
        mention(self.env, scope, state["question"], known)
        return {"plans": plans, "tried": [plan["query"] for plan in plans], "warnings": warnings}

    def search(self, state: RecallState, config: RunnableConfig) -> dict[str, Any]:
        """Searches memory; evidence of earlier rounds is kept."""
        found = find(
            self.env, self.env.scope(config), state["plans"], widened=state["round"] > 0, spare=SPARE
        )
        return {"candidates": unite(state["candidates"], found)}

    def widen(self, state: RecallState, config: RunnableConfig) -> dict[str, Any]:
        """Retry: adds the turns the candidates refer to; the next search covers every granularity (AMA)."""
        more = related(self.env, self.env.scope(config), state["candidates"])
        return {"round": state["round"] + 1, "candidates": unite(state["candidates"], more)}

    def judge(self, state: RecallState, config: RunnableConfig) -> Step:
        """The Judge's verdicts on the evidence; sees the short-term window W_t."""
        scope = self.env.scope(config)
        shown = judged(self.env, scope, state)
        value = JudgeInput(
            purpose="recall",
            items=[self._item(state)],
            queries=[plan["query"] for plan in state["plans"]],
            candidates=memory_views(shown),
            window=self._window(scope),
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
            window=self._window(scope),
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
        query = output.query.strip()
        if not query or query.casefold() in {tried.casefold() for tried in state["tried"]}:
            return {"plans": []}
        k = run_context().k or self.env.settings.theta.k
        operator = state["plans"][0]["operator"]
        plan = Planned(n=1, query=query, operator=operator, k=k, speaker=output.speaker or gap["speaker"])
        return {"plans": [plan], "tried": [*state["tried"], query], "refinements": state["refinements"] + 1}

    def present(self, state: RecallState, config: RunnableConfig) -> dict[str, Any]:
        """Retrieval only: the evidence, best first."""
        found = evidence(self.env, self.env.scope(config), state)
        items = [evidence_item(one) for one in found]
        return {
            "answer": answer(
                state, "evidence", items, shown=found, text=None, answerable=None, confidence=None
            )
        }

    def answer(self, state: RecallState, config: RunnableConfig) -> Step:
        """The Answerer, from chronological evidence; it cites what it rests on, or abstains."""
        scope = self.env.scope(config)
        found = evidence(self.env, scope, state)
        if not found:
            text = answer(state, "answer", [], text=NOTHING, answerable=False, confidence=1.0)
            return {"answer": text}
        ranked = [evidence_item(one) for one in found]
        shown = chronological(self.env, scope, found)
        value = AnswererInput(
            question=state["question"],
            evidence=shown_views(shown),
            window=self._window(scope),
            style=self.env.settings.answer_style,
            now=self.env.now(),
        )
        try:
            output: AnswererOutput = yield self.env.call("answerer", value)
        except RoleFailed as failed:
            said: RecallState = {**state, "warnings": [*state["warnings"], str(failed)]}
            return {
                "answer": answer(
                    said, "evidence", ranked, shown=found, text=UNPHRASED, answerable=None, confidence=0.0
                )
            }
        cited = [evidence_item(shown[n]) for n in dict.fromkeys(output.citations) if 0 <= n < len(shown)]
        return {
            "answer": answer(
                state,
                "extractive" if output.extractive else "answer",
                cited or (ranked if output.answerable else []),
                shown=found,
                text=output.answer,
                answerable=output.answerable,
                confidence=output.confidence,
            )
        }
