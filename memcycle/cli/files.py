"""Conversation files of the formats memcycle reads, told apart by what is in them."""

import json
from datetime import tzinfo
from pathlib import Path
from typing import Any, Literal

from memcycle.core.errors import BadInput
from memcycle.core.jsonl import read_file, read_jsonl, read_records
from memcycle.core.turn import Conversation
from memcycle.evals.datasets.jsonl import read_samples
from memcycle.evals.datasets.locomo import read_locomo

Format = Literal["auto", "locomo", "jsonl"]


def read_conversations(path: Path, *, zone: tzinfo, form: Format = "auto") -> list[Conversation]:
    """The conversations of a file.

    JSON Lines of turns hold one, named after the file; JSON Lines of conversations, as `memcycle eval jsonl`
    reads them, hold one a line.

    Args:
        path: The file.
        zone: Zone of times that name none.
        form: `auto` takes a JSON list, or an object with a `conversation`, for LoCoMo, else JSON Lines.

    Raises:
        BadInput: a file that cannot be read, or is not of its format; names the record and the field.
    """
    text = read_file(path)
    if not text.strip():
        raise BadInput(f"{path} is empty; it should hold turns, one JSON object a line")
    try:
        return _read(text, path.stem, zone, form)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _read(text: str, name: str, zone: tzinfo, form: Format) -> list[Conversation]:
    whole = _as_locomo(text) if form != "jsonl" else None
    if whole is not None:
        return [sample.conversation for sample in read_locomo(whole, zone=zone)]
    if form == "locomo":
        raise BadInput("it is not LoCoMo data: a list of samples, each with a 'conversation'")
    _, first = next(read_records(text))
    # Exported entries have turns too, but also a text; they are refused as turns, with words for them.
    if "turns" in first and "text" not in first:
        return [sample.conversation for sample in read_samples(text, zone=zone)]
    return [read_jsonl(text, zone=zone, name=name)]


def choose(conversations: list[Conversation], name: str | None) -> Conversation:
    """The conversation with a name, or the only one.

    Raises:
        BadInput: no such name, none named although there are several, or no turns in it.
    """
    names = [conversation.name for conversation in conversations]
    if name is None and len(conversations) > 1:
        raise BadInput(f"the file holds {len(names)} conversations; choose one of them: {', '.join(names)}")
    if not names:
        raise BadInput("the file holds no conversation")
    found = [conversation for conversation in conversations if name in (None, conversation.name)]
    if not found:
        raise BadInput(f"no conversation {name!r} in the file; it holds {', '.join(names) or 'none'}")
    if not found[0].turns:
        raise BadInput(f"conversation {found[0].name!r} is empty: it has no turn with text")
    return found[0]


def _as_locomo(text: str) -> Any | None:
    """The parsed file where it is one JSON value of LoCoMo's outer shape; None where it is not."""
    try:
        whole = json.loads(text)
    except ValueError:
        return None
    except RecursionError:
        raise BadInput("the JSON is nested too deeply") from None
    return whole if isinstance(whole, list) or (isinstance(whole, dict) and "conversation" in whole) else None
