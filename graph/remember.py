"""remember: a chunk of turns becomes raw entries, facts and episodes (AMA 3.1-3.4, MemMA construction)."""

import itertools
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime

from memcycle.agents.constructor import ConstructorInput, FactDraft
from memcycle.agents.episode_trigger import EpisodeTriggerOutput
from memcycle.agents.guide import GuideInput, GuideOutput
from memcycle.agents.judge import JudgeInput
from memcycle.agents.retriever import RetrieverInput
from memcycle.agents.roles import Roles
from memcycle.core.edit import Applied, Edit
from memcycle.core.entry import Entry
from memcycle.core.errors import RoleFailed
from memcycle.core.messages import read_messages
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.theta import Extraction
from memcycle.core.turn import Turn, turn_id
from memcycle.graph.approval import approved
from memcycle.graph.conflicts import propose
from memcycle.graph.context import Context, ScopeOf, run_context
from memcycle.graph.environment import Env, make_env
from memcycle.graph.episodes import cut, has_cue, trigger_input, writer_calls, written
from memcycle.graph.events import Route
from memcycle.graph.extraction import ONCE, new_facts, read, read_again
from memcycle.graph.facts import Outcome, decide, fact_judge_call, ground, with_nearest
from memcycle.graph.guards import missing_words, uncovered
from memcycle.graph.node import Step, inline, node
from memcycle.graph.organisation import Organisation
from memcycle.graph.routes import (
    after_construct,
    after_search,
    after_stage,
    after_trigger,
    judge_action,
    judge_reason,
)
from memcycle.graph.search import (
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
from memcycle.graph.states import ConflictRef, RememberInput, RememberOutput, RememberState, Result

if TYPE_CHECKING:
    from memcycle.stores.bank import Bank


class Extracting:
    """The reading nodes, over one environment."""

    def __init__(self, env: Env) -> None:
        self.env = env

    def chunk(self, state: RememberState, scope: Scope) -> list[Turn]:
        """The turns of this run."""
        return self.env.bank().turns(scope, state["chunk"])

    def window(self, scope: Scope, chunk: Sequence[Turn]) -> list[Turn]:
        """The short-term window W_t: the turns just before the chunk."""
        theta = self.env.theta
        size = max(theta.window, theta.extraction.overlap) if run_context().bulk else theta.window
        size = size if chunk else 0
        return self.env.bank().session_turns(scope, last=size, before=chunk[0].position) if size else []

    def shown(self, state: RememberState, scope: Scope) -> list[Entry]:
        """The memories roles are shown, by number: the candidates that are still current."""
        ids = [candidate["id"] for candidate in state.get("candidates") or []]
        own = set(state["chunk"])
        found = self.env.bank().get(scope, ids[: self.env.theta.k])
        return [
            entry
            for entry in found
            if entry.status in ("active", "staged")
            and not (entry.granularity == "raw" and own & set(entry.turns))
        ]

    def guide(self, state: RememberState, config: RunnableConfig) -> Step:
        """The Meta-Thinker says what to keep, what is known, what conflicts (MemMA construction)."""
        scope = self.env.scope(config)
        value = GuideInput(
            turns=turn_views(self.chunk(state, scope)),
            memories=memory_views(self.shown(state, scope)),
            now=self.env.now(),
        )
        try:
            output: GuideOutput = yield self.env.call("guide", value)
        except RoleFailed as failed:
            return {"guidance": {}, "warnings": [*state["warnings"], str(failed)]}
        return {"guidance": output.model_dump()}

    def construct(self, state: RememberState, config: RunnableConfig) -> Step:
        """The Constructor reads the chunk; turns that cannot be read wait for the next run.

        In bulk import it is guarded, and the turns of which facts hold too little are named.
        """
        scope, guards = self.env.scope(config), self._guards()
        chunk, value = self.chunk(state, scope), self._reading(state, scope)
        done = yield from read(self.env, value, guards)
        texts = [*(fact.text for fact in done.facts), *(memory.text for memory in value.memories)]
        unread = {chunk[n - 1].id for n in done.unread}
        missed = uncovered(chunk, texts, guards.coverage)
        return {
            "drafts": [fact.model_dump(mode="json") for fact in done.facts],
            "warnings": [*state["warnings"], *done.warnings],
            "result": {
                **state["result"],
                "unextracted": [turn.id for turn in chunk if turn.id in unread],
                "uncovered": [turn.id for turn in missed if turn.id not in unread],
            },
        }

    def reextract(self, state: RememberState, config: RunnableConfig) -> Step:
        """Turns of which facts hold too little are read once more, by themselves (EvolveMem 3.1)."""
        scope, guards, result = self.env.scope(config), self._guards(), state["result"]
        chunk, value = self.chunk(state, scope), self._reading(state, scope)
        known = [FactDraft.model_validate(draft) for draft in state["drafts"]]
        texts = [*(fact.text for fact in known), *(memory.text for memory in value.memories)]
        aimed = {n: turn for n, turn in enumerate(chunk, 1) if turn.id in set(result["uncovered"])}
        missing = {n: missing_words(turn, texts) for n, turn in aimed.items()}
        done = yield from read_again(self.env, value, missing, guards)
        new = new_facts(done.facts, known, set(aimed))
        missed = uncovered(chunk, [*texts, *(fact.text for fact in new)], guards.coverage)
        left = {turn.id for turn in missed} & set(result["uncovered"])
        return {
            "drafts": [*state["drafts"], *(fact.model_dump(mode="json") for fact in new)],
            "warnings": [*state["warnings"], *done.warnings],
            "result": {
                **result,
                "reextracted": result["uncovered"],
                "uncovered": [name for name in result["uncovered"] if name in left],
            },
        }

    def _guards(self) -> Extraction:
        return self.env.theta.extraction if run_context().bulk else ONCE

    def _reading(self, state: RememberState, scope: Scope) -> ConstructorInput:
        chunk, guidance = self.chunk(state, scope), state.get("guidance")
        return ConstructorInput(
            turns=turn_views(chunk),
            window=turn_views(self.window(scope, chunk), first=len(chunk) + 1),
            memories=memory_views(self.shown(state, scope)),
            guidance=GuideOutput.model_validate(guidance) if guidance else None,
            now=self.env.now(),
        )


ABANDONED = timedelta(minutes=10)
"""After this, a turn that is staged and not read is one a run died on; the end of a session reads all."""

PUT_BACK = timedelta(days=1)
"""A clock that was put back by less was set right by the network or the hour of the year; by more, it was so
wrong before that the new time is believed."""


class Construction(Extracting):
    """The writing nodes, over one environment."""

    def stage(self, state: RememberState, config: RunnableConfig) -> dict[str, Any]:
        """Writes the raw turns, before any model is asked; starts a run's counts anew.

        The chunk is what is new, and what an earlier run left waiting before it.
        """
        scope, bank = self.env.scope(config), self.env.bank()
        stored = bank.stage_turns(scope, self._turns(state, scope))
        seq = bank.session_seq(scope)  # before anything is read that a role is shown
        waiting = bank.unprocessed(scope)
        states = bank.turn_states(scope, [turn.id for turn in waiting])
        chunk = waiting
        if stored:
            given, first = {turn.id for turn in stored}, min(turn.position for turn in stored)
            earlier = [turn for turn in waiting if turn.position < first and turn.id not in given]
            own = given | self._left_behind(scope, earlier, states)
            chunk = [turn for turn in waiting if turn.id in own]
        return {
            "messages": [],
            "turns": [],
            "seq": seq,
            "chunk": [turn.id for turn in chunk],
            "extracted": bool(chunk) and all(states[turn.id] == "extracted" for turn in chunk),
            "candidates": [],
            "round": 0,
            "edits": [],
            "drafts": [],
            "supersede": [],
            "episodes": [],
            "close_at": None,
            "guidance": {},
            "warnings": [],
            "usage": None,
            "result": Result(
                turns=[turn.id for turn in chunk],
                facts=[],
                episodes=[],
                refreshed=[],
                unextracted=[],
                reextracted=[],
                uncovered=[],
                rejected=[],
                warnings=[],
            ),
        }

    def _left_behind(self, scope: Scope, turns: Sequence[Turn], states: Mapping[str, str]) -> set[str]:
        """Turns an earlier run could not read, or died on: not those that another run has in hand now."""
        failed = {turn.id for turn in turns if states[turn.id] == "unextracted"}
        raws = self.env.bank().raw_entries(scope, [turn.id for turn in turns if turn.id not in failed])
        dead = self.env.bank().world.now() - ABANDONED
        return failed | {raw.turns[0] for raw in raws if raw.recorded_at and raw.recorded_at <= dead}

    def _turns(self, state: RememberState, scope: Scope) -> list[Turn]:
        """The turns given, then the messages given.

        A message with an id is one message however often it comes. One without is new each time, under an
        id made from this task, which a resumed run has again.
        """
        settings, bank, messages = self.env.settings, self.env.bank(), state.get("messages") or []
        turns = [Turn.model_validate(turn) for turn in state.get("turns") or []]
        if not messages:
            return turns
        info = get_runtime().execution_info
        read = read_messages(
            messages,
            session=scope.session or "",
            now=self._spoken_at(scope),
            zone=settings.zone,
            user_name=settings.user_name,
            assistant_name=settings.assistant_name,
        )
        task = info.task_id if info is not None else ""
        named = [
            turn if turn.message_id else turn.model_copy(update={"message_id": f"{task}:{n}"})
            for n, turn in enumerate(read)
        ]
        known = {turn.message_id for turn in bank.session_turns(scope, last=len(named))}
        return [*turns, *in_a_row(named, known, bank.next_position(scope))]

    def _spoken_at(self, scope: Scope) -> datetime:
        """The time of messages that carry none: not before the last turn, where the clock was put back since.

        What was said later would else count as older, and lose to what it replaces.
        """
        now = self.env.now()
        last = self.env.bank().session_turns(scope, last=1)
        if last and run_context().now is None and now < last[0].time < now + PUT_BACK:
            return last[0].time
        return now

    def check(self, state: RememberState, config: RunnableConfig) -> Step:
        """Each new fact against its turn and its nearest stored facts; the organisation makes edits."""
        env, scope = self.env, self.env.scope(config)
        chunk = self.chunk(state, scope)
        numbered = dict(enumerate([*chunk, *self.window(scope, chunk)], 1))
        outcome = Outcome(warnings=list(state["warnings"]))
        drafts = [FactDraft.model_validate(draft) for draft in state["drafts"]]
        grounded = with_nearest(env, scope, ground(drafts, numbered, chunk, outcome), outcome)
        call, verdicts = fact_judge_call(env, grounded, state["supersede"]), None
        if call is not None:
            try:
                verdicts = yield call
            except RoleFailed as failed:
                outcome.warnings.append(f"facts stored unjudged: {failed}")
        waiting = [
            (ref["turn"], entry)
            for ref in state["supersede"]
            if ref["turn"]
            for entry in env.bank().get(scope, [ref["memory"]])
        ]
        shown = self.shown(state, scope)
        decide(env, grounded, verdicts, shown=shown, waiting=waiting, outcome=outcome)
        edits = yield from env.organisation.organise(outcome.facts, env.made("constructor", scope))
        result = state["result"]
        rejected = [rejected.model_dump(include={"text", "why"}) for rejected in outcome.rejected]
        return {
            "drafts": [],
            "edits": [edit.model_dump(mode="json") for edit in [*outcome.deletions, *edits]],
            "warnings": outcome.warnings,
            "result": {
                **result,
                "rejected": [*result["rejected"], *rejected],
                "unextracted": state["chunk"] if outcome.unread else result["unextracted"],
            },
        }

    def apply(self, state: RememberState, config: RunnableConfig) -> dict[str, Any]:
        """Writes the edits and marks the turns that were read, in one transaction; the others wait."""
        scope, result, bank = self.env.scope(config), state["result"], self.env.bank()
        edits = [Edit.model_validate(edit) for edit in state["edits"]]
        waiting, seq = result["unextracted"], state["seq"]
        applied = bank.apply(scope, edits, turns=read_of(state), state="extracted", seq=seq)
        if waiting:
            bank.apply(scope, [], turns=waiting, state="unextracted", seq=seq)
        return {
            "edits": [],
            "result": {
                **result,
                "facts": [*added(applied, edits), *applied.updated],
                "refreshed": [*result["refreshed"], *changed(applied)],
                "rejected": [*result["rejected"], *refusals(applied)],
            },
        }


def read_of(state: RememberState) -> list[str]:
    """Ids of the turns of the chunk that were read."""
    waiting = set(state["result"]["unextracted"])
    return [name for name in state["chunk"] if name not in waiting]


def in_a_row(turns: Sequence[Turn], known: Collection[str | None], place: int) -> list[Turn]:
    """The turns with those of unknown messages placed one after another from `place` on.

    A thread hands over its whole history each time: what is known of it must not push the new turns along.
    """
    places = itertools.count(place)
    return [turn if turn.message_id in known else _at(turn, next(places)) for turn in turns]


def _at(turn: Turn, place: int) -> Turn:
    return turn.model_copy(update={"position": place, "id": turn_id(turn.session, place)})


def added(applied: Applied, edits: Sequence[Edit]) -> list[str]:
    """Ids of the entries that the edits added.

    When a node runs again after its write was kept but its checkpoint was not, the bank finds each entry
    there already, under its own id, and merges it with itself.
    """
    own = {edit.entry.id for edit in edits if edit.op == "ADD" and edit.entry is not None}
    return [*applied.added, *(name for name in applied.merged if name in own)]


def changed(applied: Applied) -> list[str]:
    """Ids of stored entries that an apply superseded or deleted."""
    return [*applied.superseded, *applied.deleted]


def refusals(applied: Applied) -> list[dict[str, str]]:
    """What the bank refused, in words."""
    return [{"text": rejected.text, "why": rejected.why} for rejected in applied.rejected]


class _Remember(Construction):
    """The nodes of remember: `Construction` writes, the rest looks into memory and closes episodes."""

    def plan(self, state: RememberState, config: RunnableConfig) -> Step:
        """The Retriever plans a search for each turn of the chunk, in one call."""
        scope = self.env.scope(config)
        chunk, k_m = self.chunk(state, scope), self.env.theta.k_m
        if not self.env.bank().count(scope):
            return {"plans": []}
        items = turn_views([turn for turn in chunk if turn.is_evidence])
        window = turn_views(self.window(scope, chunk), first=len(items) + 1)
        value = RetrieverInput(purpose="remember", items=items, window=window, now=self.env.now())
        if not items:
            return {"plans": []}
        try:
            output = yield self.env.call("retriever", value)
        except RoleFailed as failed:
            return {"plans": as_is(items, k_m), "warnings": [*state["warnings"], str(failed)]}
        return {"plans": read_plans(output, items, k_m)}

    def search(self, state: RememberState, config: RunnableConfig) -> dict[str, Any]:
        """Searches memory for all turns at once, the chunk's own turns left out."""
        scope = self.env.scope(config)
        own = [entry.id for entry in self.env.bank().raw_entries(scope, state["chunk"])]
        found = find(self.env, scope, state["plans"], widened=state["round"] > 0, exclude=own)
        return {"candidates": unite(state["candidates"], found)[: self.env.theta.k]}

    def widen(self, state: RememberState, config: RunnableConfig) -> dict[str, Any]:
        """Retry: adds the turns the candidates refer to; the next search covers every granularity (AMA)."""
        more = related(self.env, self.env.scope(config), state["candidates"])
        return {"round": state["round"] + 1, "candidates": unite(state["candidates"], more)}

    def judge(self, state: RememberState, config: RunnableConfig) -> Step:
        """The Judge's verdicts on the candidates; conflicts that recall met are added to its own."""
        scope = self.env.scope(config)
        chunk, shown = self.chunk(state, scope), self.shown(state, scope)
        value = JudgeInput(
            purpose="remember",
            items=turn_views(chunk),
            queries=[plan["query"] for plan in state["plans"]],
            candidates=memory_views(shown),
            now=self.env.now(),
        )
        try:
            output = yield self.env.call("judge", value)
        except RoleFailed as failed:
            return {"verdict": PASS_UNJUDGED, "warnings": [*state["warnings"], str(failed)]}
        verdict, warnings = read_verdict(output, shown, chunk)
        met = [
            ConflictRef(memory=a, turn=None, other=b, why=why)
            for a, b, why in self.env.bank().conflicts(scope)
        ]
        verdict["conflicts"] = [*verdict["conflicts"], *met]
        return {"verdict": verdict, "warnings": [*state["warnings"], *warnings]}

    def refresh(self, state: RememberState, config: RunnableConfig) -> Step:
        """The Refresher proposes; the guards decide what becomes an edit."""
        scope = self.env.scope(config)
        refs = state["verdict"]["conflicts"]
        guarded = yield from propose(self.env, scope, refs, self.chunk(state, scope))
        rejected = [rejected.model_dump(include={"text", "why"}) for rejected in guarded.rejected]
        return {
            "edits": [edit.model_dump(mode="json") for edit in guarded.edits],
            "supersede": guarded.supersede,
            "warnings": [*state["warnings"], *guarded.warnings],
            "result": {**state["result"], "rejected": [*state["result"]["rejected"], *rejected]},
        }

    def approve(self, state: RememberState, config: RunnableConfig) -> dict[str, Any]:
        """A person lets the edits stand, changes or rejects them, where the settings ask for that."""
        edits = [Edit.model_validate(edit) for edit in state["edits"]]
        found = approved(self.env, self.env.scope(config), edits)
        rejected = [*state["result"]["rejected"], *found.rejected]
        return {
            "edits": [edit.model_dump(mode="json") for edit in found.edits],
            "result": {**state["result"], "rejected": rejected},
        }

    def apply_refresh(self, state: RememberState, config: RunnableConfig) -> dict[str, Any]:
        """Writes what the guards let through; conflicts that recall had queued are settled with that."""
        scope, bank = self.env.scope(config), self.env.bank()
        edits = [Edit.model_validate(edit) for edit in state["edits"]]
        applied = bank.apply(scope, edits, seq=state["seq"])
        refs = state["verdict"]["conflicts"]
        bank.settle_conflicts(scope, [(ref["memory"], ref["other"]) for ref in refs if ref["other"]])
        result = state["result"]
        successors = [{"id": name, "score": 1.0, "why": []} for name in applied.updated]
        return {
            "edits": [],
            "candidates": [*successors, *state["candidates"]],
            "result": {
                **result,
                "refreshed": [*result["refreshed"], *changed(applied)],
                "rejected": [*result["rejected"], *refusals(applied)],
            },
        }

    def trigger(self, state: RememberState, config: RunnableConfig) -> Step:
        """Whether an episode ends in this chunk: topic shift, request, gap, or a saturated window."""
        scope = self.env.scope(config)
        segment = self.env.bank().open_segment(scope)
        value, output, warnings = (
            trigger_input(segment, state["chunk"]),
            EpisodeTriggerOutput(boundaries=[]),
            [],
        )
        if value.new and has_cue(value):
            try:
                output = yield self.env.call("episode_trigger", value)
            except RoleFailed as failed:
                warnings = [f"episode trigger not asked: {failed}"]
        finished = cut(segment, output.boundaries, self.env.theta)
        return {
            "episodes": [{"turns": [turn.id for turn in turns]} for turns in finished],
            "close_at": finished[-1][-1].position if finished else None,
            "warnings": [*state["warnings"], *warnings],
        }

    def write_episode(self, state: RememberState, config: RunnableConfig) -> Step:
        """The Episode writer summarises each finished episode; extraction where it fails."""
        scope = self.env.scope(config)
        found = [self.env.bank().turns(scope, episode["turns"]) for episode in state["episodes"]]
        episodes = [turns for turns in found if turns]  # the others were forgotten meanwhile
        replies = yield writer_calls(self.env, episodes)
        entries, warnings = written(episodes, replies, self.env.made("episode_writer", scope))
        edits = [{"op": "ADD", "entry": entry, "actor": "episode_writer"} for entry in entries]
        return {"edits": edits, "warnings": [*state["warnings"], *warnings]}

    def finish(self, state: RememberState, config: RunnableConfig) -> dict[str, Any]:
        """Writes the episodes and marks the chunk done, in one transaction."""
        result = state["result"]
        edits = [Edit.model_validate(edit) for edit in state["edits"]]
        applied = self.env.bank().apply(
            self.env.scope(config),
            edits,
            turns=read_of(state),
            state="processed",
            close_segment_at=state["close_at"],
            seq=state["seq"],
        )
        return {
            "edits": [],
            "episodes": [],
            "result": {
                **result,
                "episodes": added(applied, edits),
                "rejected": [*result["rejected"], *refusals(applied)],
                "warnings": state["warnings"],
            },
        }


def build_remember(
    roles: Roles | None = None,
    bank: "Bank | Callable[[], Bank] | None" = None,
    settings: Settings | None = None,
    *,
    scope: ScopeOf | None = None,
    organisation: Organisation | None = None,
    version: str = "shipped",
) -> CompiledStateGraph[RememberState, Context, RememberInput, RememberOutput]:
    """The remember graph: messages or turns in, `result` and `usage` out.

    Args:
        roles: Defaults to the rules.
        bank: A bank, or a callable that opens one on first use; default the shared bank of `settings.home`.
        settings: Defaults to the bank's, else to the environment's.
        scope: Scope from a parent's context; default reads `Context`.
        organisation: How facts become entries.
        version: Version of the pipeline, recorded on entries.
    """
    return remember_graph(make_env(roles, bank, settings, scope, organisation=organisation, version=version))


def remember_graph(env: Env) -> CompiledStateGraph[RememberState, Context, RememberInput, RememberOutput]:
    """The remember graph over an environment, its edges cut as the switches say."""
    nodes, switches = _Remember(env), env.settings.switches
    builder = StateGraph(
        RememberState, context_schema=Context, input_schema=RememberInput, output_schema=RememberOutput
    )
    names = [
        "stage",
        "plan",
        "search",
        "judge",
        "construct",
        "reextract",
        "check",
        "apply",
        "trigger",
        "write_episode",
        "finish",
    ]
    names += ["guide"] if switches.guidance else []
    names += ["widen"] if switches.iterative else []
    names += ["refresh", "apply_refresh"] if switches.refresher else []

    def action(state: RememberState) -> str:
        return judge_action(state, env.theta, switches, env.retries(env.theta))

    def covered(state: RememberState) -> str:
        return after_construct(state, asks_again=not env.roles.by_rules("constructor"))

    def judged(state: RememberState) -> Route:
        return Route(action(state), judge_reason(state, env.theta, switches, env.retries(env.theta)))

    for name in names:
        route = judged if name == "judge" else None
        builder.add_node(name, node(name, getattr(nodes, name), graph="remember", route=route))
    asks = env.settings.approval.is_asked
    if asks:
        builder.add_node("approve", node("approve", nodes.approve, graph="remember"))
        builder.add_edge("approve", "apply")
    if asks and switches.refresher:
        builder.add_node("approve_refresh", node("approve_refresh", nodes.approve, graph="remember"))
        builder.add_edge("approve_refresh", "apply_refresh")
    write = "guide" if switches.guidance else "construct"

    actions: dict[Hashable, str] = {"Pass": write}
    if switches.iterative:
        actions["Retry"] = "widen"
        builder.add_edge("widen", "search")
    if switches.refresher:
        actions["Refresh"] = "refresh"
        builder.add_edge("refresh", "approve_refresh" if asks else "apply_refresh")
        builder.add_edge("apply_refresh", write)
    if switches.guidance:
        builder.add_edge("guide", "construct")
    builder.add_edge(START, "stage")
    builder.add_conditional_edges(
        "stage",
        inline(after_stage),
        {"new turns": "plan", "already extracted": "trigger", "nothing new": END},
    )
    builder.add_edge("plan", "search")
    builder.add_conditional_edges(
        "search", inline(after_search), {"candidates": "judge", "no candidates": write}
    )
    builder.add_conditional_edges("judge", inline(action), actions)
    builder.add_conditional_edges(
        "construct", inline(covered), {"covered": "check", "uncovered": "reextract"}
    )
    builder.add_edge("reextract", "check")
    builder.add_edge("check", "approve" if asks else "apply")
    builder.add_edge("apply", "trigger")
    builder.add_conditional_edges(
        "trigger", inline(after_trigger), {"episode ends": "write_episode", "goes on": "finish"}
    )
    builder.add_edge("write_episode", "finish")
    builder.add_edge("finish", END)
    return builder.compile(name="remember")
