"""Reading the times that messages and files carry."""

import math
from datetime import UTC, datetime, tzinfo

_EPOCH_MILLISECONDS = 1e11
"""Numbers from here on are milliseconds: as seconds they would lie after the year 5138."""


def read_time(value: object, zone: tzinfo) -> datetime:
    """An aware datetime from a datetime, ISO 8601 text, or seconds (or milliseconds) since 1970.

    Args:
        value: What the source gave.
        zone: Zone of times that name none.

    Raises:
        ValueError: not a time; the words say what was found and what is expected.
    """
    time = _parse(value)
    # A day of room on both sides: later conversions between zones must not overflow.
    if not 1 < time.year < 9999:  # noqa: PLR2004 - the range of datetime itself
        raise ValueError(f"{value!r} lies outside the years 2 to 9998")
    return time if time.tzinfo is not None and time.utcoffset() is not None else time.replace(tzinfo=zone)


def _parse(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(f"{value!r} is not ISO 8601 such as 2024-05-08T13:56:00+00:00") from None
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        seconds = value / 1000 if abs(value) >= _EPOCH_MILLISECONDS else value
        try:
            return datetime.fromtimestamp(seconds, UTC)
        except (ValueError, OverflowError, OSError):
            raise ValueError(f"{value!r} is no number of seconds since 1970") from None
    raise ValueError(
        f"{type(value).__name__} is not a time: give ISO 8601 text, a datetime or seconds since 1970"
    )
