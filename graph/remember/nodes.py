"""The nodes of remember, in the order in which they run."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from memcycle.agents.constructor import ConstructorInput, FactDraft
from memcycle.agents.episode_trigger import Boundary, EpisodeTriggerInput
from memcycle.agents.fact_judge import FactJudgeOutput
from memcycle.agents.guide import GuideInput, GuideOutput
from memcycle.agents.judge import JudgeInput
from memcycle.agents.retriever import RetrieverInput
from memcycle.agents.roles import run_rules
from memcycle.core.entry import Entry, departure, same_text
from memcycle.core.errors import KEPT, RoleFailed, StoreError
from memcycle.core.theta import Extraction
from memcycle.core.turn import Turn
from memcycle.graph.approval import approved
from memcycle.graph.conflicts import propose
from memcycle.graph.environment import GraphRun
from memcycle.graph.episodes import cut, tell, write
from memcycle.graph.facts import Outcome, decide, fact_judge_input, ground, with_nearest
from memcycle.graph.forgetting import ASKED, DONE, NOT_ALLOWED, echoes_in, settle
from memcycle.graph.guards import missing_words, uncovered
from memcycle.graph.node import Step
from memcycle.graph.remember.chunk import (
    choose_chunk,
    chunk,
    cut_to_size,
    given_turns,
    is_open,
    memories,
    window,
)
from memcycle.graph.remember.extraction import ONCE, read, read_again
from memcycle.graph.search import (
    as_is,
    find,
    memory_views,
    named,
    of_shown,
    read_plans,
    read_verdict,
    turn_views,
    unite,
)
from memcycle.graph.states import (
    UNJUDGED,
    ConflictRef,
    RememberState,
    added,
    dumped,
    edits_of,
    fresh_chunk,
    fresh_remember,
    refusals,
)

HELD = 3
"""How many full windows of turns wait at most for their episodes to be written."""


def stage(state: RememberState, run: GraphRun) -> dict[str, Any]:
    """Writes the raw turns, before any model is asked; starts a run's counts anew.

    The chunk is what is new, and what an earlier run left waiting before it, as far as it is read at once.
    """
    scope, bank = run.scope, run.bank
    given = given_turns(state, run)
    stored = bank.stage_turns(scope, given)
    if echoes := echoes_in(given, stored):
        bank.forget_turns(scope, echoes)
        stored = [turn for turn in stored if turn.message_id not in {one.message_id for one in echoes}]
    fresh = fresh_remember()
    fresh["seq"] = bank.session_seq(scope)  # before anything is read that a role is shown
    waiting = bank.unprocessed(scope)
    if stored and is_open(run, waiting, stored):
        told = {"turns": [turn.id for turn in stored], "waiting": len(waiting)}
        return {**fresh, **_nothing_left(run, fresh["result"] | told)}
    states = bank.turn_states(scope, [turn.id for turn in waiting])
    part = _next_chunk(run, choose_chunk(run, waiting, stored, states), fresh["result"])
    return {**fresh, **part, "extracted": all(states[name] == "extracted" for name in part["chunk"])}


def _next_chunk(run: GraphRun, turns: Sequence[Turn], result: dict[str, Any]) -> dict[str, Any]:
    """What is read next of turns that wait, and what is left for later. Rules take any number."""
    if not turns:
        return _nothing_left(run, result)
    by_rules = run.env.roles.by_rules("constructor")
    size = len(turns) if by_rules else len(cut_to_size(turns, run.theta.extraction.tokens))
    names = [turn.id for turn in turns]
    return fresh_chunk(names[:size], names[size:], result)


def _nothing_left(run: GraphRun, result: dict[str, Any]) -> dict[str, Any]:
    """Nothing is read next; whether another session is to be ended is looked at once, which costs less than
    a run of its graph."""
    return fresh_chunk([], [], result) | {"idle": run.idle_session(run.bank.idle) is not None}


def let_go(state: RememberState, run: GraphRun) -> str:
    """A run that failed has its turns in hand no more: the next one reads them, given again or not."""
    with suppress(StoreError):  # then they are read when their session ends
        states = run.bank.turn_states(run.scope, state["chunk"])
        mine = [name for name, how_far in states.items() if how_far == "staged"]
        run.bank.apply(run.scope, [], turns=mine, state="unextracted", seq=state["seq"])
    return KEPT


def plan(state: RememberState, run: GraphRun) -> Step:
    """The Retriever plans a search for each turn of the chunk, in one call."""
    turns = chunk(state, run)
    items = turn_views([turn for turn in turns if turn.is_evidence])
    if not items or run.bank.is_empty(run.scope):
        return {"plans": []}
    value = RetrieverInput(
        purpose="remember",
        items=items,
        window=turn_views(window(run, turns), first=len(items) + 1),
        now=run.now(),
    )
    try:
        output = yield from run.ask("retriever", value)
    except RoleFailed as failed:
        return {"plans": as_is(items, run.theta.k_m), "warnings": [*state["warnings"], str(failed)]}
    warnings = list(state["warnings"])
    return {"plans": read_plans(output, items, run.theta.k_m, warnings), "warnings": warnings}


def search(state: RememberState, run: GraphRun) -> dict[str, Any]:
    """Searches memory for all turns at once, the run's own unread turns left out."""
    own = [entry.id for entry in run.bank.raw_entries(run.scope, [*state["chunk"], *state["left"]])]
    found = find(run, state["plans"], widened=state["round"] > 0, exclude=own)
    return {"candidates": unite(state["candidates"], found)[: run.theta.k]}


