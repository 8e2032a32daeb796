"""The commands, in the order and the groups in which `memcycle --help` shows them."""

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Annotated, Any

import typer

from memcycle.cli.configure import check, check_theta, diff, diff_theta, prompts, show, show_theta, theta
from memcycle.cli.configure import export as export_prompts
from memcycle.cli.home import doctor, graph, maintain, scrub
from memcycle.cli.measure import (
    DATA_SETS,
    EVOLVED_ON,
    eval_command,
    evaluate,
    evolve,
    evolve_command,
    transfer,
)
from memcycle.cli.memories import edit, export, forget, history, import_, memories, undo
from memcycle.cli.output import explained
from memcycle.cli.sessions import session, sessions, verify
from memcycle.cli.talk import ask, demo, ingest

app = typer.Typer(
    name="memcycle",
    help="Long-term memory for agents: it writes, checks, repairs and searches what conversations say.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memcycle {version('memcycle')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Long-term memory for agents: it writes, checks, repairs and searches what conversations say."""


def _register(panel: str, name: str, command: Callable[..., Any], *examples: str) -> None:
    app.command(name, epilog=_epilog(examples), rich_help_panel=panel)(explained(command))


def _register_group(panel: str, name: str, command: Callable[..., Any], *examples: str) -> typer.Typer:
    """A command that also has subcommands."""
    group = typer.Typer()
    group.callback(invoke_without_command=True, epilog=_epilog(examples))(explained(command))
    app.add_typer(group, name=name, rich_help_panel=panel)
    return group


def _epilog(examples: Sequence[str]) -> str:
    return "\n\n".join(("[bold]Examples[/bold]", *examples))


_START, _INSPECT, _CORRECT, _KEEP, _MEASURE = "Start", "Inspect", "Correct and erase", "Keep", "Measure"

_register(_START, "demo", demo, "memcycle demo", "memcycle demo --json")
_register(
    _START,
    "ingest",
    ingest,
    "memcycle ingest chat.jsonl --user ann",
    "memcycle ingest locomo10.json --conversation conv-26 --sessions 1-3 --user c26",
    "memcycle ingest chat.jsonl --user ann --model openai:gpt-4o-mini",
    "memcycle ingest chat.jsonl --user ann --probes 10",
    "memcycle ingest chat.jsonl --user ann --checkpoints runs.sqlite3 --approval delete --approval update",
    "memcycle ingest chat.jsonl --user ann --checkpoints runs.sqlite3 --resume THREAD --approve all",
)
_register(
    _START,
    "ask",
    ask,
    'memcycle ask "Where does Tomas live?" --user ann',
    'memcycle ask "What did Nora make?" --user ann --evidence-only',
    'memcycle ask "Where does Tomas live?" --user ann --checkpoints runs.sqlite3',
    "memcycle ask --user ann --checkpoints runs.sqlite3 --resume THREAD",
)
_register(
    _INSPECT,
    "memories",
    memories,
    "memcycle memories --user ann",
    'memcycle memories --user ann --granularity fact --search "bowl"',
)
_register(_INSPECT, "history", history, "memcycle history 3fa85f64")
_sessions = _register_group(
    _INSPECT,
    "sessions",
    sessions,
    "memcycle sessions --user ann",
    "memcycle sessions verify 3 --user ann",
)
_sessions.command(
    "verify",
    epilog=_epilog(
        [
            "memcycle sessions verify 3 --user ann",
            "memcycle sessions verify 3 -u ann -m openai:gpt-4o-mini",
            "memcycle sessions verify 3 -u ann --checkpoints runs.sqlite3 --resume THREAD",
        ]
    ),
)(explained(verify))
_register(_INSPECT, "session", session, "memcycle session 3 --user ann")
_register(_CORRECT, "edit", edit, 'memcycle edit 3fa85f64 "Ann lives in Graz."')
_register(_CORRECT, "undo", undo, "memcycle undo 3fa85f64")
_register(
    _CORRECT,
    "forget",
    forget,
    "memcycle forget 3fa85f64",
    "memcycle forget 3fa85f64 --only",
    "memcycle forget --user ann --yes",
)
_register(_KEEP, "export", export, "memcycle export --user ann > ann.jsonl")
_register(_KEEP, "import", import_, "memcycle import ann.jsonl", "memcycle import ann.jsonl --user ben")
_register(
    _KEEP,
    "doctor",
    doctor,
    "memcycle doctor",
    "memcycle doctor --dry-run --json",
    "memcycle doctor --rebuild",
    "memcycle doctor --reembed --embedder minilm",
)
_register(_KEEP, "scrub", scrub, "memcycle scrub chroma-data", "memcycle scrub chroma-data --yes --json")
_register(
    _KEEP,
    "maintain",
    maintain,
    "memcycle maintain --user ann --dry-run",
    "memcycle maintain --user ann --granularity raw --max-age-days 365",
)
_register(_KEEP, "graph", graph, "memcycle graph memory", "memcycle graph recall > recall.mmd")
_prompts = _register_group(
    _KEEP,
    "prompts",
    prompts,
    "memcycle prompts",
    "memcycle prompts export mine",
    "memcycle prompts diff mine",
)
for _name, _command, *_examples in (
    ("show", show, "memcycle prompts show answerer"),
    ("export", export_prompts, "memcycle prompts export mine", "memcycle prompts export mine answerer judge"),
    ("check", check, "memcycle prompts check mine"),
    ("diff", diff, "memcycle prompts diff mine", "memcycle prompts diff mine answerer"),
):
    _prompts.command(_name, epilog=_epilog(_examples))(explained(_command))
_theta = _register_group(
    _MEASURE,
    "theta",
    theta,
    "memcycle theta",
    "memcycle theta show --json > mine.json",
    "memcycle theta diff mine.json",
)
for _name, _of_theta, *_examples in (
    ("show", show_theta, "memcycle theta show mine.json", "memcycle theta show --json > mine.json"),
    ("check", check_theta, "memcycle theta check mine.json"),
    ("diff", diff_theta, "memcycle theta diff mine.json", "memcycle theta diff mine.json other.json"),
):
    _theta.command(_name, epilog=_epilog(_examples))(explained(_of_theta))
_eval = _register_group(
    _MEASURE,
    "eval",
    evaluate,
    "memcycle eval locomo --data locomo10.json --conversations 6-10 --facts observations --out run-1",
    "memcycle eval jsonl --data ours.jsonl --facts rules --k 10 --token-budget 500 --json",
)
for _kind in DATA_SETS:
    _eval.command(
        _kind,
        epilog=_epilog(
            [
                f"memcycle eval {_kind} --data PATH --out run-1",
                f"memcycle eval {_kind} --data PATH --facts none --no-answers --json",
                f"memcycle eval {_kind} --data PATH --judge openai:gpt-4o-mini --out run-2 --resume",
            ]
        ),
    )(explained(eval_command(_kind)))
_evolve = _register_group(
    _MEASURE,
    "evolve",
    evolve,
    "memcycle evolve locomo --data locomo10.json --train 1-3 --guard 4-5 --held-out 6-10 --out run-1",
    "memcycle evolve jsonl --data ours.jsonl --train 50% --guard 25% --held-out 25% --out run-1",
    "memcycle evolve transfer --theta run-1/best_theta.json jsonl --data ours.jsonl --train 50% --guard 25% "
    "--held-out 25% --out run-2",
)
_transfer = typer.Typer(no_args_is_help=True)
_transfer.callback()(explained(transfer))
_evolve.add_typer(_transfer, name="transfer")
for _kind in EVOLVED_ON:
    _evolve.command(
        _kind,
        epilog=_epilog(
            [
                f"memcycle evolve {_kind} --data PATH --train 1-3 --guard 4-5 --held-out 6-10 --out run-1",
                f"memcycle evolve {_kind} --data PATH --train 50% --guard 25% --held-out 25% --out run-1 "
                "--max-questions 150 --ablate held-out",
                f"memcycle evolve {_kind} --data PATH --train 1-3 --guard 4-5 --held-out 6-10 --out run-1 "
                "--start weak --resume",
            ]
        ),
    )(explained(evolve_command(_kind)))
    _transfer.command(_kind)(explained(evolve_command(_kind, transferred=True)))
