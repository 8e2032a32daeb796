"""Which of two statements speaks for the later time: event time decides, not arrival."""

from datetime import datetime

from memcycle.core.entry import Entry
from memcycle.core.language.date_forms import end_of


def is_older(entry: Entry, than: Entry) -> bool:
    """Whether `entry` is evidence from before `than`.

    Evidence counts from when it happened, at the latest from when it was said: a plan for next year, said
    today, is today's evidence. What is dated only to a day or a year may have happened at the end of it. A
    person's correction counts from when it was made.
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
    if is_correction(entry):
        return entry.recorded_at
    happened = entry.event_time and end_of(entry.event_time, entry.event_precision or "minute")
    return min((time for time in (happened, entry.observed_at) if time), default=None)


def is_correction(entry: Entry) -> bool:
    """Whether a person edited a memory into this one, not a role."""
    return entry.actor == "user" and bool(entry.supersedes)


def _earliest(entry: Entry) -> datetime | None:
    if is_correction(entry):
        return entry.recorded_at
    return min((time for time in (entry.event_time, entry.observed_at) if time), default=None)
