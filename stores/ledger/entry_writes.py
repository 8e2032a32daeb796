"""Table `entries`, written: insert, change of state, hard delete. Rules about what may change live above."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from memcycle.core.entry import Entry
from memcycle.stores.ledger.columns import Vector, entry_columns, json_list, to_blob
from memcycle.stores.ledger.entries import StoredEntry

_INSERT = """
INSERT INTO entries (
    row, id, scope_key, user, workspace, session, position, same, granularity, kind, text, title, pattern,
    speaker, role, turns, related_turns, quote, event_time, event_precision, valid_from, valid_until,
    observed_at, recorded_at, zone, entities, persons, locations, topics, keywords, importance, confidence,
    reinforcement, access_count, status, supersedes, superseded_by, embedder, vector, actor, prompt, model,
    pipeline, expires_at, metadata
) VALUES (
    :row, :id, :scope_key, :user, :workspace, :session, :position, :same, :granularity, :kind, :text, :title,
    :pattern, :speaker, :role, :turns, :related_turns, :quote, :event_time, :event_precision,
    :valid_from, :valid_until, :observed_at, :recorded_at, :zone, :entities, :persons, :locations, :topics,
    :keywords, :importance, :confidence, :reinforcement, :access_count, :status, :supersedes,
    :superseded_by, :embedder, :vector, :actor, :prompt, :model, :pipeline, :expires_at, :metadata
)
"""

_CHANGING = (
    "turns", "related_turns", "status", "supersedes", "superseded_by", "valid_until", "quote", "importance",
    "reinforcement", "metadata",
)  # fmt: skip
_UPDATE = f"UPDATE entries SET {', '.join(f'{name} = :{name}' for name in _CHANGING)} WHERE row = :row"  # noqa: S608

_LAST = 1 << 40
"""Position of an entry without a known source turn: after all that have one."""


def insert(conn: sqlite3.Connection, given: Sequence[tuple[Entry, Vector | None]]) -> list[StoredEntry]:
    """Adds entries whose ids are new, in order, with their vectors. Their scopes must carry the session.

    A vector of None with `entry.embedder` of None means: not embedded yet.
    """
    after = conn.execute("SELECT coalesce(max(row), 0) FROM entries").fetchone()[0]
    stored = [StoredEntry(row, *one) for row, one in enumerate(given, start=after + 1)]
    positions = _positions(conn, [entry for entry, _ in given])
    conn.executemany(
        _INSERT,
        (
            entry_columns(entry) | {"row": row, "vector": to_blob(vector), "position": position}
            for (row, entry, vector), position in zip(stored, positions, strict=True)
        ),
    )
    _put_sources(conn, stored)
    return stored


def change(conn: sqlite3.Connection, stored: StoredEntry, **changes: Any) -> StoredEntry:
    """Changes the state of an entry: status, valid_until, supersedes, superseded_by; its sources, turns,
    related_turns and quote; its weight, importance and reinforcement; its metadata.

    The text and everything else is immutable: another text is another entry.
    """
    fixed = changes.keys() - set(_CHANGING)
    assert not fixed, f"{sorted(fixed)} of an entry cannot change"  # noqa: S101 - it would not be stored
    entry = stored.entry.model_copy(update=changes)
    conn.execute(_UPDATE, entry_columns(entry) | {"row": stored.row})
    if entry.turns != stored.entry.turns:
        conn.execute("DELETE FROM sources WHERE row = ?", (stored.row,))
        _put_sources(conn, [stored._replace(entry=entry)])
    return stored._replace(entry=entry)


def set_vectors(conn: sqlite3.Connection, vectors: Iterable[tuple[int, Vector]], embedder: str) -> None:
    """Stores vectors by integer key, with the embedder they come from."""
    conn.executemany(
        "UPDATE entries SET vector = ?, embedder = ? WHERE row = ?",
        [(to_blob(vector), embedder, row) for row, vector in vectors],
    )


def delete(conn: sqlite3.Connection, rows: Iterable[int]) -> None:
    """Removes entries for good, with what points at their rows."""
    conn.execute("DELETE FROM entries WHERE row IN (SELECT value FROM json_each(?))", (json_list(rows),))


def _put_sources(conn: sqlite3.Connection, stored: Iterable[StoredEntry]) -> None:
    conn.executemany(
        "INSERT OR IGNORE INTO sources (scope_key, turn, row) VALUES (?, ?, ?)",
        [(one.entry.scope.key, turn, one.row) for one in stored for turn in one.entry.turns],
    )


def _positions(conn: sqlite3.Connection, given: Sequence[Entry]) -> list[int]:
    """The place of each one's first source turn."""
    wanted: dict[str, set[str]] = {}
    for entry in given:
        wanted.setdefault(entry.scope.key, set()).update(entry.turns[:1])
    found = {
        (key, turn): position
        for key, ids in wanted.items()
        for turn, position in conn.execute(
            "SELECT id, position FROM turns WHERE scope_key = ? AND id IN (SELECT value FROM json_each(?))",
            (key, json_list(ids)),
        )
    }
    return [found.get((entry.scope.key, entry.turns[0]), _LAST) if entry.turns else _LAST for entry in given]
