"""The ledger's tables and their forward migrations."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from memcycle.core.errors import StoreError
from memcycle.stores.ledger import full_text

APPLICATION_ID = 0x6D656D63
"""Marks the file as a memcycle ledger ("memc"), so that another program's database is never migrated."""

# Times are ISO 8601 in UTC, `zone` the minutes east of it where a turn was said, lists and objects JSON.
# `scope_key` is `Scope.key` of the base scope.
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE sessions (
    seq INTEGER PRIMARY KEY,
    scope_key TEXT NOT NULL, user TEXT NOT NULL, workspace TEXT NOT NULL, session TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'committed')),
    last_position INTEGER NOT NULL DEFAULT 0,
    closed_position INTEGER NOT NULL DEFAULT 0,
    touched_at TEXT NOT NULL,
    UNIQUE (scope_key, session)
);

CREATE TABLE turns (
    row INTEGER PRIMARY KEY,
    scope_key TEXT NOT NULL, session TEXT NOT NULL, position INTEGER NOT NULL,
    id TEXT NOT NULL, identity TEXT NOT NULL,
    speaker TEXT NOT NULL, role TEXT NOT NULL, text TEXT NOT NULL, time TEXT NOT NULL, zone INTEGER NOT NULL,
    message_id TEXT,
    state TEXT NOT NULL CHECK (state IN ('staged', 'unextracted', 'extracted', 'processed')),
    UNIQUE (scope_key, id), UNIQUE (scope_key, identity), UNIQUE (scope_key, session, position)
);

CREATE TABLE entries (
    row INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    scope_key TEXT NOT NULL, user TEXT NOT NULL, workspace TEXT NOT NULL, session TEXT NOT NULL,
    position INTEGER NOT NULL, same TEXT NOT NULL,
    granularity TEXT NOT NULL CHECK (granularity IN ('raw', 'fact', 'episode')),
    kind TEXT NOT NULL, text TEXT NOT NULL, title TEXT, pattern TEXT, speaker TEXT, role TEXT,
    turns TEXT NOT NULL, related_turns TEXT NOT NULL, quote TEXT,
    event_time TEXT, event_precision TEXT, valid_from TEXT, valid_until TEXT,
    observed_at TEXT, recorded_at TEXT, zone INTEGER NOT NULL,
    entities TEXT NOT NULL, persons TEXT NOT NULL, locations TEXT NOT NULL, topics TEXT NOT NULL,
    keywords TEXT NOT NULL,
    importance REAL NOT NULL, confidence REAL NOT NULL, reinforcement REAL NOT NULL,
    access_count INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('staged', 'active', 'superseded', 'forgotten')),
    supersedes TEXT NOT NULL, superseded_by TEXT,
    embedder TEXT, vector BLOB,
    actor TEXT NOT NULL, prompt TEXT, model TEXT, pipeline TEXT, expires_at TEXT, metadata TEXT NOT NULL
);
CREATE INDEX entries_order ON entries (scope_key, session, position, granularity, id);
CREATE INDEX entries_same ON entries (scope_key, same);
CREATE INDEX entries_staged ON entries (scope_key, session) WHERE status = 'staged';

CREATE TABLE sources (
    scope_key TEXT NOT NULL, turn TEXT NOT NULL,
    row INTEGER NOT NULL REFERENCES entries (row) ON DELETE CASCADE,
    PRIMARY KEY (scope_key, turn, row)
) WITHOUT ROWID;
CREATE INDEX sources_row ON sources (row);

CREATE TABLE links (
    scope_key TEXT NOT NULL, source TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('related', 'elaborates', 'contradicts', 'supersedes')),
    target TEXT NOT NULL,
    PRIMARY KEY (scope_key, source, kind, target)
) WITHOUT ROWID;
CREATE INDEX links_target ON links (scope_key, target, kind);

CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL, change TEXT NOT NULL, undoes TEXT, at TEXT NOT NULL,
    scope_key TEXT NOT NULL, entry TEXT NOT NULL, action TEXT NOT NULL, actor TEXT NOT NULL,
    before TEXT, after TEXT, why TEXT NOT NULL
);
CREATE INDEX events_entry ON events (scope_key, entry);
CREATE INDEX events_change ON events (scope_key, change);

CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, user TEXT NOT NULL, workspace TEXT NOT NULL, entry TEXT NOT NULL
);

