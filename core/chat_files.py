"""Conversations as other programs write them: ChatGPT, clients of OpenAI's API, LangChain and LangGraph.

Each chat of a file becomes a session, named by its own id where it has one, so that a later export of the
same chats is known again. What is no part of what was said is left out, and told of.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

from memcycle.core.errors import BadInput
from memcycle.core.jsonl import WORDLESS, Unread, read_name
from memcycle.core.messages import ROLES, read_messages, unpacked
from memcycle.core.turn import Conversation, Session, read_time

_MESSAGE = {
    "role", "type", "content", "text", "name", "speaker", "id", "time", "timestamp", "created_at", "caption",
    "alt", "metadata", "additional_kwargs", "response_metadata", "usage_metadata", "tool_calls",
    "invalid_tool_calls", "tool_call_chunks", "tool_call_id", "function_call", "artifact", "status",
    "refusal", "annotations", "audio", "example", "chunk_position",
}  # fmt: skip
_CHAT = {"messages", "id", "conversation_id", "thread_id", "title", "created_at", "time"}
_SNAPSHOT = ("values", "next", "config", "metadata", "created_at", "parent_config", "tasks", "interrupts")
"""Fields of LangGraph's `StateSnapshot`, which JSON gives as a list."""
_THREAD = {
    *_SNAPSHOT, "thread_id", "channel_values", "checkpoint", "checkpoint_id", "updated_at", "ts", "v", "id",
    "state_updated_at", "parent_checkpoint", "parent_checkpoint_id", "status", "error", "extracted",
    "channel_versions", "versions_seen", "updated_channels",
}  # fmt: skip
_EXPORTED = {
    "id", "author", "create_time", "update_time", "content", "status", "end_turn", "weight", "metadata",
    "recipient", "channel",
}  # fmt: skip
"""Fields of a message in ChatGPT's export."""


class _Chat(NamedTuple):
    """A chat with its messages as `read_messages` takes them; without an id, or a time, where it has none."""

    id: Any
    began: Any
    messages: Sequence[Any]


def read_chats(items: Sequence[Any], *, zone: tzinfo, name: str, now: datetime) -> Conversation | None:
    """The chats of a file as one conversation; None where its values are nothing of the kind.

    Args:
        items: The JSON values of the file: its lines, the members of its list, or its one object.
        zone: Zone of times that name none.
        name: Id of the conversation, the file's name say; a chat without an id is named after it.
        now: Time of messages where neither they nor their chat have one, the file's say (aware).

    Raises:
        BadInput: a bad message; names the chat, the message and the field.
    """
    items = [_named(item) for item in ([items] if _named(items) is not items else items)]
    kinds = {"message": _is_message, "chat": _is_chat}
    kind = next((kind for kind, fits in kinds.items() if items and fits(items[0])), None)
    if kind is None:
        return None
    for number, item in enumerate(items, 1):
        if not kinds[kind](item):
            raise BadInput(f"record {number} is no {kind}, as record 1 is")
    unread = Unread()
    chats = [_Chat(None, None, items)] if kind == "message" else [_chat(item, unread) for item in items]
    sessions: dict[str, list[_Chat]] = {}
    for number, chat in enumerate(chats, start=1):
        own = name if len(chats) == 1 else f"{name}-{number}"
        session = own if chat.id is None else read_name(f"chat {number}", {"id": chat.id}, "id")
        sessions.setdefault(session, []).append(chat)
    read = [_session(key, chats, now, zone, unread) for key, chats in sessions.items()]
    said = sorted((one for one in read if one.turns), key=lambda one: one.turns[0].time)
    return Conversation(name, tuple(said), unread.notes())


def _session(name: str, chats: Sequence[_Chat], now: datetime, zone: tzinfo, unread: Unread) -> Session:
    """One session; states of a thread hold the messages of the states before them again."""
    messages: dict[object, Any] = {}
    try:
        times = {at: read_time(chat.began, zone) for at, chat in enumerate(chats) if chat.began is not None}
        for at in sorted(range(len(chats)), key=lambda at: times.get(at, now)):
            for number, message in enumerate(chats[at].messages):
                fields = unpacked(message) if isinstance(message, Mapping) else {}
                unread.see(fields, _MESSAGE)
                own = fields.get("id")
                messages[(number, str(message)) if own is None else str(own)] = message
        began = min(times.values(), default=now)
        turns = read_messages([*messages.values()], session=name, now=began, zone=zone)
    except ValueError as error:
        raise BadInput(f"chat {name!r}: {error}") from None
    unread.left(WORDLESS, len(messages) - len(turns))
    if not times and any(turn.time == now for turn in turns):
        unread.undated = now
    return Session(name, tuple(turns))


