"""A clock for tests: it stands until it is moved."""

from datetime import UTC, datetime, timedelta

START = datetime(2024, 3, 1, 9, tzinfo=UTC)


class HandClock:
    """Gives the time it was set to."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time

    def pass_(self, seconds: float) -> None:
        """Moves it on."""
        self.time += timedelta(seconds=seconds)
