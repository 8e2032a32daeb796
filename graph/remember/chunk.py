"""The chunk: which turns a run of remember reads at once, and what stands around them.

It is cut to what a model takes: what a run was given beyond that waits for its next chunk.
"""

import itertools
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from langgraph.runtime import get_runtime

from memcycle.core.entry import Entry
from memcycle.core.language.questions import asks_memory
from memcycle.core.language.tokens import approx_tokens
from memcycle.core.messages import read_messages
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.turn import Turn, turn_id
from memcycle.graph.environment import GraphRun
from memcycle.graph.search import fitting, recent
from memcycle.graph.states import RememberInput, RememberState

if TYPE_CHECKING:
    from memcycle.stores.bank import Bank

MARKS = 40
"""Tokens of what stands around the text of a turn, or an entry, in a prompt."""

SHOWN_TOKENS = 500
"""Tokens of stored facts that the Constructor is shown where it reads a whole window."""

PUT_BACK = timedelta(days=1)
"""A clock that was put back by less was set right by the network or the hour of the year; by more, it was so
wrong before that the new time is believed."""

MARGIN = 50
"""Stored turns looked at beyond twice those given: a session may hold turns of others too."""


def chunk(state: RememberState, run: GraphRun) -> list[Turn]:
    """The turns of this run."""
    return run.bank.turns(run.scope, state["chunk"])


def shown_tokens(text: str) -> int:
    """About how many tokens a turn or an entry with this text takes in a prompt."""
    return approx_tokens(text) + MARKS


def cut_to_size(turns: Sequence[Turn], tokens: int) -> list[Turn]:
    """As many of the turns, from the first on, as take so many tokens; the first, however long it is."""
    return fitting(turns, tokens, lambda turn: shown_tokens(turn.text))


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
    if run.is_lean("constructor"):
        found, left = [entry for entry in found if entry.granularity == "fact"], min(left, SHOWN_TOKENS)
    for entry in found:
        # One that is too long hides none of the shorter ones behind it.
        if (tokens := approx_tokens(entry.text)) <= left:
            left -= tokens
            shown.append(entry)
    return shown


def given_turns(state: RememberInput, run: GraphRun) -> list[Turn]:
    """The turns given, then the messages given."""
    messages = state.get("messages") or []
    turns = [Turn.model_validate(turn) for turn in state.get("turns") or []]
    if not messages:
        return turns
    info = get_runtime().execution_info
    task = info.task_id if info is not None else ""
    return [*turns, *turns_of(messages, run.bank, run.scope, run.settings, now=run.context.now, task=task)]


def turns_of(
    messages: Any, bank: "Bank", scope: Scope, settings: Settings, *, now: datetime | None, task: str
) -> list[Turn]:
    """Messages as turns of the scope's session, those that it holds already as they stand there.

    A message with an id is one message however often it comes. One without is new, under an id made from
    `task`, unless it is given again after a run that failed; see `_given_again`.

    Args:
        now: Time of messages that carry none; by default the clock.
        task: What is given; the same when a run is resumed.
    """
    named = _read(messages, bank, scope, settings, now=now, task=task)
    known = {turn.message_id for turn in bank.session_turns(scope, last=len(named))}
    again = [] if any(turn.message_id in known for turn in named) else _given_again(named, bank, scope)
    return [*again, *_placed(named[len(again) :], known, bank, scope)]


def new_turns(messages: Any, bank: "Bank", scope: Scope, settings: Settings, *, task: str) -> list[Turn]:
    """Of a thread's messages, oldest first, those that its session does not hold, or holds in other words.

    By message id. A caller that keeps no thread hands over the history under new ids each time: there, what
    stands in the session just before the first message that is known, or at its end, is known by its words.
    """
    named = _read(messages, bank, scope, settings, now=None, task=task)
    stored = bank.session_turns(scope, last=2 * len(named) + MARGIN)
    places = {turn.message_id: n for n, turn in enumerate(stored)}
    said = [(turn.role, bank.redactor.text(turn.text)) for turn in named]
    kept = [(turn.role, turn.text) for turn in stored]
    first = next((n for n, turn in enumerate(named) if turn.message_id in places), None)
    if first is None:
        overlap = next((n for n in range(len(said), 0, -1) if kept[-n:] == said[:n]), 0)
        held = range(overlap)
    else:
        before = kept[: places[named[first].message_id]]
        overlap = next((n for n in range(first, 0, -1) if before[-n:] == said[first - n : first]), 0)
        held = range(first - overlap, first)
    new = [
        turn
        for n, turn in enumerate(named)
        if n not in held and (turn.message_id not in places or kept[places[turn.message_id]] != said[n])
    ]
    return _placed(new, places.keys(), bank, scope)


