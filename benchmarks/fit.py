"""Fits the weights of the search's signals on the tuning half of LoCoMo, and says what to expect elsewhere.

    python -m benchmarks.fit --data locomo10.json
    python -m benchmarks.fit --data locomo10.json --facts

Only conversations 1-5 are asked. Each of their questions is searched once, the signals of every turn are
kept, and the weights are those that make the gold turns most likely under a softmax over all turns of the
conversation (listwise, ListNet's top one: Cao et al., ICML 2007), with an L2 penalty and no weight below 0.
The problem is convex, so that Newton's method always ends at the same weights. `--facts` stores the data
set's observations too.

`held` is honest for conversations that nothing was fitted on: each of the five is ranked by weights fitted on
the other four. `shipped` are the weights of `core.theta`, which were rounded from such fits.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from memcycle.core.errors import BadInput
from memcycle.core.theta import Theta, Weights
from memcycle.evals.dataset import Sample
from memcycle.evals.datasets.locomo import TUNING, load_locomo
from memcycle.evals.records import NONE, OBSERVATIONS
from memcycle.evals.run import base_scope, store
from memcycle.memory import Memory
from memcycle.stores.search.ranker import NAMES
from memcycle.stores.search.request import Query, SearchRequest

Floats = NDArray[np.float64]

K, PENALTY = 10, 0.3
STEPS, ENOUGH, SHORTEST = 50, 1e-7, 1e-4
LEFT_OUT = ("dense", "neighbours", "importance", "recency", "reinforcement")
"""Signals that no fit gives a weight: they say the same as others here, or nothing."""


@dataclass(frozen=True)
class Example:
    """One question.

    Attributes:
        signals: Of each turn of its conversation, (turns, signals), evidence relative to the best.
        gold: Places of its gold turns.
    """

    conversation: str
    signals: Floats
    gold: NDArray[np.int64]


@dataclass(frozen=True)
class Fit:
    """What a fit comes to. Shares are of gold turns among the first ten.

    Attributes:
        weights: By signal, fitted on all conversations.
        held: By conversation, the mean share by weights that were fitted on the others.
        fitted, shipped: Mean share over all questions, by `weights` and by those of `core.theta`.
    """

    weights: dict[str, float]
    held: dict[str, float]
    fitted: float
    shipped: float

    @property
    def held_mean(self) -> float:
        """Mean over the conversations."""
        return fmean(self.held.values())


def examples(samples: Iterable[Sample], facts: str) -> list[Example]:
    """The questions of samples, each stored in a memory of its own and searched for raw turns."""
    made: list[Example] = []
    for sample in samples:
        with tempfile.TemporaryDirectory() as home, Memory.open(home) as memory:
            store(memory, sample, facts)
            asked = [one for one in sample.questions if one.evidence and not one.adversarial]
            for question in track(asked, sample.id, console=Console(stderr=True), transient=True):
                request = SearchRequest(
                    scope=base_scope(sample),
                    queries=(Query(text=question.question),),
                    granularities=("raw",),
                )
                [looked] = memory.bank.indexes.search.candidates(request)
                turns = memory.bank.get(request.scope, [looked.snapshot.ids[at] for at in looked.places])
                gold = [place for place, turn in enumerate(turns) if set(turn.turns) & set(question.evidence)]
                if gold:
                    signals = looked.measured.relative().T
                    made.append(Example(sample.id, signals, np.array(gold)))
    return made


def fit(made: Sequence[Example], names: Sequence[str], penalty: float) -> dict[str, float]:
    """The best weights of these signals, none below 0; those that would be are left out."""
    left = list(names)
    while left:
        found = _newton(made, [NAMES.index(name) for name in left], penalty)
        if found.min() >= 0:
            return dict(zip(left, found.tolist(), strict=True))
        left = [name for name, weight in zip(left, found, strict=True) if weight > 0]
    return {}


def _newton(made: Sequence[Example], columns: Sequence[int], penalty: float) -> Floats:
    """Weights of least loss: -log softmax, meant over gold turns, summed over questions, plus the penalty."""
    signals = np.concatenate([one.signals[:, columns] for one in made])
    sizes = [len(one.signals) for one in made]
    starts, question = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(made)), sizes)
    gold = np.sum([one.signals[one.gold][:, columns].mean(axis=0) for one in made], axis=0)

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = signals @ weights
        top = np.maximum.reduceat(scores, starts)
        share = np.exp(scores - top[question])
        total = np.add.reduceat(share, starts)
        value = (np.log(total) + top).sum() - gold @ weights + penalty * weights @ weights / 2
        return float(value), share / total[question]

    weights = np.ones(len(columns))
    value, share = loss(weights)
    for _ in range(STEPS):
        expected = np.add.reduceat(signals * share[:, None], starts)
        slope = expected.sum(axis=0) - gold + penalty * weights
        bend = signals.T @ (signals * share[:, None]) - expected.T @ expected
        step, length = np.linalg.solve(bend + penalty * np.eye(len(columns)), slope), 1.0
        before = value
        value, share = loss(weights - step)
        while value > before and length > SHORTEST:
            length /= 2
            value, share = loss(weights - length * step)
        weights = weights - length * step
        if before - value <= ENOUGH * abs(before):
            break
    return weights


def found(made: Iterable[Example], weights: dict[str, float]) -> list[float]:
    """Share of each question's gold turns among the first ten."""
    weight = np.array([weights.get(name, 0.0) for name in NAMES])
    shares = []
    for one in made:
        first = np.argsort(-(one.signals @ weight), kind="stable")[:K]
        shares.append(np.isin(one.gold, first).mean())
    return shares


