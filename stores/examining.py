"""The half of the bank that examines sessions: probes, and the repairs they lead to."""

from collections.abc import Mapping, Sequence
from typing import Any

from memcycle.core.edit import Applied, Edit
from memcycle.core.errors import BadInput
from memcycle.core.probe import REPAIRER, Probe, Repair
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.stores import applying, retracting, staging
from memcycle.stores.ledger import probes, sessions
from memcycle.stores.ledger import turns as turn_rows
from memcycle.stores.ledger.sessions import Part
from memcycle.stores.writer import Writer
from memcycle.stores.writing import Writing

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
