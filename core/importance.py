"""How much an entry counts as time passes (EvolveMem 3.1): it fades, and questions that name it lift it."""

from datetime import datetime, timedelta

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
