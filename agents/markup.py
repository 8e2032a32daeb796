"""How inputs are written in prompts: turns and memories as marked data.

Text of people goes in as it is, in any language and with any braces, so that a model can quote it word for
word; only what could close or open one of our own marks is defused.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime

from memcycle.agents.views import MemoryView, TurnView, View

NONE = "(none)"

_MARKS = (
    "turns?|items?|window|memory|memories|queries|query|question|guidance|conflicts?|facts?|cites|near|now|"
    "tried|gap|avoid|purpose|style|way|new|round|other|against|speaker|time_need|gold|answer|proposal|"
    "objective|dimensions|attempts|patterns|failures|held"
)
# Whatever a model may read as "<", and over what it cannot see, such as spaces of no width.
_OURS = re.compile(rf"[<＜﹤](?=[^\w<＜﹤]{{0,20}}(?:{_MARKS})\b)", re.IGNORECASE)
_IN_ATTRIBUTES = str.maketrans(
    {
        "&": "&amp;",
        '"': "&quot;",
        "<": "&lt;",
        "＜": "&lt;",
        "﹤": "&lt;",
        ">": "&gt;",
        "＞": "&gt;",
        "﹥": "&gt;",
    }
)
# Not strftime("%A"): its names follow the locale of the process.
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


def turn_text(turn: TurnView, name: str = "turn") -> str:
    """A turn: number, speaker, role, time, words."""
    about = {"n": str(turn.n), "speaker": turn.speaker, "role": turn.role, "time": time_text(turn.time)}
    return mark(name, about, escape(turn.text))


def turns_text(turns: Iterable[TurnView], name: str = "turn") -> str:
    """Turns, one mark each."""
    return lines_text(turn_text(turn, name) for turn in turns)


def memory_text(memory: MemoryView, name: str = "memory") -> str:
    """A stored entry: number, granularity, speaker, times, words."""
    about = {
        "n": str(memory.n),
        "granularity": memory.granularity,
        "speaker": memory.speaker,
        "role": memory.role,
        "said": time_text(memory.time) if memory.time else None,
        "happened": time_text(memory.event_time) if memory.event_time else None,
        "precision": memory.event_precision,
        "current": None if memory.current else "no",
    }
    return mark(name, about, escape(memory.text))


def memories_text(memories: Iterable[MemoryView], name: str = "memory") -> str:
    """Stored entries, one mark each."""
    return lines_text(memory_text(memory, name) for memory in memories)


def list_text(texts: Iterable[str]) -> str:
    """Short texts as a list, one a line."""
    return lines_text(f"- {escape(' '.join(text.split()))}" for text in texts)


def records_text(values: Iterable[View]) -> str:
    """Plain records, one JSON object a line, without what is empty."""
    return lines_text(escape(value.model_dump_json(exclude_defaults=True)) for value in values)


def lines_text(lines: Iterable[str]) -> str:
    """Lines that are written already, or the word for none."""
    return "\n".join(lines) or NONE
