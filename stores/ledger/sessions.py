"""Table `sessions`: which sessions are open, how far they reach, and where their last episode was closed."""

import json
import sqlite3
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict

from memcycle.core.probe import SessionReport, SessionStatus, add_usage
from memcycle.core.scope import Scope
from memcycle.stores.ledger.columns import to_json, to_time

COMMITTED: tuple[SessionStatus, ...] = ("committed", "committed_unverified")


class Part(NamedTuple):
    """A stretch of a session under examination.

    Attributes:
        number: From 1. until: the place of its last turn.
        seq: Which session it is; one begun anew under the name of a forgotten one has another.
    """

    number: int
    until: int
    seq: int


class State(NamedTuple):
    """How far a session has come.

    Attributes:
        part: The present part. reason: why what is committed was not examined; empty where it was.
        until: Place up to which it was last committed.
        reports: What each committed part's end found, by part.
    """

    status: SessionStatus
    part: int
    reason: str
    until: int
    reports: dict[int, SessionReport]

    @property
    def is_committed(self) -> bool:
        """Whether nothing of it waits for a commit."""
        return self.status in COMMITTED


class SessionInfo(BaseModel):
    """A session as people see it.

    Attributes:
        status: `open` takes turns, `verifying` is being examined (and takes turns); what is written then is
            staged. `committed_unverified` was committed without having been examined.
        turns: How many turns it has. staged: entries waiting for its commit.
        first, last: Times of its earliest and latest turn; None without any.
        part: 1, and one more each time a late turn reopened it.
        reason: Why a part of what is committed was not examined; empty where all was.
        report: Sum over its parts of what the last end of each found.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    session: str
    status: SessionStatus
    turns: int
    staged: int
    first: AwareDatetime | None = None
    last: AwareDatetime | None = None
    part: int = 1
    reason: str = ""
    report: SessionReport = SessionReport()

    @property
    def is_committed(self) -> bool:
        """Whether it has ended, examined or not."""
        return self.status in COMMITTED


def reopen(conn: sqlite3.Connection, scope: Scope, session: str, now: datetime) -> None:
    """Makes the session take what is written to it: new, committed before, or under examination still."""
    conn.execute(
        "INSERT INTO sessions (scope_key, user, workspace, session, status, touched_at)"
        " VALUES (?, ?, ?, ?, 'open', ?) ON CONFLICT (scope_key, session) DO UPDATE SET"
        " part = part + (status IN ('committed', 'committed_unverified')),"
        " status = iif(status = 'verifying', 'verifying', 'open'), touched_at = excluded.touched_at",
        (scope.key, scope.user, scope.workspace, session, to_time(now)),
    )


def begin(conn: sqlite3.Connection, scope: Scope, session: str, now: datetime) -> Part | None:
    """Puts the session under examination, up to its last turn of now. None for a session never seen."""
    conn.execute(
        "UPDATE sessions SET status = 'verifying', touched_at = ? WHERE scope_key = ? AND session = ?",
        (to_time(now), scope.key, session),
    )
    row = _row(conn, scope, session)
    return None if row is None else Part(row["part"], row["last_position"], row["seq"])


def commit(
    conn: sqlite3.Connection,
    scope: Scope,
    session: str,
    now: datetime,
    *,
    reason: str = "",
    until: int | None = None,
    reports: dict[int, SessionReport] | None = None,
) -> None:
    """Makes the session committed; a session never seen is passed over.

    Args:
        reason: Why it was not examined, if it was not.
        until: Place up to which it was committed; all of it without.
        reports: What replaces its reports.
    """
    kept = {part: one.model_dump(mode="json") for part, one in (reports or {}).items()}
    conn.execute(
        "UPDATE sessions SET status = ?, reason = ?, reports = coalesce(?, reports),"
        " committed_position = max(committed_position, coalesce(?, last_position)), touched_at = ?"
        " WHERE scope_key = ? AND session = ?",
        (
            "committed_unverified" if reason else "committed", reason,
            None if reports is None else to_json(kept), until, to_time(now), scope.key, session,
        ),
    )  # fmt: skip


def state(conn: sqlite3.Connection, scope: Scope, session: str) -> State | None:
    """How far the session has come; None for one never seen."""
    row = _row(conn, scope, session)
    if row is None:
        return None
    reports = _reports(row["reports"])
    return State(row["status"], row["part"], row["reason"], row["committed_position"], reports)


def is_open(conn: sqlite3.Connection, scope: Scope, session: str) -> bool:
    """Whether what is written for the session waits for its commit."""
    row = _row(conn, scope, session)
    return row is not None and row["status"] not in COMMITTED


def seq_of(conn: sqlite3.Connection, scope: Scope, session: str) -> int | None:
    """The session's own number, never given twice; None for one never seen, or forgotten."""
    row = _row(conn, scope, session)
    return None if row is None else int(row["seq"])


def is_another(conn: sqlite3.Connection, scope: Scope, seq: int | None) -> bool:
    """Whether the scope's session is not the one of this number (any more); None asks for none."""
    return seq is not None and seq_of(conn, scope, str(scope.session)) != seq


