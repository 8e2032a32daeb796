"""What a loopback server makes of a prompt: its role, its input read back, the rules' answer to it."""

import html
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from memcycle.agents.answerability import AnswerabilityInput
from memcycle.agents.answerer import AnswererInput
from memcycle.agents.consolidator import ConsolidatorInput
from memcycle.agents.constructor import ConstructorInput
from memcycle.agents.diagnoser import (
    AttemptView,
    DiagnoserInput,
    DimensionView,
    FailureView,
    HeldView,
    PatternView,
)
from memcycle.agents.episode_trigger import EpisodeTriggerInput
from memcycle.agents.episode_writer import EpisodeWriterInput
from memcycle.agents.fact_judge import FactJudgeInput, NewFact
from memcycle.agents.grader import GradeItem, GraderInput
from memcycle.agents.guide import GuideInput, GuideOutput
from memcycle.agents.judge import JudgeInput
from memcycle.agents.prober import ProberInput
from memcycle.agents.query_reasoner import QueryReasonerInput
from memcycle.agents.refresher import ConflictView, RefresherInput
from memcycle.agents.repairer import RepairerInput
from memcycle.agents.retriever import RetrieverInput
from memcycle.agents.roles import OUTPUTS
from memcycle.agents.schema import outline, strict_schema
from memcycle.agents.verifier import VerifierInput
from memcycle.agents.views import MemoryView, RoleInput, TurnView, View

