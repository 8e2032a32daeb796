"""The half of the bank that ends sessions: examined, then committed in one transaction."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from memcycle.core.edit import Applied, Edit
from memcycle.core.errors import BadInput
from memcycle.core.probe import REPAIRER, Probe, Repair, SessionReport
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.stores import applying, retracting, staging
from memcycle.stores.ledger import entries, entry_writes, probes, sessions
from memcycle.stores.ledger import turns as turn_rows
from memcycle.stores.ledger.entries import StoredEntry
from memcycle.stores.ledger.events import Change
from memcycle.stores.ledger.sessions import Part, State
from memcycle.stores.writer import Writer
from memcycle.stores.writing import Writing

ACTOR = "session"


class Committing(Writing):
    """Examines and commits sessions."""

    def begin_verification(self, scope: Scope) -> Part:
        """Puts the scope's session under examination, a committed one again; it takes turns meanwhile.

        Safe to repeat: the same part, though turns that came since may lie in it.

        Returns:
            The number of its present part, and the place of its last turn.

        Raises:
            BadInput: a session never written to.
        """
        session = staging.session_of(scope)
        with self._write(scope) as writer:
            part = sessions.begin(writer.conn, scope, session, writer.now)
        if part is None:
            raise BadInput(f"there is no session {session!r} of this user and workspace")
        return part

    def part_turns(self, scope: Scope, until: int) -> list[Turn]:
        """What an examination of the scope's session up to a place (inclusive) is about, in order.

        These are the turns that wait for the commit; all turns up to there where none does.
        """
        session = staging.session_of(scope)
        with self.ledger.read() as conn:
            waiting = turn_rows.staged(conn, scope, session, until=until)
            return waiting or turn_rows.of_session(conn, scope, session, before=until + 1)

    def save_probes(self, scope: Scope, found: Sequence[Probe], *, replace_part: int | None = None) -> None:
        """Stores probes of the scope's session, each in place of the one with its id, in one transaction.

        A probe whose turns or entries were forgotten meanwhile is not stored again.

        Args:
            replace_part: Drops the older probes of this part, and takes back what their repairs wrote and
                nobody weighed, since that examination was broken off.

        Raises:
            BadInput: a probe of another session.
        """
        session = staging.session_of(scope)
        for one in found:
            if one.session != session:
                raise BadInput(f"probe {one.id} is of session {one.session!r}, the scope names {session!r}")
        withdrawn: list[str] = []
        with self._write(scope) as writer:
            if replace_part is not None:
                old = probes.of_scope(writer.conn, scope, replace_part)
                withdrawn = _withdraw(writer, scope, old)
                probes.drop_part(writer.conn, scope, session, replace_part)
            probes.put(writer.conn, scope, probes.resting(writer.conn, scope, found))
        if withdrawn:
            self._writable().catch_up()

    def update_probes(self, scope: Scope, changes: Mapping[str, Mapping[str, Any]]) -> list[Probe]:
        """Changes fields of probes, by id, in one transaction; one that was forgotten meanwhile stays gone.

        Returns:
            Those that are there, as they stand now.
        """
        with self._write(scope) as writer:
            there = {one.id: one for one in probes.of_scope(writer.conn, scope)}
            changed = [
                there[name].model_copy(update=dict(new)) for name, new in changes.items() if name in there
            ]
            resting = probes.resting(writer.conn, scope, changed)
            probes.put(writer.conn, scope, resting)
        return resting

    def write_repair(
        self, scope: Scope, probe_id: str, edit: Edit | None, decided: Mapping[str, Any]
    ) -> Repair | None:
        """Applies what was decided of a probe's repair and notes it there, in one transaction.

        A write that no probe knows of could not be taken back. A repair that is decided already is left as it
        is, so that this is safe to repeat.

        Args:
            decided: Fields of the repair. `entry` and `wrote` are filled in from the edit.

        Returns:
            The repair as it stands; None, and nothing is written, where the probe or its proposal is gone.
        """
        vectors = self._for_writing().vectors
        prepared = applying.prepare(vectors, [edit] if edit is not None else [])
        with self._write(scope) as writer:
            probe = next((one for one in probes.of_scope(writer.conn, scope) if one.id == probe_id), None)
            if probe is None or probe.repair is None or probe.repair.decision is not None:
                return probe.repair if probe is not None else None
            applied = applying.apply_edits(writer, scope, prepared, vectors.id)
            repair = probe.repair.model_copy(update={**decided, **_outcome(applied)})
            probes.put(writer.conn, scope, [probe.model_copy(update={"repair": repair})])
        return repair

    def commit_session(
        self,
        scope: Scope,
        *,
        until: int | None = None,
        unverified: str = "",
        report: SessionReport | None = None,
    ) -> int:
        """Makes the session's staged entries active, in one transaction, then brings the index up to date.

        What rests only on turns after `until` stays staged and opens the next part. A part that was committed
        already is left as it is, so that a retried commit changes nothing.

        Args:
            until: Place of the last turn to commit; all without.
            unverified: Why the part was not examined, if it was not.
            report: What its examination found; `committed` is filled in here.

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
            if missing:
                entry_writes.set_vectors(writer.conn, missing.items(), vectors.id)
            activated = _commit(writer, scope, until, unverified, report or SessionReport())
        self._writable().catch_up()
        return activated


def _outcome(applied: Applied) -> dict[str, Any]:
    """What came of a repair's one edit, as fields of the repair."""
    for entry in (*applied.added, *applied.updated, *applied.merged):
        return {"entry": entry, "wrote": True}
    why = "; ".join(rejected.why for rejected in applied.rejected)
    return {"decision": "REFUSED", "entry": None, "why": why} if applied.rejected else {}


def _withdraw(writer: Writer, scope: Scope, old: Sequence[Probe]) -> list[str]:
    repairs = [one.repair for one in old if one.repair is not None]
    unweighed = Counter(one.entry for one in repairs if one.wrote and not one.rolled_back and not one.settled)
    ids = [entry for entry in unweighed.elements() if entry is not None]
    return retracting.retract(writer, scope, ids, actor=REPAIRER, why="its examination was broken off")


def _commit(writer: Writer, scope: Scope, until: int | None, unverified: str, report: SessionReport) -> int:
    session = staging.session_of(scope)
    state = sessions.state(writer.conn, scope, session)
    if state is None:
        return 0
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
    sessions.commit(
        writer.conn,
        scope,
        session,
        writer.now,
        reason=unverified or _left_unverified(state, waiting),
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


def _left_unverified(state: State, waiting: Sequence[StoredEntry]) -> str:
    """Why an earlier part was not examined, where this examination was of later turns only."""
    return state.reason if any(one.entry.granularity == "raw" for one in waiting) else ""
