"""Table `sessions`: which sessions are open, how far they reach, and where their last episode was closed."""

import sqlite3
from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

from memcycle.core.scope import Scope
from memcycle.stores.ledger.columns import to_time

SessionStatus = Literal["open", "committed"]


class SessionInfo(BaseModel):
    """A session as people see it.

    Attributes:
        turns: How many turns it has. staged: entries waiting for its commit.
        first, last: Times of its earliest and latest turn; None without any.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    session: str
    status: SessionStatus
    turns: int
    staged: int
    first: AwareDatetime | None = None
    last: AwareDatetime | None = None


def reopen(conn: sqlite3.Connection, scope: Scope, session: str, now: datetime) -> None:
    """Makes the session open, new or committed before."""
    conn.execute(
        "INSERT INTO sessions (scope_key, user, workspace, session, status, touched_at)"
        " VALUES (?, ?, ?, ?, 'open', ?) ON CONFLICT (scope_key, session)"
        " DO UPDATE SET status = 'open', touched_at = excluded.touched_at",
        (scope.key, scope.user, scope.workspace, session, to_time(now)),
    )


def commit(conn: sqlite3.Connection, scope: Scope, session: str, now: datetime) -> None:
    """Makes the session committed; a session never seen is passed over."""
    conn.execute(
        "UPDATE sessions SET status = 'committed', touched_at = ? WHERE scope_key = ? AND session = ?",
        (to_time(now), scope.key, session),
    )


def is_open(conn: sqlite3.Connection, scope: Scope, session: str) -> bool:
    """Whether what is written for the session waits for its commit."""
    found = conn.execute(
        "SELECT 1 FROM sessions WHERE scope_key = ? AND session = ? AND status = 'open'", (scope.key, session)
    )
    return found.fetchone() is not None


def exists(conn: sqlite3.Connection, scope: Scope, session: str) -> bool:
    """Whether the session was ever written to."""
    found = conn.execute("SELECT 1 FROM sessions WHERE scope_key = ? AND session = ?", (scope.key, session))
    return found.fetchone() is not None


def last_position(conn: sqlite3.Connection, scope: Scope, session: str) -> int:
    """The highest place ever given in the session, 0 without any. A forgotten turn's is not given again."""
    return _number(
        conn, "SELECT last_position FROM sessions WHERE scope_key = ? AND session = ?", scope, session
    )


def closed_position(conn: sqlite3.Connection, scope: Scope, session: str) -> int:
    """The place of the last turn that a closed episode covers, 0 without any."""
    return _number(
        conn, "SELECT closed_position FROM sessions WHERE scope_key = ? AND session = ?", scope, session
    )


def advance(conn: sqlite3.Connection, scope: Scope, session: str, position: int) -> None:
    """Notes that a turn stands at this place."""
    conn.execute(
        "UPDATE sessions SET last_position = max(last_position, ?) WHERE scope_key = ? AND session = ?",
        (position, scope.key, session),
    )


def close_segment(conn: sqlite3.Connection, scope: Scope, session: str, position: int) -> None:
    """Moves the episode watermark forward, never back."""
    conn.execute(
        "UPDATE sessions SET closed_position = max(closed_position, ?) WHERE scope_key = ? AND session = ?",
        (position, scope.key, session),
    )


def infos(conn: sqlite3.Connection, scope: Scope) -> list[SessionInfo]:
    """All sessions of the base scope, or the scope's one, as they began."""
    found = conn.execute(
        "SELECT s.session, s.status, count(t.row) AS turns, min(t.time) AS first, max(t.time) AS last,"
        " (SELECT count(*) FROM entries e WHERE e.scope_key = s.scope_key AND e.session = s.session"
        "  AND e.status = 'staged') AS staged"
        " FROM sessions s LEFT JOIN turns t ON t.scope_key = s.scope_key AND t.session = s.session"
        " WHERE s.scope_key = ? AND s.session = coalesce(?, s.session) GROUP BY s.seq ORDER BY s.seq",
        (scope.key, scope.session),
    )
    return [
        SessionInfo.model_validate({name: row[name] for name in SessionInfo.model_fields}) for row in found
    ]


def idle_open(conn: sqlite3.Connection, since: datetime) -> list[tuple[Scope, str]]:
    """Open sessions of the home not written since a time that hold staged entries: (base scope, session)."""
    found = conn.execute(
        "SELECT user, workspace, session FROM sessions s WHERE status = 'open' AND touched_at < ?"
        " AND EXISTS (SELECT 1 FROM entries e WHERE e.scope_key = s.scope_key AND e.session = s.session"
        "  AND e.status = 'staged') ORDER BY seq",
        (to_time(since),),
    )
    return [(Scope(user=row["user"], workspace=row["workspace"]), row["session"]) for row in found]


def scopes_of(conn: sqlite3.Connection, user: str, workspace: str | None) -> list[Scope]:
    """Base scopes of a user that hold anything."""
    found = conn.execute(
        "SELECT DISTINCT user, workspace FROM ("
        " SELECT user, workspace FROM sessions UNION SELECT user, workspace FROM entries)"
        " WHERE user = ? AND workspace = coalesce(?, workspace) ORDER BY workspace",
        (user, workspace),
    )
    return [Scope(user=row["user"], workspace=row["workspace"]) for row in found]


def all_scopes(conn: sqlite3.Connection) -> list[Scope]:
    """Every base scope with entries."""
    found = conn.execute("SELECT DISTINCT user, workspace FROM entries ORDER BY user, workspace")
    return [Scope(user=row["user"], workspace=row["workspace"]) for row in found]


def _number(conn: sqlite3.Connection, query: str, scope: Scope, session: str) -> int:
    row = conn.execute(query, (scope.key, session)).fetchone()
    return int(row[0]) if row else 0
