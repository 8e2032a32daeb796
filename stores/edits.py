"""Takes back what a role wrote, when it turned out to be of no use."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from memcycle.core.edit import Applied, Edit, Event, Rejected
from memcycle.core.entry import Entry, departed, departure, entry_id, same_text
from memcycle.core.errors import BadInput, UnknownEntry
from memcycle.core.language.names import NAMES, borne_out
from memcycle.core.probe import REPAIRER, Probe
from memcycle.core.scope import Scope
from memcycle.core.validity import is_older
from memcycle.stores.ledger import entries, events, links, sessions, tombstones, turns
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.ledger.entries import StoredEntry
from memcycle.stores.ledger.events import Change, Logged, Write
from memcycle.stores.vectors import Vectors
from memcycle.stores.writer import Writer, united


class Prepared(NamedTuple):
    """An edit with the vector of its text, or why there is none."""

    edit: Edit
    vector: Vector | None = None
    failure: str | None = None


def prepare(vectors: Vectors, edits: Sequence[Edit]) -> list[Prepared]:
    """The edits with the vectors of the texts they would store; one that cannot be embedded says why."""
    texts = [edit.entry.text for edit in edits if edit.entry is not None and edit.op in ("ADD", "UPDATE")]
    found, failed = vectors.of_what_works(texts)
    named = [(edit, edit.entry.text if edit.entry is not None else "") for edit in edits]
    return [Prepared(edit, found.get(text), failed.get(text)) for edit, text in named]


class _Refused(Exception):
    """Why an edit is not applied."""


def apply_edits(writer: Writer, scope: Scope, prepared: list[Prepared], embedder: str | None) -> Applied:
    """Applies what the guards allow, in order; the rest is reported with the reason."""
    applied = Applied()
    for item in prepared:
        try:
            _apply_one(writer, scope, item, embedder, applied)
        except _Refused as refusal:
            applied.rejected.append(_rejected(item.edit, str(refusal)))
    return applied


def refused(edits: Sequence[Edit], why: str) -> Applied:
    """None of the edits is applied."""
    return Applied(rejected=[_rejected(edit, why) for edit in edits])


def _rejected(edit: Edit, why: str) -> Rejected:
    return Rejected(text=edit.entry.text if edit.entry else "", why=why, target=edit.target)


def _apply_one(writer: Writer, scope: Scope, item: Prepared, embedder: str | None, applied: Applied) -> None:
    edit = item.edit
    if edit.op == "NONE":
        raise _Refused(edit.reason or "nothing to change")
    if edit.op == "DELETE":
        applied.deleted.append(_delete(writer, scope, edit))
        return
    entry = _owned(scope, edit)
    _check_turns(writer, scope, edit, entry)
    if edit.op == "MERGE":
        _merge(writer, _target(writer, scope, edit), entry, edit, applied)
        return
    _check_text(writer, entry)
    entry = entry.model_copy(
        update={
            "status": writer.status_for(entry.scope),
            "embedder": embedder,
            "superseded_by": None,
            "valid_from": entry.valid_from or entry.event_time or entry.observed_at,
            "valid_until": None,
            "recorded_at": writer.now,
        }
    )
    if edit.op == "ADD":
        _add(writer, entry, item, applied)
    else:
        _update(writer, entry, item, applied)


def own_id(entry: Entry) -> str:
    """The entry's id if it follows from its content, else the one that does.

    Merging appends turns to an entry, so an id may stem from the first ones alone. An id from elsewhere could
    be one that another user's entry will derive.
    """
    cuts = range(len(entry.turns), -1, -1)
    derived = (entry_id(entry.scope, entry.turns[:cut], entry.granularity, entry.text) for cut in cuts)
    whole = next(derived)
    return entry.id if entry.id and entry.id != whole and entry.id in derived else whole


def _owned(scope: Scope, edit: Edit) -> Entry:
    entry = edit.entry
    if entry is None:
        raise _Refused(f"{edit.op} without an entry")
    if entry.scope.base != scope.base:
        raise _Refused("the entry belongs to another user or workspace")
    session = entry.scope.session or scope.session
    if session is None:
        raise _Refused("the entry names no session")
    entry = entry.model_copy(update={"scope": scope.within(session)})
    return entry.model_copy(update={"id": own_id(entry)})


def _check_turns(writer: Writer, scope: Scope, edit: Edit, entry: Entry) -> None:
    """A turn that was forgotten while a role read it must not come back in the role's words."""
    target = entries.one(writer.conn, scope, edit.target) if edit.target else None
    named = set(entry.turns) - set(target.entry.turns if target else ())
    missing = sorted(named - turns.by_ids(writer.conn, scope, named).keys())
    if missing:
        raise _Refused(f"turn {missing[0]}, which it rests on, is not in this memory (any more)")


