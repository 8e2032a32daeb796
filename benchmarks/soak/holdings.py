"""Everything that is stored in the end, read past the product: the ledger's tables, Chroma's collections."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.soak.findings import Held
from benchmarks.soak.plan import marks
from memcycle.memory import Memory

if TYPE_CHECKING:
    from chromadb.api.client import Client

API, LEDGER, INDEX = "API", "ledger", "Chroma"
RECALLED = ("active", "staged")
PAGE = 1_000
_TEXTS_OF = """
SELECT user, 'events' AS source, coalesce(before, '') || ' ' || coalesce(after, '') || ' ' || why AS text
    FROM events JOIN (SELECT DISTINCT scope_key, user FROM sessions) USING (scope_key)
UNION ALL
SELECT user, 'probes', data FROM probes JOIN (SELECT DISTINCT scope_key, user FROM sessions) USING (scope_key)
UNION ALL
SELECT user, 'turns', text FROM turns JOIN (SELECT DISTINCT scope_key, user FROM sessions) USING (scope_key)
"""


def by_api(memory: Memory, user: str) -> Iterator[Held]:
    """What a user is told of by the public API."""
    for entry in memory.memories(user=user):
        yield Held(user, API, entry.text, whole=True, raw=entry.granularity == "raw")


def in_ledger(path: Path) -> Iterator[Held]:
    """What the ledger's tables hold, of any status, with its log and its probes."""
    with sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True) as conn:
        for user, text, granularity, status in conn.execute(
            "SELECT user, text || ' ' || coalesce(quote, '') || entities || persons || locations || topics"
            " || keywords, granularity, status FROM entries"
            " WHERE granularity <> 'raw' UNION ALL"
            " SELECT user, text, granularity, status FROM entries WHERE granularity = 'raw'"
        ):
            whole = status in RECALLED
            yield Held(user, LEDGER, text, whole=whole, raw=whole and granularity == "raw")
        for user, source, text in conn.execute(_TEXTS_OF):
            yield Held(user, f"{LEDGER}: {source}", text)


def in_chroma(api: "Client") -> Iterator[Held]:
    """What Chroma holds, whatever collection it stands in."""
    for collection in api.list_collections():
        for offset in range(0, collection.count(), PAGE):
            page = collection.get(limit=PAGE, offset=offset, include=["documents", "metadatas"])
            for text, about in zip(page["documents"] or [], page["metadatas"] or [], strict=True):
                yield Held(
                    str(about["user"]), INDEX, text or "", whole=True, raw=about["granularity"] == "raw"
                )


def in_files(home: Path, gone: set[str]) -> Iterator[tuple[str, str]]:
    """Forgotten marks that a file of the home still holds, as (file, mark)."""
    for path in sorted(home.rglob("*")):
        if path.is_file():
            for mark in sorted(gone & marks(path.read_bytes().decode("latin-1"))):
                yield str(path.relative_to(home)), mark
