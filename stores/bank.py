"""The bank: the one door to storage."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from memcycle.core.edit import Applied, Edit, Event
from memcycle.core.entry import Entry, Granularity, Kind, Status
from memcycle.core.errors import BadInput, StoreError
from memcycle.core.probe import REPAIRER, Probe, Repair, SessionReport
from memcycle.core.redaction import Redactor
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.turn import Turn
from memcycle.core.world import World
from memcycle.stores import doctor as upkeep
from memcycle.stores import edits as applying
from memcycle.stores import edits as retracting
from memcycle.stores import edits as revising
from memcycle.stores import forgetting, portable
from memcycle.stores import maintenance as tidying
from memcycle.stores import turns as staging
from memcycle.stores.chroma import erase
from memcycle.stores.indexes import Views
from memcycle.stores.ledger import conflicts, entries, events, links, mentions, meta, probes, sessions, turns
from memcycle.stores.ledger import entries as entry_writes
from memcycle.stores.ledger import entries as plain_entries
from memcycle.stores.ledger import turns as turn_rows
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.ledger.entries import Listing, StoredEntry
from memcycle.stores.ledger.events import Change
from memcycle.stores.ledger.sessions import Part, SessionInfo, State
from memcycle.stores.maintenance import Maintenance
from memcycle.stores.search.snapshot import speakers
from memcycle.stores.writer import Writer

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from memcycle.stores.doctor import Mended
    from memcycle.stores.search.request import Hit, SearchRequest
    from memcycle.stores.search.search import Ranking

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
            return entries.in_order(plain_entries.by_ids_plain_entries(conn, scope, ids), ids)

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
            return plain_entries.by_turns_plain_entries(conn, scope, wanted, granularity, statuses)

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
            return entries.in_order(plain_entries.by_ids_plain_entries(conn, scope, chosen), chosen)

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


class Writing(Reading):
    """A bank that may write, unless it was opened without views, for reading its ledger only.

    Attributes:
        redactor: Takes secrets out of whatever is stored or embedded, as the settings say.
    """

    def __init__(self, settings: Settings, world: World, ledger: Ledger, views: Views | None) -> None:
        super().__init__(settings, world, ledger)
        self._views = views
        self.redactor = Redactor(settings.redact)

    def _writable(self) -> Views:
        if self._views is None:
            raise StoreError(f"the memory at {self.settings.home} is open for reading its ledger only")
        return self._views

    def _for_writing(self) -> Views:
        return self._writable().for_writing()

    @contextmanager
    def _write(self, scope: Scope) -> Iterator[Writer]:
        self._for_writing()
        with self.ledger.write(scope) as conn:
            yield Writer(conn, self.world)


_OVERTAKEN = {"decision": "REFUSED", "why": "another end of the session committed it meanwhile"}


class Examining(Writing):
    """Keeps what sessions are examined with, and writes and takes back what repairs bring."""

    def begin_verification(self, scope: Scope) -> Part:
        """Puts the scope's session under examination, a committed one again; it takes turns meanwhile.

        Safe to repeat: the same part, though turns that came since may lie in it.

        Returns:
            The number of its present part, the place of its last turn, and which session it is.

        Raises:
            BadInput: a session never written to.
        """
        session = staging.session_of(scope)
        with self._write(scope) as writer:
            part = sessions.begin(writer.conn, scope, session, writer.now)
        if part is None:
            raise BadInput(f"there is no session {session!r} of this user and workspace")
        return part

    def session_seq(self, scope: Scope) -> int | None:
        """The number of the scope's session, which no other session ever has; None where there is none."""
        with self.ledger.read() as conn:
            return sessions.seq_of(conn, scope, staging.session_of(scope))

    def part_turns(self, scope: Scope, until: int) -> list[Turn]:
        """What an examination of the scope's session up to a place (inclusive) is about, in order.

        These are the turns that wait for the commit; all turns up to there where none does.
        """
        session = staging.session_of(scope)
        with self.ledger.read() as conn:
            waiting = turn_rows.staged(conn, scope, session, until=until)
            return waiting or turn_rows.of_session(conn, scope, session, before=until + 1)

    def save_probes(
        self,
        scope: Scope,
        found: Sequence[Probe],
        *,
        replace_part: int | None = None,
        shown: Sequence[str] = (),
        seq: int | None = None,
    ) -> bool:
        """Stores probes of the scope's session, each in place of the one with its id, in one transaction.

        A probe whose turns or entries were forgotten meanwhile is not stored again.

        Args:
            replace_part: Drops the older probes of this part, and takes back what their repairs wrote and
                nobody weighed, since that examination was broken off or a role failed in it.
            shown: Turns that whoever made the probes was shown: their words may stand in any of them, so that
                none is stored where one of these is gone.
            seq: Which session they are of; nothing is changed where it is another one now.

        Returns:
            Whether they could be stored, but for those that rest on something forgotten.

        Raises:
            BadInput: a probe of another session.
        """
        session = staging.session_of(scope)
        for one in found:
            if one.session != session:
                raise BadInput(f"probe {one.id} is of session {one.session!r}, the scope names {session!r}")
        withdrawn: list[str] = []
        with self._write(scope) as writer:
            if sessions.is_another(writer.conn, scope, seq):
                return False
            if replace_part is not None:
                old = probes.of_scope(writer.conn, scope, replace_part)
                unweighed = [one for one in old if _is_unweighed(one)]
                withdrawn = retracting.withdraw(writer, scope, unweighed, "it is examined anew")
                probes.delete(writer.conn, scope, old)
            storable = set(shown) <= turn_rows.by_ids(writer.conn, scope, shown).keys()
            if storable:
                probes.put(writer.conn, scope, probes.resting(writer.conn, scope, found))
        if withdrawn:
            self._writable().catch_up()
        return storable

    def update_probes(self, scope: Scope, changes: Mapping[str, Mapping[str, Any]]) -> list[Probe]:
        """Changes fields of probes, by id, in one transaction; one that was forgotten meanwhile stays gone.

        Of two ends at once, one may have written or weighed a repair that the other does not know of: that
        note stays.

        Returns:
            Those that are there, as they stand now.
        """
        with self._write(scope) as writer:
            return _update(writer, scope, changes)

    def settle_repairs(
        self, scope: Scope, changes: Mapping[str, Mapping[str, Any]], taken_back: Sequence[tuple[str, str]]
    ) -> None:
        """Takes back what did not help and notes what became of each repair, in one transaction.

        Args:
            changes: As `update_probes` takes them.
            taken_back: What repairs wrote, as `retract` takes it.
        """
        with self._write(scope) as writer:
            retracting.retract(writer, scope, taken_back, actor=REPAIRER)
            _update(writer, scope, changes)
        if taken_back:
            self._writable().catch_up()

    def write_repair(
        self, scope: Scope, probe_id: str, edit: Edit | None, decided: Mapping[str, Any]
    ) -> Repair | None:
        """Applies what was decided of a probe's repair and notes it there, in one transaction.

        A write that no probe knows of could not be taken back. Nothing is written to a session that another
        end committed meanwhile: it would be in memory before anybody weighed it. A repair that is decided
        already is left as it is, so that this is safe to repeat.

        Args:
            decided: Fields of the repair. `entry` and `wrote` are filled in from the edit.

        Returns:
            The repair as it stands; None, and nothing is written, where the probe or its proposal is gone, or
            something that was considered: then it is to be decided anew.
        """
        vectors = self._for_writing().vectors
        prepared = applying.prepare(vectors, [edit] if edit is not None else [])
        with self._write(scope) as writer:
            probe = probes.by_ids(writer.conn, scope, [probe_id]).get(probe_id)
            if probe is None or probe.repair is None or probe.repair.decision is not None:
                return probe.repair if probe is not None else None
            if prepared and not sessions.is_open(writer.conn, scope, staging.session_of(scope)):
                prepared, decided = [], _OVERTAKEN
            repair = Repair.model_validate({**probe.repair.model_dump(), **decided})
            if not probes.resting(writer.conn, scope, [probe.model_copy(update={"repair": repair})]):
                return None
            applied = applying.apply_edits(writer, scope, prepared, vectors.id)
            repair = repair.model_copy(update=_outcome(applied))
            probes.put(writer.conn, scope, [probe.model_copy(update={"repair": repair})])
        return repair


