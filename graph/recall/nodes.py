"""The nodes of recall, in the order in which they run."""

from collections.abc import Sequence
from typing import Any, Literal

from memcycle.agents.answerability import AnswerabilityInput, AnswerabilityOutput
from memcycle.agents.answerer import AnswererInput, AnswererOutput
from memcycle.agents.judge import JudgeInput
from memcycle.agents.query_reasoner import QueryReasonerInput, QueryReasonerOutput
from memcycle.agents.retriever import RetrieverInput, RetrieverOutput
from memcycle.agents.verifier import VerifierInput, VerifierOutput
from memcycle.agents.views import TurnView
from memcycle.core.entry import is_older, same_source
from memcycle.core.errors import BadInput, RoleFailed, is_too_long
from memcycle.core.language import questions
from memcycle.core.language.names import person_names
from memcycle.core.language.questions import asked_slot, question_category
from memcycle.core.language.tokens import strip_names
from memcycle.core.messages import read_messages
from memcycle.core.theta import Theta
from memcycle.graph.approval import approved
from memcycle.graph.conflicts import propose
from memcycle.graph.environment import GraphRun
from memcycle.graph.guards import same_matter
from memcycle.graph.node import Step, faults_of
from memcycle.graph.recall.evidence import (
    Piece,
    answer_of,
    chronological,
    evidence,
    evidence_item,
    evidence_views,
    judge_candidates,
)
from memcycle.graph.search import (
    as_is,
    find,
    memory_views,
    mention,
    named,
    read_plans,
    read_verdict,
    recent,
    turn_views,
    unite,
)
from memcycle.graph.states import NO_GAP, UNJUDGED, Gap, Planned, RecallState, dumped, edits_of, fresh_recall

SPARE = 2
"""How many times K are looked up: a turn and its facts are shown once, and their places go to others."""

NOTHING = "I have nothing in memory about that."
UNPHRASED = "The evidence below was found, but it could not be phrased as an answer."


def listen(state: RecallState, run: GraphRun) -> dict[str, Any]:
    """Checks the question, takes out its secrets if the settings say so, starts a run's counts anew."""
    if not isinstance(state.get("question"), str) or not state["question"].strip():
        raise BadInput("recall needs a question: invoke it with {'question': 'some words'}")
    question = run.bank.redactor.text(state["question"])
    fresh = fresh_recall() | {"warnings": run.clamped, "hidden": _hidden(state, run)}
    return {**fresh, "question": question, "category": question_category(question)}


def _hidden(state: RecallState, run: GraphRun) -> list[str]:
    """Ids of what the reader sees anyway, and of earlier askings of the question: none is evidence for it."""
    settings, question = run.settings, state["question"]
    seen = read_messages(
        state.get("seen") or [], session=run.scope.session or "", now=run.now(), zone=settings.zone
    )
    asked = [question] if asked_slot(question) != "other" else []
    return run.bank.repeating(run.scope, [*asked, *(turn.text for turn in seen)], seen)


def plan(state: RecallState, run: GraphRun) -> Step:
    """The Retriever rewrites the question so that it stands alone, and routes it by intent.

    Where theta asks for that it also names the parts of the question. The names it names are noted: what
    holds them counts for more from the next maintenance on.
    """
    theta, items = _theta(state, run), [_item(state, run)]
    k = run.context.k or theta.k
    value = RetrieverInput(
        purpose="recall",
        items=items,
        window=_window(run, theta),
        parts=theta.decomposition.parts if theta.decomposition.on else 0,
        now=run.now(),
    )
    try:
        output: RetrieverOutput = yield from run.ask("retriever", value)
    except RoleFailed as failed:
        plans, parts, warnings = as_is(items, k), [], [*state["warnings"], str(failed)]
    else:
        warnings = list(state["warnings"])
        plans = read_plans(output, items, k, warnings)
        parts = _parts(output, value.parts, plans[0]["query"])
    known = [turn.speaker for turn in value.window] + [plan["speaker"] or "" for plan in plans]
    mention(run, state["question"], known)
    tried = [plan["query"] for plan in plans]
    return {"plans": plans, "parts": parts, "tried": tried, "warnings": warnings}


