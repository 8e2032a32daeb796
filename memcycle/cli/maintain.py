"""`doctor` and `graph`: looking after a home, and looking at the graphs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from memcycle.cli.options import ChromaUrl, Embedder, Home, Json, require_home, settings_of
from memcycle.cli.output import one_line, print_json, say, shown
from memcycle.cli.sessions import verify_command

_LISTED = 20
"""Unverified sessions told in full."""


def doctor(
    *,
    home: Home = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Make the index anew from the ledger.")] = False,
    reembed: Annotated[
        bool,
        typer.Option("--reembed", help="Make all vectors anew with --embedder; ids, texts and dates stay."),
    ] = False,
    embedder: Embedder = None,
    chroma_url: ChromaUrl = None,
    as_json: Json = False,
) -> None:
    """Check a home, and mend what can be made anew."""
    settings = settings_of(home, embedder=embedder, chroma_url=chroma_url)
    require_home(settings)
    from memcycle.stores.bank import Bank

    done: dict[str, Any] = {}
    with Bank.open(settings, repair=True) as bank:
        if reembed:
            done["reembedded"] = bank.reembed()
        if rebuild:
            done["rebuilt"] = bank.rebuild()
        report = {**bank.check(), **done}
    if as_json:
        print_json(report)
        return
    unverified = report.pop("unverified_sessions")
    for key, value in {**report, "unverified": len(unverified)}.items():
        if value is None:
            continue
        say((f"{key.replace('_', ' '):<16}", "bold"), shown(_plain(value)))
    _say_unverified(unverified, settings.home)


def _say_unverified(found: Sequence[Mapping[str, str]], home: Path) -> None:
    """The sessions that were committed without an examination, each with the command that makes up for it."""
    for one in found[:_LISTED]:
        command = verify_command(one["session"], one["user"], one["workspace"], home)
        say(
            ("unverified: ", "yellow"),
            f"session {one_line(one['session'])} of user {one_line(one['user'])}, {one_line(one['reason'])}; "
            f"to examine it: {command}",
        )
    if len(found) > _LISTED:
        say((f"  ... and {len(found) - _LISTED} more (see --json)", "dim"))


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(inner)}" for key, inner in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value)) or "none"
    return str(value)


def graph(
    *,
    name: Annotated[
        Literal["memory", "remember", "recall", "session"],
        typer.Argument(metavar="NAME", help="memory, remember, recall or session.", show_default=False),
    ],
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Draw a graph as Mermaid, nested graphs inside it."""
    from memcycle.agents.roles import Roles
    from memcycle.graph.pipeline import Pipeline, PipelineSpec

    # A pipeline opens its home when it runs: drawing it opens nothing.
    pipeline = Pipeline(PipelineSpec(), Roles.rules(), settings_of(home))
    drawing = pipeline.graph(name).get_graph(xray=True).draw_mermaid()
    if as_json:
        print_json({"name": name, "mermaid": drawing})
    else:
        typer.echo(drawing)