def last_position(conn: sqlite3.Connection, scope: Scope, session: str) -> int:
    """The highest place ever given in the session, 0 without any. A forgotten turn's is not given again."""
    row = _row(conn, scope, session)
    return 0 if row is None else int(row["last_position"])


def closed_position(conn: sqlite3.Connection, scope: Scope, session: str) -> int:
    """The place of the last turn that a closed episode covers, 0 without any."""
    row = _row(conn, scope, session)
    return 0 if row is None else int(row["closed_position"])


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
        "SELECT s.session, s.status, s.part, s.reason, s.reports,"
        " count(t.row) AS turns, min(t.time) AS first, max(t.time) AS last,"
        " (SELECT count(*) FROM entries e WHERE e.scope_key = s.scope_key AND e.session = s.session"
        "  AND e.status = 'staged') AS staged"
        " FROM sessions s LEFT JOIN turns t ON t.scope_key = s.scope_key AND t.session = s.session"
        " WHERE s.scope_key = ? AND s.session = coalesce(?, s.session) GROUP BY s.seq ORDER BY s.seq",
        (scope.key, scope.session),
    )
    shown = [name for name in SessionInfo.model_fields if name != "report"]
    return [
        SessionInfo(**{name: row[name] for name in shown}, report=_sum(_reports(row["reports"]).values()))
        for row in found
    ]


class Waiting(NamedTuple):
    """A session that waits for its end, and when it was last written to."""

    scope: Scope
    touched: datetime


def waiting(
    conn: sqlite3.Connection, since: datetime, within: Scope | None = None, *, any_examined: bool = False
) -> list[Waiting]:
    """Sessions that wait for their commit and were not written to after a time, the longest silent first.

    These are the ones under examination (whenever written, with `any_examined`), and the open ones that hold
    staged entries: of the home, of a base scope, or the one session of a scope.
    """
    found = conn.execute(
        "SELECT user, workspace, session, touched_at FROM sessions s"
        " WHERE scope_key = coalesce(:scope, scope_key) AND session = coalesce(:session, session)"
        " AND (status = 'verifying' AND (touched_at <= :since OR :any)"
        "  OR status = 'open' AND touched_at <= :since AND EXISTS (SELECT 1 FROM entries e"
        "   WHERE e.scope_key = s.scope_key AND e.session = s.session AND e.status = 'staged'))"
        " ORDER BY touched_at, seq",
        {
            "scope": within.key if within is not None else None,
            "session": within.session if within is not None else None,
            "since": to_time(since),
            "any": any_examined,
        },
    )
    return [
        Waiting(
            Scope(user=row["user"], workspace=row["workspace"], session=row["session"]),
            datetime.fromisoformat(row["touched_at"]),
        )
        for row in found
    ]


def touch(conn: sqlite3.Connection, scope: Scope, now: datetime) -> None:
    """Notes that something is done with the scope's session now."""
    conn.execute(
        "UPDATE sessions SET touched_at = ? WHERE scope_key = ? AND session = ?",
        (to_time(now), scope.key, scope.session),
    )


def unverified(conn: sqlite3.Connection) -> list[tuple[Scope, str]]:
    """Sessions of the home that were committed without having been examined: (scope, reason)."""
    found = conn.execute(
        "SELECT user, workspace, session, reason FROM sessions WHERE status = 'committed_unverified'"
        " ORDER BY seq"
    )
    return [
        (Scope(user=row["user"], workspace=row["workspace"], session=row["session"]), row["reason"])
        for row in found
    ]


def scopes_of(conn: sqlite3.Connection, user: str, workspace: str | None) -> list[Scope]:
    """Base scopes of a user that hold anything."""
    found = conn.execute(
        "SELECT DISTINCT user, workspace FROM ("
        " SELECT user, workspace FROM sessions UNION SELECT user, workspace FROM entries"
        " UNION SELECT user, workspace FROM spent)"
        " WHERE user = ? AND workspace = coalesce(?, workspace) ORDER BY workspace",
        (user, workspace),
    )
    return [Scope(user=row["user"], workspace=row["workspace"]) for row in found]


def all_scopes(conn: sqlite3.Connection) -> list[Scope]:
    """Every base scope with entries."""
    found = conn.execute("SELECT DISTINCT user, workspace FROM entries ORDER BY user, workspace")
    return [Scope(user=row["user"], workspace=row["workspace"]) for row in found]


def _row(conn: sqlite3.Connection, scope: Scope, session: str) -> sqlite3.Row | None:
    found = conn.execute("SELECT * FROM sessions WHERE scope_key = ? AND session = ?", (scope.key, session))
    row: sqlite3.Row | None = found.fetchone()
    return row


_COUNTS = tuple(name for name in SessionReport.model_fields if name != "usage")


def _sum(reports: Iterable[SessionReport]) -> SessionReport:
    total = SessionReport()
    for one in reports:
        counts = {name: getattr(total, name) + getattr(one, name) for name in _COUNTS}
        total = SessionReport(**counts, usage=add_usage(total.usage, one.usage))
    return total


def _reports(text: str) -> dict[int, SessionReport]:
    return {int(part): SessionReport.model_validate(report) for part, report in json.loads(text).items()}
