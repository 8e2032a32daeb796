"""Table `events`: the append-only log of what was done to entries, by whom and why.

Events of one change (a successor and its predecessor, say) share a `change` id: it can be undone whole.

Beside it `changes` and `changed`: a number for each base scope that grows with every change to its entries,
and which entries were changed last. Whoever holds a copy of a scope's entries, in whatever process, sees
whether the copy is good, or which entries to read anew. What a search never reads does not count.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from memcycle.core.edit import Action, Event
from memcycle.core.entry import Entry
from memcycle.core.language.tokens import content_stems
from memcycle.core.scope import Scope
from memcycle.core.world import World
from memcycle.stores.ledger.columns import IN, json_list, to_json, to_time
from memcycle.stores.ledger.schema import CHANGES_KEPT

STATE = {
    "id", "text", "title", "status", "turns", "related_turns", "importance", "supersedes", "superseded_by",
    "valid_until", "event_time",
}  # fmt: skip
"""Fields that the log keeps of an entry: text and what can change."""

_INSERT = (
    "INSERT INTO events (id, change, undoes, at, scope_key, entry, action, actor, before, after, why)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


_ABOUT = f"WHERE scope_key = ? AND entry {IN} ORDER BY seq"
_UNDONE = "(SELECT undoes FROM events WHERE scope_key = :scope AND undoes IS NOT NULL)"


class Change(NamedTuple):
    """One line of the log in the making."""

    entry: Entry
    action: Action
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Logged(NamedTuple):
    """A line of the log.

    Attributes:
        seq: Of two lines the later one's is higher.
        change: Id of the change it belongs to.
        undone: Whether that change was taken back.
    """

    seq: int
    change: str
    event: Event
    undone: bool = False


class Numbered(NamedTuple):
    """A line of the log without ids that mean something in this ledger alone.

    Attributes:
        n: Of two lines the later one's is higher.
        change: The `n` of the first line of its change. undoes: the same of the change that it takes back.
    """

    n: int
    change: int
    undoes: int | None
    event: Event


def state_of(entry: Entry) -> dict[str, Any]:
    """What the log keeps of an entry, as plain JSON data."""
    return entry.model_dump(mode="json", include=STATE)


def line(action: Action, before: Entry | None, after: Entry) -> Change:
    """The line about an entry that was `before` and is `after` now; None where it was not there."""
    return Change(after, action, None if before is None else state_of(before), state_of(after))


def record(
    conn: sqlite3.Connection,
    world: World,
    changes: Sequence[Change],
    *,
    actor: str,
    why: str = "",
    undoes: str | None = None,
) -> None:
    """Writes the lines of one change. `undoes` is the id of the change it takes back."""
    change, at = world.new_id(), to_time(world.now())
    conn.executemany(
        _INSERT,
        [
            (
                world.new_id(), change, undoes, at, entry.scope.key, entry.id, action, actor, _json(before),
                _json(after), why,
            )
            for entry, action, before, after in changes
        ],
    )  # fmt: skip


def restore(conn: sqlite3.Connection, world: World, scope: Scope, lines: Iterable[Numbered]) -> None:
    """Writes lines of another ledger, in their order, as they were told there."""
    changes: defaultdict[int | None, str | None] = defaultdict(world.new_id, {None: None})
    conn.executemany(
        _INSERT,
        [
            (
                world.new_id(), changes[change], changes[undoes], to_time(event.at), scope.key,
                event.entry_id, event.action, event.actor, _json(event.before), _json(event.after), event.why,
            )
            for _, change, undoes, event in sorted(lines, key=lambda line: line.n)
        ],
    )  # fmt: skip


def numbered(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> dict[str, list[Numbered]]:
    """The lines about each of the entries, oldest first, as `restore` takes them."""
    first = "(SELECT min(seq) FROM events o WHERE o.scope_key = e.scope_key AND o.change = e.{})"
    found = conn.execute(
        f"SELECT *, {first.format('change')} AS of, {first.format('undoes')} AS back FROM events e {_ABOUT}",  # noqa: S608 - constants
        (scope.key, json_list(ids)),
    )
    lines: dict[str, list[Numbered]] = {}
    for row in found:
        line = Numbered(row["seq"], row["of"], row["back"], _event(row))
        lines.setdefault(row["entry"], []).append(line)
    return lines


def of_entries(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> list[Event]:
    """The lines about any of the entries, oldest first."""
    return list(map(_event, conn.execute(f"SELECT * FROM events {_ABOUT}", (scope.key, json_list(ids)))))  # noqa: S608


def last_undoable(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> Logged | None:
    """The last replacement or deletion of any of the entries that was not taken back yet."""
    row = conn.execute(
        f"SELECT * FROM events WHERE scope_key = :scope AND change NOT IN {_UNDONE}"  # noqa: S608 - a constant
        " AND entry IN (SELECT value FROM json_each(:ids)) AND action IN ('supersede', 'delete', 'expire')"
        " ORDER BY seq DESC LIMIT 1",
        {"scope": scope.key, "ids": json_list(ids)},
    ).fetchone()
    return Logged(row["seq"], row["change"], _event(row)) if row else None


def writes_by(conn: sqlite3.Connection, scope: Scope, entry: str, actor: str) -> list[Logged]:
    """What an actor wrote to an entry, the last first.

    That it was replaced or deleted counts only where the actor wrote nothing else to it.
    """
    found = conn.execute(
        f"SELECT *, change IN {_UNDONE} AS undone FROM events"  # noqa: S608 - a constant of ours
        " WHERE scope_key = :scope AND entry = :entry AND actor = :actor"
        " AND action IN ('add', 'update', 'merge', 'supersede', 'delete', 'expire') ORDER BY seq DESC",
        {"scope": scope.key, "entry": entry, "actor": actor},
    ).fetchall()
    put = [row for row in found if row["action"] in ("add", "update", "merge")]
    return [Logged(row["seq"], row["change"], _event(row), bool(row["undone"])) for row in put or found]


def undone(conn: sqlite3.Connection, scope: Scope) -> dict[str, dict[str, str]]:
    """Replacements and expiries that were taken back: by change, the action by entry."""
    found = conn.execute(
        f"SELECT change, entry, action FROM events WHERE scope_key = :scope AND change IN {_UNDONE}"  # noqa: S608
        " AND action IN ('supersede', 'merge', 'update', 'expire')",
        {"scope": scope.key},
    )
    changes: dict[str, dict[str, str]] = {}
    for change, entry, action in found:
        changes.setdefault(change, {})[entry] = action
    return changes


def of_change(conn: sqlite3.Connection, scope: Scope, change: str) -> list[Event]:
    """The lines of one change."""
    found = conn.execute(
        "SELECT * FROM events WHERE scope_key = ? AND change = ? ORDER BY seq", (scope.key, change)
    )
    return list(map(_event, found))


def erase(conn: sqlite3.Connection, scope: Scope, ids: Collection[str]) -> None:
    """Removes the lines about entries, and what other lines of the same changes say of them."""
    keys = {"scope": scope.key, "ids": json_list(ids)}
    conn.execute(
        "UPDATE events SET why = '' WHERE scope_key = :scope AND change IN (SELECT change FROM events"
        " WHERE scope_key = :scope AND entry IN (SELECT value FROM json_each(:ids)))",
        keys,
    )
    conn.execute(
        "UPDATE events SET before = NULL WHERE scope_key = :scope"
        " AND json_extract(before, '$.id') IN (SELECT value FROM json_each(:ids))",
        keys,
    )
    remove(conn, scope, ids)


def remove(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> None:
    """Removes the lines about entries, and leaves what other lines say of them."""
    conn.execute(f"DELETE FROM events WHERE scope_key = ? AND entry {IN}", (scope.key, json_list(ids)))  # noqa: S608


def blank_reasons(conn: sqlite3.Connection, scope: Scope, stems: Collection[str]) -> None:
    """Empties what roles gave as reasons, where they share a content stem with what was forgotten.

    What a person says is theirs to keep.
    """
    of_roles = "scope_key = :scope AND why <> '' AND actor <> 'user'"
    found = conn.execute(f"SELECT DISTINCT why FROM events WHERE {of_roles}", {"scope": scope.key})  # noqa: S608
    doomed = [row["why"] for row in found if not set(stems).isdisjoint(content_stems(row["why"]))]
    conn.execute(
        f"UPDATE events SET why = '' WHERE {of_roles} AND why IN (SELECT value FROM json_each(:doomed))",  # noqa: S608
        {"scope": scope.key, "doomed": json_list(doomed)},
    )


def last_change(conn: sqlite3.Connection, scope: Scope) -> int | None:
    """The number of the base scope's last change; None where nothing was ever written, or all erased."""
    found = conn.execute("SELECT n FROM changes WHERE scope_key = ?", (scope.key,)).fetchone()
    return found and int(found[0])


def changed_since(conn: sqlite3.Connection, scope: Scope, change: int) -> list[int] | None:
    """Integer keys of the base scope's entries that are new or other since its change of that number.

    None where that cannot be told: too much was changed since, or something was deleted.
    """
    told = conn.execute(
        "SELECT 1 FROM changes WHERE scope_key = ? AND since <= ?"
        " AND coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changed'), 0) <= ?",
        (scope.key, change, change + CHANGES_KEPT),
    ).fetchone()
    if told is None:
        return None
    found = conn.execute(
        "SELECT DISTINCT row FROM changed WHERE n > ? AND scope_key = ?", (change, scope.key)
    )
    return [int(row[0]) for row in found]


def _event(row: sqlite3.Row) -> Event:
    told = {name: row[name] for name in ("id", "action", "actor", "why")}
    states = {name: row[name] and json.loads(row[name]) for name in ("before", "after")}
    return Event(at=datetime.fromisoformat(row["at"]), entry_id=row["entry"], **told, **states)


def _json(state: dict[str, Any] | None) -> str | None:
    return None if state is None else to_json(state)
