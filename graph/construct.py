"""Nodes of remember that write: stage, guide, construct, check, apply."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import get_runtime

from memcycle.agents.constructor import FactDraft
from memcycle.core.edit import Applied, Edit
from memcycle.core.errors import RoleFailed
from memcycle.core.messages import read_messages
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn, turn_id
from memcycle.graph.check import decide, fact_judge_call
from memcycle.graph.context import run_context
from memcycle.graph.extracting import Extracting
from memcycle.graph.grounding import Outcome, ground, with_nearest
from memcycle.graph.node import Step
from memcycle.graph.states import RememberState, Result

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
