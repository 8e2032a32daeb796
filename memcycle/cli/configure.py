"""`prompts` and `theta`: what roles are told, how memory is read and searched, and files that change it."""

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Column, Table
from rich.text import Text

from memcycle.cli import options as opt
from memcycle.cli.options import theta_of
from memcycle.cli.output import FAILED, confirm, listing, print_json, print_text, say, screen, shown
from memcycle.core.errors import BadInput, PromptError

if TYPE_CHECKING:
    from memcycle.core.theta_space import Dimension
    from memcycle.prompts import PromptSet

Role = Annotated[str, typer.Argument(metavar="ROLE", help="A role, as `memcycle prompts` lists them.")]
Roles = Annotated[
    list[str] | None, typer.Argument(metavar="[ROLE]...", help="Only these roles; all by default.")
]
Folder = Annotated[
    Path | None,
    typer.Option("--folder", "-f", metavar="DIR", help="Your own prompts, laid over the shipped ones."),
]
Given = Annotated[Path, typer.Argument(metavar="DIR", help="A folder with files named ROLE.txt.")]
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def prompts(ctx: typer.Context, *, folder: Folder = None, as_json: opt.Json = False) -> None:
    """List the prompts by role, each with its version; or show, export, check and compare them.

    Examples:
        memcycle prompts
        memcycle prompts export mine
        memcycle prompts diff mine
    """
    if ctx.invoked_subcommand is not None:
        return
    from memcycle.prompts import PLACEHOLDERS

    found, ours = _laid_over(folder), _shipped()
    rows = [
        {
            "role": role,
            "version": found.version(role),
            "shipped": found.version(role) == ours.version(role),
            "placeholders": sorted(PLACEHOLDERS[role].required | PLACEHOLDERS[role].optional),
            "characters": len(found.text(role)),
        }
        for role in found.roles()
    ]
    if as_json:
        print_json(rows)
        return
    fixed = (Column(name, no_wrap=True) for name in ("role", "version", ""))
    table = listing(*fixed, Column("placeholders", overflow="fold"))
    for role, row in zip(found.roles(), rows, strict=True):
        own = "" if row["shipped"] else "own"
        names = " ".join(f"${name}" for name in sorted(PLACEHOLDERS[role].required))
        table.add_row(Text(role, style="cyan"), found.version(role), Text(own, style="yellow"), names)
    screen().print(table)


def show_prompt(role: Role, *, folder: Folder = None, as_json: opt.Json = False) -> None:
    """Show one prompt as it is written: `$name` is filled in, a line `---` ends the instructions.

    Examples:
        memcycle prompts show answerer
    """
    found = _laid_over(folder)
    if as_json:
        print_json({"role": role, "version": found.version(role), "text": found.text(role)})
    else:
        print_text(found.text(role))


def export_prompts(
    folder: Given, roles: Roles = None, *, yes: opt.Yes = False, as_json: opt.Json = False
) -> None:
    """Write the shipped prompts into a folder, to be edited there. Asks before it replaces a file.

    Examples:
        memcycle prompts export mine
        memcycle prompts export mine answerer judge
    """
    ours = _shipped()
    texts = {role: ours.text(role) for role in (roles or ours.roles())}
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; name a folder for the prompts")
    there = [role for role in texts if _differs(folder / f"{role}.txt", texts[role])]
    if there:
        confirm(f"Replace what was edited of {', '.join(there)} in {folder}?", yes=yes)
    folder.mkdir(parents=True, exist_ok=True)
    for role, text in texts.items():
        (folder / f"{role}.txt").write_text(text, encoding="utf-8")
    if as_json:
        print_json({"folder": str(folder), "roles": list(texts)})
    else:
        say(f"{len(texts)} prompts in {folder}. Edit them, then: memcycle prompts check {folder}")


