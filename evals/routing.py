"""What AMA's routing by intent and its Retry do to what is found, without any model.

    python -m memcycle.evals.routing --data locomo10.json --conversations 1-5

The Retriever by rules routes each question to raw turns, facts or episodes. Compared are what that may mean
for the candidates: `shares` (each granularity has its share, the routed one a larger one; shipped),
`exclusive` (the routed one alone, the paper's form) and `none` (the best scores, whatever they are of); each
with Retry and without. Retry looks for twice as many of every granularity and adds the turns that the
candidates refer to; the Judge by rules decides on it. Questions with evidence that are not adversarial go
through the recall graph up to its evidence. Two figures: the share of gold turns among the first ten turns
that the evidence cites, and within 500 tokens, where a raw turn and a fact of a single turn count.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from memcycle.agents.roles import Roles
from memcycle.core.errors import BadInput
from memcycle.core.theta import Routing, Shares, Theta
from memcycle.evals.dataset import Question, Sample, chosen
from memcycle.evals.datasets.locomo import load_locomo
from memcycle.evals.metrics import counted, recall
from memcycle.evals.subjects import store
from memcycle.graph.recall import build_recall
from memcycle.memory import Memory

FIRST = 10
BUDGET = 500
_ANYTHING = Shares(raw=0, fact=0, episode=0)
ROUTINGS = {
    "shares": Routing(),
    "exclusive": Routing(mode="exclusive"),
    # No granularity has places of its own: all of them go by score.
    "none": Routing(raw=_ANYTHING, fact=_ANYTHING, episode=_ANYTHING),
}
FIGURES = ("recall", "recall_at_tokens", "rounds")
"""Share of gold turns among the first ten cited ones, and within the tokens; rounds of search a question."""


def setups() -> dict[str, Theta]:
    """Every routing with Retry and without, by name."""
    return {
        f"{name}{ending}": Theta(routing=routing, **given)
        for name, routing in ROUTINGS.items()
        for ending, given in ((", Retry", {}), ("", {"k_r": 0}))
    }


def evaluate(
    sample: Sample, facts: str, home: Path, every: int = 1
) -> dict[str, list[tuple[float, float, float]]]:
    """`FIGURES` of each question that is asked, by setup.

    Args:
        sample: Stored in `home` under its id as user.
        facts: `none`, `observations` or `rules`.
        every: Ask each n-th question only.
    """
    asked = [one for one in sample.questions if one.evidence and not one.adversarial][::every]
    figures = {}
    with Memory.open(home) as memory:
        store(memory, sample, facts)
        for name, theta in setups().items():
            settings = memory.settings.model_copy(update={"theta": theta})
            graph = build_recall(Roles.rules(), memory.bank, settings)
            shown = track(asked, f"{sample.id}: {name}", console=Console(stderr=True), transient=True)
            figures[name] = [_figures(graph, sample.id, question) for question in shown]
    return figures


def _figures(graph: Any, user: str, question: Question) -> tuple[float, float, float]:
    def found(**limits: int) -> dict[str, Any]:
        context = {"user": user, "evidence_only": True, **limits}
        answer: dict[str, Any] = graph.invoke({"question": question.question}, context=context)["answer"]
        return answer

    freely, tightly = found(), found(token_budget=BUDGET)
    cited = list(dict.fromkeys(turn for item in freely["evidence"] for turn in item["turns"]))[:FIRST]
    within = [turn for item in tightly["evidence"] for turn in counted(item["turns"], item["granularity"])]
    return recall(cited, question.evidence), recall(within, question.evidence), float(freely["rounds"])


def summary(samples: Sequence[dict[str, list[tuple[float, float, float]]]]) -> dict[str, dict[str, float]]:
    """Means over all questions of all samples, by setup and figure."""
    return {
        name: {
            figure: fmean(values[at] for sample in samples for values in sample[name])
            for at, figure in enumerate(FIGURES)
        }
        for name in setups()
    }


def main(
    data: Annotated[Path, typer.Option(help="The LoCoMo file, locomo10.json.")],
    conversations: Annotated[str, typer.Option(help="Places or ids, as `1-5` or `conv-26,conv-30`.")] = "1-5",
    facts: Annotated[str, typer.Option(help="`rules`, `observations` (the data set's) or `none`.")] = "rules",
    every: Annotated[int, typer.Option(min=1, help="Ask each n-th question only.")] = 1,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Compares routings, with Retry and without."""
    try:
        samples = chosen(load_locomo(data, zone=UTC), conversations)
    except BadInput as error:
        sys.stderr.write(f"{error}\n")
        raise typer.Exit(1) from None
    done = []
    for sample in samples:
        with tempfile.TemporaryDirectory() as home:
            done.append(evaluate(sample, facts, Path(home), every))
    figures = summary(done)
    asked = sum(len(sample["none"]) for sample in done)
    if json_:
        about = {"conversations": [sample.id for sample in samples], "facts": facts, "n": asked}
        sys.stdout.write(json.dumps({**about, "setups": figures}) + "\n")
        return
    table = Table(
        "setup",
        f"first {FIRST} turns",
        f"{BUDGET} tokens",
        "rounds",
        title=f"Share of gold turns, {asked} questions, facts: {facts}",
    )
    for name, values in figures.items():
        table.add_row(name, *(f"{value:.3f}" for value in values.values()))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
