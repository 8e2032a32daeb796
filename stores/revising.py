"""What a person changes by hand: another wording, and taking the last change back."""

from datetime import datetime
from typing import Any

from memcycle.core.edit import Event
from memcycle.core.entry import Entry, entry_id
from memcycle.core.errors import BadInput, UnknownEntry
from memcycle.core.language.labels import NAMES, borne_out
from memcycle.core.scope import Scope
from memcycle.stores.ledger import entries, events, links, sessions
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.ledger.entries import StoredEntry
from memcycle.stores.ledger.events import Change, Logged
from memcycle.stores.writer import Writer, united


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
    twin = _twin(writer, successor, target)
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


def _twin(writer: Writer, successor: Entry, target: StoredEntry) -> StoredEntry | None:
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
