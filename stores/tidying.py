"""Keeps memory in order: what is to be done is planned from what is read, then done and logged.

A dry run is the plan; the real run does that plan. Nothing is erased.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from memcycle.core.entry import Entry
from memcycle.core.importance import MOST, reinforced
from memcycle.core.language.tokens import content_stems, stems, strip_names
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores import duplicates, retention
from memcycle.stores.duplicates import United
from memcycle.stores.ledger import entries, events, mentions, weights
from memcycle.stores.ledger.entries import Listing, StoredEntry
from memcycle.stores.ledger.events import Change
from memcycle.stores.ledger.weights import Weighed
from memcycle.stores.search import lexical
from memcycle.stores.writer import Writer, lexical_rows

ACTOR = "maintenance"
_SAME, _RENEWED = "the one kept says all of it", "a later summary of the same session and topic"
_NEAREST = 10
"""Facts that a fact is compared with; those that share nearly all its words come first in BM25."""
_SUMMARIES = Listing(kind="working_summary", statuses=("active", "staged"))


class Expired(NamedTuple):
    """An entry past a retention limit, and which."""

    entry: Entry
    why: str


class Maintenance(NamedTuple):
    """What a maintenance does, or would do.

    Entries are given as they stood before it.

    Attributes:
        united: Facts that stand for others which say the same or less.
        renewed: Working summaries that took the place of earlier ones.
        expired: What passed a retention limit, least important first.
        reinforced: How many entries count for more, since questions named what they name.
    """

    united: list[United]
    renewed: list[United]
    expired: list[Expired]
    reinforced: int


def plan(
    conn: sqlite3.Connection, scope: Scope, settings: Settings, now: datetime, turns: Sequence[str] | None
) -> Maintenance:
    """What is to be done now.

    Args:
        scope: Its base scope's active entries are looked at, and its session's staged ones.
        turns: Only facts of these turns are compared with the others, a bounded number of each; None compares
            all with all.
    """
    undone = events.undone(conn, scope)
    apart = [frozenset(actions) for actions in undone.values() if "supersede" in actions.values()]
    pairs = _pairs(conn, scope, turns)
    united = duplicates.unions(pairs, settings.theta.near_duplicate, apart=apart)
    renewed = [one for one in _renewals(_summaries(conn, scope)) if one.ids not in apart]
    raised = _raised(conn, scope)
    expired = (
        _expired(conn, scope, settings, now, _stays(undone), united=united, renewed=renewed, raised=raised)
        if settings.retention
        else []
    )
    return Maintenance(united, renewed, expired, len(raised))


def carry_out(writer: Writer, scope: Scope, planned: Maintenance) -> Maintenance:
    """Does what was planned, but for what changed since; gives what was done."""
    count = reinforce(writer.conn, scope)
    united = [one for one in planned.united if unite(writer, scope, *one, actor=ACTOR, why=_SAME)]
    renewed = [one for one in planned.renewed if _renew(writer, scope, one)]
    expired = [one for one in planned.expired if expire(writer, scope, one)]
    return Maintenance(united, renewed, expired, count)


def unite(
    writer: Writer, scope: Scope, keep: Entry | str, drop: Entry | str, *, actor: str, why: str
) -> bool:
    """Lets one entry stand for another; False where one is not recallable, or they differ in granularity."""
    found = _recallable(writer, scope, [_id(keep), _id(drop)])
    if found is None or found[0].entry.granularity != found[1].entry.granularity:
        return False
    writer.unite(*found, actor=actor, why=why)
    return True


def reinforce(conn: sqlite3.Connection, scope: Scope) -> int:
    """Lets entries count for more whose names questions named, and empties the queue of those names."""
    raised = _raised(conn, scope)
    weights.reinforce(conn, dict(raised.values()))
    mentions.clear(conn, scope)
    return len(raised)


def expired(conn: sqlite3.Connection, scope: Scope, settings: Settings, now: datetime) -> list[Expired]:
    """What is past a retention limit now, least important first."""
    if not settings.retention:
        return []
    return _expired(conn, scope, settings, now, _stays(events.undone(conn, scope)))


def _stays(undone: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Ids of entries that expired and were brought back: they do not expire again."""
    return {one for actions in undone.values() for one, action in actions.items() if action == "expire"}


def expire(writer: Writer, scope: Scope, one: Expired) -> bool:
    """Takes an entry out of recall for a passed limit; False where it left already."""
    found = _recallable(writer, scope, [one.entry.id])
    if found is None:
        return False
    (before,) = found
    after = writer.dismiss(before, "expired")
    line = Change(after.entry, "expire", events.state_of(before.entry), events.state_of(after.entry))
    writer.record([line], actor=ACTOR, why=one.why)
    return True


def _id(entry: Entry | str) -> str:
    return entry if isinstance(entry, str) else entry.id


def _recallable(writer: Writer, scope: Scope, ids: Sequence[str]) -> list[StoredEntry] | None:
    """The different entries of these ids, in order; None where one is missing or not recallable."""
    found = entries.in_order(entries.by_ids(writer.conn, scope, ids), ids)
    able = [one for one in found if one.entry.status in ("active", "staged")]
    return able if len(able) == len(ids) else None


