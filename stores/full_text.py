"""SQLite's full-text index, FTS5: nothing that was removed remains in it, however often that is asked for."""

import sqlite3

WORN = 1024
"""Bytes of an index's list of levels, which has two for each, from which on it is made anew."""


def merge(conn: sqlite3.Connection, table: str) -> None:
    """Merges an index so that no removed word remains in it; a VACUUM must follow to clear free pages.

    In SQLite 3.40 (no longer in 3.51) each merge of everything adds two levels to the index, and none can be
    opened that has more than 2,000. So it is made anew now and then, which costs about eight times as much.

    Args:
        table: Its name, a constant. It keeps its texts itself.
    """
    levels = f"SELECT 1 FROM {table}_data WHERE id = 10 AND length(block) > ?"  # noqa: S608 - a constant
    command = "rebuild" if conn.execute(levels, (WORN,)).fetchone() else "optimize"
    conn.execute(f"INSERT INTO {table} ({table}) VALUES (?)", (command,))  # noqa: S608 - as above
