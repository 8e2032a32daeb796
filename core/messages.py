"""Messages of any common shape, read as turns.

Understood: text, `(role, text)`, OpenAI-style dicts (also with the keys of the JSONL format) and
LangChain messages, also as `dumpd` and `messages_to_dict` write them. Only what was said is kept: text
parts and image captions, never image data, tool call arguments or a model's reasoning.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

from memcycle.core.errors import BadInput
from memcycle.core.turn import MessageType, Turn, read_time, sound

Fields = dict[str, Any]

ROLES: dict[str, MessageType] = {
    "human": "human",
    "user": "human",
    "ai": "ai",
    "assistant": "ai",
    "model": "ai",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
}
"""Role names of the usual chat formats."""

_IMAGE_DATA = re.compile(r"!\[([^\]]*)\]\(data:[^)\s]*\)")
_DATA_URI = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w.+-]+=[\w.+-]+)*;base64,[A-Za-z0-9+/=_-]*")
_TIMES = ("time", "timestamp", "created_at")
_CAPTIONS = ("caption", "alt")
_WORDLESS = ("tool_calls", "function_call", "refusal", "audio", "memcycle", *_CAPTIONS)
"""What a message may have in place of words."""
_MARKS = ("memcycle", "lc_source")
SUMMARY = "summarization"
"""`lc_source` of the message that LangChain puts in the place of old ones: nobody said it."""
WORDED = (
    "content", "text", *_CAPTIONS, "name", "speaker", "tool_calls", "additional_kwargs", "metadata",
    "kwargs", "data",
)  # fmt: skip
"""What of a message may hold words, and so secrets: what is read here and may be kept among checkpoints. Ids,
roles and times are none."""


def read_messages(
    messages: Any,
    *,
    session: str,
    now: datetime,
    zone: tzinfo,
    user_name: str = "user",
    assistant_name: str = "assistant",
) -> list[Turn]:
    """Turns from a message or a sequence of messages.

    A message without text gives no turn but keeps its place, so that a turn's position, and with it its
    identity, does not depend on what else was said. Messages marked as injected by memcycle (a
    `memcycle` key in the dict, in `additional_kwargs` or in `metadata`), and summaries that LangChain put in
    the place of old messages, give none either.

    Args:
        now: Time of messages that carry none (aware). zone: of times that name none.
        user_name: Speaker of human messages without a name. assistant_name: the same for AI messages.

    Raises:
        BadInput: a shape not understood; names the message's number, from 1, and the field.
    """
    names = {"human": user_name, "ai": assistant_name, "tool": "tool", "system": "system"}
    turns: list[Turn] = []
    for number, message in enumerate(_several(messages), start=1):
        try:
            fields = _fields(message)
            if fields is None:
                continue
            text, role, time = _text(fields), read_role(fields.get("role")), _time(fields, now, zone)
            named, own = _name(fields, "name"), _name(fields, "id")
        except ValueError as error:
            raise BadInput(f"message {number}: {error}") from error
        if text:
            said = Turn.at(
                session, number, speaker=named or names[role], role=role, text=text, time=time, message_id=own
            )
            turns.append(said)
    return turns


def sent_once(messages: Sequence[Any]) -> list[Any]:
    """A thread's messages without those sent again: what a person says twice before any answer is said once.

    A run that failed leaves its message in the thread, and who sends it again sends it under another id.
    """
    kept: list[Any] = []
    for message in messages:
        if not kept or message.type != "human" or _sent(kept[-1]) != _sent(message):
            kept.append(message)
    return kept


def _sent(message: Any) -> tuple[Any, ...]:
    return message.type, message.name, message.content


def read_role(value: object) -> MessageType:
    """The message type a role name stands for; ValueError for what is none of a usual chat format."""
    role = ROLES.get(value.strip().casefold()) if isinstance(value, str) else None
    if role is None:
        raise ValueError(
            f"field 'role': {_described(value)} is not one of {', '.join(ROLES)}; "
            "a person's name goes in 'name'"
        )
    return role


def clean_text(text: str) -> str:
    """The text as it can be stored: without image data, NUL and lone surrogates, and not padded."""
    text = _IMAGE_DATA.sub(lambda match: image_note(match[1]) or "[image]", text)
    return sound(_DATA_URI.sub("[data]", text).replace("\0", " ")).strip()


def image_note(caption: object) -> str:
    """How the caption of an image stands in a turn's text; empty without one."""
    words = clean_text(" ".join(caption.split())) if isinstance(caption, str) else ""
    return f"[image: {words}]" if words else ""


