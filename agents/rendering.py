"""Role inputs as text for prompts: turns and memories as marked data, by placeholder name.

Text of people goes in as it is, in any language and with any braces, so that a model can quote it word for
word; only what could close or open one of our own marks is defused.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from memcycle.agents.answerer import AnswererInput
from memcycle.agents.consolidator import ConsolidatorInput
from memcycle.agents.constructor import ConstructorInput
from memcycle.agents.diagnoser import DiagnoserInput
from memcycle.agents.episodes import TriggerInput, WriterInput
from memcycle.agents.grader import GradeItem, GraderInput
from memcycle.agents.judge import FactJudgeInput, JudgeInput, NewFact
from memcycle.agents.meta_thinker import AnswerabilityInput, GuideInput, GuideOutput
from memcycle.agents.prober import ProberInput
from memcycle.agents.query_reasoner import QueryReasonerInput
from memcycle.agents.refresher import ConflictView, RefresherInput
from memcycle.agents.repairer import RepairerInput
from memcycle.agents.retriever import RetrieverInput
from memcycle.agents.verifier import VerifierInput
from memcycle.agents.views import MemoryView, RoleInput, TurnView

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


def placeholder_values(role: str, value: RoleInput) -> dict[str, str]:
    """Text for every placeholder the role's prompt may use.

    Args:
        role: Name of the role.
        value: Its input.
    """
    return _RENDERERS[role](value)


def shown(text: str) -> str:
    """A text as prompts show it: unchanged, except that it cannot open or close our marks."""
    return _OURS.sub("&lt;", text)


def moment(time: datetime) -> str:
    """A time with its zone and weekday, which readings of "last Friday" need."""
    return f"{time.isoformat(timespec='minutes')} {_WEEKDAYS[time.weekday()]}"


def turns_text(turns: Iterable[TurnView], mark: str = "turn") -> str:
    """Turns, one mark each: number, speaker, role, time, words."""
    return "\n".join(_turn(turn, mark) for turn in turns) or NONE


def memories_text(memories: Iterable[MemoryView], mark: str = "memory") -> str:
    """Stored entries, one mark each: number, granularity, speaker, times, words."""
    return "\n".join(_memory(memory, mark) for memory in memories) or NONE


def _attribute(value: str) -> str:
    """A value that cannot end its quotes, its mark or its line."""
    return " ".join(value.translate(_IN_ATTRIBUTES).split())


def _mark(name: str, attributes: Mapping[str, str | None], text: str) -> str:
    said = "".join(f' {key}="{_attribute(value)}"' for key, value in attributes.items() if value is not None)
    return f"<{name}{said}>{text}</{name}>"


def _turn(turn: TurnView, mark: str) -> str:
    about = {"n": str(turn.n), "speaker": turn.speaker, "role": turn.role, "time": moment(turn.time)}
    return _mark(mark, about, shown(turn.text))


def _memory(memory: MemoryView, mark: str) -> str:
    about = {
        "n": str(memory.n),
        "granularity": memory.granularity,
        "speaker": memory.speaker,
        "role": memory.role,
        "said": moment(memory.time) if memory.time else None,
        "happened": moment(memory.event_time) if memory.event_time else None,
        "precision": memory.event_precision,
        "current": None if memory.current else "no",
    }
    return _mark(mark, about, shown(memory.text))


def _list(texts: Iterable[str]) -> str:
    """Short texts, one a line."""
    return "\n".join(f"- {shown(' '.join(text.split()))}" for text in texts) or NONE


def _guidance(guidance: GuideOutput | None) -> str:
    parts = [] if guidance is None else [
        ("Keep:", guidance.keep),
        ("Already stored:", guidance.redundant),
        ("In conflict:", guidance.conflicts),
    ]  # fmt: skip
    return "\n".join(f"{title}\n{_list(texts)}" for title, texts in parts if texts) or NONE


def _conflict(conflict: ConflictView) -> str:
    against = [
        *([_turn(conflict.turn, "against")] if conflict.turn else []),
        *([_memory(conflict.other, "other")] if conflict.other else []),
    ]
    inner = "\n".join([_memory(conflict.memory, "memory"), *against])
    return _mark("conflict", {"why": conflict.why or None}, f"\n{inner}\n")


def _fact(fact: NewFact) -> str:
    about = {
        "n": str(fact.n),
        "speaker": fact.speaker,
        "happened": moment(fact.event_time) if fact.event_time else None,
    }
    near = [memories_text(fact.near, "near")] if fact.near else []
    return _mark("fact", about, "\n".join([shown(fact.text), _turn(fact.turn, "cites"), *near]))


def _graded(item: GradeItem) -> str:
    parts = (("question", item.question), ("gold", item.gold), ("answer", item.answer))
    inner = "\n".join(_mark(name, {}, shown(text)) for name, text in parts)
    return _mark("item", {"n": str(item.n)}, f"\n{inner}\n")


def _constructor(value: ConstructorInput) -> dict[str, str]:
    return {
        "turns": turns_text(value.turns),
        "window": turns_text(value.window),
        "memories": memories_text(value.memories),
        "guidance": _guidance(value.guidance),
        "now": moment(value.now),
    }


def _episode_trigger(value: TriggerInput) -> dict[str, str]:
    new = [turn.n for turn in value.turns[len(value.turns) - value.new :]] if value.new else []
    return {"turns": turns_text(value.turns), "new": ", ".join(map(str, new)) or NONE}


def _episode_writer(value: WriterInput) -> dict[str, str]:
    return {"turns": turns_text(value.turns)}


def _retriever(value: RetrieverInput) -> dict[str, str]:
    return {
        "items": turns_text(value.items, "item"),
        "window": turns_text(value.window),
        "purpose": value.purpose,
        "parts": str(value.parts),
        "now": moment(value.now),
    }


def _judge(value: JudgeInput) -> dict[str, str]:
    return {
        "items": turns_text(value.items, "item"),
        "memories": memories_text(value.candidates),
        "queries": _list(value.queries),
        "window": turns_text(value.window),
        "purpose": value.purpose,
        "now": moment(value.now),
    }


def _fact_judge(value: FactJudgeInput) -> dict[str, str]:
    return {"facts": "\n".join(_fact(fact) for fact in value.facts) or NONE, "now": moment(value.now)}


def _refresher(value: RefresherInput) -> dict[str, str]:
    return {
        "conflicts": "\n".join(_conflict(conflict) for conflict in value.conflicts) or NONE,
        "turns": turns_text(value.turns),
        "now": moment(value.now),
    }


def _guide(value: GuideInput) -> dict[str, str]:
    return {
        "turns": turns_text(value.turns),
        "memories": memories_text(value.memories),
        "now": moment(value.now),
    }


def _answerability(value: AnswerabilityInput) -> dict[str, str]:
    return {
        "question": shown(value.question),
        "memories": memories_text(value.evidence),
        "window": turns_text(value.window),
        "tried": _list(value.tried),
        "round": str(value.round),
        "now": moment(value.now),
    }


def _query_reasoner(value: QueryReasonerInput) -> dict[str, str]:
    return {
        "question": shown(value.question),
        "gap": shown(value.gap),
        "memories": memories_text(value.evidence),
        "tried": _list(value.tried),
        "avoid": _list(value.avoid),
        "speaker": shown(value.speaker or NONE),
        "time_need": json.dumps(value.needs_time),
    }


def _answerer(value: AnswererInput) -> dict[str, str]:
    return {
        "question": shown(value.question),
        "memories": memories_text(value.evidence),
        "window": turns_text(value.window),
        "style": value.style,
        "now": moment(value.now),
    }


def _verifier(value: VerifierInput) -> dict[str, str]:
    return {
        "question": shown(value.question),
        "answer": shown(value.answer),
        "answerable": json.dumps(value.answerable),
        "memories": memories_text(value.evidence),
        "window": turns_text(value.window),
        "style": value.style,
        "way": "multi_candidate" if value.candidates else "strict",
        "now": moment(value.now),
    }


def _prober(value: ProberInput) -> dict[str, str]:
    return {
        "turns": turns_text(value.turns),
        "memories": memories_text(value.memories),
        "count": str(value.count),
        "now": moment(value.now),
    }


def _grader(value: GraderInput) -> dict[str, str]:
    return {"items": "\n".join(_graded(item) for item in value.items) or NONE}


def _repairer(value: RepairerInput) -> dict[str, str]:
    return {
        "question": shown(value.question),
        "gold": shown(value.gold),
        "answer": shown(value.answer),
        "turns": turns_text(value.turns),
        "source": str(value.source),
        "memories": memories_text(value.memories),
        "now": moment(value.now),
    }


def _consolidator(value: ConsolidatorInput) -> dict[str, str]:
    about = {
        "speaker": value.speaker,
        "happened": moment(value.event_time) if value.event_time else None,
        "precision": value.event_precision,
    }
    return {
        "proposal": _mark("proposal", about, shown(value.text)),
        "turn": turns_text([value.turn]),
        "memories": memories_text(value.memories),
        "now": moment(value.now),
    }


def _records(values: Iterable[RoleInput]) -> str:
    """Plain records, one JSON object a line, without what is empty."""
    lines = (shown(value.model_dump_json(exclude_defaults=True)) for value in values)
    return "\n".join(lines) or NONE


def _diagnoser(value: DiagnoserInput) -> dict[str, str]:
    return {
        "objective": shown(value.objective),
        "score": json.dumps(value.score),
        "token_budget": str(value.token_budget),
        "dimensions": _records(value.dimensions),
        "patterns": _records(value.patterns),
        "failures": _records(value.failures),
        "held": _records(value.held),
        "tried": _records(value.tried),
    }


_RENDERERS: dict[str, Callable[[Any], dict[str, str]]] = {
    "constructor": _constructor,
    "episode_trigger": _episode_trigger,
    "episode_writer": _episode_writer,
    "retriever": _retriever,
    "judge": _judge,
    "fact_judge": _fact_judge,
    "refresher": _refresher,
    "guide": _guide,
    "answerability": _answerability,
    "query_reasoner": _query_reasoner,
    "answerer": _answerer,
    "verifier": _verifier,
    "prober": _prober,
    "grader": _grader,
    "repairer": _repairer,
    "consolidator": _consolidator,
    "diagnoser": _diagnoser,
}