def _outcome(applied: Applied) -> dict[str, Any]:
    """What came of a repair's one edit, as fields of the repair."""
    for entry in applied.unchanged:
        return {"decision": "SKIP", "entry": entry, "why": "it is stored, and rests on that turn already"}
    for entry in (*applied.added, *applied.updated, *applied.merged):
        return {"entry": entry, "wrote": True}
    why = "; ".join(rejected.why for rejected in applied.rejected)
    return {"decision": "REFUSED", "entry": None, "why": why} if applied.rejected else {}


def _is_unweighed(probe: Probe) -> bool:
    """Whether its repair stands in memory though nobody could say that it helps."""
    repair = probe.repair
    return repair is not None and (repair.waits or (repair.stands and probe.verdict == "ungraded"))


def _update(writer: Writer, scope: Scope, changes: Mapping[str, Mapping[str, Any]]) -> list[Probe]:
    there = probes.by_ids(writer.conn, scope, changes)
    changed = [_changed(there[name], new) for name, new in changes.items() if name in there]
    resting = probes.resting(writer.conn, scope, changed)
    probes.put(writer.conn, scope, resting)
    return resting


def _changed(old: Probe, new: Mapping[str, Any]) -> Probe:
    known, repair = old.repair, new.get("repair")
    if known is not None and repair is not None and (known.settled or (known.waits and not repair.wrote)):
        new = {name: value for name, value in new.items() if name != "repair"}
    return old.model_copy(update=dict(new))


