"""Time, ids and waiting, injected everywhere so that tests and resumed runs repeat exactly."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True)
class World:
    """The three things a run takes from outside.

    Attributes:
        now: Gives the present as an aware datetime in UTC.
        new_id: Gives a fresh id for an event, a thread or a session (entries have derived ids).
        sleep: Waits that many seconds. Only called off the event loop.
    """

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex
    sleep: Callable[[float], None] = time.sleep