def cross_validated(made: Sequence[Example], names: Sequence[str], penalty: float) -> Fit:
    """Weights fitted on all, and each conversation ranked by weights fitted on the others."""
    held = {}
    for conversation in dict.fromkeys(one.conversation for one in made):
        others = [one for one in made if one.conversation != conversation]
        own = [one for one in made if one.conversation == conversation]
        held[conversation] = fmean(found(own, fit(others, names, penalty)))
    weights = fit(made, names, penalty)
    return Fit(weights, held, fmean(found(made, weights)), fmean(found(made, Weights().model_dump())))


def _show(result: Fit, questions: int) -> None:
    table = Table("signal", "fitted", "shipped", title=f"Weights, {questions} questions")
    for name, shipped in Weights().model_dump().items():
        table.add_row(name, f"{result.weights.get(name, 0.0):.2f}", f"{shipped:g}")
    held = ", ".join(f"{name} {share:.3f}" for name, share in result.held.items())
    console = Console()
    console.print(table)
    console.print(f"gold turns among the first {K}: held {result.held_mean:.3f} ({held})")
    console.print(f"on what they were fitted on: {result.fitted:.3f}; shipped: {result.shipped:.3f}")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the LoCoMo file, locomo10.json")
    parser.add_argument("--facts", action="store_true", help="store the data set's observations too")
    parser.add_argument("--penalty", type=float, default=PENALTY, help=f"of squared weights ({PENALTY})")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args(argv)
    try:
        samples = [one for one in load_locomo(arguments.data, zone=UTC) if one.id in TUNING]
    except BadInput as error:
        sys.stderr.write(f"{error}\n")
        return 1
    made = examples(samples, OBSERVATIONS if arguments.facts else NONE)
    if len({one.conversation for one in made}) < 2:  # noqa: PLR2004 - one to fit on, one to hold
        sys.stderr.write(f"two of {', '.join(TUNING)} with questions are needed; the data hold fewer\n")
        return 1
    # Without facts `facts` says what `window` says: the two share one weight.
    left_out = (*LEFT_OUT, "window" if arguments.facts else "facts")
    result = cross_validated(made, [name for name in NAMES if name not in left_out], arguments.penalty)
    if arguments.json:
        answer = {"questions": len(made), **asdict(result), "held_mean": result.held_mean}
        sys.stdout.write(json.dumps(answer | {"theta": Theta().version}) + "\n")
    else:
        _show(result, len(made))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
