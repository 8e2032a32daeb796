"""`eval`: measures memcycle on conversations with questions, beside plain ways of searching."""

import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memcycle.cli.measured import progress, show
from memcycle.cli.options import BaseUrl, Embedder, Json, ThetaFile, Timezone, settings_of, theta_of
from memcycle.cli.output import print_json
from memcycle.core.errors import BadInput

if TYPE_CHECKING:
    from memcycle.core.settings import Settings
    from memcycle.evals.dataset import Sample
    from memcycle.evals.plan import Plan

DATA_SETS = {
    "locomo": "LoCoMo (Maharana et al., 2024): its file locomo10.json.",
    "longmemeval": "LongMemEval (Wu et al., 2025): any of its files.",
    "membench": "MemBench (Tan et al., 2025): any of its files.",
    "jsonl": "conversations of your own, one a line: "
    '{"id", "turns": [{"session", "speaker", "role", "text", "time", "id"?, "caption"?}, ...], '
    '"questions": [{"question", "answer"?, "evidence"? (ids of turns), "category"?}, ...]}.',
}
"""Kinds of data sets, each with what its command says of it."""

_WHAT, _HOW = "What is measured", "How it runs"

Data = Annotated[
    Path, typer.Option("--data", metavar="PATH", help="The data set's file.", show_default=False)
]
Conversations = Annotated[
    str | None,
    typer.Option(
        "--conversations",
        metavar="SPEC",
        show_default="all",
        help="Places or ids, such as 6-10 or conv-26,conv-30.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=1, show_default="all", help="Questions a conversation at most."),
]
Facts = Annotated[
    str,
    typer.Option(
        "--facts",
        metavar="F",
        rich_help_panel=_WHAT,
        help="none: turns only. observations: those of the data set. rules, openai:NAME: as `ingest` does.",
    ),
]
AnswerModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="M",
        rich_help_panel=_WHAT,
        show_default="the model of --facts, else rules",
        help="Who answers: rules or openai:NAME.",
    ),
]
Judge = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="M",
        rich_help_panel=_WHAT,
        show_default="nobody",
        help="Who compares answers with the gold: openai:NAME, or rules.",
    ),
]
K = Annotated[
    int | None,
    typer.Option(
        "--k",
        metavar="K",
        min=1,
        max=200,
        rich_help_panel=_WHAT,
        show_default="as theta says",
        help="Entries of evidence an answer rests on.",
    ),
]
TokenBudget = Annotated[
    int | None,
    typer.Option(
        "--token-budget",
        metavar="N",
        min=50,
        max=100_000,
        rich_help_panel=_WHAT,
        show_default="as theta says",
        help="Tokens of evidence an answer rests on.",
    ),
]
Compare = Annotated[
    bool,
    typer.Option("--baselines/--no-baselines", rich_help_panel=_WHAT, help="Plain ways of searching too."),
]
Answers = Annotated[
    bool,
    typer.Option("--answers/--no-answers", rich_help_panel=_WHAT, help="Answer questions, or search alone."),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        rich_help_panel=_HOW,
        show_default="nowhere",
        help="Folder for configuration, records, report and plot.",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", rich_help_panel=_HOW, help="Go on with the run that is in --out.")
]
Keep = Annotated[
    bool, typer.Option("--keep", rich_help_panel=_HOW, help="Leave the stored conversations in --out.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        min=1,
        max=64,
        rich_help_panel=_HOW,
        show_default="one a processor",
        help="Conversations at the same time.",
    ),
]


def evaluate(context: typer.Context) -> None:
    """Measure memcycle on conversations with questions: evidence found, answers, cost; beside baselines."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def command(kind: str) -> Callable[..., None]:
    """The command that evaluates on one kind of data set."""

    def run(
        *,
        data: Data,
        conversations: Conversations = None,
        limit: Limit = None,
        facts: Facts = "rules",
        model: AnswerModel = None,
        judge: Judge = None,
        k: K = None,
        token_budget: TokenBudget = None,
        baselines: Compare = True,
        answers: Answers = True,
        out: Out = None,
        resume: Resume = False,
        keep: Keep = False,
        workers: Workers = None,
        base_url: BaseUrl = None,
        embedder: Embedder = None,
        timezone: Timezone = None,
        theta: ThetaFile = None,
        as_json: Json = False,
    ) -> None:
        if out is None and (resume or keep):
            raise BadInput("--resume and --keep need --out DIR")
        settings = settings_of(None, embedder=embedder, timezone=timezone, theta=theta_of(theta))
        # A server would keep what is stored here beside what is there.
        settings = settings.model_copy(update={"chroma_url": None})
        from memcycle.evals.run import load

        samples = load(kind, data, zone=settings.zone, conversations=conversations, limit=limit)
        asked = {
            "limit": limit,
            "facts": facts,
            "model": model or (facts if ":" in facts else "rules"),
            "judge": judge,
            "answers": answers,
            "baselines": baselines,
            "k": k or settings.theta.k,
            "token_budget": token_budget or settings.theta.token_budget,
        }
        plan = _plan(kind, data, samples, settings, asked)
        _measure(
            plan, samples, out, resume=resume, keep=keep, workers=workers, base_url=base_url, as_json=as_json
        )

    run.__name__ = kind
    run.__doc__ = f"Measure on {DATA_SETS[kind]}"
    return run


def _plan(
    kind: str, data: Path, samples: "list[Sample]", settings: "Settings", asked: Mapping[str, Any]
) -> "Plan":
    """The plan, its models tried: a wrong name is said before anything is stored."""
    from memcycle.evals.plan import NONE, OBSERVATIONS, RULES, Plan
    from memcycle.evals.run import file_hash

    for option, name in (
        ("--facts", asked["facts"]),
        ("--model", asked["model"]),
        ("--judge", asked["judge"]),
    ):
        plain = (NONE, OBSERVATIONS, RULES) if option == "--facts" else (RULES, None)
        if name not in plain and ":" not in name:
            accepted = ", ".join(word for word in plain if word)
            raise BadInput(f"{option} {name!r} is unknown; accepted are {accepted} and openai:NAME")
    return Plan(
        data=kind,
        file=data.name,
        sha256=file_hash(data),
        conversations=tuple(sample.id for sample in samples),
        settings=settings,
        **asked,
    )


def _measure(
    plan: "Plan",
    samples: "list[Sample]",
    out: Path | None,
    *,
    resume: bool,
    keep: bool,
    workers: int | None,
    base_url: str | None,
    as_json: bool,
) -> None:
    from memcycle.evals.folder import RunFolder
    from memcycle.evals.run import run

    with tempfile.TemporaryDirectory() as nowhere, progress(samples) as watch:
        figures = run(
            plan,
            samples,
            RunFolder(out or Path(nowhere)),
            command=command_line(sys.argv[1:]),
            resume=resume,
            keep=keep,
            workers=workers or os.cpu_count() or 1,
            base_url=base_url,
            watch=watch,
        )
    if as_json:
        print_json(figures)
    else:
        show(figures, out)


def command_line(arguments: Sequence[str]) -> str:
    """The command as the report shows it: without the server's address, in which a password may stand."""
    kept = list(arguments)
    for place, argument in enumerate(kept):
        if argument.startswith("--base-url="):
            kept[place] = "--base-url=URL"
        elif place and kept[place - 1] == "--base-url":
            kept[place] = "URL"
    return shlex.join(["memcycle", *kept])