def _several(messages: Any) -> Iterable[Any]:
    if isinstance(messages, str | Mapping) or hasattr(messages, "content"):
        return [messages]
    if isinstance(messages, tuple) and len(messages) == 2 and all(isinstance(one, str) for one in messages):  # noqa: PLR2004 - (role, text)
        return [messages] if messages[0].casefold() in ROLES else messages
    if isinstance(messages, Sequence) and not isinstance(messages, bytes | bytearray):
        return messages
    raise BadInput(f"messages: {_described(messages)} is neither a message nor a list of messages")


def _fields(message: Any) -> Fields | None:
    """The message as a dict with `role`, `content`, `name`, `id` and times; None where it is no evidence."""
    if isinstance(message, str):
        return {"role": "human", "content": message}
    if isinstance(message, Mapping):
        fields = _of_dict(unpacked(message))
    elif isinstance(message, tuple | list) and len(message) == 2:  # noqa: PLR2004 - (role, text)
        fields = {"role": message[0], "content": message[1]}
    elif isinstance(getattr(message, "type", None), str) and hasattr(message, "content"):
        fields = _of_dict({"type": message.type, "content": message.content, **vars(message)})
    else:
        raise BadInput(
            f"{_described(message)} is no message: give text, (role, text), a dict or a LangChain message"
        )
    made_up = fields.get("memcycle") or fields.get("lc_source") == SUMMARY
    return None if fields.get("role") == "remove" or made_up else fields


def unpacked(message: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """The fields of a message; what `dumpd` and `messages_to_dict` put inside is brought out."""
    inner = message.get("kwargs") if message.get("lc") else message.get("data")
    if not isinstance(inner, Mapping) or "content" in message:
        return message
    path = message.get("id")
    named = str(path[-1]) if message.get("lc") and isinstance(path, list) and path else message.get("type")
    return {"type": named, **inner}


def _of_dict(message: Mapping[Any, Any]) -> Fields:
    if not any(key in message for key in ("content", "text", *_WORDLESS)):
        raise BadInput("field 'content' is missing: the words of a message stand there, or in 'text'")
    fields: Fields = {}
    for holder in ("response_metadata", "metadata", "additional_kwargs"):
        inner = message.get(holder)
        if isinstance(inner, Mapping):
            fields.update({key: inner[key] for key in (*_MARKS, *_TIMES) if inner.get(key) is not None})
    fields.update({str(key): value for key, value in message.items()})
    kind = message.get("type")
    # Streamed parts are named after their class: AIMessageChunk, HumanMessageChunk.
    kind = re.sub(r"Message(Chunk)?$", "", kind).casefold() if isinstance(kind, str) else kind
    fields["role"] = message.get("role", kind)
    fields["content"] = message.get("content", message.get("text"))
    fields["name"] = message.get("name", message.get("speaker"))
    return fields


def _text(fields: Fields) -> str:
    content = fields["content"]
    blocks = [] if content is None else [content] if isinstance(content, str) else content
    if not isinstance(blocks, list | tuple):
        raise BadInput(f"field 'content': {_described(content)} is neither text nor a list of content blocks")
    parts = [*(_block(index, block) for index, block in enumerate(blocks, start=1)), _caption(fields)]
    return "\n".join(part for part in map(clean_text, parts) if part)


def _block(index: int, block: Any) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, Mapping):
        raise BadInput(f"field 'content', block {index}: {_described(block)} is neither text nor a dict")
    if block.get("type") in ("text", "input_text", "output_text", None) and "text" in block:
        if not isinstance(block["text"], str):
            raise BadInput(f"field 'content', block {index}: 'text' is {_described(block['text'])}, not text")
        return block["text"]
    return _caption(block) or _caption(block.get("image_url"))


def _caption(block: Any) -> str:
    if not isinstance(block, Mapping):
        return ""
    return next((note for note in (image_note(block.get(key)) for key in _CAPTIONS) if note), "")


def _time(fields: Fields, now: datetime, zone: tzinfo) -> datetime:
    for key in _TIMES:
        if fields.get(key) is not None:
            try:
                return read_time(fields[key], zone)
            except ValueError as error:
                raise BadInput(f"field {key!r}: {error}") from error
    return now


def _name(fields: Fields, key: str) -> str | None:
    value = fields.get(key)
    if value is None or (isinstance(value, str) and not clean_text(value)):
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadInput(f"field {key!r}: {_described(value)} is not text")
    return clean_text(str(value))


def _described(value: object) -> str:
    """A value as an error may show it: short text as it stands, else its type."""
    return repr(value) if isinstance(value, str) and len(value) <= 40 else f"a {type(value).__name__}"  # noqa: PLR2004
