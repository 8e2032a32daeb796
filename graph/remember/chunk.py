"""The chunk: which turns a run of remember reads at once, and what stands around them.

It is cut to what a model takes: what a run was given beyond that waits for its next chunk.
"""

import itertools
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from langgraph.runtime import get_runtime

from memcycle.core.entry import Entry
from memcycle.core.language.tokens import approx_tokens
from memcycle.core.messages import read_messages
from memcycle.core.turn import Turn, turn_id
from memcycle.graph.environment import GraphRun
from memcycle.graph.search import recent
from memcycle.graph.states import RememberInput, RememberState

ABANDONED = timedelta(minutes=10)
"""After this, a turn that is staged and not read is one a run died on; the end of a session reads all."""

MARKS = 40
"""Tokens of what stands around the text of a turn, or an entry, in a prompt."""

PUT_BACK = timedelta(days=1)
"""A clock that was put back by less was set right by the network or the hour of the year; by more, it was so
wrong before that the new time is believed."""


def chunk(state: RememberState, run: GraphRun) -> list[Turn]:
    """The turns of this run."""
    return run.bank.turns(run.scope, state["chunk"])


def shown_tokens(text: str) -> int:
    """About how many tokens a turn or an entry with this text takes in a prompt."""
    return approx_tokens(text) + MARKS


def cut_to_size(turns: Sequence[Turn], tokens: int) -> list[Turn]:
    """As many of the turns, from the first on, as take so many tokens; the first, however long it is."""
    spent = list(itertools.accumulate(shown_tokens(turn.text) for turn in turns))
    return [turn for n, turn in enumerate(turns) if n == 0 or spent[n] <= tokens]


def window(run: GraphRun, turns: Sequence[Turn]) -> list[Turn]:
    """The short-term window W_t: the turns just before the chunk, as far back as they can be shown."""
    theta = run.theta
    size = max(theta.window, theta.extraction.overlap) if run.context.bulk else theta.window
    size = size if turns else 0
    found = run.bank.session_turns(run.scope, last=size, before=turns[0].position) if size else []
    return recent(found, theta.extraction.tokens)


def memories(state: RememberState, run: GraphRun) -> list[Entry]:
    """The memories roles are shown, by number: the candidates that are still current."""
    ids = [candidate["id"] for candidate in state.get("candidates") or []]
    own = set(state["chunk"])
    found = [
        entry
        for entry in run.bank.get(run.scope, ids[: run.theta.k])
        if entry.status in ("active", "staged")
        and not (entry.granularity == "raw" and own & set(entry.turns))
    ]
    left, shown = run.theta.extraction.tokens, list[Entry]()
    for entry in found:
        # One that is too long hides none of the shorter ones behind it.
        if (tokens := approx_tokens(entry.text)) <= left:
            left -= tokens
            shown.append(entry)
    return shown


def given_turns(state: RememberInput, run: GraphRun) -> list[Turn]:
    """The turns given, then the messages given.

    A message with an id is one message however often it comes. One without is new each time, under an
    id made from this task, which a resumed run has again.
    """
    settings, bank, messages = run.settings, run.bank, state.get("messages") or []
    turns = [Turn.model_validate(turn) for turn in state.get("turns") or []]
    if not messages:
        return turns
    info = get_runtime().execution_info
    read = read_messages(
        messages,
        session=run.scope.session or "",
        now=_spoken_at(run),
        zone=settings.zone,
        user_name=settings.user_name,
        assistant_name=settings.assistant_name,
    )
    task = info.task_id if info is not None else ""
    named = [
        turn if turn.message_id else turn.model_copy(update={"message_id": f"{task}:{n}"})
        for n, turn in enumerate(read)
    ]
    known = {turn.message_id for turn in bank.session_turns(run.scope, last=len(named))}
    # A thread hands over its whole history each time: what is known of it must not push the new turns along.
    places = itertools.count(bank.next_position(run.scope))
    return [*turns, *(turn if turn.message_id in known else _at(turn, next(places)) for turn in named)]


def _spoken_at(run: GraphRun) -> datetime:
    """The time of messages that carry none: not before the last turn, where the clock was put back since.

    What was said later would else count as older, and lose to what it replaces.
    """
    now = run.now()
    last = run.bank.session_turns(run.scope, last=1)
    if last and run.context.now is None and now < last[0].time < now + PUT_BACK:
        return last[0].time
    return now


def _at(turn: Turn, place: int) -> Turn:
    return turn.model_copy(update={"position": place, "id": turn_id(turn.session, place)})


def choose_chunk(
    run: GraphRun, waiting: Sequence[Turn], stored: Sequence[Turn], states: Mapping[str, str]
) -> list[Turn]:
    """Of the turns that wait, those of this run: what was stored now, and what an earlier run left before it.

    That run could not read them, or died on them: what another run has in hand now is not taken. Where
    nothing was stored, all that wait.

    Args:
        waiting: Turns not read to the end, in order, with their `states` by id.
        stored: Turns that this run was given.
    """
    if not stored:
        return list(waiting)
    given, first = {turn.id for turn in stored}, min(turn.position for turn in stored)
    earlier = [turn.id for turn in waiting if turn.position < first and turn.id not in given]
    failed = {name for name in earlier if states[name] == "unextracted"}
    raws = run.bank.raw_entries(run.scope, [name for name in earlier if name not in failed])
    dead = run.bank.world.now() - ABANDONED
    own = given | failed | {raw.turns[0] for raw in raws if raw.recorded_at and raw.recorded_at <= dead}
    return [turn for turn in waiting if turn.id in own]
