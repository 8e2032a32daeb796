"""What roles are shown: turns and memories under small integers, never under store ids, as marked data.

Text of people goes into prompts as it is, in any language and with any braces, so that a model can quote it
word for word; only what could close or open one of our own marks is defused.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PrivateAttr, ValidationInfo, model_validator
from typing_extensions import override

from memcycle.core.entry import Entry, Granularity
from memcycle.core.language.date_forms import Precision
from memcycle.core.turn import MessageType, Turn, sound_data

NONE = "(none)"

_MARKS = (
    "turns?|items?|window|memory|memories|queries|query|question|guidance|conflicts?|facts?|cites|near|now|"
    "tried|gap|avoid|purpose|style|way|new|round|other|against|speaker|time_need|gold|answer|proposal|"
    "objective|dimensions|attempts|patterns|failures|held|case"
)
# Whatever a model may read as "<", and over what it cannot see, such as spaces of no width.
_OURS = re.compile(rf"[<＜﹤](?=[^\w<＜﹤]{{0,20}}(?:{_MARKS})\b)", re.IGNORECASE)
_IN_ATTRIBUTES = str.maketrans(
    {"&": "&amp;", '"': "&quot;"} | dict.fromkeys("<＜﹤", "&lt;") | dict.fromkeys(">＞﹥", "&gt;")
)
# Not strftime("%A"): its names follow the locale of the process.
_EXACT = {"year": len("2025"), "month": len("2025-02"), "minute": len("2025-02-03 08:30")}
"""Characters of a time that is known so exactly; of a day, and of a span by its first day, ten."""
_SPANS = ("week", "season")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def escape(text: str) -> str:
    """A text as prompts show it: unchanged, except that it cannot open or close our marks."""
    return _OURS.sub("&lt;", text)


def time_text(time: datetime) -> str:
    """A time with its zone and weekday, which readings of "last Friday" need."""
    return f"{time.isoformat(timespec='minutes')} {_WEEKDAYS[time.weekday()]}"


def mark(name: str, attributes: Mapping[str, str | None], text: str) -> str:
    """A text between marks, with the attributes that are not None."""
    said = "".join(f' {key}="{_attribute(value)}"' for key, value in attributes.items() if value is not None)
    return f"<{name}{said}>{text}</{name}>"


def _attribute(value: str) -> str:
    """A value that cannot end its quotes, its mark or its line."""
    return " ".join(value.translate(_IN_ATTRIBUTES).split())


class View(BaseModel):
    """Base of what stands in an input: plain data, no store ids."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def markup(self) -> str:
        """As prompts show it: a plain record as one JSON object, without what is empty."""
        return escape(self.model_dump_json(exclude_defaults=True))


def shown(value: Any, name: str = "turn") -> str:  # noqa: PLR0911 - a kind of value a line
    """A value as prompts show it, by what it is.

    Args:
        value: Text, a time, a number, None, what has a `markup` of its own, or a list of these.
        name: How turns are marked.
    """
    if isinstance(value, TurnView):
        return value.markup(name)
    if hasattr(value, "markup"):
        return str(value.markup())
    if isinstance(value, list):
        if all(isinstance(one, MemoryView) for one in value):
            return listed(value) or NONE
        return "\n".join(_line(one) if isinstance(one, str) else shown(one, name) for one in value) or NONE
    if value is None:
        return NONE
    if isinstance(value, str):
        return escape(value)
    return time_text(value) if isinstance(value, datetime) else json.dumps(value)


def _line(text: str) -> str:
    return f"- {escape(' '.join(text.split()))}"


class RoleInput(View):
    """Base of all role inputs: plain data, no gold answers, no store ids."""

    def placeholders(self) -> dict[str, str]:
        """Text for each placeholder that the role's prompt may use: by its name what a field holds.

        Stored entries are `memories` to every prompt, whatever the field is called; turns that stand in
        `items` are marked as items.
        """
        return {
            "memories" if field.annotation == list[MemoryView] else name: shown(
                getattr(self, name), "item" if name == "items" else "turn"
            )
            for name, field in type(self).model_fields.items()
        }


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

    @override
    def markup(self, name: str = "turn") -> str:
        about = {"n": str(self.n), "speaker": self.speaker, "role": self.role, "time": time_text(self.time)}
        return mark(name, about, escape(self.text))


