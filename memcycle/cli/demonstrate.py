"""`demo`: the whole cycle on a conversation written for it, a step a line."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from memcycle.cli.answers import say_answer, say_usage
from memcycle.cli.options import BaseUrl, Json, Model, open_memory, settings_of
from memcycle.cli.output import print_json, say, screen, shown
from memcycle.cli.probes import say_probes, sources

if TYPE_CHECKING:
    from memcycle.demo import Step
    from memcycle.memory import Memory
    from memcycle.results import Answer

_SOURCES = 3
_PROBES = 3
_NOTABLE = ("CONFLICT", "SUPERSEDED", "RETRY", "UPDATE ", "INSERT ", "MERGE ", "rolled back", "UNVERIFIED")
_NAMES = 14
"""Columns for the name of a node."""


def demo(
    *,
    home: Annotated[
        Path | None,
        typer.Option(
            "--home", metavar="DIR", help="Keep the memory here.", show_default="a folder that is removed"
        ),
    ] = None,
    model: Model = "rules",
    base_url: BaseUrl = None,
    as_json: Json = False,
) -> None:
    """Remember a small conversation, showing what each node decides, then answer questions from it."""
    with (
        _home(home) as place,
        open_memory(settings_of(place), model=model, base_url=base_url, new=True) as memory,
    ):
        if as_json:
            _run_quietly(memory)
        else:
            _run(memory, model=model, kept=home)


@contextmanager
def _home(home: Path | None) -> Iterator[Path]:
    if home is not None:
        yield home
        return
    with tempfile.TemporaryDirectory(prefix="memcycle-demo-") as folder:
        yield Path(folder)


def _run_quietly(memory: "Memory") -> None:
    from memcycle.demo import QUESTIONS, USER, remember, summary

    for _ in remember(memory):
        pass
    print_json(summary(memory, [memory.ask(question, user=USER) for question in QUESTIONS]))


def _run(memory: "Memory", *, model: str, kept: Path | None) -> None:
    from memcycle.demo import QUESTIONS, conversation, remember, summary

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
    last = ""
    for step in remember(memory):
        if step.about != last:
            last = step.about
            screen().print(Rule(f"session {step.about}", style="dim", align="left"))
        _say_step(step)
    _say_examined(memory)
    answers = [_ask(memory, question) for question in QUESTIONS]
    stored = summary(memory, answers)
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


def _say_examined(memory: "Memory") -> None:
    """What the sessions were examined with, and each probe that memory could not answer at first."""
    from memcycle.demo import USER, examined

    sessions = examined(memory)
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
        f"As each session ended, memory was asked {probes} questions made from what was said: it answered "
        f"{passed}, and {after} after repair ({repairs} repairs kept, {back} rolled back)."
    )
    if failed:
        say((f"It could not answer {len(failed)} of them at first; {_PROBES} at most are told:", "dim"))
    shown_now = failed[:_PROBES]
    scope = memory.scope(USER)
    say_probes(shown_now, memory.bank.turns(scope, sources(shown_now)))


def _say_step(step: "Step") -> None:
    notable = any(word in step.words for word in _NOTABLE)
    line = Table.grid(padding=(0, 2))
    line.add_column(justify="right", width=_NAMES, style="cyan", no_wrap=True)
    line.add_column(overflow="fold")
    line.add_row(step.node, Text(shown(step.words), style="yellow" if notable else ""))
    screen().print(line)


def _ask(memory: "Memory", question: str) -> "Answer":
    from memcycle.demo import Step, ask

    screen().print(Rule(question, style="bold", align="left", characters=" "))
    *steps, answer = ask(memory, question)
    path = " > ".join(step.node for step in steps if isinstance(step, Step))
    if isinstance(answer, Step):
        raise TypeError("a question ends with its answer")
    say((path, "dim"))
    say_answer(answer, limit=_SOURCES)
    return answer
