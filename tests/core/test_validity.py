"""Event time decides, not arrival."""

from datetime import UTC, datetime

from memcycle.core.entry import is_older, new_entry, same_source
from memcycle.core.scope import Scope

SCOPE = Scope(user="ana", session="s")


def entry(event: datetime | None, observed: datetime | None, precision: str | None = None):
    return new_entry(
        SCOPE, "fact", "x", ("Ds:1",), event_time=event, observed_at=observed, event_precision=precision
    )


JANUARY, MARCH, MAY, JULY = (datetime(2024, month, 1, tzinfo=UTC) for month in (1, 3, 5, 7))


def test_event_time_decides_not_arrival():
    for mine, other, older in [
        ((None, MAY), (None, JULY), True),
        ((None, JULY), (None, MAY), False),
        ((MARCH, JULY), (None, MAY), True),
        ((None, MAY), (JULY, MARCH), False),
        ((None, None), (None, MAY), False),
        ((MAY, MAY), (MAY, MAY), False),
    ]:
        assert is_older(entry(*mine), entry(*other)) is older, mine


def test_what_is_dated_to_a_year_may_have_happened_at_its_end():
    assert not is_older(entry(JANUARY, JULY, "year"), entry(None, MAY))
    assert is_older(entry(JANUARY, JULY, "day"), entry(None, MAY))


def test_a_persons_correction_counts_from_when_it_was_made():
    said = entry(None, MAY)
    corrected = entry(MARCH, MARCH).model_copy(update={"supersedes": ("x",), "recorded_at": JULY})
    assert is_older(said, corrected)
    assert not is_older(corrected, said)
    made_by_a_role = corrected.model_copy(update={"actor": "refresher"})
    assert is_older(made_by_a_role, said)


def test_a_turn_and_what_was_read_from_it_have_the_same_source():
    raw = new_entry(SCOPE, "raw", "I x", ("Ds:1",))
    assert same_source(raw, entry(None, MAY))
    assert not same_source(entry(None, MAY), entry(None, JULY))
    assert not same_source(new_entry(SCOPE, "raw", "I x", ("Ds:2",)), entry(None, MAY))
