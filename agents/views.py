"""What roles are shown: turns and memories under small integers, never under store ids."""

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    model_validator,
)

from memcycle.core.entry import Entry, Granularity
from memcycle.core.turn import MessageType, Turn


class View(BaseModel):
    """Base of what stands in an input: plain data, no store ids."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RoleInput(View):
    """Base of all role inputs: plain data, no gold answers, no store ids."""

    def placeholders(self) -> dict[str, str]:
        """Text for each placeholder that the role's prompt may use."""
        raise NotImplementedError


class TurnView(View):
    """A turn under the number `n` it has in this call (1-based)."""

    n: int
    speaker: str
    role: MessageType
    text: str
    time: AwareDatetime

    @classmethod
    def of(cls, n: int, turn: Turn) -> "TurnView":
        """The turn as shown to a role."""
        return cls(n=n, speaker=turn.speaker, role=turn.role, text=turn.text, time=turn.time)


class MemoryView(View):
    """A stored entry under the number `n` it has in this call (0-based, as peers show them)."""

    n: int
    granularity: Granularity
    text: str
    speaker: str | None = None
    role: MessageType | None = None
    time: AwareDatetime | None = Field(None, description="when it was said")
    event_time: AwareDatetime | None = None
    event_precision: str | None = None
    current: bool = Field(True, description="False where its source is known to be superseded")
    score: float | None = Field(None, description="how well a search found it, 0 to 1; shown to no model")

    @classmethod
    def of(cls, n: int, entry: Entry, *, current: bool = True, score: float | None = None) -> "MemoryView":
        """The entry as shown to a role."""
        return cls(
            n=n,
            granularity=entry.granularity,
            text=entry.text,
            speaker=entry.speaker,
            role=entry.role,
            time=entry.observed_at,
            event_time=entry.event_time,
            event_precision=entry.event_precision,
            current=current,
            score=score,
        )


class RoleOutput(BaseModel):
    """Base of all role outputs. Unknown keys of a model's reply are dropped, missing ones are errors.

    A null stands for the field's default, since models write it where they have nothing to say.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    _cut: bool = PrivateAttr(default=False)

    @property
    def cut(self) -> bool:
        """Whether the reply was cut by the token limit and only its complete items are here."""
        return self._cut

    @model_validator(mode="before")
    @classmethod
    def _nulls_are_defaults(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: one for key, one in value.items() if one is not None}


def reply_time(value: Any, info: ValidationInfo) -> Any:
    """A time as models write it: a date alone, or one without zone, in the zone of the conversation.

    For `field_validator(mode="before")`. The zone comes from the validation context (`zone`), UTC without.
    What cannot be read becomes None: a fact is worth more than the reading of its date, and its words
    stay in the text.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=(info.context or {}).get("zone", UTC))
    return value


Purpose = Literal["remember", "recall"]
