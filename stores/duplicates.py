"""Which facts say the same, or less, and which of two then stands for both."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from memcycle.core.entry import Entry, is_correction, same_speaker
from memcycle.core.language.dates import read_dates
from memcycle.core.language.restatement import Relation, content_of, restates

_LATEST = datetime.max.replace(tzinfo=UTC)
_ANY = datetime(2000, 1, 1, tzinfo=UTC)


class United(NamedTuple):
    """A fact that stands for another from now on."""

    keep: Entry
    drop: Entry

    @property
    def ids(self) -> frozenset[str]:
        """Ids of both."""
        return frozenset((self.keep.id, self.drop.id))


def relation(one: Entry, other: Entry, least: float) -> Relation | None:
    """How two facts relate that are one statement of one person and occasion; None where they are not.

    Args:
        least: Share of words they must have in common, see `restates`.
    """
    if one.granularity != "fact" or other.granularity != "fact":
        return None
    if "working_summary" in (one.kind, other.kind) or _occasion(one) != _occasion(other):
        return None
    if not same_speaker(one.speaker, other.speaker):
        return None
    found = restates(one.text, other.text, least)
    return found if found and _dates(one) == _dates(other) else None


def union(one: Entry, other: Entry, least: float) -> United | None:
    """Which of two facts stands for both, None where neither does.

    The one that says more; of equals the more important, else the earlier. What a person corrected is never
    dropped for what a role wrote.
    """
    found = relation(one, other, least)
    if found is None:
        return None
    keep, drop = (one, other) if found == "more" or (found == "same" and _first(one, other)) else (other, one)
    if is_correction(drop):
        return None if found != "same" or is_correction(keep) else United(drop, keep)
    return United(keep, drop)


def alike(facts: Sequence[Entry]) -> Iterable[tuple[Entry, Entry]]:
    """All pairs of which one holds every content word of the other, each once: no other can be a union.

    A fact is compared only with those that hold its rarest word.
    """
    content = [content_of(fact.text) for fact in facts]
    holders: dict[str, list[int]] = {}
    for at, words in enumerate(content):
        for word in words:
            holders.setdefault(word, []).append(at)
    for at, words in enumerate(content):
        rarest = min((holders[word] for word in words), key=len, default=[])
        for other in rarest:
            # Of two with the same words each is found by the other; the later one is the one to tell of it.
            if other != at and words <= content[other] and (other < at or words != content[other]):
                yield facts[at], facts[other]


def unions(
    pairs: Iterable[tuple[Entry, Entry]], least: float, *, separated: Iterable[frozenset[str]] = ()
) -> list[United]:
    """The unions among pairs of facts, in the order they are to be made, each as the facts stand by then.

    Args:
        separated: Ids of pairs that somebody took apart again.
    """
    never = set(separated)
    now: dict[str, Entry] = {}
    heirs: dict[str, Entry] = {}

    def standing(fact: Entry) -> Entry:
        """The fact as it stands by then, or the one that stands for it."""
        while fact.id in heirs:
            fact = heirs[fact.id]
        return now.get(fact.id, fact)

    chosen = []
    for pair in sorted(pairs, key=lambda pair: sorted(map(_age, pair))):
        one, other = sorted(map(standing, pair), key=_age)
        ids = frozenset((one.id, other.id))
        if len(ids) == 1 or ids in never:
            continue
        found = union(one, other, least)
        if found is not None:
            chosen.append(found)
            heirs[found.drop.id] = found.keep
            greater = max(one.importance, other.importance)
            now[found.keep.id] = found.keep.model_copy(update={"importance": greater})
    return chosen


def _age(entry: Entry) -> tuple[datetime, str]:
    return entry.observed_at or entry.recorded_at or _LATEST, entry.id


def _first(one: Entry, other: Entry) -> bool:
    """Whether the first of two equals is the one to keep."""
    return (-one.importance, _age(one)) < (-other.importance, _age(other))


def _occasion(entry: Entry) -> object:
    """When it happened, where that is known and not only the time of saying it."""
    said_only = entry.event_time is None or entry.event_time == entry.observed_at
    return None if said_only else (entry.event_time, entry.event_precision)


def _dates(entry: Entry) -> object:
    """The dates that its words name. Those of a statement of unknown time are like no other's."""
    if entry.observed_at is None:
        return entry.id if read_dates(entry.text, _ANY) else frozenset()
    return frozenset((one.start, one.precision) for one in read_dates(entry.text, entry.observed_at))
