"""Facts deleted before a session is examined, and what became of them: the count behind `evals.sessions`.

A probe **asks for** a deleted fact when its supporting turn is a turn of the fact and the fact holds more
than half of the probe's wanted words: the content stems of its gold answer that its question does not give.
Words of a fact are the content stems of its text and of its event time as the Answerer is shown it.

A fact **came back** when, right after its session ended, an active fact rests on the turn of a probe that
asked for it, holds more than half of that probe's wanted words, and did not rest on that turn before: what
survived the deletion counts for nothing.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from memcycle.core.entry import Entry, Granularity
from memcycle.core.language.dates import format_time
from memcycle.core.language.tokens import content_stems
from memcycle.core.probe import Decision, Probe
from memcycle.core.scope import Scope
from memcycle.stores.bank import Bank
from memcycle.stores.ledger import conflicts, entries, events, links
from memcycle.stores.ledger import entries as entry_writes

Fate = Literal[
    "came back",
    "not lost: its probe passed from an episode",
    "not lost: its probe passed from another fact",
    "its probe was not graded",
    "the Repairer proposed nothing",
    "its repair was refused",
    "its repair was rolled back",
    "the Consolidator took it for known",
    "its repair holds other words or another turn",
]
"""What became of a deleted fact that a probe asks for."""

FATES: tuple[Fate, ...] = get_args(Fate)

_BY_DECISION: Mapping[Decision, Fate] = {
    "NOOP": "the Repairer proposed nothing",
    "REFUSED": "its repair was refused",
    "SKIP": "the Consolidator took it for known",
}


@dataclass(frozen=True)
class Deleted:
    """What a deletion took and left of a session.

    Attributes:
        facts: Staged facts there were.
        gone: Those deleted.
        left: Id and turn of every fact that rested on a turn of the session afterwards.
    """

    facts: int
    gone: tuple[Entry, ...]
    left: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Outcome:
    """What became of a deleted fact.

    Attributes:
        asked: The probe that speaks for it, None if none asks for it.
        fate: None if no probe asks for it.
    """

    fact: Entry
    asked: Probe | None
    fate: Fate | None


def delete_some(bank: Bank, scope: Scope, share: float, seed: int) -> Deleted:
    """Deletes that share (0 to 1) of the session's staged facts from the ledger, chosen by the seed.

    Nothing remembers them: no log, no link, no tombstone. Facts that replaced another are left alone, since
    without them the other would be true again, and it is not.
    """
    with bank.ledger.read() as conn:
        staged = [one for one in entries.staged(conn, scope) if one.entry.granularity == "fact"]
    whole = [one for one in staged if not one.entry.supersedes]
    wanted = min(len(whole), round(share * len(staged)))
    # The choice must not depend on the order in which the ledger lists them.
    ordered = sorted(whole, key=lambda one: one.entry.id)
    gone = random.Random(f"{seed} {scope.session}").sample(ordered, wanted)  # noqa: S311 - no secret
    ids = {one.entry.id for one in gone}
    with bank.ledger.write(scope) as conn:
        events.erase(conn, scope, ids)
        links.erase(conn, scope, ids)
        conflicts.erase(conn, scope, ids)
        entry_writes.delete(conn, [one.row for one in gone])
    turns = [turn.id for turn in bank.session_turns(scope)]
    left = {(fact.id, turn) for fact in bank.by_turns(scope, turns, "fact") for turn in fact.turns}
    return Deleted(len(staged), tuple(one.entry for one in gone), frozenset(left))


def outcomes(bank: Bank, scope: Scope, deleted: Deleted) -> list[Outcome]:
    """What became of each deleted fact, right after its session ended."""
    probes = bank.probes(scope)
    cited = {name for probe in probes if probe.before is not None for name in probe.before.cited}
    kinds = {entry.id: entry.granularity for entry in bank.get(scope, sorted(cited))}
    found: list[Outcome] = []
    for fact in deleted.gone:
        asking = [probe for probe in probes if asks_for(probe, fact)]
        turns = {probe.turn for probe in asking}
        now = bank.by_turns(scope, sorted(turns), "fact", ("active",))
        judged = [(probe, fate(probe, now, deleted.left, kinds)) for probe in asking]
        # One fact, one fate: that of the probe that got it furthest.
        probe, became = min(judged, key=lambda one: _rank(*one), default=(None, None))
        found.append(Outcome(fact, probe, became))
    return found


def _rank(probe: Probe, became: Fate) -> tuple[int, int]:
    """Back first, then what happened to a repair, last that none was needed; the earlier probe of equals."""
    if became == "came back":
        return 0, probe.n
    return (2 if probe.passed_before else 1), probe.n


def wanted_words(probe: Probe) -> set[str]:
    """Content stems of the probe's gold answer that its question does not give."""
    return set(content_stems(probe.gold)) - set(content_stems(probe.question))


def holds(fact: Entry, words: set[str]) -> bool:
    """Whether the fact says more than half of the words; of no words, never."""
    when = format_time(fact.event_time, fact.event_precision) if fact.event_time else ""
    told = words & set(content_stems(f"{fact.text} {when}"))
    return 2 * len(told) > len(words)


def asks_for(probe: Probe, fact: Entry) -> bool:
    """Whether the probe asks for what the fact says."""
    return probe.turn in fact.turns and holds(fact, wanted_words(probe))


def fate(
    probe: Probe,
    now: Iterable[Entry],
    left: frozenset[tuple[str, str]],
    kinds: Mapping[str, Granularity],
) -> Fate:
    """What became of a deleted fact, by the probe that asks for it.

    Args:
        probe: After the session's end.
        now: The active facts of its turn.
        left: Id and turn of the facts that survived the deletion.
        kinds: Granularity by id of the entries that its first answer cites.
    """
    words = wanted_words(probe)
    if any(
        probe.turn in fact.turns and (fact.id, probe.turn) not in left and holds(fact, words) for fact in now
    ):
        return "came back"
    repair = probe.repair
    if probe.before is not None and probe.passed_before:
        from_episode = any(kinds.get(name) == "episode" for name in probe.before.cited)
        return (
            "not lost: its probe passed from an episode"
            if from_episode
            else "not lost: its probe passed from another fact"
        )
    if repair is None or repair.decision is None:
        return "its probe was not graded"
    if repair.rolled_back:
        return "its repair was rolled back"
    return _BY_DECISION.get(repair.decision, "its repair holds other words or another turn")


def tally(found: Sequence[Outcome]) -> dict[Fate, int]:
    """How many of the facts that probes ask for met each fate, in the order of `FATES`."""
    met = [outcome.fate for outcome in found]
    return {name: met.count(name) for name in FATES}
