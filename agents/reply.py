"""Reading of a model's reply: its text or tool call, the JSON in it, and the output that it holds.

Tolerated: reasoning before the answer, prose, fences, trailing commas, literal line breaks in strings, a
bare list where one list is all that is asked. Of values that do not fit, the least is given up: a number out
of range goes to its bound, an optional field to its default, an item of a list is left out. What leaves
nothing that could be used is an error for the model to put right.
"""

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_origin

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel, ValidationError

from memcycle.agents.views import RoleOutput
from memcycle.core.errors import all_complaints
from memcycle.core.turn import sound

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

DECODER = json.JSONDecoder(strict=False)
"""Literal line breaks inside strings are taken: models write them, and they cannot be mistaken."""

_FENCE = re.compile(r"\A```[\w-]*\s*\n(.*?)\n?\s*```\Z", re.DOTALL)
_ANY = re.compile(r"[{\[]")


class Unreadable(ValueError):
    """A reply that does not hold the output asked for. `str(error)` is told to the model."""


class NoAnswer(ValueError):
    """The model or its provider gave no answer. Asking again in the same words is no use."""


class _Span(NamedTuple):
    """A JSON value in a text and its end; or what broke, where one began and did not end."""

    value: Any
    end: int
    broken: str = ""


def whole_json(text: str) -> Any:
    """The value where the text (or its only fence) is one JSON value and nothing else, else None."""
    fenced = _FENCE.match(text)
    bare = fenced.group(1).strip() if fenced else text
    if bare[:1] not in ("{", "["):
        return None
    first = next(_spans(bare), None)
    return first.value if first and not first.broken and first.end == len(bare) else None


def _spans(text: str) -> Iterator[_Span]:
    """Outermost JSON values of a text. After one that breaks the search goes on behind the break, so that
    its inner parts are not taken for answers and the time stays linear."""
    position = 0
    while match := _ANY.search(text, position):
        start = match.start()
        try:
            value, position, text = _decode(text, start)
            yield _Span(value, position)
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


Output = TypeVar("Output", bound=RoleOutput)

_REASONING = r"think|thinking|thought|reasoning"
_BLOCK = re.compile(rf"<({_REASONING})>.*?</\1>|\[THINK\].*?\[/THINK\]", re.DOTALL | re.IGNORECASE)
_CLOSE = re.compile(rf"\A.*(?:</(?:{_REASONING})>|\[/THINK\])", re.DOTALL | re.IGNORECASE)
_OPEN = re.compile(rf"(?:<(?:{_REASONING})>|\[THINK\]).*", re.DOTALL | re.IGNORECASE)


def read_reply(
    message: BaseMessage, model: type[Output], *, context: Mapping[str, Any] | None = None
) -> Output:
    """The output in a reply: from tool call arguments where there are any, else from its text.

    Args:
        context: Handed to the model's validators (`zone`: the zone of times without one).

    Raises:
        NoAnswer: a refusal or a content filter.
        Unreadable: no JSON, broken JSON, the schema echoed, or nothing that fits; says which field.
    """
    _check_refusal(message)
    arguments = _tool_arguments(message, model)
    if arguments is not None:
        return _validate(arguments, model, context)
    text = reply_text(message)
    if not text:
        raise Unreadable("the reply is empty")
    return _choose(text, model, context)


def reply_text(message: BaseMessage) -> str:
    """The text of a reply: parts of type text only, without reasoning blocks."""
    return drop_reasoning(message.text)


def reply_words(message: BaseMessage) -> str:
    """What the model said, for excerpts and re-asks: its text, else its tool call arguments."""
    return sound(reply_text(message) or "\n".join(text for _, text in _raw_calls(message)))


def drop_reasoning(text: str) -> str:
    """The text after (or without) reasoning blocks, also where the opening mark was lost."""
    text = text.strip()
    if whole_json(text) is not None:
        return text  # the marks, if any, stand inside a string of the answer
    text = _BLOCK.sub("", text)
    text = _CLOSE.sub("", text)
    return _OPEN.sub("", text).strip()


def was_cut(message: BaseMessage) -> bool:
    """Whether the reply ended because the token limit was reached."""
    return bool(_ends(message) & {"length", "max_tokens", "max_output_tokens"})


def output_tokens(message: BaseMessage) -> int:
    """Output tokens the provider reported, 0 when it did not."""
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    return int(usage["output_tokens"]) if usage else 0


