"""Fits how likely what a search found bears on what was asked, and says what that changes.

    python -m benchmarks.relevance --data locomo10.json
    python -m benchmarks.relevance --data locomo10.json --report

Stored is each of conversations 1-5, alone and with ten notes of `notes.txt` among it (a note a line, then
what asks for it), and `HOMES` memories of each of `SIZES`: a stretch of it, every other time with notes among
it or alone. Asked are their questions, some of others, and messages of `off_topic.txt` (small talk, general
knowledge). Both files are self-written. A logistic model tells what bears by `stores.search.ranker.told_of`,
of what is judged: a question once more with "they" for who is known, where evidence was found. Each message
counts as much however often it is asked. Figures are by coefficients fitted on other messages. Below
`relevance`, theta's, lie `LOST` of the held messages that ask for notes; the rest is `core.theta.RELEVANCE`.

`--report` asks conversations 6-10, and `notes_held.txt`, as shipped.
"""

import argparse
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Any
from zlib import crc32

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
from memcycle.stores.search.request import Query, SearchRequest, form_of

SHOWN, K, LOST, STEPS, FOLDS = 30, 10, 0.002, 40, 5
SIZES, HOMES, NOTES, ALL, OFF = (1, 3, 10, 30, 100, 300), 10, 10, 313, 60
_numbers = count()


@dataclass(frozen=True)
class Example:
    """What was found for a message.

    Attributes:
        memory: How large it is, in words.
        kind: `question`, `they` (for the fit alone) and `note`; `off` and `other`, on which nothing bears.
        recall: Share of the evidence in the first `K`.
    """

    memory: str
    text: str
    kind: str
    judged: bool
    fits: bool
    told: Floats
    likely: float
    bearing: int
    lines: int
    recall: float

    @property
    def asks(self) -> bool:
        """Whether something stored bears on it."""
        return self.kind not in {"off", "other"}


Asked = tuple[str, str, frozenset[str]]
"""A message: its kind, its text, and the turns that bear on it."""


