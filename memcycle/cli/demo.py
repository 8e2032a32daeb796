"""`demo`: a small conversation written for it, remembered step by step, then questioned."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
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

if TYPE_CHECKING:
    from memcycle.core.turn import Conversation
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
_NOTABLE = ("CONFLICT", "SUPERSEDED", "Retry", "UPDATE", "INSERT", "MERGE", "unverified")
_NAMES = 14
"""Columns for the name of a node."""


def conversation() -> "Conversation":
    """The conversation of the demonstration."""
    from memcycle.core.jsonl import read_jsonl

    text = (files("memcycle") / "demo.jsonl").read_text("utf-8")
    return read_jsonl(text, zone=UTC, name="demo")


def demo(
    *,
    home: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the memory here.", show_default="a folder that is removed"),
    ] = None,
    model: opt.ModelName = None,
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
            _run(memory, model=model or "rules", kept=home)


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
    context = Context(user=USER, session=session)
    stream = memory.graphs[graph].stream(value, context=context, stream_mode=["custom", "values"])
    for mode, data in stream:
        if mode == "values":
            output = data
        elif tell is not None:
            tell(data["node"], words_of(data, memory))
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
    _say_examined(memory, _examined(memory), by_rules=model == "rules")
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
                "rules. With --model, such as openai:NAME, the same graphs are run by a model.",
                "dim",
            )
        )
    if kept is not None:
        say((f'Go on with: memcycle ask "..." --user demo --home {kept}', "dim"))


def _say_examined(memory: "Memory", examined: Mapping[str, int], *, by_rules: bool) -> None:
    """What the sessions were examined with, and each probe that memory could not answer at first."""
    repairs, back = examined["repairs"], examined["rolled_back"]
    screen().print(Rule("examined", style="dim", align="left"))
    say(
        f"As each session ended, memory was asked {examined['probes']} questions made from what was said. It "
        f"answered {examined['passed_before']} of them"
        + (f", and {examined['passed_after']} after repair." if repairs or back else ".")
    )
    if repairs or back:
        say(f"A fact was written for what was missing: {repairs} repairs kept, {back} rolled back.")
    else:
        why = ", and without a model every statement is stored as it was said" if by_rules else ""
        say(f"Nothing was repaired: a repair writes a fact that is missing{why}.")
    probes = memory.bank.probes(memory.scope())
    failed = [one for one in probes if one.before is not None and one.before.verdict == "failed"]
    if failed:
        first = f"; the first {_PROBES} of these" if len(failed) > _PROBES else ""
        say((f"What it could not answer at first: {counted(len(failed), 'question')}{first}.", "dim"))
    say_probes(failed[:_PROBES], memory.bank.turns(memory.scope(), sources(failed[:_PROBES])))


def _examined(memory: "Memory") -> dict[str, int]:
    return {name: sum(getattr(one, name) for one in memory.sessions()) for name in _EXAMINED}


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
        "examined": _examined(memory),
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


_TOLD: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "staged": ("{turns} turns written as said", {}),
    "planned": ("searches planned: {searches}", {}),
    "found": ("{candidates} candidates so far", {}),
    "judged": (
        "{route} ({why}): {relevant} of {shown} bear on it",
        {"conflicts": "CONFLICTS: {conflicts}"},
    ),
    "settled": ("outdated by time: {outdated}", {"outdated": "{outdated_said}"}),
    "guided": ("{keep} to keep, {redundant} known already, {conflicts} in conflict", {}),
    "drafted": ("{facts} facts drafted", {}),
    "allowed": ("{edits}", {"rejected": "{rejected} refused so far"}),
    "applied": (
        "{facts} facts stored",
        {
            "facts": "the first: {facts_said}",
            "refreshed": "SUPERSEDED: {refreshed_said}",
            "rejected": "{rejected} refused so far",
        },
    ),
    "triggered": ("{episodes} episodes end", {}),
    "remembered": ("{facts} facts read from the turns", {}),
    "thought": ("answerable: {answerable}", {}),
    "refined": ("something new to ask: {new_query}", {}),
    "answered": ("{mode} from {evidence} sources", {"evidence": "the first: {evidence_said}"}),
    "opened": ("{waiting} turns still to be read", {}),
    "summarised": ("{episodes} episodes", {"episodes": "{episodes_said}"}),
    "probed": ("{probes} probes made from the turns", {"probes": "the first: {probes_said}"}),
    "probe_answered": ("asked {probes_said}", {}),
    "graded": ("{passed} probes passed, {failed} failed", {"failed": "the first: {failed_said}"}),
    "repair_tried": ("how to answer {probes_said}", {}),
    "repair_decided": ("{decision} what the repair proposes", {}),
    "repair_written": ("{entries} repairs written so far", {"entries": "the first: {entries_said}"}),
    "rolled_back": ("{repairs} repairs rolled back", {}),
    "maintained": ("{merged} merged, {reinforced} reinforced, {expired} expired, {superseded} renewed", {}),
    "committed": (
        "{committed} memories active now, {status}",
        {"probes": "probes passed {passed_before} -> {passed_after} of {probes}"},
    ),
}
"""What an event is told as, and what is added where a field of it is not empty; `_said`: the first text."""


def words_of(event: "Event", memory: "Memory") -> str:
    """One line on what a node decided, as the graph streamed it; texts are looked up by their ids."""
    if event["event"] not in _TOLD:
        return str(event["event"]).replace("_", " ")
    told, more = _TOLD[event["event"]]
    shown_as: dict[str, Any] = {}
    for name, value in event.items():
        shown_as[name] = value
        if isinstance(value, list):
            shown_as |= {name: len(value), f"{name}_said": _first(memory, value)}
        elif isinstance(value, dict):
            shown_as[name] = ", ".join(f"{number} {kind}" for kind, number in value.items()) or "none"
    added = [words for name, words in more.items() if event.get(name)]
    return "; ".join((told, *added)).format(**shown_as)


def _first(memory: "Memory", ids: list[str]) -> str:
    """What the first of these entries or probes says; nothing where it is gone."""
    entries = memory.bank.get(memory.scope(), ids[:1])
    probes = memory.bank.probes(memory.scope()) if ids and not entries else []
    texts = [one.title or one.text for one in entries]
    texts += [one.question for one in probes if one.id == ids[0]]
    return f'"{" ".join(texts[0].split())}"' if texts else ""


COMMANDS = {"demo": demo}