def decompose(state: RecallState, run: GraphRun) -> dict[str, Any]:
    """The question's parts are searched beside it (EvolveMem 3.2)."""
    whole, k = state["plans"][0], _theta(state, run).decomposition.k
    parts = [
        Planned(n=1, query=query, operator=whole["operator"], k=k, speaker=None, kept=k, part=True)
        for query in state["parts"]
    ]
    return {"plans": [{**whole, "part": True}, *parts], "tried": [*state["tried"], *state["parts"]]}


def swap(state: RecallState, run: GraphRun) -> dict[str, Any]:
    """Each query is searched without the names of persons too (EvolveMem's entity swap)."""
    swapping, speakers = _theta(state, run).swap, run.bank.speakers(run.scope)
    plans: list[Planned] = []
    for plan in state["plans"]:
        named = person_names(plan["query"], [*sorted(speakers), plan["speaker"] or ""])
        query = strip_names(plan["query"], named).strip(" ?")
        if not named or not any(letter.isalnum() for letter in query):
            plans.append(plan)
            continue
        kept = min(plan.get("kept", swapping.original), swapping.original)
        plans.append({**plan, "kept": kept})
        plans.append({**plan, "query": query, "speaker": None, "kept": swapping.swapped, "nameless": True})
    return {"plans": plans}


def search(state: RecallState, run: GraphRun) -> dict[str, Any]:
    """Searches memory for all queries at once; evidence of earlier rounds is kept."""
    theta, widened = _theta(state, run), state["round"] > 0
    told: list[str] = []
    found = find(
        run,
        state["plans"],
        theta=theta,
        widened=widened,
        spare=SPARE,
        exclude=state["hidden"],
        telling=True,
        warnings=told,
    )
    warnings = list(dict.fromkeys([*state["warnings"], *told]))
    return {"candidates": unite(state["candidates"], found), "warnings": warnings}


def judge(state: RecallState, run: GraphRun) -> Step:
    """The Judge's verdicts on the evidence; sees the short-term window W_t."""
    if not run.asks("judge"):
        return {"verdict": UNJUDGED}
    shown = judge_candidates(run, state)
    value = JudgeInput(
        purpose="recall",
        items=[_item(state, run)],
        queries=[plan["query"] for plan in state["plans"]],
        candidates=memory_views(shown),
        window=_window(run, _theta(state, run)),
        now=run.now(),
    )
    try:
        output = yield run.call("judge", value)
    except RoleFailed as failed:
        return {"verdict": UNJUDGED, "warnings": [*state["warnings"], str(failed)]}
    verdict, warnings = read_verdict(output, shown)
    known = {conflict["memory"] for conflict in verdict["conflicts"]} & set(state["outdated"])
    verdict["conflicts"] = [ref for ref in verdict["conflicts"] if ref["memory"] not in known]
    return {"verdict": verdict, "warnings": [*state["warnings"], *warnings]}


def settle(state: RecallState, run: GraphRun) -> dict[str, Any]:
    """A conflict is settled for this answer by event time, and queued for the next remember."""
    scope, bank = run.scope, run.bank
    old, warnings = list(state["outdated"]), list(state["warnings"])
    for ref in state["verdict"]["conflicts"]:
        found = {entry.id: entry for entry in bank.get(scope, [ref["memory"], ref["other"] or ""])}
        first, second = found.get(ref["memory"]), found.get(ref["other"] or "")
        if first is None or second is None or same_source(first, second):
            continue
        older, newer = (second, first) if is_older(second, first) else (first, second)
        if not same_matter(newer.text, newer.speaker, older):
            warnings.append(f"{older.id} and {newer.id} are no conflict: they speak of different matters")
            continue
        old.append(older.id)
        if not run.switches.recall_refresh:
            bank.queue_conflict(scope, older.id, newer.id, ref["why"])
    return {"outdated": list(dict.fromkeys(old)), "warnings": warnings}


def refresh(state: RecallState, run: GraphRun) -> Step:
    """By switch only: the Refresher proposes at once what the next remember would."""
    guarded = yield from propose(run, state["verdict"]["conflicts"], [])
    return {"edits": dumped(guarded.edits), "warnings": [*state["warnings"], *guarded.warnings]}


