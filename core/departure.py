"""Why an entry left recall: a mark in its metadata, kept with it while it is away.

A fact that was contradicted, corrected or deleted takes the turns that say so down with it. One that left for
another reason must not: what its turns say still holds.
"""

from typing import Any, Literal, get_args

from memcycle.core.entry import Entry

Departure = Literal["united", "renewed", "withdrawn", "expired", "corrected"]
"""`united`: another entry says it, with its sources. `renewed`: a later summary of the same took its place.
`withdrawn`: what wrote it was taken back. `expired`: a retention limit passed. `corrected`: a person put
another text in its place."""

_MARK = "departure"


def departure(entry: Entry) -> Departure | None:
    """Why it left; None while it is recallable, and for what a role found contradicted or a user deleted."""
    found: Any = entry.metadata.get(_MARK)
    return found if found in get_args(Departure) else None


def departed(entry: Entry, why: Departure | None) -> dict[str, Any]:
    """Its metadata when it leaves for this reason; None leaves no mark, as on an entry that is back."""
    rest = {key: value for key, value in entry.metadata.items() if key != _MARK}
    return rest if why is None else {**rest, _MARK: why}
