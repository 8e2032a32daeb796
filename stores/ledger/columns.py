"""How core's values stand in SQLite columns: times as ISO text in UTC, lists as JSON, vectors as float32."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from memcycle.core.entry import Entry, same_text
from memcycle.core.scope import Scope
from memcycle.core.turn import sound

Vector = npt.NDArray[np.float32]

LISTS = (
    "turns", "related_turns", "entities", "persons", "locations", "topics", "keywords", "supersedes",
    "metadata",
)  # fmt: skip
LOCAL = ("event_time", "valid_from", "valid_until", "observed_at")
"""Times that are given back in the zone the source was said in: "yesterday" is a day of that zone."""
TIMES = (*LOCAL, "recorded_at", "expires_at")
PLAIN = (
    "id", "granularity", "kind", "text", "title", "pattern", "speaker", "role", "quote", "event_precision",
    "importance", "confidence", "reinforcement", "access_count", "status", "superseded_by", "embedder",
    "actor", "prompt", "model", "pipeline",
)  # fmt: skip

_AS_IS = (*PLAIN, *TIMES)
_NAMES = tuple(name for name in LISTS if name != "metadata")
_EMPTY = ("[]", "{}")
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode
"""Made once: `json.dumps` makes an encoder a call, which takes longer than what it writes."""


def to_time(value: datetime | None) -> str | None:
    """A time as text that sorts as it lies in time."""
    return value.astimezone(UTC).isoformat() if value is not None else None


def zone_of(value: datetime | None) -> int:
    """Minutes east of UTC of an aware time; 0 without one."""
    offset = value.utcoffset() if value is not None else None
    return int(offset.total_seconds()) // 60 if offset is not None else 0


def in_zone(text: str, minutes: int) -> datetime:
    """A stored time in a zone that many minutes east of UTC."""
    return datetime.fromisoformat(text).astimezone(timezone(timedelta(minutes=minutes)))


def to_json(value: Any) -> str:
    """A list or an object as JSON text."""
    return _ENCODE(value)


def digest(*parts: object) -> str:
    """A hash of a JSON array of parts: for comparing texts without keeping them."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=20).hexdigest()


def same_hash(text: str) -> str:
    """What texts that count as exact duplicates share."""
    return digest(same_text(text))


def to_vector(blob: bytes | None) -> Vector | None:
    """A stored vector, shape (dim,), None where there is none. A damaged one is shorter than it should be."""
    return np.frombuffer(blob, np.float32, len(blob) // 4) if blob is not None else None


def to_blob(vector: Vector | None) -> bytes | None:
    """A vector as bytes; None for a missing or a zero one, which has no direction to compare."""
    return vector.astype(np.float32).tobytes() if vector is not None and vector.any() else None


def entry_columns(entry: Entry) -> dict[str, Any]:
    """An entry as column values, without row, position and vector."""
    values: dict[str, Any] = {name: getattr(entry, name) for name in PLAIN}
    values.update({name: to_json(getattr(entry, name)) for name in LISTS})
    values.update({name: to_time(getattr(entry, name)) for name in TIMES})
    scope = entry.scope
    values.update(scope_key=scope.key, user=scope.user, workspace=scope.workspace, session=scope.session)
    values.update(same=same_hash(entry.text), zone=zone_of(entry.observed_at))
    return values


def to_entry(held: Mapping[str, Any]) -> Entry:
    """The entry that a row of the table `entries` holds, by column."""
    # Reading entries is the larger part of a search, and most lists are empty.
    values: dict[str, Any] = {name: held[name] for name in _AS_IS}
    if held["zone"]:
        values.update({name: in_zone(held[name], held["zone"]) for name in LOCAL if held[name]})
    values.update({name: _list(held[name]) for name in _NAMES if held[name] not in _EMPTY})
    if held["metadata"] not in _EMPTY:
        values["metadata"] = json.loads(held["metadata"])
    values["scope"] = scope_of(held["user"], held["workspace"], held["session"])
    return Entry.model_validate(values)


@lru_cache(maxsize=4096)
def _list(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


@lru_cache(maxsize=2048)
def scope_of(user: str, workspace: str, session: str | None = None) -> Scope:
    """The scope of stored names. Cached, since rows of one scope stand together."""
    return Scope(user=user, workspace=workspace, session=session)


IN = "IN (SELECT value FROM json_each(?))"
"""A condition on any number of values that are given by `json_list`: no SQL text is made of them."""


def json_list(values: Iterable[str] | Iterable[int]) -> str:
    """A parameter for `IN`."""
    return sound(to_json(list(values)))