def _pairs(
    conn: sqlite3.Connection, scope: Scope, turns: Sequence[str] | None
) -> Iterable[tuple[Entry, Entry]]:
    staged = entries.staged(conn, scope) if scope.session else []
    facts = [one for one in staged if one.entry.granularity == "fact"]
    if turns is None:
        ids = entries.ids_of(conn, scope.base, Listing("fact", statuses=("active",)))
        active = entries.in_order(entries.by_ids(conn, scope, ids), ids)
        return duplicates.alike([one.entry for one in (*active, *facts)])
    visible = {one.row for one in facts}
    own = [
        one
        for one in entries.by_turns(conn, scope, turns, "fact", ("active", "staged"))
        if one.entry.status == "active" or one.row in visible
    ]
    return _near(conn, scope, own, facts)


def _near(
    conn: sqlite3.Connection, scope: Scope, own: Sequence[StoredEntry], staged: Sequence[StoredEntry]
) -> list[tuple[Entry, Entry]]:
    """Each fact with those nearest to it in words: one search for all."""
    queries = [_telling(one.entry) for one in own]
    rows = lexical_rows(conn, staged)
    scores = lexical.score(conn, scope.key, "fact", queries, rows) if own else []
    nearest = [
        [int(row) for row in found.rows[(-found.views[:, 0]).argsort(kind="stable")[: _NEAREST + 1]]]
        for found in scores
    ]
    known = {one.row: one for one in (*own, *staged)}
    others = entries.by_rows(conn, {row for rows in nearest for row in rows} - known.keys())
    facts = {row: one.entry for row, one in (known | others).items()}
    return [
        (one.entry, facts[row])
        for one, rows_near in zip(own, nearest, strict=True)
        for row in rows_near
        if row != one.row
    ]


def _telling(entry: Entry) -> list[str]:
    """The stems that tell a fact from others: its longest ones, not the names that stand in most facts of a
    person. A fact that says the same lacks no more than a fifth of its words, and so not all of these."""
    names = [name for name in (entry.speaker, *entry.persons) if name]
    found = content_stems(strip_names(entry.text, names)) or content_stems(entry.text) or stems(entry.text)
    return sorted(dict.fromkeys(found), key=lambda stem: (-len(stem), stem))[: max(3, len(found) // 5 + 1)]


def _summaries(conn: sqlite3.Connection, scope: Scope) -> list[Entry]:
    """Working summaries as they were said: of the scope's session, of all without one the active."""
    ids = entries.ids_of(conn, scope, _SUMMARIES)
    found = [one.entry for one in entries.in_order(entries.by_ids(conn, scope, ids), ids)]
    return [one for one in found if one.status == "active" or scope.session]


def _renewals(summaries: Sequence[Entry]) -> list[United]:
    """Each working summary that one said later, of the same session and topic, follows; with that one."""
    last: dict[object, list[Entry]] = {}
    renewed = []
    for said, one in sorted(((one.observed_at, one) for one in summaries if one.observed_at), key=_said):
        topic = frozenset(name.casefold() for name in one.topics) or (one.title or "").casefold()
        if not topic or one.granularity == "raw":
            continue
        before = last.setdefault((one.scope.session, one.granularity, topic), [])
        if before and before[0].observed_at != said:
            renewed += [United(keep=one, drop=earlier) for earlier in before]
            before.clear()
        before.append(one)
    return renewed


def _said(dated: tuple[datetime, Entry]) -> tuple[datetime, str]:
    return dated[0], dated[1].id


def _renew(writer: Writer, scope: Scope, one: United) -> bool:
    found = _recallable(writer, scope, [one.drop.id, one.keep.id])
    if found is None:
        return False
    earlier, later = found
    writer.supersede(earlier, later, fresh=False, leaves="renewed", actor=ACTOR, why=_RENEWED)
    return True


def _raised(conn: sqlite3.Connection, scope: Scope) -> dict[str, tuple[int, float]]:
    """Entries that questions named since last time: by id the integer key and the new reinforcement."""
    waiting = mentions.waiting(conn, scope)
    if not waiting:
        return {}
    counted = {
        one: sum(waiting[name] for name in one.names & waiting.keys())
        for one in weights.named(conn, scope, below=MOST)
    }
    return {
        one.id: (one.row, reinforced(one.reinforcement, times)) for one, times in counted.items() if times
    }


def _expired(
    conn: sqlite3.Connection,
    scope: Scope,
    settings: Settings,
    now: datetime,
    stays: set[str],
    *,
    united: Sequence[United] = (),
    renewed: Sequence[United] = (),
    raised: Mapping[str, tuple[int, float]] | None = None,
) -> list[Expired]:
    """What will be past a limit after the steps before, which are planned but not done."""
    held = {one.id: one for one in weights.weighed(conn, scope)}
    for one, (_, value) in (raised or {}).items():
        held[one] = held[one]._replace(reinforcement=value)
    for keep, drop in united:
        held[keep.id] = _together(held[keep.id], held.pop(drop.id))
    for _, drop in renewed:
        held.pop(drop.id)
    due = retention.due(list(held.values()), settings.retention, scope, now, exempt=stays)
    found = entries.by_ids(conn, scope, [one.id for one in due])
    return [Expired(found[one.id].entry, one.why) for one in due]


def _together(keep: Weighed, drop: Weighed) -> Weighed:
    """The one kept as it will be weighed: it gets the turns of both, but stays observed when it was."""
    turn = max((time for time in (keep.turn, drop.turn) if time), default=None)
    return keep._replace(
        importance=max(keep.importance, drop.importance), heard=turn or keep.heard, turn=turn
    )
