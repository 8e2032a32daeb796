"""`ingest` and `ask`: what goes into memory, and what comes out."""

import functools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memcycle.cli import options as opt
from memcycle.cli.options import open_memory, settings_of
from memcycle.cli.output import (
    bars,
    counted,
    note,
    print_json,
    say,
    say_answer,
    say_refused,
    say_usage,
    shown,
)
from memcycle.cli.runs import Approver, RunOptions, begin_or_resume, exit_if_waiting, ingest_thread
from memcycle.core.errors import BUDGET, BadInput

if TYPE_CHECKING:
    from memcycle.core.turn import Conversation
    from memcycle.ingest import Progress as Stored
    from memcycle.results import Ingested


Format = Literal["auto", "locomo", "jsonl"]


def ingest(
    *,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A conversation file.", show_default=False)],
    whose: opt.Named,
    form: Annotated[
        Format,
        typer.Option(
            "--format", help="jsonl: one turn a line. locomo: the LoCoMo benchmark. auto: whatever it holds."
        ),
    ] = "auto",
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Which conversation, where the file holds several.")
    ] = None,
    sessions: Annotated[
        str | None, typer.Option(metavar="1-3", help="Only these sessions, such as 1-3, 4- or 1,5.")
    ] = None,
    chunk_turns: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, max=500, show_default="as theta says", help="New turns read in one go."
        ),
    ] = None,
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Commit sessions at once, without examining what is stored.")
    ] = False,
    probes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=50,
            show_default="5",
            help="Questions a session is examined with when it ends.",
        ),
    ] = None,
    running: RunOptions,
    model: opt.Model,
    store: opt.Store,
    as_json: opt.Json = False,
) -> None:
    """Remember a conversation from a file. Run it again to go on where it was broken off.

    With --checkpoints and --resume it goes on inside the chunk: no model is asked twice for what it has said.
    Exits with 3 where a person's approval is waited for.

    A line of a JSONL file is {"session", "speaker", "role": human|ai|tool|system, "text", "time", "id"?},
    its time in ISO 8601. Messages of OpenAI's API or LangChain, threads of LangGraph, ChatGPT's
    conversations.json and LoCoMo are told by what they hold.

    Examples:
        memcycle ingest chat.jsonl --user ann
        memcycle ingest conversations.json --user ann
        memcycle ingest locomo10.json --conversation conv-26 --sessions 1-3 --user c26
        memcycle ingest chat.jsonl --user ann --model openai:gpt-4o-mini
        memcycle ingest chat.jsonl --user ann --probes 10
        memcycle ingest chat.jsonl --user ann --checkpoints runs.sqlite3 --approval delete --approval update
        memcycle ingest chat.jsonl --user ann --checkpoints runs.sqlite3 --resume THREAD --approve all
    """
    from memcycle.core.settings import Verification
    from memcycle.ingest import ingest as run

    wanted = None if probes is None else Verification(probes=probes)
    settings = settings_of(whose.home, store, verification=wanted, approval=running.to_approve())
    # Everything is read and checked before a home is made or opened.
    chosen = choose(read_conversations(path, zone=settings.zone, form=form), conversation)
    if sessions is not None:
        chosen = chosen.select(sessions)
    for left_out in chosen.notes:
        note(f"Note: {left_out}", "yellow")
    with (
        open_memory(settings, whose, model=model, new=True, checkpoints=running.checkpoints) as memory,
        _progress(lines=settings.approval.is_asked) as told,
    ):
        result = run(
            memory,
            chosen,
            chunk_turns=chunk_turns,
            verify=False if no_verify else None,
            on_progress=told,
            thread_id=ingest_thread(memory, running),
            decide=Approver(running),
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
    exit_if_waiting(result)


def read_conversations(path: Path, *, zone: tzinfo, form: Format = "auto") -> "list[Conversation]":
    """The conversations of a file, which is told by what it holds; see `_SHAPES`.

    LoCoMo's file and JSON Lines of conversations, as `memcycle eval jsonl` reads them, hold several; any
    other holds one, named after the file.

    Args:
        path: The file.
        zone: Zone of times that name none.
        form: Only this shape; `auto` for any.

    Raises:
        BadInput: a file that cannot be read, or is not of its format; names the record and the field.
    """
    from memcycle.core.jsonl import read_file

    text = read_file(path)
    if not text.strip():
        raise BadInput(f"{path} is empty; it should hold {_SHAPES}")
    now = datetime.fromtimestamp(path.stat().st_mtime, zone)
    try:
        return _read(text, path.stem, zone, form, now)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


_SHAPES = (
    "turns, one JSON object a line, or in a list, such as "
    '{"session": "1", "speaker": "Ann", "role": "human", "text": "Hi.", "time": "2024-05-08T12:00:00Z"}; '
    'messages of OpenAI\'s API or of LangChain, such as {"messages": [{"role": "user", "content": "Hi."}]}; '
    "threads or states of LangGraph; ChatGPT's conversations.json; or LoCoMo's locomo10.json"
)


def _read(text: str, name: str, zone: tzinfo, form: Format, now: datetime) -> "list[Conversation]":
    from memcycle.core.chat_files import read_chats
    from memcycle.core.jsonl import read_records, read_turns
    from memcycle.evals.datasets.jsonl import read_samples
    from memcycle.evals.datasets.locomo import read_locomo

    whole = _whole(text)
    items = whole if isinstance(whole, list) else [] if whole is None else [whole]
    if form == "locomo" or (
        form == "auto"
        and any(isinstance(item, dict) and "conversation" in item and "mapping" not in item for item in items)
    ):
        if not items:
            raise BadInput("it is not LoCoMo data: a list of samples, each with a 'conversation'")
        return [sample.conversation for sample in read_locomo(whole, zone=zone)]
    if whole is None:
        # Of lines that are none the first is named, as of turns.
        items = [record for _, record in read_records(text)]
    chats = read_chats(items, zone=zone, name=name, now=now) if form == "auto" else None
    if chats is not None:
        return [chats]
    first = items[0] if items else None
    # Exported entries have turns too, but also a text; they are refused as turns, with words for them.
    if isinstance(first, dict) and "turns" in first and "text" not in first:
        return [sample.conversation for sample in read_samples(text, zone=zone)]
    if not all(isinstance(item, dict) for item in items) or {"session", "speaker", "text"}.isdisjoint(
        first or ()
    ):
        raise BadInput(
            f"it holds {_found(whole, items)}, which is none of the shapes that are read: {_SHAPES}"
        )
    return [read_turns(((f"record {n}", one) for n, one in enumerate(items, 1)), zone=zone, name=name)]


def _found(whole: Any, items: Sequence[Any]) -> str:
    """What a file holds, in words."""
    kind = type(items[0]).__name__ if items else "nothing"
    if items and isinstance(items[0], dict):
        kind = f"an object with {', '.join(map(repr, [*items[0]][:8])) or 'no field'}"
    return f"a list of {len(items)}, the first {kind}" if isinstance(whole, list) else kind


def choose(conversations: "list[Conversation]", name: str | None) -> "Conversation":
    """The conversation with a name, or the only one.

    Raises:
        BadInput: no such name, none named although there are several, or no turns in it.
    """
    names = [conversation.name for conversation in conversations]
    if name is None and len(conversations) > 1:
        raise BadInput(f"the file holds {len(names)} conversations; choose one of them: {', '.join(names)}")
    if not names:
        raise BadInput("the file holds no conversation")
    found = [conversation for conversation in conversations if name in (None, conversation.name)]
    if not found:
        raise BadInput(f"no conversation {name!r} in the file; it holds {', '.join(names) or 'none'}")
    if not found[0].turns:
        raise BadInput(f"conversation {found[0].name!r} is empty: it has no turn with text")
    return found[0]


def _whole(text: str) -> Any | None:
    """The parsed file where it is one JSON value."""
    try:
        return json.loads(text)
    except ValueError:
        return None
    except RecursionError:
        raise BadInput("the JSON is nested too deeply") from None


@contextmanager
def _progress(*, lines: bool) -> "Iterator[Callable[[Stored], None]]":
    """A bar on a terminal, a line a chunk elsewhere; both name the last turn that is stored for good.

    Args:
        lines: Lines on a terminal too, as where a person is asked between them.
    """
    if lines or not sys.stderr.isatty():
        yield _progress_line
        return
    with bars() as shown_bars:
        task = shown_bars.add_task("reading", total=None)
        yield lambda stored: shown_bars.update(
            task,
            description=f"turns stored to {shown(stored.last)}",
            completed=stored.done,
            total=stored.total,
        )


def _progress_line(stored: "Stored") -> None:
    verb = "stored" if stored.new else "already stored"
    note(f"{verb} {stored.first} to {stored.last} ({stored.done}/{stored.total} turns)")
    sys.stderr.flush()


def _say_ingested(result: "Ingested") -> None:
    if not (result.turns or result.sessions or result.pending):
        say(("Nothing new. ", "bold"), f"All of it is stored already ({result.seconds:.1f} s).")
        return
    say(
        ("Remembered ", "bold"),
        f"{counted(result.turns, 'turn')} in {counted(result.sessions, 'session')}: "
        f"{counted(result.facts, 'fact')}, {counted(result.episodes, 'episode')}, "
        f"{result.refreshed} refreshed ({result.seconds:.1f} s).",
    )
    if result.probes:
        say(
            ("Examined ", "bold"),
            f"with {counted(result.probes, 'probe')}: {result.passed_before} passed, {result.passed_after} "
            f"after repair ({counted(result.repairs, 'repair')} kept, {result.rolled_back} rolled back, "
            f"{result.merged} merged).",
        )
    for warning in dict.fromkeys(one for one in result.warnings if one.startswith(BUDGET)):
        note(f"Note: {warning}", "yellow")
    say_refused(result.rejected)
    say_usage(result.usage)


def ask(
    *,
    question: Annotated[
        str | None,
        typer.Argument(metavar="QUESTION", help="In words; not with --resume.", show_default=False),
    ] = None,
    whose: opt.Named,
    evidence_only: Annotated[
        bool, typer.Option("--evidence-only", help="Find the evidence and stop there.")
    ] = False,
    k: Annotated[
        int | None, typer.Option(metavar="K", min=1, max=200, help="Entries of evidence at most.")
    ] = None,
    token_budget: Annotated[
        int | None, typer.Option(metavar="N", min=50, help="Tokens of evidence at most.")
    ] = None,
    checkpoints: opt.Checkpoints = None,
    resume: opt.Resume = None,
    model: opt.Model,
    store: opt.Store,
    as_json: opt.Json = False,
) -> None:
    """Answer a question from memory, with the turns the answer rests on.

    Examples:
        memcycle ask "Where does Tomas live?" --user ann
        memcycle ask "What did Nora make?" --user ann --evidence-only
        memcycle ask "Where does Tomas live?" --user ann --checkpoints runs.sqlite3
        memcycle ask --user ann --checkpoints runs.sqlite3 --resume THREAD
    """
    if (question is None) == (resume is None):
        raise BadInput("give a question, or --resume THREAD for one that was asked: one of the two")
    running = RunOptions(checkpoints, resume)
    settings = settings_of(whose.home, store)
    with open_memory(settings, whose, model=model, checkpoints=checkpoints) as memory:
        begin = functools.partial(
            memory.ask, question or "", k=k, token_budget=token_budget, evidence_only=evidence_only
        )
        answer = begin_or_resume(memory, running, "ask", begin)
    for warning in dict.fromkeys(answer.warnings):
        note(f"Note: {warning}", "yellow")
    if as_json:
        print_json(answer.model_dump(mode="json"))
        return
    say_answer(answer)
    say_usage(answer.usage)


COMMANDS = {"ingest": ingest, "ask": ask}
