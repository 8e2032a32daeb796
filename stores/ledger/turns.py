"""Table `turns`: what was said, as it was said, each turn once, and how far its reading has come."""

import sqlite3
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from memcycle.core.language.tokens import per_text
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.stores.ledger.columns import digest, in_zone, json_list, to_time, zone_of

TurnState = Literal["staged", "unextracted", "extracted", "processed"]


def identity_of(turn: Turn) -> str:
    """What makes two messages the same one: their source's id, else place, speaker and words.

    A source's id counts within its session, since many sources number each session from one. Hashed, so that
    a tombstone can keep it.
    """
    if turn.message_id is not None:
        return digest("message", turn.session, turn.message_id)
    return digest("said", turn.session, turn.position, turn.speaker, turn.text)


def _turn(row: sqlite3.Row) -> Turn:
    return _parsed(tuple(row[name] for name in _COLUMNS))


_COLUMNS = ("id", "session", "position", "speaker", "role", "text", "time", "zone", "message_id")
_TEXT = _COLUMNS.index("text")


@per_text(2048, lambda values: len(values[_TEXT]))
def _parsed(values: tuple[Any, ...]) -> Turn:
    """Cached, since each node of a run reads the last turns anew."""
    held = dict(zip(_COLUMNS, values, strict=True))
    held["time"] = in_zone(held["time"], held.pop("zone"))
    return Turn.model_validate(held)


def insert(
    conn: sqlite3.Connection, scope: Scope, turn: Turn, identity: str, state: TurnState = "staged"
) -> None:
    """Adds a turn; its id, its place and its identity must be free."""
    conn.execute(
        "INSERT INTO turns (scope_key, session, position, id, identity, speaker, role, text, time,"
        " zone, message_id, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            scope.key, turn.session, turn.position, turn.id, identity, turn.speaker, turn.role, turn.text,
            to_time(turn.time), zone_of(turn.time), turn.message_id, state,
        ),
    )  # fmt: skip


def reword(conn: sqlite3.Connection, scope: Scope, turn: Turn, identity: str) -> None:
    """Gives the turn with this id what it says now, under an identity that is free or its own."""
    conn.execute(
        "UPDATE turns SET identity = ?, speaker = ?, role = ?, text = ?, time = ?, zone = ?"
        " WHERE scope_key = ? AND id = ?",
        (
            identity, turn.speaker, turn.role, turn.text, to_time(turn.time), zone_of(turn.time),
            scope.key, turn.id,
        ),
    )  # fmt: skip


def at_place(conn: sqlite3.Connection, scope: Scope, turn: Turn) -> Turn | None:
    """The stored turn without a source's id at this one's place, by the same speaker at the same time."""
    row = conn.execute(
        "SELECT * FROM turns WHERE scope_key = ? AND session = ? AND position = ? AND speaker = ?"
        " AND time = ? AND message_id IS NULL",
        (scope.key, turn.session, turn.position, turn.speaker, to_time(turn.time)),
    ).fetchone()
    return _turn(row) if row else None


def known(conn: sqlite3.Connection, scope: Scope, turn: Turn) -> Turn | None:
    """The stored turn that is this very message, whatever place it got.

    A turn stored on another place than it asked for comes back under its new place when a caller hands in
    what it was given, hence the second look by place and words.
    """
    row = conn.execute(
        "SELECT * FROM turns WHERE scope_key = ? AND identity = ?", (scope.key, identity_of(turn))
    ).fetchone()
    if row is None:
        row = conn.execute(
            "SELECT * FROM turns WHERE scope_key = ? AND session = ? AND position = ? AND speaker = ?"
            " AND text = ? AND message_id IS ?",
            (scope.key, turn.session, turn.position, turn.speaker, turn.text, turn.message_id),
        ).fetchone()
    return _turn(row) if row else None


def place_free(conn: sqlite3.Connection, scope: Scope, session: str, position: int) -> bool:
    """Whether no turn stands at this position of the session."""
    found = conn.execute(
        "SELECT 1 FROM turns WHERE scope_key = ? AND session = ? AND position = ?",
        (scope.key, session, position),
    )
    return found.fetchone() is None


def id_free(conn: sqlite3.Connection, scope: Scope, turn: str) -> bool:
    """Whether no turn of the base scope has this id."""
    found = conn.execute("SELECT 1 FROM turns WHERE scope_key = ? AND id = ?", (scope.key, turn))
    return found.fetchone() is None


