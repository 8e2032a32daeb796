"""`eval` and `evolve`: what memcycle finds on conversations with questions, and how it is tuned by them."""

import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memcycle.cli.options import (
    MODELS,
    BaseUrl,
    Embedder,
    Group,
    Json,
    Store,
    ThetaFile,
    Timezone,
    settings_of,
)
from memcycle.cli.output import bars, documented, listing, note, one_line, print_json, say, screen, shown
from memcycle.core.errors import BadInput

if TYPE_CHECKING:
    from rich.progress import TaskID
    from rich.table import Table

    from memcycle.evals.run import Progress, Watch
    from memcycle.evolution.lab import Lab
    from memcycle.evolution.splits import Split

DATA_SETS = {
    "locomo": "LoCoMo (Maharana et al., 2024): its file locomo10.json.",
    "longmemeval": "LongMemEval (Wu et al., 2025): any of its files.",
    "membench": "MemBench (Tan et al., 2025): any of its files.",
    "jsonl": "conversations of your own, one a line: "
    '{"id", "turns": [{"session", "speaker", "role", "text", "time", "id"?, "caption"?}, ...], '
    '"questions": [{"question", "answer"?, "evidence"? (ids of turns), "category"?}, ...]}.',
}
"""Kinds of data sets, each with what the command says of it."""
EVOLVED_ON = {
    "locomo": DATA_SETS["locomo"],
    "jsonl": "conversations of your own, one a line, as `memcycle eval jsonl` reads them.",
}
"""Those that `evolve` takes."""

_SPLITS: "dict[str, Split]" = {"train": "train", "guard": "guard", "held-out": "held_out"}

_what = partial(typer.Option, rich_help_panel="What is measured")
_on = partial(typer.Option, rich_help_panel="What is evolved on", show_default=False)
loop = partial(typer.Option, rich_help_panel="The loop")
_how = partial(typer.Option, rich_help_panel="How it runs")

Data = Annotated[
    Path, typer.Option("--data", metavar="PATH", help="The data set's file.", show_default=False)
]
Facts = Annotated[
    str,
    _what(
        "--facts",
        metavar="F",
        help="none: turns only. observations: those of the data set. rules, PROVIDER:NAME: as `ingest` does.",
    ),
]
AnswerModel = Annotated[
    str | None,
    _what(
        "--model",
        "-m",
        metavar="M",
        show_default="the model of --facts, else rules",
        help=f"Who answers: rules, {MODELS}.",
    ),
]
Judge = Annotated[
    str | None,
    _what(
        "--judge",
        metavar="M",
        show_default="nobody",
        help=f"Who compares answers with the gold: rules, {MODELS}.",
    ),
]
TokenBudget = Annotated[
    int | None,
    _what(
        "--token-budget",
        metavar="N",
        min=50,
        max=100_000,
        help="Tokens of evidence an answer rests on at most, whatever theta says.",
    ),
]
Resume = Annotated[bool, _how("--resume", help="Go on with the run that is in --out.")]


@dataclass(frozen=True)
class Measured:
    """What one evaluation is of, and where it is kept."""

    data: Data
    conversations: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC", show_default="all", help="Places or ids, such as 6-10 or conv-26,conv-30."
        ),
    ] = None
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, show_default="all", help="Questions a conversation at most."),
    ] = None
    facts: Facts = "rules"
    model: AnswerModel = None
    judge: Judge = None
    k: Annotated[
        int | None,
        _what(
            metavar="K",
            min=1,
            max=200,
            show_default="as theta says",
            help="Entries of evidence an answer rests on.",
        ),
    ] = None
    token_budget: TokenBudget = None
    baselines: Annotated[bool, _what(help="Plain ways of searching too.")] = True
    answers: Annotated[bool, _what(help="Answer questions, or search alone.")] = True
    out: Annotated[
        Path | None,
        _how(
            metavar="DIR", show_default="nowhere", help="Folder for configuration, records, report and plot."
        ),
    ] = None
    resume: Resume = False
    keep: Annotated[bool, _how("--keep", help="Leave the stored conversations in --out.")] = False
    workers: Annotated[
        int | None,
        _how(
            metavar="N", min=1, max=64, show_default="one a processor", help="Conversations at the same time."
        ),
    ] = None


