"""Nodes of recall that say what to search for, and search: plan, decompose, swap, search, widen."""

from typing import Any, Literal

from langchain_core.runnables import RunnableConfig

from memcycle.agents.retriever import RetrieverInput, RetrieverOutput
from memcycle.agents.views import TurnView
from memcycle.core.errors import RoleFailed
from memcycle.core.language.names import person_names
from memcycle.core.language.tokens import strip_names
from memcycle.core.scope import Scope
from memcycle.core.theta import Theta
from memcycle.graph.context import run_context
from memcycle.graph.environment import Env
from memcycle.graph.evidence import as_is, find, read_plans, related, turn_views, unite
from memcycle.graph.mentions import mention
from memcycle.graph.node import Step
from memcycle.graph.states import Planned, RecallState

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
