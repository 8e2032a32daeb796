"""An entry as Chroma holds it: the text as document, the rest as flat metadata any Chroma tool can read."""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from memcycle.core.entry import GRANULARITIES, Entry, Granularity
from memcycle.core.scope import Scope

Matrix = npt.NDArray[np.float32]
Item = tuple[Entry, Matrix]
Metadata = dict[str, str | int | float | bool | None]

VIEW_FIELD = "view"
_REST = {
    "status", "title", "role", "related_turns", "quote", "event_precision", "recorded_at", "valid_from",
    "valid_until", "expires_at", "importance", "confidence", "actor", "embedder",
}  # fmt: skip


def scope_field(scope: Scope) -> str:
    """The base scope as one token of fixed length: compared whole, so 'ana' never meets 'ana2'."""
    return hashlib.blake2b(scope.key.encode(), digest_size=16).hexdigest()


def view_field(scope: Scope, granularity: Granularity) -> str:
    """Base scope and granularity in one field, since a second condition costs several times the first."""
    return f"{scope_field(scope)}:{granularity}"


def where(scope: Scope, granularity: Granularity | None) -> dict[str, Any]:
    """The condition for entries of a base scope, of all granularities where none is named."""
    if granularity is not None:
        return {VIEW_FIELD: view_field(scope, granularity)}
    return {VIEW_FIELD: {"$in": [view_field(scope, name) for name in GRANULARITIES]}}


def metadata_of(entry: Entry) -> Metadata:
    """The fields of an entry, flat; an absent one is None.

    No key is left out, because an upsert merges metadata: None takes an old value away. A new copy needs no
    None (see `records_of`).

    What one may want to filter by has a key of its own; the rest is one JSON object under `rest`, since each
    key is a row with an index entry in Chroma's tables, which is what most of a write's time goes to.
    """
    rest = entry.model_dump(mode="json", include=_REST, exclude_none=True)
    return {
        VIEW_FIELD: view_field(entry.scope, entry.granularity),
        "user": entry.scope.user,
        "workspace": entry.scope.workspace,
        "session": entry.scope.session,
        "granularity": entry.granularity,
        "kind": entry.kind,
        "speaker": entry.speaker,
        "turns": json.dumps(entry.turns, ensure_ascii=False),
        "event_time": _iso(entry.event_time),
        "observed_at": _iso(entry.observed_at),
        "rest": json.dumps(rest, ensure_ascii=False),
    }


def records_of(items: Sequence[Item], *, new: bool) -> dict[str, Any]:
    """Entries with their vectors as arguments of a collection's `add` (`new`) or `upsert`.

    In Chroma's tables a None is a deletion, which a copy that is not there yet does not need.
    """
    fields = [metadata_of(entry) for entry, _ in items]
    if new:
        fields = [{key: value for key, value in one.items() if value is not None} for one in fields]
    return {
        "ids": [entry.id for entry, _ in items],
        "embeddings": np.stack([vector for _, vector in items]),
        "documents": [entry.text for entry, _ in items],
        "metadatas": fields,
    }


def _iso(time: datetime | None) -> str | None:
    return time.isoformat() if time is not None else None