def homes(
    sample: Sample, notes: Sequence[Sequence[str]], others: Sequence[str]
) -> Iterator[tuple[str, list[Turn], list[Asked]]]:
    """Memories of all sizes, made of a conversation and notes, each with what is asked of it.

    Args:
        others: Questions to other conversations.
    """
    chance = random.Random(sample.id)  # noqa: S311 - to be repeated

    def none(few: int) -> list[Asked]:
        """Messages on which nothing bears."""
        off = [("off", text, frozenset[str]()) for text in chance.sample(_lines("off_topic.txt"), few)]
        return off + [("other", text, frozenset[str]()) for text in chance.sample(others, few // 2)]

    turns = list(sample.conversation.turns)
    places = {turn.id: place for place, turn in enumerate(turns)}
    gold = [one.evidence[0] for one in sample.questions if one.category in ANSWERABLE and one.evidence]
    for few in (0, NOTES):
        yield _home(
            sample, turns, chance.sample(notes, few), none(ALL), "whole, with notes" if few else "whole"
        )
    for size in SIZES:
        for at in range(HOMES):
            few = min(NOTES, size) * (at % 2)
            first = places[chance.choice(gold)] - chance.randrange(size)
            first = max(0, min(first, len(turns) - size))
            stretch, among = turns[first : first + size - few], chance.sample(notes, few)
            yield _home(sample, stretch, among, none(OFF), str(size))


def _home(
    sample: Sample, turns: list[Turn], notes: Sequence[Sequence[str]], none: list[Asked], name: str
) -> tuple[str, list[Turn], list[Asked]]:
    last, known = sample.conversation.turns[-1].time, {turn.id for turn in turns}
    names = re.compile(rf"\b(?:{'|'.join({turn.speaker for turn in turns} or {'-'})})\b(?:['’]s)?")
    said = [
        Turn(id=f"n{n}", session="n", position=n, speaker="user", role="human", text=row[0], time=last)
        for n, row in enumerate(notes, 1)
    ]
    asked = list(none)
    for one in sample.questions:
        if one.category in ANSWERABLE and one.evidence and known.issuperset(one.evidence):
            evidence = frozenset(one.evidence)
            asked.append(("question", one.question, evidence))
            asked.append(("they", names.sub("they", one.question), evidence))
    asked += [("note", text, frozenset({f"n{n}"})) for n, row in enumerate(notes, 1) for text in row[1:]]
    return name, turns + said, asked


def _lines(name: str) -> list[str]:
    return Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()


def examples(bank: Bank, name: str, turns: Sequence[Turn], asked: Sequence[Asked]) -> list[Example]:
    """What is found for each message in a memory of these turns."""
    scope = Scope(user=f"user {next(_numbers)}")
    for session in dict.fromkeys(turn.session for turn in turns):
        bank.stage_turns(scope.within(session), [turn for turn in turns if turn.session == session])
    queries = tuple(Query(text=text) for _, text, _ in asked)
    rankings = bank.rank(
        SearchRequest(scope=scope, queries=queries, granularities=("raw",), k=SHOWN, telling=True)
    )
    made = []
    for (kind, text, gold), ranking in zip(asked, rankings, strict=True):
        found = [frozenset(one.turns) & gold for one in bank.get(scope, [one.id for one in ranking.found])]
        judged = 0 < ranking.likely < 1
        places = [one.place for one in ranking.found]
        told = ranker.told_of(ranking.measured, places, form_of(text)) if judged else np.zeros(0)
        fits = judged and any(found) == bool(gold)
        recall = len(frozenset[str]().union(*found[:K])) / max(len(gold), 1)
        bearing = sum(map(bool, found))
        made.append(
            Example(name, text, kind, judged, fits, told, ranking.likely, bearing, len(found), recall)
        )
    return made


def fit(made: Sequence[Example]) -> tuple[float, list[float]]:
    """Intercept and weights of least logistic loss with a small L2 penalty, kinds and messages alike."""
    told, asks = np.array([one.told for one in made]), np.array([float(one.asks) for one in made])
    often = Counter((one.kind, one.text) for one in made)
    messages = Counter(kind for kind, _ in often)
    share = np.array([1 / often[one.kind, one.text] / messages[one.kind] for one in made])
    share *= np.where(asks > 0, 0.5 / share[asks > 0].sum(), 0.5 / share[asks == 0].sum()) * 1000
    mean, scale = told.mean(axis=0), told.std(axis=0) + 1e-9
    rows, weights = np.column_stack([np.ones(len(made)), (told - mean) / scale]), np.zeros(told.shape[1] + 1)
    for _ in range(STEPS):
        guess = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (share * (guess - asks)) + np.append(0.0, weights[1:])
        bend = (rows.T * (share * guess * (1 - guess))) @ rows + np.eye(len(weights))
        weights = weights - np.linalg.solve(bend, slope)
    return float(weights[0] - (weights[1:] / scale) @ mean), (weights[1:] / scale).tolist()


def held_out(made: Sequence[Example]) -> list[float]:
    """How likely each bears, by coefficients fitted on the messages of other folds."""
    folds = [crc32(one.text.encode()) % FOLDS for one in made]
    by = [
        fit([one for one, own in zip(made, folds, strict=True) if one.fits and own != left])
        for left in range(FOLDS)
    ]
    return [
        ranker.bears(one.told, *by[own]) if one.judged else one.likely
        for one, own in zip(made, folds, strict=True)
    ]


def figures(made: Sequence[Example], likely: Sequence[float], least: float) -> dict[str, dict[str, float]]:
    """Shares, by size of memory: what gets nothing, which lines bear, recall."""
    said: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(one.memory for one in made):
        own = [
            (one, value >= least)
            for one, value in zip(made, likely, strict=True)
            if one.memory == name and one.kind != "they"
        ]
        asked = [pair for pair in own if pair[0].asks]
        lines = [sum(one.lines for one, shown in own if shown or before) for before in (True, False)]
        bearing = [sum(one.bearing for one, shown in own if shown or before) for before in (True, False)]
        said[name] = {
            "off-topic messages that get nothing": fmean(not s for one, s in own if one.kind == "off"),
            "questions to others that get nothing": fmean(not s for one, s in own if one.kind == "other"),
            "questions that lose all evidence": fmean(one.bearing > 0 and not shown for one, shown in asked),
            "lines that bear, before": bearing[0] / lines[0],
            "lines that bear, after": bearing[1] / lines[1],
            f"recall at {K}, before": fmean(one.recall for one, _ in asked),
            f"recall at {K}, after": fmean(one.recall * shown for one, shown in asked),
        }
    return said


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relevance")
    parser.add_argument("--data", type=Path, required=True, help="the LoCoMo file, locomo10.json")
    parser.add_argument("--report", action="store_true", help="6-10, as shipped")
    given = parser.parse_args(argv)
    samples = [one for one in load_locomo(given.data, zone=UTC) if (one.id in TUNING) != given.report]
    notes = [line.split(" | ") for line in _lines("notes_held.txt" if given.report else "notes.txt")]
    with tempfile.TemporaryDirectory() as folder, Bank.open(Settings(home=Path(folder))) as bank:
        made = []
        for sample in samples:
            others = [one.question for other in samples if other != sample for one in other.questions]
            for home in homes(sample, notes, others):
                made += examples(bank, *home)
    shipped = [one.likely for one in made]
    answer: dict[str, Any] = {"shipped": figures(made, shipped, Theta().relevance)}
    answer["lost"] = sorted(
        {one.text for one in made if one.bearing and one.kind != "they" and one.likely < Theta().relevance}
    )
    if not given.report:
        likely, (intercept, weights) = held_out(made), fit([one for one in made if one.fits])
        asked = [value for one, value in zip(made, likely, strict=True) if one.fits and one.kind == "note"]
        least = float(np.quantile(asked, LOST))
        answer |= {"relevance": least, "intercept": intercept, "weights": weights}
        answer["held out"] = figures(made, likely, least)
    sys.stdout.write(json.dumps(answer, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
