"""Nodes of remember that read a chunk: guide, construct, reextract."""

from collections.abc import Sequence

from langchain_core.runnables import RunnableConfig

from memcycle.agents.constructor import ConstructorInput, FactDraft
from memcycle.agents.meta_thinker import GuideInput, GuideOutput
from memcycle.core.entry import Entry
from memcycle.core.errors import RoleFailed
from memcycle.core.scope import Scope
from memcycle.core.theta import Extraction
from memcycle.core.turn import Turn
from memcycle.graph.context import run_context
from memcycle.graph.coverage import missing_words, uncovered
from memcycle.graph.environment import Env
from memcycle.graph.evidence import memory_views, turn_views
from memcycle.graph.extraction import ONCE, new_facts, read, read_again
from memcycle.graph.node import Step
from memcycle.graph.states import RememberState


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
