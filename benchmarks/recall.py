"""Share of gold turns among the first k raw turns of a search, without any model.

    python -m benchmarks.recall --data locomo10.json --conversations conv-26 --k 10
    python -m benchmarks.recall --data locomo10.json --embedder minilm

Every setup searches the same stored turns: the shipped linear ranker; the weighted sum of five signals that
it replaced; single signals alone; reciprocal rank fusion of BM25 and dense. Questions of categories 1 to 4
whose evidence names a turn are asked; nothing but their text reaches the search. The shipped weights were
fitted on the conversations of the split `tuning` (`benchmarks.fit`).
"""

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC
from pathlib import Path
from statistics import fmean, median

from rich.console import Console
from rich.table import Table

from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.theta import Theta, Weights
from memcycle.evals import metrics
from memcycle.evals.dataset import Question, Sample
from memcycle.evals.datasets.locomo import ANSWERABLE, TUNING, load_locomo
from memcycle.stores.bank import Bank
from memcycle.stores.search.request import Query, SearchRequest

SINGLE = ("bm25", "window", "dense", "dense_nameless", "context")
LINEAR, WEIGHTED_SUM, RRF = "linear", "weighted sum", "rrf bm25 + dense"
FORMER = Weights.only(bm25=0.5, window=1, dense=0.25, dense_nameless=1, speaker=0.5)
"""The weights that were shipped before there was a linear ranker."""

Finder = Callable[[str], list[str]]
"""Turn ids for a question, best first."""


@dataclass(frozen=True)
class Record:
    """How one question went in one setup. `recall`: share of its gold turns among the first k, 0 to 1."""

    setup: str
    conversation: str
    split: str
    category: str | None
    question: str
    recall: float
    milliseconds: float


def evaluate(samples: Iterable[Sample], bank: Bank, k: int) -> list[Record]:
    """Stores each conversation under a user of its own and asks its questions in every setup."""
    records: list[Record] = []
    for sample in samples:
        scope = Scope(user=sample.id)
        _store(bank, scope, sample)
        for setup, find in _setups(bank, scope, k).items():
            records.extend(_ask(setup, sample, question, find, k) for question in _questions(sample))
    return records


def _store(bank: Bank, scope: Scope, sample: Sample) -> None:
    for session in sample.conversation.sessions:
        inner = scope.within(session.name)
        bank.stage_turns(inner, session.turns)
        bank.commit_session(inner)


def _questions(sample: Sample) -> list[Question]:
    return [question for question in sample.questions if not question.adversarial and question.evidence]


def _ask(setup: str, sample: Sample, question: Question, find: Finder, k: int) -> Record:
    started = time.perf_counter()
    found = find(question.question)[:k]
    elapsed = time.perf_counter() - started
    return Record(
        setup=setup,
        conversation=sample.id,
        split="tuning" if sample.id in TUNING else "reporting",
        category=question.category,
        question=question.question,
        recall=metrics.recall(found, question.evidence),
        milliseconds=elapsed * 1000,
    )


def _setups(bank: Bank, scope: Scope, k: int) -> dict[str, Finder]:
    def finder(theta: Theta) -> Finder:
        def find(question: str) -> list[str]:
            query = Query(text=question)
            request = SearchRequest(scope=scope, queries=(query,), granularities=("raw",), k=k, theta=theta)
            [hits] = bank.search(request)
            return [turn for hit in hits for turn in hit.entry.turns]

        return find

    return {
        LINEAR: finder(Theta()),
        WEIGHTED_SUM: finder(Theta(weights=FORMER, fusion="weighted_sum")),
        **{name: finder(Theta(weights=Weights.only(**{name: 1}))) for name in SINGLE},
        RRF: finder(Theta(weights=Weights.only(bm25=1, dense=1), fusion="rrf")),
    }


def _mean(records: Iterable[Record]) -> float | None:
    shares = [record.recall for record in records]
    return fmean(shares) if shares else None


def summary(records: Sequence[Record]) -> dict[str, dict[str, float | None]]:
    """By setup: mean recall overall, by split and by category name; None without a question; median time."""
    by_setup: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_setup[record.setup].append(record)
    return {
        setup: {
            "all": _mean(own),
            **{split: _mean(r for r in own if r.split == split) for split in ("tuning", "reporting")},
            **{name: _mean(r for r in own if r.category == name) for name in ANSWERABLE},
            "median ms": median(record.milliseconds for record in own),
        }
        for setup, own in by_setup.items()
    }


def _table(records: Sequence[Record], k: int, embedder: str) -> Table:
    rows = summary(records)
    asked = sum(record.setup == LINEAR for record in records)
    names = sorted({record.conversation for record in records})
    table = Table(
        title=f"Share of gold turns among the first {k} raw turns",
        caption=f"{asked} questions of {', '.join(names)}; embedder {embedder}; weights fitted on tuning",
    )
    table.add_column("setup")
    for column in next(iter(rows.values())):
        table.add_column(column, justify="right")
    for setup, values in rows.items():
        shown = [
            "-" if value is None else f"{value:.1f}" if name == "median ms" else f"{value:.3f}"
            for name, value in values.items()
        ]
        table.add_row(setup, *shown)
    return table


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the LoCoMo file, locomo10.json")
    parser.add_argument("--conversations", nargs="+", metavar="ID", help="sample ids, all by default")
    parser.add_argument("--k", type=int, default=10, help="turns looked at (10)")
    parser.add_argument("--embedder", default="wordllama", help="as in the settings (wordllama)")
    parser.add_argument("--json", action="store_true", help="summary and per-question records as JSON")
    arguments = parser.parse_args(argv)
    if arguments.k < 1:
        parser.error("--k must be at least 1")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code.

    Raises:
        BadInput: the data file cannot be read.
    """
    arguments = _arguments(argv)
    samples = load_locomo(arguments.data, zone=UTC)
    wanted = set(arguments.conversations or [sample.id for sample in samples])
    chosen = [sample for sample in samples if sample.id in wanted]
    missing = wanted - {sample.id for sample in chosen}
    if missing or not chosen:
        there = ", ".join(sample.id for sample in samples)
        sys.stderr.write(f"no conversation {', '.join(sorted(missing))} in the data; there are: {there}\n")
        return 2
    with (
        tempfile.TemporaryDirectory() as home,
        Bank.open(Settings(home=Path(home), embedder=arguments.embedder)) as bank,
    ):
        records = evaluate(chosen, bank, arguments.k)
        if arguments.json:
            answer = {
                "k": arguments.k,
                "embedder": bank.embedder_id,
                "weights": Weights().model_dump(),
                "tuned_on": TUNING,
                "summary": summary(records),
                "records": [asdict(record) for record in records],
            }
            sys.stdout.write(json.dumps(answer, ensure_ascii=False, indent=1) + "\n")
        else:
            Console().print(_table(records, arguments.k, bank.embedder_id))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
