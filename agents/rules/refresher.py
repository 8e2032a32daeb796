"""Refresher without a model: the newer statement replaces the older, doubt changes nothing (AMA 3.4)."""

from memcycle.agents.refresher import ConflictView, Refresh, RefresherInput, RefresherOutput
from memcycle.agents.rules.constructor import forget_request, forget_target
from memcycle.agents.rules.contradiction import contradiction
from memcycle.agents.rules.wording import listener_of, said_of, true_until, worded
from memcycle.agents.views import MemoryView, TurnView


def refresher(value: RefresherInput) -> RefresherOutput:
    """At most one edit a memory of the conflict set; DELETE only in the user's own words."""
    edits: dict[int, Refresh] = {}
    for conflict in value.conflicts:
        edit = _settle(conflict, value.turns)
        known = edits.get(conflict.memory.n)
        if known is None or (known.op == "NONE" and edit.op != "NONE"):
            edits[conflict.memory.n] = edit
    return RefresherOutput(edits=list(edits.values()))


def _settle(conflict: ConflictView, turns: list[TurnView]) -> Refresh:
    memory, turn = conflict.memory, conflict.turn
    if turn is not None and turn.role == "human":
        request = forget_request(turn.text)
        if request and forget_target(request, [memory]):
            return Refresh(op="DELETE", memory=memory.n, turn=turn.n, quote=request, why="asked to forget it")
        return _by_turn(memory, turn, turns)
    if conflict.other is not None:
        return _by_memory(memory, conflict.other)
    return Refresh(op="NONE", memory=memory.n, why="nothing a person said speaks against it")


def _by_turn(memory: MemoryView, turn: TurnView, turns: list[TurnView]) -> Refresh:
    known = memory.event_time or memory.time
    olds = [memory.text]
    if memory.granularity == "raw" and memory.speaker:
        olds = [item.text for item in worded(memory.text, memory.speaker)]
    for item in worded(turn.text, turn.speaker, listener_of(turn.speaker, turns)):
        why = next((why for old in olds if (why := contradiction(item.text, old))), None)
        if why is None:
            continue
        if known is not None and true_until(item, turn) < known:
            return Refresh(op="NONE", memory=memory.n, why="older evidence never overwrites newer")
        began = said_of(item, turn)
        return Refresh(
            op="UPDATE",
            memory=memory.n,
            text=item.text,
            turn=turn.n,
            event_time=began.start if began else None,
            why=why,
        )
    return Refresh(op="NONE", memory=memory.n, why="no clear contradiction in the turn's words")


def _by_memory(memory: MemoryView, other: MemoryView) -> Refresh:
    known, later = memory.event_time or memory.time, other.event_time or other.time
    why = contradiction(other.text, memory.text)
    if why is None or other.granularity != "fact":
        return Refresh(op="NONE", memory=memory.n, why="no clear contradiction between the two")
    if known is None or later is None or later <= known:
        return Refresh(op="NONE", memory=memory.n, why="not known to be older than the other")
    return Refresh(op="UPDATE", memory=memory.n, text=other.text, event_time=other.event_time, why=why)
