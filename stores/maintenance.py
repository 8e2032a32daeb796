"""Keeps memory in order: duplicates, renewed summaries, reinforcement, retention.

What is to be done is planned from what is read, then done and logged.

A dry run is the plan; the real run does that plan. Nothing is erased.
"""

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from memcycle.core.entry import Entry, decayed
from memcycle.core.language.tokens import content_stems, stems, strip_names
from memcycle.core.scope import Scope
from memcycle.core.settings import Retention, Settings
from memcycle.stores.duplicates import United, alike, unions
from memcycle.stores.ledger import entries, events, weights
from memcycle.stores.ledger.entries import RECALLABLE, StoredEntry, wall_of
from memcycle.stores.ledger.weights import Weighed
from memcycle.stores.search import lexical
from memcycle.stores.writer import Writer

ACTOR = "maintenance"
_NEAREST = 10
"""Facts that a fact is compared with; those that share nearly all its words come first in BM25."""


def due(
    held: Sequence[Weighed],
    rules: Sequence[Retention],
    scope: Scope,
    now: datetime,
    *,
    exempt: Collection[str] = (),
) -> dict[str, str]:
    """Ids of entries past the limits that apply to the scope, least important first, each with the limit.

    Each rule counts what the rules before it leave. Importance is as it is now, decayed; of equals the one
    heard of longest ago goes first.

    Args:
        held: All recallable entries of the scope.
        exempt: Ids that stay, and do not count: they push nothing else out.
    """
    left = whole = sorted(held, key=lambda one: _standing(one, now))
    chosen: dict[str, str] = {}
    for rule in rules:
        if rule.user in (None, scope.user) and rule.workspace in (None, scope.workspace):
            covered = [
                one
                for one in left
                if rule.kind in (None, one.kind) and rule.granularity in (None, one.granularity)
            ]
            over = _over(rule, covered, now, exempt)
            chosen |= over
            left = [one for one in left if one.id not in over]
    return {one.id: chosen[one.id] for one in whole if one.id in chosen}


def _standing(one: Weighed, now: datetime) -> tuple[float, float, str]:
    heard = one.heard.timestamp() if one.heard is not None else now.timestamp()
    return decayed(one.importance, one.reinforcement, one.heard, now), heard, one.id


def _over(
    rule: Retention, covered: Sequence[Weighed], now: datetime, exempt: Collection[str]
) -> dict[str, str]:
    """Ids past a rule's limits, each with the limit in words. `covered` comes least important first."""
    found: dict[str, str] = {}
    able = [one for one in covered if one.id not in exempt]
    if rule.max_age_days is not None:
        oldest = now - timedelta(days=rule.max_age_days)
        why = f"last said over {rule.max_age_days:g} days ago"
        found |= {one.id: why for one in able if one.heard is not None and one.heard < oldest}
    if rule.max_entries is not None:
        surplus = len(able) - len(found) - rule.max_entries
        why = f"at most {rule.max_entries} of these are kept, and it is among the least important"
        still = [one.id for one in able if one.id not in found]
        found |= dict.fromkeys(still[: max(surplus, 0)], why)
    return found


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
    """What is to be done now. Looked at is what the scope may see: active, and staged by the visibility.

    Only facts of these `turns` are compared with the others, a bounded number of each; None compares all.
    """
    undone = events.undone(conn, scope)
    separated = [frozenset(actions) for actions in undone.values() if "supersede" in actions.values()]
    wall = wall_of(scope, settings.visibility)
    pairs = _pairs(conn, scope, turns, wall)
    united = unions(pairs, settings.theta.near_duplicate, separated=separated)
    renewed = [one for one in _renewals(_summaries(conn, scope, wall)) if one.ids not in separated]
    raised = weights.raised(conn, scope)
    expired: list[Expired] = []
    if settings.retention:
        held = _held_after(weights.weighed(conn, scope, wall), united, renewed, raised)
        # What expired and was brought back does not expire again.
        stays = {one for actions in undone.values() for one, action in actions.items() if action == "expire"}
        passed = due(held, settings.retention, scope, now, exempt=stays)
        found = entries.by_ids(conn, scope, passed)
        expired = [Expired(found[one].entry, why) for one, why in passed.items()]
    return Maintenance(united, renewed, expired, len(raised))


def carry_out(writer: Writer, scope: Scope, planned: Maintenance) -> Maintenance:
    """Does what was planned, but for what changed since; gives what was done."""
    # Read again: what another maintenance counted meanwhile counts once.
    raised = weights.raised(writer.conn, scope)
    weights.reinforce(writer.conn, dict(raised.values()))
    weights.clear_mentions(writer.conn, scope)
    done = Maintenance([], [], [], len(raised))
    for one in planned.united:
        if found := _recallable(writer, scope, one.keep, one.drop):
            writer.unite(*found, actor=ACTOR, why="the one kept says all of it")
            done.united.append(one)
    for one in planned.renewed:
        if found := _recallable(writer, scope, one.drop, one.keep):
            why = "a later summary of the same session and topic"
            writer.supersede(*found, fresh=False, leaves="renewed", actor=ACTOR, why=why)
            done.renewed.append(one)
    for past in planned.expired:
        for before in _recallable(writer, scope, past.entry):
            after = writer.dismiss(before, "expired")
            writer.record([events.line("expire", before.entry, after.entry)], actor=ACTOR, why=past.why)
            done.expired.append(past)
    return done


def _recallable(writer: Writer, scope: Scope, *wanted: Entry) -> list[StoredEntry]:
    """The entries as they stand, in order; none where one of them is missing or has left recall."""
    ids = [one.id for one in wanted]
    found = entries.in_order(entries.by_ids(writer.conn, scope, ids), ids)
    able = [one for one in found if one.entry.status in RECALLABLE]
    return able if len(able) == len(ids) else []


def _pairs(
    conn: sqlite3.Connection, scope: Scope, turns: Sequence[str] | None, wall: str | None
) -> Iterable[tuple[Entry, Entry]]:
    facts = [one for one in entries.staged(conn, scope, wall) if one.entry.granularity == "fact"]
    if turns is None:
        ids = entries.ids_of(conn, scope.base, granularity="fact", statuses=["active"])
        active = entries.in_order(entries.by_ids(conn, scope, ids), ids)
        return alike([one.entry for one in (*active, *facts)])
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
    rows = lexical.rows_of(conn, staged)
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


def _summaries(conn: sqlite3.Connection, scope: Scope, wall: str | None) -> list[Entry]:
    """Working summaries as they were said: of the scope's session, of all without one what may be seen."""
    found = [one.entry for one in entries.summaries(conn, scope)]
    return [one for one in found if one.status == "active" or wall in (None, one.scope.session)]


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


def _held_after(
    found: Sequence[Weighed],
    united: Sequence[United],
    renewed: Sequence[United],
    raised: Mapping[str, tuple[int, float]],
) -> list[Weighed]:
    """What will be recallable after the steps before retention, which are planned but not done."""
    held = {one.id: one for one in found}
    for name, (_, value) in raised.items():
        held[name] = held[name]._replace(reinforcement=value)
    for united_pair in united:
        keep, drop = held[united_pair.keep.id], held.pop(united_pair.drop.id)
        # It gets the turns of both, but stays observed when it was.
        turn = max((time for time in (keep.turn, drop.turn) if time), default=None)
        importance = max(keep.importance, drop.importance)
        held[keep.id] = keep._replace(importance=importance, heard=turn or keep.heard, turn=turn)
    for one in renewed:
        held.pop(one.drop.id)
    return list(held.values())
