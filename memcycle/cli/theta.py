"""`theta`: how memory is read and searched, dimension by dimension, and files that say it otherwise."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from memcycle.cli.options import Json, theta_of
from memcycle.cli.output import FAILED, print_json, say, screen, shown

if TYPE_CHECKING:
    from memcycle.core.theta import Dimension, Theta

File = Annotated[Path, typer.Argument(metavar="FILE", help="A configuration, as JSON.", show_default=False)]
MaybeFile = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="A configuration, as JSON.", show_default="as shipped")
]
Other = Annotated[
    Path | None,
    typer.Argument(metavar="[OTHER]", help="What it is compared with.", show_default="as shipped"),
]


def theta(ctx: typer.Context, *, as_json: Json = False) -> None:
    """Show every dimension of reading and searching memory; or show, check and compare configurations."""
    if ctx.invoked_subcommand is None:
        _show(None, as_json=as_json)


def show(path: MaybeFile = None, *, as_json: Json = False) -> None:
    """Show a configuration, or the shipped one, with ranges. With --json as a file holds it."""
    _show(path, as_json=as_json)


def check(path: File, *, as_json: Json = False) -> None:
    """Check a configuration file: keys, types, ranges. Exit code 1 if anything is wrong."""
    from memcycle.core.theta import Theta

    faults = Theta.faults(path)
    if as_json:
        print_json({"file": str(path), "faults": faults})
    else:
        for fault in faults:
            say(("wrong  ", "bold red"), shown(fault))
        if not faults:
            changed = len(Theta.load(path).diff(Theta()))
            say(("fine   ", "green"), f"{changed} values differ from what is shipped")
    if faults:
        raise typer.Exit(FAILED)


def diff(path: File, other: Other = None, *, as_json: Json = False) -> None:
    """Show in which dimensions a configuration differs from the shipped one, or from another."""
    from memcycle.core.theta import Theta

    rows = Theta.load(path).diff(theta_of(other) or Theta())
    if as_json:
        print_json([{"path": name, "mine": _plain(mine), "other": _plain(his)} for name, mine, his in rows])
        return
    if not rows:
        say("No difference.")
        return
    table = _table("dimension", path.name, other.name if other is not None else "shipped")
    for name, mine, his in rows:
        table.add_row(Text(shown(name), style="cyan"), shown(_words(mine)), shown(_words(his)))
    screen().print(table)


def _show(path: Path | None, *, as_json: bool) -> None:
    from memcycle.core.theta import Theta

    chosen, shipped = theta_of(path) or Theta(), Theta()
    if as_json:
        print_json(chosen.model_dump(mode="json"))
        return
    table = _table("dimension", "value", "range", "what it is")
    for name, dimension in Theta.dimensions().items():
        value = chosen.get(name)
        style = "yellow" if value != shipped.get(name) else ""
        table.add_row(
            Text(name, style="cyan"),
            Text(_words(value), style=style),
            _range(dimension),
            dimension.description,
        )
    for name, mine, _ in _overrides(chosen):
        table.add_row(Text(shown(name), style="cyan"), Text(shown(_words(mine)), style="yellow"), "", "")
    screen().print(table)


def _overrides(chosen: "Theta") -> list[tuple[str, Any, Any]]:
    return chosen.diff(chosen.model_copy(update={"overrides": {}}))


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for at, name in enumerate(columns):
        table.add_column(Text(shown(name)), no_wrap=at == 0, overflow="fold")
    return table


def _range(dimension: "Dimension") -> str:
    if dimension.type == "bool":
        return "true, false"
    if dimension.choices is not None:
        return ", ".join(_words(one) for one in dimension.choices)
    if dimension.low is None or dimension.high is None:
        return dimension.type
    return f"{dimension.low:g} to {dimension.high:g}"


def _words(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