@dataclass(frozen=True)
class Evolution:
    """What one evolution is of: the fields of its request, and whether it is gone on with."""

    data: Data
    train: Annotated[
        str,
        _on(
            metavar="SPEC",
            help="Conversations that are diagnosed, such as 1-3, or a share of all questions, such as 50%.",
        ),
    ]
    guard: Annotated[
        str, _on(metavar="SPEC", help="Those that decide what is kept; the diagnosis never sees them.")
    ]
    held_out: Annotated[str, _on(metavar="SPEC", help="Those of the final figures; neither sees them.")]
    out: Annotated[
        Path,
        _how(
            metavar="DIR",
            show_default=False,
            help="Folder for all artefacts; the best theta is best_theta.json in it.",
        ),
    ]
    start: Annotated[
        str,
        _on(
            metavar="S",
            show_default=True,
            help="shipped, a theta file, or a start that is known to be wrong: weak (BM25 only, k 5), "
            "dense-wide, wrong-weights, episodes.",
        ),
    ] = "shipped"
    objective: Annotated[
        str,
        _on(
            metavar="MIX",
            show_default=True,
            help="recall, f1 or judge, or shares of them: recall=0.7,f1=0.3.",
        ),
    ] = "recall"
    balanced: Annotated[bool, _on("--balanced", help="Every category of questions counts the same.")] = False
    token_budget: TokenBudget = 500
    facts: Facts = "rules"
    model: AnswerModel = None
    judge: Judge = None
    diagnoser: Annotated[
        str | None,
        loop(metavar="M", show_default="that of --model", help=f"Who reads the failures: rules, {MODELS}."),
    ] = None
    rounds: Annotated[int, loop(metavar="N", min=0, max=100, help="At most.")] = 7
    max_questions: Annotated[
        int | None,
        loop(
            metavar="N",
            min=1,
            show_default="all",
            help="Of --train and of --guard at most, drawn evenly over the categories.",
        ),
    ] = None
    max_held_out: Annotated[
        int | None, loop(metavar="N", min=1, show_default="all", help="Of --held-out.")
    ] = None
    max_calls: Annotated[
        int | None,
        loop(
            metavar="N",
            min=1,
            show_default="no limit",
            help="Model calls of the rounds: none begins that would likely pass it. Storing and the held-out "
            "figures come on top.",
        ),
    ] = None
    seed: Annotated[int, loop(metavar="N", help="Of all that is drawn.")] = 0
    blank: Annotated[
        bool, loop("--blank", help="A control: failures without what tells why they failed.")
    ] = False
    stored: Annotated[
        Path | None,
        _how(
            metavar="DIR",
            show_default="in --out",
            help="Folder of stored conversations, to be shared by runs one after another.",
        ),
    ] = None
    resume: Resume = False


@dataclass(frozen=True)
class Evolved(Evolution):
    """The same with what is measured beside it."""

    random: Annotated[
        bool, loop(help="Random search with as many evaluations, three seeds, for comparison.")
    ] = True
    ablate: Annotated[
        Literal["train", "guard", "held-out"] | None,
        loop(show_default="none", help="Switch each mechanism of the result the other way, on this split."),
    ] = None