def _check_text(writer: Writer, entry: Entry) -> None:
    if not entry.text.strip():
        raise _Refused("the text is empty")
    if tombstones.has_text(writer.conn, entry.scope, entry.text):
        raise _Refused("this was forgotten at the user's request and is not stored again")


def _target(writer: Writer, scope: Scope, edit: Edit) -> StoredEntry:
    """The entry an edit names, which must be recallable and of this base scope."""
    if edit.target is None:
        raise _Refused(f"{edit.op} names no target")
    target = entries.one(writer.conn, scope, edit.target)
    if target is None:
        raise _Refused(f"no entry {edit.target} in this memory")
    _check_recallable(target)
    return target


def _check_recallable(stored: StoredEntry) -> None:
    if stored.entry.status == "superseded":
        raise _Refused(f"entry {stored.entry.id} was already superseded by {stored.entry.superseded_by}")
    if stored.entry.status == "forgotten":
        raise _Refused(f"entry {stored.entry.id} was forgotten")


def _merge(writer: Writer, target: StoredEntry, entry: Entry, edit: Edit, applied: Applied) -> None:
    after = writer.merge(target, entry, actor=edit.actor, why=edit.reason)
    applied.merged.append(target.entry.id)
    if after is target:
        applied.unchanged.append(target.entry.id)


def _add(writer: Writer, entry: Entry, item: Prepared, applied: Applied) -> None:
    edit = item.edit
    existing = entries.one(writer.conn, entry.scope, entry.id)
    twin = _twin(writer, entry, existing)
    if twin is not None:
        _merge(writer, twin, entry, edit, applied)
        return
    stored = _put(writer, entry, existing, item)
    after = events.state_of(stored.entry)
    writer.record([Change(stored.entry, "add", None, after)], actor=edit.actor, why=edit.reason)
    applied.added.append(stored.entry.id)


def _twin(writer: Writer, entry: Entry, existing: StoredEntry | None) -> StoredEntry | None:
    """The recallable entry that says it already: the same one, written before, or another."""
    if existing is None or departure(existing.entry) == "withdrawn":
        return writer.duplicate(entry)
    # A repeated write of the same evidence: never brings back what was replaced or forgotten since.
    _check_recallable(existing)
    return existing


def _put(writer: Writer, entry: Entry, existing: StoredEntry | None, item: Prepared) -> StoredEntry:
    """Inserts the entry, or makes the one that was withdrawn valid again."""
    _check_vector(item)
    if existing is None:
        return writer.insert(entry, item.vector)
    return writer.revive(existing, entry.status, item.vector, entry.embedder)


def _update(writer: Writer, entry: Entry, item: Prepared, applied: Applied) -> None:
    edit, scope = item.edit, entry.scope
    existing = entries.one(writer.conn, scope, entry.id)
    if not _is_replay(writer, scope, edit, existing):
        target = _target(writer, scope, edit)
        _check_successor(target.entry, entry)
        twin = _twin(writer, entry, existing)
        if twin is None:
            successor, fresh, taken = _put(writer, entry, existing, item), True, {}
        else:
            successor, fresh, taken = twin, False, {"turns": united(twin.entry.turns, entry.turns)}
        writer.supersede(target, successor, fresh=fresh, taken=taken, actor=edit.actor, why=edit.reason)
        entry = successor.entry
    applied.updated.append(entry.id)
    applied.superseded.append(str(edit.target))


