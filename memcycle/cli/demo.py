"""`demo`: a small conversation written for it, remembered step by step, then questioned."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from memcycle.cli import options as opt
from memcycle.cli.options import open_memory, settings_of
from memcycle.cli.output import counted, print_json, say, say_answer, say_usage, screen, shown
from memcycle.cli.sessions import say_probes, sources
from memcycle.core.jsonl import read_jsonl
from memcycle.core.turn import Conversation

if TYPE_CHECKING:
    from memcycle.core.probe import Probe
    from memcycle.core.scope import Scope
    from memcycle.graph.events import Event
    from memcycle.memory import Memory
    from memcycle.results import Answer

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

_SOURCES = 3
_PROBES = 3
_NOTABLE = ("CONFLICT", "SUPERSEDED", "RETRY", "UPDATE ", "INSERT ", "MERGE ", "rolled back", "UNVERIFIED")
_NAMES = 14
"""Columns for the name of a node."""


def conversation() -> Conversation:
    """The conversation of the demonstration."""
    text = (files("memcycle") / "demo.jsonl").read_text("utf-8")
    return read_jsonl(text, zone=UTC, name="demo")


def demo(
    *,
    home: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the memory here.", show_default="a folder that is removed"),
    ] = None,
    model: opt.ModelName = "rules",
    base_url: opt.BaseUrl = None,
    as_json: opt.Json = False,
) -> None:
    """Remember a small conversation, showing what each node decides, then answer questions from it.

    Examples:
        memcycle demo
        memcycle demo --json
    """
    with (
        _home(home) as place,
        open_memory(
            settings_of(place), opt.Whose(USER), model=opt.Model(model, base_url), new=True
        ) as memory,
    ):
        if as_json:
            _remember(memory)
            print_json(_summary(memory, [_recall(memory, question)[1] for question in QUESTIONS]))
        else:
            _run(memory, model=model, kept=home)


@contextmanager
def _home(home: Path | None) -> Iterator[Path]:
    if home is not None:
        yield home
        return
    with tempfile.TemporaryDirectory(prefix="memcycle-demo-") as folder:
        yield Path(folder)


def _remember(memory: "Memory", *, loud: bool = False) -> None:
    """Remembers the conversation, a session a chunk."""
    for session in conversation().sessions:
        if loud:
            screen().print(Rule(f"session {session.name}", style="dim", align="left"))
        turns = [turn.model_dump(mode="json") for turn in session.turns]
        for graph, value in (("remember", {"turns": turns}), ("session", {})):
            _run_graph(memory, graph, value, _say_step if loud else None, session.name)


def _recall(memory: "Memory", question: str) -> "tuple[list[str], Answer]":
    """The nodes that decided something on the way to an answer, and the answer."""
    from memcycle.results import Answer

    nodes: list[str] = []
    out = _run_graph(memory, "recall", {"question": question}, lambda node, _: nodes.append(node))
    return nodes, Answer.of(question, out)


def _run_graph(
    memory: "Memory",
    graph: str,
    value: Mapping[str, Any],
    tell: Callable[[str, str], None] | None,
    session: str | None = None,
) -> dict[str, Any]:
    """Runs a graph and gives its output; tells of each node that decides something, in one line."""
    from memcycle.graph.context import Context

    output: dict[str, Any] = {}
    texts, context = Texts(memory, memory.scope()), Context(user=USER, session=session)
    stream = memory.graphs[graph].stream(value, context=context, stream_mode=["custom", "values"])
    for mode, data in stream:
        if mode == "values":
            output = data
        elif tell is not None:
            tell(data["node"], words_of(data, texts))
    return output


def _run(memory: "Memory", *, model: str, kept: Path | None) -> None:
    said = conversation()
    screen().print(
        Panel(
            Text(
                f"{len(said.turns)} turns in {len(said.sessions)} sessions between Nora, Tomas and Ines. "
                "Each line below is a node of the graph and what it decided."
            ),
            title="memcycle demo",
            title_align="left",
            border_style="cyan",
        )
    )
    _remember(memory, loud=True)
    _say_examined(memory, by_rules=model == "rules")
    answers = [_ask(memory, question) for question in QUESTIONS]
    stored = _summary(memory, answers)
    screen().print(Rule("in memory now", style="dim", align="left"))
    say(
        f"{stored['turns']} turns, {stored['facts']} facts, {stored['episodes']} episodes; "
        f"{stored['refreshed']} facts superseded by newer ones and kept in history."
    )
    for answer in answers:
        say_usage(answer.usage)
    if model == "rules":
        say(
            (
                "No model was asked: these answers are extractive, words and dates taken from the sources by "
                "rules. With --model openai:NAME the same graphs are run by a model.",
                "dim",
            )
        )
    if kept is not None:
        say((f'Go on with: memcycle ask "..." --user demo --home {kept}', "dim"))


def _say_examined(memory: "Memory", *, by_rules: bool) -> None:
    """What the sessions were examined with, and each probe that memory could not answer at first."""
    sessions = [memory.session(one.session) for one in memory.sessions()]
    failed = [
        probe
        for session in sessions
        for probe in session.examined
        if probe.before is not None and probe.before.verdict == "failed"
    ]
    probes, passed, after = (
        sum(getattr(one, name) for one in sessions) for name in ("probes", "passed_before", "passed_after")
    )
    repairs, back = (sum(getattr(one, name) for one in sessions) for name in ("repairs", "rolled_back"))
    screen().print(Rule("examined", style="dim", align="left"))
    say(
        f"As each session ended, memory was asked {probes} questions made from what was said. It answered "
        f"{passed} of them" + (f", and {after} after repair." if repairs or back else ".")
    )
    if repairs or back:
        say(
            f"A fact was written for what was missing: {counted(repairs, 'repair')} kept, {back} rolled back."
        )
    else:
        say(
            "Nothing was repaired: a repair writes a fact that is missing"
            + (", and without a model every statement is stored as it was said." if by_rules else ".")
        )
    if failed:
        first = f"; the first {_PROBES} of these" if len(failed) > _PROBES else ""
        say((f"What it could not answer at first: {counted(len(failed), 'question')}{first}.", "dim"))
    shown_now = failed[:_PROBES]
    scope = memory.scope()
    say_probes(shown_now, memory.bank.turns(scope, sources(shown_now)))


def _say_step(node: str, words: str) -> None:
    notable = any(word in words for word in _NOTABLE)
    line = Table.grid(padding=(0, 2))
    line.add_column(justify="right", width=_NAMES, style="cyan", no_wrap=True)
    line.add_column(overflow="fold")
    line.add_row(node, Text(shown(words), style="yellow" if notable else ""))
    screen().print(line)


def _ask(memory: "Memory", question: str) -> "Answer":
    screen().print(Rule(question, style="bold", align="left", characters=" "))
    nodes, answer = _recall(memory, question)
    say((" > ".join(nodes), "dim"))
    say_answer(answer, limit=_SOURCES)
    return answer


def _summary(memory: "Memory", answers: "list[Answer]") -> dict[str, Any]:
    """What is stored now and what was answered, as `memcycle demo --json` prints it."""
    scope = memory.scope()
    stored = memory.bank.count(scope)
    superseded = memory.bank.count(scope, statuses=("superseded", "forgotten"))
    return {
        "turns": stored.get("raw", 0),
        "facts": stored.get("fact", 0),
        "episodes": stored.get("episode", 0),
        "refreshed": superseded.get("fact", 0),
        "examined": {name: sum(getattr(one, name) for one in memory.sessions()) for name in _EXAMINED},
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


def words_of(event: "Event", texts: "Texts") -> str:
    """One line on what a node decided.

    Args:
        event: As the graph streamed it. texts: where what stands behind its ids is looked up.
    """
    tell = _TOLD.get(event["event"])
    return event["event"].replace("_", " ") if tell is None else tell(event, texts)


class Texts:
    """Texts by the ids of entries and probes."""

    def __init__(self, memory: "Memory", scope: "Scope") -> None:
        self._bank, self._scope = memory.bank, scope

    def entries(self, ids: Sequence[str]) -> str:
        """What these entries say."""
        found = self._bank.get(self._scope, ids)
        return ", ".join(_quoted(one.title or one.text) for one in found[:_SHOWN])

    def probe(self, probe_id: str) -> "Probe | None":
        """The probe; None where what it rests on was forgotten."""
        return next((one for one in self._bank.probes(self._scope) if one.id == probe_id), None)


_SHOWN = 2
"""Texts of a list that are shown."""

_GONE = "the probe is gone: what it rests on was forgotten"


def _quoted(text: str, most: int = 60) -> str:
    """A text in quotation marks, its end cut off where it is long."""
    flat = " ".join(text.split())
    return f'"{flat if len(flat) <= most else flat[: most - 3] + "..."}"'


def _listed(counts: Mapping[str, int], none: str) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.items() if number) or none


def _refused(count: int) -> str:
    return f"; {count} refused so far" if count else ""


def _staged(event: Any, _: Texts) -> str:
    turns = event["turns"]
    if not turns:
        return "nothing new: all of it is stored"
    return f"{counted(len(turns), 'turn')} written as said, {turns[0]} to {turns[-1]}"


def _judged(event: Any, _: Texts) -> str:
    route = event["route"].upper() if event["route"] != "Pass" else "pass"
    route += f" ({event['why']})" if event["why"] else ""
    found = f"{event['relevant']} of {event['shown']} bear on it"
    conflicts = event["conflicts"]
    contradicted = f"; {counted(conflicts, 'CONFLICT', 'CONFLICTS')}" if conflicts else ""
    return f"{route}: {found}{contradicted}"


def _applied(event: Any, texts: Texts) -> str:
    gone = event["refreshed"]
    first = f", first {texts.entries(event['facts'][:1])}" if event["facts"] else ""
    superseded = f"; SUPERSEDED {texts.entries(gone)}" if gone else ""
    return f"{counted(len(event['facts']), 'fact')} stored{first}{superseded}{_refused(event['rejected'])}"


def _answered(event: Any, texts: Texts) -> str:
    sources = event["evidence"]
    first = f", the first {texts.entries(sources[:1])}" if sources else ""
    return f"{event['mode']} from {counted(len(sources), 'source')}{first}"


def _probed(event: Any, texts: Texts) -> str:
    first = texts.probe(event["probes"][0]) if event["probes"] else None
    said = f", first {_quoted(first.question)}" if first else ""
    return f"{counted(len(event['probes']), 'probe')} made from the turns{said}"


def _probe_answered(event: Any, texts: Texts) -> str:
    return "; ".join(_memory_says(texts.probe(name)) for name in event["probes"])


def _memory_says(probe: "Probe | None") -> str:
    tried = (probe.after or probe.before) if probe is not None else None
    if probe is None or tried is None:
        return _GONE
    said = "nothing" if tried.abstained else _quoted(tried.answer)
    return f"probe {probe.n} {_quoted(probe.question)} memory says {said}"


def _repair_tried(event: Any, texts: Texts) -> str:
    return "; ".join(_proposed(texts.probe(name)) for name in event["probes"])


def _proposed(probe: "Probe | None") -> str:
    if probe is None or probe.repair is None:
        return _GONE
    repair = probe.repair
    if repair.draft is None:
        return f"probe {probe.n}: {repair.decision}, {repair.why or repair.cause}"
    return f"probe {probe.n}: proposes {_quoted(repair.draft['text'])}, {repair.cause}"


def _committed(event: Any, _: Texts) -> str:
    said = f"{counted(event['committed'], 'memory', 'memories')} active now"
    if event["probes"]:
        said += f"; probes passed {event['passed_before']} -> {event['passed_after']} of {event['probes']}"
    return said + ("; UNVERIFIED" if event["status"] == "committed_unverified" else "")


_TOLD: Mapping[str, Callable[[Any, Texts], str]] = {
    "staged": _staged,
    "planned": lambda event, _: f"searches planned: {_listed(event['searches'], 'none')}",
    "found": lambda event, _: f"{counted(event['candidates'], 'candidate')} so far",
    "judged": _judged,
    "settled": lambda event, texts: f"outdated by time: {texts.entries(event['outdated']) or 'nothing'}",
    "guided": lambda event, _: (
        f"{event['keep']} to keep, {event['redundant']} known already, {event['conflicts']} in conflict"
    ),
    "drafted": lambda event, _: f"{counted(event['facts'], 'fact')} drafted",
    "allowed": lambda event, _: _listed(event["edits"], "nothing to write") + _refused(event["rejected"]),
    "applied": _applied,
    "triggered": lambda event, _: "an episode ends" if event["episodes"] else "the topic goes on",
    "remembered": lambda event, _: f"{counted(len(event['facts']), 'fact')} read from the turns",
    "thought": lambda event, _: "answerable" if event["answerable"] else "not answerable yet",
    "refined": lambda event, _: "asks anew" if event["new_query"] else "nothing left to try",
    "answered": _answered,
    "opened": lambda event, _: f"{counted(event['waiting'], 'turn')} still to be read",
    "summarised": lambda event, texts: texts.entries(event["episodes"]) or "nothing left to summarise",
    "probed": _probed,
    "probe_answered": _probe_answered,
    "graded": lambda event, _: f"{counted(len(event['failed']), 'probe')} failed",
    "repair_tried": _repair_tried,
    "repair_decided": lambda event, _: f"{event['decision']} what the repair proposes",
    "repair_written": lambda event, _: f"{counted(len(event['entries']), 'repair')} written so far",
    "rolled_back": lambda event, _: (
        f"{counted(event['repairs'], 'repair')} rolled back" if event["repairs"] else "every repair helped"
    ),
    "maintained": lambda event, _: _listed(
        {key: event[key] for key in ("merged", "reinforced", "expired", "superseded")}, "nothing to tidy"
    ),
    "committed": _committed,
}
