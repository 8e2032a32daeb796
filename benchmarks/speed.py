"""What memcycle's own time is: a turn, a session and a question.

    python -m benchmarks.speed --data locomo10.json --conversation conv-26

The conversation goes through the remember and session graphs chunk by chunk, then questions, spread evenly
over the sample's, through the recall graph; only their text is given. Twice: with the rules, and with a chat
model (see `tests.rules_model`) behind the real runner, prompts and parser. The time the model needs
for its replies is taken off, so that what remains is memcycle's own. What a model is asked for is counted by
`benchmarks.cost`. The first question is asked once before it is measured: loading is not counted.

A session's end is all that `end_session` does: its last turns become an episode, its memory is examined and
repaired (with the shipped number of probes), kept in order and committed.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC
from functools import partial
from math import ceil
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from memcycle.agents.roles import Roles
from memcycle.core.errors import BadInput
from memcycle.core.probe import Usage
from memcycle.evals.dataset import Sample, chosen
from memcycle.evals.datasets.locomo import load_locomo
from memcycle.memory import Memory
from memcycle.results import Added, Answer, Ended
from tests.rules_model import RulesModel, roles_on

CHUNK_TURNS = 20
"""Turns remembered in one go: the window at which an episode saturates."""
Unit = Literal["chunk", "session's end", "question"]
UNITS: tuple[Unit, ...] = ("chunk", "session's end", "question")


@dataclass(frozen=True)
class Step:
    """One chunk remembered, session ended or question answered.

    Attributes:
        turns: Turns of the chunk, 0 for others.
        seconds: Time it took, without that of the model.
    """

    unit: Unit
    turns: int
    seconds: float
    usage: Usage


def sample_of(data: Path, conversation: str) -> Sample:
    """A conversation of a LoCoMo file; where there is none, the end of the command."""
    try:
        [sample] = chosen(load_locomo(data, zone=UTC), conversation)
    except BadInput as error:
        sys.stderr.write(f"{error}\n")
        raise typer.Exit(1) from None
    return sample


def measure(sample: Sample, roles: Roles, busy: Callable[[], float], chunk: int, asked: int) -> list[Step]:
    """Every step of a sample's conversation and of `asked` of its questions, in a home of its own.

    Args:
        sample: The conversation and its questions.
        roles: Who remembers and answers.
        busy: Seconds that the model of `roles` has needed so far.
        chunk: Turns a chunk.
        asked: Questions at most, at least 1.
    """
    steps: list[Step] = []
    with (
        tempfile.TemporaryDirectory() as home,
        Memory.open(home, user=sample.id, roles=roles) as memory,
    ):
        sessions = sample.conversation.sessions
        for session in track(sessions, "remembering", console=Console(stderr=True), transient=True):
            for start in range(0, len(session.turns), chunk):
                turns = list(session.turns[start : start + chunk])
                steps.append(timed("chunk", partial(memory.add, turns), busy, len(turns)))
            steps.append(timed("session's end", partial(memory.end_session, session.name), busy))
        questions = _spread([question.question for question in sample.questions], asked)
        for question in questions[:1]:
            memory.ask(question)
        steps.extend(timed("question", partial(memory.ask, question), busy) for question in questions)
    return steps


def timed(
    unit: Unit, run: Callable[[], Added | Ended | Answer], busy: Callable[[], float], turns: int = 0
) -> Step:
    """One step, run and measured; `busy` as in `measure`."""
    started = perf_counter() - busy()
    usage = run().usage
    return Step(unit, turns, perf_counter() - busy() - started, usage)


def _spread(questions: Sequence[str], wanted: int) -> Sequence[str]:
    """As many questions as wanted, evenly from all."""
    return questions[:: max(1, len(questions) // wanted)][:wanted]


def times(steps: Sequence[Step]) -> dict[str, dict[str, float]]:
    """Median and 95th percentile in milliseconds of each unit; a turn has its share of its chunk."""
    values = {
        "turn": [1000 * step.seconds / step.turns for step in steps if step.unit == "chunk"],
        "session's end": [1000 * step.seconds for step in steps if step.unit == "session's end"],
        "question": [1000 * step.seconds for step in steps if step.unit == "question"],
    }
    return {
        name: {"median": median(own), "p95": sorted(own)[ceil(0.95 * len(own)) - 1]}
        for name, own in values.items()
        if own
    }


def _time_table(figures: dict[str, dict[str, dict[str, float]]]) -> Table:
    table = Table("milliseconds", title="Own time, without the model's")
    for setup in figures:
        table.add_column(f"{setup}: median", justify="right")
        table.add_column("p95", justify="right")
    for name in next(iter(figures.values())):
        cells = [f"{own[name][figure]:.1f}" for own in figures.values() for figure in ("median", "p95")]
        table.add_row(f"a {name}", *cells)
    return table


def main(
    data: Annotated[Path, typer.Option(help="The LoCoMo file, locomo10.json.")],
    conversation: Annotated[str, typer.Option(help="Sample id.")] = "conv-26",
    chunk_turns: Annotated[int, typer.Option(min=1, help="Turns remembered in one go.")] = CHUNK_TURNS,
    questions: Annotated[int, typer.Option(min=1, help="Questions asked at most.")] = 40,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object with every step.")] = False,
) -> None:
    """Measures the time of one conversation and its questions, by rules and with a model of no latency."""
    sample = sample_of(data, conversation)
    model = RulesModel()
    steps = {
        "rules": measure(sample, Roles.rules(), lambda: 0.0, chunk_turns, questions),
        "model": measure(sample, roles_on(model), lambda: model.seconds, chunk_turns, questions),
    }
    time = {setup: times(own) for setup, own in steps.items()}
    if json_:
        figures = {
            "conversation": conversation,
            "chunk_turns": chunk_turns,
            "milliseconds": time,
            "steps": {setup: [asdict(step) for step in own] for setup, own in steps.items()},
        }
        sys.stdout.write(json.dumps(figures) + "\n")
        return
    Console().print(_time_table(time))


if __name__ == "__main__":
    typer.run(main)