def _is_replay(writer: Writer, scope: Scope, edit: Edit, existing: StoredEntry | None) -> bool:
    """Whether this very update was applied before: a node run again after a crash gets the same answer."""
    target = entries.one(writer.conn, scope, edit.target) if edit.target else None
    return (
        existing is not None
        and target is not None
        and existing.entry.status in ("active", "staged")
        and target.entry.superseded_by == existing.entry.id
    )


def _check_successor(target: Entry, entry: Entry) -> None:
    if entry.granularity != target.granularity:
        raise _Refused(f"a {entry.granularity} cannot replace a {target.granularity} ({target.id})")
    if same_text(entry.text) == same_text(target.text):
        raise _Refused(f"it says the same as entry {target.id}: nothing to change")
    if is_older(entry, target):
        raise _Refused(f"older evidence never overwrites newer (entry {target.id})")


def _check_vector(item: Prepared) -> None:
    if item.failure is not None:
        raise _Refused(item.failure)


def _delete(writer: Writer, scope: Scope, edit: Edit) -> str:
    if not (edit.quote and edit.quote.strip()) and not edit.retention:
        raise _Refused("deleting needs the user's own words or a passed retention limit")
    target = _target(writer, scope, edit)
    why = departed(target.entry, "expired" if edit.retention else None)
    after = writer.change(target, status="forgotten", valid_until=writer.now, metadata=why)
    line = Change(
        after.entry,
        "expire" if edit.retention else "delete",
        events.state_of(target.entry),
        events.state_of(after.entry),
    )
    writer.record([line], actor=edit.actor, why=edit.reason)
    return target.entry.id


def unknown(entry: str) -> UnknownEntry:
    """The error for an id that is not in this memory (or is another user's, which must look the same)."""
    return UnknownEntry(f"no entry {entry} in this memory; `memories` lists them")


def revise(
    writer: Writer,
    scope: Scope,
    target_id: str,
    text: str,
    *,
    vector: Vector | None,
    embedder: str | None,
    actor: str,
    why: str,
) -> Entry:
    """Replaces an entry by one with another text that keeps everything else; the same text changes nothing.

    A text the entry had before brings that earlier entry back; a text that another entry has makes that one
    the successor.

    Raises:
        UnknownEntry: no such entry, or a forgotten one.
        BadInput: blank text, or an entry that was replaced already.
    """
    target = entries.one(writer.conn, scope, target_id)
    if target is None or target.entry.status == "forgotten":
        raise unknown(target_id)
    if target.entry.status == "superseded":
        raise BadInput(f"entry {target_id} was replaced by {target.entry.superseded_by}; edit that one")
    if not text.strip():
        raise BadInput("the new text is empty; use forget to remove an entry")
    if text == target.entry.text:
        return target.entry
    successor = _successor(target.entry, text, embedder=embedder, actor=actor)
    twin = _twin_revising(writer, successor, target)
    if twin is not None:
        return _replace_by_twin(writer, target, twin, actor=actor, why=why)
    earlier = entries.one(writer.conn, scope, successor.id)
    if earlier is None:
        stored = writer.insert(successor, vector)
    else:
        stored = writer.revive(earlier, target.entry.status, vector, embedder)
    return writer.supersede(target, stored, fresh=True, leaves="corrected", actor=actor, why=why).entry


