"""One message of a conversation."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AwareDatetime

from memcycle.core.errors import BadInput
from memcycle.core.scope import Data

MessageType = Literal["human", "ai", "tool", "system"]


def sound(text: str) -> str:
    """The text with what UTF-8, and so SQLite, files and models, refuse as U+FFFD: NUL and half a surrogate
    pair. Two halves that belong together become their character."""
    text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def sound_data(value: Any) -> Any:
    """The same of every text in JSON data, keys too."""
    if isinstance(value, str):
        return sound(value)
    if isinstance(value, Mapping):
        return {sound_data(key): sound_data(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(sound_data, value))
    return value


Sound = Annotated[str, AfterValidator(sound)]
"""Text from outside."""


def turn_id(session: str, position: int) -> str:
    """`D{session}:{turn}`, the id of the turn at a 1-based position."""
    return f"D{session}:{position}"


class Turn(Data):
    """A message as it was said, the smallest thing memory rests on.

    Attributes:
        id: `D{session}:{turn}`, unique in its base scope.
        position: 1-based place in the session.
        speaker: Name of who speaks.
        role: Message type. In a chat of two people both are human.
        text: What was said; an image caption stands in it as `[image: ...]`.
        time: When it was said, timezone-aware.
        message_id: The id its source gave it, when it gave one; the identity for ingesting it once.
    """

    id: Sound
    session: Sound
    position: int
    speaker: Sound
    role: MessageType = "human"
    text: Sound
    time: AwareDatetime
    message_id: Sound | None = None

    @classmethod
    def at(cls, session: str, position: int, **said: Any) -> Self:
        """The turn at a 1-based place of a session."""
        return cls(id=turn_id(session, position), session=session, position=position, **said)

    @property
    def is_evidence(self) -> bool:
        """Whether a fact about a person may rest on it: only what a person said."""
        return self.role == "human"


@dataclass(frozen=True)
class Session:
    """One session and its turns, in the order they were said."""

    name: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True)
class Conversation:
    """Sessions in the order they took place; `notes` tell what its reader left out of the source."""

    name: str
    sessions: tuple[Session, ...]
    notes: tuple[str, ...] = ()

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
        names = [session.name for session in self.sessions]
        named = all(re.fullmatch(r"[0-9]{1,9}", name) for name in names)
        numbers = [int(name) for name in names] if named else list(range(1, len(names) + 1))
        wanted = {number for part in spec.split(",") for number in self._numbers(part.strip(), numbers)}
        numbered = zip(self.sessions, numbers, strict=True)
        return replace(self, sessions=tuple(session for session, number in numbered if number in wanted))

    def _numbers(self, part: str, numbers: Sequence[int]) -> list[int]:
        match = re.fullmatch(r"([0-9]{1,9})(?:\s*(-)\s*([0-9]{1,9})?)?", part)
        if not match:
            raise BadInput(f"session range {part!r} is not of the form 2, 1-3, 4- or 1,3-5")
        low = int(match[1])
        high = int(match[3]) if match[3] else (max(numbers, default=low) if match[2] else low)
        found = [number for number in numbers if low <= number <= high]
        if not found:
            there = f"sessions {min(numbers)} to {max(numbers)}" if numbers else "no sessions"
            raise BadInput(f"session range {part!r} holds no session: {self.name!r} has {there}")
        return found


_EPOCH_MILLISECONDS = 1e11
"""Numbers from here on are milliseconds: as seconds they would lie after the year 5138."""


def read_time(value: object, zone: tzinfo) -> datetime:
    """An aware datetime from a datetime, ISO 8601 text, or seconds (or milliseconds) since 1970.

    Args:
        zone: Of times that name none.

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
