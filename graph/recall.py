"""recall: a question becomes evidence and an answer (AMA 3.2-3.3, MemMA retrieval). It never edits memory."""

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memcycle.agents.answerability import AnswerabilityInput, AnswerabilityOutput
from memcycle.agents.answerer import AnswererInput, AnswererOutput
from memcycle.agents.judge import JudgeInput
from memcycle.agents.query_reasoner import QueryReasonerInput, QueryReasonerOutput
from memcycle.agents.retriever import RetrieverInput, RetrieverOutput
from memcycle.agents.roles import Roles
from memcycle.agents.verifier import VerifierInput, VerifierOutput
from memcycle.agents.views import TurnView
from memcycle.core.edit import Edit
from memcycle.core.errors import BadInput, RoleFailed
from memcycle.core.language.names import person_names
from memcycle.core.language.questions import question_category
from memcycle.core.language.tokens import strip_names
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.theta import Switches, Theta
from memcycle.core.validity import is_older, same_source
from memcycle.graph.approval import approved
from memcycle.graph.conflicts import propose
from memcycle.graph.context import Context, ScopeOf, run_context
from memcycle.graph.environment import Env, make_env
from memcycle.graph.events import Route
from memcycle.graph.evidence import Shown, answer, chronological, evidence, evidence_item, judged, shown_views
from memcycle.graph.node import RouteOf, Step, inline, node
from memcycle.graph.routes import (
    after_answer,
    after_pass,
    after_plan,
    after_reason,
    after_reflect,
    after_search,
    after_think,
    before_search,
    judge_action,
    judge_reason,
)
from memcycle.graph.search import (
    PASS_UNJUDGED,
    as_is,
    find,
    memory_views,
    mention,
    read_plans,
    read_verdict,
    related,
    turn_views,
    unite,
)
from memcycle.graph.states import Gap, Planned, RecallInput, RecallOutput, RecallState

if TYPE_CHECKING:
    from memcycle.stores.bank import Bank

SPARE = 2
"""How many times K are looked up: a turn and its facts are shown once, and their places go to others."""


class Planning:
    """The nodes up to the candidates, over one environment."""

    def __init__(self, env: Env) -> None:
        self.env = env

    def theta(self, state: RecallState) -> Theta:
        """Theta of this run, as it is for the category of its question."""
        return self.env.theta_of(state.get("category"))

    def item(self, state: RecallState) -> TurnView:
        """The question as a turn."""
        name = self.env.settings.user_name
        return TurnView(n=1, speaker=name, role="human", text=state["question"], time=self.env.now())

    def window(self, scope: Scope, theta: Theta) -> list[TurnView]:
        """The short-term window W_t."""
        size = theta.window
        return turn_views(self.env.bank().session_turns(scope, last=size), first=2) if size else []

    def plan(self, state: RecallState, config: RunnableConfig) -> Step:
        """The Retriever rewrites the question so that it stands alone, and routes it by intent.

        Where theta asks for that it also names the parts of the question. The names it names are noted: what
        holds them counts for more from the next maintenance on.
        """
        scope, theta, items = self.env.scope(config), self.theta(state), [self.item(state)]
        k = run_context().k or theta.k
        value = RetrieverInput(
            purpose="recall",
            items=items,
            window=self.window(scope, theta),
            parts=theta.decomposition.parts if theta.decomposition.on else 0,
            now=self.env.now(),
        )
        try:
            output: RetrieverOutput = yield self.env.call("retriever", value)
        except RoleFailed as failed:
            plans, parts, warnings = as_is(items, k), [], [*state["warnings"], str(failed)]
        else:
            plans, warnings = read_plans(output, items, k), state["warnings"]
            parts = _parts(output, value.parts, plans[0]["query"])
        known = [turn.speaker for turn in value.window] + [plan["speaker"] or "" for plan in plans]
        mention(self.env, scope, state["question"], known)
        tried = [plan["query"] for plan in plans]
        return {"plans": plans, "parts": parts, "tried": tried, "warnings": warnings}

    def decompose(self, state: RecallState) -> dict[str, Any]:
        """The question's parts are searched beside it (EvolveMem 3.2)."""
        whole, k = state["plans"][0], self.theta(state).decomposition.k
        parts = [
            Planned(n=1, query=query, operator=whole["operator"], k=k, speaker=None, kept=k, part=True)
            for query in state["parts"]
        ]
        return {"plans": [{**whole, "part": True}, *parts], "tried": [*state["tried"], *state["parts"]]}

    def swap(self, state: RecallState, config: RunnableConfig) -> dict[str, Any]:
        """Each query is searched without the names of persons too (EvolveMem's entity swap)."""
        wanted, speakers = self.theta(state).swap, self.env.bank().speakers(self.env.scope(config))
        plans: list[Planned] = []
        for plan in state["plans"]:
            named = person_names(plan["query"], [*sorted(speakers), plan["speaker"] or ""])
            query = strip_names(plan["query"], named).strip(" ?")
            if not named or not any(letter.isalnum() for letter in query):
                plans.append(plan)
                continue
            kept = min(plan.get("kept", wanted.original), wanted.original)
            plans.append({**plan, "kept": kept})
            plans.append({**plan, "query": query, "speaker": None, "kept": wanted.swapped, "nameless": True})
        return {"plans": plans}

    def further(
        self,
        state: RecallState,
        query: str,
        speaker: str | None,
        *,
        rounds: Literal["refinements", "reflections"],
    ) -> dict[str, Any]:
        """One more query to search for, counted among its kind of rounds; none where it was asked before."""
        query = query.strip()
        if not query or query.casefold() in {tried.casefold() for tried in state["tried"]}:
            return {"plans": []}
        k, operator = run_context().k or self.theta(state).k, state["plans"][0]["operator"]
        plan = Planned(n=1, query=query, operator=operator, k=k, speaker=speaker)
        return {"plans": [plan], "tried": [*state["tried"], query], rounds: state[rounds] + 1}

    def search(self, state: RecallState, config: RunnableConfig) -> dict[str, Any]:
        """Searches memory for all queries at once; evidence of earlier rounds is kept."""
        widened = state["round"] > 0
        theta, scope = self.theta(state), self.env.scope(config)
        found = find(self.env, scope, state["plans"], theta=theta, widened=widened, spare=SPARE)
        return {"candidates": unite(state["candidates"], found)}

    def widen(self, state: RecallState, config: RunnableConfig) -> dict[str, Any]:
        """Retry: adds the turns the candidates refer to; the next search covers every granularity (AMA)."""
        more = related(self.env, self.env.scope(config), state["candidates"])
        return {"round": state["round"] + 1, "candidates": unite(state["candidates"], more)}