_MARK = re.compile(
    r"<(?P<mark>turn|item|cites|against|memory|other|near|fact|conflict|proposal)"
    r"(?P<attributes>(?: \w+=\"[^\"]*\")*)>(?P<text>.*?)</(?P=mark)>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r' (\w+)="([^"]*)"')
_OUTLINES = {role: outline(strict_schema(model, role)) for role, model in OUTPUTS.items()}
_TITLES = {"Keep:": "keep", "Already stored:": "redundant", "In conflict:": "conflicts"}


def role_of(body: dict[str, Any]) -> str:
    """The role a request is for: its schema's name, its tool's, or by the outline in its instructions."""
    if "response_format" in body:
        return str(body["response_format"]["json_schema"]["name"])
    if body.get("tools"):
        return str(body["tools"][0]["function"]["name"])
    instructions = _text(body["messages"][0])
    return next((role for role, wanted in _OUTLINES.items() if wanted in instructions), "unknown")


def rules_reply(body: dict[str, Any]) -> dict[str, Any]:
    """What the rules answer to the input that the prompt shows."""
    # Imported on first use, as in Roles: a scripted server needs none of them.
    from memcycle.agents.rules import RULES

    return dict(RULES[body["role"]](input_of(body)).model_dump(mode="json"))


def input_of(body: dict[str, Any]) -> RoleInput:
    """The input that the prompt of a request shows."""
    prompt = next(_text(message) for message in body["messages"] if message["role"] == "user")
    return _INPUTS[body["role"]](prompt)


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _section(prompt: str, name: str) -> str:
    found = re.search(rf"<{name}>\n?(.*?)\n?</{name}>", prompt, re.DOTALL)
    text = found.group(1) if found else ""
    return "" if text == "(none)" else text


def _exactly(text: str, name: str) -> str:
    """What stands between two marks, to the character."""
    found = re.search(rf"<{name}>(.*?)</{name}>", text, re.DOTALL)
    return _plain(found.group(1)) if found else ""


def _plain(text: str) -> str:
    return text.replace("&lt;", "<")


def _marks(text: str, *names: str) -> list[tuple[str, dict[str, str], str]]:
    found = []
    for match in _MARK.finditer(text):
        about = {key: html.unescape(value) for key, value in _ATTRIBUTE.findall(match.group("attributes"))}
        found.append((match.group("mark"), about, match.group("text")))
    return [one for one in found if not names or one[0] in names]


def _when(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text.split()[0]) if text else None


def _turn(about: dict[str, str], text: str) -> TurnView:
    kept = {key: about[key] for key in ("n", "speaker", "role")}
    return TurnView.model_validate({**kept, "text": _plain(text), "time": _when(about["time"])})


def _memory(about: dict[str, str], text: str) -> MemoryView:
    kept = {key: about.get(key) for key in ("n", "granularity", "speaker", "role")}
    times = {
        "time": _when(about.get("said")),
        "event_time": _when(about.get("happened")),
        "event_precision": about.get("precision"),
        "current": about.get("current") != "no",
    }
    return MemoryView.model_validate({**kept, **times, "text": _plain(text)})


def _turns(prompt: str, section: str, mark: str = "turn") -> list[TurnView]:
    return [_turn(about, text) for _, about, text in _marks(_section(prompt, section), mark)]


def _memories(prompt: str) -> list[MemoryView]:
    return [_memory(about, text) for _, about, text in _marks(_section(prompt, "memories"), "memory")]


def _lines(prompt: str, section: str) -> list[str]:
    return [_plain(line[2:]) for line in _section(prompt, section).splitlines() if line.startswith("- ")]


def _after_turns(prompt: str, words: str) -> int:
    """The number that follows these words of ours; no turn can hold the mark before them."""
    return int(prompt.split(f"</turns>\n\n{words} ", 1)[1].split("\n", maxsplit=1)[0].rstrip("."))


def _now(prompt: str) -> datetime:
    return datetime.fromisoformat(prompt.split("Now: ", 1)[1].split(maxsplit=1)[0])


def _guidance(prompt: str) -> GuideOutput | None:
    told: dict[str, list[str]] = {}
    title = ""
    for line in _section(prompt, "guidance").splitlines():
        if line in _TITLES:
            title = _TITLES[line]
        elif line.startswith("- "):
            told.setdefault(title, []).append(_plain(line[2:]))
    return GuideOutput.model_validate(told) if told else None


def _constructor(prompt: str) -> RoleInput:
    return ConstructorInput(
        turns=_turns(prompt, "turns"),
        window=_turns(prompt, "window"),
        memories=_memories(prompt),
        guidance=_guidance(prompt),
        now=_now(prompt),
    )


def _trigger(prompt: str) -> RoleInput:
    new = _section(prompt, "new")
    return EpisodeTriggerInput(turns=_turns(prompt, "turns"), new=len(new.split(",")) if new else 0)


def _retriever(prompt: str) -> RoleInput:
    return RetrieverInput.model_validate(
        {
            "purpose": _section(prompt, "purpose"),
            "items": _turns(prompt, "items", "item"),
            "window": _turns(prompt, "window"),
            "parts": int(re.search(r"^Sub-questions at most: (\d+)$", prompt, re.MULTILINE)[1]),  # type: ignore[index]
            "now": _now(prompt),
        }
    )


def _judge(prompt: str) -> RoleInput:
    return JudgeInput.model_validate(
        {
            "purpose": _section(prompt, "purpose"),
            "items": _turns(prompt, "items", "item"),
            "queries": _lines(prompt, "queries"),
            "candidates": _memories(prompt),
            "window": _turns(prompt, "window"),
            "now": _now(prompt),
        }
    )


def _fact_judge(prompt: str) -> RoleInput:
    facts = []
    for _, about, inner in _marks(_section(prompt, "facts"), "fact"):
        facts.append(
            NewFact(
                n=int(about["n"]),
                text=_plain(inner.split("\n<cites", 1)[0]),
                speaker=about.get("speaker"),
                turn=next(_turn(cited, text) for _, cited, text in _marks(inner, "cites")),
                event_time=_when(about.get("happened")),
                near=[_memory(near, text) for _, near, text in _marks(inner, "near")],
            )
        )
    return FactJudgeInput(facts=facts, now=_now(prompt))


def _refresher(prompt: str) -> RoleInput:
    conflicts = []
    for _, about, inner in _marks(_section(prompt, "conflicts"), "conflict"):
        parts = {mark: (inside, text) for mark, inside, text in _marks(inner)}
        conflicts.append(
            ConflictView(
                memory=_memory(*parts["memory"]),
                turn=_turn(*parts["against"]) if "against" in parts else None,
                other=_memory(*parts["other"]) if "other" in parts else None,
                why=about.get("why", ""),
            )
        )
    return RefresherInput(conflicts=conflicts, turns=_turns(prompt, "turns"), now=_now(prompt))


def _guide(prompt: str) -> RoleInput:
    return GuideInput(turns=_turns(prompt, "turns"), memories=_memories(prompt), now=_now(prompt))


def _answerability(prompt: str) -> RoleInput:
    return AnswerabilityInput(
        question=_plain(_section(prompt, "question")),
        evidence=_memories(prompt),
        window=_turns(prompt, "window"),
        tried=_lines(prompt, "tried"),
        round=int(_section(prompt, "round")),
        now=_now(prompt),
    )


def _query_reasoner(prompt: str) -> RoleInput:
    return QueryReasonerInput(
        question=_plain(_section(prompt, "question")),
        gap=_plain(_section(prompt, "gap")),
        tried=_lines(prompt, "tried"),
        evidence=_memories(prompt),
        avoid=_lines(prompt, "avoid"),
        speaker=_plain(_section(prompt, "speaker")) or None,
        needs_time=_section(prompt, "time_need") == "true",
    )


def _answerer(prompt: str) -> RoleInput:
    return AnswererInput.model_validate(
        {
            "question": _plain(_section(prompt, "question")),
            "evidence": _memories(prompt),
            "window": _turns(prompt, "window"),
            "style": _section(prompt, "style"),
            "now": _now(prompt),
        }
    )


def _verifier(prompt: str) -> RoleInput:
    return VerifierInput.model_validate(
        {
            "question": _plain(_section(prompt, "question")),
            "answer": _plain(_section(prompt, "answer")),
            "answerable": "(answerable: true)" in prompt,
            "evidence": _memories(prompt),
            "window": _turns(prompt, "window"),
            "style": _section(prompt, "style"),
            "candidates": _section(prompt, "way") == "multi_candidate",
            "now": _now(prompt),
        }
    )


def _prober(prompt: str) -> RoleInput:
    return ProberInput(
        turns=_turns(prompt, "turns"),
        memories=_memories(prompt),
        count=_after_turns(prompt, "Probes wanted:"),
        now=_now(prompt),
    )


def _grader(prompt: str) -> RoleInput:
    items = []
    for _, about, inner in _marks(_section(prompt, "items"), "item"):
        parts = {name: _exactly(inner, name) for name in ("question", "gold", "answer")}
        items.append(GradeItem.model_validate({"n": about["n"], **parts}))
    return GraderInput(items=items)


def _repairer(prompt: str) -> RoleInput:
    return RepairerInput(
        question=_exactly(prompt, "question"),
        gold=_exactly(prompt, "gold"),
        answer=_exactly(prompt, "answer"),
        turns=_turns(prompt, "turns"),
        source=_after_turns(prompt, "The source is turn"),
        memories=_memories(prompt),
        now=_now(prompt),
    )


def _consolidator(prompt: str) -> RoleInput:
    ((_, about, text),) = _marks(prompt, "proposal")
    return ConsolidatorInput.model_validate(
        {
            "text": _plain(text),
            "speaker": about.get("speaker"),
            "turn": _turns(prompt, "turns")[0],
            "event_time": _when(about.get("happened")),
            "event_precision": about.get("precision"),
            "memories": _memories(prompt),
            "now": _now(prompt),
        }
    )


def _records(prompt: str, section: str, model: type[View]) -> list[Any]:
    lines = _section(prompt, section).splitlines()
    return [model.model_validate_json(_plain(line)) for line in lines]


def _diagnoser(prompt: str) -> RoleInput:
    return DiagnoserInput(
        objective=_exactly(prompt, "objective"),
        score=float(prompt.split("\nNow: ", 1)[1].split("\n", maxsplit=1)[0]),
        token_budget=int(prompt.split("\nTokens shown at most: ", 1)[1].split("\n", maxsplit=1)[0]),
        dimensions=_records(prompt, "dimensions", DimensionView),
        patterns=_records(prompt, "patterns", PatternView),
        failures=_records(prompt, "failures", FailureView),
        held=_records(prompt, "held", HeldView),
        tried=_records(prompt, "attempts", AttemptView),
    )


_INPUTS: dict[str, Callable[[str], RoleInput]] = {
    "constructor": _constructor,
    "episode_trigger": _trigger,
    "episode_writer": lambda prompt: EpisodeWriterInput(turns=_turns(prompt, "turns")),
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