def by_ids(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> dict[str, Turn]:
    """Turns of the base scope by id; unknown ids are left out."""
    found = conn.execute(
        "SELECT * FROM turns WHERE scope_key = ? AND id IN (SELECT value FROM json_each(?))",
        (scope.key, json_list(ids)),
    )
    return {row["id"]: _turn(row) for row in found}


def of_session(
    conn: sqlite3.Connection,
    scope: Scope,
    session: str,
    *,
    last: int | None = None,
    before: int | None = None,
    after: int = 0,
) -> list[Turn]:
    """Turns of a session in order: the `last` of those between `after` and `before` (both exclusive)."""
    found = conn.execute(
        "SELECT * FROM turns WHERE scope_key = ? AND session = ? AND position > ?"
        " AND (? IS NULL OR position < ?) ORDER BY position DESC LIMIT ?",
        (scope.key, session, after, before, before, -1 if last is None else last),
    )
    return [_turn(row) for row in found][::-1]


class Said(NamedTuple):
    """Who said what, of a turn that another one follows."""

    speaker: str
    text: str


def before(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str], size: int) -> dict[str, list[Said]]:
    """For each of the turns the last ones before it in its session, in order; unknown ids are left out."""
    found = conn.execute(
        "SELECT t.id, b.speaker, b.text FROM turns t LEFT JOIN turns b ON b.row IN ("
        " SELECT row FROM turns e WHERE e.scope_key = t.scope_key AND e.session = t.session"
        " AND e.position < t.position ORDER BY e.position DESC LIMIT ?)"
        " WHERE t.scope_key = ? AND t.id IN (SELECT value FROM json_each(?)) ORDER BY b.position",
        (size, scope.key, json_list(ids)),
    )
    said: dict[str, list[Said]] = {}
    for turn, speaker, text in found:
        earlier = said.setdefault(turn, [])
        if speaker is not None:
            earlier.append(Said(speaker, text))
    return said


def staged(conn: sqlite3.Connection, scope: Scope, session: str, *, until: int) -> list[Turn]:
    """Turns of a session up to a place (inclusive) whose raw entry waits for the commit, in order."""
    found = conn.execute(
        "SELECT * FROM turns t WHERE scope_key = ? AND session = ? AND position <= ? AND EXISTS ("
        " SELECT 1 FROM sources s JOIN entries e USING (row) WHERE s.scope_key = t.scope_key"
        " AND s.turn = t.id AND e.granularity = 'raw' AND e.status = 'staged') ORDER BY position",
        (scope.key, session, until),
    )
    return [_turn(row) for row in found]


def unprocessed(conn: sqlite3.Connection, scope: Scope) -> list[Turn]:
    """Turns not read to the end yet, of the scope's session or of all; as sessions began, then by place."""
    found = conn.execute(
        "SELECT turns.* FROM turns INDEXED BY turns_waiting CROSS JOIN sessions USING (scope_key, session)"
        " WHERE turns.scope_key = ? AND state <> 'processed' AND session = coalesce(?, session)"
        " ORDER BY seq, position",
        (scope.key, scope.session),
    )
    return [_turn(row) for row in found]


def states(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> dict[str, TurnState]:
    """State by turn id; unknown ids are left out."""
    found = conn.execute(
        "SELECT id, state FROM turns WHERE scope_key = ? AND id IN (SELECT value FROM json_each(?))",
        (scope.key, json_list(ids)),
    )
    return {row["id"]: row["state"] for row in found}


def mark(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str], state: TurnState) -> None:
    """Sets the state of turns; unknown ids are passed over."""
    conn.execute(
        "UPDATE turns SET state = ? WHERE scope_key = ? AND id IN (SELECT value FROM json_each(?))",
        (state, scope.key, json_list(ids)),
    )


def identities(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> list[str]:
    """Hashed identities of turns, for tombstones."""
    found = conn.execute(
        "SELECT identity FROM turns WHERE scope_key = ? AND id IN (SELECT value FROM json_each(?))",
        (scope.key, json_list(ids)),
    )
    return [row["identity"] for row in found]


def delete(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> None:
    """Removes turns for good."""
    conn.execute(
        "DELETE FROM turns WHERE scope_key = ? AND id IN (SELECT value FROM json_each(?))",
        (scope.key, json_list(ids)),
    )