def undo(writer: Writer, scope: Scope, entry: str, *, actor: str) -> Entry:
    """Takes back the last replacement or deletion in an entry's chain; again for the one before.

    Returns:
        The restored entry; where its words were written anew meanwhile, the entry that has them.

    Raises:
        UnknownEntry: no such entry.
        BadInput: nothing to take back.
    """
    if entries.one(writer.conn, scope, entry) is None:
        raise unknown(entry)
    logged = events.last_undoable(writer.conn, scope, links.chain(writer.conn, scope, entry))
    if logged is None:
        raise BadInput(f"entry {entry} has no change to undo")
    return take_back(writer, scope, logged, actor=actor)


def take_back(writer: Writer, scope: Scope, logged: Logged, *, actor: str, why: str = "") -> Entry:
    """Takes back the change that replaced or removed an entry; `logged` is the line about that entry.

    Returns:
        The restored entry; where its words were written anew meanwhile, the entry that has them.

    Raises:
        UnknownEntry: it is gone for good.
    """
    old = entries.one(writer.conn, scope, logged.event.entry_id)
    if old is None:
        raise unknown(logged.event.entry_id)
    lines = _withdraw_successor(writer, scope, logged)
    restored = _restore(writer, old, logged.event.before or {})
    before, after = events.state_of(old.entry), events.state_of(restored.entry)
    lines.append(Change(restored.entry, "undo", before, after))
    writer.record(lines, actor=actor, why=why, undoes=logged.change)
    twin = writer.duplicate(restored.entry)
    if twin is not None:
        why = "the restored entry says what this one says"
        return writer.unite(twin, restored, actor=actor, why=why).entry
    return restored.entry


def _successor(target: Entry, text: str, *, embedder: str | None, actor: str) -> Entry:
    said = (text, target.speaker or "")
    return target.model_copy(
        update={
            **{name: borne_out(getattr(target, name), *said) for name in NAMES},
            "id": entry_id(target.scope, target.turns, target.granularity, text),
            "text": text,
            "embedder": embedder,
            "actor": actor,
            "prompt": None,
            "model": None,
            "recorded_at": None,
            "supersedes": (),
        }
    )


def _twin_revising(writer: Writer, successor: Entry, target: StoredEntry) -> StoredEntry | None:
    twin = writer.duplicate(successor)
    return None if twin is None or twin.entry.id == target.entry.id else twin


def _replace_by_twin(writer: Writer, old: StoredEntry, twin: StoredEntry, *, actor: str, why: str) -> Entry:
    taken = {"turns": united(twin.entry.turns, old.entry.turns)}
    return writer.supersede(
        old, twin, fresh=False, taken=taken, leaves="corrected", actor=actor, why=why
    ).entry


def _withdraw_successor(writer: Writer, scope: Scope, logged: Logged) -> list[Change]:
    """Takes down what the change put in the old entry's place, unless that stood on its own before."""
    lines: list[Change] = []
    for event in events.of_change(writer.conn, scope, logged.change):
        successor = entries.one(writer.conn, scope, event.entry_id)
        if successor is None or event.action not in ("update", "merge"):
            continue
        lone = tuple(one for one in successor.entry.supersedes if one != logged.event.entry_id)
        if event.action == "update":
            after = writer.dismiss(writer.change(successor, supersedes=lone), "withdrawn")
        else:
            after = writer.change(successor, **without(successor.entry, event), supersedes=lone)
        lines.append(
            Change(after.entry, "undo", events.state_of(successor.entry), events.state_of(after.entry))
        )
    return lines


def without(entry: Entry, merge: Event) -> dict[str, Any]:
    """The state of an entry without what a merge brought to it; what came since stays."""
    before, after = merge.before or {}, merge.after or {}
    kept: dict[str, Any] = {}
    for name in ("turns", "related_turns"):
        brought = set(after.get(name, ())) - set(before.get(name, ()))
        kept[name] = tuple(one for one in getattr(entry, name) if one not in brought)
    if "importance" in before and entry.importance == after.get("importance"):
        kept["importance"] = before["importance"]
    return kept


