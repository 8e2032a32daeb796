"""The page of commands, made when the site is built, so that it is never behind them."""

import re

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer.cli import get_docs_for_click

from memcycle.cli.app import PANELS, app


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds it to the site."""
    files.append(File.generated(config, "cli.md", content=commands()))
    return files


def commands() -> str:
    """Each command with its arguments, options and subcommands."""
    page = typer.main.get_command(app)
    context = typer.Context(page, info_name="memcycle")
    parts = ["# Commands"]
    for panel, names in PANELS.items():
        parts.append(f"## {panel}")
        for name in names:
            _, command, _ = page.resolve_command(context, [name])
            parts.append(
                get_docs_for_click(obj=command, ctx=context, name=name, indent=2, call_prefix="memcycle")
            )
    return re.sub(r"\[bold\]Examples\[/bold\]\n((?:\n.*memcycle .*)+)", _shown, "\n\n".join(parts))


def _shown(examples: re.Match[str]) -> str:
    return "**Examples**:\n\n```sh" + examples[1].replace("\n\n", "\n") + "\n```"
