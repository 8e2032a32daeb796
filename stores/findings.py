"""What is wrong with a home, as findings: each named, counted, and told with what is done about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from memcycle.stores.ledger.connection import RESTORE

Report = Mapping[str, Any]
"""What `upkeep.check` gives."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    Attributes:
        name: Of its kind, one of `KINDS`.
        count: How often it was found.
        words: What it is. Tells no text of any entry.
        remedy: What a person does about it where the doctor cannot.
    """

    name: str
    count: int
    words: str
    remedy: str


class _Kind(NamedTuple):
    number: Callable[[Report], int]
    words: str
    remedy: str


_EMBEDDER = (
    "see that the embedder can be reached and has the model it had (else `memcycle doctor --reembed`), then"
    " run `memcycle doctor` again"
)
_AGAIN = "run `memcycle doctor` again, and `memcycle doctor --rebuild` if it stays"


def _index(name: str) -> Callable[[Report], int]:
    return lambda report: report.get("index", {}).get(name, 0)


def _mismatch(report: Report) -> int:
    recorded = report["embedder"]["recorded"]
    return int(recorded is not None and recorded != report["embedder"]["current"])


_KINDS: dict[str, _Kind] = {
    "ledger_damaged": _Kind(
        lambda report: len(report["damage"]), "complaints of SQLite about the ledger's file", RESTORE
    ),
    "ledger_indexes": _Kind(
        lambda report: len(report["bad_indexes"]), "complaints of SQLite about indexes of the ledger", RESTORE
    ),
    "other_embedder": _Kind(
        _mismatch,
        "embedder other than the one in use made the vectors",
        "name that one with --embedder, or run `memcycle doctor --reembed`",
    ),
    "wipes_owed": _Kind(itemgetter("wipes_owed"), "wipes of forgotten text not finished", _AGAIN),
    "collections_owed": _Kind(
        itemgetter("collections_owed"),
        "collections of the Chroma server that held forgotten text, which its files keep while they stand",
        "run `memcycle doctor` again, with the embedder and shards that this memory has",
    ),
    "orphan_sources": _Kind(itemgetter("orphan_sources"), "sources that do not fit their entries", _AGAIN),
    "orphan_links": _Kind(itemgetter("orphan_links"), "links to entries that are not there", _AGAIN),
    "orphan_item_vectors": _Kind(
        lambda report: report["items"]["orphan_vectors"], "vectors of store items that are not there", _AGAIN
    ),
    "lexical_drift": _Kind(
        itemgetter("lexical_drift"), "rows of the lexical view missing or left over", _AGAIN
    ),
    "without_vector": _Kind(
        itemgetter("without_vector"),
        "entries without a vector (found by their words only)",
        _EMBEDDER,
    ),
    "unfit_vectors": _Kind(
        itemgetter("unfit_vectors"),
        "vectors of another embedder or length than the recorded one",
        _EMBEDDER,
    ),
    "stuck_sessions": _Kind(
        itemgetter("stuck_sessions"),
        "sessions that wait for an end nobody is making",
        "end them: `memcycle sessions verify SESSION --user NAME`",
    ),
    "outbox": _Kind(itemgetter("outbox"), "changes the index was not told of", _AGAIN),
    "index_unusable": _Kind(
        lambda report: int(report["index_trouble"] is not None), "vector index that cannot be used", _AGAIN
    ),
    "index_missing": _Kind(_index("missing"), "entries missing in the index", _AGAIN),
    "index_stray": _Kind(_index("stray"), "entries left over in the index", _AGAIN),
    "index_outdated": _Kind(
        itemgetter("index_outdated"), "copies in the index that differ from their entries", _AGAIN
    ),
    "index_leftover": _Kind(
        itemgetter("index_leftover"), "collections from another number of shards", _AGAIN
    ),
    "items_missing": _Kind(
        lambda report: report["items"]["missing"], "vectors of store items missing in the index", _AGAIN
    ),
    "items_stray": _Kind(
        lambda report: report["items"]["stray"] + report["items"]["unused"],
        "vectors or collections of store items left over in the index",
        _AGAIN,
    ),
}

KINDS = tuple(_KINDS)
"""Names of findings, in the order in which they are told and mended."""


def found(report: Report) -> list[Finding]:
    """What a report says is wrong."""
    counted = [(name, kind.number(report), kind) for name, kind in _KINDS.items()]
    return [
        Finding(name, count, kind.words, kind.remedy.format(home=report["home"]))
        for name, count, kind in counted
        if count
    ]


def damaged(why: str) -> Finding:
    """The ledger cannot even be opened or read."""
    return Finding("ledger_damaged", 1, "ledger that cannot be read", why)
