"""Table `entries`, written: insert, change of state, hard delete. Rules about what may change live above."""

import sqlite3
from collections.abc import Iterable
from typing import Any

from memcycle.core.entry import Entry
from memcycle.stores.ledger.columns import Vector, entry_columns, json_list, to_blob
from memcycle.stores.ledger.entries import StoredEntry

_INSERT = """
INSERT INTO entries (
    id, scope_key, user, workspace, session, position, same, granularity, kind, text, title, pattern, speaker,
    role, turns, related_turns, quote, event_time, event_precision, valid_from, valid_until, observed_at,
    recorded_at, zone, entities, persons, locations, topics, keywords, importance, confidence, reinforcement,
    access_count, status, supersedes, superseded_by, embedder, vector, actor, prompt, model, pipeline,
    expires_at, metadata
) VALUES (
    :id, :scope_key, :user, :workspace, :session, :position, :same, :granularity, :kind, :text, :title,
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


def insert(conn: sqlite3.Connection, entry: Entry, vector: Vector | None) -> StoredEntry:
    """Adds an entry whose id is new. Its scope must carry the session.

    A `vector` of None with `entry.embedder` of None means: not embedded yet.
    """
    values = entry_columns(entry) | {"vector": to_blob(vector), "position": _position(conn, entry)}
    row = conn.execute(_INSERT, values).lastrowid
    assert row is not None  # noqa: S101 - sqlite3 sets it after every INSERT
    _put_sources(conn, row, entry)
    return StoredEntry(row, entry, vector)


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
        _put_sources(conn, stored.row, entry)
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


def _put_sources(conn: sqlite3.Connection, row: int, entry: Entry) -> None:
    conn.executemany(
        "INSERT OR IGNORE INTO sources (scope_key, turn, row) VALUES (?, ?, ?)",
        [(entry.scope.key, turn, row) for turn in entry.turns],
    )


def _position(conn: sqlite3.Connection, entry: Entry) -> int:
    if not entry.turns:
        return _LAST
    found = conn.execute(
        "SELECT position FROM turns WHERE scope_key = ? AND id = ?", (entry.scope.key, entry.turns[0])
    ).fetchone()
    return int(found["position"]) if found else _LAST
