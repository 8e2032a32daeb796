"""A session: taking its turns in, what it was examined with, what repairs wrote, and its commit."""

import sqlite3
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from memcycle.core.edit import Applied
from memcycle.core.entry import Entry, departed, new_entry
from memcycle.core.errors import BadInput
from memcycle.core.probe import Probe, Repair, SessionReport
from memcycle.core.redaction import Redactor
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn, turn_id
from memcycle.stores import edits, undo
from memcycle.stores.edits import Prepared
from memcycle.stores.ledger import entries, events, links, meta, probes, turns
from memcycle.stores.ledger import sessions as session_rows
from memcycle.stores.ledger.entries import RECALLABLE
from memcycle.stores.ledger.events import Change
from memcycle.stores.ledger.sessions import State
from memcycle.stores.ledger.turns import TurnState
from memcycle.stores.writer import Writer, united

ACTOR, INGEST = "session", "ingest"

_OVERTAKEN = {"decision": "REFUSED", "why": "another end of the session committed it meanwhile"}
_UNWEIGHED = "nobody weighed it"


# Turns, each taken in once and without any model


def session_of(scope: Scope) -> str:
    """The scope's session; BadInput where it names none."""
    if scope.session is None:
        raise BadInput("this needs a scope with a session, e.g. scope.within('main')")
    return scope.session


def stage_turns(
    writer: Writer, scope: Scope, given: Sequence[Turn], redactor: Redactor, state: TurnState
) -> list[Turn]:
    """Stores turns with their raw entries, staged; a turn that is there already is not stored again.

    One that is there in other words was edited where it was said: it says the new ones from now on, and what
    rests on the old ones leaves. Each is looked for as it was said, too: one may have been stored or
    forgotten before redaction was switched on.

    Args:
        redactor: Takes secrets out of what is new.
        state: Of what is new, or says something new.

    Returns:
        The stored turns in the given order, old ones included, forgotten ones left out.

    Raises:
        BadInput: a turn of another session.
    """
    session, conn, stored = session_of(scope), writer.conn, []
    for said in given:
        if said.session != session:
            raise BadInput(f"turn {said.id} is of session {said.session!r}, the scope names {session!r}")
        turn = redactor.turn(said)
        old = turns.known(conn, scope, said) or turns.known(conn, scope, turn) or _edited(conn, scope, turn)
        if old is not None and old.text in (said.text, turn.text):
            stored.append(old)
        elif old is not None:
            stored += _reword(writer, scope, old, turn, state)
        elif not (_is_forgotten(conn, scope, said) or _is_forgotten(conn, scope, turn)):
            stored.append(_store(writer, scope, turn, state))
    return stored


def raw_entry(scope: Scope, turn: Turn) -> Entry:
    """The entry that holds a turn as it was said, with place and source's id for an import to restore."""
    message = {} if turn.message_id is None else {"message_id": turn.message_id}
    return new_entry(
        scope.within(turn.session),
        "raw",
        turn.text,
        (turn.id,),
        speaker=turn.speaker,
        role=turn.role,
        observed_at=turn.time,
        actor=INGEST,
        metadata={"position": turn.position, **message},
    )


def _is_forgotten(conn: sqlite3.Connection, scope: Scope, turn: Turn) -> bool:
    return meta.is_forgotten(conn, scope, "turn", turns.identity_of(turn))


def _store(writer: Writer, scope: Scope, turn: Turn, state: TurnState) -> Turn:
    conn = writer.conn
    session_rows.reopen(conn, scope, writer.now)
    placed = _placed(conn, scope, turn)
    # Its identity stays that of the place it asked for: the same message asks for the same place again.
    turns.insert(conn, scope, placed, turns.identity_of(turn), state)
    session_rows.advance(conn, scope, placed.position)
    entry = raw_entry(scope, placed)
    if entries.one(conn, scope, entry.id) is None:
        stored = writer.insert(entry, None)
        writer.record([events.line("stage", None, stored.entry)], actor=INGEST)
    return placed