def check_prompts(folder: Given, *, as_json: opt.Json = False) -> None:
    """Check a folder of prompts: placeholders, stray `$`, roles. Exit code 1 if anything is wrong.

    Examples:
        memcycle prompts check mine
    """
    from memcycle.prompts.prompt_set import read_folder

    ours, faults, fine = _shipped(), list[str](), list[str]()
    for role, text in read_folder(folder).items():
        try:
            ours.overlay({role: text})
        except PromptError as error:
            faults.append(str(error))
        else:
            fine.append(role)
    if as_json:
        print_json({"fine": fine, "faults": faults})
    else:
        for fault in faults:
            say(("wrong  ", "bold red"), shown(fault))
        say(("fine   ", "green"), ", ".join(fine) or "nothing: there is no ROLE.txt in the folder")
    if faults:
        raise typer.Exit(FAILED)


def diff_prompts(folder: Given, roles: Roles = None, *, as_json: opt.Json = False) -> None:
    """Show what a folder of prompts changes of the shipped ones.

    Examples:
        memcycle prompts diff mine
        memcycle prompts diff mine answerer
    """
    ours, own = _shipped(), _laid_over(folder)
    changes: dict[str, list[str]] = {}
    for role in roles or own.roles():
        texts = (ours.text(role).splitlines(), own.text(role).splitlines())
        lines = list(difflib.unified_diff(*texts, f"shipped/{role}.txt", f"own/{role}.txt", lineterm=""))
        changes |= {role: lines} if lines else {}
    if as_json:
        print_json({role: "\n".join(lines) for role, lines in changes.items()})
        return
    for lines in changes.values():
        for line in lines:
            print_text(line, _COLOURS.get(line[:1], ""))
    if not changes:
        say("No difference to the shipped prompts.")


def _shipped() -> "PromptSet":
    from memcycle.prompts import PromptSet

    return PromptSet.shipped()


def _laid_over(folder: Path | None) -> "PromptSet":
    return _shipped() if folder is None else _shipped().overlay(folder)


def _differs(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8", errors="replace") != text


File = Annotated[Path, typer.Argument(metavar="FILE", help="A configuration, as JSON.", show_default=False)]
MaybeFile = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="A configuration, as JSON.", show_default="as shipped")
]
Other = Annotated[
    Path | None,
    typer.Argument(metavar="[OTHER]", help="What it is compared with.", show_default="as shipped"),
]


def theta(ctx: typer.Context, *, as_json: opt.Json = False) -> None:
    """Show every dimension of reading and searching memory; or show, check and compare configurations.

    Examples:
        memcycle theta
        memcycle theta show --json > mine.json
        memcycle theta diff mine.json
    """
    if ctx.invoked_subcommand is None:
        _show(None, as_json=as_json)


def show_theta(path: MaybeFile = None, *, as_json: opt.Json = False) -> None:
    """Show a configuration, or the shipped one, with ranges. With --json as a file holds it.

    Examples:
        memcycle theta show mine.json
        memcycle theta show --json > mine.json
    """
    _show(path, as_json=as_json)


def check_theta(path: File, *, as_json: opt.Json = False) -> None:
    """Check a configuration file: keys, types, ranges. Exit code 1 if anything is wrong.

    Examples:
        memcycle theta check mine.json
    """
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


def diff_theta(path: File, other: Other = None, *, as_json: opt.Json = False) -> None:
    """Show in which dimensions a configuration differs from the shipped one, or from another.

    Examples:
        memcycle theta diff mine.json
        memcycle theta diff mine.json other.json
    """
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
    for name, mine, _ in chosen.diff(chosen.model_copy(update={"overrides": {}})):
        table.add_row(Text(shown(name), style="cyan"), Text(shown(_words(mine)), style="yellow"), "", "")
    screen().print(table)


def _table(*columns: str) -> Table:
    heads = [Text(shown(name)) for name in columns]
    return listing(*(Column(head, no_wrap=at == 0, overflow="fold") for at, head in enumerate(heads)))


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


COMMANDS = {
    "prompts": opt.Group(
        prompts, {"show": show_prompt, "export": export_prompts, "check": check_prompts, "diff": diff_prompts}
    ),
    "theta": opt.Group(theta, {"show": show_theta, "check": check_theta, "diff": diff_theta}),
}
