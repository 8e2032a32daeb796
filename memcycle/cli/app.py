"""The commands, in the order and the panels in which `memcycle --help` shows them."""

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from memcycle.cli.options import Command, Group, flat
from memcycle.cli.output import explained

PANELS: Mapping[str, Mapping[str, str]] = {
    "Start": {"demo": "demo", "ingest": "talk", "ask": "talk"},
    "Inspect": {
        "memories": "memories",
        "history": "memories",
        "session": "sessions",
        "sessions": "sessions",
        "users": "home",
    },
    "Correct and erase": {"edit": "memories", "undo": "memories", "forget": "memories"},
    "Keep": {
        "export": "memories",
        "import": "memories",
        "doctor": "home",
        "scrub": "home",
        "maintain": "home",
        "graph": "home",
        "prompts": "configure",
    },
    "Measure": {"theta": "configure", "eval": "measure", "evolve": "measure", "program": "program"},
}
"""The help page: panels, in them the commands, each with the module in whose `COMMANDS` it is."""


_PLACES = {name: (module, panel) for panel, own in PANELS.items() for name, module in own.items()}


class _Page(TyperGroup):
    """Loads the one command that is asked for; to be listed all of them, without their options."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first argument names."""
        if args[0] in _PLACES:
            self.commands[args[0]] = _loaded(args[0])
        else:
            self.list_commands(ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all."""
        self.commands.update({name: _loaded(name, listed=True) for name in _PLACES})
        return super().list_commands(ctx)


def _loaded(name: str, *, listed: bool = False) -> Any:
    module, panel = _PLACES[name]
    command = import_module(f"memcycle.cli.{module}").COMMANDS[name]
    alone = typer.Typer()
    alone.callback()(lambda: None)
    _add(alone, name, command, panel, listed=listed)
    return cast("TyperGroup", typer.main.get_command(alone)).commands[name]


app = typer.Typer(
    name="memcycle",
    cls=_Page,
    help="Long-term memory for agents: it writes, checks, repairs and searches what conversations say.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"memcycle {version('memcycle')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Long-term memory for agents: it writes, checks, repairs and searches what conversations say."""


def _add(
    parent: typer.Typer,
    name: str,
    command: Command | Group,
    panel: str | None = None,
    *,
    listed: bool = False,
) -> None:
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
    run = (lambda: None) if listed else explained(flat(does))
    if listed or not isinstance(command, Group):
        parent.command(name, rich_help_panel=panel, **shown)(run)
        return
    group = typer.Typer(no_args_is_help=not command.alone)
    group.callback(invoke_without_command=command.alone, **shown)(run)
    for own, inner in command.commands.items():
        _add(group, own, inner)
    parent.add_typer(group, name=name, rich_help_panel=panel)