_ALIKE, _SHARED, _LOOKED_AT = 0.9, 0.6, 1000
"""From when on a text is an edition of another: likeness of their beginnings, or share of their words."""


def _edited(conn: sqlite3.Connection, scope: Scope, turn: Turn) -> Turn | None:
    """The turn that this one, which its source gives no id, is an edition of: a caption was added, say.

    Another conversation may have the same place, and even the same speaker and time.
    """
    old = turns.at_place(conn, scope, turn) if turn.message_id is None else None
    if old is None:
        return None
    before, after = old.text.split(), turn.text.split()
    begins = all(one == other for one, other in zip(before, after, strict=False))
    shared = len({*before} & {*after}) / max(len({*before}), len({*after}), 1)
    if begins or shared >= _SHARED:
        return old
    alike = SequenceMatcher(None, old.text[:_LOOKED_AT], turn.text[:_LOOKED_AT]).ratio()
    return old if alike >= _ALIKE else None


def _reword(writer: Writer, scope: Scope, old: Turn, given: Turn, state: TurnState) -> list[Turn]:
    """Gives a turn the words its source gives it now, in one change.

    The raw entry gets a successor. Facts that rest on the turn and episodes over it are withdrawn, so that
    reading it again may bring them back; a fact that another session holds too rests on that alone.

    Returns:
        What is to be read again: the turn, and others of its session that said the same.
    """
    conn, turn = writer.conn, given.model_copy(update={"id": old.id, "position": old.position})
    session_rows.reopen(conn, scope, writer.now)
    turns.reword(conn, scope, turn, turns.identity_of(given))
    entry = raw_entry(scope, turn)
    new = entries.one(conn, scope, entry.id) or writer.insert(entry, None)
    if new.entry.status not in RECALLABLE:
        new = writer.readmit(new, status="staged")
    held = entries.by_turns(conn, scope, [turn.id], statuses=RECALLABLE)
    left = [one for one in held if one.entry.id != new.entry.id]
    # The turn comes last: of a change `undo` takes back what stands last in the log.
    left.sort(key=lambda one: one.entry.granularity == "raw")
    said = turns.by_ids(conn, scope, {name for one in left for name in one.entry.turns})
    again, lines = {turn.id}, []
    for one in left:
        is_turn = one.entry.granularity == "raw"
        own = {name for name in one.entry.turns if name in said and said[name].session == turn.session}
        elsewhere = tuple(name for name in one.entry.turns if name in said and name not in own)
        if elsewhere:
            writer.change(one, turns=elsewhere, quote=None)
            continue
        again |= own if one.entry.granularity == "fact" else set()
        after = writer.change(
            one,
            status="superseded",
            superseded_by=new.entry.id,
            valid_until=writer.now,
            metadata=departed(one.entry, "reworded" if is_turn else "withdrawn"),
        )
        lines.append(events.line("supersede", one.entry, after.entry))
        links.put(conn, scope, new.entry.id, one.entry.id)
    earlier = [one.entry.id for one in left if one.entry.granularity == "raw"]
    after = writer.change(new, supersedes=united(new.entry.supersedes, earlier))
    lines.insert(0, events.line("update", new.entry, after.entry))
    writer.record(lines, actor=INGEST, why="its message was edited")
    writer.reindex_after(scope, turn.session, turn.position)
    turns.mark(conn, scope, again, state)
    return sorted(turns.by_ids(conn, scope, again).values(), key=lambda one: one.position)


