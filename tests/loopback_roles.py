"""What a loopback server makes of a prompt: its role, its input read back, the rules' answer to it.

A prompt is taken apart by the shipped template that it was made from; what its placeholders hold is read by
the types of the input's fields.
"""

import html
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from memcycle.agents.answerer import STYLES
from memcycle.agents.fact_judge import NewFact
from memcycle.agents.grader import GradeItem
from memcycle.agents.guide import GuideOutput
from memcycle.agents.refresher import ConflictView
from memcycle.agents.roles import OUTPUTS, Roles
from memcycle.agents.schema import outline, strict_schema
from memcycle.agents.views import MemoryView, RoleInput, TurnView, View
from memcycle.prompts import PromptSet

_NONE = "(none)"
_PLACEHOLDER = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_MARK = re.compile(
    r"<(?P<mark>turn|item|cites|against|memory|other|near|fact|conflict|proposal)"
    r"(?P<attributes>(?: \w+=\"[^\"]*\")*)>(?P<text>.*?)</(?P=mark)>",
    re.DOTALL,
)
_CASE = re.compile(r'<case n="\d+">\n(.*?)\n</case>', re.DOTALL)
_ATTRIBUTE = re.compile(r' (\w+)="([^"]*)"')
_INPUTS: dict[str, type[RoleInput]] = {
    role: get_args(hint)[0] for role, hint in get_type_hints(Roles).items() if role in OUTPUTS
}
_OUTLINES = {role: outline(strict_schema(model, role)) for role, model in OUTPUTS.items()}
_TITLES = {"Keep:": "keep", "Already stored:": "redundant", "In conflict:": "conflicts"}
_FIELDS = {"happened": "event_time", "precision": "event_precision"}
"""Attributes of marks that are called otherwise as fields."""
_SHOWN_AS = {"evidence": "memories", "candidates": "memories", "needs_time": "time_need"}
"""Fields that are called otherwise as placeholders."""


def role_of(body: dict[str, Any]) -> str:
    """The role a request is for: its schema's name, its tool's, or by the outline in its instructions."""
    if "response_format" in body:
        return str(body["response_format"]["json_schema"]["name"])
    if body.get("tools"):
        return str(body["tools"][0]["function"]["name"])
    instructions = _text(body["messages"][0])
    return next((role for role, wanted in _OUTLINES.items() if wanted in instructions), "unknown")


def rules_reply(body: dict[str, Any]) -> dict[str, Any]:
    """What the rules answer to the input that the prompt shows, or to each of its cases."""
    cases = cases_of(body)
    if not cases:
        return _by_rules(body["role"], input_of(body))
    return {
        "cases": [{"n": n, "reply": _by_rules(one["role"], input_of(one))} for n, one in enumerate(cases, 1)]
    }


def cases_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """A request for each of the cases that a shared one asks for; none where it asks for one thing."""
    shown = next(_text(one) for one in body["messages"] if one["role"] == "user")
    return [
        {"role": body["role"], "messages": [{"role": "user", "content": text}]}
        for text in _CASE.findall(shown)
        if shown.startswith("<case ")
    ]


def _by_rules(role: str, value: RoleInput) -> dict[str, Any]:
    # Imported on first use, as in Roles: a scripted server needs none of them.
    from memcycle.agents.rules import RULES

    found = RULES[role](value).model_dump(mode="json")
    return dict(only_asked(found, strict_schema(OUTPUTS[role], role)))


def only_asked(value: Any, schema: dict[str, Any]) -> Any:
    """A reply without what a model is not asked for."""
    if isinstance(value, list):
        return [only_asked(one, schema.get("items", {})) for one in value]
    if not isinstance(value, dict):
        return value
    schema = next((one for one in schema.get("anyOf", []) if "properties" in one), schema)
    asked = schema.get("properties", {})
    return {key: only_asked(one, asked[key]) for key, one in value.items() if key in asked}


