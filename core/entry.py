"""One unit of memory, and how its id is made.

A fact that was contradicted, corrected or deleted takes the turns that say so down with it. One that left for
another reason must not: what its turns say still holds.
"""

import json
import re
import unicodedata
import uuid
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from pydantic import AwareDatetime, Field

from memcycle.core.language.date_forms import Precision, end_of
from memcycle.core.scope import Data, Scope
from memcycle.core.turn import MessageType

Granularity = Literal["raw", "fact", "episode"]
GRANULARITIES: tuple[Granularity, ...] = get_args(Granularity)
Kind = Literal["episodic", "semantic", "preference", "project_state", "working_summary", "procedural"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Status = Literal["staged", "active", "superseded", "forgotten"]
STATUSES: tuple[Status, ...] = get_args(Status)
Pattern = Literal["SV", "SVO", "SVC", "SVOO", "SVOC"]

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:memcycle:entry")


def entry_id(scope: Scope, turns: tuple[str, ...], granularity: Granularity, text: str) -> str:
    """The id an entry with this content has, always: a retried write lands on the same entry.

    uuid5 over a JSON array, so that no joined string of another entry can collide.
    """
    content = [scope.user, scope.workspace, scope.session, list(turns), granularity, text]
    return str(uuid.uuid5(_NAMESPACE, json.dumps(content, ensure_ascii=False)))


def same_speaker(one: str | None, other: str | None) -> bool:
    """Whether two facts are told of the same person, however the name is written."""
    return (one or "").casefold() == (other or "").casefold()


def same_text(text: str) -> str:
    """A text folded for exact-duplicate comparison: case, spacing, closing punctuation."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"\s+", " ", folded).strip().rstrip(".!?。！？ ")


class Entry(Data):
    """One unit of memory. Text is immutable: an edit inserts a successor.

    Vectors live in the ledger beside the entry, not in it, so that states and exports stay small.

    Attributes:
        scope: Owner, with the session it came from.
        turns: Ids of the source turns.
        related_turns: Ids of turns it refers to (AMA's R_t).
        quote: The span of the source that supports it.
        event_time: When what it says happened (start); its reading, the words stay in the text.
        event_precision: How exact `event_time` is.
        observed_at: Time of the source turn. recorded_at: when it was written.
        valid_from, valid_until: Validity; closed when superseded.
        importance, confidence: 0 to 1. reinforcement: 0 to 0.3, access_count: times recalled.
        supersedes: Ids of predecessors. superseded_by: id of the successor.
        actor: Role or person that made it, e.g. `constructor`, `user`. prompt, model, pipeline: versions.
    """

    id: str
    scope: Scope
    granularity: Granularity
    kind: Kind = "episodic"
    text: str
    title: str | None = None
    pattern: Pattern | None = None
    speaker: str | None = None
    role: MessageType | None = None
    turns: tuple[str, ...] = ()
    related_turns: tuple[str, ...] = ()
    quote: str | None = None
    event_time: AwareDatetime | None = None
    event_precision: Precision | None = None
    valid_from: AwareDatetime | None = None
    valid_until: AwareDatetime | None = None
    observed_at: AwareDatetime | None = None
    recorded_at: AwareDatetime | None = None
    entities: tuple[str, ...] = ()
    persons: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    importance: float = Field(default=0.5, ge=0, le=1)
    confidence: float = Field(default=1.0, ge=0, le=1)
    reinforcement: float = Field(default=0.0, ge=0, le=0.3)
    access_count: int = Field(default=0, ge=0)
    status: Status = "staged"
    supersedes: tuple[str, ...] = ()
    superseded_by: str | None = None
    embedder: str | None = None
    actor: str = "user"
    prompt: str | None = None
    model: str | None = None
    pipeline: str | None = None
    expires_at: AwareDatetime | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


def new_entry(
    scope: Scope, granularity: Granularity, text: str, turns: tuple[str, ...] = (), **fields: Any
) -> Entry:
    """An entry with its derived id. `scope` must carry the session.

    Raises:
        pydantic.ValidationError: a field out of shape or range.
    """
    own = entry_id(scope, turns, granularity, text)
    return Entry(id=own, scope=scope, granularity=granularity, text=text, turns=turns, **fields)


Departure = Literal["united", "renewed", "withdrawn", "expired", "corrected", "reworded"]
"""`united`: another entry says it, with its sources. `renewed`: a later summary of the same took its place.
`withdrawn`: what wrote it was taken back. `expired`: a retention limit passed. `corrected`: a person put
another text in its place. `reworded`: a turn, whose message was edited where it was said."""

_MARK = "departure"
CORRECTS = "corrects"
"""In the metadata of what was said to correct something."""


def departure(entry: Entry) -> Departure | None:
    """Why it left; None while it is recallable, and for what a role found contradicted or a user deleted."""
    found: Any = entry.metadata.get(_MARK)
    return found if found in get_args(Departure) else None


def departed(entry: Entry, why: Departure | None) -> dict[str, Any]:
    """Its metadata when it leaves for this reason; None leaves no mark, as on an entry that is back."""
    rest = {key: value for key, value in entry.metadata.items() if key != _MARK}
    return rest if why is None else {**rest, _MARK: why}


def is_older(entry: Entry, than: Entry) -> bool:
    """Whether `entry` is evidence from before `than`.

    Evidence counts from when it happened, at the latest from when it was said: a plan for next year, said
    today, is today's evidence. What is dated only to a day or a year may have happened at the end of it. A
    correction counts from when it was made, whatever day it speaks of.
    """
    mine, other = _latest(entry), _earliest(than)
    if mine is None or other is None:
        return False
    if mine == other and entry.event_time is not None and than.event_time is not None:
        return entry.event_time < than.event_time
    return mine < other


def same_source(first: Entry, second: Entry) -> bool:
    """Whether one is the raw turn or episode that the other was read from: two forms, not two statements."""
    return first.granularity != second.granularity and not set(first.turns).isdisjoint(second.turns)


def _latest(entry: Entry) -> datetime | None:
    happened = entry.event_time and end_of(entry.event_time, entry.event_precision or "minute")
    return _corrected_at(entry) or min((time for time in (happened, entry.observed_at) if time), default=None)


PERSON = "user"
"""Who changes entries by hand, as actor and in the log."""


def is_correction(entry: Entry) -> bool:
    """Whether a person edited a memory into this one, not a role."""
    return entry.actor == PERSON and bool(entry.supersedes)


def _earliest(entry: Entry) -> datetime | None:
    times = (entry.event_time, entry.observed_at)
    return _corrected_at(entry) or min((time for time in times if time), default=None)


def _corrected_at(entry: Entry) -> datetime | None:
    """When it was put right, by hand or in words; None for what corrects nothing."""
    if is_correction(entry):
        return entry.recorded_at
    return entry.observed_at if entry.metadata.get(CORRECTS) else None


DECAY, EVERY = 0.05, timedelta(days=30)
"""What importance loses in this time, evenly."""
FLOOR = 0.15
"""Decay stops here; what is less important from the start does not decay."""
MENTION, MOST = 0.05, 0.3
"""What a question that names it adds to an entry's reinforcement, and the most it can come to."""


def decayed(importance: float, reinforcement: float, since: datetime | None, now: datetime) -> float:
    """Importance as it is now, 0 to 1.3; computed when read, nothing is stored.

    Args:
        importance: As first given, 0 to 1. reinforcement: 0 to 0.3, which does not decay.
        since: When it was last said; None, like a time to come, means no decay.
        now: The moment it is read.
    """
    age = max(now - since, timedelta()) if since is not None else timedelta()
    return max(importance - DECAY * (age / EVERY), min(importance, FLOOR)) + reinforcement


def reinforced(reinforcement: float, mentions: int) -> float:
    """Reinforcement after further mentions, 0 to 0.3."""
    return round(min(reinforcement + MENTION * mentions, MOST), 4)