def _placed(conn: sqlite3.Connection, scope: Scope, turn: Turn) -> Turn:
    """The turn with a free place and a free id; an id not made from its place is kept where free."""
    position = turn.position
    own = turn.id != turn_id(turn.session, turn.position) and turns.id_free(conn, scope, turn.id)
    while (
        position < 1
        or not turns.place_free(conn, scope, turn.session, position)
        or not (own or turns.id_free(conn, scope, turn_id(turn.session, position)))
    ):
        position = max(position, session_rows.last_position(conn, scope)) + 1
    return turn.model_copy(
        update={"position": position, "id": turn.id if own else turn_id(turn.session, position)}
    )


# Probes, repairs and the commit


def save_probes(
    writer: Writer, scope: Scope, found: Sequence[Probe], *, replace_part: int | None, shown: Sequence[str]
) -> bool:
    """Stores probes, unless something they were made from was forgotten; see `Bank.save_probes`."""
    if replace_part is not None:
        old = probes.of_scope(writer.conn, scope, replace_part)
        # Nobody could say of these that their repairs help.
        unweighed = [one for one in old if _is_written(one) or one.verdict == "ungraded"]
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
    if prepared and not session_rows.is_open(writer.conn, scope):
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
    state = session_rows.state(writer.conn, scope)
    if state is None:
        return 0
    _settle(writer, scope)
    staged = entries.staged(writer.conn, scope, scope.session)
    later = set() if until is None else entries.staged_after(writer.conn, scope, until)
    waiting = [one for one in staged if one.row not in later]
    # A run that died before it could note that may have made this commit before.
    again = state.status == "open" and until is not None and until <= state.until
    if not waiting if state.is_committed else again:
        return _activated(state, state.part if state.is_committed else state.part - 1)
    now_active = [writer.change(one, status="active").entry for one in waiting]
    lines = [Change(one, "commit", {"status": "staged"}, {"status": "active"}) for one in now_active]
    writer.record(lines, actor=ACTOR)
    activated = _activated(state, state.part) + len(waiting)
    late = (state.last if until is None else until) > state.until
    # A late turn may have expired since.
    late = late or any(one.entry.granularity == "raw" for one in waiting)
    session_rows.commit(
        writer.conn,
        scope,
        writer.now,
        # Why an earlier part was not examined stays, where this examination was of later turns only.
        reason=unverified or (state.reason if late else ""),
        until=until,
        reports={**state.reports, state.part: report.model_copy(update={"committed": activated})},
    )
    if later:
        session_rows.reopen(writer.conn, scope, writer.now)
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


def _changed(old: Probe, new: Mapping[str, Any]) -> Probe:
    """The probe with new fields. Of two ends at once, one may have written or weighed a repair that the other
    does not know of: that note stays."""
    repair = new.get("repair")
    if repair is not None and old.repair is not None and repair.overtaken_by(old.repair):
        new = {name: value for name, value in new.items() if name != "repair"}
    return old.model_copy(update=dict(new))


def _is_written(probe: Probe) -> bool:
    return probe.repair is not None and probe.repair.state == "written"


def _settle(writer: Writer, scope: Scope) -> None:
    """Takes back what repairs of the session wrote and nobody weighed: their examination was broken off."""
    found = probes.of_scope(writer.conn, scope)
    waiting = [one for one in found if _is_written(one)]
    if not waiting:
        return
    gone = {one.repair.entry for one in waiting if one.repair is not None}
    undo.retract_repairs(writer, scope, waiting, _UNWEIGHED)
    probes.put(writer.conn, scope, [_without(one, gone) for one in found])


def _without(probe: Probe, gone: set[str | None]) -> Probe:
    """The probe as it stands without what these entries brought."""
    changes: dict[str, Any] = {}
    if probe.repair is not None and _is_written(probe):
        changes["repair"] = probe.repair.model_copy(update={"state": "rolled_back", "why": _UNWEIGHED})
    if probe.after is not None and gone & probe.after.rests_on:
        changes["as_before"] = True
    return probe.model_copy(update=changes)


def _activated(state: State, part: int) -> int:
    """How many entries of a part became active so far."""
    return state.reports[part].committed if part in state.reports else 0
