"""A write in progress: entries together with everything that must change along with them.

All changes to entries go through here, so that the lexical rows, the outbox and the log can never fall behind
the entries: each follows from an entry's state before and after.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memcycle.core.entry import Departure, Entry, Status, departed, same_speaker
from memcycle.core.errors import UnknownEntry
from memcycle.core.scope import Scope
from memcycle.core.world import World
from memcycle.stores.ledger import entries, events, full_text, links, outbox, turns
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.ledger.entries import StoredEntry
from memcycle.stores.ledger.events import Change
from memcycle.stores.search import lexical


class Writer:
    """Changes entries inside one ledger transaction.

    Attributes:
        conn: The transaction.
        world: Clock and ids. now: the time of this write, one for all its parts.
    """

    def __init__(self, conn: sqlite3.Connection, world: World) -> None:
        self.conn, self.world, self.now = conn, world, world.now()

    def insert(self, entry: Entry, vector: Vector | None) -> StoredEntry:
        """Adds a new entry, recorded now where it does not say otherwise."""
        return self.insert_all([(entry, vector)])[0]

    def insert_all(self, given: Sequence[tuple[Entry, Vector | None]]) -> list[StoredEntry]:
        """Adds new entries, in order, with their vectors, in one pass over each table."""
        now = {"recorded_at": self.now}
        dated = [(one if one.recorded_at else one.model_copy(update=now), vector) for one, vector in given]
        stored = entries.insert(self.conn, dated)
        active = [one for one in stored if one.entry.status == "active"]
        self.reindex(active)
        outbox.put(self.conn, [(one.entry.scope, one.entry.id) for one in active])
        return stored

    def change(self, stored: StoredEntry, **changes: Any) -> StoredEntry:
        """Changes the state of an entry (see `entries.change`)."""
        after = entries.change(self.conn, stored, **changes)
        was, now = stored.entry.status == "active", after.entry.status == "active"
        if now and not was:
            self.reindex([after])
        if was and not now:
            full_text.remove(self.conn, [after.row])
        if now or was:
            outbox.put(self.conn, [(after.entry.scope, after.entry.id)])
        return after

    def revive(
        self, stored: StoredEntry, status: Status, vector: Vector | None, embedder: str | None
    ) -> StoredEntry:
        """Makes an entry that was replaced or forgotten valid again."""
        if stored.vector is None and vector is not None and embedder is not None:
            entries.set_vectors(self.conn, [(stored.entry.id, vector)], embedder)
            stored = stored._replace(vector=vector)
        return self.readmit(stored, status=status)

    def readmit(
        self, stored: StoredEntry, *, status: Status, valid_until: datetime | None = None
    ) -> StoredEntry:
        """Makes an entry recallable again: no successor, no reason for having left."""
        return self.change(
            stored,
            status=status,
            superseded_by=None,
            valid_until=valid_until,
            metadata=departed(stored.entry, None),
        )

    def dismiss(self, stored: StoredEntry, why: Departure | None) -> StoredEntry:
        """Takes an entry out of recall that nothing contradicts and no other entry replaces."""
        return self.change(
            stored, status="forgotten", valid_until=self.now, metadata=departed(stored.entry, why)
        )

    def record(
        self, changes: Sequence[Change], *, actor: str, why: str = "", undoes: str | None = None
    ) -> None:
        """Logs one change."""
        events.record(self.conn, self.world, changes, actor=actor, why=why, undoes=undoes)

    def duplicate(self, entry: Entry) -> StoredEntry | None:
        """The recallable entry that says exactly this already, of the same occurrence.

        The same words read as two different dates are two occurrences ("I went running today"), never one. A
        raw turn is no duplicate of another: who said what when is what it is for.
        """
        if entry.granularity == "raw":
            return None
        alike = entries.same(self.conn, entry.scope, entry.granularity, entry.text)
        return next(
            (other for other in alike if other.entry.id != entry.id and _same_occurrence(other.entry, entry)),
            None,
        )

    def merge(self, target: StoredEntry, source: Entry, *, actor: str, why: str) -> StoredEntry:
        """Unites the source's turns into the target; no log line where that changes nothing."""
        turns = united(target.entry.turns, source.turns)
        if turns == target.entry.turns:
            return target
        after = self.change(target, turns=turns)
        self.record([events.line("merge", target.entry, after.entry)], actor=actor, why=why)
        return after

    def unite(self, keep: StoredEntry, drop: StoredEntry, *, actor: str, why: str) -> StoredEntry:
        """Lets `keep`, with the sources of both and the greater weight, stand for `drop` as well.

        One change, so that undoing it gives both back as they were.
        """
        taken = {
            "turns": united(keep.entry.turns, drop.entry.turns),
            "related_turns": united(keep.entry.related_turns, drop.entry.related_turns),
            "importance": max(keep.entry.importance, drop.entry.importance),
        }
        return self.supersede(drop, keep, fresh=False, taken=taken, leaves="united", actor=actor, why=why)

    def supersede(
        self,
        old: StoredEntry,
        new: StoredEntry,
        *,
        fresh: bool,
        actor: str,
        why: str,
        taken: Mapping[str, Any] | None = None,
        leaves: Departure | None = None,
    ) -> StoredEntry:
        """Makes `new`, already stored, the successor of `old` and closes the old one's validity.

        Args:
            fresh: Whether this change brought `new` up; else it stays when the change is undone.
            taken: State of `new` that changes along, such as turns it takes over; undone along, too.
            leaves: Why the old one leaves, unless a role found it contradicted. What is not contradicted is
                no predecessor of the new one, which stays the statement it was.
        """
        holds = leaves not in (None, "corrected")
        ended = self.now if holds else new.entry.event_time or new.entry.observed_at or self.now
        closed = self.change(
            old,
            status="superseded",
            superseded_by=new.entry.id,
            valid_until=ended,
            metadata=departed(old.entry, leaves),
        )
        earlier = new.entry.supersedes if holds else united(new.entry.supersedes, [old.entry.id])
        successor = self.change(new, supersedes=earlier, **(taken or {}))
        links.put(self.conn, old.entry.scope, new.entry.id, old.entry.id)
        made = (
            events.line("update", old.entry, successor.entry)
            if fresh
            else events.line("merge", new.entry, successor.entry)
        )
        self.record([events.line("supersede", old.entry, closed.entry), made], actor=actor, why=why)
        return successor

    def reindex_after(self, scope: Scope, session: str, position: int) -> None:
        """The same of the turns whose lexical window reaches a turn that is gone, or says something else now.

        The window counts turns, not places: as many turns as it is wide may reach it.
        """
        later = turns.of_session(self.conn, scope, session, after=position)[: lexical.TURNS_BEFORE]
        found = entries.by_turns(self.conn, scope, [turn.id for turn in later], "raw", ("active",))
        for one in found:
            self.change(one)  # its words are other ones now: what is kept of them in memory is out of date
        self.reindex(found)

    def reindex(self, stored: Sequence[StoredEntry]) -> None:
        """Writes the lexical rows of active entries anew, since their surroundings changed."""
        lexical.put(self.conn, lexical.rows_of(self.conn, stored))


def known(conn: sqlite3.Connection, scope: Scope, entry: str, *, but: Status | None = None) -> StoredEntry:
    """The entry with this id, of any status but one.

    Raises:
        UnknownEntry: there is none in this memory; one of another user's must look the same.
    """
    stored = entries.one(conn, scope, entry)
    if stored is None or stored.entry.status == but:
        raise UnknownEntry(f"no entry {entry} in this memory; `memories` lists them")
    return stored


def united(own: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Ids of both, each once, one's own first."""
    return tuple(dict.fromkeys((*own, *others)))


def _same_occurrence(one: Entry, other: Entry) -> bool:
    # When it happened, where the text itself says so, and the time is not only that of saying it.
    times = {entry.event_time for entry in (one, other) if entry.event_time != entry.observed_at} - {None}
    # "I have a dog", said by two people, are two facts; two different readings are two times.
    return same_speaker(one.speaker, other.speaker) and len(times) < 2  # noqa: PLR2004
