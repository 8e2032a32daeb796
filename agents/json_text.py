"""Finding JSON in text that has other things around it, with no repair but of trailing commas."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

DECODER = json.JSONDecoder(strict=False)
"""Literal line breaks inside strings are taken: models write them, and they cannot be mistaken."""

_FENCE = re.compile(r"\A```[\w-]*\s*\n(.*?)\n?\s*```\Z", re.DOTALL)
_ANY = re.compile(r"[{\[]")


class Found(NamedTuple):
    """JSON values of a text in order, and what broke if one began and did not end."""

    values: list[Any]
    broken: str


def whole_json(text: str) -> Any:
    """The value where the text (or its only fence) is one JSON value and nothing else, else None."""
    fenced = _FENCE.match(text)
    bare = fenced.group(1).strip() if fenced else text
    if bare[:1] not in ("{", "["):
        return None
    first = next(_spans(bare), None)
    return first.value if first and not first.broken and first.end == len(bare) else None


def find_json(text: str) -> Found:
    """The outermost JSON values of a text, in order."""
    spans = list(_spans(text))
    broken = next((span.broken for span in spans if span.broken), "")
    return Found([span.value for span in spans if not span.broken], broken)


class _Span(NamedTuple):
    value: Any
    end: int
    broken: str


def _spans(text: str) -> Iterator[_Span]:
    """Outermost JSON values of a text. After one that breaks the search goes on behind the break, so that
    its inner parts are not taken for answers and the time stays linear."""
    position = 0
    while match := _ANY.search(text, position):
        start = match.start()
        try:
            value, position, text = _decode(text, start)
            yield _Span(value, position, "")
        except json.JSONDecodeError as error:
            began = bool(text[start + 1 : error.pos].strip()) or error.msg.startswith("Unterminated")
            position = max(error.pos, start + 1)
            if began:
                yield _Span(None, position, f"broken JSON at character {error.pos - start}: {error.msg}")
        except RecursionError:
            yield _Span(None, len(text), "the JSON is nested too deeply")
            return


def _decode(text: str, start: int) -> tuple[Any, int, str]:
    """The value at `start`, its end, and the text, in which trailing commas became spaces."""
    while True:
        try:
            value, end = DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            comma = _trailing_comma(text, start, error.pos)
            if comma is None:
                raise
            text = f"{text[:comma]} {text[comma + 1 :]}"
        else:
            return value, end, text


def _trailing_comma(text: str, start: int, position: int) -> int | None:
    """Where the parser stopped because of a comma before a closing bracket: the comma's place.

    The parser itself says where it stopped, so commas inside strings are never touched. Pythons differ in
    whether they point at the comma or at the bracket.
    """
    if text[position : position + 1] in ("]", "}"):
        position = start + len(text[start:position].rstrip()) - 1
    closes = text[position + 1 :].lstrip()[:1] in ("]", "}")
    return position if text[position : position + 1] == "," and closes else None
