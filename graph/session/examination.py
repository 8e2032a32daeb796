"""The nodes of session that examine memory: probe, look up, examine, grade (MemMA 3.4)."""

from collections.abc import Sequence
from typing import Any

from memcycle.agents.answerer import AnswererInput, AnswererOutput
from memcycle.agents.grader import Grade, GradeItem, GraderInput, GraderOutput
from memcycle.agents.prober import ProbeDraft, ProberInput, ProberOutput
from memcycle.agents.roles import run_rules
from memcycle.agents.views import MemoryView
from memcycle.core.entry import GRANULARITIES, Entry, same_text
from memcycle.core.errors import RoleFailed
from memcycle.core.language.tokens import approx_tokens, content_stems, tokenize
from memcycle.core.probe import Attempt, Probe, probe_id
from memcycle.core.turn import Turn
from memcycle.graph.environment import GraphRun
from memcycle.graph.guards import support
from memcycle.graph.node import Step
from memcycle.graph.search import fitting, look_for, memory_views, named, of_shown, turn_views
from memcycle.graph.states import ProbeState, SessionState

EARLIER, LOOKED_FROM = 10, 3
"""Entries of earlier sessions that the Prober is shown for cross-session probes, and how many turns, the
longest first, they are looked for from."""

TOPIC_WORDS = 8

FORGOTTEN = "what it was examined by was forgotten meanwhile"


def probe(state: SessionState, run: GraphRun) -> Step:
    """The Prober asks about the session's turns; it never sees what was stored of them."""
    scope, bank, settings = run.scope, run.bank, run.settings.verification
    turns = spread(bank.part_turns(scope, state["until"]), settings.turn_tokens, settings.probes)
    if not any(turn.is_evidence for turn in turns):
        bank.save_probes(scope, [], replace_part=state["part"], seq=state["seq"])
        return {"probes": [], "asked": []}
    earlier = _earlier(run, turns)
    value = ProberInput(
        turns=turn_views(turns),
        memories=memory_views(earlier),
        count=settings.probes,
        now=run.now(),
    )
    try:
        output: ProberOutput = yield run.call("prober", value)
    except RoleFailed as failed:
        bank.save_probes(scope, [], replace_part=state["part"], seq=state["seq"])
        return {"probes": [], "asked": [], "unverified": failed.brief, "warnings": [str(failed)]}
    drafts, warnings = acceptable(output.probes, turns, settings.probes)
    probes = [
        Probe(
            id=probe_id(scope, state["seq"], state["part"], n),
            session=str(scope.session),
            part=state["part"],
            n=n,
            kind=draft.kind,
            question=draft.question.strip(),
            gold=draft.answer.strip(),
            turn=turn.id,
            memories=tuple(entry.id for entry in earlier),
        )
        for n, (draft, turn) in enumerate(drafts, 1)
    ]
    ids = [turn.id for turn in turns]
    if not bank.save_probes(scope, probes, replace_part=state["part"], shown=ids, seq=state["seq"]):
        return {"probes": [], "asked": [], "unverified": FORGOTTEN, "warnings": warnings}
    names = [probe.id for probe in probes]
    return {"probes": names, "asked": names, "warnings": warnings}


def _earlier(run: GraphRun, turns: Sequence[Turn]) -> list[Entry]:
    """Facts and episodes of other sessions that speak of what this one speaks of: one search."""
    queries = sorted((turn for turn in turns if turn.is_evidence), key=lambda turn: -len(turn.text))
    results = look_for(run, map(_topic, queries[:LOOKED_FROM]), ("fact", "episode"), EARLIER, run.scope.base)
    found = sorted(
        (hit for hits in results for hit in hits if hit.entry.scope.session != run.scope.session),
        key=lambda hit: (-hit.score, hit.entry.id),
    )
    return list({hit.entry.id: hit.entry for hit in found}.values())[:EARLIER]