def judge(state: RememberState, run: GraphRun) -> Step:
    """The Judge's verdicts on the candidates; conflicts that recall queued are added to its own."""
    if not run.asks("judge"):
        return {"verdict": UNJUDGED}
    turns, shown = chunk(state, run), memories(state, run)
    value = JudgeInput(
        purpose="remember",
        items=turn_views(turns),
        queries=[plan["query"] for plan in state["plans"]],
        candidates=memory_views(shown),
        now=run.now(),
    )
    try:
        output = yield run.call("judge", value)
    except RoleFailed as failed:
        return {"verdict": UNJUDGED, "warnings": [*state["warnings"], str(failed)]}
    verdict, warnings = read_verdict(output, shown, turns)
    queued = [
        ConflictRef(memory=a, turn=None, other=b, why=why) for a, b, why in run.bank.conflicts(run.scope)
    ]
    verdict["conflicts"] = [*verdict["conflicts"], *queued]
    return {"verdict": verdict, "warnings": [*state["warnings"], *warnings]}


def refresh(state: RememberState, run: GraphRun) -> Step:
    """The Refresher proposes; the guards decide what becomes an edit."""
    guarded = yield from propose(run, state["verdict"]["conflicts"], chunk(state, run))
    return {
        "edits": dumped(guarded.edits),
        "supersede": guarded.supersede,
        "warnings": [*state["warnings"], *guarded.warnings],
        "result": _more(state, rejected=refusals(guarded.rejected)),
    }


def approve(state: RememberState, run: GraphRun) -> dict[str, Any]:
    """A person lets the edits stand, changes or rejects them, where the settings ask for that."""
    edits = edits_of(state)
    found = approved(run, edits)
    left = {edit.target for edit in found.edits}
    told = [NOT_ALLOWED for edit in edits if edit.asked_in and edit.target not in left]
    return {
        "edits": dumped(found.edits),
        "result": _more(state, rejected=found.rejected, forgetting=told),
    }


def apply_refresh(state: RememberState, run: GraphRun) -> dict[str, Any]:
    """Writes what the guards let through; conflicts that recall had queued are settled with that."""
    applied = run.bank.apply(run.scope, edits_of(state), seq=state["seq"])
    refs = state["verdict"]["conflicts"]
    run.bank.settle_conflicts(run.scope, [(ref["memory"], ref["other"]) for ref in refs if ref["other"]])
    successors = [{"id": name, "score": 1.0, "why": []} for name in applied.updated]
    return {
        "edits": [],
        "candidates": [*successors, *state["candidates"]],
        "result": _more(
            state, refreshed=[*applied.superseded, *applied.deleted], rejected=refusals(applied.rejected)
        ),
    }


def guide(state: RememberState, run: GraphRun) -> Step:
    """The Meta-Thinker says what to keep, what is known, what conflicts (MemMA construction)."""
    if not run.asks("guide"):
        return {"guidance": {}}
    value = GuideInput(
        turns=turn_views(chunk(state, run)), memories=memory_views(memories(state, run)), now=run.now()
    )
    try:
        output: GuideOutput = yield run.call("guide", value)
    except RoleFailed as failed:
        return {"guidance": {}, "warnings": [*state["warnings"], str(failed)]}
    return {"guidance": output.model_dump()}


def construct(state: RememberState, run: GraphRun) -> Step:
    """The Constructor reads the chunk; turns that cannot be read wait for the next run.

    In bulk import it is guarded, and the turns of which facts hold too little are named.
    """
    how, turns = _extraction(run), chunk(state, run)
    value = _reading(state, run, turns)
    done = yield from read(run, value, how)
    texts = [*(fact.text for fact in done.facts), *(memory.text for memory in value.memories)]
    unread = {turns[n - 1].id for n in done.unread}
    missed = uncovered(turns, texts, how.coverage)
    return {
        "drafts": [fact.model_dump(mode="json") for fact in done.facts],
        "warnings": [*state["warnings"], *done.warnings],
        "result": _more(
            state,
            unextracted=[turn.id for turn in turns if turn.id in unread],
            uncovered=[turn.id for turn in missed if turn.id not in unread],
        ),
    }


