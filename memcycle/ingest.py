"""Feeding a whole conversation to a memory, chunk by chunk, so that it can be broken off and resumed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

from memcycle.core.conversation import Conversation
from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.core.usage import add_usage
from memcycle.ingest_runs import Decide, IngestRuns, Waits
from memcycle.memory import Memory
from memcycle.results import Added, Ended, Ingested


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
    chunk_turns: int | None = None,
    verify: bool | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    thread_id: str | None = None,
    decide: Decide = lambda _: None,
) -> Ingested:
    """Remembers a conversation, session after session; each session ends with its last turn.

    The ledger says what is still to do, not this function's memory of it: a run that was broken off
    anywhere is finished by the next, and one more run finds nothing to do.

    Args:
        memory: The memory.
        conversation: What was said.
        user: Whose memory. workspace: a second wall inside it.
        chunk_turns: New turns handled in one go, at least 1; by default those of a window of
            `theta.extraction`, whose guards are on.
        verify: False commits each session unverified, instead of examining it.
        on_progress: Told after each chunk, when all of it is stored for good.
        thread_id: Where the memory keeps its runs: those of this conversation go under ids that begin with
            it. With the same one a run of it that broke off goes on inside its chunk, instead of anew.
        decide: Asked where a run waits for a person; None leaves it waiting, and all that comes after it.

    Raises:
        BadInput: a conversation without turns, or a name that cannot be one; nothing is stored then.
    """
    if not conversation.turns:
        raise BadInput(f"conversation {conversation.name!r} is empty: it has no turn with text")
    started, scope = perf_counter(), memory.scope(user, workspace)
    runs = IngestRuns.of(memory, scope, thread_id, decide)
    size = chunk_turns or memory.settings.theta.extraction.new_turns
    total, done, result = len(conversation.turns), 0, Ingested(thread_id=runs.thread_id)
    try:
        for session in conversation.sessions:
            within = scope.within(session.name)
            for chunk in _chunks(session.turns, size):
                new = _add(runs, within, chunk, result)
                done += len(chunk)
                on_progress(Progress(chunk[0].id, chunk[-1].id, done, total, new))
            _end(runs, within, result, verify=verify)
    except Waits as waits:
        result.pending = waits.pending
    return result.model_copy(update={"seconds": round(perf_counter() - started, 3)})


def _chunks(turns: Sequence[Turn], size: int) -> Iterator[Sequence[Turn]]:
    for start in range(0, len(turns), size):
        yield turns[start : start + size]


def _add(runs: IngestRuns, scope: Scope, chunk: Sequence[Turn], result: Ingested) -> bool:
    """Remembers a chunk unless all of it is done; counts what that did."""
    bank, label = runs.memory.bank, runs.label(scope, [turn.model_dump_json() for turn in chunk])
    # Staging says under which ids the turns are stored, which may differ from the file's.
    ids = [turn.id for turn in bank.stage_turns(scope, chunk)]
    states = bank.turn_states(scope, ids)
    if all(states[name] == "processed" for name in ids) and not runs.is_open(label):
        return False

    def begin(thread_id: str | None) -> Added:
        return runs.memory.add(
            list(chunk),
            user=scope.user,
            workspace=scope.workspace,
            session=scope.session,
            thread_id=thread_id,
            bulk=True,
        )

    added = runs.run(scope, label, begin)
    result.turns += len(added.turns)
    result.facts += len(added.facts)
    result.episodes += len(added.episodes)
    result.refreshed += len(added.refreshed)
    result.unextracted += len(added.unextracted)
    result.reextracted += len(added.reextracted)
    result.uncovered += len(added.uncovered)
    result.warnings += added.warnings
    result.rejected += added.rejected
    result.usage = add_usage(result.usage, added.usage)
    return True


def _end(runs: IngestRuns, scope: Scope, result: Ingested, *, verify: bool | None) -> None:
    """Ends the session unless it has ended; one whose end was broken off is ended again."""
    label = runs.label(scope, ["end"])
    if all(info.is_committed for info in runs.memory.bank.sessions(scope)) and not runs.is_open(label):
        return

    def begin(thread_id: str | None) -> Ended:
        return runs.memory.end_session(
            scope.session, user=scope.user, workspace=scope.workspace, verify=verify, thread_id=thread_id
        )

    ended = runs.run(scope, label, begin)
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
    result.rejected += ended.rejected
    result.warnings += ended.warnings
    result.usage = add_usage(result.usage, ended.usage)
