"""A session's end: what it was examined with, what repairs wrote, and its commit."""

from collections.abc import Mapping, Sequence
from typing import Any

from memcycle.core.edit import Applied
from memcycle.core.probe import Probe, Repair, SessionReport
from memcycle.core.scope import Scope
from memcycle.stores import edits, undo
from memcycle.stores.edits import Prepared
from memcycle.stores.ledger import entries, probes, turns
from memcycle.stores.ledger import sessions as session_rows
from memcycle.stores.ledger.entries import StoredEntry
from memcycle.stores.ledger.events import Change
from memcycle.stores.ledger.sessions import State
from memcycle.stores.staging import session_of
from memcycle.stores.writer import Writer

ACTOR = "session"

_OVERTAKEN = {"decision": "REFUSED", "why": "another end of the session committed it meanwhile"}
_UNWEIGHED = "nobody weighed it"


def save_probes(
    writer: Writer, scope: Scope, found: Sequence[Probe], *, replace_part: int | None, shown: Sequence[str]
) -> bool:
    """Stores probes, unless something they were made from was forgotten; see `Bank.save_probes`."""
    if replace_part is not None:
        old = probes.of_scope(writer.conn, scope, replace_part)
        unweighed = [one for one in old if _is_unweighed(one)]
        undo.retract_repairs(writer, scope, unweighed, "it is examined anew")
        probes.delete(writer.conn, scope, old)
    if not set(shown) <= turns.by_ids(writer.conn, scope, shown).keys():
        return False
    probes.put(writer.conn, scope, probes.intact(writer.conn, scope, found))
    return True


def update_probes(writer: Writer, scope: Scope, changes: Mapping[str, Mapping[str, Any]]) -> list[Probe]:
    """Changes fields of probes, by id; gives those that are there, as they stand now."""
    there = probes.by_ids(writer.conn, scope, changes)
    changed = [_changed(there[name], new) for name, new in changes.items() if name in there]
    intact = probes.intact(writer.conn, scope, changed)
    probes.put(writer.conn, scope, intact)
    return intact


def write_repair(
    writer: Writer,
    scope: Scope,
    probe_id: str,
    prepared: list[Prepared],
    decided: Mapping[str, Any],
    *,
    embedder: str,
) -> Repair | None:
    """Applies what was decided of a probe's repair and notes it there; see `Bank.write_repair`."""
    probe = probes.by_ids(writer.conn, scope, [probe_id]).get(probe_id)
    if probe is None or probe.repair is None or probe.repair.state != "proposed":
        return probe.repair if probe is not None else None
    if prepared and not session_rows.is_open(writer.conn, scope, session_of(scope)):
        prepared, decided = [], _OVERTAKEN
    repair = Repair.model_validate({**probe.repair.model_dump(), **decided})
    if not probes.intact(writer.conn, scope, [probe.model_copy(update={"repair": repair})]):
        return None
    applied = edits.apply_edits(writer, scope, prepared, embedder)
    repair = repair.model_copy(update=_outcome(applied, repair.decision))
    probes.put(writer.conn, scope, [probe.model_copy(update={"repair": repair})])
    return repair


def commit(writer: Writer, scope: Scope, until: int | None, unverified: str, report: SessionReport) -> int:
    """Makes the session's staged entries active; see `Bank.commit_session`."""
    session = session_of(scope)
    state = session_rows.state(writer.conn, scope, session)
    if state is None:
        return 0
    _settle(writer, scope)
    staged = entries.staged(writer.conn, scope)
    later = set() if until is None else entries.staged_after(writer.conn, scope, until)
    waiting = [one for one in staged if one.row not in later]
    if _is_done(state, until, waiting):
        return _activated(state, state.part if state.is_committed else state.part - 1)
    writer.record(
        [
            Change(
                writer.change(one, status="active").entry,
                "commit",
                {"status": "staged"},
                {"status": "active"},
            )
            for one in waiting
        ],
        actor=ACTOR,
    )
    activated = _activated(state, state.part) + len(waiting)
    last = session_rows.last_position(writer.conn, scope, session) if until is None else until
    session_rows.commit(
        writer.conn,
        scope,
        session,
        writer.now,
        reason=unverified or _left_unverified(state, waiting, last),
        until=until,
        reports={**state.reports, state.part: report.model_copy(update={"committed": activated})},
    )
    if later:
        session_rows.reopen(writer.conn, scope, session, writer.now)
    return activated


def _outcome(applied: Applied, decision: str | None) -> dict[str, Any]:
    """What came of a repair's one edit, as fields of the repair."""
    for entry in applied.unchanged:
        why = "it is stored, and rests on that turn already"
        return {"state": "skipped", "decision": "SKIP", "entry": entry, "why": why}
    for entry in (*applied.added, *applied.updated, *applied.merged):
        return {"state": "written", "entry": entry}
    if applied.rejected:
        why = "; ".join(rejected.why for rejected in applied.rejected)
        return {"state": "refused", "decision": "REFUSED", "entry": None, "why": why}
    return {"state": "refused" if decision == "REFUSED" else "skipped"}


def _is_unweighed(probe: Probe) -> bool:
    """Whether its repair stands in memory though nobody could say that it helps."""
    repair = probe.repair
    return repair is not None and repair.stands and (repair.state == "written" or probe.verdict == "ungraded")


def _changed(old: Probe, new: Mapping[str, Any]) -> Probe:
    """The probe with new fields. Of two ends at once, one may have written or weighed a repair that the other
    does not know of: that note stays."""
    repair = new.get("repair")
    if repair is not None and old.repair is not None and repair.overtaken_by(old.repair):
        new = {name: value for name, value in new.items() if name != "repair"}
    return old.model_copy(update=dict(new))


def _settle(writer: Writer, scope: Scope) -> None:
    """Takes back what repairs of the session wrote and nobody weighed: their examination was broken off."""
    found = probes.of_scope(writer.conn, scope)
    waiting = [one for one in found if one.repair is not None and one.repair.state == "written"]
    if not waiting:
        return
    gone = {one.repair.entry for one in waiting if one.repair is not None}
    undo.retract_repairs(writer, scope, waiting, _UNWEIGHED)
    probes.put(writer.conn, scope, [_without(one, gone) for one in found])


def _without(probe: Probe, gone: set[str | None]) -> Probe:
    """The probe as it stands without what these entries brought."""
    changes: dict[str, Any] = {}
    if probe.repair is not None and probe.repair.state == "written":
        changes["repair"] = probe.repair.model_copy(update={"state": "rolled_back", "why": _UNWEIGHED})
    if probe.after is not None and gone & probe.after.rests_on:
        changes["as_before"] = True
    return probe.model_copy(update=changes)


def _activated(state: State, part: int) -> int:
    """How many entries of a part became active so far."""
    return state.reports[part].committed if part in state.reports else 0


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
