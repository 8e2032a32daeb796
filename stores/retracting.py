"""Takes back what a role wrote, when it turned out to be of no use."""

from collections import Counter
from collections.abc import Iterable

from memcycle.core.edit import Event
from memcycle.core.scope import Scope
from memcycle.stores import revising
from memcycle.stores.ledger import entries, events
from memcycle.stores.ledger.entries import StoredEntry
from memcycle.stores.ledger.events import Change, Logged
from memcycle.stores.writer import Writer

_RECALLABLE = ("active", "staged")
_REMOVED = ("supersede", "delete", "expire")


def retract(writer: Writer, scope: Scope, ids: Iterable[str], *, actor: str, why: str) -> list[str]:
    """Takes back the last write of `actor` to each entry, unless that was done or overtaken since.

    What it added is withdrawn, turns it united into an entry leave that again, and what it replaced or
    deleted holds again. Where another write rests on an added entry too, that entry stays, with its turns.

    Args:
        ids: An id that is named twice stands for the last two writes.

    Returns:
        Ids of the entries that changed.
    """
    changed = []
    for entry_id, times in Counter(ids).items():
        writes = events.writes_by(writer.conn, scope, entry_id, actor)
        if writes and not writes[0][1]:
            last = [logged for logged, undone in writes[:times] if not undone]
            done = [_retract(writer, scope, entry_id, logged, actor=actor, why=why) for logged in last]
            changed += [entry_id] if any(done) else []
    return changed


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
