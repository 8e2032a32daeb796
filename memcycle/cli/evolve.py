"""`evolve`: memcycle changes its retrieval configuration by its own failures, and hands over a theta file."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memcycle.cli.evaluate import AnswerModel, Data, Facts, Resume, command_line
from memcycle.cli.evolving import evolving, show
from memcycle.cli.options import BaseUrl, Embedder, Json, Timezone, settings_of
from memcycle.cli.output import note, print_json
from memcycle.core.errors import BadInput

if TYPE_CHECKING:
    from memcycle.core.settings import Settings
    from memcycle.evolution.splits import Split

KINDS = {
    "locomo": "LoCoMo (Maharana et al., 2024): its file locomo10.json.",
    "jsonl": "conversations of your own, one a line, as `memcycle eval jsonl` reads them.",
}
"""Kinds of data sets, each with what its command says of it."""
SplitName = Literal["train", "guard", "held-out"]

_SPLITS: "dict[str | None, Split]" = {"train": "train", "guard": "guard", "held-out": "held_out"}
_WHAT, _LOOP, _HOW = "What is evolved on", "The loop", "How it runs"

Train = Annotated[
    str,
    typer.Option(
        "--train",
        metavar="SPEC",
        rich_help_panel=_WHAT,
        show_default=False,
        help="Conversations that are diagnosed, such as 1-3, or a share of all questions, such as 50%.",
    ),
]
Guard = Annotated[
    str,
    typer.Option(
        "--guard",
        metavar="SPEC",
        rich_help_panel=_WHAT,
        show_default=False,
        help="Those that decide what is kept; the diagnosis never sees them.",
    ),
]
HeldOut = Annotated[
    str,
    typer.Option(
        "--held-out",
        metavar="SPEC",
        rich_help_panel=_WHAT,
        show_default=False,
        help="Those of the final figures; neither sees them.",
    ),
]
Start = Annotated[
    str,
    typer.Option(
        "--start",
        metavar="S",
        rich_help_panel=_WHAT,
        help="shipped, a theta file, or a start that is known to be wrong: weak (BM25 only, k 5), "
        "dense-wide, wrong-weights, episodes.",
    ),
]
Objective = Annotated[
    str,
    typer.Option(
        "--objective",
        metavar="MIX",
        rich_help_panel=_WHAT,
        help="recall, f1 or judge, or shares of them: recall=0.7,f1=0.3.",
    ),
]
Balanced = Annotated[
    bool,
    typer.Option("--balanced", rich_help_panel=_WHAT, help="Every category of questions counts the same."),
]
TokenBudget = Annotated[
    int,
    typer.Option(
        "--token-budget",
        metavar="N",
        min=50,
        max=100_000,
        rich_help_panel=_WHAT,
        help="Tokens of evidence at most, whatever a configuration says.",
    ),
]
Judge = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="M",
        rich_help_panel=_WHAT,
        show_default="nobody",
        help="Who compares answers with the gold.",
    ),
]
Diagnoser = Annotated[
    str | None,
    typer.Option(
        "--diagnoser",
        metavar="M",
        rich_help_panel=_LOOP,
        show_default="that of --model",
        help="Who reads the failures: rules or openai:NAME.",
    ),
]
RoundsOption = Annotated[
    int, typer.Option("--rounds", metavar="N", min=0, max=100, rich_help_panel=_LOOP, help="At most.")
]
MaxQuestions = Annotated[
    int | None,
    typer.Option(
        "--max-questions",
        metavar="N",
        min=1,
        rich_help_panel=_LOOP,
        show_default="all",
        help="Of --train and of --guard at most, drawn evenly over the categories.",
    ),
]
MaxHeldOut = Annotated[
    int | None,
    typer.Option(
        "--max-held-out", metavar="N", min=1, rich_help_panel=_LOOP, show_default="all", help="Of --held-out."
    ),
]
MaxCalls = Annotated[
    int | None,
    typer.Option(
        "--max-calls",
        metavar="N",
        min=1,
        rich_help_panel=_LOOP,
        show_default="no limit",
        help="Model calls of the rounds: none begins that would likely pass it. Storing and the held-out "
        "figures come on top.",
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", rich_help_panel=_LOOP, help="Of all that is drawn.")
]
RandomSearch = Annotated[
    bool,
    typer.Option(
        "--random/--no-random",
        rich_help_panel=_LOOP,
        help="Random search with as many evaluations, three seeds, for comparison.",
    ),
]
Blank = Annotated[
    bool,
    typer.Option(
        "--blank", rich_help_panel=_LOOP, help="A control: failures without what tells why they failed."
    ),
]
Ablate = Annotated[
    SplitName | None,
    typer.Option(
        "--ablate",
        rich_help_panel=_LOOP,
        show_default="none",
        help="Switch each mechanism of the result the other way, on this split.",
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="DIR",
        rich_help_panel=_HOW,
        show_default=False,
        help="Folder for all artefacts; the best theta is best_theta.json in it.",
    ),
]
Stored = Annotated[
    Path | None,
    typer.Option(
        "--stored",
        metavar="DIR",
        rich_help_panel=_HOW,
        show_default="in --out",
        help="Folder of stored conversations, to be shared by runs one after another.",
    ),
]


def evolve(context: typer.Context) -> None:
    """Let memcycle tune its retrieval by its own failures on questions, and keep what helps on others."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def transfer(
    context: typer.Context,
    theta: Annotated[
        Path, typer.Option("--theta", metavar="FILE", show_default=False, help="A theta evolved elsewhere.")
    ],
) -> None:
    """A theta evolved elsewhere, on other data: as it is, beside the shipped one, and evolved further."""
    context.obj = theta