def approve_refresh(state: RecallState, run: GraphRun) -> dict[str, Any]:
    """A person lets the edits stand, changes or rejects them, where the settings ask for that."""
    found = approved(run, edits_of(state))
    refused = [f"{one['why']}: {one['text']}" for one in found.rejected]
    return {"edits": dumped(found.edits), "warnings": [*state["warnings"], *refused]}


def apply_refresh(state: RecallState, run: GraphRun) -> dict[str, Any]:
    """Writes what the guards let through."""
    run.bank.apply(run.scope, edits_of(state))
    return {"edits": []}


def think(state: RecallState, run: GraphRun) -> Step:
    """The Meta-Thinker: does a gap block the short answer? A failure ends the loop."""
    if not run.asks("answerability"):
        return {"gap": NO_GAP}
    value = AnswerabilityInput(
        question=state["question"],
        evidence=evidence_views(evidence(run, state)),
        window=_window(run, _theta(state, run)),
        tried=state["tried"],
        round=state["refinements"],
        now=run.now(),
    )
    try:
        output: AnswerabilityOutput = yield run.call("answerability", value)
    except RoleFailed as failed:
        return {"gap": NO_GAP, "warnings": [*state["warnings"], str(failed)]}
    return {"gap": output.model_dump(include=set(Gap.__annotations__))}


def reason(state: RecallState, run: GraphRun) -> Step:
    """The Query-Reasoner: one new query for the top gap; a repeat or a failure ends the loop."""
    gap = state["gap"]
    value = QueryReasonerInput(
        question=state["question"],
        gap=gap["gap"],
        tried=state["tried"],
        evidence=evidence_views(evidence(run, state)),
        avoid=gap["avoid"],
        speaker=gap["speaker"],
        needs_time=gap["needs_time"],
    )
    try:
        output = yield run.call("query_reasoner", value)
    except RoleFailed as failed:
        return {"plans": [], "warnings": [*state["warnings"], str(failed)]}
    return _further(state, run, output.query, output.speaker or gap["speaker"], rounds="refinements")


def present(state: RecallState, run: GraphRun) -> dict[str, Any]:
    """Retrieval only: the evidence, best first."""
    return {"answer": _without_words(state, evidence(run, state))}


