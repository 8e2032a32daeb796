"""Reads the candidates of a search from the ledger: what ranking needs of an entry, and not the rest.

Reading whole entries costs more than ranking them, so only the hits are read whole. All hard filters are
in the SQL of this module: whatever view found an entry, it comes through here or not at all.
"""

import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from memcycle.stores.ledger.columns import json_list, to_time
from memcycle.stores.request import SearchRequest

_SELECT = (
    "SELECT row, id, speaker, CASE WHEN embedder = :embedder THEN vector END AS vector FROM entries WHERE "
)
# A vector of another embedder says nothing beside the query's.
_ALLOWED = """
scope_key = :scope AND (status = 'active' OR (status = 'staged' AND session = :session))
AND granularity IN (SELECT value FROM json_each(:granularities))
AND (expires_at IS NULL OR expires_at >= :now)
AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
AND (:speakers IS NULL OR speaker IN (SELECT value FROM json_each(:speakers)))
AND (:since IS NULL OR coalesce(event_time, observed_at) >= :since)
AND (:until IS NULL OR coalesce(event_time, observed_at) <= :until)
AND id NOT IN (SELECT value FROM json_each(:exclude))
"""
_NAMED = """
row IN (
    SELECT value FROM json_each(:rows)
    UNION SELECT row FROM entries WHERE id IN (SELECT value FROM json_each(:ids))
) AND """


@dataclass(frozen=True)
class Candidates:
    """Entries that may become hits, in the order of their ledger rows.

    Attributes:
        rows, ids: One of each a candidate.
        speakers: Who speaks in each, casefolded, '' where nobody does.
        vectors: (candidates, dim) float32, a zero row where an entry has no vector.
    """

    rows: list[int]
    ids: list[str]
    speakers: list[str]
    vectors: NDArray[np.float32]


@dataclass(frozen=True)
class Reader:
    """Reads what one request allows, by the clock `now`, with vectors of this embedder and dimension."""

    request: SearchRequest
    now: datetime
    embedder: str
    dim: int

    def all(self, conn: sqlite3.Connection) -> Candidates:
        """Every entry the request allows."""
        return self._read(conn, _SELECT + _ALLOWED, {})

    def named(self, conn: sqlite3.Connection, rows: Collection[int], ids: Collection[str]) -> Candidates:
        """Those of the given ledger rows and entry ids that the request allows."""
        return self._read(conn, _SELECT + _NAMED + _ALLOWED, {"rows": json_list(rows), "ids": json_list(ids)})

    def _read(self, conn: sqlite3.Connection, sql: str, named: dict[str, str]) -> Candidates:
        found = conn.execute(sql, self._parameters | named).fetchall()
        found.sort(key=lambda row: int(row[0]))
        blank = bytes(self.dim * np.dtype(np.float32).itemsize)
        vectors = np.frombuffer(b"".join(row[3] or blank for row in found), dtype=np.float32)
        return Candidates(
            rows=[row[0] for row in found],
            ids=[row[1] for row in found],
            speakers=[(row[2] or "").casefold() for row in found],
            vectors=vectors.reshape(len(found), self.dim),
        )

    @cached_property
    def _parameters(self) -> dict[str, str | None]:
        request, filters = self.request, self.request.filters
        return {
            "scope": request.scope.key,
            "session": request.scope.session,
            "granularities": json_list(request.granularities),
            "kinds": None if filters.kinds is None else json_list(filters.kinds),
            "speakers": None if filters.speakers is None else json_list(filters.speakers),
            "since": to_time(filters.since),
            "until": to_time(filters.until),
            "exclude": json_list(request.exclude),
            "now": to_time(self.now),
            "embedder": self.embedder,
        }
