"""Table `entries`, read without vectors, all that is found in one row: what recall reads.

SQLite lets go of the interpreter for every row. Where other threads wait for it, as in a process that serves
many users, to get it back costs more than the row does.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from memcycle.core.entry import STATUSES, Entry, Granularity, Status
from memcycle.core.per_text import per_text
from memcycle.core.scope import Scope
from memcycle.stores.ledger.columns import LISTS, PLAIN, TIMES, json_list, to_entry
from memcycle.stores.ledger.entries import OF_IDS, OF_ROWS, OF_TURNS

PARSED = 2_048
"""Entries kept as they were parsed, about 3 KB each."""

_NAMES = ("row", "position", "user", "workspace", "session", "zone", *PLAIN, *LISTS, *TIMES)
# As JSON, a number would be rounded to 15 digits.
_REAL = ("importance", "confidence", "reinforcement")
_VALUES = ", ".join(f"format('%!.17g', {name})" if name in _REAL else name for name in _NAMES)
# No line break stands in JSON but as an escape.
_ALL = f"SELECT group_concat(json_array({_VALUES}), char(10)) FROM entries WHERE "  # noqa: S608 - names of ours


class _Plain(NamedTuple):
    row: int
    position: int
    entry: Entry
    metadata: str


def by_ids(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> dict[str, Entry]:
    """Entries by id, of any status; ids unknown in this base scope are left out."""
    return {one.entry.id: one.entry for one in _read(conn, OF_IDS, json_list(ids), scope.key)}


def by_rows(conn: sqlite3.Connection, rows: Iterable[int]) -> dict[int, Entry]:
    """Entries by integer key. Unknown keys are left out; the caller has made sure of the scope."""
    return {one.row: one.entry for one in _read(conn, OF_ROWS, json_list(map(int, rows)))}


def by_turns(
    conn: sqlite3.Connection,
    scope: Scope,
    turns: Iterable[str],
    granularity: Granularity | None = None,
    statuses: Sequence[Status] = STATUSES,
) -> list[Entry]:
    """Entries of these statuses that rest on any of the turns; in conversation order."""
    found = _read(conn, OF_TURNS, scope.key, json_list(turns), granularity, json_list(statuses))
    return [one.entry for one in sorted(found, key=_place)]


def _place(one: _Plain) -> tuple[str, int, str, str]:
    return one.entry.scope.session or "", one.position, one.entry.granularity, one.entry.id


def _read(conn: sqlite3.Connection, where: str, *parameters: Any) -> list[_Plain]:
    (found,) = conn.execute(_ALL + where, parameters).fetchone()
    return [_own(_parsed(one)) for one in found.split("\n")] if found else []


@per_text(PARSED)
def _parsed(text: str) -> _Plain:
    """The nodes of a run read the same entries one after another, and parsing is most of a read.

    The key is all that is told of an entry, so that nothing here can be out of date.
    """
    held = dict(zip(_NAMES, json.loads(text), strict=True))
    return _Plain(held["row"], held["position"], to_entry(held), held["metadata"])


def _own(one: _Plain) -> _Plain:
    """Metadata are all of an entry that its reader could change; reading them again is the fastest copy."""
    if not one.entry.metadata:
        return one
    own = one.entry.model_copy(update={"metadata": json.loads(one.metadata)})
    return one._replace(entry=own)