def _restore(writer: Writer, old: StoredEntry, before: dict[str, Any]) -> StoredEntry:
    scope, until = old.entry.scope, before.get("valid_until")
    staged = before.get("status") == "staged" and sessions.is_open(writer.conn, scope, str(scope.session))
    return writer.readmit(
        old,
        status="staged" if staged else "active",
        valid_until=datetime.fromisoformat(until) if until else None,
    )


_RECALLABLE = ("active", "staged")
_REMOVED = ("supersede", "delete", "expire")


def retract(writer: Writer, scope: Scope, writes: Iterable[tuple[str, str]], *, actor: str) -> list[str]:
    """Takes back the last write of `actor` to each entry, unless that was done or overtaken since.

    What it added is withdrawn, turns it united into an entry leave that again, and what it replaced or
    deleted holds again. Where another write rests on an added entry too, that entry stays, with its turns.
    The last write of all goes first: what was written upon another can be taken back only before it.

    Args:
        writes: Entry id and why. An id that is named twice stands for the last two writes.

    Returns:
        Ids of the entries that changed.
    """
    reasons: dict[str, list[str]] = {}
    for named, why in writes:
        reasons.setdefault(named, []).append(why)
    found = [
        (write, named, why)
        for named, whys in reasons.items()
        for write, why in zip(_last(writer, scope, named, actor), whys, strict=False)
        if not write.undone
    ]
    changed = [
        named
        for write, named, why in sorted(found, key=lambda one: -one[0].seq)
        if _retract(writer, scope, named, write.logged, actor=actor, why=why)
    ]
    return list(dict.fromkeys(changed))


def withdraw(writer: Writer, scope: Scope, probes: Iterable[Probe], why: str) -> list[str]:
    """Takes back what the repairs of these probes wrote, as far as it stands; see `retract`."""
    repairs = [one.repair for one in probes if one.repair is not None and one.repair.stands]
    return retract(writer, scope, [(str(one.entry), why) for one in repairs], actor=REPAIRER)


def _last(writer: Writer, scope: Scope, entry_id: str, actor: str) -> list[Write]:
    """What the actor wrote to an entry, the last first; nothing where the last was taken back already."""
    writes = events.writes_by(writer.conn, scope, entry_id, actor)
    return writes if writes and not writes[0].undone else []


def _retract(writer: Writer, scope: Scope, entry_id: str, logged: Logged, *, actor: str, why: str) -> bool:
    stored = entries.one(writer.conn, scope, entry_id)
    if stored is None:
        return False
    lines = events.of_change(writer.conn, scope, logged.change)
    removed = next((line for line in lines if line.action in _REMOVED), None)
    if removed is not None:
        if not _still_stands(writer, scope, removed, lines):
            return False
        take_back(writer, scope, Logged(logged.change, removed), actor=actor, why=why)
        return True
    if stored.entry.status not in _RECALLABLE:
        return False
    after = _without(writer, stored, logged.event)
    line = Change(after.entry, "undo", events.state_of(stored.entry), events.state_of(after.entry))
    writer.record([line], actor=actor, why=why, undoes=logged.change)
    return True


def _still_stands(writer: Writer, scope: Scope, removed: Event, lines: Iterable[Event]) -> bool:
    """Whether nothing came after the change that removed an entry."""
    put = [line.entry_id for line in lines if line.action in ("update", "merge")]
    found = entries.by_ids(writer.conn, scope, [removed.entry_id, *put])
    old = found.get(removed.entry_id)
    if old is None or old.entry.status in _RECALLABLE:
        return False
    return all(one in found and found[one].entry.status in _RECALLABLE for one in put)


def _without(writer: Writer, stored: StoredEntry, event: Event) -> StoredEntry:
    """The entry without what an `add` or a `merge` brought."""
    if event.action == "merge":
        return writer.change(stored, **without(stored.entry, event))
    brought = (event.after or {}).get("turns", ())
    others = tuple(turn for turn in stored.entry.turns if turn not in brought)
    if not others:
        return writer.dismiss(stored, "withdrawn")
    return writer.change(stored, turns=others, quote=None)