def _is_message(item: Any) -> bool:
    if isinstance(item, list):
        return len(item) == 2 and all(isinstance(one, str) for one in item) and item[0].casefold() in ROLES  # noqa: PLR2004 - (role, text)
    if not isinstance(item, Mapping) or "session" in item:
        return False
    fields = unpacked(item)
    return ("role" in fields or "type" in fields) and not fields.keys().isdisjoint({"content", "tool_calls"})


def _is_chat(item: Any) -> bool:
    if not isinstance(item, Mapping):
        return False
    listed = item.get("messages")
    held = isinstance(listed, list) and (not listed or _is_message(listed[0]))
    return held or isinstance(item.get("mapping"), Mapping) or _is_state(item)


def _named(item: Any) -> Any:
    """The item; the fields of a snapshot by name."""
    if isinstance(item, list) and len(item) == len(_SNAPSHOT):
        named = dict(zip(_SNAPSHOT, item, strict=True))
        return named if _is_state(named) else item
    return item


def _is_state(item: Mapping[str, Any]) -> bool:
    """Whether it is a thread of LangGraph, a state of one, or a checkpoint."""
    values = item.get("values", item.get("channel_values", 0))
    marked = not item.keys().isdisjoint({"thread_id", "checkpoint", "config", "channel_versions"})
    return marked and isinstance(values, dict | list | None)


def _chat(item: Mapping[str, Any], unread: Unread) -> _Chat:
    if isinstance(item.get("mapping"), Mapping):
        return _exported(item, unread)
    if "messages" in item:
        unread.see(item, _CHAT)
        own = _first(item.get(key) for key in ("thread_id", "conversation_id", "id"))
        return _Chat(own, item.get("created_at", item.get("time")), item["messages"])
    unread.see(item, _THREAD)
    values = item.get("values", item.get("channel_values")) or {}
    held = {"messages": values} if isinstance(values, list) else values
    listed = {key: one for key, one in held.items() if isinstance(one, list) and one and _is_message(one[0])}
    said = "messages" if "messages" in listed else next(iter(listed), "")
    unread.see(held, (said, "messages"))
    config = _object(item.get("config")).get("configurable")
    places = map(_object, (item, item.get("checkpoint"), config, item.get("metadata")))
    own = _first(place.get("thread_id") for place in places)
    return _Chat(own, item.get("created_at", item.get("ts")), listed.get(said, []))


def _first(values: Iterable[Any]) -> Any:
    return next((one for one in values if one is not None), None)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _exported(item: Mapping[str, Any], unread: Unread) -> _Chat:
    """A chat of ChatGPT's export: the branch that was shown last; others were edited or generated anew."""
    nodes = {key: _object(node) for key, node in item["mapping"].items()}
    path: list[str] = []
    at = item.get("current_node") or next(
        (key for key in reversed(nodes) if not nodes[key].get("children")), None
    )
    while isinstance(at, str) and at in nodes and at not in path:
        path.append(at)
        at = nodes[at].get("parent")
    messages, time = [], item.get("create_time")
    for message in (_object(nodes[key].get("message")) for key in reversed(path)):
        unread.see(message, _EXPORTED)
        author, content = _object(message.get("author")), _object(message.get("content"))
        kind, to = content.get("content_type", "text"), message.get("recipient") or "all"
        hidden = _object(message.get("metadata")).get("is_visually_hidden_from_conversation")
        if kind not in ("text", "multimodal_text") or to != "all" or hidden:
            unread.left(
                f"messages that nobody said ({'hidden' if hidden else kind if to == 'all' else f'to {to}'})"
            )
        elif message and author.get("role") != "system":
            time = message.get("create_time") or time
            said = {"name": author.get("name"), "content": content.get("parts") or [], "time": time}
            messages.append({"role": author.get("role"), "id": message.get("id"), **said})
    others = sum(bool(node.get("message")) for key, node in nodes.items() if key not in path)
    unread.left("messages of branches that were edited or generated anew", others)
    return _Chat(item.get("conversation_id", item.get("id")), item.get("create_time"), messages)