def _read(
    messages: Any, bank: "Bank", scope: Scope, settings: Settings, *, now: datetime | None, task: str
) -> list[Turn]:
    read = read_messages(
        messages,
        session=scope.session or "",
        now=now or _spoken_at(bank, scope),
        zone=settings.zone,
        user_name=settings.user_name,
        assistant_name=settings.assistant_name,
    )
    return [
        turn if turn.message_id else turn.model_copy(update={"message_id": f"{task}:{n}"})
        for n, turn in enumerate(read)
    ]


def _placed(turns: Sequence[Turn], known: Collection[str | None], bank: "Bank", scope: Scope) -> list[Turn]:
    # A thread hands over its whole history each time: what is known of it must not push the new turns along.
    places = itertools.count(bank.next_position(scope))
    return [turn if turn.message_id in known else _at(turn, next(places)) for turn in turns]


def _given_again(given: Sequence[Turn], bank: "Bank", scope: Scope) -> list[Turn]:
    """The turns of the session that the first of these are, by their words: those of a run that failed.

    Who gives a message again after an error has no other way to name it. Said twice, a message that was
    read is two: only turns at the session's end are looked at that are in nobody's hands.
    """
    waiting = bank.unprocessed(scope)
    states = bank.turn_states(scope, [turn.id for turn in waiting])
    unread = [turn for turn in waiting if states[turn.id] == "unextracted"]
    if not unread or unread[-1].position + 1 < bank.next_position(scope):
        return []
    said = [_words(bank.redactor.turn(turn)) for turn in given]
    stored = [_words(turn) for turn in unread]
    starts = (n for n in range(len(stored)) if stored[n:][: len(said)] == said[: len(stored) - n])
    start = next(starts, None)
    return [] if start is None else unread[start:][: len(said)]


def _words(turn: Turn) -> tuple[str, str, str]:
    return turn.role, turn.speaker, turn.text


def _spoken_at(bank: "Bank", scope: Scope) -> datetime:
    """The clock, but not before the last turn, where it was put back since.

    What was said later would else count as older, and lose to what it replaces.
    """
    now, last = bank.world.now(), bank.session_turns(scope, last=1)
    return last[0].time if last and now < last[0].time < now + PUT_BACK else now


def _at(turn: Turn, place: int) -> Turn:
    return turn.model_copy(update={"position": place, "id": turn_id(turn.session, place)})


def is_open(run: GraphRun, waiting: Sequence[Turn], stored: Sequence[Turn]) -> bool:
    """Whether more turns are waited for, before a model reads all in one call.

    Not where the window is full, or somebody asks that something be remembered, put right or forgotten.
    """
    if not run.is_lean("constructor"):
        return False
    theta, tokens = run.theta, sum(approx_tokens(turn.text) for turn in waiting)
    full = len(waiting) >= theta.saturation_turns or tokens >= theta.saturation_tokens
    return not full and not any(asks_memory(turn.text) for turn in stored if turn.is_evidence)


def choose_chunk(
    run: GraphRun, waiting: Sequence[Turn], stored: Sequence[Turn], states: Mapping[str, str]
) -> list[Turn]:
    """Of the turns that wait, those of this run: what was stored now, and what an earlier run left before it.

    That run could not read them: what another has in hand, or died on, is read when the session ends. Where
    nothing was stored, or a window was waited for, all that wait.

    Args:
        waiting: Turns not read to the end, in order, with their `states` by id.
        stored: Turns that this run was given.
    """
    if not stored or run.is_lean("constructor"):
        return list(waiting)
    given, first = {turn.id for turn in stored}, min(turn.position for turn in stored)
    return [
        turn
        for turn in waiting
        if turn.id in given or (turn.position < first and states[turn.id] == "unextracted")
    ]
