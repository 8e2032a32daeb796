"""The commands, in the order and the groups in which `memcycle --help` shows them."""

import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Annotated, Any, NamedTuple

import typer

from memcycle.cli.configure import (
    check_prompts,
    check_theta,
    diff_prompts,
    diff_theta,
    export_prompts,
    prompts,
    show_prompt,
    show_theta,
    theta,
)
from memcycle.cli.demo import demo
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
from memcycle.cli.options import flat
from memcycle.cli.output import explained
from memcycle.cli.sessions import end, session, sessions, verify
from memcycle.cli.talk import ask, ingest

Command = Callable[..., Any]


class Group(NamedTuple):
    """A command that also has subcommands; `alone`: it does something without one."""

    command: Command
    commands: "Mapping[str, Command | Group]"
    alone: bool = True


PANELS: dict[str, dict[str, Command | Group]] = {
    "Start": {"demo": demo, "ingest": ingest, "ask": ask},
    "Inspect": {
        "memories": memories,
        "history": history,
        "sessions": Group(sessions, {"end": end, "verify": verify}),
        "session": session,
    },
    "Correct and erase": {"edit": edit, "undo": undo, "forget": forget},
    "Keep": {
        "export": export,
        "import": import_,
        "doctor": doctor,
        "scrub": scrub,
        "maintain": maintain,
        "graph": graph,
        "prompts": Group(
            prompts,
            {"show": show_prompt, "export": export_prompts, "check": check_prompts, "diff": diff_prompts},
        ),
    },
    "Measure": {
        "theta": Group(theta, {"show": show_theta, "check": check_theta, "diff": diff_theta}),
        "eval": Group(evaluate, {kind: eval_command(kind) for kind in DATA_SETS}),
        "evolve": Group(
            evolve,
            {
                "transfer": Group(
                    transfer,
                    {kind: evolve_command(kind, transferred=True) for kind in EVOLVED_ON},
                    alone=False,
                ),
                **{kind: evolve_command(kind) for kind in EVOLVED_ON},
            },
        ),
    },
}
"""The help page: panels, in them commands by their names."""

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


def _add(parent: typer.Typer, name: str, command: Command | Group, panel: str | None = None) -> None:
    """Adds a command or a group; its docstring is its help, with examples at the end."""
    does = command.command if isinstance(command, Group) else command
    about, _, examples = inspect.cleandoc(does.__doc__ or "").partition("\n\nExamples:\n")
    # A line that is indented further goes on with the one before.
    lines = inspect.cleandoc(examples).replace("\n    ", " ").splitlines()
    shown: dict[str, Any] = {
        # Lines are broken for whoever reads the help, not as the source breaks them.
        "help": "\n\n".join(" ".join(one.split()) for one in about.split("\n\n")),
        "epilog": "\n\n".join(("[bold]Examples[/bold]", *lines)) if lines else None,
    }
    if not isinstance(command, Group):
        parent.command(name, rich_help_panel=panel, **shown)(explained(flat(does)))
        return
    group = typer.Typer(no_args_is_help=not command.alone)
    group.callback(invoke_without_command=command.alone, **shown)(explained(flat(does)))
    for own, inner in command.commands.items():
        _add(group, own, inner)
    parent.add_typer(group, name=name, rich_help_panel=panel)


for _panel, _commands in PANELS.items():
    for _name, _command in _commands.items():
        _add(app, _name, _command, _panel)
