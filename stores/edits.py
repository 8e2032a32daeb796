"""Applies edits: a role's as far as the guards allow, a person's as they are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from memcycle.core.edit import Action, Applied, Edit, Rejected
from memcycle.core.entry import PERSON, Entry, departure, entry_id, is_older, same_text
from memcycle.core.errors import BadInput
from memcycle.core.language.forget_requests import holds, request_of
from memcycle.core.language.names import NAMES, borne_out
from memcycle.core.scope import Scope
from memcycle.stores import forgetting
from memcycle.stores.ledger import entries, events, items, meta, sessions, turns
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.ledger.entries import RECALLABLE, StoredEntry
from memcycle.stores.writer import Writer, known, united

if TYPE_CHECKING:
    from memcycle.stores.indexes import Vectors


class Prepared(NamedTuple):
    """An edit with the vector of its text, or why there is none."""

    edit: Edit
    vector: Vector | None = None
    failure: str | None = None


def prepare(vectors: "Vectors", edits: Sequence[Edit]) -> list[Prepared]:
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
        erases = edit.asked_in is not None
        applied.deleted.append(_erase(writer, scope, edit) if erases else _delete(writer, scope, edit))
        return
    entry = _owned(scope, edit)
    _check_turns(writer, scope, edit, entry)
    if edit.op == "MERGE":
        _merge(writer, _target(writer, scope, edit), entry, edit, applied)
        return
    if not entry.text.strip():
        raise _Refused("the text is empty")
    if meta.is_forgotten(writer.conn, entry.scope, "text", entry.text):
        raise _Refused("this was forgotten at the user's request and is not stored again")
    entry = entry.model_copy(
        update={
            "status": "staged" if sessions.is_open(writer.conn, entry.scope) else "active",
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
    writer.record([events.line("add", None, stored.entry)], actor=edit.actor, why=edit.reason)
    applied.added.append(stored.entry.id)
    later = entries.one(writer.conn, entry.scope, edit.target) if edit.target else None
    if later is not None and is_older(entry, later.entry):
        _precede(writer, stored, later, edit)


def _precede(writer: Writer, stored: StoredEntry, later: StoredEntry, edit: Edit) -> None:
    """Closes older evidence where the later begins: of the chain of that, the first after it."""
    earlier = entries.by_ids(writer.conn, later.entry.scope, later.entry.supersedes).values()
    after = [one for one in (later, *earlier) if is_older(stored.entry, one.entry)]
    first = min(after, key=lambda one: one.entry.valid_from or writer.now)
    why = edit.reason or "older evidence: it held before"
    writer.supersede(stored, first, fresh=False, actor=edit.actor, why=why)


def _twin(writer: Writer, entry: Entry, existing: StoredEntry | None) -> StoredEntry | None:
    """The recallable entry that says it already: the same one, written before, or another."""
    if existing is None or departure(existing.entry) == "withdrawn":
        return writer.duplicate(entry)
    # A repeated write of the same evidence: never brings back what was replaced or forgotten since.
    _check_recallable(existing)
    return existing


def _put(writer: Writer, entry: Entry, existing: StoredEntry | None, item: Prepared) -> StoredEntry:
    """Inserts the entry, or makes the one that was withdrawn valid again."""
    if item.failure is not None:
        raise _Refused(item.failure)
    if existing is None:
        return writer.insert(entry, item.vector)
    return writer.revive(existing, entry.status, item.vector, entry.embedder)


def _update(writer: Writer, entry: Entry, item: Prepared, applied: Applied) -> None:
    edit, scope = item.edit, entry.scope
    existing = entries.one(writer.conn, scope, entry.id)
    if not _is_replay(writer, scope, edit, existing):
        target = _target(writer, scope, edit)
        _check_successor(target.entry, entry)
        if is_older(entry, target.entry):
            _add(writer, entry, item, applied)
            return
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
    if existing is None or target is None or existing.entry.status not in RECALLABLE:
        return False
    return target.entry.superseded_by == existing.entry.id


def _check_successor(target: Entry, entry: Entry) -> None:
    if entry.granularity != target.granularity:
        raise _Refused(f"a {entry.granularity} cannot replace a {target.granularity} ({target.id})")
    if same_text(entry.text) == same_text(target.text):
        raise _Refused(f"it says the same as entry {target.id}: nothing to change")


def _delete(writer: Writer, scope: Scope, edit: Edit) -> str:
    if not (edit.quote and edit.quote.strip()) and not edit.retention:
        raise _Refused("deleting needs the user's own words or a passed retention limit")
    target = _target(writer, scope, edit)
    action: Action = "expire" if edit.retention else "delete"
    after = writer.dismiss(target, "expired" if edit.retention else None)
    writer.record([events.line(action, target.entry, after.entry)], actor=edit.actor, why=edit.reason)
    return target.entry.id


def _erase(writer: Writer, scope: Scope, edit: Edit) -> str:
    """Erases what a person asked to forget and the turn in which they did; done before, it is done."""
    target, asked_in = str(edit.target), str(edit.asked_in)
    if entries.one(writer.conn, scope, target) is None and turns.by_ids(writer.conn, scope, [asked_in]):
        raise _Refused(f"no entry {target} in this memory")
    request = request_of(edit.quote or "")
    words = request.words if request is not None else frozenset[str]()
    doomed = forgetting.asked_away(writer.conn, scope, [target, *edit.also], words)
    own = entries.by_turns(writer.conn, scope, [asked_in], "raw")
    forgetting.forget(writer, scope, list({one.entry.id: one for one in (*doomed, *own)}.values()))
    if request is not None:
        items.erase_of(writer.conn, scope.user, lambda text: holds(request, text, None))
    return target


def revise(
    writer: Writer, scope: Scope, target_id: str, text: str, *, vector: Vector | None, embedder: str, why: str
) -> Entry:
    """Replaces an entry by one with another text that keeps everything else; the same text changes nothing.

    A text the entry had before brings that earlier entry back; a text that another entry has makes that one
    the successor.

    Raises:
        UnknownEntry: no such entry, or a forgotten one.
        BadInput: blank text, or an entry that was replaced already.
    """
    target = known(writer.conn, scope, target_id, but="forgotten")
    if target.entry.status == "superseded":
        raise BadInput(f"entry {target_id} was replaced by {target.entry.superseded_by}; edit that one")
    if not text.strip():
        raise BadInput("the new text is empty; use forget to remove an entry")
    if text == target.entry.text:
        return target.entry
    embedder_id = None if vector is None else embedder
    successor = _successor(target.entry, text, embedder_id)
    twin = writer.duplicate(successor)
    if twin is not None and twin.entry.id != target.entry.id:
        taken = {"turns": united(twin.entry.turns, target.entry.turns)}
        return writer.supersede(
            target, twin, fresh=False, taken=taken, leaves="corrected", actor=PERSON, why=why
        ).entry
    earlier = entries.one(writer.conn, scope, successor.id)
    if earlier is None:
        stored = writer.insert(successor, vector)
    else:
        stored = writer.revive(earlier, target.entry.status, vector, embedder_id)
    return writer.supersede(target, stored, fresh=True, leaves="corrected", actor=PERSON, why=why).entry


def _successor(target: Entry, text: str, embedder: str | None) -> Entry:
    said = (text, target.speaker or "")
    return target.model_copy(
        update={
            **{name: borne_out(getattr(target, name), *said) for name in NAMES},
            "id": entry_id(target.scope, target.turns, target.granularity, text),
            "text": text,
            "embedder": embedder,
            "actor": PERSON,
            "prompt": None,
            "model": None,
            "recorded_at": None,
            "supersedes": (),
        }
    )