def _parts(output: RetrieverOutput, most: int, query: str) -> list[str]:
    """The sub-questions, at most so many, each once and none the question itself."""
    own = [part.strip() for plan in output.plans[:1] for part in plan.parts]
    once = {part.casefold(): part for part in own if part and part.casefold() != query.casefold()}
    return list(once.values())[:most]


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


def build_recall(
    roles: Roles | None = None,
    bank: "Bank | Callable[[], Bank] | None" = None,
    settings: Settings | None = None,
    *,
    scope: ScopeOf | None = None,
    version: str = "shipped",
) -> CompiledStateGraph[RecallState, Context, RecallInput, RecallOutput]:
    """The recall graph: a question in, `answer` and `usage` out.

    Args:
        roles: Defaults to the rules.
        bank: A bank, or a callable that opens one on first use; default the shared bank of `settings.home`.
        settings: Defaults to the bank's, else to the environment's.
        scope: Scope from a parent's context; default reads `Context`.
        version: Version of the pipeline, recorded on what it writes.
    """
    return recall_graph(make_env(roles, bank, settings, scope, version=version))


def recall_graph(env: Env) -> CompiledStateGraph[RecallState, Context, RecallInput, RecallOutput]:
    """The recall graph over an environment, its edges cut as the switches say."""
    nodes, ways, switches = Asking(env), _Ways(env), env.settings.switches
    builder = StateGraph(
        RecallState, context_schema=Context, input_schema=RecallInput, output_schema=RecallOutput
    )
    names = ["listen", "plan", "decompose", "swap", "search", "judge", "answer", "present", "verify"]
    names += ["widen", "think", "reason", "reflect"] if switches.iterative else []
    names += ["settle"] if switches.refresher else []
    names += ["refresh", "apply_refresh"] if switches.refresher and switches.recall_refresh else []
    names += ["approve_refresh"] if "refresh" in names and env.settings.approval.is_asked else []
    for name in names:
        builder.add_node(name, node(name, getattr(nodes, name), graph="recall", route=ways.told(name)))
    builder.add_edge(START, "listen")
    builder.add_edge("listen", "plan")
    _search_edges(builder, ways)
    _judge_edges(builder, env, ways)
    if switches.iterative:
        _refine_edges(builder, ways)
    _answer_edges(builder, env, ways)
    builder.add_edge("present", END)
    return builder.compile(name="recall")


Builder = StateGraph[RecallState, Context, RecallInput, RecallOutput]


_NEW_QUERY: dict[Hashable, str] = {"new query": "search", "new query, entity swap": "swap"}


