"""An entry as Chroma holds it: the text as document, the rest as flat metadata any Chroma tool can read."""

import hashlib
import json
from datetime import datetime

from memcycle.core.entry import Entry, Granularity
from memcycle.core.scope import Scope

Metadata = dict[str, str | int | float | bool | None]

SCOPE_FIELD = "scope_key"
VIEW_FIELD = "view"


def scope_field(scope: Scope) -> str:
    """The base scope as one token of fixed length: compared whole, so 'ana' never meets 'ana2'."""
    return hashlib.blake2b(scope.key.encode(), digest_size=16).hexdigest()


def view_field(scope: Scope, granularity: Granularity) -> str:
    """Base scope and granularity in one field, since a second condition costs several times the first."""
    return f"{scope_field(scope)}:{granularity}"


def metadata_of(entry: Entry) -> Metadata:
    """The fields of an entry, flat; an absent one is None.

    No key is left out, because an upsert merges metadata: None takes an old value away.
    """
    return {
        SCOPE_FIELD: scope_field(entry.scope),
        VIEW_FIELD: view_field(entry.scope, entry.granularity),
        "user": entry.scope.user,
        "workspace": entry.scope.workspace,
        "session": entry.scope.session,
        "granularity": entry.granularity,
        "kind": entry.kind,
        "status": entry.status,
        "title": entry.title,
        "speaker": entry.speaker,
        "role": entry.role,
        "turns": json.dumps(entry.turns, ensure_ascii=False),
        "related_turns": json.dumps(entry.related_turns, ensure_ascii=False),
        "quote": entry.quote,
        "event_time": _iso(entry.event_time),
        "event_precision": entry.event_precision,
        "observed_at": _iso(entry.observed_at),
        "recorded_at": _iso(entry.recorded_at),
        "valid_from": _iso(entry.valid_from),
        "valid_until": _iso(entry.valid_until),
        "expires_at": _iso(entry.expires_at),
        "importance": entry.importance,
        "confidence": entry.confidence,
        "actor": entry.actor,
        "embedder": entry.embedder,
    }


def _iso(time: datetime | None) -> str | None:
    return time.isoformat() if time is not None else None