ACTOR = "session"

_UNWEIGHED = "nobody weighed it"


class Committing(Examining):
    """Commits sessions."""

    def commit_session(
        self,
        scope: Scope,
        *,
        until: int | None = None,
        unverified: str = "",
        report: SessionReport | None = None,
        seq: int | None = None,
    ) -> int:
        """Makes the session's staged entries active, in one transaction, then brings the index up to date.

        What a repair wrote and nobody weighed is taken back before. What rests only on turns after `until`
        stays staged and opens the next part. A part that was committed already is left as it is, so that a
        retried commit changes nothing.

        Args:
            until: Place of the last turn to commit; all without.
            unverified: Why the part was not examined, if it was not.
            report: What its examination found; `committed` is filled in here.
            seq: Which session it is; nothing is changed where it is another one now.

        Returns:
            How many entries of the part became active, in this and earlier commits of it.
        """
        vectors = self._for_writing().vectors
        staging.session_of(scope)
        with self.ledger.read() as conn:
            bare = [one for one in entries.staged(conn, scope) if one.entry.embedder is None]
        found = vectors.of_all_that_can([one.entry.text for one in bare])
        missing = {one.row: found[one.entry.text] for one in bare if one.entry.text in found}
        with self._write(scope) as writer:
            if sessions.is_another(writer.conn, scope, seq):
                return 0
            if missing:
                entry_writes.set_vectors(writer.conn, missing.items(), vectors.id)
            activated = _commit(writer, scope, until, unverified, report or SessionReport())
        self._writable().catch_up()
        return activated


def _settle(writer: Writer, scope: Scope) -> None:
    """Takes back what repairs of the session wrote and nobody weighed: their examination was broken off."""
    found = probes.of_scope(writer.conn, scope)
    waiting = [one for one in found if one.repair is not None and one.repair.waits]
    gone = {one.repair.entry for one in waiting if one.repair is not None}
    retracting.withdraw(writer, scope, waiting, _UNWEIGHED)
    probes.put(writer.conn, scope, [_without(one, gone) for one in found] if gone else [])


def _without(probe: Probe, gone: set[str | None]) -> Probe:
    """The probe as it stands without what these entries brought."""
    changes: dict[str, Any] = {}
    if probe.repair is not None and probe.repair.waits:
        weighed = {"rolled_back": True, "settled": True, "why": _UNWEIGHED}
        changes["repair"] = probe.repair.model_copy(update=weighed)
    if probe.after is not None and gone & probe.after.rests_on:
        changes["as_before"] = True
    return probe.model_copy(update=changes)


