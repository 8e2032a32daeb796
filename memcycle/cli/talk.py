"""`ingest` and `ask`: what goes into memory, and what comes out."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from memcycle.cli.options import (
    BaseUrl,
    ChromaUrl,
    Embedder,
    Home,
    Json,
    Model,
    Prompts,
    Timezone,
    User,
    Workspace,
    open_memory,
    settings_of,
)
from memcycle.cli.output import note, print_json, say, screen, shown
from memcycle.core.settings import Verification
from memcycle.files import Format

if TYPE_CHECKING:
    from memcycle.core.usage import Usage
    from memcycle.ingest import Progress as Stored
    from memcycle.results import Answer, Evidence, Ingested

_SHOWN_REFUSALS = 5


def ingest(
    *,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A conversation file.", show_default=False)],
    user: User,
    home: Home = None,
    workspace: Workspace = "default",
    form: Annotated[
        Format,
        typer.Option(
            "--format", help="jsonl: one turn a line. locomo: the LoCoMo benchmark. auto: see which."
        ),
    ] = "auto",
    conversation: Annotated[
        str | None,
        typer.Option(
            "--conversation", metavar="ID", help="Which conversation, where the file holds several."
        ),
    ] = None,
    sessions: Annotated[
        str | None,
        typer.Option("--sessions", metavar="1-3", help="Only these sessions, such as 1-3, 4- or 1,5."),
    ] = None,
    chunk_turns: Annotated[
        int | None,
        typer.Option(
            "--chunk-turns", metavar="N", min=1, max=500, show_default="20", help="Turns handled in one go."
        ),
    ] = None,
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Commit sessions at once, without examining what is stored.")
    ] = False,
    probes: Annotated[
        int | None,
        typer.Option(
            "--probes",
            metavar="N",
            min=1,
            max=50,
            show_default="5",
            help="Questions a session is examined with when it ends.",
        ),
    ] = None,
    model: Model = "rules",
    base_url: BaseUrl = None,
    prompts: Prompts = None,
    embedder: Embedder = None,
    chroma_url: ChromaUrl = None,
    timezone: Timezone = None,
    as_json: Json = False,
) -> None:
    """Remember a conversation from a file. Run it again to go on where it was broken off.

    A line of a JSONL file is {"session", "speaker", "role": human|ai|tool|system, "text", "time", "id"?},
    its time in ISO 8601.
    """
    wanted = None if probes is None else Verification(probes=probes)
    settings = settings_of(
        home, embedder=embedder, chroma_url=chroma_url, timezone=timezone, verification=wanted
    )
    from memcycle.files import choose, read_conversations

    # Everything is read and checked before a home is made or opened.
    chosen = choose(read_conversations(path, zone=settings.zone, form=form), conversation)
    if sessions is not None:
        chosen = chosen.select(sessions)
    from memcycle.ingest import CHUNK_TURNS
    from memcycle.ingest import ingest as run

    with (
        open_memory(
            settings,
            model=model,
            base_url=base_url,
            prompts=prompts,
            user=user,
            workspace=workspace,
            new=True,
        ) as memory,
        _progress() as told,
    ):
        result = run(
            memory,
            chosen,
            chunk_turns=chunk_turns or CHUNK_TURNS,
            verify=False if no_verify else None,
            on_progress=told,
        )
    if as_json:
        print_json(result.model_dump(mode="json"))
    else:
        _say_ingested(result)
    if result.unextracted:
        note(
            f"{result.unextracted} turns are stored as said, but their facts could not be read; run it again."
        )
    if result.unverified and not no_verify:
        note(
            f"{len(result.unverified)} sessions could not be examined: `memcycle sessions` says why", "yellow"
        )


@contextmanager
def _progress() -> "Iterator[Callable[[Stored], None]]":
    """A bar on a terminal, a line a chunk elsewhere; both name the last turn that is stored for good."""
    if not sys.stderr.isatty():
        yield _progress_line
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("turns"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen(error=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def told(stored: "Stored") -> None:
            bar.update(
                task, description=f"stored {shown(stored.last)}", completed=stored.done, total=stored.total
            )

        yield told


def _progress_line(stored: "Stored") -> None:
    verb = "stored" if stored.new else "already stored"
    note(f"{verb} {stored.first} to {stored.last} ({stored.done}/{stored.total} turns)")
    sys.stderr.flush()


def _say_ingested(result: "Ingested") -> None:
    if not (result.turns or result.sessions):
        say(("Nothing new. ", "bold"), f"All of it is stored already ({result.seconds:.1f} s).")
        return
    say(
        ("Remembered ", "bold"),
        f"{result.turns} turns in {result.sessions} sessions: {result.facts} facts, "
        f"{result.episodes} episodes, {result.refreshed} refreshed ({result.seconds:.1f} s).",
    )
    if result.probes:
        say(
            ("Examined ", "bold"),
            f"with {result.probes} probes: {result.passed_before} passed, {result.passed_after} after repair "
            f"({result.repairs} repairs kept, {result.rolled_back} rolled back, {result.merged} merged).",
        )
    for refused in result.rejected[:_SHOWN_REFUSALS]:
        say(("  not stored: ", "dim"), shown(refused.text), (f"  {shown(refused.why)}", "dim"))
    if len(result.rejected) > _SHOWN_REFUSALS:
        say((f"  ... and {len(result.rejected) - _SHOWN_REFUSALS} more (see --json)", "dim"))
    say_usage(result.usage)


def ask(
    *,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="In words.", show_default=False)],
    user: User,
    home: Home = None,
    workspace: Workspace = "default",
    evidence_only: Annotated[
        bool, typer.Option("--evidence-only", help="Find the evidence and stop there.")
    ] = False,
    k: Annotated[
        int | None, typer.Option("--k", metavar="K", min=1, max=200, help="Entries of evidence at most.")
    ] = None,
    model: Model = "rules",
    base_url: BaseUrl = None,
    prompts: Prompts = None,
    embedder: Embedder = None,
    chroma_url: ChromaUrl = None,
    timezone: Timezone = None,
    as_json: Json = False,
) -> None:
    """Answer a question from memory, with the turns the answer rests on."""
    settings = settings_of(home, embedder=embedder, chroma_url=chroma_url, timezone=timezone)
    with open_memory(
        settings, model=model, base_url=base_url, prompts=prompts, user=user, workspace=workspace
    ) as memory:
        answer = memory.ask(question, k=k, evidence_only=evidence_only)
    for warning in answer.warnings:
        note(f"Note: {warning}", "yellow")
    if as_json:
        print_json(answer.model_dump(mode="json"))
        return
    say_answer(answer)
    say_usage(answer.usage)


def say_answer(answer: "Answer", *, limit: int = 10) -> None:
    """An answer and its sources, as people read them."""
    if answer.answer is not None:
        style = "bold green" if answer.answerable else "yellow"
        sure = (
            f"  {answer.confidence:.0%} sure" if answer.answerable and answer.confidence is not None else ""
        )
        kind = ", extractive" if answer.mode == "extractive" and answer.answerable else ""
        say((shown(answer.answer), style), (f"{sure}{kind}", "dim"))
    elif not answer.evidence:
        say(("Nothing in memory bears on that.", "yellow"))
    if answer.evidence:
        screen().print(evidence_table(answer.evidence[:limit]))
    if len(answer.evidence) > limit:
        say((f"  ... and {len(answer.evidence) - limit} more (see --json)", "dim"))


def evidence_table(evidence: "list[Evidence]") -> Table:
    """Evidence, a row a piece: source turns, granularity, date, text."""
    table = Table(box=None, padding=(0, 1), show_header=False, pad_edge=True)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for item in evidence:
        said = item.event_time or item.time
        speaker = f"{item.speaker}: " if item.speaker and item.granularity == "raw" else ""
        table.add_row(
            shown(turn_range(item.turns)),
            item.granularity,
            f"{said:%Y-%m-%d}" if said else "",
            Text(shown(speaker + item.text)),
        )
    return table


def turn_range(turns: list[str]) -> str:
    """Source turns in few letters: one id, or the first and the last."""
    if len(turns) < 2:  # noqa: PLR2004 - a range has two ends
        return "".join(turns)
    (session, _, _), (other, _, last) = turns[0].rpartition(":"), turns[-1].rpartition(":")
    return f"{turns[0]}-{last}" if session == other else f"{turns[0]} .. {turns[-1]}"


def say_usage(usage: "Usage") -> None:
    """Model calls and tokens, where there were any."""
    if usage:
        calls = sum(count["calls"] for count in usage.values())
        read = sum(count["input_tokens"] for count in usage.values())
        written = sum(count["output_tokens"] for count in usage.values())
        say((f"{calls} model calls, {read} tokens read, {written} written", "dim"))