CREATE TABLE conflicts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, scope_key TEXT NOT NULL, a TEXT NOT NULL, b TEXT NOT NULL,
    why TEXT NOT NULL
);
CREATE INDEX conflicts_scope ON conflicts (scope_key);

CREATE TABLE tombstones (hash TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE scrubs (
    user TEXT NOT NULL, workspace TEXT NOT NULL, PRIMARY KEY (user, workspace)
) WITHOUT ROWID;
"""

# Of no use any more: see `memcycle.stores.ledger.full_text`.
_LEXICAL_TEXTS = """
CREATE VIRTUAL TABLE lexical USING fts5(
    scope, own, dated, before, tokenize = "ascii tokenchars '+#@.-_%'", detail = column, columnsize = 0
);
"""

LEXICAL_WORDS = """CREATE TABLE lexical_words (
    row INTEGER PRIMARY KEY, scope TEXT NOT NULL, speaker TEXT,
    own INTEGER NOT NULL, dated INTEGER NOT NULL, before INTEGER NOT NULL, words BLOB NOT NULL
);
CREATE INDEX lexical_words_scope ON lexical_words (scope, speaker, own, dated, before);
"""

# `part` counts how often the session was committed and reopened, from 1; `committed_position` is where the
# last committed part ends; `reports` is an object of `SessionReport` by part. The `turns` and `refs` of a
# probe are the ids of the turns and entries whose words its `data` may hold, so that it goes with them.
_SESSIONS = """scope_key TEXT NOT NULL, user TEXT NOT NULL, workspace TEXT NOT NULL, session TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'verifying', 'committed', 'committed_unverified')),
    part INTEGER NOT NULL DEFAULT 1, reason TEXT NOT NULL DEFAULT '', reports TEXT NOT NULL DEFAULT '{}',
    last_position INTEGER NOT NULL DEFAULT 0,
    closed_position INTEGER NOT NULL DEFAULT 0,
    committed_position INTEGER NOT NULL DEFAULT 0,
    touched_at TEXT NOT NULL,
    UNIQUE (scope_key, session)"""
_EXAMINATION = f"""
CREATE TABLE sessions_with_parts (
    seq INTEGER PRIMARY KEY,
    {_SESSIONS}
);
INSERT INTO sessions_with_parts (
    seq, scope_key, user, workspace, session, status, last_position, closed_position, touched_at
) SELECT seq, scope_key, user, workspace, session, status, last_position, closed_position, touched_at
    FROM sessions;
DROP TABLE sessions;
ALTER TABLE sessions_with_parts RENAME TO sessions;

CREATE TABLE probes (
    scope_key TEXT NOT NULL, id TEXT NOT NULL,
    session TEXT NOT NULL, part INTEGER NOT NULL, n INTEGER NOT NULL,
    turns TEXT NOT NULL, refs TEXT NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (scope_key, id)
) WITHOUT ROWID;
CREATE INDEX probes_order ON probes (scope_key, session, part, n);

