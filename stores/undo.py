"""Takes back what was written: a person's `undo`, and what a repair wrote that turned out to be of no use."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from memcycle.core.edit import Event
from memcycle.core.entry import PERSON, Entry
from memcycle.core.errors import BadInput
from memcycle.core.probe import REPAIRER, Probe
from memcycle.core.scope import Scope
from memcycle.stores.ledger import entries, events, links, sessions
from memcycle.stores.ledger.entries import RECALLABLE, StoredEntry
from memcycle.stores.ledger.events import Logged
from memcycle.stores.writer import Writer, known

_REMOVED = ("supersede", "delete", "expire")


def undo(writer: Writer, scope: Scope, entry_id: str) -> Entry:
    """Takes back the last replacement or deletion in an entry's chain; again for the one before.

    Returns:
        The restored entry; where its words were written anew meanwhile, the entry that has them.

    Raises:
        UnknownEntry: no such entry.
        BadInput: nothing to take back.
    """
    known(writer.conn, scope, entry_id)
    logged = events.last_undoable(writer.conn, scope, links.chain(writer.conn, scope, entry_id))
    if logged is None:
        raise BadInput(f"entry {entry_id} has no change to undo")
    return _restore(writer, scope, logged, actor=PERSON)


def retract(writer: Writer, scope: Scope, writes: Iterable[tuple[str, str]]) -> list[str]:
    """Takes back the last write of a repair to each entry, unless that was done or overtaken since.

    What it added is withdrawn, turns it united into an entry leave that again, and what it replaced or
    deleted holds again. Where another write rests on an added entry too, that entry stays, with its turns.
    The last write of all goes first: what was written upon another can be taken back only before it.

    Args:
        writes: Entry id and why. An id that is named twice stands for the last two writes.

    Returns:
        Ids of the entries that changed.
    """
    reasons: dict[str, list[str]] = {}
    for entry_id, why in writes:
        reasons.setdefault(entry_id, []).append(why)
    found: list[tuple[Logged, str]] = []
    for entry_id, whys in reasons.items():
        last = events.writes_by(writer.conn, scope, entry_id, REPAIRER)
        if last and not last[0].undone:
            found += [(write, why) for write, why in zip(last, whys, strict=False) if not write.undone]
    found.sort(key=lambda one: -one[0].seq)
    changed = [write.event.entry_id for write, why in found if _retract(writer, scope, write, why)]
    return list(dict.fromkeys(changed))


def retract_repairs(writer: Writer, scope: Scope, probes: Iterable[Probe], why: str) -> None:
    """Takes back what the repairs of these probes wrote, as far as it stands; see `retract`."""
    repairs = [one.repair for one in probes if one.repair is not None and one.repair.stands]
    retract(writer, scope, [(str(one.entry), why) for one in repairs])


def _retract(writer: Writer, scope: Scope, logged: Logged, why: str) -> bool:
    stored = entries.one(writer.conn, scope, logged.event.entry_id)
    if stored is None:
        return False
    lines = events.of_change(writer.conn, scope, logged.change)
    removed = next((line for line in lines if line.action in _REMOVED), None)
    if removed is not None:
        if not _still_stands(writer, scope, removed, lines):
            return False
        _restore(writer, scope, logged._replace(event=removed), actor=REPAIRER, why=why)
        return True
    if stored.entry.status not in RECALLABLE:
        return False
    after = _without_write(writer, stored, logged.event)
    undone = [events.line("undo", stored.entry, after.entry)]
    writer.record(undone, actor=REPAIRER, why=why, undoes=logged.change)
    return True


def _still_stands(writer: Writer, scope: Scope, removed: Event, lines: Iterable[Event]) -> bool:
    """Whether nothing came after the change that removed an entry."""
    put = [line.entry_id for line in lines if line.action in ("update", "merge")]
    found = entries.by_ids(writer.conn, scope, [removed.entry_id, *put])
    old = found.get(removed.entry_id)
    if old is None or old.entry.status in RECALLABLE:
        return False
    return all(one in found and found[one].entry.status in RECALLABLE for one in put)


def _without_write(writer: Writer, stored: StoredEntry, event: Event) -> StoredEntry:
    """The entry without what an `add` or a `merge` brought."""
    if event.action == "merge":
        return writer.change(stored, **_without_merge(stored.entry, event))
    brought = (event.after or {}).get("turns", ())
    others = tuple(turn for turn in stored.entry.turns if turn not in brought)
    if not others:
        return writer.dismiss(stored, "withdrawn")
    return writer.change(stored, turns=others, quote=None)


def _without_merge(entry: Entry, merge: Event) -> dict[str, Any]:
    """The state of an entry without what a merge brought to it; what came since stays."""
    before, after = merge.before or {}, merge.after or {}
    state: dict[str, Any] = {}
    for name in ("turns", "related_turns"):
        brought = set(after.get(name, ())) - set(before.get(name, ()))
        state[name] = tuple(one for one in getattr(entry, name) if one not in brought)
    if "importance" in before and entry.importance == after.get("importance"):
        state["importance"] = before["importance"]
    return state


def _restore(writer: Writer, scope: Scope, logged: Logged, *, actor: str, why: str = "") -> Entry:
    """Takes back the change that replaced or removed an entry, as `undo`; `logged` is the line about that."""
    old = known(writer.conn, scope, logged.event.entry_id)
    lines = []
    for event in events.of_change(writer.conn, scope, logged.change):
        successor = entries.one(writer.conn, scope, event.entry_id)
        if successor is None or event.action not in ("update", "merge"):
            continue
        earlier = tuple(one for one in successor.entry.supersedes if one != logged.event.entry_id)
        if event.action == "update":
            after = writer.dismiss(writer.change(successor, supersedes=earlier), "withdrawn")
        else:
            # It stood on its own before.
            after = writer.change(successor, **_without_merge(successor.entry, event), supersedes=earlier)
        lines.append(events.line("undo", successor.entry, after.entry))
    before = logged.event.before or {}
    until = before.get("valid_until")
    staged = before.get("status") == "staged" and sessions.is_open(writer.conn, old.entry.scope)
    restored = writer.readmit(
        old,
        status="staged" if staged else "active",
        valid_until=datetime.fromisoformat(until) if until else None,
    )
    lines.append(events.line("undo", old.entry, restored.entry))
    writer.record(lines, actor=actor, why=why, undoes=logged.change)
    twin = writer.duplicate(restored.entry)
    if twin is None:
        return restored.entry
    why = "the restored entry says what this one says"
    return writer.unite(twin, restored, actor=actor, why=why).entry
