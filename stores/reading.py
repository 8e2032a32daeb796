"""The reading half of the bank: what the ledger knows, inside one base scope."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from memcycle.core.clock import World
from memcycle.core.edit import Event
from memcycle.core.entry import Entry, Granularity, Kind, Status
from memcycle.core.probe import Probe
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.turn import Turn
from memcycle.stores import forgetting, portable, revising, staging
from memcycle.stores.ledger import conflicts, entries, events, links, plain_entries, probes, sessions, turns
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.ledger.entries import Listing, StoredEntry
from memcycle.stores.ledger.sessions import SessionInfo
from memcycle.stores.search.reading import speakers

RECALLABLE: tuple[Status, ...] = ("active", "staged")


class Reading:
    """Reads of turns, entries and sessions; needs the ledger alone. Thread-safe.

    An id of another base scope is an unknown id. A scope's session narrows listings to that session.

    Attributes:
        settings, world: As opened with.
        ledger: The system of record.
    """

    def __init__(self, settings: Settings, world: World, ledger: Ledger) -> None:
        self.settings, self.world, self.ledger = settings, world, ledger

    def turns(self, scope: Scope, ids: Iterable[str]) -> list[Turn]:
        """Turns by id, in the given order; unknown ones left out."""
        wanted = list(ids)
        if not wanted:
            return []
        with self.ledger.look() as conn:
            return entries.in_order(turns.by_ids(conn, scope, wanted), wanted)

    def session_turns(
        self, scope: Scope, *, last: int | None = None, before: int | None = None
    ) -> list[Turn]:
        """Turns of the scope's session in order: the `last` ones, of those before a position (exclusive)."""
        with self.ledger.look() as conn:
            return turns.of_session(conn, scope, staging.session_of(scope), last=last, before=before)

    def unprocessed(self, scope: Scope) -> list[Turn]:
        """Turns not read to the end yet, of the scope's session or of all."""
        with self.ledger.look() as conn:
            return turns.unprocessed(conn, scope)

    def turn_states(self, scope: Scope, ids: Iterable[str]) -> dict[str, str]:
        """State (staged, unextracted, extracted, processed) by turn id; unknown ids left out."""
        with self.ledger.look() as conn:
            return dict(turns.states(conn, scope, ids))

    def open_segment(self, scope: Scope) -> list[Turn]:
        """Turns of the scope's session after its last closed episode."""
        session = staging.session_of(scope)
        with self.ledger.read() as conn:
            after = sessions.closed_position(conn, scope, session)
            return turns.of_session(conn, scope, session, after=after)

    def next_position(self, scope: Scope) -> int:
        """The place of the session's next turn, from 1."""
        with self.ledger.look() as conn:
            return sessions.last_position(conn, scope, staging.session_of(scope)) + 1

    def get(self, scope: Scope, ids: Sequence[str]) -> list[Entry]:
        """Entries of any status by id, in the given order; unknown ones left out."""
        if not ids:
            return []
        with self.ledger.look() as conn:
            return entries.in_order(plain_entries.by_ids(conn, scope, ids), ids)

    def find(self, scope: Scope, prefix: str) -> list[Entry]:
        """Entries of any status whose id begins so."""
        with self.ledger.look() as conn:
            return _plain(entries.beginning(conn, scope, prefix))

    def speakers(self, scope: Scope) -> frozenset[str]:
        """Who speaks in what the scope may recall."""
        with self.ledger.read() as conn:
            return speakers(conn, scope)

    def users(self) -> list[str]:
        """Every user who has entries here, for whoever administers the home."""
        with self.ledger.look() as conn:
            return entries.users(conn)

    def raw_entries(self, scope: Scope, turn_ids: Iterable[str]) -> list[Entry]:
        """The recallable raw entries of turns, in conversation order."""
        return self.by_turns(scope, turn_ids, "raw")

    def by_turns(
        self,
        scope: Scope,
        turn_ids: Iterable[str],
        granularity: Granularity | None = None,
        statuses: Sequence[Status] = RECALLABLE,
    ) -> list[Entry]:
        """The entries of these statuses that rest on any of the turns, in conversation order."""
        wanted = list(turn_ids)
        if not wanted:
            return []
        with self.ledger.look() as conn:
            return plain_entries.by_turns(conn, scope, wanted, granularity, statuses)

    def entries(
        self,
        scope: Scope,
        *,
        granularity: Granularity | None = None,
        kind: Kind | None = None,
        statuses: Sequence[Status] = RECALLABLE,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Entry]:
        """Entries in conversation order: by session, first turn, granularity, id."""
        with self.ledger.read() as conn:
            ids = entries.ids_of(conn, scope, Listing(granularity, kind, tuple(statuses)))
            chosen = ids[offset : None if limit is None else offset + limit]
            return entries.in_order(plain_entries.by_ids(conn, scope, chosen), chosen)

    def count(
        self,
        scope: Scope,
        *,
        granularity: Granularity | None = None,
        kind: Kind | None = None,
        statuses: Sequence[Status] = RECALLABLE,
    ) -> dict[Granularity, int]:
        """How many entries `entries` would list, by granularity; granularities without any are left out."""
        with self.ledger.look() as conn:
            return entries.counts(conn, scope, Listing(granularity, kind, tuple(statuses)))

    def history(self, scope: Scope, entry_id: str) -> list[Event]:
        """Every change of an entry, of what it replaced and of what replaced it, oldest first.

        Raises:
            UnknownEntry: no such entry.
        """
        with self.ledger.read() as conn:
            if entries.one(conn, scope, entry_id) is None:
                raise revising.unknown(entry_id)
            return events.of_entries(conn, scope, links.chain(conn, scope, entry_id))

    def holders(self, scope: Scope, entry_id: str) -> list[Entry]:
        """What else holds the words of an entry: its turns, facts of those, episodes over those.

        Raises:
            UnknownEntry: no such entry.
        """
        with self.ledger.read() as conn:
            stored = entries.one(conn, scope, entry_id)
            if stored is None:
                raise revising.unknown(entry_id)
            return _plain(forgetting.holders(conn, stored.entry))

    def conflicts(self, scope: Scope) -> list[tuple[str, str, str]]:
        """Pairs of contradicting entries that wait to be settled, each with its reason, oldest first."""
        with self.ledger.look() as conn:
            return conflicts.queued(conn, scope)

    def sessions(self, scope: Scope) -> list[SessionInfo]:
        """Sessions of the base scope, or the scope's one, as they began."""
        with self.ledger.read() as conn:
            return sessions.infos(conn, scope)

    def probes(self, scope: Scope, *, part: int | None = None) -> list[Probe]:
        """What the scope's session was examined with, or all sessions of the base scope; one part or all.

        As sessions began, then by part and number.
        """
        with self.ledger.read() as conn:
            return probes.of_scope(conn, scope, part)

    def open_sessions(self, silent_since: datetime) -> list[Scope]:
        """Sessions of the home, of all users, that wait for their end and were not spoken in since a time."""
        with self.ledger.read() as conn:
            return [scope.within(session) for scope, session in sessions.idle_open(conn, silent_since)]

    def export(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Every entry of the scope as JSON data; see `portable.export`."""
        return portable.export(self.ledger, scope)


def _plain(stored: Iterable[StoredEntry]) -> list[Entry]:
    return [one.entry for one in stored]
