"""Fits how likely what a search found bears on what was asked, and says what that changes.

    python -m benchmarks.relevance --data locomo10.json
    python -m benchmarks.relevance --data locomo10.json --report

Stored is each of conversations 1-5, alone and with the notes of `notes.txt` among it (a note a line, then
what asks for it, keywords last). Asked are their questions, and the messages of `off_topic.txt` (small talk,
general knowledge). Both files are self-written. A logistic model tells the two apart by
`stores.search.ranker.told_of`, among what is judged; questions count as if they named nobody, and only where
evidence was found. Figures of a conversation are by coefficients fitted on the other four. Below
`relevance`, theta's, lie `LOST` of the held questions; the rest is `core.theta.RELEVANCE`.

`--report` asks conversations 6-10 as shipped.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.fit import Floats
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.theta import Theta
from memcycle.core.turn import Turn
from memcycle.evals.dataset import Sample
from memcycle.evals.datasets.locomo import ANSWERABLE, TUNING, load_locomo
from memcycle.stores.bank import Bank
from memcycle.stores.search import ranker
from memcycle.stores.search.request import Query, SearchRequest, is_judged

SHOWN, K, LOST, STEPS = 30, 10, 0.005, 40


@dataclass(frozen=True)
class Example:
    """What was found for a message. `memory`: whose, whether with notes; `recall`: in the first `K`."""

    memory: tuple[str, bool]
    asks: bool
    judged: bool
    fits: bool
    told: Floats
    likely: float
    bearing: int
    lines: int
    recall: float


def examples(bank: Bank, sample: Sample, noted: bool) -> list[Example]:
    """What is found for each message in a conversation, with notes among it or alone."""
    scope = Scope(user=f"{sample.id} {noted}")
    asked = [(one.question, one.evidence) for one in sample.questions if one.category in ANSWERABLE]
    sessions = [(one.name, list(one.turns)) for one in sample.conversation.sessions]
    if noted:
        rows = [line.split(" | ") for line in _lines("notes.txt")]
        last = sessions[-1][1][-1].time
        said = [
            Turn(id=f"n{n}", session="n", position=n, speaker="user", role="human", text=row[0], time=last)
            for n, row in enumerate(rows, 1)
        ]
        sessions.append(("n", said))
        asked = [(text, (f"n{n}",)) for n, row in enumerate(rows, 1) for text in row[1:]]
    for name, turns in sessions:
        bank.stage_turns(scope.within(name), turns)
        bank.commit_session(scope.within(name))
    asked = [one for one in asked if one[1]] + [(text, ()) for text in _lines("off_topic.txt")]
    return [_example(bank, scope, (sample.id, noted), text, frozenset(gold)) for text, gold in asked]


def _lines(name: str) -> list[str]:
    return Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()


def _example(bank: Bank, scope: Scope, memory: tuple[str, bool], text: str, gold: frozenset[str]) -> Example:
    [ranking] = bank.rank(
        SearchRequest(scope=scope, queries=(Query(text=text),), granularities=("raw",), k=SHOWN, telling=True)
    )
    turns = {entry.id: frozenset(entry.turns) for entry in bank.get(scope, [one.id for one in ranking.found])}
    found = [turns[one.id] & gold for one in ranking.found]
    judged = is_judged(text) and ranking.likely > 0
    return Example(
        memory=memory,
        asks=bool(gold),
        judged=judged,
        fits=judged and bool(found) and bool(gold) == any(found),
        told=ranker.told_of(ranking.measured, [one.place for one in ranking.found]),
        likely=ranking.likely,
        bearing=sum(map(bool, found)),
        lines=len(found),
        recall=len(frozenset[str]().union(*found[:K])) / max(len(gold), 1),
    )


def fit(made: Sequence[Example]) -> tuple[float, list[float]]:
    """Intercept and weights of least logistic loss, each kind counting as much, with a small L2 penalty."""
    told, asks = np.array([one.told for one in made]), np.array([float(one.asks) for one in made])
    share = np.where(asks > 0, 0.5 / asks.sum(), 0.5 / (1 - asks).sum()) * len(made)
    mean, scale = told.mean(axis=0), told.std(axis=0) + 1e-9
    rows, weights = np.column_stack([np.ones(len(made)), (told - mean) / scale]), np.zeros(told.shape[1] + 1)
    for _ in range(STEPS):
        guess = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (share * (guess - asks)) + np.append(0.0, weights[1:])
        bend = (rows.T * (share * guess * (1 - guess))) @ rows + np.eye(len(weights))
        weights = weights - np.linalg.solve(bend, slope)
    return float(weights[0] - (weights[1:] / scale) @ mean), (weights[1:] / scale).tolist()


def held_out(made: Sequence[Example]) -> list[float]:
    """How likely each bears, by coefficients fitted on the other conversations."""
    by = {name: fit([one for one in made if one.fits and one.memory[0] != name]) for name in TUNING}
    return [ranker.bears(one.told, *by[one.memory[0]]) if one.judged else one.likely for one in made]


def figures(made: Sequence[Example], likely: Sequence[float], least: float) -> dict[str, float]:
    """Shares, of conversations alone and with notes: what gets nothing, which lines bear, recall."""
    said: dict[str, float] = {}
    for name, noted in (("alone", False), ("with notes", True)):
        own = [pair for pair in zip(made, likely, strict=True) if pair[0].memory[1] == noted]
        for when, floor in (("before", 0.0), ("after", least)):
            shown = [(one, value >= floor) for one, value in own]
            asked, off = [one for one in shown if one[0].asks], [one for one in shown if not one[0].asks]
            lines = sum(one.lines for one, s in shown if s)
            said |= {
                f"{name}, {when}: off-topic messages that get nothing": fmean(not s for _, s in off),
                f"{name}, {when}: questions that lose all evidence": fmean(
                    one.bearing > 0 and not s for one, s in asked
                ),
                f"{name}, {when}: lines that bear": sum(one.bearing for one, s in shown if s) / lines,
                f"{name}, {when}: recall at {K}": fmean(one.recall * s for one, s in asked),
            }
    return said


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relevance")
    parser.add_argument("--data", type=Path, required=True, help="the LoCoMo file, locomo10.json")
    parser.add_argument("--report", action="store_true", help="6-10, as shipped")
    given = parser.parse_args(argv)
    samples = [one for one in load_locomo(given.data, zone=UTC) if (one.id in TUNING) != given.report]
    with tempfile.TemporaryDirectory() as home, Bank.open(Settings(home=Path(home))) as bank:
        made = [one for sample in samples for noted in (False, True) for one in examples(bank, sample, noted)]
    answer: dict[str, Any] = figures(made, [one.likely for one in made], Theta().relevance)
    if not given.report:
        likely, fitting = held_out(made), [one for one in made if one.fits]
        asked = [value for one, value in zip(made, likely, strict=True) if one.fits and one.asks]
        least, (intercept, weights) = float(np.quantile(asked, LOST)), fit(fitting)
        answer = {"relevance": least, "intercept": intercept, "weights": weights} | figures(
            made, likely, least
        )
    sys.stdout.write(json.dumps(answer, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
