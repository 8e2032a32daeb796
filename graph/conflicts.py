"""The Refresher's proposals, held against the guards."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from memcycle.agents.constructor import FactDraft
from memcycle.agents.refresher import ConflictView, Refresh, RefresherInput, RefresherOutput
from memcycle.agents.views import MemoryView
from memcycle.core.edit import Edit
from memcycle.core.entry import Entry, same_text
from memcycle.core.errors import RoleFailed
from memcycle.core.turn import Turn
from memcycle.graph.environment import GraphRun, Made
from memcycle.graph.facts import Outcome, fact_entry
from memcycle.graph.guards import ANOTHER_MATTER, requested_deletion, same_matter, support
from memcycle.graph.node import Call
from memcycle.graph.search import turn_views
from memcycle.graph.states import ConflictRef


@dataclass(frozen=True)
class ConflictSet:
    """The conflicts of one run with the entries and turns they name. Memories are numbered in `memories`."""

    refs: Sequence[ConflictRef]
    entries: dict[str, Entry]
    turns: Sequence[Turn]

    @cached_property
    def memories(self) -> list[Entry]:
        """Each entry of the set once, facts only: raw turns and episodes are never refreshed."""
        return [entry for entry in self.entries.values() if entry.granularity == "fact"]


def propose(
    run: GraphRun, refs: Sequence[ConflictRef], turns: Sequence[Turn]
) -> Generator[Call, Any, Outcome]:
    """Asks the Refresher about the conflicts and holds what it proposes against the guards.

    Nothing is refreshed where no stored fact is in conflict, or where the role fails.
    """
    names = [ref["memory"] for ref in refs] + [ref["other"] for ref in refs if ref["other"]]
    entries = {entry.id: entry for entry in run.bank.get(run.scope, names)}
    conflicts = ConflictSet(refs, entries, turns)
    memories = {entry.id: MemoryView.of(n, entry) for n, entry in enumerate(conflicts.memories)}
    views_of_turns = turn_views(turns)
    by_turn = {turn.id: view for turn, view in zip(turns, views_of_turns, strict=True)}
    views = [
        ConflictView(
            memory=memories[ref["memory"]],
            turn=by_turn.get(ref["turn"] or ""),
            other=memories.get(ref["other"] or ""),
            why=ref["why"],
        )
        for ref in refs
        if ref["memory"] in memories
    ]
    if not views:
        return Outcome()
    value = RefresherInput(conflicts=views, turns=views_of_turns, now=run.now())
    try:
        output = yield run.call("refresher", value)
    except RoleFailed as failed:
        return Outcome(warnings=[f"nothing refreshed: {failed}"])
    return guard_refresh(output, conflicts, run.made("refresher"))


def guard_refresh(output: RefresherOutput, conflicts: ConflictSet, made: Made) -> Outcome:
    """Holds each proposal against the guards (AMA 3.4).

    Only memories of the conflict set may be touched, each once. DELETE needs the user's quoted words;
    without them it waits for a new fact of the contradicting turn to supersede the memory. UPDATE
    rests on a human turn that supports it, or on the other, newer memory of the conflict.
    """
    guarded, seen = Outcome(), set[int]()
    for edit in output.edits:
        if edit.op == "NONE":
            continue
        if not 0 <= edit.memory < len(conflicts.memories):
            why = f"the Refresher named memory {edit.memory}, which is not in the conflict set"
            guarded.refuse(edit.text, why)
        elif edit.memory in seen:
            guarded.refuse(edit.text, f"a second edit of memory {edit.memory}")
        else:
            seen.add(edit.memory)
            _guard_one(edit, conflicts.memories[edit.memory], conflicts, made, guarded)
    return guarded


def _guard_one(edit: Refresh, target: Entry, conflicts: ConflictSet, made: Made, into: Outcome) -> None:
    refs = [ref for ref in conflicts.refs if target.id in (ref["memory"], ref["other"])]
    if edit.op == "DELETE":
        request = requested_deletion(edit.quote, conflicts.turns)
        if request is not None:
            into.supersede.append(ConflictRef(memory=target.id, turn=request.id, other=None, why=edit.why))
        elif contradicted := [ref for ref in refs if ref["turn"]]:
            into.supersede += contradicted
        else:
            why = "deletion needs the user's own quoted words; nothing new contradicts it"
            into.refuse(target.text, why)
        return
    if not edit.text.strip() or same_text(edit.text) == same_text(target.text):
        into.refuse(edit.text, "the update changes nothing")
        return
    if not same_matter(edit.text, target.speaker, target):
        into.refuse(target.text, ANOTHER_MATTER)
        return
    others = (name for ref in refs for name in (ref["memory"], ref["other"]) if name != target.id)
    newer = conflicts.entries.get(next(filter(None, others), ""))
    if newer is not None and newer.granularity == "fact" and same_text(newer.text) == same_text(edit.text):
        into.edits.append(_update(target, newer, edit))
        return
    named = conflicts.turns[edit.turn - 1] if edit.turn and 0 < edit.turn <= len(conflicts.turns) else None
    if edit.turn is not None and named is None and conflicts.turns:
        into.warnings.append(f"the Refresher named turn {edit.turn}, which was not shown")
    contradicting = {ref["turn"] for ref in refs}
    turn = named or next((turn for turn in conflicts.turns if turn.id in contradicting), None)
    if turn is None or not turn.is_evidence:
        into.refuse(edit.text, "no person's turn stands behind it")
    elif support(edit.text, turn) == 0:
        into.refuse(edit.text, "its turn does not say so")
    else:
        into.edits.append(_update(target, _successor(edit, target, turn, made), edit))


def _update(target: Entry, entry: Entry, edit: Refresh) -> Edit:
    return Edit(op="UPDATE", entry=entry, target=target.id, reason=edit.why, actor="refresher")


def _successor(edit: Refresh, target: Entry, turn: Turn, made: Made) -> Entry:
    draft = FactDraft(
        text=edit.text,
        turn=0,
        kind=target.kind,
        speaker=target.speaker,
        event_time=edit.event_time,
        event_precision="day",
        entities=list(target.entities),
        persons=list(target.persons),
        importance=target.importance,
    )
    return fact_entry(draft, turn, made, actor="refresher")
