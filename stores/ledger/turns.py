"""Table `turns`: what was said, as it was said, each turn once, and how far its reading has come."""

import sqlite3
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from memcycle.core.language.tokens import per_text
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.stores.ledger.columns import IN, digest, in_zone, json_list, to_time, zone_of

TurnState = Literal["staged", "unextracted", "extracted", "processed"]


def identity_of(turn: Turn) -> str:
    """What makes two messages the same one: their source's id, else place, speaker and words.

    A source's id counts within its session, since many sources number each session from one. Hashed, so that
    a tombstone can keep it.
    """
    if turn.message_id is not None:
        return digest("message", turn.session, turn.message_id)
    return digest("said", turn.session, turn.position, turn.speaker, turn.text)


_COLUMNS = ("id", "session", "position", "speaker", "role", "text", "time", "zone", "message_id")
_TEXT = _COLUMNS.index("text")


def _where(conn: sqlite3.Connection, condition: str, *values: object) -> list[Turn]:
    """Turns as the rest of a query says, which is a constant of ours."""
    found = conn.execute(f"SELECT t.{', t.'.join(_COLUMNS)} FROM turns t {condition}", values)  # noqa: S608
    return [_parsed(tuple(row)) for row in found]


_IN_SESSION = "WHERE scope_key = ? AND session = ?"
_BY_ID = f"WHERE scope_key = ? AND id {IN}"


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
    rest = f"{_IN_SESSION} AND position = ? AND speaker = ? AND time = ? AND message_id IS NULL"
    found = _where(conn, rest, scope.key, turn.session, turn.position, turn.speaker, to_time(turn.time))
    return found[0] if found else None


def known(conn: sqlite3.Connection, scope: Scope, turn: Turn) -> Turn | None:
    """The stored turn that is this very message, whatever place it got.

    A turn stored on another place than it asked for comes back under its new place when a caller hands in
    what it was given, hence the second look by place and words.
    """
    said = (turn.session, turn.position, turn.speaker, turn.text, turn.message_id)
    rest = f"{_IN_SESSION} AND position = ? AND speaker = ? AND text = ? AND message_id IS ?"
    found = _where(conn, "WHERE scope_key = ? AND identity = ?", scope.key, identity_of(turn))
    found = found or _where(conn, rest, scope.key, *said)
    return found[0] if found else None


def place_free(conn: sqlite3.Connection, scope: Scope, session: str, position: int) -> bool:
    """Whether no turn stands at this position of the session."""
    return not _where(conn, f"{_IN_SESSION} AND position = ?", scope.key, session, position)


def id_free(conn: sqlite3.Connection, scope: Scope, turn: str) -> bool:
    """Whether no turn of the base scope has this id."""
    return not by_ids(conn, scope, [turn])


def by_ids(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> dict[str, Turn]:
    """Turns of the base scope by id; unknown ids are left out."""
    return {one.id: one for one in _where(conn, _BY_ID, scope.key, json_list(ids))}


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
    rest = f"{_IN_SESSION} AND position > ? AND (? IS NULL OR position < ?) ORDER BY position DESC LIMIT ?"
    most = -1 if last is None else last
    return _where(conn, rest, scope.key, session, after, before, before, most)[::-1]


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
    rest = (
        "WHERE scope_key = ? AND session = ? AND position <= ? AND EXISTS ("
        " SELECT 1 FROM sources s JOIN entries e USING (row) WHERE s.scope_key = t.scope_key"
        " AND s.turn = t.id AND e.granularity = 'raw' AND e.status = 'staged') ORDER BY position"
    )
    return _where(conn, rest, scope.key, session, until)


def unprocessed(conn: sqlite3.Connection, scope: Scope) -> list[Turn]:
    """Turns not read to the end yet, of the scope's session or of all; as sessions began, then by place."""
    rest = (
        "INDEXED BY turns_waiting CROSS JOIN sessions USING (scope_key, session) WHERE t.scope_key = ?"
        " AND state <> 'processed' AND session = coalesce(?, session) ORDER BY seq, position"
    )
    return _where(conn, rest, scope.key, scope.session)


def states(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> dict[str, str]:
    """State (staged, unextracted, extracted, processed) by turn id; unknown ids left out."""
    return dict(conn.execute(f"SELECT id, state FROM turns {_BY_ID}", (scope.key, json_list(ids))).fetchall())  # noqa: S608


def mark(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str], state: TurnState) -> None:
    """Sets the state of turns; unknown ids are passed over."""
    conn.execute(f"UPDATE turns SET state = ? {_BY_ID}", (state, scope.key, json_list(ids)))  # noqa: S608


def identities(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> list[str]:
    """Hashed identities of turns, for tombstones."""
    found = conn.execute(f"SELECT identity FROM turns {_BY_ID}", (scope.key, json_list(ids)))  # noqa: S608
    return [row["identity"] for row in found]


def delete(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> None:
    """Removes turns for good."""
    conn.execute(f"DELETE FROM turns {_BY_ID}", (scope.key, json_list(ids)))  # noqa: S608