def answer(state: RecallState, run: GraphRun) -> Step:
    """The Answerer, from chronological evidence; it cites what it rests on, or abstains.

    After a reflection the surer of the two answers stands.
    """
    theta, found = _theta(state, run), evidence(run, state)
    if not found:
        language = questions.question_language(state["question"])
        words = NOTHING if language == "en" else questions.NOTHING[language]
        return {"answer": answer_of(state, "answer", [], text=words, answerable=False, confidence=1.0)}
    ordered = chronological(run, found)
    value = AnswererInput(
        question=state["question"],
        evidence=evidence_views(ordered),
        window=_window(run, theta),
        style=theta.answer_style or run.settings.answer_style,
        now=run.now(),
    )
    draft = state["answer"] if state.get("reflections") else None
    try:
        while True:
            try:
                output: AnswererOutput = yield run.call("answerer", value)
                break
            except Exception as error:
                # The model takes less than theta believes: the better half of it, without the window.
                if not is_too_long(error):
                    raise
                if len(ordered) == 1:
                    raise RoleFailed("answerer", "the evidence is longer than the model takes") from error
                found = found[: len(found) // 2]
                ordered = chronological(run, found)
                value = value.model_copy(update={"evidence": evidence_views(ordered), "window": []})
    except RoleFailed as failed:
        unphrased = draft or _without_words(state, found) | {"answer": UNPHRASED, "confidence": 0.0}
        return {"answer": {**unphrased, "warnings": [*state["warnings"], str(failed)]}}
    made = _phrased(state, "answerer", output, found, ordered)
    gap = Gap(**NO_GAP) | {"answerable": output.answerable, "gap": output.look_for}
    return {"answer": made if draft is None else _surer(draft, made), "gap": gap}


def reflect(state: RecallState, run: GraphRun) -> Step:
    """After an unsure answer the Query-Reasoner asks once more, knowing that answer (EvolveMem 3.2)."""
    draft = state["answer"]
    if not run.asks("query_reasoner"):
        return _further(state, run, state["gap"]["gap"], None, rounds="reflections")
    gap = f"a surer answer than: {draft['answer']}" if draft["answerable"] else state["question"]
    value = QueryReasonerInput(question=state["question"], gap=gap, tried=state["tried"])
    try:
        output: QueryReasonerOutput = yield run.call("query_reasoner", value)
    except RoleFailed as failed:
        warnings = [*state["warnings"], str(failed)]
        return {"plans": [], "warnings": warnings, "answer": {**draft, "warnings": warnings}}
    return _further(state, run, output.query, output.speaker, rounds="reflections")


def verify(state: RecallState, run: GraphRun) -> Step:
    """The Verifier reads an unsure answer against the evidence; what it says stands (EvolveMem 3.2)."""
    theta, draft, found = _theta(state, run), state["answer"], evidence(run, state)
    ordered = chronological(run, found)
    value = VerifierInput(
        question=state["question"],
        answer=draft["answer"] or "",
        answerable=bool(draft["answerable"]),
        evidence=evidence_views(ordered),
        window=_window(run, theta),
        style=theta.answer_style or run.settings.answer_style,
        candidates=theta.verification == "multi_candidate",
        now=run.now(),
    )
    try:
        output: VerifierOutput = yield run.call("verifier", value)
    except RoleFailed as failed:
        return {"answer": {**draft, "warnings": [*state["warnings"], str(failed)]}}
    return {"answer": _phrased(state, "verifier", output, found, ordered)}


def _theta(state: RecallState, run: GraphRun) -> Theta:
    """Theta of this run, as it is for the category of its question."""
    return run.theta_of(state.get("category"))


def _item(state: RecallState, run: GraphRun) -> TurnView:
    """The question as a turn."""
    speaker = run.settings.user_name
    return TurnView(n=1, speaker=speaker, role="human", text=state["question"], time=run.now())


def _window(run: GraphRun, theta: Theta) -> list[TurnView]:
    """The short-term window W_t."""
    size = theta.window
    turns = run.bank.session_turns(run.scope, last=size) if size else []
    return turn_views(recent(turns, theta.extraction.tokens), first=2)


def _parts(output: RetrieverOutput, most: int, query: str) -> list[str]:
    """The sub-questions, at most so many, each once and none the question itself."""
    own = [part.strip() for plan in output.plans[:1] if plan.n == 1 for part in plan.parts]
    once = {part.casefold(): part for part in own if part and part.casefold() != query.casefold()}
    return list(once.values())[:most]


def _further(
    state: RecallState,
    run: GraphRun,
    query: str,
    speaker: str | None,
    *,
    rounds: Literal["refinements", "reflections"],
) -> dict[str, Any]:
    """One more query to search for, counted among its kind of rounds; none where it was asked before."""
    query = query.strip()
    if not query or query.casefold() in {tried.casefold() for tried in state["tried"]}:
        return {"plans": []}
    k, operator = run.context.k or _theta(state, run).k, state["plans"][0]["operator"]
    plan = Planned(n=1, query=query, operator=operator, k=k, speaker=speaker)
    return {"plans": [plan], "tried": [*state["tried"], query], rounds: state[rounds] + 1}


def _without_words(state: RecallState, found: Sequence[Piece]) -> dict[str, Any]:
    """The evidence in place of an answer."""
    items = [evidence_item(one) for one in found]
    return answer_of(state, "evidence", items, shown=found, text=None, answerable=None, confidence=None)


def _phrased(
    state: RecallState,
    role: str,
    output: AnswererOutput | VerifierOutput,
    found: Sequence[Piece],
    shown: Sequence[Piece],
) -> dict[str, Any]:
    """What a role answered, with what it cites.

    Args:
        found: The evidence, best first. shown: the same as the role was shown it.
    """
    warnings = list(state["warnings"])
    numbers = dict.fromkeys(output.citations)
    cited = [evidence_item(one) for n in numbers if (one := named(n, shown, "the answer", warnings))]
    ranked = [evidence_item(one) for one in found] if output.answerable else []
    told: RecallState = {
        **state,
        "warnings": warnings,
        "faults": [*(state.get("faults") or []), *faults_of(role, output)],
    }
    return answer_of(
        told,
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