def reextract(state: RememberState, run: GraphRun) -> Step:
    """Turns of which facts hold too little are read once more, by themselves (EvolveMem 3.1)."""
    how, turns, result = _extraction(run), chunk(state, run), state["result"]
    value = _reading(state, run, turns)
    known = [FactDraft.model_validate(draft) for draft in state["drafts"]]
    texts = [*(fact.text for fact in known), *(memory.text for memory in value.memories)]
    aimed = {n: turn for n, turn in enumerate(turns, 1) if turn.id in set(result["uncovered"])}
    missing = {n: missing_words(turn, texts) for n, turn in aimed.items()}
    done = yield from read_again(run, value, missing, how)
    stated = {same_text(fact.text) for fact in known}
    new = [fact for fact in done.facts if fact.turn in aimed and same_text(fact.text) not in stated]
    missed = uncovered(turns, [*texts, *(fact.text for fact in new)], how.coverage)
    left = {turn.id for turn in missed} & set(result["uncovered"])
    return {
        "drafts": [*state["drafts"], *(fact.model_dump(mode="json") for fact in new)],
        "warnings": [*state["warnings"], *done.warnings],
        "result": {
            **result,
            "reextracted": [*result["reextracted"], *(turn.id for turn in aimed.values())],
            "uncovered": [name for name in result["uncovered"] if name in left or name not in state["chunk"]],
        },
    }


def check(state: RememberState, run: GraphRun) -> Step:
    """Each new fact against its turn and its nearest stored facts, and what becomes of it."""
    turns = chunk(state, run)
    numbered = dict(enumerate([*turns, *window(run, turns)], 1))
    outcome = Outcome(warnings=list(state["warnings"]))
    drafts = [FactDraft.model_validate(draft) for draft in state["drafts"]]
    asked = settle(run, turns, drafts, _pointed_at(state, run, turns, drafts, outcome))
    grounded = with_nearest(run, ground(asked.drafts, numbered, turns, outcome), outcome)
    value, verdicts = fact_judge_input(run, grounded, state["supersede"], numbered.values()), {}
    if value.facts:
        try:
            output: FactJudgeOutput = yield run.call("fact_judge", value)
        except RoleFailed as failed:
            outcome.warnings.append(f"facts stored unjudged: {failed}")
        else:
            shown = [fact.n for fact in value.facts]
            verdicts = of_shown(output.verdicts, shown, "the fact check judged", outcome.warnings)
    waiting = [
        (ref["turn"], entry)
        for ref in state["supersede"]
        if ref["turn"]
        for entry in run.bank.get(run.scope, [ref["memory"]])
        if ref["turn"] not in {edit.asked_in for edit in asked.edits}
    ]
    decide(run, grounded, verdicts, shown=memories(state, run), waiting=waiting, outcome=outcome)
    unread = set(state["chunk"] if outcome.unread else []) - set(state["result"]["unextracted"])
    return {
        "drafts": [],
        # What rests on the turn of a request is written before the request is erased.
        "edits": dumped([*outcome.edits, *asked.edits]),
        "warnings": outcome.warnings,
        "result": _more(
            state,
            rejected=refusals(outcome.rejected),
            forgetting=asked.told,
            unextracted=[name for name in state["chunk"] if name in unread],
        ),
    }


def _pointed_at(
    state: RememberState, run: GraphRun, turns: Sequence[Turn], drafts: Sequence[FactDraft], outcome: Outcome
) -> dict[str, list[Entry]]:
    """By turn, the memories that Refresher and Constructor named as what it asks to forget."""
    shown, found = memories(state, run), dict[str, list[Entry]]()
    for ref in state["supersede"]:
        if ref["turn"]:
            found.setdefault(ref["turn"], []).extend(run.bank.get(run.scope, [ref["memory"]]))
    for draft in drafts:
        if draft.edit == "DELETE" and 0 < draft.turn <= len(turns):
            who = f"the Constructor, of {draft.text!r},"
            target = named(draft.target, shown, who, outcome.warnings)
            found.setdefault(turns[draft.turn - 1].id, []).extend([target] if target else [])
    return found


def apply(state: RememberState, run: GraphRun) -> dict[str, Any]:
    """Writes the edits and marks the turns that were read, in one transaction; the others wait."""
    edits, seq = edits_of(state), state["seq"]
    applied = run.bank.apply(run.scope, edits, turns=_read_turns(state), state="extracted", seq=seq)
    unread = [name for name in state["chunk"] if name in set(state["result"]["unextracted"])]
    if unread:
        run.bank.apply(run.scope, [], turns=unread, state="unextracted", seq=seq)
    # Two turns may say the same: that is one entry.
    facts, known = dict.fromkeys([*added(applied, edits), *applied.updated]), state["result"]["facts"]
    done = [edit for edit in edits if edit.reason.startswith(ASKED) and edit.target in applied.deleted]
    return {
        "edits": [],
        "result": _more(
            state,
            refreshed=[*applied.superseded, *applied.deleted],
            rejected=refusals(applied.rejected),
            facts=[name for name in facts if name not in known],
            forgetting=[DONE for _ in done],
        ),
    }