def _commit(writer: Writer, scope: Scope, until: int | None, unverified: str, report: SessionReport) -> int:
    session = staging.session_of(scope)
    state = sessions.state(writer.conn, scope, session)
    if state is None:
        return 0
    _settle(writer, scope)
    waiting, later = _split(writer, scope, until)
    if _is_done(state, until, waiting):
        return _activated(state, state.part if state.is_committed else state.part - 1)
    lines = [
        Change(
            writer.change(one, status="active").entry, "commit", {"status": "staged"}, {"status": "active"}
        )
        for one in waiting
    ]
    writer.record(lines, actor=ACTOR)
    activated = _activated(state, state.part) + len(waiting)
    last = sessions.last_position(writer.conn, scope, session) if until is None else until
    sessions.commit(
        writer.conn,
        scope,
        session,
        writer.now,
        reason=unverified or _left_unverified(state, waiting, last),
        until=until,
        reports={**state.reports, state.part: report.model_copy(update={"committed": activated})},
    )
    if later:
        sessions.reopen(writer.conn, scope, session, writer.now)
    return activated


def _activated(state: State, part: int) -> int:
    """How many entries of a part became active so far."""
    return state.reports[part].committed if part in state.reports else 0


def _split(writer: Writer, scope: Scope, until: int | None) -> tuple[list[StoredEntry], bool]:
    """The staged entries to commit, and whether others stay."""
    waiting = entries.staged(writer.conn, scope)
    if until is None:
        return waiting, False
    later = entries.staged_after(writer.conn, scope, until)
    return [one for one in waiting if one.row not in later], bool(later)


def _is_done(state: State, until: int | None, waiting: Sequence[StoredEntry]) -> bool:
    """Whether this commit was made before: by a run that died before it could note that."""
    if state.is_committed:
        return not waiting
    return state.status == "open" and until is not None and until <= state.until


def _left_unverified(state: State, waiting: Sequence[StoredEntry], until: int) -> str:
    """Why an earlier part was not examined, where this examination was of later turns only.

    A late turn may have expired since.
    """
    late = until > state.until or any(one.entry.granularity == "raw" for one in waiting)
    return state.reason if late else ""


class Maintaining(Committing):
    """Unites, reinforces, expires and takes back entries. Nothing is erased: `undo` brings back what left."""

    def retract(self, scope: Scope, writes: Iterable[tuple[str, str]], *, actor: str) -> list[str]:
        """Takes back what `actor` last wrote to each entry (id, why); see `retracting.retract`. Idempotent.

        Returns:
            Ids of the entries that changed.
        """
        with self._write(scope) as writer:
            changed = retracting.retract(writer, scope, writes, actor=actor)
        self._writable().catch_up()
        return changed

    def unite(self, scope: Scope, pairs: Sequence[tuple[str, str]], *, actor: str, why: str) -> list[str]:
        """Lets the first entry of each pair stand for the second, which says the same or less. Idempotent.

        The first gets the sources of both and the greater importance; the second is superseded by it. A pair
        of which one is not recallable, or that is of two granularities, is passed over.

        Returns:
            Ids of the second ones that were united.
        """
        with self._write(scope) as writer:
            dropped = [
                drop for keep, drop in pairs if tidying.unite(writer, scope, keep, drop, actor=actor, why=why)
            ]
        self._writable().catch_up()
        return dropped

    def mention(self, scope: Scope, names: Iterable[str]) -> None:
        """Notes that a question named somebody or something, for `reinforce`: one small write.

        Raises:
            StoreError: it cannot be written now.
        """
        # Only the ledger: a process that merely asks must not take the index from the one that writes.
        with self.ledger.write(scope) as conn:
            mentions.put(conn, scope, names)

    def reinforce(self, scope: Scope) -> int:
        """Lets active entries count for more whose persons or entities were named, and forgets the mentions.

        0.05 a mention, up to 0.3 (EvolveMem 3.1). One transaction, so that no mention counts twice.

        Returns:
            How many entries.
        """
        with self._write(scope) as writer:
            return tidying.reinforce(writer.conn, scope)

    def expire(self, scope: Scope, *, dry_run: bool = False) -> list[Entry]:
        """Takes out of recall what is past a limit of `settings.retention`.

        Looked at are the active entries of the base scope and the staged ones of the scope's session. What
        somebody brought back with `undo` stays, and pushes nothing else out.

        Args:
            dry_run: Only say what would expire.

        Returns:
            The entries as they stood, least important first.
        """
        with self.ledger.read() as conn:
            found = tidying.expired(conn, scope, self.settings, self.world.now())
        if found and not dry_run:
            with self._write(scope) as writer:
                found = [one for one in found if tidying.expire(writer, scope, one)]
            self._writable().catch_up()
        return [one.entry for one in found]

    def maintain(
        self, scope: Scope, turns: Sequence[str] | None = None, *, dry_run: bool = False
    ) -> Maintenance:
        """Unites facts that say the same, renews working summaries, reinforces and expires. Idempotent.

        Args:
            scope: With a session, its staged entries and its summaries are looked at, too.
            turns: Compare only the facts of these turns with the others; None compares all.
            dry_run: Only say what would be done.
        """
        with self.ledger.read() as conn:
            planned = tidying.plan(conn, scope, self.settings, self.world.now(), turns)
        if dry_run:
            return planned
        with self._write(scope) as writer:
            done = tidying.carry_out(writer, scope, planned)
        self._writable().catch_up()
        return done


