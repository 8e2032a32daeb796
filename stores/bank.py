"""The bank: the one door to storage, one a process and home for all who share it."""

import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from memcycle.core.edit import Applied, Edit, Event
from memcycle.core.entry import Entry, Granularity, Kind, Status
from memcycle.core.errors import BadInput, StoreError
from memcycle.core.probe import Probe, Repair, SessionReport
from memcycle.core.redaction import Redactor
from memcycle.core.scope import Scope
from memcycle.core.settings import Limit, Settings, Spent
from memcycle.core.turn import Turn
from memcycle.core.world import World
from memcycle.stores import doctor, edits, forgetting, maintenance, portable, sessions, undo
from memcycle.stores.indexes import Indexes
from memcycle.stores.ledger import entries as entry_rows
from memcycle.stores.ledger import events, links, meta, weights
from memcycle.stores.ledger import probes as probe_rows
from memcycle.stores.ledger import sessions as session_rows
from memcycle.stores.ledger import turns as turn_rows
from memcycle.stores.ledger.columns import same_hash
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.ledger.entries import RECALLABLE, StoredEntry
from memcycle.stores.ledger.sessions import Part, SessionInfo
from memcycle.stores.ledger.turns import Said, TurnState
from memcycle.stores.maintenance import Maintenance
from memcycle.stores.search.snapshot import spoken
from memcycle.stores.sessions import session_of
from memcycle.stores.writer import Writer, known

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from memcycle.stores.doctor import Mended
    from memcycle.stores.search.request import Hit, SearchRequest
    from memcycle.stores.search.search import Ranking

P = ParamSpec("P")
T = TypeVar("T")

LEDGER_FILE = "ledger.sqlite3"
_LISTED = 5
"""Sessions named where another was asked for."""

_STORE_FIELDS = ("timezone", "embedder", "chroma_url", "shards", "redact", "visibility")
"""Settings that the store itself depends on; the rest is the graphs' business."""


def _look(ask: "Callable[Concatenate[sqlite3.Connection, P], T]") -> "Callable[Concatenate[Bank, P], T]":
    """The method that asks the ledger one thing."""

    @wraps(ask)
    def method(bank: "Bank", /, *args: P.args, **options: P.kwargs) -> T:
        with bank.ledger.look() as conn:
            return ask(conn, *args, **options)

    return method


def _note(write: "Callable[Concatenate[sqlite3.Connection, P], T]") -> "Callable[Concatenate[Bank, P], T]":
    """The method that writes one thing to the ledger."""

    @wraps(write)
    def method(bank: "Bank", /, *args: P.args, **options: P.kwargs) -> T:
        with bank._write() as writer:
            return write(writer.conn, *args, **options)

    return method