def input_of(body: dict[str, Any]) -> RoleInput:
    """The input that the prompt of a request shows."""
    role, prompt = body["role"], next(_text(one) for one in body["messages"] if one["role"] == "user")
    found = _template(role).match(prompt)
    if found is None:
        raise ValueError(f"this is not the shipped prompt of {role}: {prompt[:200]}")
    shown, model = found.groupdict(), _INPUTS[role]
    values = _EXCEPTIONS[role](shown) if role in _EXCEPTIONS else {}
    for name, field in model.model_fields.items():
        placeholder = name if name in shown else _SHOWN_AS.get(name)
        if name not in values and placeholder in shown:
            values[name] = _value(name, field.annotation, shown[placeholder])
    return model.model_validate(values)


@cache
def _template(role: str) -> re.Pattern[str]:
    """The part of a prompt that changes from call to call, with a group for each placeholder."""
    text = re.split(r"^---[ \t]*$", PromptSet.shipped().text(role), flags=re.MULTILINE)[-1].strip()
    pieces, end = [], 0
    for one in _PLACEHOLDER.finditer(text):
        pieces += [re.escape(text[end : one.start()].replace("$$", "$")), f"(?P<{one[1] or one[2]}>.*?)"]
        end = one.end()
    return re.compile("".join([*pieces, re.escape(text[end:].replace("$$", "$"))]), re.DOTALL)


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _plain(text: str) -> str:
    return text.replace("&lt;", "<")


def _value(name: str, kind: Any, text: str) -> Any:
    """A field's value as its placeholder shows it, for pydantic to read."""
    if kind == GuideOutput | None:
        return _guidance(text)
    if get_origin(kind) is not list:
        return text.split()[0] if name == "now" else _plain(text) if text != _NONE else None
    [item] = get_args(kind)
    if item is str:
        return [_plain(line[2:]) for line in text.splitlines() if line.startswith("- ")]
    if item is MemoryView:
        return _listed(text)
    if item in _VIEWS:
        return [_VIEWS[item](about, inner) for _, about, inner in _marks(text)]
    return [item.model_validate_json(_plain(line)) for line in text.splitlines() if text != _NONE]


_LISTED = re.compile(
    r"^(?:(?P<day>[A-Z][a-z]{2} \d{4}-\d\d-\d\d)|(?P<none>\(no day\))"
    r"|\[(?P<n>\d+)(?P<kind> fact)?\] (?P<said>.*(?:\n  .*)*))$",
    re.MULTILINE,
)


def _listed(text: str) -> list[MemoryView]:
    found, day = list[MemoryView](), ""
    for one in _LISTED.finditer(text):
        if one["n"] is None:
            day = one["day"] or ""
            continue
        said = one["said"].replace("\n  ", "\n")
        about = {"n": one["n"], "kind": (one["kind"] or "").strip()}
        found.append(_memory(about, f"{day} {said}" if day else said))
    return found


def _marks(text: str) -> list[tuple[str, dict[str, Any], str]]:
    """Marks on the outside of a text: name, attributes as fields, what is inside."""
    found = []
    for one in _MARK.finditer(text):
        about: dict[str, Any] = {}
        for key, value in _ATTRIBUTE.findall(one["attributes"]):
            read = html.unescape(value)
            about[_FIELDS.get(key, key)] = read.split()[0] if key in ("happened", "time") else read
        found.append((one["mark"], about, one["text"]))
    return found


def _view(model: type[View]) -> Callable[[dict[str, Any], str], Any]:
    return lambda about, text: model.model_validate({**about, "text": _plain(text)})


def _memory(about: dict[str, Any], text: str) -> MemoryView:
    head = _HEAD.match(text)
    assert head is not None, text
    notes = (head["notes"] or "").split("; ")
    roles = {"assistant": "ai", "tool": "tool", "system": "system"}
    event = next((_EVENT.fullmatch(note) for note in notes if note.startswith("event ")), None)
    over = next((note for note in notes if note.startswith("no longer so")), None)
    role = next((roles[note] for note in [*notes, head["speaker"]] if note in roles), "human")
    fields = {
        "granularity": about.get("kind") or ("episode" if "summary" in notes else "raw"),
        "speaker": _plain(head["speaker"]) or None,
        "role": role if head["speaker"] or role != "human" else None,
        "time": _midnight(head["day"]),
        "event_time": _midnight(event["day"]) if event else None,
        "event_precision": _precision(event) if event else None,
        "current": over is None,
        "until": _midnight(over.removeprefix("no longer so since ")) if over and "since" in over else None,
    }
    return MemoryView.model_validate({"n": about["n"], **fields, "text": _plain(head["text"])})


