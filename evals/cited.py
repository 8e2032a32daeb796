"""Share of gold turns among the first k turns that `ask --evidence-only` cites, after an ingest by rules.

    python -m memcycle.evals.cited --data locomo10.json --conversation conv-26

The conversation goes through the remember and session graphs, each question of categories 1 to 4 through the
recall graph; only the question's text is given. An entry that cites more than one turn counts as those
turns, in order. A question whose evidence names no turn is left out, one that fails counts 0.
"""

import json
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from memcycle.core.errors import BadInput
from memcycle.evals.dataset import Question, Sample, sample_named
from memcycle.evals.datasets.locomo import ANSWERABLE, load_locomo
from memcycle.evals.metrics import recall
from memcycle.ingest import ingest
from memcycle.memory import Memory
from memcycle.results import Evidence


def cited_turns(evidence: Iterable[Evidence], k: int) -> list[str]:
    """The first k turns that evidence cites, each once, in order."""
    return list(dict.fromkeys(turn for item in evidence for turn in item.turns))[:k]


def evaluate(memory: Memory, sample: Sample, k: int) -> list[tuple[Question, float]]:
    """Ingests a sample under its id as user; each question asked with its share of gold turns (0 to 1)."""
    ingest(memory, sample.conversation, user=sample.id)
    asked = [question for question in sample.questions if not question.adversarial and question.evidence]
    shares = []
    for question in track(asked, "asking", console=Console(stderr=True), transient=True):
        found = cited_turns(memory.recall(question.question, user=sample.id).evidence, k)
        shares.append((question, recall(found, question.evidence)))
    return shares


def summary(shares: list[tuple[Question, float]]) -> dict[str, float | int | None]:
    """Mean share overall and by category name, None for a category without questions."""
    by_category = {
        name: [share for question, share in shares if question.category == name] for name in ANSWERABLE
    }
    return {
        "questions": len(shares),
        "recall": fmean(share for _, share in shares) if shares else None,
        **{name: fmean(values) if values else None for name, values in by_category.items()},
    }


def main(
    data: Annotated[Path, typer.Option(help="The LoCoMo file, locomo10.json.")],
    conversation: Annotated[str, typer.Option(help="Sample id.")] = "conv-26",
    k: Annotated[int, typer.Option(min=1, help="Turns looked at.")] = 10,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Ingests one conversation by rules and prints how many gold turns its questions cite."""
    try:
        sample = sample_named(load_locomo(data, zone=UTC), conversation)
    except BadInput as error:
        sys.stderr.write(f"{error}\n")
        raise typer.Exit(1) from None
    with tempfile.TemporaryDirectory() as home, Memory.open(home) as memory:
        figures = {"conversation": conversation, "k": k, **summary(evaluate(memory, sample, k))}
    if json_:
        sys.stdout.write(json.dumps(figures) + "\n")
        return
    table = Table("figure", "value", title=f"Gold turns among the first {k} cited turns")
    for name, value in figures.items():
        table.add_row(name, f"{value:.3f}" if isinstance(value, float) else str(value))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
