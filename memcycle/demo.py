"""The demonstration: a small conversation written for it, remembered step by step, then questioned."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from importlib.resources import files
from typing import Any

from memcycle.core.jsonl import read_jsonl
from memcycle.core.probe import Probe
from memcycle.core.scope import Scope
from memcycle.core.turn import Conversation
from memcycle.graph.context import Context
from memcycle.graph.events import Event
from memcycle.memory import Memory
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
    """Remembers the conversation, a session a chunk; gives a step for each node that decides something."""
    for session in conversation().sessions:
        context = Context(user=USER, session=session.name)
        turns = [turn.model_dump(mode="json") for turn in session.turns]
        yield from _steps(memory, "remember", {"turns": turns}, context, session.name)
        yield from _steps(memory, "session", {}, context, session.name)


def ask(memory: Memory, question: str) -> Iterator[Step | Answer]:
    """Answers a question; gives a step for each node that decides something, then the answer."""
    out = yield from _steps(memory, "recall", {"question": question}, Context(user=USER), question)
    yield Answer.of(question, out)


def _steps(memory: Memory, graph: str, value: dict[str, Any], context: Context, about: str) -> Any:
    """Runs a graph: yields its steps, returns its output."""
    output: dict[str, Any] = {}
    texts = Texts(memory, memory.scope(USER))
    stream = memory.graphs[graph].stream(value, context=context, stream_mode=["custom", "values"])
    for mode, data in stream:
        if mode == "values":
            output = data
        else:
            yield Step(graph, about, data["node"], words_of(data, texts))
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


def words_of(event: Event, texts: "Texts") -> str:
    """One line on what a node decided.

    Args:
        event: As the graph streamed it. texts: where what stands behind its ids is looked up.
    """
    tell = _TOLD.get(event["event"])
    return event["event"].replace("_", " ") if tell is None else tell(event, texts)


class Texts:
    """Texts by the ids of entries and probes."""

    def __init__(self, memory: Memory, scope: Scope) -> None:
        self._bank, self._scope = memory.bank, scope

    def entries(self, ids: Sequence[str]) -> str:
        """What these entries say."""
        found = self._bank.get(self._scope, ids)
        return ", ".join(_quoted(one.title or one.text) for one in found[:_SHOWN])

    def probe(self, probe_id: str) -> Probe | None:
        """The probe; None where what it rests on was forgotten."""
        return next((one for one in self._bank.probes(self._scope) if one.id == probe_id), None)


_SHOWN = 2
"""Texts of a list that are shown."""

_GONE = "the probe is gone: what it rests on was forgotten"


def _quoted(text: str, most: int = 60) -> str:
    """A text in quotation marks, its end cut off where it is long."""
    flat = " ".join(text.split())
    return f'"{flat if len(flat) <= most else flat[: most - 3] + "..."}"'


def _count(number: int, noun: str, many: str | None = None) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {many or noun + 's'}"


def _listed(counts: Mapping[str, int], none: str) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.items() if number) or none


def _refused(count: int) -> str:
    return f"; {count} refused so far" if count else ""


def _staged(event: Any, _: Texts) -> str:
    turns = event["turns"]
    if not turns:
        return "nothing new: all of it is stored"
    return f"{_count(len(turns), 'turn')} written as said, {turns[0]} to {turns[-1]}"


def _judged(event: Any, _: Texts) -> str:
    route = event["route"].upper() if event["route"] != "Pass" else "pass"
    route += f" ({event['why']})" if event["why"] else ""
    found = f"{event['relevant']} of {event['shown']} bear on it"
    conflicts = event["conflicts"]
    contradicted = f"; {_count(conflicts, 'CONFLICT', 'CONFLICTS')}" if conflicts else ""
    return f"{route}: {found}, {'enough' if event['sufficient'] else 'not enough'}{contradicted}"


def _applied(event: Any, texts: Texts) -> str:
    gone = event["refreshed"]
    first = f", first {texts.entries(event['facts'][:1])}" if event["facts"] else ""
    superseded = f"; SUPERSEDED {texts.entries(gone)}" if gone else ""
    return f"{_count(len(event['facts']), 'fact')} stored{first}{superseded}{_refused(event['rejected'])}"


def _answered(event: Any, texts: Texts) -> str:
    sources = event["evidence"]
    first = f", the first {texts.entries(sources[:1])}" if sources else ""
    return f"{event['mode']} from {_count(len(sources), 'source')}{first}"


def _probed(event: Any, texts: Texts) -> str:
    first = texts.probe(event["probes"][0]) if event["probes"] else None
    said = f", first {_quoted(first.question)}" if first else ""
    return f"{_count(len(event['probes']), 'probe')} made from the turns{said}"


def _probe_answered(event: Any, texts: Texts) -> str:
    probe = texts.probe(event["probe"])
    tried = (probe.after or probe.before) if probe is not None else None
    if probe is None or tried is None:
        return _GONE
    said = "nothing" if tried.abstained else _quoted(tried.answer)
    return f"probe {probe.n} {_quoted(probe.question)} memory says {said}"


def _repair_tried(event: Any, texts: Texts) -> str:
    probe = texts.probe(event["probe"])
    if probe is None or probe.repair is None:
        return _GONE
    repair = probe.repair
    if repair.draft is None:
        return f"probe {probe.n}: {repair.decision}, {repair.why or repair.cause}"
    return f"probe {probe.n}: proposes {_quoted(repair.draft['text'])}, {repair.cause}"


def _committed(event: Any, _: Texts) -> str:
    said = f"{_count(event['committed'], 'memory', 'memories')} active now"
    if event["probes"]:
        said += f"; probes passed {event['passed_before']} -> {event['passed_after']} of {event['probes']}"
    return said + ("; UNVERIFIED" if event["status"] == "committed_unverified" else "")


_TOLD: Mapping[str, Callable[[Any, Texts], str]] = {
    "staged": _staged,
    "planned": lambda event, _: f"searches planned: {_listed(event['searches'], 'none')}",
    "found": lambda event, _: f"{_count(event['candidates'], 'candidate')} so far",
    "judged": _judged,
    "settled": lambda event, texts: f"outdated by time: {texts.entries(event['outdated']) or 'nothing'}",
    "guided": lambda event, _: (
        f"{event['keep']} to keep, {event['redundant']} known already, {event['conflicts']} in conflict"
    ),
    "drafted": lambda event, _: f"{_count(event['facts'], 'fact')} drafted",
    "allowed": lambda event, _: _listed(event["edits"], "nothing to write") + _refused(event["rejected"]),
    "applied": _applied,
    "triggered": lambda event, _: "an episode ends" if event["episodes"] else "the topic goes on",
    "remembered": lambda event, _: f"{_count(len(event['facts']), 'fact')} read from the turns",
    "thought": lambda event, _: "answerable" if event["answerable"] else "not answerable yet",
    "refined": lambda event, _: "asks anew" if event["new_query"] else "nothing left to try",
    "answered": _answered,
    "opened": lambda event, _: f"{_count(event['waiting'], 'turn')} still to be read",
    "summarised": lambda event, texts: texts.entries(event["episodes"]) or "nothing left to summarise",
    "probed": _probed,
    "probe_answered": _probe_answered,
    "graded": lambda event, _: f"{_count(len(event['failed']), 'probe')} failed",
    "repair_tried": _repair_tried,
    "repair_decided": lambda event, _: f"{event['decision']} what the repair proposes",
    "repair_written": lambda event, _: f"{_count(len(event['entries']), 'repair')} written so far",
    "rolled_back": lambda event, _: (
        f"{_count(event['repairs'], 'repair')} rolled back" if event["repairs"] else "every repair helped"
    ),
    "maintained": lambda event, _: _listed(
        {key: event[key] for key in ("merged", "reinforced", "expired", "superseded")}, "nothing to tidy"
    ),
    "committed": _committed,
}
