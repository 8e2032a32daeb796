"""Storing a conversation, ready to be asked: turns alone, with the data set's facts, or as memcycle does it.

Each conversation is stored in a home of its own. Storing again what is stored changes nothing, so that a run
which was broken off is finished by the next.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from memcycle.core.edit import Edit
from memcycle.core.entry import new_entry
from memcycle.core.probe import Usage
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.core.world import World
from memcycle.evals.dataset import GivenFact, Sample
from memcycle.evals.records import NONE, OBSERVATIONS, Plan, StoredConversation
from memcycle.ingest import ingest
from memcycle.memory import Memory, roles_of
from memcycle.stores.bank import Bank

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

OnProgress = Callable[[int, int], None]
"""Is told how many turns of how many are stored."""


def base_scope(sample: Sample) -> Scope:
    """Whose memory a sample is."""
    return Scope(user=sample.id)


def open_memory(
    plan: Plan,
    sample: Sample,
    home: Path,
    model: str,
    *,
    base_url: str | None = None,
    embeddings: "Embeddings | None" = None,
) -> Memory:
    """The memory of one conversation, with a clock that begins where the conversation ends.

    So figures do not change with the day on which they are made: what is long ago is so by the
    conversation's own time.

    Raises:
        ModelUnavailable, StoreError: as `Memory.open`.
    """
    start, began = max(turn.time for turn in sample.conversation.turns), perf_counter()
    return Memory(
        plan.settings.model_copy(update={"home": home}),
        roles_of(model, None, None, {"base_url": base_url}),
        embeddings=embeddings,
        user=sample.id,
        world=World(now=lambda: start + timedelta(seconds=perf_counter() - began)),
    )


def store(
    memory: Memory, sample: Sample, facts: str, on_progress: OnProgress = lambda _done, _total: None
) -> StoredConversation:
    """Stores a conversation and ends its sessions; says what is stored and what it took.

    Args:
        memory: Where to; its roles are those that read facts, where `facts` is not of the data set.
        facts: `none`, `observations`, or who reads them, as in `Plan`.
        on_progress: Told of progress.
    """
    began, bank, usage, refused = perf_counter(), memory.bank, Usage(), 0
    given = sample.facts if facts == OBSERVATIONS else ()
    if facts in (NONE, OBSERVATIONS):
        refused = _store_given(bank, sample, given, on_progress)
    else:
        usage = ingest(
            memory,
            sample.conversation,
            user=sample.id,
            on_progress=lambda progress: on_progress(progress.done, progress.total),
        ).usage
    counts = bank.count(base_scope(sample))
    return StoredConversation(
        conversation=sample.id,
        turns=counts.get("raw", 0),
        facts=counts.get("fact", 0),
        unsourced=sum(not fact.turns for fact in given),
        refused=refused,
        embedder=bank.embedder_id,
        usage=usage,
        seconds=round(perf_counter() - began, 3),
    )


def _store_given(bank: Bank, sample: Sample, facts: Sequence[GivenFact], on_progress: OnProgress) -> int:
    """Turns first, since a fact may rest on a turn of another session; then facts, session after session."""
    scope, sessions, total = base_scope(sample), sample.conversation.sessions, len(sample.conversation.turns)
    for session in sessions:
        bank.stage_turns(scope.within(session.name), session.turns)
    done = refused = 0
    for session in sessions:
        within = scope.within(session.name)
        own = [fact for fact in facts if fact.session == session.name]
        refused += len(bank.apply(within, _edits(within, own, session.turns)).rejected) if own else 0
        bank.commit_session(within)
        done += len(session.turns)
        on_progress(done, total)
    return refused


def _edits(scope: Scope, facts: Sequence[GivenFact], turns: Sequence[Turn]) -> list[Edit]:
    """A data set's facts of one session, said when their first turn was, else when the session began."""
    times = {turn.id: turn.time for turn in turns}
    return [
        Edit(
            op="ADD",
            entry=new_entry(
                scope,
                "fact",
                fact.text,
                fact.turns,
                speaker=fact.speaker,
                observed_at=next((times[name] for name in fact.turns if name in times), turns[0].time),
                actor="given",
            ),
        )
        for fact in facts
    ]
