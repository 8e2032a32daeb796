"""remember: a chunk of turns becomes raw entries, facts and episodes (AMA 3.1-3.4, MemMA construction)."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memcycle.agents.episodes import TriggerOutput
from memcycle.agents.judge import JudgeInput
from memcycle.agents.retriever import RetrieverInput
from memcycle.agents.roles import Roles
from memcycle.core.edit import Edit
from memcycle.core.errors import RoleFailed
from memcycle.core.settings import Settings
from memcycle.graph.approval import approved
from memcycle.graph.construct import Construction, added, changed, read_of, refusals
from memcycle.graph.context import Context, ScopeOf
from memcycle.graph.environment import Env, make_env
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
from memcycle.graph.inline import inline
from memcycle.graph.node import Step, node
from memcycle.graph.organisation import Organisation
from memcycle.graph.refresh import propose
from memcycle.graph.routes import (
    after_construct,
    after_search,
    after_stage,
    after_trigger,
    judge_action,
    judge_reason,
)
from memcycle.graph.segments import cut, has_cue, trigger_input, writer_calls, written
from memcycle.graph.states import ConflictRef, RememberInput, RememberOutput, RememberState
from memcycle.graph.telling import Route

if TYPE_CHECKING:
    from memcycle.stores.bank import Bank


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
        value, output, warnings = trigger_input(segment, state["chunk"]), TriggerOutput(boundaries=[]), []
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