def command(kind: str, *, transferred: bool = False) -> Callable[..., None]:
    """The command that evolves on one kind of data set; `transferred`: from another one's theta."""

    def run(
        context: typer.Context,
        *,
        data: Data,
        train: Train,
        guard: Guard,
        held_out: HeldOut,
        out: Out,
        start: Start = "shipped",
        objective: Objective = "recall",
        balanced: Balanced = False,
        token_budget: TokenBudget = 500,
        facts: Facts = "rules",
        model: AnswerModel = None,
        judge: Judge = None,
        diagnoser: Diagnoser = None,
        rounds: RoundsOption = 7,
        max_questions: MaxQuestions = None,
        max_held_out: MaxHeldOut = None,
        max_calls: MaxCalls = None,
        seed: Seed = 0,
        random: RandomSearch = True,
        blank: Blank = False,
        ablate: Ablate = None,
        stored: Stored = None,
        resume: Resume = False,
        base_url: BaseUrl = None,
        embedder: Embedder = None,
        timezone: Timezone = None,
        as_json: Json = False,
    ) -> None:
        if transferred and start != "shipped":
            raise BadInput("transfer starts from --theta; leave --start out")
        asked = {
            "kind": kind,
            "data": data,
            "train": train,
            "guard": guard,
            "held_out": held_out,
            "out": out,
            "start": str(context.obj) if transferred else start,
            "objective": objective,
            "balanced": balanced,
            "token_budget": token_budget,
            "facts": facts,
            "model": model or (facts if ":" in facts else "rules"),
            "judge": judge,
            "diagnoser": diagnoser,
            "rounds": rounds,
            "max_questions": max_questions,
            "max_held_out": max_held_out,
            "max_calls": max_calls,
            "seed": seed,
            "random_seeds": 3 if random else 0,
            "blank": blank,
            "stored": stored,
        }
        settings = settings_of(None, embedder=embedder, timezone=timezone)
        split = _SPLITS.get(ablate)
        figures = _run(asked, settings, base_url, resume=resume, ablate=split, beside=transferred)
        if as_json:
            print_json(figures)
        else:
            show(figures, out)

    run.__name__ = kind
    run.__doc__ = f"{'Transfer to' if transferred else 'Evolve on'} {KINDS[kind]}"
    return run


def _run(
    asked: Mapping[str, Any],
    settings: "Settings",
    base_url: str | None,
    *,
    resume: bool,
    ablate: "Split | None",
    beside: bool,
) -> dict[str, Any]:
    from memcycle.core.theta import Theta
    from memcycle.evolution.folder import EvolveFolder
    from memcycle.evolution.lab import Lab
    from memcycle.evolution.request import read_request
    from memcycle.evolution.run import run
    from memcycle.opening import roles_of

    for option, plain in (
        ("facts", ("none", "observations", "rules")),
        ("model", ("rules",)),
        ("judge", ("rules", None)),
        ("diagnoser", ("rules", None)),
    ):
        if asked[option] not in plain and ":" not in asked[option]:
            accepted = ", ".join(word for word in plain if word)
            raise BadInput(
                f"--{option} {asked[option]!r} is unknown; accepted are {accepted} and openai:NAME"
            )
    request = read_request(asked)
    task, samples = request.task(settings)
    shipped: dict[str, Theta] = {"shipped": Theta()} if beside else {}
    folder = EvolveFolder(request.out, request.stored)
    roles = roles_of(task.diagnoser, None, None, {"base_url": base_url})
    with evolving() as watch, Lab(task, samples, folder, base_url=base_url, watch=watch) as lab:
        command = command_line(sys.argv[1:])
        try:
            return run(lab, roles, command=command, resume=resume, ablate=ablate, beside=shipped)
        except KeyboardInterrupt:
            note("The same command with --resume goes on with this run.", "yellow")
            raise
