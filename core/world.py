"""Time, ids and waiting, injected everywhere so that tests and resumed runs repeat exactly."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True)
class World:
    """The three things a run takes from outside: the present, as an aware time in UTC; a fresh id of an
    event, a thread or a session (entries have derived ones); waiting, in seconds and off the event loop."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex
    sleep: Callable[[float], None] = time.sleep
