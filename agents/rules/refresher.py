"""Refresher without a model: the newer statement replaces the older, doubt changes nothing (AMA 3.4)."""

from memcycle.agents.refresher import ConflictView, Refresh, RefresherInput, RefresherOutput
from memcycle.agents.rules.judge import untrue_by, when
from memcycle.agents.rules.slots import contradiction
from memcycle.agents.rules.statements import is_news, statements_of, when_of
from memcycle.agents.views import MemoryView, TurnView


def refresher(value: RefresherInput) -> RefresherOutput:
    """At most one edit a memory of the conflict set; what is asked to be forgotten is no conflict."""
    edits: dict[int, Refresh] = {}
    for conflict in value.conflicts:
        edit = _settle(conflict)
        known = edits.get(conflict.memory.n)
        if known is None or (known.op == "NONE" and edit.op != "NONE"):
            edits[conflict.memory.n] = edit
    return RefresherOutput(edits=list(edits.values()))


def _settle(conflict: ConflictView) -> Refresh:
    memory, turn = conflict.memory, conflict.turn
    if turn is not None and turn.role == "human":
        return _by_turn(memory, turn)
    if conflict.other is not None:
        return _by_memory(memory, conflict.other)
    return Refresh(op="NONE", memory=memory.n, why="nothing a person said speaks against it")


def _by_turn(memory: MemoryView, turn: TurnView) -> Refresh:
    for statement in statements_of(turn.text):
        why = untrue_by(statement.text, turn.speaker, memory)
        if why is None:
            continue
        if not is_news(statement.text, turn.time, memory):
            return Refresh(op="NONE", memory=memory.n, why="older evidence never overwrites newer")
        began = when_of(statement.text, turn.time)
        start = began.start if began else None
        return Refresh(
            op="UPDATE", memory=memory.n, text=statement.text, turn=turn.n, event_time=start, why=why
        )
    return Refresh(op="NONE", memory=memory.n, why="no clear contradiction in the turn's words")


def _by_memory(memory: MemoryView, other: MemoryView) -> Refresh:
    known, later = when(memory), when(other)
    why = contradiction(other.text, other.speaker, memory.text, memory.speaker)
    if why is None or other.granularity != "fact":
        return Refresh(op="NONE", memory=memory.n, why="no clear contradiction between the two")
    if known is None or later is None or later <= known:
        return Refresh(op="NONE", memory=memory.n, why="not known to be older than the other")
    return Refresh(op="UPDATE", memory=memory.n, text=other.text, event_time=other.event_time, why=why)