def list_field(model: type[BaseModel]) -> str | None:
    """Name of the one required field where that is a list, else None."""
    required = [name for name, info in model.model_fields.items() if info.is_required()]
    if len(required) != 1 or get_origin(model.model_fields[required[0]].annotation) is not list:
        return None
    return required[0]


def complete_items(
    message: BaseMessage, model: type[Output], *, context: Mapping[str, Any] | None = None
) -> Output:
    """What a cut reply holds whole: the items of its one list field that ended before the cut.

    Raises:
        NoAnswer: the output is not a single list, or no item of it is complete.
        Unreadable: complete items that do not fit.
    """
    field = list_field(model)
    if field is None:
        raise NoAnswer("the reply was cut off by the token limit")
    strings = [text for _, text in _raw_calls(message)] or [reply_text(message)]
    items = _items_of(strings[0], field)
    if not items:
        raise NoAnswer("the reply was cut off by the token limit before its first item ended")
    return _validate({field: items}, model, context)


def _items_of(text: str, field: str) -> list[Any]:
    start = re.search(rf'"{re.escape(field)}"\s*:\s*\[', text)
    items: list[Any] = []
    position = start.end() if start else len(text)
    while (match := re.compile(r"[\s,]*").match(text, position)) and match.end() < len(text):
        try:
            item, position = DECODER.raw_decode(text, match.end())
        except (json.JSONDecodeError, RecursionError):
            break
        if position >= len(text):
            break  # a bare number or literal at the very end may itself be cut
        items.append(item)
    return items


def _check_refusal(message: BaseMessage) -> None:
    refusal = message.additional_kwargs.get("refusal")
    parts = message.content if isinstance(message.content, list) else []
    if refusal or any(isinstance(part, dict) and part.get("type") == "refusal" for part in parts):
        raise NoAnswer("the model refused to answer")
    if _ends(message) & {"content_filter", "refusal", "safety", "prohibited_content", "blocklist"}:
        raise NoAnswer("the provider's content filter stopped the reply")


def _ends(message: BaseMessage) -> set[str]:
    """Reasons a provider gives for the end of a reply, in lower case (their keys differ by provider)."""
    meta = message.response_metadata
    said = [meta.get(key) for key in ("finish_reason", "stop_reason", "done_reason")]
    said.append((meta.get("incomplete_details") or {}).get("reason"))
    return {str(reason).lower() for reason in said if reason}


def _raw_calls(message: BaseMessage) -> list[tuple[dict[str, Any] | None, str]]:
    """Tool calls as (arguments, their raw text); arguments None where the client could not parse."""
    if not isinstance(message, AIMessage):
        return []
    good = [(dict(call["args"]), json.dumps(call["args"], ensure_ascii=False)) for call in message.tool_calls]
    bad = [(None, call["args"] or "") for call in message.invalid_tool_calls]
    return [*good, *bad]


def _tool_arguments(message: BaseMessage, model: type[BaseModel]) -> dict[str, Any] | None:
    """Arguments of the tool call. Several calls that each bring part of one list are joined."""
    calls = _raw_calls(message)
    if not calls:
        return None
    found = [arguments if arguments is not None else _only_dict(text) for arguments, text in calls]
    field = list_field(model)
    if field is not None and len(found) > 1 and all(isinstance(one.get(field), list) for one in found):
        return {field: [item for one in found for item in one[field]]}
    return found[0]


def _only_dict(text: str) -> dict[str, Any]:
    spans = list(_spans(text))
    if len(spans) == 1 and isinstance(spans[0].value, dict):
        return spans[0].value
    raise Unreadable(_broken(spans) or "the arguments are not one JSON object")


def _broken(spans: Sequence[_Span]) -> str:
    return next((span.broken for span in spans if span.broken), "")


def _choose(text: str, model: type[Output], context: Mapping[str, Any] | None) -> Output:
    """The last object that fits, else that can be made to; else a bare list where one list is all that is
    asked."""
    spans = list(_spans(text))
    values, broken = [span.value for span in spans if not span.broken], _broken(spans)
    objects = [value for value in values if isinstance(value, dict)]
    error: Unreadable | None = None
    for mend in (False, True):
        for value in reversed(objects):
            try:
                return _validate(value, model, context, mend=mend)
            except Unreadable as raised:
                error = error or raised
    field = list_field(model)
    if field and not broken and len(values) == 1 and isinstance(values[0], list):
        items = values[0]
        # A list of plain words in prose may be anything; alone it is the answer.
        if whole_json(text) is not None or (items and all(isinstance(item, dict) for item in items)):
            return _validate({field: items}, model, context)
    if broken:
        raise Unreadable(broken)
    raise error or Unreadable("the reply holds no JSON object")


