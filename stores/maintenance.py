"""Keeps memory in order: what is to be done is planned from what is read, then done and logged.

A dry run is the plan; the real run does that plan. Nothing is erased.
"""

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from memcycle.core.entry import MOST, Entry, decayed, reinforced, same_speaker
from memcycle.core.language.dates import read_dates
from memcycle.core.language.restatement import Relation, content_of, restates
from memcycle.core.language.tokens import content_stems, stems, strip_names
from memcycle.core.scope import Scope
from memcycle.core.settings import Retention, Settings
from memcycle.core.validity import is_correction
from memcycle.stores.ledger import entries, events, mentions
from memcycle.stores.ledger import entries as weights
from memcycle.stores.ledger.entries import Listing, StoredEntry, Weighed
from memcycle.stores.ledger.events import Change
from memcycle.stores.search import lexical
from memcycle.stores.writer import Writer, lexical_rows

_LATEST = datetime.max.replace(tzinfo=UTC)
_ANY = datetime(2000, 1, 1, tzinfo=UTC)


class United(NamedTuple):
    """A fact that stands for another from now on."""

    keep: Entry
    drop: Entry

    @property
    def ids(self) -> frozenset[str]:
        """Ids of both."""
        return frozenset((self.keep.id, self.drop.id))


def relation(one: Entry, other: Entry, least: float) -> Relation | None:
    """How two facts relate that are one statement of one person and occasion; None where they are not.

    Args:
        least: Share of words they must have in common, see `restates`.
    """
    if one.granularity != "fact" or other.granularity != "fact":
        return None
    if "working_summary" in (one.kind, other.kind) or _occasion(one) != _occasion(other):
        return None
    if not same_speaker(one.speaker, other.speaker):
        return None
    found = restates(one.text, other.text, least)
    return found if found and _dates(one) == _dates(other) else None


def union(one: Entry, other: Entry, least: float) -> United | None:
    """Which of two facts stands for both, None where neither does.

    The one that says more; of equals the more important, else the earlier. What a person corrected is never
    dropped for what a role wrote.
    """
    found = relation(one, other, least)
    if found is None:
        return None
    keep, drop = (one, other) if found == "more" or (found == "same" and _first(one, other)) else (other, one)
    if is_correction(drop):
        return None if found != "same" or is_correction(keep) else United(drop, keep)
    return United(keep, drop)


def alike(facts: Sequence[Entry]) -> Iterable[tuple[Entry, Entry]]:
    """All pairs of which one holds every content word of the other, each once: no other can be a union.

    A fact is compared only with those that hold its rarest word.
    """
    content = [content_of(fact.text) for fact in facts]
    holders: dict[str, list[int]] = {}
    for at, words in enumerate(content):
        for word in words:
            holders.setdefault(word, []).append(at)
    for at, words in enumerate(content):
        rarest = min((holders[word] for word in words), key=len, default=[])
        for other in rarest:
            # Of two with the same words each is found by the other; the later one is the one to tell of it.
            if other != at and words <= content[other] and (other < at or words != content[other]):
                yield facts[at], facts[other]


def unions(
    pairs: Iterable[tuple[Entry, Entry]], least: float, *, apart: Iterable[frozenset[str]] = ()
) -> list[United]:
    """The unions among pairs of facts, in the order they are to be made, each as the facts stand by then.

    Args:
        apart: Ids of pairs that somebody took apart again.
    """
    kept_apart = set(apart)
    now: dict[str, Entry] = {}
    heirs: dict[str, Entry] = {}

    def standing(fact: Entry) -> Entry:
        """The fact as it stands by then, or the one that stands for it."""
        while fact.id in heirs:
            fact = heirs[fact.id]
        return now.get(fact.id, fact)

    chosen = []
    for pair in sorted(pairs, key=lambda pair: sorted(map(_age, pair))):
        one, other = sorted(map(standing, pair), key=_age)
        ids = frozenset((one.id, other.id))
        if len(ids) == 1 or ids in kept_apart:
            continue
        found = union(one, other, least)
        if found is not None:
            chosen.append(found)
            heirs[found.drop.id] = found.keep
            greater = max(one.importance, other.importance)
            now[found.keep.id] = found.keep.model_copy(update={"importance": greater})
    return chosen


def _age(entry: Entry) -> tuple[datetime, str]:
    return entry.observed_at or entry.recorded_at or _LATEST, entry.id


def _first(one: Entry, other: Entry) -> bool:
    """Whether the first of two equals is the one to keep."""
    return (-one.importance, _age(one)) < (-other.importance, _age(other))


def _occasion(entry: Entry) -> object:
    """When it happened, where that is known and not only the time of saying it."""
    said_only = entry.event_time is None or entry.event_time == entry.observed_at
    return None if said_only else (entry.event_time, entry.event_precision)


def _dates(entry: Entry) -> object:
    """The dates that its words name. Those of a statement of unknown time are like no other's."""
    if entry.observed_at is None:
        return entry.id if read_dates(entry.text, _ANY) else frozenset()
    return frozenset((one.start, one.precision) for one in read_dates(entry.text, entry.observed_at))


class Due(NamedTuple):
    """The id of an entry past a limit, and which limit."""

    id: str
    why: str


def due(
    held: Sequence[Weighed],
    rules: Sequence[Retention],
    scope: Scope,
    now: datetime,
    *,
    exempt: Collection[str] = (),
) -> list[Due]:
    """Entries past the limits that apply to the scope, least important first, each once.

    Each rule counts what the rules before it leave. Importance is as it is now, decayed; of equals the one
    heard of longest ago goes first.

    Args:
        held: All recallable entries of the scope.
        exempt: Ids that stay, and do not count: they push nothing else out.
    """
    left = sorted(held, key=lambda one: _standing(one, now))
    chosen: dict[str, str] = {}
    for rule in rules:
        if rule.user in (None, scope.user) and rule.workspace in (None, scope.workspace):
            over = _over(rule, [one for one in left if _covers(rule, one)], now, exempt)
            chosen |= over
            left = [one for one in left if one.id not in over]
    rank = {one.id: _standing(one, now) for one in held}
    return [Due(one, chosen[one]) for one in sorted(chosen, key=lambda one: rank[one])]


def _standing(one: Weighed, now: datetime) -> tuple[float, float, str]:
    heard = one.heard.timestamp() if one.heard is not None else now.timestamp()
    return decayed(one.importance, one.reinforcement, one.heard, now), heard, one.id


def _covers(rule: Retention, one: Weighed) -> bool:
    return rule.kind in (None, one.kind) and rule.granularity in (None, one.granularity)


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
    united = unions(pairs, settings.theta.near_duplicate, apart=apart)
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
    passed = due(list(held.values()), settings.retention, scope, now, exempt=stays)
    found = entries.by_ids(conn, scope, [one.id for one in passed])
    return [Expired(found[one.id].entry, one.why) for one in passed]


def _together(keep: Weighed, drop: Weighed) -> Weighed:
    """The one kept as it will be weighed: it gets the turns of both, but stays observed when it was."""
    turn = max((time for time in (keep.turn, drop.turn) if time), default=None)
    return keep._replace(
        importance=max(keep.importance, drop.importance), heard=turn or keep.heard, turn=turn
    )