def evaluate(context: typer.Context) -> None:
    """Measure memcycle on conversations with questions: evidence found, answers, cost; beside baselines.

    Examples:
        memcycle eval locomo --data locomo10.json --conversations 6-10 --facts observations --out run-1
        memcycle eval jsonl --data ours.jsonl --facts rules --k 10 --token-budget 500 --json
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def eval_command(kind: str) -> Callable[..., None]:
    """The command that evaluates on one kind of data set."""

    def run(
        *,
        wanted: Measured,
        base_url: BaseUrl = None,
        embedder: Embedder = None,
        timezone: Timezone = None,
        theta: ThetaFile = None,
        as_json: Json = False,
    ) -> None:
        out = wanted.out
        if out is None and (wanted.resume or wanted.keep):
            raise BadInput("--resume and --keep need --out DIR")
        model = answerer(wanted)
        # A server would keep what is stored here beside what is there.
        settings = settings_of(None, Store(embedder, None, timezone, None, theta)).model_copy(
            update={"chroma_url": None}
        )
        from memcycle.evals.datasets import file_hash, load
        from memcycle.evals.folder import RunFolder
        from memcycle.evals.records import Plan
        from memcycle.evals.run import run as run_plan

        samples = load(
            kind, wanted.data, zone=settings.zone, conversations=wanted.conversations, limit=wanted.limit
        )
        plan = Plan(
            data=kind,
            file=wanted.data.name,
            sha256=file_hash(wanted.data),
            conversations=tuple(sample.id for sample in samples),
            limit=wanted.limit,
            facts=wanted.facts,
            model=model,
            judge=wanted.judge,
            answers=wanted.answers,
            baselines=wanted.baselines,
            k=wanted.k or settings.theta.k,
            token_budget=wanted.token_budget or settings.theta.token_budget,
            settings=settings,
        )
        with tempfile.TemporaryDirectory() as nowhere, watching() as watch:
            figures = run_plan(
                plan,
                samples,
                RunFolder(out or Path(nowhere)),
                command=command_line(sys.argv[1:]),
                resume=wanted.resume,
                keep=wanted.keep,
                workers=wanted.workers or os.cpu_count() or 1,
                base_url=base_url,
                watch=watch,
            )
        if as_json:
            print_json(figures)
        else:
            _show_measured(figures, out)

    command = f"memcycle eval {kind} --data PATH"
    examples = (
        f"{command} --out run-1",
        f"{command} --facts none --no-answers --json",
        f"{command} --judge openai:gpt-4o-mini --out run-2 --resume",
    )
    return documented(run, kind, f"Measure on {DATA_SETS[kind]}", *examples)


def evolve(context: typer.Context) -> None:
    """Let memcycle tune its retrieval by its own failures on questions, and keep what helps on others.

    Examples:
        memcycle evolve locomo --data locomo10.json --train 1-3 --guard 4-5 --held-out 6-10 --out run-1
        memcycle evolve jsonl --data ours.jsonl --train 50% --guard 25% --held-out 25% --out run-1
        memcycle evolve transfer --theta run-1/best_theta.json jsonl --data ours.jsonl --train 50% --guard 25%
            --held-out 25% --out run-2
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def transfer(
    context: typer.Context,
    theta: Annotated[
        Path, typer.Option(metavar="FILE", show_default=False, help="A theta evolved elsewhere.")
    ],
) -> None:
    """A theta evolved elsewhere, on other data: as it is, beside the shipped one, and evolved further."""
    context.obj = theta


def evolve_command(kind: str, *, transferred: bool = False) -> Callable[..., None]:
    """The command that evolves on one kind of data set; `transferred`: from another one's theta."""

    def run(
        context: typer.Context,
        *,
        wanted: Evolved,
        base_url: BaseUrl = None,
        embedder: Embedder = None,
        timezone: Timezone = None,
        as_json: Json = False,
    ) -> None:
        asked = {**vars(wanted), "kind": kind, "model": answerer(wanted)}
        resume, ablate = asked.pop("resume"), asked.pop("ablate")
        asked["random_seeds"] = 3 if asked.pop("random") else 0
        if transferred:
            if wanted.start != "shipped":
                raise BadInput("transfer starts from --theta; leave --start out")
            asked["start"] = str(context.obj)
        from memcycle.core.theta import Theta
        from memcycle.evolution.run import run as run_evolution

        with evolving(asked, Store(embedder, None, timezone), base_url) as lab:
            figures = run_evolution(
                lab,
                command=command_line(sys.argv[1:]),
                resume=resume,
                ablate=None if ablate is None else _SPLITS[ablate],
                beside={"shipped": Theta()} if transferred else {},
            )
        if as_json:
            print_json(figures)
        else:
            _show_evolved(figures, wanted.out)

    if transferred:
        return documented(run, kind, f"Transfer to {EVOLVED_ON[kind]}")
    command = f"memcycle evolve {kind} --data PATH"
    examples = (
        f"{command} --train 1-3 --guard 4-5 --held-out 6-10 --out run-1",
        f"{command} --train 50% --guard 25% --held-out 25% --out run-1 --max-questions 150 --ablate held-out",
        f"{command} --train 1-3 --guard 4-5 --held-out 6-10 --out run-1 --start weak --resume",
    )
    return documented(run, kind, f"Evolve on {EVOLVED_ON[kind]}", *examples)


def answerer(wanted: Measured | Evolution) -> str:
    """Who answers. Refuses a name that is no model, by its option, before anything is stored."""
    model = wanted.model or (wanted.facts if ":" in wanted.facts else "rules")
    for option in ("facts", "model", "judge", "diagnoser"):
        name = getattr(wanted, option, None)
        plain = ("none", "observations", "rules") if option == "facts" else ("rules",)
        if name is not None and name not in plain and ":" not in name:
            accepted = ", ".join(plain)
            raise BadInput(f"--{option} {name!r} is unknown; accepted are {accepted}, {MODELS}")
    return model


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
def watching() -> "Iterator[Watch]":
    """A bar for each thing that is being done on a terminal; elsewhere a line for each that is done."""
    if not sys.stderr.isatty():
        yield _note_done
        return
    with bars() as shown_bars:
        tasks: dict[str, TaskID] = {}

        def told(progress: "Progress") -> None:
            name = f"{progress.what} {one_line(progress.name)}"
            if name not in tasks:
                tasks[name] = shown_bars.add_task(name, total=progress.total)
            shown_bars.update(tasks[name], completed=progress.done)
            if progress.done >= progress.total:
                shown_bars.remove_task(tasks.pop(name))

        yield told