def _validate(
    value: dict[str, Any], model: type[Output], context: Mapping[str, Any] | None, *, mend: bool = True
) -> Output:
    fields = model.model_fields
    known = [name for name in fields if name in value]
    missing = [name for name, info in fields.items() if info.is_required() and name not in value]
    if not known and ("properties" in value or "$defs" in value):
        raise Unreadable(
            f"the reply is the schema itself, not an answer; missing: {', '.join(missing or fields)}"
        )
    if value and not known and not missing:
        raise Unreadable(f"the reply has none of the fields {', '.join(fields)}")
    # What models are not asked for, they do not get to say.
    asked = _asked_fields(model)
    said = {name: part for name, part in value.items() if name in asked}
    try:
        return model.model_validate(said, context=dict(context or {}))
    except ValidationError as error:
        output = _mended(said, model, context, error) if mend else None
        if output is None:
            raise Unreadable(all_complaints(error)) from error
        return output


_PASSES = 8
"""Each brings out what the one before hid: a field that is left out, then the item that cannot be without."""
_BOUNDS = {"greater_than_equal": "ge", "less_than_equal": "le"}


def _mended(
    said: dict[str, Any], model: type[Output], context: Mapping[str, Any] | None, error: ValidationError
) -> Output | None:
    """The output without what does not fit, and what that was; None where nothing usable is left."""
    value, faults = copy.deepcopy(said), list[str]()
    lists = [name for name, part in said.items() if isinstance(part, list) and part]
    for _ in range(_PASSES):
        found = error.errors(include_url=False)
        if not _mend(value, found):
            return None
        faults += map(_fault, found)
        lost = [name for name in lists if not value.get(name)]
        if lost and (any(model.model_fields[name].is_required() for name in lost) or not any(value.values())):
            return None
        try:
            output = model.model_validate(value, context=dict(context or {}))
        except ValidationError as raised:
            error = raised
        else:
            output._faults = tuple(dict.fromkeys(faults))
            return output
    return None


def _mend(value: Any, errors: Sequence["ErrorDetails"]) -> bool:
    """Takes out of a value, in place, what errors are about, or puts it right; whether all of that could be.

    What is missing, or stands where nothing can be put right, takes the nearest item of a list with it.
    """
    gone: dict[tuple[int, int | str], Any] = {}
    for error in errors:
        path, holders = error["loc"], [value]
        for key in path[:-1]:
            inner = _at(holders[-1], key)
            if not isinstance(inner, dict | list):
                break
            holders.append(inner)
        holder, key = holders[-1], path[len(holders) - 1]
        reached = len(holders) == len(path)
        if reached and error["type"] == "list_type" and isinstance(holder[key], dict | str):
            holder[key] = [holder[key]]
        elif reached and error["type"] in _BOUNDS:
            holder[key] = error["ctx"][_BOUNDS[error["type"]]]
        elif reached and error["type"] != "missing":
            gone[id(holder), key] = holder
        else:
            items = [(one, at) for one, at in zip(holders, path, strict=False) if isinstance(one, list)]
            if not items:
                return False
            gone[id(items[-1][0]), items[-1][1]] = items[-1][0]
    # From behind, so that the places of what comes before stay as they are.
    for (_, key), holder in sorted(gone.items(), key=lambda one: str(one[0][1]).zfill(9), reverse=True):
        del holder[key]
    return True


def _at(holder: Any, key: int | str) -> Any:
    try:
        return holder[key]
    except (LookupError, TypeError):
        return None


def _fault(error: "ErrorDetails") -> str:
    """An error by its field, without numbers, which shift, and without values."""
    return f"{'.'.join(part for part in error['loc'] if isinstance(part, str))}: {error['msg']}"


@cache
def _asked_fields(model: type[BaseModel]) -> frozenset[str]:
    # Making the schema takes longer than reading a reply.
    return frozenset(model.model_json_schema()["properties"])