_HEAD = re.compile(
    r"(?:[A-Z][a-z]{2} (?P<day>\d{4}-\d\d-\d\d)(?: |(?=:)))?(?P<speaker>[^:(]*?) ?"
    r"(?:\((?P<notes>[^)]*)\))?: (?P<text>.*)",
    re.DOTALL,
)
"""How a memory begins, where its speaker's name has no colon and no bracket."""
_EVENT = re.compile(r"event (?:(?P<span>week|season) of )?(?P<day>[-\d: ]+)")
_EXACT = {4: "year", 7: "month", 16: "minute"}


def _midnight(day: str | None) -> datetime | None:
    """A day, a month or a year from its start; a time as it is. All in UTC."""
    return datetime.fromisoformat(day + "0001-01-01"[len(day) :]).replace(tzinfo=UTC) if day else None


def _precision(event: re.Match[str]) -> str:
    return event["span"] or _EXACT.get(len(event["day"]), "day")


def _new_fact(about: dict[str, Any], inner: str) -> NewFact:
    inside = _marks(inner)
    [turn] = [_VIEWS[TurnView](cited, text) for name, cited, text in inside if name == "cites"]
    near = [_memory(one, text) for name, one, text in inside if name == "near"]
    text = _plain(inner.split("\n<cites", 1)[0])
    return NewFact.model_validate({"speaker": None, **about, "text": text, "turn": turn, "near": near})


def _conflict(about: dict[str, Any], inner: str) -> ConflictView:
    kinds: dict[str, tuple[str, Any]] = {
        "memory": ("memory", MemoryView), "other": ("other", MemoryView), "against": ("turn", TurnView),
    }  # fmt: skip
    parts = {kinds[name][0]: _VIEWS[kinds[name][1]](one, text) for name, one, text in _marks(inner)}
    return ConflictView.model_validate({"why": about.get("why", ""), **parts})


def _grade_item(about: dict[str, Any], inner: str) -> GradeItem:
    names = ("question", "gold", "answer")
    parts = {name: _plain(inner.split(f"<{name}>", 1)[1].split(f"</{name}>", 1)[0]) for name in names}
    return GradeItem.model_validate({**about, **parts})


_VIEWS: dict[Any, Callable[[dict[str, Any], str], Any]] = {
    TurnView: _view(TurnView),
    MemoryView: _memory,
    NewFact: _new_fact,
    ConflictView: _conflict,
    GradeItem: _grade_item,
}


def _guidance(text: str) -> GuideOutput | None:
    told: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines():
        if line in _TITLES:
            title = _TITLES[line]
        elif line.startswith("- "):
            told.setdefault(title, []).append(_plain(line[2:]))
    return GuideOutput.model_validate(told) if told else None


def _proposal(shown: dict[str, str]) -> dict[str, Any]:
    [(_, about, text)], [(_, turn, said)] = _marks(shown["proposal"]), _marks(shown["turn"])
    return {**about, "text": _plain(text), "turn": _VIEWS[TurnView](turn, said)}


def _style(shown: dict[str, str]) -> dict[str, Any]:
    return {"style": next(style for style, said in STYLES.items() if said == shown["style"])}


_EXCEPTIONS: dict[str, Callable[[dict[str, str]], dict[str, Any]]] = {
    "answerer": _style,
    "consolidator": _proposal,
    "episode_trigger": lambda shown: {"new": 0 if shown["new"] == _NONE else len(shown["new"].split(","))},
    "verifier": lambda shown: {"candidates": shown["way"] == "multi_candidate"},
}
"""What is shown in a way of its own."""