def look_up(state: SessionState, run: GraphRun) -> dict[str, Any]:
    """One search for all probes, over facts and episodes.

    After repair only those are asked again whose evidence now holds something a repair wrote: the others
    would be answered from what they were answered from before.
    """
    probes = probes_of(state, run)
    if not probes:
        return {"found": {}, "asked": []}
    settings = run.settings.verification
    wanted = run.granularities(GRANULARITIES if settings.raw else ("fact", "episode"))
    results = look_for(run, (probe.question for probe in probes), wanted, settings.k)
    found = {probe.id: [hit.entry.id for hit in hits] for probe, hits in zip(probes, results, strict=True)}
    written = set(state.get("written") or [])
    again = [name for name, entries in found.items() if not state["round"] or written & set(entries)]
    return {"found": {name: found[name] for name in again}, "asked": again}


def examine(state: ProbeState, run: GraphRun) -> Step:
    """The Answerer answers probes, each from what was found for it."""
    held = [(probe, _evidence(run, state["found"][probe.id])) for probe in probes_of(state, run)]
    asked = [(probe, evidence) for probe, evidence in held if evidence]
    replies = yield [
        run.call(
            "answerer",
            AnswererInput(
                question=probe.question,
                evidence=_views(evidence, state["found"][probe.id]),
                style="sentence",
                now=run.now(),
            ),
            # Nobody waits for this answer: without it the probe is ungraded, and the session ends.
            optional=True,
        )
        for probe, evidence in asked
    ]
    attempts = {
        probe.id: Attempt(evidence=tuple(entry.id for entry in evidence), abstained=True)
        for probe, evidence in held
    }
    warnings = list(dict.fromkeys(str(reply) for reply in replies if isinstance(reply, RoleFailed)))
    for (probe, evidence), reply in zip(asked, replies, strict=True):
        said = _answered(reply, evidence, warnings)
        attempts[probe.id] = attempts[probe.id].model_copy(update=said)
    moment = "after" if state["round"] else "before"
    run.bank.update_probes(run.scope, {name: {moment: attempt} for name, attempt in attempts.items()})
    return {"answered": list(attempts), "warnings": warnings}


def _evidence(run: GraphRun, found: Sequence[str]) -> list[Entry]:
    """What a probe is answered from, in order of time; where calls are shared, the best within a budget."""
    entries = run.bank.get(run.scope, found)
    if run.is_lean("answerer"):
        tokens = run.settings.verification.tokens
        entries = fitting(entries, tokens, lambda entry: approx_tokens(entry.text))
    return sorted(entries, key=lambda entry: (str(entry.observed_at), entry.id))


def _views(evidence: Sequence[Entry], found: Sequence[str]) -> list[MemoryView]:
    places = {name: place for place, name in enumerate(found, 1)}
    return [MemoryView.of(n, entry, score=1 / places[entry.id]) for n, entry in enumerate(evidence)]


def _answered(
    reply: AnswererOutput | RoleFailed, evidence: Sequence[Entry], warnings: list[str]
) -> dict[str, Any]:
    if isinstance(reply, RoleFailed):
        return {"abstained": False, "why": reply.brief}
    numbers = dict.fromkeys(reply.citations)
    cited = [one.id for n in numbers if (one := named(n, evidence, "an answer to a probe", warnings))]
    return {"answer": reply.answer, "abstained": not reply.answerable, "cited": tuple(cited)}


def grade(state: SessionState, run: GraphRun) -> Step:
    """The Grader compares answers with gold answers, all in one call; an abstention needs none."""
    moment, own = "after" if state["round"] else "before", set(state["asked"])
    probes = [one for one in probes_of(state, run) if one.id in own and getattr(one, moment)]
    attempts: list[Attempt] = [getattr(probe, moment) for probe in probes]
    items = [
        GradeItem(n=n, question=probe.question, gold=probe.gold, answer=attempt.answer)
        for n, (probe, attempt) in enumerate(zip(probes, attempts, strict=True), 1)
        if not attempt.abstained and not attempt.why
    ]
    grades, warnings, missing = dict[int, Grade](), list[str](), "the Grader left it out"
    if run.is_lean("grader"):
        # Where gold and answer plainly agree no model is asked.
        plain: GraderOutput = run_rules("grader", GraderInput(items=items))
        grades = {grade.n: grade for grade in plain.grades if grade.correct}
    if doubtful := [item for item in items if item.n not in grades]:
        try:
            output: GraderOutput = yield run.call("grader", GraderInput(items=doubtful))
        except RoleFailed as failed:
            warnings, missing = [str(failed)], failed.brief
        else:
            numbers = [item.n for item in doubtful]
            grades |= of_shown(output.grades, numbers, "the Grader graded", warnings)
    graded = [_graded(attempt, grades.get(n), missing) for n, attempt in enumerate(attempts, 1)]
    changes = {probe.id: {moment: attempt} for probe, attempt in zip(probes, graded, strict=True)}
    run.bank.update_probes(run.scope, changes)
    verdicts = [(probe.id, attempt.verdict) for probe, attempt in zip(probes, graded, strict=True)]
    ungraded = next((attempt.why for attempt in graded if attempt.verdict == "ungraded"), "")
    return {
        "passed": [name for name, verdict in verdicts if verdict == "passed"],
        "failed": [name for name, verdict in verdicts if verdict == "failed"],
        "unverified": state["unverified"] or ungraded,
        "warnings": warnings,
    }