@contextmanager
def evolving(asked: Mapping[str, Any], store: Store, base_url: str | None) -> "Iterator[Lab]":
    """The lab of what is asked for, its progress shown; whoever stops it is told how it goes on."""
    from memcycle.evolution.lab import open_lab
    from memcycle.evolution.task import read_request

    with watching() as watch, open_lab(read_request(asked), settings_of(None, store), base_url, watch) as lab:
        try:
            yield lab
        except KeyboardInterrupt:
            note("The same command with --resume goes on with this run.", "yellow")
            raise


def _note_done(progress: "Progress") -> None:
    if progress.done == progress.total:
        note(f"{progress.what} {progress.name}: {progress.total}")
        sys.stderr.flush()


def _show_measured(figures: Mapping[str, Any], out: Path | None) -> None:
    """The main figures of an evaluation; all of them stand in the report."""
    budgets = (f"{int(budget):,} tokens" for budget in figures["recall_at_tokens"])
    table = listing("share of gold turns", *(f"at {k}" for k in figures["recall"]), *budgets)
    for name, own in {"memcycle": figures, **figures["baselines"]}.items():
        if own is not None and any(value is not None for value in own["recall"].values()):
            cells = (*own["recall"].values(), *own["recall_at_tokens"].values())
            table.add_row(name, *map(share, cells))
    screen().print(table)
    abstained, k = figures["abstained"], list(figures["any_gold"])[-1]
    say(
        f"{figures['n']} questions, {figures['n_evidence']} with gold turns, ",
        f"some of them found at {k} for {share(figures['any_gold'][k])}, MRR {share(figures['mrr'])}. ",
        f"F1 {share(figures['f1'])}, BLEU-1 {share(figures['bleu1'])}, ",
        f"accuracy {share(figures['accuracy'])}; ",
        f"abstained rightly {share(abstained['right'])}, wrongly {share(abstained['wrong'])}. ",
        (f"({figures['seconds']:.0f} s)", "dim"),
    )
    if figures["failed"]:
        note(f"{figures['failed']} questions crashed and count as wrong: the records say why", "yellow")
    if out is not None:
        say(("Report: ", "bold"), shown(str(out / "report.md")))


def _show_evolved(figures: Mapping[str, Any], out: Path) -> None:
    """The rounds and the held-out figures; all else stands in the report."""
    rounds = listing("round", "train", "guard", "decision", "why")
    for row in figures["rounds"]:
        shares = (share(row["train"]), share(row["guard"]))
        rounds.add_row(str(row["round"]), *shares, row["decision"], row["why"])
    named = {f"start ({figures['start']['name']})": figures["start"], "best": figures["best"]}
    held = {**named, **figures["beside"], "random search": figures["random"]}
    screen().print(rounds, held_out_table(held))
    if figures["ablation"] is not None:
        ablated = listing("mechanism", "switched", "score", "change")
        for row in figures["ablation"]["rows"]:
            gain = "-" if row["gain"] is None else f"{row['gain']:+.3f}"
            ablated.add_row(row["mechanism"], row["switched"], share(row["score"]), gain)
        screen().print(ablated)
    say(("Report: ", "bold"), shown(str(out / "report.md")))
    say(("Theta: ", "bold"), shown(str(out / "best_theta.json")))


def held_out_table(held: Mapping[str, Any]) -> "Table":
    """Scores on held-out questions by name; None is left out."""
    table = listing("held out", "score", "95 % interval")
    for name, own in held.items():
        if own is not None:
            ends = own["interval"]
            between = "" if ends is None else f"{ends[0]:.3f} to {ends[1]:.3f}"
            table.add_row(name, share(own["held_out"]), between)
    return table


def share(value: float | None) -> str:
    """A share as tables show it."""
    return "-" if value is None else f"{value:.3f}"


_TRANSFERS = {kind: evolve_command(kind, transferred=True) for kind in EVOLVED_ON}
COMMANDS = {
    "eval": Group(evaluate, {kind: eval_command(kind) for kind in DATA_SETS}),
    "evolve": Group(
        evolve,
        {
            "transfer": Group(transfer, _TRANSFERS, alone=False),
            **{kind: evolve_command(kind) for kind in EVOLVED_ON},
        },
    ),
}
