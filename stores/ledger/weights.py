"""What weighs entries: their reinforcement, the names that questions named (table `mentions`), when each was
last heard of."""

import itertools
import json
import sqlite3
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from memcycle.core.entry import MOST, Granularity, Kind, reinforced
from memcycle.core.scope import Scope
from memcycle.stores.ledger.entries import SEEN


class Weighed(NamedTuple):
    """A recallable entry as retention sees it.

    Attributes:
        heard: When it was last said: the time of its latest source turn, else when it was observed, else when
            it was recorded.
        turn: The time of its latest source turn; None where none is stored, as after some imports.
    """

    id: str
    granularity: Granularity
    kind: Kind
    importance: float
    reinforcement: float
    heard: datetime | None
    turn: datetime | None = None


def mention(conn: sqlite3.Connection, scope: Scope, names: Iterable[str]) -> None:
    """Counts names, casefolded; each once a call."""
    folded = sorted({name.strip().casefold() for name in names} - {""})
    conn.executemany(
        "INSERT INTO mentions (scope_key, name, times) VALUES (?, ?, 1)"
        " ON CONFLICT (scope_key, name) DO UPDATE SET times = times + 1",
        [(scope.key, name) for name in folded],
    )


def clear_mentions(conn: sqlite3.Connection, scope: Scope) -> None:
    """Removes the names of a base scope."""
    conn.execute("DELETE FROM mentions WHERE scope_key = ?", (scope.key,))


_WEIGHED = f"""
SELECT id, granularity, kind, importance, reinforcement, coalesce(observed_at, recorded_at) AS kept,
    (SELECT max(t.time) FROM sources s JOIN turns t ON t.scope_key = s.scope_key AND t.id = s.turn
     WHERE s.row = e.row) AS turn
FROM entries e WHERE scope_key = :scope AND {SEEN} ORDER BY row
"""  # noqa: S608 - a constant of ours


def weighed(conn: sqlite3.Connection, scope: Scope, wall: str | None) -> list[Weighed]:
    """What of the base scope may be found from inside a wall."""
    found = conn.execute(_WEIGHED, {"scope": scope.key, "wall": wall})
    return [
        Weighed(name, granularity, kind, importance, reinforcement, _time(turn or kept), _time(turn))
        for name, granularity, kind, importance, reinforcement, kept, turn in found
    ]


def raised(conn: sqlite3.Connection, scope: Scope) -> dict[str, tuple[int, float]]:
    """Active entries that questions named since the last `clear_mentions`: by id the integer key and the new
    reinforcement."""
    counted = conn.execute("SELECT name, times FROM mentions WHERE scope_key = ?", (scope.key,)).fetchall()
    if not counted:
        return {}
    waiting, rises = dict(counted), dict[str, tuple[int, float]]()
    found = conn.execute(
        "SELECT row, id, reinforcement, persons, entities FROM entries WHERE scope_key = ?"
        " AND status = 'active' AND reinforcement < ? AND (persons <> '[]' OR entities <> '[]') ORDER BY row",
        (scope.key, MOST),
    )
    for row, entry, before, *names in found:
        held = {name.casefold() for name in itertools.chain(*map(json.loads, names))}
        times = sum(waiting[name] for name in held & waiting.keys())
        if times:
            rises[entry] = row, reinforced(before, times)
    return rises


def reinforce(conn: sqlite3.Connection, values: Mapping[int, float]) -> None:
    """Sets the reinforcement of entries by integer key.

    Neither the lexical view nor the vector index knows it, so neither has to follow.
    """
    conn.executemany(
        "UPDATE entries SET reinforcement = ? WHERE row = ?", [(value, row) for row, value in values.items()]
    )


def _time(stored: str | None) -> datetime | None:
    return datetime.fromisoformat(stored) if stored else None