def probes_of(state: SessionState | ProbeState, run: GraphRun) -> list[Probe]:
    """The probes of this run, or of one node among several, in order; not those forgotten meanwhile."""
    own = set(state["probes"])
    found = run.bank.probes(run.scope, part=state["part"]) if own else []
    return [probe for probe in found if probe.id in own]


def _graded(attempt: Attempt, grade: Grade | None, missing: str) -> Attempt:
    """The attempt with its verdict; ungraded, with the reason, where a role failed."""
    told = {"why": attempt.why or missing}
    if attempt.abstained:
        told = {"verdict": "failed", "why": "memory does not hold it"}
    elif grade is not None:
        told = {"verdict": "passed" if grade.correct else "failed", "why": grade.why}
    return attempt.model_copy(update=told)


def _topic(turn: Turn) -> str:
    """The longest words of a turn: what it is about, in few enough words to be looked up at any size."""
    words = dict.fromkeys(tokenize(turn.text))
    return " ".join(sorted(words, key=lambda word: (-len(word), word))[:TOPIC_WORDS])


def spread(turns: Sequence[Turn], budget: int, parts: int) -> list[Turn]:
    """Turns within a budget of tokens: all of them, else as many from each of `parts` stretches in turn."""
    if sum(approx_tokens(turn.text) for turn in turns) <= budget:
        return list(turns)
    size = -(-len(turns) // parts)
    chosen: list[Turn] = []
    for start in range(0, len(turns), size):
        left = budget / parts
        for turn in turns[start : start + size]:
            left -= approx_tokens(turn.text)
            if left < 0:
                break
            chosen.append(turn)
    return chosen or list(turns[:1])


def acceptable(
    drafts: Sequence[ProbeDraft], turns: Sequence[Turn], most: int
) -> tuple[list[tuple[ProbeDraft, Turn]], list[str]]:
    """The drafts that can be probes, each with its turn; and why the others cannot, in words.

    A probe rests on a turn a person said: what an assistant or a tool said is no evidence and is not stored
    as facts. Its answer shares words with that turn (a date need not) and does not stand in the question.
    """
    accepted: list[tuple[ProbeDraft, Turn]] = []
    refused: list[str] = []
    questions: set[str] = set()
    for draft in drafts:
        turn = turns[draft.turn - 1] if 0 < draft.turn <= len(turns) else None
        why = _flaw(draft, turn) or ("it is asked twice" if same_text(draft.question) in questions else "")
        if why or turn is None:
            refused.append(f"a probe was left out, since {why}")
        elif len(accepted) < most:
            questions.add(same_text(draft.question))
            accepted.append((draft, turn))
    return accepted, refused


def _flaw(draft: ProbeDraft, turn: Turn | None) -> str:
    if turn is None:
        return f"it cites turn {draft.turn}, which was not shown"
    if not turn.is_evidence:
        return f"its turn {turn.id} is {turn.role} text"
    if not draft.question.strip() or not draft.answer.strip():
        return "question or answer is blank"
    stems = set(content_stems(draft.answer))
    if stems and stems <= set(content_stems(draft.question)):
        return "its question gives the answer away"
    if draft.kind != "temporal" and stems and support(draft.answer, turn) == 0:
        return f"turn {turn.id} does not say so"
    return ""