LEDGER_FILE = "ledger.sqlite3"


class Bank(Maintaining):
    """Everything the graphs and the face read (see `Reading`) and write. Thread-safe and synchronous.

    Each write is one ledger transaction under the lock of its base scope; the vector index follows.

    Attributes:
        may_close: Asked by `close`; lets the registry share one bank among several users.
    """

    def __init__(self, settings: Settings, world: World, ledger: Ledger, views: Views | None) -> None:
        super().__init__(settings, world, ledger, views)
        self.may_close: Callable[[], bool] = lambda: True

    @classmethod
    def open(
        cls,
        settings: Settings,
        *,
        embeddings: "Embeddings | None" = None,
        world: World | None = None,
        read_only: bool = False,
        repair: bool = False,
    ) -> Self:
        """Opens the memory of `settings.home`. The embedder's model and the index load on first need.

        Args:
            embeddings: A LangChain embedder in place of a named one.
            read_only: Only the ledger, beside any writing process; no search.
            repair: Opens also a home of another embedder, for `check` and `reembed`.

        Raises:
            EmbedderMismatch: the home was built with another embedder.
            StoreError: it cannot be opened; says why and what to do.
        """
        world = world or World()
        ledger = Ledger.open(settings.home / LEDGER_FILE, world, read_only=read_only)
        try:
            views = None if read_only else Views.open(settings, world, ledger, embeddings, repair=repair)
            if not read_only and not repair:
                upkeep.revive_lexical(ledger, settings)
        except BaseException:
            ledger.close()
            raise
        return cls(settings, world, ledger, views)

    @property
    def embedder_id(self) -> str:
        """Id of the embedder; when reading only, of the one the vectors come from."""
        if self._views is not None:
            return self._views.vectors.id
        with self.ledger.read() as conn:
            recorded = meta.embedder(conn)
        return recorded[0] if recorded else self.settings.embedder

    @property
    def views(self) -> Views:
        """Embedder and index, for what else is kept in the same home.

        Raises:
            StoreError: the bank is open for reading its ledger only.
        """
        return self._writable()

    @property
    def operator_note(self) -> str | None:
        """What must be run so that forgotten text leaves the Chroma server's files, if any may be there."""
        return erase.operator_note(self._views.mirror) if self._views else None

    def close(self) -> None:
        """Frees all files and locks. A shared bank closes with its last user, so each closes it once."""
        if self.may_close():
            if self._views is not None:
                self._views.mirror.close()
            self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Turns

    def stage_turns(self, scope: Scope, given: Sequence[Turn]) -> list[Turn]:
        """Stores turns and their raw entries, each once, without any model; see `staging.stage`.

        Nothing is lost to a failing embedder: such turns are stored without a vector and get one at commit.
        """
        staging.session_of(scope)
        with self.ledger.read() as conn:
            given = staging.redacted(conn, scope, given, self.redactor)
            fresh = staging.fresh_turns(conn, scope, given)
        vectors = self._for_writing().vectors
        found = vectors.of_all_that_can([turn.text for turn in fresh])
        with self._write(scope) as writer:
            return staging.stage(writer, scope, given, found, vectors.id)

    def mark_turns(self, scope: Scope, ids: Iterable[str], state: str) -> None:
        """Sets the state of turns."""
        with self._write(scope) as writer:
            turn_rows.mark(writer.conn, scope, ids, state)

    def search(self, request: "SearchRequest") -> list[list["Hit"]]:
        """For each query its hits, best first; see `Search.run`."""
        return self._writable().search.run(self._asked(request))

    def rank(self, request: "SearchRequest") -> list["Ranking"]:
        """The same without the entries themselves; see `Search.rank`."""
        return self._writable().search.rank(self._asked(request))

    def _asked(self, request: "SearchRequest") -> "SearchRequest":
        asked = [one.model_copy(update={"text": self.redactor.text(one.text)}) for one in request.queries]
        return request.model_copy(update={"queries": tuple(asked)})

    # Writes

    def apply(
        self,
        scope: Scope,
        edits: Sequence[Edit],
        *,
        turns: Sequence[str] = (),
        state: str | None = None,
        close_segment_at: int | None = None,
        seq: int | None = None,
    ) -> Applied:
        """Applies what the guards allow, in one transaction; the rest is reported with the reason.

        Args:
            turns: Turns whose reading these edits are; they get `state` in the same transaction.
            close_segment_at: Position of the last turn of the scope's session that an episode now covers.
            seq: Which session they stem from; all are refused where it is another one now.

        Raises:
            Exception: what the embedder's provider raises when it cannot be reached; then nothing is changed.
        """
        vectors = self._for_writing().vectors
        edits = [self._redacted(edit) for edit in edits]
        prepared = applying.prepare(vectors, edits)
        with self._write(scope) as writer:
            if sessions.is_another(writer.conn, scope, seq):
                return applying.refused(edits, "its session was forgotten meanwhile")
            applied = applying.apply_edits(writer, scope, prepared, vectors.id)
            if state is not None:
                turn_rows.mark(writer.conn, scope, turns, state)
            if close_segment_at is not None:
                sessions.close_segment(writer.conn, scope, staging.session_of(scope), close_segment_at)
        return applied

    def _redacted(self, edit: Edit) -> Edit:
        if edit.entry is None:
            return edit
        return edit.model_copy(update={"entry": self.redactor.entry(edit.entry)})

    def edit(self, scope: Scope, entry_id: str, text: str, *, actor: str = "user", why: str = "") -> Entry:
        """Replaces an entry by one with another text and returns that; see `revising.revise`."""
        vectors = self._for_writing().vectors
        text, why = self.redactor.text(text), self.redactor.text(why)
        found = vectors.of_all_that_can([text])
        embedder = vectors.id if text in found else None
        with self._write(scope) as writer:
            successor = revising.revise(
                writer, scope, entry_id, text, vector=found.get(text), embedder=embedder, actor=actor, why=why
            )
        self._writable().catch_up()
        return successor

    def undo(self, scope: Scope, entry_id: str, *, actor: str = "user") -> Entry:
        """Takes back the last replacement or deletion in an entry's chain; see `revising.undo`."""
        self._for_writing()
        with self._write(scope) as writer:
            restored = revising.undo(writer, scope, entry_id, actor=actor)
        self._writable().catch_up()
        return restored

    def forget(self, scope: Scope, entry_id: str, *, only: bool = False) -> list[str]:
        """Deletes an entry for good, with its `holders` unless `only`, and wipes their text from all files.

        Of a Chroma server from its collections; `operator_note` says how its files are freed.

        Returns:
            Ids of what was deleted; empty for an unknown id. Safe to repeat.

        Raises:
            StoreError: all is deleted, but the index cannot be wiped now; repeat, or run the doctor.
        """
        mirror = self._for_writing().mirror
        with self._write(scope) as writer:
            doomed = forgetting.doomed(writer.conn, scope, entry_id, only=only)
            if doomed:
                forgetting.forget(writer, scope, doomed)
        erase.wipe(mirror)
        return [one.entry.id for one in doomed]

    def forget_user(self, user: str, workspace: str | None = None) -> int:
        """Deletes everything of a user, in all workspaces unless one is named, and wipes it from all files.

        Of a Chroma server from its collections, as `forget`.

        Returns:
            How many entries were deleted. Safe to repeat.

        Raises:
            StoreError: all is deleted, but the index cannot be wiped now; repeat, or run the doctor.
        """
        mirror = self._for_writing().mirror
        with self.ledger.write() as conn:
            scopes = sessions.scopes_of(conn, user, workspace)
            deleted = sum(forgetting.forget_scope(conn, scope) for scope in scopes)
        erase.wipe(mirror)
        return deleted

    # Sessions

    def queue_conflict(self, scope: Scope, a: str, b: str, why: str) -> None:
        """Leaves a pair of contradicting entries for the next write to settle."""
        with self._write(scope) as writer:
            conflicts.put(writer.conn, scope, a, b, why)

    def settle_conflicts(self, scope: Scope, pairs: Iterable[tuple[str, str]]) -> None:
        """Takes pairs off the queue, after what came of them is written."""
        with self._write(scope) as writer:
            conflicts.settle(writer.conn, scope, pairs)

    # The whole

    def import_(self, scope: Scope, rows: Iterable[Mapping[str, Any]]) -> int:
        """Stores exported entries as the scope's own; see `portable`. All or nothing.

        Returns:
            How many entries were new.

        Raises:
            BadInput: names the record and the field.
        """
        vectors = self._for_writing().vectors
        records = portable.read_records(scope, map(self.redactor.row, rows))
        texts = [one.entry.text for one in records]
        found: dict[str, Any] = {}
        for start in range(0, len(texts), self.settings.bulk_batch):
            found |= vectors.of_all_that_can(texts[start : start + self.settings.bulk_batch])
        with self._write(scope) as writer:
            inserted = portable.insert_records(writer, scope, records, found, vectors.id)
        self._writable().catch_up(self.settings.bulk_batch)
        return inserted

    @contextmanager
    def bulk(self) -> Iterator[None]:
        """For many imports one after another: the vector index follows in large batches, and has at the end.

        Everything is stored, and found by searches, as soon as each import returns; what a crash keeps from
        the index is brought in by the next write.
        """
        with self._for_writing().held_back(self.settings.bulk_batch):
            yield

    def drain(self, batch: int | None = None) -> int:
        """Brings the index up to date; see `Mirror.drain`."""
        return self._for_writing().mirror.drain(batch)

    def rebuild(self) -> int:
        """Makes the lexical view and the vector index anew from the ledger; returns the active entries."""
        views = self._for_writing()
        return upkeep.rebuild(self.ledger, self.settings, views.vectors, views.mirror)

    def reembed(self) -> int:
        """Makes every vector anew with the present embedder; returns how many."""
        views = self._for_writing()
        return upkeep.reembed(self.ledger, self.settings, views.vectors, views.mirror)

    def check(self, *, alone: bool = False) -> dict[str, Any]:
        """What the home holds and what is wrong with it; see `upkeep.check`."""
        mirror = self._views.mirror if self._views else None
        return upkeep.check(self.ledger, self.settings, mirror, self.embedder_id, alone=alone)

    def mend(self, *, alone: bool = False) -> "Mended":
        """Puts right what a check finds, as far as that needs no person; see `mending.Mender.run`.

        Args:
            alone: Whether no other process can be examining a session of the home; those under examination
                were broken off then, and are committed unverified.
        """
        from memcycle.stores.doctor import Mender

        def commit(scope: Scope, why: str) -> int:
            return self.commit_session(scope, unverified=why)

        views = self._writable()
        views.mirror.claim()
        mender = Mender(self.ledger, self.settings, views, commit, alone=alone)
        return mender.run(lambda: self.check(alone=alone))
