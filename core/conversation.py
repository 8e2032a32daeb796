"""A whole conversation: sessions of turns, as files hold them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memcycle.core.errors import BadInput
from memcycle.core.turn import Turn


@dataclass(frozen=True)
class Session:
    """One session and its turns, in the order they were said."""

    name: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True)
class Conversation:
    """Sessions in the order they took place. `name` is the id its source gives it."""

    name: str
    sessions: tuple[Session, ...]

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns of all sessions, in order."""
        return tuple(turn for session in self.sessions for turn in session.turns)

    def select(self, spec: str) -> "Conversation":
        """Only the sessions that a range such as `1-3`, `2`, `4-` or `1,3-5` names.

        Numbers are session names where all sessions are numbered, else places in the file from 1.

        Raises:
            BadInput: not a range, or a range that holds no session.
        """
        numbers = _numbers(self.sessions)
        wanted = [_bounds(part, numbers) for part in spec.split(",")]
        for part, (low, high) in zip(spec.split(","), wanted, strict=True):
            if not any(low <= number <= high for number in numbers):
                raise BadInput(
                    f"session range {part.strip()!r} holds no session: {self.name!r} has {_span(numbers)}"
                )
        chosen = [
            session
            for session, number in zip(self.sessions, numbers, strict=True)
            if any(low <= number <= high for low, high in wanted)
        ]
        return replace(self, sessions=tuple(chosen))


def _numbers(sessions: Sequence[Session]) -> list[int]:
    names = [session.name for session in sessions]
    if all(re.fullmatch(r"[0-9]{1,9}", name) for name in names):
        return [int(name) for name in names]
    return list(range(1, len(names) + 1))


def _bounds(part: str, numbers: Sequence[int]) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,9})(?:\s*(-)\s*([0-9]{1,9})?)?", part.strip())
    if not match:
        raise BadInput(f"session range {part.strip()!r} is not of the form 2, 1-3, 4- or 1,3-5")
    low = int(match[1])
    high = int(match[3]) if match[3] else (max(numbers, default=low) if match[2] else low)
    if high < low and match[3]:
        raise BadInput(f"session range {part.strip()!r} runs backwards: write {high}-{low}")
    return low, high


def _span(numbers: Sequence[int]) -> str:
    return f"sessions {min(numbers)} to {max(numbers)}" if numbers else "no sessions"