def trigger(state: RememberState, run: GraphRun) -> Step:
    """Whether an episode ends in this chunk: topic shift, request, gap, or a saturated window."""
    # The turns since the last episode, without those that this run has yet to read.
    own, left = set(state["chunk"]), set(state["left"])
    segment = [turn for turn in run.bank.open_segment(run.scope) if turn.id not in left]
    new = sum(turn.id in own for turn in segment)
    if run.is_lean("episode_writer"):
        # Written when the session ends, all in one call; before that only what outgrows one.
        segment = segment if len(segment) >= HELD * run.theta.saturation_turns else []
        new = len(segment)
    value, warnings = EpisodeTriggerInput(turns=turn_views(segment), new=new), list[str]()
    boundaries: Sequence[Boundary] = ()
    # Where the rules see no reason to split, and nothing is saturated, no model is asked.
    if new and run_rules("episode_trigger", value).boundaries:
        try:
            boundaries = (yield from run.ask("episode_trigger", value)).boundaries
        except RoleFailed as failed:
            warnings = [f"episode trigger not asked: {failed}"]
        ends = [one.after for one in boundaries if not 0 < one.after <= len(segment)]
        warnings += [f"the Episode trigger ended an episode with turn {n}, which was not shown" for n in ends]
    finished, broken = cut(segment, boundaries, run.theta), _broken_episodes(run, state["chunk"])
    return {
        "episodes": [{"turns": [turn.id for turn in turns]} for turns in finished] + broken,
        "close_at": finished[-1][-1].position if finished else None,
        "warnings": [*state["warnings"], *warnings],
    }


def write_episode(state: RememberState, run: GraphRun) -> Step:
    """The Episode writer summarises each finished episode; extraction where it fails."""
    found = [run.bank.turns(run.scope, episode["turns"]) for episode in state["episodes"]]
    episodes = [turns for turns in found if tell(turns)]  # what was forgotten meanwhile is not there
    edits, warnings = yield from write(run, episodes)
    return {"edits": edits, "warnings": [*state["warnings"], *warnings]}


def finish(state: RememberState, run: GraphRun) -> dict[str, Any]:
    """Writes the episodes and marks the chunk done, in one transaction; then the next chunk begins, if turns
    are left that nobody read meanwhile."""
    edits = edits_of(state)
    applied = run.bank.apply(
        run.scope,
        edits,
        turns=_read_turns(state),
        state="processed",
        close_segment_at=state["close_at"],
        seq=state["seq"],
    )
    done = _more(
        state,
        rejected=refusals(applied.rejected),
        episodes=added(applied, edits),
        warnings=[*state["warnings"], *state["faults"]],
    )
    states = run.bank.turn_states(run.scope, state["left"])
    left = [name for name in state["left"] if states.get(name, "processed") != "processed"]
    return _next_chunk(run, run.bank.turns(run.scope, left), done)


def _broken_episodes(run: GraphRun, chunk: Sequence[str]) -> list[dict[str, Any]]:
    """Turns of the episodes over these that an edited message left without a summary."""
    whole = {name for one in run.bank.by_turns(run.scope, chunk, "episode") for name in one.turns}
    left = run.bank.by_turns(run.scope, set(chunk) - whole, "episode", ("superseded",))
    return [{"turns": list(turns)} for turns in {one.turns for one in left if departure(one) == "withdrawn"}]


def _extraction(run: GraphRun) -> Extraction:
    return run.theta.extraction if run.context.bulk else ONCE


def _reading(state: RememberState, run: GraphRun, turns: Sequence[Turn]) -> ConstructorInput:
    guidance = state.get("guidance")
    return ConstructorInput(
        turns=turn_views(turns),
        window=turn_views(window(run, turns), first=len(turns) + 1),
        memories=memory_views(memories(state, run)),
        guidance=GuideOutput.model_validate(guidance) if guidance else None,
        now=run.now(),
    )


def _read_turns(state: RememberState) -> list[str]:
    """Ids of the turns of the chunk that were read."""
    waiting = set(state["result"]["unextracted"])
    return [name for name in state["chunk"] if name not in waiting]


def _more(state: RememberState, **found: Sequence[Any]) -> dict[str, Any]:
    """The result so far, with what was found now in each of its lists."""
    result: Mapping[str, Any] = state["result"]
    return {**result, **{name: [*result[name], *more] for name, more in found.items()}}