CREATE INDEX events_undoes ON events (scope_key, undoes) WHERE undoes IS NOT NULL;
"""  # noqa: S608 - a constant of ours

_MENTIONS = """
CREATE TABLE mentions (
    scope_key TEXT NOT NULL, name TEXT NOT NULL, times INTEGER NOT NULL,
    PRIMARY KEY (scope_key, name)
) WITHOUT ROWID;
"""

CHANGES_KEPT = 10_000
"""Changes of the home whose entries are known."""

# A number for each base scope that grows with every change to its entries, and which entries the last changes
# of the home were made to. Triggers keep them, so that no write can forget to. Numbers are never given twice,
# so a scope that was emptied and filled again is another one. After a deletion no copy of a scope's entries
# can be brought up to date any more: what stood around the entry has changed with it.
_CHANGES = f"""
CREATE TABLE changed (
    n INTEGER PRIMARY KEY AUTOINCREMENT, scope_key TEXT NOT NULL, row INTEGER NOT NULL
);
CREATE TABLE changes (scope_key TEXT PRIMARY KEY, n INTEGER NOT NULL, since INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO changes (scope_key, n, since) SELECT DISTINCT scope_key, 0, 0 FROM entries;
CREATE TRIGGER changes_insert AFTER INSERT ON entries BEGIN
    INSERT INTO changed (scope_key, row) VALUES (new.scope_key, new.row);
    INSERT INTO changes (scope_key, n, since) VALUES (new.scope_key, last_insert_rowid(), last_insert_rowid())
        ON CONFLICT (scope_key) DO UPDATE SET n = excluded.n;
    DELETE FROM changed WHERE n <= last_insert_rowid() - {CHANGES_KEPT};
END;
CREATE TRIGGER changes_update
AFTER UPDATE OF status, turns, importance, reinforcement, vector, embedder ON entries BEGIN
    INSERT INTO changed (scope_key, row) VALUES (new.scope_key, new.row);
    UPDATE changes SET n = last_insert_rowid() WHERE scope_key = new.scope_key;
    DELETE FROM changed WHERE n <= last_insert_rowid() - {CHANGES_KEPT};
END;
CREATE TRIGGER changes_delete AFTER DELETE ON entries BEGIN
    INSERT INTO changed (scope_key, row) VALUES (old.scope_key, old.row);
    UPDATE changes SET n = last_insert_rowid(), since = last_insert_rowid() WHERE scope_key = old.scope_key;
    DELETE FROM changed WHERE n <= last_insert_rowid() - {CHANGES_KEPT};
END;
"""  # noqa: S608 - a constant of ours

# NULL in a row that was written before there was such a column.
LEXICAL_TRAITS = "ALTER TABLE lexical_words ADD COLUMN traits INTEGER;\n"

# What `memcycle.stores.ledger.items` keeps. The last two tables said what Chroma had of the vectors.
_ITEMS = """
CREATE TABLE items (
    row INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    ttl REAL, expires_at TEXT,
    UNIQUE (namespace, key)
);
CREATE INDEX items_expiry ON items (expires_at) WHERE expires_at IS NOT NULL;
"""

_ITEM_VECTORS = """
CREATE TABLE item_vectors (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    item INTEGER NOT NULL REFERENCES items (row) ON DELETE CASCADE,
    path TEXT NOT NULL, embedder TEXT NOT NULL, vector BLOB NOT NULL
);
CREATE INDEX item_vectors_item ON item_vectors (item, embedder);
CREATE INDEX item_vectors_embedder ON item_vectors (embedder);

CREATE TABLE item_index (
    embedder TEXT PRIMARY KEY, collection TEXT NOT NULL, upto INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE item_gone (vector INTEGER PRIMARY KEY, embedder TEXT NOT NULL);
"""

# A forgotten session's number is never given again: one begun anew under its name is another session.
_NUMBERED = f"""
CREATE TABLE sessions_numbered (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    {_SESSIONS}
);
INSERT INTO sessions_numbered (
    seq, scope_key, user, workspace, session, status, part, reason, reports, last_position, closed_position,
    committed_position, touched_at
) SELECT seq, scope_key, user, workspace, session, status, part, reason, reports, last_position,
    closed_position, committed_position, touched_at FROM sessions;
DROP TABLE sessions;
ALTER TABLE sessions_numbered RENAME TO sessions;
"""  # noqa: S608 - a constant of ours

# Vectors of single words were kept for a while; they gained 0.4 points of recall, and went.
_ENTRY_WORDS = """
CREATE TABLE entry_words (
    row INTEGER PRIMARY KEY REFERENCES entries (row) ON DELETE CASCADE,
    model TEXT NOT NULL, vectors BLOB NOT NULL
);
CREATE TRIGGER entry_words_upto AFTER DELETE ON entries BEGIN
    UPDATE meta SET value = min(CAST(value AS INTEGER), coalesce((SELECT max(row) FROM entries), 0))
        WHERE key GLOB 'words of *';
END;
"""

_NO_ENTRY_WORDS = """
DROP TRIGGER entry_words_upto;
DROP TABLE entry_words;
DELETE FROM meta WHERE key GLOB 'words of *';
"""

# Chroma held vectors of items for a while: the doctor drops those collections.
_NO_ITEM_INDEX = """
DROP TABLE item_index;
DROP TABLE item_gone;
"""

_MARKED = "ALTER TABLE scrubs ADD COLUMN mark TEXT NOT NULL DEFAULT '';"

# What models were asked for, of the last day on which that was limited: `day` is one of the user's zone.
_SPENT = """
CREATE TABLE spent (
    scope_key TEXT PRIMARY KEY, user TEXT NOT NULL, workspace TEXT NOT NULL,
    day TEXT NOT NULL, calls INTEGER NOT NULL, tokens INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX spent_user ON spent (user, day);
"""

# How many documents a scope token has and how many words they hold: counted anew they would take each search
# the longer, the more was ever said. Triggers keep them, so that no write can forget to.
LEXICAL_STATS = """
CREATE TABLE lexical_stats (
    scope TEXT PRIMARY KEY, docs INTEGER NOT NULL, dated INTEGER NOT NULL, windowed INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO lexical_stats SELECT scope, count(*), sum(own + dated), sum(own + before) FROM lexical_words
    GROUP BY scope;
CREATE TRIGGER lexical_stats_insert AFTER INSERT ON lexical_words BEGIN
    INSERT INTO lexical_stats (scope, docs, dated, windowed)
        VALUES (new.scope, 1, new.own + new.dated, new.own + new.before)
        ON CONFLICT (scope) DO UPDATE SET docs = docs + 1, dated = dated + excluded.dated,
        windowed = windowed + excluded.windowed;
END;
CREATE TRIGGER lexical_stats_delete AFTER DELETE ON lexical_words BEGIN
    UPDATE lexical_stats SET docs = docs - 1, dated = dated - old.own - old.dated,
        windowed = windowed - old.own - old.before WHERE scope = old.scope;
    DELETE FROM lexical_stats WHERE scope = old.scope AND docs <= 0;
END;
DROP INDEX lexical_words_scope;
"""

# Who speaks in a scope; what was said first and last in it; and what else is few among much.
_SPOKEN = """
CREATE INDEX entries_spoken ON entries (scope_key, speaker) WHERE status IN ('active', 'staged');
CREATE INDEX entries_said ON entries (scope_key, observed_at);
CREATE INDEX turns_waiting ON turns (scope_key, session, position) WHERE state <> 'processed';
CREATE INDEX entries_summaries ON entries (scope_key, session) WHERE kind = 'working_summary';
"""

MIGRATIONS: tuple[str | Callable[[sqlite3.Connection], None], ...] = (
    _TABLES + _LEXICAL_TEXTS + LEXICAL_WORDS,
    _EXAMINATION + _MENTIONS,
    _CHANGES + LEXICAL_TRAITS,
    _ITEMS + _ITEM_VECTORS,
    _NUMBERED,
    _ENTRY_WORDS,
    _MARKED,
    _NO_ENTRY_WORDS,
    _NO_ITEM_INDEX,
    _SPENT,
    LEXICAL_STATS + _SPOKEN,
    full_text.index_anew,
)
"""Step n brings a ledger from version n to n + 1. Never change one that was released; append."""

VERSION = len(MIGRATIONS)

OF_A_SCOPE = (
    "entries", "turns", "probes", "sessions", "events", "links", "conflicts", "mentions",
    "changes", "changed", "spent",
)  # fmt: skip
"""Tables with a `scope_key` whose rows belong to nobody else; `sources` follow their entries."""


def version_of(conn: sqlite3.Connection) -> int:
    """The schema version of an open database; 0 before the first migration."""
    return int(conn.execute("PRAGMA user_version").fetchone()[0])


def check_known(conn: sqlite3.Connection, path: Path) -> None:
    """Refuses (StoreError) a file of a newer version, and another program's database."""
    version = version_of(conn)
    if version > VERSION:
        raise StoreError(
            f"{path} has schema version {version}, this memcycle knows {VERSION}: upgrade memcycle to open it"
        )
    owner = conn.execute("PRAGMA application_id").fetchone()[0]
    if owner != APPLICATION_ID and conn.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise StoreError(f"{path} is a database of another program; choose another home")


def migrate(conn: sqlite3.Connection) -> None:
    """Brings the schema up to date, a transaction a step. The caller keeps other processes out."""
    for step in range(version_of(conn), VERSION):
        conn.execute("BEGIN IMMEDIATE")
        try:
            migration = MIGRATIONS[step]
            if callable(migration):
                migration(conn)
            else:
                for statement in _statements(migration):
                    conn.execute(statement)
            conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            conn.execute(f"PRAGMA user_version = {step + 1}")
        except BaseException:
            conn.rollback()
            raise
        conn.commit()


def _statements(script: str) -> Iterator[str]:
    """Splits a script; `executescript` would commit in the middle of the migration."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