class Bank:
    """Everything the graphs and the face read and write. Thread-safe and synchronous.

    An id of another base scope is an unknown id. A scope's session narrows listings to that session. Each
    write is one ledger transaction; the vector index follows. A bank that was opened for reading needs the
    ledger alone and refuses the rest.

    Attributes:
        settings, world, embeddings: As opened with.
        ledger: The system of record.
        redactor: Takes secrets out of whatever is stored or embedded, as the settings say.
    """

    def __init__(
        self,
        settings: Settings,
        world: World,
        ledger: Ledger,
        indexes: Indexes | None,
        embeddings: "Embeddings | None" = None,
    ) -> None:
        self.settings, self.world, self.ledger, self.embeddings = settings, world, ledger, embeddings
        self.redactor = Redactor(settings.redact)
        self._indexes = indexes
        self._sharing, self._users = threading.Lock(), 1

    # Open and close

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
            repair: Opens also a home of another embedder (else EmbedderMismatch), for `check` and `reembed`.

        Raises:
            StoreError: it cannot be opened; says why and what to do.
        """
        world = world or World()
        ledger = Ledger.open(settings.home / LEDGER_FILE, world, read_only=read_only)
        try:
            if not read_only:
                doctor.renew_words(ledger, settings)
            indexes = None if read_only else Indexes(settings, ledger, embeddings, repair=repair)
        except BaseException:
            ledger.close()
            raise
        return cls(settings, world, ledger, indexes, embeddings)

    def share(self) -> bool:
        """Counts one user more, who closes the bank once; False where it is closed already."""
        with self._sharing:
            if self._users == 0:
                return False
            self._users += 1
            return True

    def close(self) -> None:
        """Frees all files and locks. A shared bank closes with its last user, so each closes it once."""
        with self._sharing:
            self._users = max(0, self._users - 1)
            if self._users == 0:
                if self._indexes is not None:
                    self._indexes.close()
                self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def indexes(self) -> Indexes:
        """Embedder, vector index and search; StoreError where the bank reads its ledger only."""
        if self._indexes is None:
            raise StoreError(f"the memory at {self.settings.home} is open for reading its ledger only")
        return self._indexes

    @property
    def embedder_id(self) -> str:
        """Id of the embedder; when reading only, of the one the vectors come from."""
        if self._indexes is not None:
            return self._indexes.vectors.id
        with self.ledger.read() as conn:
            recorded = meta.embedder(conn)
        return recorded[0] if recorded else self.settings.embedder

    @property
    def operator_note(self) -> str | None:
        """What is to be run, or who does it, so that forgotten text leaves the index's files; or None."""
        return self._indexes.mirror.operator_note() if self._indexes else None

    @contextmanager
    def _write(self, *, follow: bool = False) -> Iterator[Writer]:
        """One transaction. `follow` brings the vector index up to date after it."""
        indexes = self.indexes.attended()
        with self.ledger.write() as conn:
            yield Writer(conn, self.world)
        if follow:
            indexes.catch_up()

    # Turns

    def stage_turns(
        self, scope: Scope, given: Sequence[Turn], *, state: TurnState = "staged", embed: bool = True
    ) -> list[Turn]:
        """Stores turns and their raw entries, each once, without any model; see `sessions.stage_turns`.

        The embedder is asked once they are written, unless `embed` is False. What it fails at has no vector,
        and is found by its words, until the next staging or the commit of the session. Their days are those
        of the user's zone, in which they are stored.
        """
        session_of(scope)
        local = [turn.model_copy(update={"time": self.settings.local(turn.time)}) for turn in given]
        with self._write() as writer:
            stored = sessions.stage_turns(writer, scope, local, self.redactor, state)
        if embed:
            self._embed_staged(scope)
        return stored

    def _embed_staged(self, scope: Scope) -> None:
        """Gives the session's staged entries the vectors they miss, as far as the embedder works."""
        vectors = self.indexes.attended().vectors
        with self.ledger.look() as conn:
            bare = [one.entry for one in entry_rows.bare(conn, scope)]
        found = vectors.of_all_that_can([one.text for one in bare])
        if found:
            with self._write() as writer:
                pairs = [(one.id, found[one.text]) for one in bare if one.text in found]
                entry_rows.set_vectors(writer.conn, pairs, vectors.id)

    def turns(self, scope: Scope, ids: Iterable[str]) -> list[Turn]:
        """Turns by id, in the given order; unknown ones left out."""
        wanted = list(ids)
        with self.ledger.look() as conn:
            return entry_rows.in_order(turn_rows.by_ids(conn, scope, wanted), wanted)

    def before(self, scope: Scope, ids: Iterable[str]) -> dict[str, Said]:
        """By turn id what was said just before it in its session; of the first turn nothing."""
        with self.ledger.look() as conn:
            found = turn_rows.before(conn, scope, ids, 1)
        return {turn: said[-1] for turn, said in found.items() if said}

    def session_turns(
        self, scope: Scope, *, last: int | None = None, before: int | None = None
    ) -> list[Turn]:
        """Turns of the scope's session in order: the `last` ones, of those before a position (exclusive)."""
        with self.ledger.look() as conn:
            return turn_rows.of_session(conn, scope, session_of(scope), last=last, before=before)

    unprocessed = _look(turn_rows.unprocessed)
    turn_states = _look(turn_rows.states)

    def open_segment(self, scope: Scope) -> list[Turn]:
        """Turns of the scope's session after its last closed episode."""
        with self.ledger.read() as conn:
            state = session_rows.state(conn, scope)
            return turn_rows.of_session(conn, scope, session_of(scope), after=state.closed if state else 0)

    def next_position(self, scope: Scope) -> int:
        """The place of the session's next turn, from 1."""
        with self.ledger.look() as conn:
            return session_rows.last_position(conn, scope) + 1

    # Reading entries

    def change(self, scope: Scope) -> int:
        """Number of the last change to the base scope's entries; 0 where there are none."""
        with self.ledger.look() as conn:
            return events.last_change(conn, scope) or 0

    def get(self, scope: Scope, ids: Sequence[str]) -> list[Entry]:
        """Entries of any status by id, in the given order; unknown ones left out."""
        with self.ledger.look() as conn:
            return _entries(entry_rows.in_order(entry_rows.by_ids(conn, scope, ids), ids))

    def find(self, scope: Scope, prefix: str) -> list[Entry]:
        """Entries of any status whose id begins so."""
        with self.ledger.look() as conn:
            return _entries(entry_rows.beginning(conn, scope, prefix))

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
        with self.ledger.look() as conn:
            return _entries(entry_rows.by_turns(conn, scope, turn_ids, granularity, statuses))

    def repeating(self, scope: Scope, texts: Iterable[str], said: Iterable[Turn] = ()) -> list[str]:
        """Ids of the recallable entries that say what these texts or messages say.

        Turns of the same words, case and closing marks aside, or of a message's id in its session, and what
        rests on such turns alone, unless a person corrected it.
        """
        hashes = {same_hash(self.redactor.text(text)) for text in texts}
        identities = {turn_rows.identity_of(self.redactor.turn(turn)) for turn in said if turn.message_id}
        with self.ledger.look() as conn:
            return entry_rows.repeating(conn, scope, hashes, identities) if hashes or identities else []

    def entries(
        self,
        scope: Scope,
        *,
        granularity: Granularity | None = None,
        kind: Kind | None = None,
        statuses: Sequence[Status] = RECALLABLE,
    ) -> list[Entry]:
        """Entries in conversation order: by session, first turn, granularity, id."""
        with self.ledger.read() as conn:
            ids = entry_rows.ids_of(conn, scope, granularity=granularity, kind=kind, statuses=statuses)
            return _entries(entry_rows.in_order(entry_rows.by_ids(conn, scope, ids), ids))

    def by_time(
        self,
        scope: Scope,
        *,
        granularity: Granularity | None = None,
        kind: Kind | None = None,
        statuses: Sequence[Status] = RECALLABLE,
        words: Collection[str] = (),
        limit: int | None = None,
    ) -> list[Entry]:
        """Entries of the base scope in the order they were said: the first with all words, casefolded."""
        with self.ledger.read() as conn:
            said = entry_rows.by_time(conn, scope, granularity=granularity, kind=kind, statuses=statuses)
            matching = (
                one for one, text in said if not words or all(word in text.casefold() for word in words)
            )
            ids = list(islice(matching, limit))
            return _entries(entry_rows.in_order(entry_rows.by_ids(conn, scope, ids), ids))

    count = _look(entry_rows.counts)
    is_empty = _look(entry_rows.is_empty)
    users = _look(entry_rows.users)
    """Every user who has entries here, for whoever administers the home."""
    users_counted = _look(entry_rows.users_counted)
    """Every user and workspace with entries here, with counts and the time of what was said last."""
    saying = _look(forgetting.saying)

    def history(self, scope: Scope, entry_id: str) -> list[Event]:
        """Every change of an entry, of what it replaced and of what replaced it, oldest first.

        Raises:
            UnknownEntry: no such entry, here and below.
        """
        with self.ledger.read() as conn:
            known(conn, scope, entry_id)
            return events.of_entries(conn, scope, links.chain(conn, scope, entry_id))

    def holders(self, scope: Scope, entry_id: str) -> list[Entry]:
        """What else holds the words of an entry: its turns, facts of those, episodes over those."""
        with self.ledger.read() as conn:
            return _entries(forgetting.holders(conn, known(conn, scope, entry_id).entry))

    def speakers(self, scope: Scope) -> frozenset[str]:
        """Who speaks in what the scope may recall."""
        with self.ledger.read() as conn:
            return spoken(conn, scope, entry_rows.wall_of(scope, self.settings.visibility))[0]

    def search(self, request: "SearchRequest") -> list[list["Hit"]]:
        """For each query its hits, best first; see `Search.run`."""
        return self.indexes.attended().search.run(self._redacted_request(request))

    def rank(self, request: "SearchRequest") -> list["Ranking"]:
        """The same without the entries themselves; see `Search.rank`."""
        return self.indexes.attended().search.rank(self._redacted_request(request))

    def _redacted_request(self, request: "SearchRequest") -> "SearchRequest":
        queries = [one.model_copy(update={"text": self.redactor.text(one.text)}) for one in request.queries]
        return request.model_copy(update={"queries": tuple(queries)})

    # Changing entries

    def apply(
        self,
        scope: Scope,
        proposed: Sequence[Edit],
        *,
        turns: Sequence[str] = (),
        state: TurnState | None = None,
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
        vectors = self.indexes.attended().vectors
        proposed = self._redacted(proposed)
        prepared = edits.prepare(vectors, proposed)
        with self._write() as writer:
            if session_rows.is_another(writer.conn, scope, seq):
                return edits.refused(proposed, "its session was forgotten meanwhile")
            applied = edits.apply_edits(writer, scope, prepared, vectors.id)
            if state is not None:
                turn_rows.mark(writer.conn, scope, turns, state)
                # A model may take longer to read turns than a session may be silent.
                session_rows.touch(writer.conn, scope, writer.now)
            if close_segment_at is not None:
                session_rows.close_segment(writer.conn, scope, close_segment_at)
        if any(edit.asked_in is not None for edit in proposed) and applied.deleted:
            self.indexes.mirror.wipe()
        return applied

    def _redacted(self, proposed: Sequence[Edit]) -> list[Edit]:
        return [
            edit if edit.entry is None else edit.model_copy(update={"entry": self.redactor.entry(edit.entry)})
            for edit in proposed
        ]

    decline = _note(meta.decline)
    declined = _look(meta.declined)

    def edit(self, scope: Scope, entry_id: str, text: str, *, why: str = "") -> Entry:
        """Replaces an entry by one with another text and returns that; see `edits.revise`."""
        vectors = self.indexes.attended().vectors
        text, why = self.redactor.text(text), self.redactor.text(why)
        vector = vectors.of_all_that_can([text]).get(text)
        with self._write(follow=True) as writer:
            return edits.revise(writer, scope, entry_id, text, vector=vector, embedder=vectors.id, why=why)

    def undo(self, scope: Scope, entry_id: str) -> Entry:
        """Takes back the last replacement or deletion in an entry's chain; see `undo.undo`."""
        with self._write(follow=True) as writer:
            return undo.undo(writer, scope, entry_id)

    def forget(self, scope: Scope, entry_id: str, *, only: bool = False) -> list[str]:
        """Deletes an entry for good, with its `holders` unless `only`, and wipes their text from all files.

        Of a Chroma server from its collections; `operator_note` says how its files are freed.

        Returns:
            Ids of what was deleted; empty for an unknown id. Safe to repeat.

        Raises:
            StoreError: all is deleted, but the index cannot be wiped now; repeat, or run the doctor.
        """
        with self._write() as writer:
            doomed = forgetting.doomed(writer.conn, scope, entry_id, only=only)
            if doomed:
                forgetting.forget(writer, scope, doomed)
        self.indexes.mirror.wipe()
        return [one.entry.id for one in doomed]

    def forget_turns(self, scope: Scope, said: Sequence[Turn]) -> None:
        """Deletes turns for good, as `forget`, and keeps those that are not stored yet from being taken in.

        Facts that were read from them stay: what is asked to be forgotten is found by `saying`.
        """
        with self._write() as writer:
            known = [turn_rows.known(writer.conn, scope, turn) for turn in said]
            raws = entry_rows.by_turns(writer.conn, scope, [turn.id for turn in known if turn], "raw")
            meta.bury(writer.conn, scope, "turn", [turn_rows.identity_of(turn) for turn in said])
            forgetting.forget(writer, scope, raws)
        self.indexes.mirror.wipe()

    def forget_user(self, user: str, workspace: str | None = None) -> int:
        """Deletes everything of a user, in all workspaces unless one is named, and wipes it as `forget`.

        Returns:
            How many entries were deleted. Safe to repeat.
        """
        with self._write() as writer:
            scopes = session_rows.scopes_of(writer.conn, user, workspace)
            deleted = sum(forgetting.forget_scope(writer.conn, scope) for scope in scopes)
        self.indexes.mirror.wipe()
        return deleted

    conflicts = _look(links.conflicts)
    queue_conflict = _note(links.queue_conflict)
    settle_conflicts = _note(links.settle_conflicts)

    # Sessions

    sessions = _look(session_rows.infos)
    session_seq = _look(session_rows.seq_of)

    def session(self, scope: Scope) -> SessionInfo:
        """The scope's session; BadInput where there is none; names those there are."""
        found = self.sessions(scope)
        if found:
            return found[0]
        there = [info.session for info in self.sessions(scope.base)]
        more = f" and {len(there) - _LISTED} more" if len(there) > _LISTED else ""
        raise BadInput(
            f"no session {session_of(scope)!r} of user {scope.user!r} in workspace {scope.workspace!r}; "
            f"sessions there: {', '.join(there[:_LISTED]) or 'none'}{more}"
        )

    def open_sessions(self, within: Scope | None = None) -> list[Scope]:
        """Sessions that wait for their end, of the home or of a base scope, the longest silent first."""
        with self.ledger.look() as conn:
            return session_rows.waiting(conn, datetime.max.replace(tzinfo=UTC), within)

    def idle(self, since: datetime, within: Scope | None = None, *, but: Scope | None = None) -> Scope | None:
        """The session that waits for its end and in which nothing was done after a time for longest.

        Args:
            within: Of the base scope; by default of the whole home.
            but: The session that is not meant.
        """
        with self.ledger.look() as conn:
            return session_rows.idle(conn, since, within, but)

    def take_idle(
        self, since: datetime, within: Scope | None = None, *, but: Scope | None = None
    ) -> Scope | None:
        """As `idle`, and the session is taken in hand.

        Nobody else, in another process neither, gets it as long as they ask for an earlier time than now: of
        two who find it idle one ends it, and it is to be had again once it is idle anew.
        """
        if self.idle(since, within, but=but) is None:  # nearly always, and then nothing is to be locked
            return None
        with self.ledger.write() as conn:
            taken = session_rows.idle(conn, since, within, but)
            if taken is not None:
                session_rows.touch(conn, taken, self.world.now())
        return taken

    def begin_verification(self, scope: Scope) -> Part:
        """Puts the scope's session under examination, a committed one again; it takes turns meanwhile.

        Safe to repeat: the same part, though turns that came since may lie in it.

        Raises:
            BadInput: a session never written to.
        """
        session = session_of(scope)
        with self._write() as writer:
            part = session_rows.begin(writer.conn, scope, writer.now)
        if part is None:
            raise BadInput(f"there is no session {session!r} of this user and workspace")
        return part

    def part_turns(self, scope: Scope, until: int) -> list[Turn]:
        """What an examination of the scope's session up to a place (inclusive) is about, in order.

        These are the turns that wait for the commit; all turns up to there where none does.
        """
        session = session_of(scope)
        with self.ledger.read() as conn:
            waiting = turn_rows.staged(conn, scope, session, until=until)
            return waiting or turn_rows.of_session(conn, scope, session, before=until + 1)

    probes = _look(probe_rows.of_scope)

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
        session = session_of(scope)
        for one in found:
            if one.session != session:
                raise BadInput(f"probe {one.id} is of session {one.session!r}, the scope names {session!r}")
        with self._write() as writer:
            if session_rows.is_another(writer.conn, scope, seq):
                return False
            return sessions.save_probes(writer, scope, found, replace_part=replace_part, shown=shown)

    def update_probes(self, scope: Scope, changes: Mapping[str, Mapping[str, Any]]) -> list[Probe]:
        """Changes fields of probes, by id, in one transaction; one that was forgotten meanwhile stays gone.

        Returns:
            Those that are there, as they stand now.
        """
        with self._write() as writer:
            return sessions.update_probes(writer, scope, changes)

    def settle_repairs(
        self, scope: Scope, changes: Mapping[str, Mapping[str, Any]], taken_back: Sequence[tuple[str, str]]
    ) -> list[str]:
        """Takes back what did not help and notes what became of each repair, in one transaction. Idempotent.

        Args:
            changes: As `update_probes` takes them.
            taken_back: What repairs wrote: entry id and why, as `undo.retract` takes it.

        Returns:
            Ids of the entries that changed.
        """
        with self._write(follow=bool(taken_back)) as writer:
            changed = undo.retract(writer, scope, taken_back)
            sessions.update_probes(writer, scope, changes)
        return changed

    def write_repair(
        self, scope: Scope, probe_id: str, edit: Edit | None, decided: Mapping[str, Any]
    ) -> Repair | None:
        """Applies what was decided of a probe's repair and notes it there, in one transaction.

        A write that no probe knows of could not be taken back. Nothing is written to a session that another
        end committed meanwhile: it would be in memory before anybody weighed it. A repair that is decided
        already is left as it is, so that this is safe to repeat.

        Args:
            decided: Fields of the repair. `state` and `entry` are filled in from what came of the edit.

        Returns:
            The repair as it stands; None, and nothing is written, where the probe or its proposal is gone, or
            something that was considered: then it is to be decided anew.
        """
        vectors = self.indexes.attended().vectors
        prepared = edits.prepare(vectors, self._redacted([edit] if edit is not None else []))
        with self._write() as writer:
            return sessions.write_repair(writer, scope, probe_id, prepared, decided, embedder=vectors.id)

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
        session_of(scope)
        self._embed_staged(scope)
        with self._write(follow=True) as writer:
            if session_rows.is_another(writer.conn, scope, seq):
                return 0
            return sessions.commit(writer, scope, until, unverified, report or SessionReport())

    # Upkeep

    def spent(self, scope: Scope, day: date) -> Spent:
        """What models were asked for on a day of the user's, in all workspaces, where that is limited."""
        with self.ledger.look() as conn:
            return meta.spent(conn, scope.user, day.isoformat())

    def spend(self, scope: Scope, day: date, more: Spent, limit: Limit | None = None) -> str:
        """Adds to that, unless the limit is reached, which all processes share: then says what is used up."""
        with self.ledger.write() as conn:
            reached = limit.reached(meta.spent(conn, scope.user, day.isoformat())) if limit else ""
            if not reached:
                meta.spend(conn, scope, day.isoformat(), more)
        return reached

    def mention(self, scope: Scope, names: Iterable[str]) -> None:
        """Notes that a question named somebody or something, for `maintain`: one small write."""
        with self.ledger.write() as conn:
            weights.mention(conn, scope, names)

    def maintain(
        self, scope: Scope, turns: Sequence[str] | None = None, *, dry_run: bool = False
    ) -> Maintenance:
        """Unites facts that say the same, renews working summaries, reinforces and expires. Idempotent.

        Nothing is erased: `undo` brings back what left, and it does not leave again.

        Args:
            scope: What it may see is looked at; of summaries those of its session, of all without one.
            turns: Compare only the facts of these turns with the others; None compares all.
            dry_run: Only say what would be done.
        """
        with self.ledger.read() as conn:
            planned = maintenance.plan(conn, scope, self.settings, self.world.now(), turns)
        if dry_run:
            return planned
        with self._write(follow=True) as writer:
            return maintenance.carry_out(writer, scope, planned)

    def export(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Every entry of the scope as JSON data; see `portable.export`."""
        return portable.export(self.ledger, scope)

    def import_(self, scope: Scope, rows: Iterable[Mapping[str, Any]]) -> int:
        """Stores exported entries as the scope's own, all or none; see `portable`. Returns how many were new.

        Raises:
            BadInput: names the record and the field.
        """
        indexes, batch = self.indexes.attended(), self.settings.bulk_batch
        records = portable.read_records(scope, map(self.redactor.row, rows))
        texts = [one.entry.text for one in records]
        found: dict[str, Any] = {}
        for start in range(0, len(texts), batch):
            found |= indexes.vectors.of_all_that_can(texts[start : start + batch])
        with self._write() as writer:
            inserted = portable.insert_records(writer, scope, records, found, indexes.vectors.id)
        indexes.catch_up(batch)
        return inserted

    @contextmanager
    def bulk(self) -> Iterator[None]:
        """For many imports one after another: the vector index follows in large batches, and has at the end.

        Everything is stored, and found by searches, as soon as each import returns; what a crash keeps from
        the index is brought in by the next write.
        """
        with self.indexes.attended().held_back(self.settings.bulk_batch):
            yield

    def drain(self, batch: int | None = None) -> int:
        """Brings the index up to date; see `Mirror.drain`."""
        return self.indexes.attended().mirror.drain(batch)

    def rebuild(self) -> int:
        """Makes the lexical view and the vector index anew from the ledger; returns the active entries.

        Raises:
            StoreBusy: another process has the embedded index; so do the next.
        """
        self.indexes.mirror.claim()
        return doctor.rebuild(self.ledger, self.settings, self.indexes)

    def reembed(self) -> int:
        """Makes every vector anew with the present embedder; returns how many."""
        self.indexes.mirror.claim()
        return doctor.reembed(self.ledger, self.settings, self.indexes)

    def check(self, *, alone: bool = False) -> dict[str, Any]:
        """What the home holds and what is wrong with it; see `doctor.check`."""
        mirror = self._indexes.mirror if self._indexes else None
        return doctor.check(self.ledger, self.settings, mirror, self.embedder_id, alone=alone)

    def mend(self, *, alone: bool = False) -> "Mended":
        """Puts right what a check finds, as far as that needs no person; see `doctor.mend`."""

        self.indexes.mirror.claim()
        return doctor.mend(self.ledger, self.settings, self.indexes, self.commit_session, alone=alone)


def _entries(stored: Iterable[StoredEntry]) -> list[Entry]:
    return [one.entry for one in stored]


_opening = threading.Lock()
# By process: connections and locks do not survive a fork.
_open: dict[tuple[int, Path], Bank] = {}


def shared_bank(
    settings: Settings,
    *,
    embeddings: "Embeddings | None" = None,
    world: World | None = None,
) -> Bank:
    """The bank of this process for `settings.home`: opened by the first, closed by the last who closes it.

    `embeddings` must be the same object for all; of `world` that of the first who asks counts.

    Raises:
        StoreError: the home is open in this process with other settings; names them. Or it cannot be opened.
    """
    key = (os.getpid(), settings.home.resolve())
    with _opening:
        bank = _open.get(key)
        if bank is None or not bank.share():
            bank = Bank.open(settings, embeddings=embeddings, world=world)
            _open[key] = bank
            return bank
        other = [name for name in _STORE_FIELDS if getattr(bank.settings, name) != getattr(settings, name)]
        if embeddings is not None and embeddings is not bank.embeddings:
            other.append("embeddings")
        if other:
            bank.close()
            raise StoreError(
                f"{settings.home} is open in this process with another {', '.join(other)}; use the same"
                " settings or close it first"
            )
        return bank
