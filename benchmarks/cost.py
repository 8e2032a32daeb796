"""What a model is asked for: calls and tokens a session and a question, in each profile.

    python -m benchmarks.cost --data locomo10.json --conversation conv-26 --sessions 3

Each session is remembered whole, by pairs of turns, and whole without its examination; then questions are
asked whose first evidence suffices, and some whose evidence never does. The model answers each role as the
rules would from the same input, by the real prompts and parser (see `tests.rules_model`); one probe in seven
fails. Tokens are those of `cl100k_base` where tiktoken has its tables, of prompts and replies alone.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Annotated, Any, Literal, get_args

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.speed import sample_of
from memcycle.core.language.token_count import token_counter
from memcycle.core.probe import Usage
from memcycle.core.settings import Settings
from memcycle.core.turn import Session
from memcycle.evals.dataset import Sample
from memcycle.memory import Memory
from tests.rules_model import RulesModel, roles_on

Profile = Literal["lean", "paper"]
FAILING = 7
"""One probe in so many is not answered."""


@dataclass(frozen=True)
class Cost:
    """Means of calls and tokens, a session or a question."""

    calls: float
    prompt: float
    completion: float

    @classmethod
    def of(cls, usages: Iterable[Usage]) -> "Cost":
        """The means of what each used."""
        sums = [
            [
                sum(count[name] for count in usage.values())
                for name in ("calls", "input_tokens", "output_tokens")
            ]
            for usage in usages
        ]
        return cls(*(mean(column) for column in zip(*sums, strict=True)))


def measure(sample: Sample, profile: Profile, sessions: int, questions: int) -> dict[str, Cost]:
    """What each way of feeding a conversation and of asking costs, by its name."""
    model = RulesModel(failing=FAILING, sure=True)
    parts = sample.conversation.sessions[:sessions]

    def remembered(size: int, verify: bool | None, then: Callable[[Memory], Any] = lambda _: None) -> Cost:
        with (
            tempfile.TemporaryDirectory() as home,
            Memory.open(
                settings=Settings(home=Path(home), profile=profile), roles=roles_on(model), user="u"
            ) as memory,
        ):
            cost = Cost.of([_session(memory, one, size, verify) for one in parts])
            then(memory)
        return cost

    asked: dict[str, Cost] = {}

    def ask(memory: Memory) -> None:
        for name, sure in (("question, sufficient", True), ("question, never sufficient", False)):
            model.sure = sure
            texts = [question.question for question in sample.questions[:questions]]
            asked[name] = Cost.of([memory.ask(text).usage for text in texts])
        model.sure = True

    return {
        "session, whole": remembered(sys.maxsize, None, ask),
        "session, by pairs": remembered(2, None),
        "session, whole, not examined": remembered(sys.maxsize, False),
    } | asked


def _session(memory: Memory, session: Session, size: int, verify: bool | None) -> Usage:
    """What a session used, fed so many turns at a time, with its end; by step and role."""
    turns: Sequence[Any] = session.turns
    used = [memory.add(list(turns[first : first + size])).usage for first in range(0, len(turns), size)]
    used.append(memory.end_session(session.name, verify=verify).usage)
    return {f"{n} {role}": count for n, usage in enumerate(used) for role, count in usage.items()}


def main(
    data: Annotated[Path, typer.Option(help="The LoCoMo file, locomo10.json.")],
    conversation: Annotated[str, typer.Option(help="Sample id.")] = "conv-26",
    sessions: Annotated[int, typer.Option(min=1, help="Sessions remembered.")] = 3,
    questions: Annotated[int, typer.Option(min=1, help="Questions asked at most.")] = 20,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Counts model calls and tokens of one conversation and its questions, in each profile."""
    sample = sample_of(data, conversation)
    profiles: Sequence[Profile] = get_args(Profile)
    shown = track(profiles, "asking", console=Console(stderr=True), transient=True)
    figures = {profile: measure(sample, profile, sessions, questions) for profile in shown}
    if json_:
        told = {name: {one: vars(cost) for one, cost in costs.items()} for name, costs in figures.items()}
        sys.stdout.write(json.dumps(told | {"exact": token_counter().exact}) + "\n")
        return
    table = Table("mean of one", *(f"{name}: calls / prompt / completion" for name in figures))
    for one in next(iter(figures.values())):
        cells = [
            f"{c[one].calls:.1f} / {c[one].prompt:,.0f} / {c[one].completion:,.0f}" for c in figures.values()
        ]
        table.add_row(one, *cells)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
