"""The dates of a statement for questions about it: taken out, written out in full, or asked for."""

import re
from datetime import datetime
from typing import NamedTuple

from memcycle.core.language.date_forms import Reading
from memcycle.core.language.dates import format_time, read_dates

_YEAR = re.compile(r"(?:1[0-9]|20)[0-9]{2}")
_BEFORE = re.compile(
    r"(?:^|[\s,(])(?:(?:just|only|back|early|late|later)\s+)?(?:on|in|at|during|over)\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_ADVERB = re.compile(r"(?:^|[\s,])(?:just|only|back|early|late|later|earlier|early\s+on)\s+$", re.IGNORECASE)
_BARE = re.compile(
    r"yesterday|today|tonight|tomorrow|last\b|next\b|this\b|the\s+(?:day|week|night|other)\b|.*\bago$",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"\b(?:since|until|till|by|before|after|from|to|through|for|of|every|each)\s+(?:the\s+)?$", re.IGNORECASE
)
_MODIFIED = re.compile(
    r"(?:\b(?:a|an|the|my|our|his|her|their|your|this|that|some|no|own|these|first|whole|about|like)|['’]s?|-)\s*$",
    re.IGNORECASE,
)
_FOLLOWS = re.compile(
    r"\s*(?:$|[.,;:!?()–—-]\s|[.,;:!?]|\s(?:and|but|so|to|with|for|at|in|on|from|because|where|which|when|while|after|before|as"
    r"|about|by|during|with|since)\b)",
    re.IGNORECASE,
)


class Dated(NamedTuple):
    """A statement with its dates settled.

    Attributes:
        plain: Without the time expressions that stand as adverbials; other relative ones are written out.
        full: With all time expressions written out.
        when: The exact time expression that says when it happened, None where there is none.
    """

    plain: str
    full: str
    when: Reading | None


def dated(text: str, said: datetime) -> Dated | None:
    """Settles the dates of a statement said at that time.

    None where a relative expression can neither be left out nor be written out, so that the statement
    would be true on that day only.
    """
    plain, full, when = text, text, None
    readings = read_dates(text, said)
    for reading in reversed(readings):
        begin, adverbial = _place(text, reading)
        if adverbial:
            exact = not reading.approximate
            when = reading if exact else when
            plain = _joined(plain[:begin], plain[reading.end :])
            full = _joined(full[:begin], full[reading.end :], f" {at(reading)}" if exact else "")
        elif not _YEAR.search(reading.text):
            if (
                reading.approximate
                or _MODIFIED.search(text[: reading.begin])
                or text[reading.end :][:1] in {"'", "’"}
            ):
                return None
            words = format_time(reading.start, reading.precision)
            plain = plain[: reading.begin] + words + plain[reading.end :]
            full = full[: reading.begin] + words + full[reading.end :]
    exact_ones = [reading for reading in readings if not reading.approximate]
    return Dated(plain.strip(), full.strip(), when if len(exact_ones) == 1 else None)


def at(reading: Reading) -> str:
    """A time as an adverbial: "on 7 May 2024", "in May 2024", "in the week of 6 May 2024"."""
    words = format_time(reading.start, reading.precision)
    on = reading.precision in ("day", "minute") or words.startswith("the weekend")
    return f"{'on' if on else 'in'} {words}"


def answer_of(reading: Reading, speaker: str) -> str:
    """A time as a probe's answer: the date first, then the speaker's words where they differ."""
    words = format_time(reading.start, reading.precision)
    said = " ".join(reading.text.split())
    return words if _YEAR.search(said) else f"{words} ({speaker}: “{said}”)"


def _place(text: str, reading: Reading) -> tuple[int, bool]:
    """Where the expression with its preposition begins, and whether it stands as an adverbial."""
    before, after = text[: reading.begin], text[reading.end :]
    follows = _FOLLOWS.match(after) is not None or (not before.strip() and after[:2].strip()[:1].isupper())
    led = None if _BARE.match(reading.text) else _BEFORE.search(before)
    if match := led or _ADVERB.search(before):
        before = before[: match.start()]
    elif _LIMIT.search(before) or _MODIFIED.search(before):
        return reading.begin, False
    opens = not before.strip(" ,")
    return len(before), follows or opens


def _joined(left: str, right: str, between: str = "") -> str:
    """Two parts with one space between; what opens a sentence is closed by a comma."""
    if not left.strip():
        opening = between.strip()
        lead = f"{opening[:1].upper()}{opening[1:]}, " if opening else ""
        return lead + right.lstrip(" ,-–—")
    end = right.lstrip()
    glue = "" if not end or end[0] in ".,;:!?)" else " "
    return f"{left.rstrip()}{between}{glue}{end}"
