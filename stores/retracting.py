"""Takes back what a role wrote, when it turned out to be of no use."""

from collections.abc import Iterable

from memcycle.core.edit import Event
from memcycle.core.probe import REPAIRER, Probe
from memcycle.core.scope import Scope
from memcycle.stores import revising
from memcycle.stores.ledger import entries, events
from memcycle.stores.ledger.entries import StoredEntry
from memcycle.stores.ledger.events import Change, Logged, Write
from memcycle.stores.writer import Writer

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
    for entry_id, why in writes:
        reasons.setdefault(entry_id, []).append(why)
    found = [
        (write, entry_id, why)
        for entry_id, whys in reasons.items()
        for write, why in zip(_last(writer, scope, entry_id, actor), whys, strict=False)
        if not write.undone
    ]
    changed = [
        entry_id
        for write, entry_id, why in sorted(found, key=lambda one: -one[0].seq)
        if _retract(writer, scope, entry_id, write.logged, actor=actor, why=why)
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
        revising.take_back(writer, scope, Logged(logged.change, removed), actor=actor, why=why)
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
        return writer.change(stored, **revising.without(stored.entry, event))
    brought = (event.after or {}).get("turns", ())
    others = tuple(turn for turn in stored.entry.turns if turn not in brought)
    if not others:
        return writer.dismiss(stored, "withdrawn")
    return writer.change(stored, turns=others, quote=None)
