"""What ending a session costs, as the sessions of one user grow in number.

    python -m memcycle.evals.endings --data locomo10.json --sessions 40

The sessions of LoCoMo conversations 1 to 5 (the tuning half) become those of one user: the first session of
each, then the second of each, and so on, so that early and late ones are of the same make. Each is remembered
chunk by chunk, then ended; only the end is measured: its last turns become an episode, its memory is examined
and repaired, kept in order and committed. Every role is asked as a model behind the real runner, prompts and
parser, see `memcycle.evals.rules_model`.

`calls`, `read`, `written`: model calls and approximate tokens of one end. `own ms`, `cpu ms`: its wall and
its processor time without the processor time of the model's replies; what else runs on the machine touches
only the first. `turns`: of the session, since longer sessions cost more. The last rows give the medians of
the first and of the last ten sessions, and by how much each column grows a session: by least squares over
the number of the session alone, and over that number and the session's turns together (`equal turns`).
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path
from statistics import median
from time import process_time
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from memcycle.core.errors import BadInput
from memcycle.core.turn import Session, turn_id
from memcycle.evals.dataset import Sample, sample_named
from memcycle.evals.datasets.locomo import TUNING, load_locomo
from memcycle.evals.rules_model import RulesModel, roles_on
from memcycle.evals.speed import CHUNK_TURNS, COUNTS, Step, timed
from memcycle.memory import Memory

USER = "one-user"
FIGURES = ("turns", "calls", "read", "written", "own_ms", "cpu_ms")
COSTS = FIGURES[1:]
EVERY = 5
ENDS = 10


@dataclass(frozen=True)
class Ending:
    """The end of the n-th session (from 1); figures as in the module's description."""

    n: int
    session: str
    turns: int
    calls: int
    read: int
    written: int
    own_ms: float
    cpu_ms: float


def united(samples: Sequence[Sample], wanted: int) -> list[Session]:
    """The first sessions of each sample in turn, as sessions of one user, at most as many as wanted."""
    named = [
        [_renamed(session, f"{sample.id}-{session.name}") for session in sample.conversation.sessions]
        for sample in samples
    ]
    by_turns = (session for round_ in zip_longest(*named) for session in round_ if session is not None)
    return list(islice(by_turns, wanted))


def _renamed(session: Session, name: str) -> Session:
    turns = (
        turn.model_copy(update={"session": name, "id": turn_id(name, turn.position)})
        for turn in session.turns
    )
    return Session(name, tuple(turns))


def measure(sessions: Sequence[Session]) -> Iterator[Ending]:
    """Remembers and ends the sessions one after another, in a home of its own."""
    model = RulesModel()
    roles = roles_on(model)
    with tempfile.TemporaryDirectory() as home, Memory.open(home, user=USER, roles=roles) as memory:
        for n, session in enumerate(sessions, 1):
            for start in range(0, len(session.turns), CHUNK_TURNS):
                memory.add(list(session.turns[start : start + CHUNK_TURNS]))
            end, started = partial(memory.end_session, session.name), process_time() - model.seconds
            step = timed("session's end", end, lambda: model.seconds)
            yield ending(n, session, step, process_time() - model.seconds - started)


def ending(n: int, session: Session, step: Step, cpu: float) -> Ending:
    """The figures of a measured step that took `cpu` seconds of processor time."""
    calls, read, written = (sum(count[name] for count in step.usage.values()) for name in COUNTS)
    return Ending(n, session.name, len(session.turns), calls, read, written, 1000 * step.seconds, 1000 * cpu)


def medians(endings: Sequence[Ending]) -> dict[str, float]:
    """Median of each figure."""
    return {name: median(getattr(one, name) for one in endings) for name in FIGURES}


def slopes(endings: Sequence[Ending], *, equal_turns: bool = False) -> dict[str, float | None]:
    """By how much each cost grows a session, by least squares; None for too few sessions to tell.

    Args:
        equal_turns: Takes apart what longer sessions cost and what later ones do.
    """
    causes = [[1.0, one.n, one.turns] if equal_turns else [1.0, one.n] for one in endings]
    if not causes or np.linalg.matrix_rank(causes) < len(causes[0]):
        return dict.fromkeys(COSTS)
    costs = [[getattr(one, name) for name in COSTS] for one in endings]
    solution, *_ = np.linalg.lstsq(np.array(causes), np.array(costs, dtype=float), rcond=None)
    return dict(zip(COSTS, map(float, solution[1]), strict=True))


def _table(endings: Sequence[Ending]) -> Table:
    table = Table(
        "session",
        title=f"Ending a session, {len(endings)} sessions of one user",
        caption="read, written: approximate tokens; ms: wall and processor time without the model's; slope: "
        "growth a session, least squares",
    )
    for heading in ("turns", "calls", "read", "written", "own ms", "cpu ms"):
        table.add_column(heading, justify="right")
    for one in endings:
        if one.n == 1 or one.n % EVERY == 0:
            table.add_row(str(one.n), *(f"{getattr(one, name):,.0f}" for name in FIGURES))
    table.add_section()
    for name, own in (("first", endings[:ENDS]), ("last", endings[-ENDS:])):
        table.add_row(f"{name} {len(own)}, median", *(f"{value:,.0f}" for value in medians(own).values()))
    settled = ("slope after 10, equal turns", endings[ENDS:], True)
    for name, own, equal_turns in (
        ("slope", endings, False),
        ("slope, equal turns", endings, True),
        settled,
    ):
        risen = slopes(own, equal_turns=equal_turns).values()
        table.add_row(name, "", *("-" if value is None else f"{value:+,.2f}" for value in risen))
    return table


def main(
    data: Annotated[Path, typer.Option(help="The LoCoMo file, locomo10.json.")],
    sessions: Annotated[int, typer.Option(min=1, help="How many sessions the user has.")] = 40,
    conversation: Annotated[
        list[str] | None, typer.Option(help="Sample ids, several allowed; conversations 1 to 5 by default.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object with every session.")] = False,
) -> None:
    """Ends the sessions of one user one after another and prints what each end costs."""
    try:
        samples = load_locomo(data, zone=UTC)
        chosen = united([sample_named(samples, name) for name in conversation or TUNING], sessions)
    except BadInput as error:
        sys.stderr.write(f"{error}\n")
        raise typer.Exit(1) from None
    shown = track(measure(chosen), "ending", len(chosen), console=Console(stderr=True), transient=True)
    endings = list(shown)
    if json_:
        figures = {
            "first": medians(endings[:ENDS]),
            "last": medians(endings[-ENDS:]),
            "slope": slopes(endings),
            "slope_equal_turns": slopes(endings, equal_turns=True),
            "slope_settled": slopes(endings[ENDS:], equal_turns=True),
            "tokens": "approximate",
            "sessions": [asdict(one) for one in endings],
        }
        sys.stdout.write(json.dumps(figures) + "\n")
        return
    Console().print(_table(endings))


if __name__ == "__main__":
    typer.run(main)
