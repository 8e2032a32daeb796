"""`evolve`: memcycle changes its retrieval configuration by its own failures, and hands over a theta file."""

import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from memcycle.cli.options import BaseUrl, Embedder, Json, ThetaFile, Timezone, settings_of, theta_of
from memcycle.cli.output import note, one_line, print_json, progress, say, screen, shown
from memcycle.cli.output import show as show_figures
from memcycle.core.errors import BadInput

if TYPE_CHECKING:
    from memcycle.core.settings import Settings
    from memcycle.evals.dataset import Sample
    from memcycle.evals.records import Plan
    from memcycle.evolution.lab import Progress as Done
    from memcycle.evolution.lab import Watch
    from memcycle.evolution.task import Split

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
    from memcycle.evals.records import NONE, OBSERVATIONS, RULES, Plan
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
        show_figures(figures, out)


def command_line(arguments: Sequence[str]) -> str:
    """The command as the report shows it: without the server's address, in which a password may stand."""
    kept = list(arguments)
    for place, argument in enumerate(kept):
        if argument.startswith("--base-url="):
            kept[place] = "--base-url=URL"
        elif place and kept[place - 1] == "--base-url":
            kept[place] = "URL"
    return shlex.join(["memcycle", *kept])


@contextmanager
def evolving() -> "Iterator[Watch]":
    """Bars on a terminal, a line for each thing that is done elsewhere."""
    if not sys.stderr.isatty():
        yield _told
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen(error=True), transient=True) as bars:
        yield _Bars(bars).told


class _Bars:
    """A bar for what is being done."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task: TaskID | None = None
        self._name = ""

    def told(self, done: "Done") -> None:
        """Moves the bar, or begins the next one."""
        name = f"{done.what} {one_line(done.name)}"
        if self._task is None or name != self._name or done.done <= 1:
            if self._task is not None:
                self._bars.remove_task(self._task)
            self._task, self._name = self._bars.add_task(name, total=done.total), name
        self._bars.update(self._task, completed=done.done)


def _told(done: "Done") -> None:
    if done.done == done.total:
        note(f"{done.what} {done.name}: {done.total}")
        sys.stderr.flush()


def show(figures: Mapping[str, Any], out: Path) -> None:
    """The rounds and the held-out figures; all else stands in the report."""
    rounds = Table("round", "train", "guard", "decision", "why", box=None, padding=(0, 1), pad_edge=False)
    for row in figures["rounds"]:
        rounds.add_row(
            str(row["round"]), _share(row["train"]), _share(row["guard"]), row["decision"], row["why"]
        )
    screen().print(rounds)
    held = Table("held out", "score", "95 % interval", box=None, padding=(0, 1), pad_edge=False)
    named = {f"start ({figures['start']['name']})": figures["start"], "best": figures["best"]}
    for name, own in {**named, **figures["beside"], "random search": figures["random"]}.items():
        if own is not None:
            held.add_row(name, _share(own["held_out"]), _interval(own["interval"]))
    screen().print(held)
    if figures["ablation"] is not None:
        screen().print(_ablated(figures["ablation"]))
    say(("Report: ", "bold"), shown(str(out / "report.md")))
    say(("Theta: ", "bold"), shown(str(out / "best_theta.json")))


def _ablated(ablation: Mapping[str, Any]) -> Table:
    table = Table("mechanism", "switched", "score", "change", box=None, padding=(0, 1), pad_edge=False)
    for row in ablation["rows"]:
        gain = "-" if row["gain"] is None else f"{row['gain']:+.3f}"
        table.add_row(row["mechanism"], row["switched"], _share(row["score"]), gain)
    return table


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(ends: Sequence[float] | None) -> str:
    return "" if ends is None else f"{ends[0]:.3f} to {ends[1]:.3f}"


KINDS = {
    "locomo": "LoCoMo (Maharana et al., 2024): its file locomo10.json.",
    "jsonl": "conversations of your own, one a line, as `memcycle eval jsonl` reads them.",
}
"""Kinds of data sets, each with what its command says of it."""
SplitName = Literal["train", "guard", "held-out"]

_SPLITS: "dict[str | None, Split]" = {"train": "train", "guard": "guard", "held-out": "held_out"}
_WHAT_evolve, _LOOP, _HOW_evolve = "What is evolved on", "The loop", "How it runs"

Train = Annotated[
    str,
    typer.Option(
        "--train",
        metavar="SPEC",
        rich_help_panel=_WHAT_evolve,
        show_default=False,
        help="Conversations that are diagnosed, such as 1-3, or a share of all questions, such as 50%.",
    ),
]
Guard = Annotated[
    str,
    typer.Option(
        "--guard",
        metavar="SPEC",
        rich_help_panel=_WHAT_evolve,
        show_default=False,
        help="Those that decide what is kept; the diagnosis never sees them.",
    ),
]
HeldOut = Annotated[
    str,
    typer.Option(
        "--held-out",
        metavar="SPEC",
        rich_help_panel=_WHAT_evolve,
        show_default=False,
        help="Those of the final figures; neither sees them.",
    ),
]
Start = Annotated[
    str,
    typer.Option(
        "--start",
        metavar="S",
        rich_help_panel=_WHAT_evolve,
        help="shipped, a theta file, or a start that is known to be wrong: weak (BM25 only, k 5), "
        "dense-wide, wrong-weights, episodes.",
    ),
]
Objective = Annotated[
    str,
    typer.Option(
        "--objective",
        metavar="MIX",
        rich_help_panel=_WHAT_evolve,
        help="recall, f1 or judge, or shares of them: recall=0.7,f1=0.3.",
    ),
]
Balanced = Annotated[
    bool,
    typer.Option(
        "--balanced", rich_help_panel=_WHAT_evolve, help="Every category of questions counts the same."
    ),
]
TokenBudget_evolve = Annotated[
    int,
    typer.Option(
        "--token-budget",
        metavar="N",
        min=50,
        max=100_000,
        rich_help_panel=_WHAT_evolve,
        help="Tokens of evidence at most, whatever a configuration says.",
    ),
]
Judge_evolve = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="M",
        rich_help_panel=_WHAT_evolve,
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
Out_evolve = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="DIR",
        rich_help_panel=_HOW_evolve,
        show_default=False,
        help="Folder for all artefacts; the best theta is best_theta.json in it.",
    ),
]
Stored = Annotated[
    Path | None,
    typer.Option(
        "--stored",
        metavar="DIR",
        rich_help_panel=_HOW_evolve,
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


def command_evolve(kind: str, *, transferred: bool = False) -> Callable[..., None]:
    """The command that evolves on one kind of data set; `transferred`: from another one's theta."""

    def run(
        context: typer.Context,
        *,
        data: Data,
        train: Train,
        guard: Guard,
        held_out: HeldOut,
        out: Out_evolve,
        start: Start = "shipped",
        objective: Objective = "recall",
        balanced: Balanced = False,
        token_budget: TokenBudget_evolve = 500,
        facts: Facts = "rules",
        model: AnswerModel = None,
        judge: Judge_evolve = None,
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
    from memcycle.memory import roles_of

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
        command_evolve = command_line(sys.argv[1:])
        try:
            return run(lab, roles, command=command_evolve, resume=resume, ablate=ablate, beside=shipped)
        except KeyboardInterrupt:
            note("The same command with --resume goes on with this run.", "yellow")
            raise
