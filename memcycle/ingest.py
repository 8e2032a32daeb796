"""Feeding a whole conversation to a memory, chunk by chunk, so that it can be broken off and resumed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

from memcycle.core.conversation import Conversation
from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.core.usage import add_usage
from memcycle.memory import Memory
from memcycle.results import Ingested

CHUNK_TURNS = 20
"""Turns a chunk: the window at which an episode saturates, so that a model reads a whole window a call."""


@dataclass(frozen=True)
class Progress:
    """A chunk that is stored for good, or was already.

    Attributes:
        first, last: Ids of its first and last turn in the file.
        done, total: Turns of the conversation so far, and in all.
        new: Whether this run stored it.
    """

    first: str
    last: str
    done: int
    total: int
    new: bool


def ingest(
    memory: Memory,
    conversation: Conversation,
    *,
    user: str | None = None,
    workspace: str | None = None,
    chunk_turns: int = CHUNK_TURNS,
    verify: bool | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Ingested:
    """Remembers a conversation, session after session; each session ends with its last turn.

    The ledger says what is still to do, not this function's memory of it: a run that was broken off
    anywhere is finished by the next, and one more run finds nothing to do.

    Args:
        memory: The memory.
        conversation: What was said.
        user: Whose memory. workspace: a second wall inside it.
        chunk_turns: Turns handled in one go, at least 1.
        verify: False commits each session unverified, instead of examining it.
        on_progress: Told after each chunk, when all of it is stored for good.

    Raises:
        BadInput: a conversation without turns, or a name that cannot be one; nothing is stored then.
    """
    if not conversation.turns:
        raise BadInput(f"conversation {conversation.name!r} is empty: it has no turn with text")
    started, scope = perf_counter(), memory.scope(user, workspace)
    total, done, result = len(conversation.turns), 0, Ingested()
    for session in conversation.sessions:
        within = scope.within(session.name)
        for chunk in _chunks(session.turns, chunk_turns):
            new = _add(memory, within, chunk, result)
            done += len(chunk)
            on_progress(Progress(chunk[0].id, chunk[-1].id, done, total, new))
        _end(memory, within, result, verify=verify)
    return result.model_copy(update={"seconds": round(perf_counter() - started, 3)})


def _chunks(turns: Sequence[Turn], size: int) -> Iterator[Sequence[Turn]]:
    for start in range(0, len(turns), size):
        yield turns[start : start + size]


def _add(memory: Memory, scope: Scope, chunk: Sequence[Turn], result: Ingested) -> bool:
    """Remembers a chunk unless all of it is done; counts what that did."""
    # Staging says under which ids the turns are stored, which may differ from the file's.
    ids = [turn.id for turn in memory.bank.stage_turns(scope, chunk)]
    states = memory.bank.turn_states(scope, ids)
    if all(states[name] == "processed" for name in ids):
        return False
    added = memory.add(list(chunk), user=scope.user, workspace=scope.workspace, session=scope.session)
    result.turns += len(added.turns)
    result.facts += len(added.facts)
    result.episodes += len(added.episodes)
    result.refreshed += len(added.refreshed)
    result.unextracted += len(added.unextracted)
    result.rejected += added.rejected
    result.usage = add_usage(result.usage, added.usage)
    return True


def _end(memory: Memory, scope: Scope, result: Ingested, *, verify: bool | None) -> None:
    """Ends the session unless it has ended; one whose end was broken off is ended again."""
    if all(info.is_committed for info in memory.bank.sessions(scope)):
        return
    ended = memory.end_session(scope.session, user=scope.user, workspace=scope.workspace, verify=verify)
    result.sessions += 1
    result.episodes += len(ended.episodes)
    result.probes += ended.probes
    result.passed_before += ended.passed_before
    result.passed_after += ended.passed_after
    result.ungraded += ended.ungraded
    result.repairs += ended.repairs
    result.rolled_back += ended.rolled_back
    result.merged += ended.merged
    result.unverified += [ended.session] if ended.status == "committed_unverified" else []
    result.usage = add_usage(result.usage, ended.usage)
