"""The demonstration: a small conversation written for it, remembered step by step, then questioned."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from importlib.resources import files
from typing import Any

from memcycle.core.conversation import Conversation
from memcycle.core.jsonl import read_jsonl
from memcycle.core.scope import Scope
from memcycle.graph.context import Context
from memcycle.memory import Memory
from memcycle.narrate import narrate
from memcycle.results import Answer, SessionDetail

USER = "demo"

QUESTIONS = (
    "Where does Tomas live now?",
    "What does Tomas work as?",
    "When did Nora start her pottery class?",
    "What is Nora's dog called?",
    "Who hiked up Ulriken with Tomas?",
    "Which things did Nora make in her pottery class?",
    "When is Ines moving to Madrid?",
    "What is Nora allergic to?",
    "What car does Ines drive?",
)
"""Among them a contradicted fact, relative dates, a list, and one that memory holds no answer to."""

_EXAMINED = ("probes", "passed_before", "passed_after", "ungraded", "repairs", "rolled_back", "merged")


@dataclass(frozen=True)
class Step:
    """What one node decided.

    Attributes:
        graph: `remember`, `session` or `recall`.
        about: The session, or the question.
    """

    graph: str
    about: str
    node: str
    words: str


def conversation() -> Conversation:
    """The conversation of the demonstration."""
    text = (files("memcycle") / "demo.jsonl").read_text("utf-8")
    return read_jsonl(text, zone=UTC, name="demo")


def remember(memory: Memory) -> Iterator[Step]:
    """Remembers the conversation, a session a chunk; gives a step for each node as it ends."""
    for session in conversation().sessions:
        context = Context(user=USER, session=session.name)
        turns = [turn.model_dump(mode="json") for turn in session.turns]
        yield from _steps(memory, "remember", {"turns": turns}, context, session.name)
        yield from _steps(memory, "session", {}, context, session.name)


def ask(memory: Memory, question: str) -> Iterator[Step | Answer]:
    """Answers a question; gives a step for each node as it ends, then the answer."""
    steps = _steps(memory, "recall", {"question": question}, Context(user=USER), question)
    answer = yield from steps
    yield Answer(**answer["answer"], usage=answer.get("usage") or {})


def _steps(memory: Memory, graph: str, value: dict[str, Any], context: Context, about: str) -> Any:
    """Runs a graph: yields its steps, returns its output."""
    output: dict[str, Any] = {}
    scope = Scope(user=USER).within(context.session or "main")
    stream = memory.graphs[graph].stream(value, context=context, stream_mode=["updates", "values"])
    for mode, data in stream:
        if mode == "values":
            output = data
            continue
        for node, update in data.items():
            yield Step(graph, about, node, narrate(node, update or {}, memory.bank, scope))
    return output


def examined(memory: Memory) -> list[SessionDetail]:
    """The sessions, each with what it was examined with when it ended."""
    return [memory.session(one.session, user=USER) for one in memory.sessions(user=USER)]


def summary(memory: Memory, answers: list[Answer]) -> dict[str, Any]:
    """What is stored now and what was answered, as `memcycle demo --json` prints it."""
    scope = memory.scope(USER)
    stored = memory.bank.count(scope)
    superseded = memory.bank.count(scope, statuses=("superseded", "forgotten"))
    return {
        "turns": stored.get("raw", 0),
        "facts": stored.get("fact", 0),
        "episodes": stored.get("episode", 0),
        "refreshed": superseded.get("fact", 0),
        "examined": {
            name: sum(getattr(one, name) for one in memory.sessions(user=USER)) for name in _EXAMINED
        },
        "questions": [
            {
                "question": answer.question,
                "answer": answer.answer,
                "answerable": answer.answerable,
                "evidence": [
                    item.model_dump(mode="json", include={"id", "granularity", "text", "turns"})
                    for item in answer.evidence
                ],
            }
            for answer in answers
        ],
    }