class MemoryView(View):
    """A stored entry under the number `n` it has in this call (0-based, as peers show them)."""

    n: int
    granularity: Granularity
    text: str
    speaker: str | None = None
    role: MessageType | None = None
    time: AwareDatetime | None = Field(None, description="when it was said")
    event_time: AwareDatetime | None = None
    event_precision: Precision | None = None
    current: bool = Field(True, description="False where its source is known to be superseded")
    until: AwareDatetime | None = Field(None, description="since when it is not current, where that is known")
    score: float | None = Field(None, description="how well a search found it, 0 to 1; shown to no model")

    @classmethod
    def of(
        cls,
        n: int,
        entry: Entry,
        *,
        current: bool = True,
        until: datetime | None = None,
        score: float | None = None,
    ) -> "MemoryView":
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
            until=until,
            score=score,
        )

    @override
    def markup(self, name: str = "memory") -> str:
        kind = "fact" if self.granularity == "fact" else None
        return mark(name, {"n": str(self.n), "kind": kind}, self.line())

    @property
    def day(self) -> str:
        """The day it was said, such as `Mon 2025-02-03`; empty where that is not known."""
        return f"{_WEEKDAYS[self.time.weekday()][:3]} {self.time.date().isoformat()}" if self.time else ""

    def line(self, *, dated: bool = True) -> str:
        """Day, speaker and words in few tokens: `Mon 2025-02-03 Ana: I teach fencing in Linz.`

        After the speaker, in brackets, what is out of the ordinary: that it is no person's own words, when it
        happened if that is another day, that it is no longer so.
        """
        role = {"ai": "assistant", "human": None}.get(self.role or "human", self.role)
        speaker = escape(" ".join((self.speaker or role or "").split()))
        notes = [
            "summary" if self.granularity == "episode" else "",
            role if role and speaker.casefold() != role else "",
            self._event(),
            "" if self.current else "no longer so",
        ]
        if not self.current and self.until:
            notes[-1] += f" since {self.until.date().isoformat()}"
        noted = "; ".join(filter(None, notes))
        head = " ".join(filter(None, (self.day if dated else "", speaker, f"({noted})" if noted else "")))
        return f"{head}: {escape(self.text)}" if head else escape(self.text)

    def _event(self) -> str:
        if self.event_time is None or (self.time and self.event_time.date() == self.time.date()):
            return ""
        day = self.event_time.isoformat(sep=" ")[
            : _EXACT.get(self.event_precision or "day", len("2025-02-03"))
        ]
        return f"event {self.event_precision} of {day}" if self.event_precision in _SPANS else f"event {day}"


def listed(memories: Sequence[MemoryView]) -> str:
    """Entries as a list, each under its day: `[3] Ana: I teach fencing in Linz.`, a fact as `[3 fact]`.

    Further lines of their words are indented, so that none of them begins as an entry or a day does.
    """
    lines, day = list[str](), ""
    for one in memories:
        if one.day != day:
            lines.append(day := one.day or "(no day)")
        kind = " fact" if one.granularity == "fact" else ""
        lines.append("\n  ".join(f"[{one.n}{kind}] {one.line(dated=False)}".splitlines()))
    return "\n".join(lines)


class RoleOutput(BaseModel):
    """Base of all role outputs. Unknown keys of a model's reply are dropped, missing ones are errors.

    A null stands for the field's default, since models write it where they have nothing to say. What they say
    is `sound` from here on, whatever they wrote.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    _cut: bool = PrivateAttr(default=False)
    _faults: tuple[str, ...] = PrivateAttr(default=())

    @property
    def cut(self) -> bool:
        """Whether the reply was cut by the token limit and only its complete items are here."""
        return self._cut

    @property
    def faults(self) -> tuple[str, ...]:
        """What of the reply could not be used and was left out or put right, by field, without values."""
        return self._faults

    @model_validator(mode="before")
    @classmethod
    def _said(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: sound_data(one) for key, one in value.items() if one is not None}


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
