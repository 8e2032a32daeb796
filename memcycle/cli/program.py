"""`program`: versions of memcycle's whole program as folders, and the tree that grows from one of them."""

import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from memcycle.cli.measure import (
    EVOLVED_ON,
    Evolution,
    answerer,
    command_line,
    evolving,
    held_out_table,
    loop,
    share,
)
from memcycle.cli.options import (
    MODELS,
    BaseUrl,
    Embedder,
    Group,
    Json,
    ThetaFile,
    Timezone,
    theta_of,
)
from memcycle.cli.options import Store as StoreOptions
from memcycle.cli.output import documented, listing, print_json, print_text, say, screen, shown
from memcycle.core.errors import BadInput

if TYPE_CHECKING:
    from memcycle.agents.pipeline import Pipeline
    from memcycle.evolution.program.tree import Tree

Version = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a version.", show_default=False)]
Out = Annotated[
    Path, typer.Argument(metavar="OUT", help="Folder that a tree was grown in.", show_default=False)
]
Named = Annotated[
    str | None,
    typer.Argument(
        metavar="VERSION", help="Its number, or the first letters of its version.", show_default="best"
    ),
]
_STYLES = {"accepted": "green", "side branch": "yellow", "discarded": "dim"}


@dataclass(frozen=True)
class Grown(Evolution):
    """What one tree is of."""

    rounds: Annotated[int, loop(metavar="N", min=1, max=100, help="Versions beside the root, at most.")] = 15
    chain: Annotated[
        bool, loop("--chain", help="An ablation: each version is made from the last accepted one.")
    ] = False


def program(context: typer.Context) -> None:
    """Versions of memcycle's program: theta, switches, prompts and models as a folder that anything runs.

    Examples:
        memcycle program init mine
        memcycle program evolve jsonl --data ours.jsonl --train 50% --guard 25% --held-out 25% --out run-1
        memcycle program tree run-1
        memcycle program export run-1 better
        memcycle ask "Where do I live?" --pipeline better
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def init(
    folder: Version,
    *,
    theta: ThetaFile = None,
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="M", help=f"Who fills the roles: rules, {MODELS}.")
    ] = "rules",
    prompts: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Prompts of its own, as `memcycle prompts export` writes them."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a version: the shipped program, or with a theta, prompts and a model of your own.

    Examples:
        memcycle program init mine
        memcycle program init mine --theta run-1/best_theta.json --model openai:gpt-4o-mini
    """
    from memcycle.agents.pipeline import Pipeline
    from memcycle.core.theta import Theta
    from memcycle.prompts.prompt_set import read_folder

    made = Pipeline(
        model=model, theta=theta_of(theta) or Theta(), prompts={} if prompts is None else read_folder(prompts)
    )
    made.save(folder)
    if as_json:
        print_json({"folder": str(folder), "version": made.version})
    else:
        say(("Version ", "bold"), made.version, f" in {shown(str(folder))}; run it with --pipeline.")


def show(folder: Version, *, as_json: Json = False) -> None:
    """Show what a version changes of the shipped program, and its note.

    Examples:
        memcycle program show mine
    """
    from memcycle.agents.pipeline import NOTE, Pipeline

    own = Pipeline.load(folder)
    path = folder / NOTE
    said = path.read_text("utf-8") if path.is_file() else ""
    changed = _differences(Pipeline(), own)
    if as_json:
        plain = {"version": own.version, "parent": own.parent, "changes": changed, "note": said}
        print_json(plain)
        return
    say(("Version ", "bold"), own.version, "" if own.parent is None else f", made from {own.parent}")
    _show_changes(changed)
    print_text(said)


def diff(one: Version, other: Version, *, as_json: Json = False) -> None:
    """Compare two versions, each in its folder.

    Examples:
        memcycle program diff run-1/versions/000-* run-1/versions/004-*
    """
    from memcycle.agents.pipeline import Pipeline

    changed = _differences(Pipeline.load(one), Pipeline.load(other))
    if as_json:
        print_json(changed)
    else:
        _show_changes(changed)


def tree(
    folder: Out,
    *,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="As a Mermaid chart.")] = False,
    as_json: Json = False,
) -> None:
    """Draw a tree of versions with their scores.

    Examples:
        memcycle program tree run-1
        memcycle program tree run-1 --mermaid > tree.mmd
    """
    from memcycle.evolution.program import tree as trees

    grown = trees.Tree.load(folder)
    if as_json:
        print_json({**grown.plain(), "best": grown.best.number})
    elif mermaid:
        sys.stdout.write(trees.mermaid(grown))
    else:
        _draw(grown)


