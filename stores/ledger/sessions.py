"""Table `sessions`: which sessions are open, how far they reach, and where their last episode was closed."""

import json
import sqlite3
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict

from memcycle.core.probe import SessionReport, SessionStatus, add_usage
from memcycle.core.scope import Scope
from memcycle.stores.ledger.columns import scope_of, to_json, to_time

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
        seq: Its own number, never given twice. part: the present part.
        reason: Why what is committed was not examined; empty where it was.
        last: The highest place ever given; a forgotten turn's is not given again.
        closed: Place of the last turn that a closed episode covers. until: up to which it was last committed.
        told: Its reports, as they are stored.
    """

    seq: int
    status: SessionStatus
    part: int
    reason: str
    last: int
    closed: int
    until: int
    told: str

    @property
    def is_committed(self) -> bool:
        """Whether nothing of it waits for a commit."""
        return self.status in COMMITTED

    @property
    def reports(self) -> dict[int, SessionReport]:
        """What each committed part's end found, by part."""
        return _reports(self.told)


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


def reopen(conn: sqlite3.Connection, scope: Scope, now: datetime) -> None:
    """Makes the session take what is written to it: new, committed before, or under examination still."""
    conn.execute(
        "INSERT INTO sessions (scope_key, user, workspace, session, status, touched_at)"
        " VALUES (?, ?, ?, ?, 'open', ?) ON CONFLICT (scope_key, session) DO UPDATE SET"
        " part = part + (status IN ('committed', 'committed_unverified')),"
        " status = iif(status = 'verifying', 'verifying', 'open'), touched_at = excluded.touched_at",
        (scope.key, scope.user, scope.workspace, scope.session, to_time(now)),
    )


def begin(conn: sqlite3.Connection, scope: Scope, now: datetime) -> Part | None:
    """Puts the session under examination, up to its last turn of now. None for a session never seen."""
    _update(conn, scope, "status = 'verifying', touched_at = ?", to_time(now))
    found = state(conn, scope)
    return None if found is None else Part(found.part, found.last, found.seq)


def commit(
    conn: sqlite3.Connection,
    scope: Scope,
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
    status = "committed_unverified" if reason else "committed"
    told = {part: one.model_dump(mode="json") for part, one in (reports or {}).items()}
    assigned = (
        "status = ?, reason = ?, reports = coalesce(?, reports), touched_at = ?,"
        " committed_position = max(committed_position, coalesce(?, last_position))"
    )
    _update(conn, scope, assigned, status, reason, to_json(told) if told else None, to_time(now), until)


def state(conn: sqlite3.Connection, scope: Scope) -> State | None:
    """How far the scope's session has come; None for one never seen, or forgotten."""
    row = conn.execute(
        "SELECT seq, status, part, reason, last_position, closed_position, committed_position, reports"
        " FROM sessions WHERE scope_key = ? AND session = ?",
        (scope.key, scope.session),
    ).fetchone()
    return None if row is None else State(*row)


def is_open(conn: sqlite3.Connection, scope: Scope) -> bool:
    """Whether what is written for the session waits for its commit."""
    found = state(conn, scope)
    return found is not None and not found.is_committed


def seq_of(conn: sqlite3.Connection, scope: Scope) -> int | None:
    """The session's own number, never given twice; None for one never seen, or forgotten."""
    found = state(conn, scope)
    return None if found is None else found.seq


def is_another(conn: sqlite3.Connection, scope: Scope, seq: int | None) -> bool:
    """Whether the scope's session is not the one of this number (any more); None asks for none."""
    return seq is not None and seq_of(conn, scope) != seq


def last_position(conn: sqlite3.Connection, scope: Scope) -> int:
    """The highest place ever given in the session, 0 without any."""
    found = state(conn, scope)
    return 0 if found is None else found.last


def advance(conn: sqlite3.Connection, scope: Scope, position: int) -> None:
    """Notes that a turn stands at this place."""
    _update(conn, scope, "last_position = max(last_position, ?)", position)


def close_segment(conn: sqlite3.Connection, scope: Scope, position: int) -> None:
    """Moves the episode watermark forward, never back."""
    _update(conn, scope, "closed_position = max(closed_position, ?)", position)


def touch(conn: sqlite3.Connection, scope: Scope, now: datetime) -> None:
    """Notes that something is done with the scope's session now."""
    _update(conn, scope, "touched_at = ?", to_time(now))


def _update(conn: sqlite3.Connection, scope: Scope, assigned: str, *values: object) -> None:
    """Sets columns of the scope's session; `assigned` is a constant of ours."""
    conn.execute(
        f"UPDATE sessions SET {assigned} WHERE scope_key = ? AND session = ?",  # noqa: S608
        (*values, scope.key, scope.session),
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


def waiting(
    conn: sqlite3.Connection, since: datetime, within: Scope | None = None, *, any_examined: bool = False
) -> list[Scope]:
    """Sessions that wait for their commit and were not written to after a time, the longest silent first.

    These are the ones under examination (whenever written, with `any_examined`), and the open ones that hold
    staged entries: of the home, or of a base scope.
    """
    found = conn.execute(
        "SELECT user, workspace, session FROM sessions s"
        " WHERE scope_key = coalesce(:scope, scope_key)"
        " AND (status = 'verifying' AND (touched_at <= :since OR :any)"
        "  OR status = 'open' AND touched_at <= :since AND EXISTS (SELECT 1 FROM entries e"
        "   WHERE e.scope_key = s.scope_key AND e.session = s.session AND e.status = 'staged'))"
        " ORDER BY touched_at, seq",
        {"scope": within and within.key, "since": to_time(since), "any": any_examined},
    )
    return [scope_of(*row) for row in found]


def idle(conn: sqlite3.Connection, since: datetime, within: Scope | None, but: Scope | None) -> Scope | None:
    """The first of those that wait, this one aside."""
    return next((one for one in waiting(conn, since, within) if one != but), None)


def unverified(conn: sqlite3.Connection) -> list[tuple[Scope, str]]:
    """Sessions of the home that were committed without having been examined: (scope, reason)."""
    found = conn.execute(
        "SELECT user, workspace, session, reason FROM sessions WHERE status = 'committed_unverified'"
        " ORDER BY seq"
    )
    return [(scope_of(user, workspace, session), reason) for user, workspace, session, reason in found]


def scopes_of(conn: sqlite3.Connection, user: str, workspace: str | None) -> list[Scope]:
    """Base scopes of a user that hold anything."""
    found = conn.execute(
        "SELECT DISTINCT user, workspace FROM ("
        " SELECT user, workspace FROM sessions UNION SELECT user, workspace FROM entries"
        " UNION SELECT user, workspace FROM spent)"
        " WHERE user = ? AND workspace = coalesce(?, workspace) ORDER BY workspace",
        (user, workspace),
    )
    return [scope_of(*row) for row in found]


def all_scopes(conn: sqlite3.Connection) -> list[Scope]:
    """Every base scope with entries."""
    found = conn.execute("SELECT DISTINCT user, workspace FROM entries ORDER BY user, workspace")
    return [scope_of(*row) for row in found]


_COUNTS = tuple(name for name in SessionReport.model_fields if name != "usage")


def _sum(reports: Iterable[SessionReport]) -> SessionReport:
    total = SessionReport()
    for one in reports:
        counts = {name: getattr(total, name) + getattr(one, name) for name in _COUNTS}
        total = SessionReport(**counts, usage=add_usage(total.usage, one.usage))
    return total


def _reports(text: str) -> dict[int, SessionReport]:
    return {int(part): SessionReport.model_validate(report) for part, report in json.loads(text).items()}
