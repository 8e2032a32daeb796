"""Conversations as JSON Lines, one turn a line.

Each line is `{"session", "speaker", "role", "text", "time", "id"?, "caption"?}`: role human, ai, tool or
system (user and assistant are accepted), time ISO 8601, the caption that of an image, kept in the turn's
text. Lines of one session may lie apart; sessions keep the order of their first line. A line with neither
words nor a caption gives no turn but keeps its place.
"""

import json
import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from memcycle.core.errors import BadInput
from memcycle.core.messages import clean_text, image_note, read_role
from memcycle.core.scope import MAX_NAME
from memcycle.core.turn import Conversation, Session, Turn, read_time, turn_id

_REQUIRED = ("session", "speaker", "role", "text", "time")
_TURN = {*_REQUIRED, "id", "caption"}
WORDLESS = "messages without words"
_NAMED = 8
"""Fields told by name."""


class Unread:
    """What a reader left out of a file, to be told of once; `undated`: the time of messages without one."""

    undated: datetime | None = None

    def __init__(self) -> None:
        self._fields, self._others = Counter[str](), Counter[str]()

    def see(self, record: Mapping[str, Any], known: Collection[str]) -> None:
        """Counts the record's fields that are not known."""
        self._fields.update(str(key) for key in record if key not in known)

    def left(self, what: str, count: int = 1) -> None:
        """Counts what else is left out, in words."""
        self._others[what] += count

    def notes(self) -> tuple[str, ...]:
        """All of it, in words."""
        told = [f"left out: {count} {what}" for what, count in self._others.items() if count]
        if self._fields:
            names = ", ".join(f"{name!r:.60} ({count})" for name, count in self._fields.most_common(_NAMED))
            more = len(self._fields) - _NAMED
            told.append(f"fields that are not read: {names}" + (f" and {more} more" if more > 0 else ""))
        if self.undated is not None:
            told.append(f"messages without a time were given that of the file, {self.undated:%Y-%m-%d %H:%M}")
        return tuple(told)


def read_file(path: Path) -> str:
    """The text of a file in UTF-8, or in UTF-16 with its mark, as shells of Windows write into one.

    Raises:
        BadInput: no such file, a folder, no permission, not UTF-8.
    """
    try:
        with path.open("rb") as file:
            wide = file.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE)
        return path.read_text("utf-16" if wide else "utf-8-sig")
    except FileNotFoundError:
        raise BadInput(f"no such file: {path}") from None
    except IsADirectoryError:
        raise BadInput(f"{path} is a folder; name a file in it") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8 text") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; BadInput where there is none to be read."""
    return _object(read_file(path), str(path))


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise BadInput(f"{where} is not a JSON object but {type(content).__name__}")
    return content


def write_object(path: Path, content: Mapping[str, Any]) -> None:
    """Writes a JSON object as `write_file` does."""
    write_file(path, json.dumps(content, indent=2) + "\n")


def write_file(path: Path, text: str) -> None:
    """Writes a file of its owner's alone, whole or not at all; BadInput where it cannot be written."""
    import tempfile  # loads more than the rest of this file

    try:
        # A new one: nobody can lay a link in its place that is written through.
        handle, part = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(part).replace(path)
        except OSError:
            Path(part).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from None


def read_records(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a text, one a line, each with its record number from 1. Blank lines are skipped.

    Raises:
        BadInput: a line that is not a JSON object; names the record.
    """
    number = 0
    for place, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        number += 1
        where = f"record {number}" if number == place else f"record {number} (line {place})"
        yield number, _object(line, where)


def read_jsonl(text: str, *, zone: tzinfo, name: str = "conversation") -> Conversation:
    """A conversation from JSON Lines; see `read_turns`."""
    records = ((f"record {number}", record) for number, record in read_records(text))
    return read_turns(records, zone=zone, name=name)


def read_turns(records: Iterable[tuple[str, dict[str, Any]]], *, zone: tzinfo, name: str) -> Conversation:
    """A conversation from the objects of such lines, each with the words that name it in an error.

    Args:
        zone: Of times that name none.
        name: Id of the conversation, the file's name say.

    Raises:
        BadInput: a bad record; names it and its field, and the turn where one is known.
    """
    counts: dict[str, int] = {}
    sessions: dict[str, list[Turn]] = {}
    named: dict[tuple[str, str], str] = {}
    unread = Unread()
    for where, record in records:
        turn = _turn(where, record, counts, zone)
        unread.see(record, _TURN)
        if turn is None:
            unread.left(WORDLESS)
            continue
        sessions.setdefault(turn.session, []).append(turn)
        first = named.setdefault((turn.session, turn.message_id), where) if turn.message_id else where
        if first != where:
            raise BadInput(
                f"{where}: id {turn.message_id!r} is that of {first} already; give each turn of a session an "
                "id of its own, or none"
            )
    said = tuple(Session(key, tuple(turns)) for key, turns in sessions.items())
    return Conversation(name, said, unread.notes())


def read_name(where: str, record: dict[str, Any], key: str) -> str:
    """The name or number in a field, as text; BadInput where it is neither, blank or too long."""
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadInput(f"{where}: field {key!r} is {type(value).__name__}, not a name")
    word = clean_text(str(value))
    if not word or len(word) > MAX_NAME:
        raise BadInput(f"{where}: field {key!r} is blank or longer than {MAX_NAME} characters")
    return word


def _turn(where: str, record: dict[str, Any], counts: dict[str, int], zone: tzinfo) -> Turn | None:
    if "granularity" in record and "scope" in record:
        raise BadInput(f"{where} is a memory entry, not a turn: read it with `memcycle import`")
    missing = [key for key in _REQUIRED if record.get(key) is None]
    if missing:
        has = ", ".join(sorted(record)[:8]) or "nothing"
        raise BadInput(
            f"{where}: field {missing[0]!r} is missing; a turn has {', '.join(_REQUIRED)} (found: {has})"
        )
    session = read_name(where, record, "session")
    counts[session] = position = counts.get(session, 0) + 1
    where = f"{where} (turn {turn_id(session, position)})"
    for key in ("text", "caption"):
        if record.get(key) is not None and not isinstance(record[key], str):
            raise BadInput(f"{where}: field {key!r} is {type(record[key]).__name__}, not text")
    try:
        role = read_role(record["role"])
    except ValueError as error:
        raise BadInput(f"{where}: {error}") from None
    try:
        time = read_time(record["time"], zone)
    except ValueError as error:
        raise BadInput(f"{where}: field 'time': {error}") from None
    speaker = read_name(where, record, "speaker")
    message_id = None if record.get("id") is None else read_name(where, record, "id")
    words = " ".join(part for part in (clean_text(record["text"]), image_note(record.get("caption"))) if part)
    if not words:
        return None
    return Turn.at(
        session, position, speaker=speaker, role=role, text=words, time=time, message_id=message_id
    )