class _Ways:
    """Where recall goes next: the routes with the theta of the run and the settings they depend on."""

    def __init__(self, env: Env) -> None:
        self._env, self._switches = env, env.settings.switches

    def _theta(self, state: RecallState) -> Theta:
        return self._env.theta_of(state.get("category"))

    def planned(self, state: RecallState) -> str:
        return after_plan(state, self._theta(state))

    def asked(self, state: RecallState) -> str:
        return before_search(self._theta(state))

    def found(self, state: RecallState) -> str:
        if after_search(state) == "no candidates":
            return "evidence only" if run_context().evidence_only else "no candidates"
        if state.get("reflections"):
            return "reflected"
        return "refined" if state["refinements"] else "candidates"

    def passed(self, state: RecallState) -> str:
        if run_context().evidence_only:
            return "evidence only"
        switches = self._switches
        return after_pass(state, always_think=switches.always_think, iterative=switches.iterative)

    def action(self, state: RecallState) -> str:
        chosen = judge_action(state, *self._judging(state))
        return self.passed(state) if chosen == "Pass" else chosen

    def thought(self, state: RecallState) -> str:
        return after_think(state, self._theta(state).h)

    def reasoned(self, state: RecallState) -> str:
        return after_reason(state, self._theta(state))

    def answered(self, state: RecallState) -> str:
        return after_answer(state, self._theta(state), iterative=self._switches.iterative)

    def reflected(self, state: RecallState) -> str:
        return after_reflect(state, self._theta(state))

    def told(self, name: str) -> RouteOf | None:
        """For the nodes whose choice of an edge is streamed: the edge and the reason."""
        return {"judge": self._judged, "think": lambda state: Route(self.thought(state))}.get(name)

    def _judging(self, state: RecallState) -> tuple[Theta, Switches, int]:
        theta = self._theta(state)
        return theta, self._switches, self._env.retries(theta)

    def _judged(self, state: RecallState) -> Route:
        return Route(self.action(state), judge_reason(state, *self._judging(state)))


def _search_edges(builder: Builder, ways: _Ways) -> None:
    """From the plan to the search, by the parts of the question and by the query without names."""
    asked: dict[Hashable, str] = {"entity swap": "swap", "as asked": "search"}
    builder.add_conditional_edges("plan", inline(ways.planned), {"sub-questions": "decompose", **asked})
    builder.add_conditional_edges("decompose", inline(ways.asked), asked)
    builder.add_edge("swap", "search")


def _judge_edges(builder: Builder, env: Env, ways: _Ways) -> None:
    """From search to the Judge, and from its three actions on."""
    switches = env.settings.switches
    ends: dict[Hashable, str] = {"evidence only": "present", "Pass: sufficient": "answer"}
    searched: dict[Hashable, str] = {
        "candidates": "judge",
        "no candidates": "answer",
        "evidence only": "present",
    }
    actions: dict[Hashable, str] = {}
    if switches.iterative:
        ends["Pass: uncertain"] = "think"
        searched["refined"] = "think"
        searched["reflected"] = "answer"
        actions["Retry"] = "widen"
    if switches.refresher:
        actions["Refresh"] = "settle"
        builder.add_conditional_edges(_settled(builder, env), inline(ways.passed), ends)
    builder.add_conditional_edges("search", inline(ways.found), searched)
    builder.add_conditional_edges("judge", inline(ways.action), {**ends, **actions})


def _settled(builder: Builder, env: Env) -> str:
    """The last node of the Refresh edge: conflicts are only settled, or by switch refreshed at once."""
    if not env.settings.switches.recall_refresh:
        return "settle"
    builder.add_edge("settle", "refresh")
    if env.settings.approval.is_asked:
        builder.add_edge("refresh", "approve_refresh")
        builder.add_edge("approve_refresh", "apply_refresh")
    else:
        builder.add_edge("refresh", "apply_refresh")
    return "apply_refresh"


def _refine_edges(builder: Builder, ways: _Ways) -> None:
    """Retry's widening, and the loop of Meta-Thinker and Query-Reasoner."""
    builder.add_edge("widen", "search")
    builder.add_conditional_edges(
        "think", inline(ways.thought), {"answerable": "answer", "not answerable": "reason"}
    )
    builder.add_conditional_edges("reason", inline(ways.reasoned), {**_NEW_QUERY, "nothing left": "answer"})


def _answer_edges(builder: Builder, env: Env, ways: _Ways) -> None:
    """From an answer to the end, or to a further search and a second look where it is unsure."""
    ends: dict[Hashable, str] = {"settled": END, "unsure: verify": "verify"}
    if env.settings.switches.iterative:
        builder.add_conditional_edges("answer", inline(ways.answered), {**ends, "unsure: reflect": "reflect"})
        builder.add_conditional_edges("reflect", inline(ways.reflected), {**_NEW_QUERY, **ends})
    else:
        builder.add_conditional_edges("answer", inline(ways.answered), ends)
    builder.add_edge("verify", END)