def export(
    folder: Out,
    to: Annotated[Path, typer.Argument(metavar="DIR", help="Where to.", show_default=False)],
    version: Named = None,
) -> None:
    """Copy a version out of its tree; `--pipeline`, MEMCYCLE_PIPELINE and Memory.open(pipeline=) run it.

    Examples:
        memcycle program export run-1 better
        memcycle program export run-1 fourth 4
    """
    from memcycle.evolution.program.tree import Tree

    if to.exists():
        raise BadInput(f"{to} is there already: name a folder that is not")
    node = Tree.load(folder).find(version)
    shutil.copytree(folder / "versions" / node.folder, to)
    say(
        ("Version ", "bold"),
        f"{node.number} ({node.version}) is in {shown(str(to))}; run it with --pipeline.",
    )


def evolve(context: typer.Context) -> None:
    """Grow a tree of versions: each answers a way its parent fails, and is kept if other questions gain.

    Examples:
        memcycle program evolve jsonl --data ours.jsonl --train 50% --guard 25% --held-out 25% --out run-1
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def evolve_command(kind: str) -> Callable[..., None]:
    """The command that grows a tree on one kind of data set."""

    def run(
        *,
        wanted: Grown,
        base_url: BaseUrl = None,
        embedder: Embedder = None,
        timezone: Timezone = None,
        as_json: Json = False,
    ) -> None:
        asked = {**vars(wanted), "kind": kind, "model": answerer(wanted)}
        resume, asked["random_seeds"] = asked.pop("resume"), 0
        from memcycle.evolution.program.run import run as grow
        from memcycle.evolution.program.tree import Tree

        with evolving(asked, StoreOptions(embedder, None, timezone), base_url) as lab:
            figures = grow(lab, command=command_line(sys.argv[1:]), resume=resume)
        if as_json:
            print_json(figures)
            return
        _draw(Tree.model_validate(figures["tree"]))
        screen().print(held_out_table(figures["held_out"]))
        say(("Report: ", "bold"), shown(str(wanted.out / "report.md")))
        say(("Best: ", "bold"), shown(figures["best"]["folder"]))

    command = f"memcycle program evolve {kind} --data PATH"
    examples = (
        f"{command} --train 1-3 --guard 4-5 --held-out 6-10 --out run-1",
        f"{command} --train 50% --guard 25% --held-out 25% --out run-1 --start weak --rounds 30 --resume",
    )
    return documented(run, kind, f"Grow a tree on {EVOLVED_ON[kind]}", *examples)


def _differences(old: "Pipeline", new: "Pipeline") -> dict[str, Any]:
    """By path what one version has otherwise than another: old and new."""
    from memcycle.evolution.theta.space import changed

    found = {f"theta.{path}": values for path, values in changed(old.theta, new.theta).items()}
    plain = [one.model_dump(mode="json", exclude={"theta", "parent"}) for one in (old, new)]
    for name, was in plain[0].items():
        now = plain[1][name]
        if not isinstance(was, Mapping):
            found |= {name: [was, now]} if was != now else {}
            continue
        for key in dict.fromkeys((*was, *now)):
            if was.get(key) != now.get(key):
                found[f"{name}.{key}"] = [was.get(key), now.get(key)]
    return found


def _show_changes(changed: Mapping[str, Any]) -> None:
    if not changed:
        say("As shipped, or the same.")
        return
    table = listing("what", "was", "is")
    for path, values in changed.items():
        lines = [str(value).splitlines() or [""] for value in values]
        table.add_row(path, *(own[0] + (f" … {len(own)} lines" if len(own) > 1 else "") for own in lines))
    screen().print(table)


def _draw(grown: "Tree") -> None:
    """The tree, a line a version."""
    from memcycle.evolution.program.tree import lines

    table = listing("version", "train", "guard", "standing", "direction")
    for before, node in lines(grown):
        best = " *" if node == grown.best else ""
        name = Text(f"{before}{node.number}{best}", style="bold" if best else "")
        standing = Text(node.standing, style=_STYLES[node.standing])
        table.add_row(name, share(node.train), share(node.guard), standing, node.direction or "the root")
    screen().print(table)


COMMANDS = {
    "program": Group(
        program,
        {
            "init": init,
            "evolve": Group(evolve, {kind: evolve_command(kind) for kind in EVOLVED_ON}),
            "tree": tree,
            "show": show,
            "diff": diff,
            "export": export,
        },
    )
}
