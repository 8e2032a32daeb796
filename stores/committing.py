"""The half of the bank that commits sessions: in one transaction, examined or not."""

from collections.abc import Sequence
from typing import Any

from memcycle.core.probe import Probe, SessionReport
from memcycle.core.scope import Scope
from memcycle.stores import retracting, staging
from memcycle.stores.examining import Examining
from memcycle.stores.ledger import entries, entry_writes, probes, sessions
from memcycle.stores.ledger.entries import StoredEntry
from memcycle.stores.ledger.events import Change
from memcycle.stores.ledger.sessions import State
from memcycle.stores.writer import Writer

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
