"""Options that several commands share, and the memory they open."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar, cast, get_args

import typer

from memcycle.cli.output import WAITS, is_asked, note
from memcycle.core.entry import Kind
from memcycle.core.errors import BadInput, UnknownEntry
from memcycle.core.settings import Approval

if TYPE_CHECKING:
    from memcycle.core.entry import Entry
    from memcycle.core.settings import Settings
    from memcycle.core.theta import Theta
    from memcycle.memory import Memory
    from memcycle.results import Answer, Ended, Outcome, PendingApproval, PendingItem, ThreadSummary
    from memcycle.runs import Decisions

    R = TypeVar("R", Answer, Ended)

User = Annotated[str, typer.Option("--user", "-u", metavar="NAME", help="Whose memory.")]
AnyUser = Annotated[
    str | None,
    typer.Option(
        "--user", "-u", metavar="NAME", help="Whose memory; not needed while the home has one user."
    ),
]
Workspace = Annotated[
    str, typer.Option("--workspace", "-w", metavar="NAME", help="A second wall inside one user's memory.")
]
Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        metavar="DIR",
        envvar="MEMCYCLE_HOME",
        show_default=".memcycle",
        help="Where the memory lives.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON value on standard output, messages on standard error.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]

_MODEL, _STORE = "Model", "Store"
Model = Annotated[
    str,
    typer.Option(
        "--model", "-m", metavar="M", help="rules (no model) or openai:NAME.", rich_help_panel=_MODEL
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        show_default="OPENAI_BASE_URL",
        help="Any OpenAI-compatible server; the key is read from OPENAI_API_KEY.",
        rich_help_panel=_MODEL,
    ),
]
Prompts = Annotated[
    Path | None,
    typer.Option(
        "--prompts",
        metavar="DIR",
        help="Your own prompts, laid over the shipped ones; see `memcycle prompts`.",
        rich_help_panel=_MODEL,
    ),
]
Embedder = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="E",
        envvar="MEMCYCLE_EMBEDDER",
        show_default="wordllama",
        help="wordllama or minilm.",
        rich_help_panel=_STORE,
    ),
]
ChromaUrl = Annotated[
    str | None,
    typer.Option(
        "--chroma-url",
        metavar="URL",
        envvar="MEMCYCLE_CHROMA_URL",
        help="A `chroma run` server in place of the embedded index.",
        rich_help_panel=_STORE,
    ),
]
Timezone = Annotated[
    str | None,
    typer.Option(
        "--timezone",
        metavar="ZONE",
        envvar="MEMCYCLE_TIMEZONE",
        show_default="UTC",
        help="Zone of times that name none, such as Europe/Vienna.",
        rich_help_panel=_STORE,
    ),
]
Redact = Annotated[
    bool | None,
    typer.Option(
        "--redact/--no-redact",
        envvar="MEMCYCLE_REDACT",
        show_default="no-redact",
        help="Take passwords, keys, tokens and card numbers out of all text before it is stored.",
        rich_help_panel=_STORE,
    ),
]

_KEPT = "Resume"
Checkpoints = Annotated[
    str | None,
    typer.Option(
        "--checkpoints",
        metavar="URL",
        envvar="MEMCYCLE_CHECKPOINTS",
        help="Keep the run here, to resume it: a file, sqlite:///FILE, or postgresql://... "
        "(a password is best given in the variable).",
        rich_help_panel=_KEPT,
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(
        "--resume",
        metavar="THREAD",
        help="Go on with a run that broke off, or waits for approval.",
        rich_help_panel=_KEPT,
    ),
]
AskFirst = Annotated[
    list[str] | None,
    typer.Option(
        "--approval",
        metavar="WHAT",
        help="Ask a person before an update or delete of a fact, or any change of a kind such as preference. "
        "Repeatable.",
        rich_help_panel=_KEPT,
    ),
]
Approve = Annotated[
    str | None,
    typer.Option(
        "--approve",
        metavar="N",
        help="With --resume, approve what waits: all, or numbers such as 1,3; the others are rejected.",
        rich_help_panel=_KEPT,
    ),
]
Reject = Annotated[
    bool,
    typer.Option("--reject", help="With --resume, reject all that waits.", rich_help_panel=_KEPT),
]

ThetaFile = Annotated[
    Path | None,
    typer.Option(
        "--theta",
        metavar="FILE",
        show_default="as shipped",
        help="How memory is read and searched: a file as `memcycle theta show --json` writes one.",
        rich_help_panel=_STORE,
    ),
]


def theta_of(path: Path | None) -> "Theta | None":
    """The configuration in a file, None without one.

    Raises:
        BadInput: the file cannot be read, or does not fit, by name.
    """
    from memcycle.core.theta import Theta

    return None if path is None else Theta.load(path)


def settings_of(home: Path | None, **more: Any) -> "Settings":
    """Settings from options; an option that is not given is left to the environment and the defaults.

    Raises:
        BadInput: a value that cannot be used, by name.
    """
    from pydantic import ValidationError

    from memcycle.core.errors import BadInput
    from memcycle.core.settings import Settings

    try:
        return Settings.from_env(home=home, **more)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise BadInput(f"{place}: {first['msg'].removeprefix('Value error, ')}") from error


def open_memory(
    settings: "Settings",
    *,
    model: str = "rules",
    base_url: str | None = None,
    prompts: Path | None = None,
    user: str | None = None,
    workspace: str = "default",
    read_only: bool = False,
    new: bool = False,
    checkpoints: str | None = None,
) -> "Memory":
    """The memory of these settings, to be used as a context manager.

    Args:
        user: Whose memory; then calls need not say it. workspace: likewise.
        new: A home that is not there yet is made.
        checkpoints: Where its runs are kept; by default nowhere.

    Raises:
        StoreError: there is no memory and none is to be made: likely another folder is meant.
        BadInput: prompts without a model that reads them.
    """
    from memcycle.core.errors import BadInput
    from memcycle.memory import Memory

    if prompts is not None and model == "rules":
        raise BadInput("--prompts needs a model that reads them, such as --model openai:gpt-4o-mini")
    if not new:
        require_home(settings)
    return Memory.open(
        settings=settings,
        model=model,
        base_url=base_url,
        prompts=prompts,
        user=user,
        workspace=workspace,
        read_only=read_only,
        checkpoints=checkpoints,
    )


def require_home(settings: "Settings") -> None:
    """Refuses a folder without a memory.

    Raises:
        StoreError: there is none; says how to make one.
    """
    from memcycle.core.errors import StoreError
    from memcycle.stores.bank import LEDGER_FILE

    if settings.home.exists() and not settings.home.is_dir():
        raise StoreError(f"{settings.home} is a file, not the folder of a memory; --home names a folder")
    if not (settings.home / LEDGER_FILE).is_file():
        raise StoreError(
            f"no memory at {settings.home}; `memcycle ingest` makes one, --home names another place"
        )


SHORT = 8
"""Letters of an id that listings show."""
LEAST = 6
"""Letters of an id that a command takes at least: fewer are easily another's."""

_LISTED = 5


def the_entry(memory: "Memory", prefix: str, user: str | None, workspace: str) -> "Entry":
    """The one entry, of any status, whose id begins so.

    Raises:
        BadInput: too few letters, several such entries (all are named), or several users and none named.
        UnknownEntry: no such entry.
    """
    if len(prefix) < LEAST:
        raise BadInput(
            f"{prefix!r} is too short for an id: give {LEAST} letters or more, as `memories` shows them"
        )
    scope = memory.scope(only_user(memory) if user is None else user, workspace)
    found = memory.bank.find(scope, prefix.casefold())
    if not found:
        raise UnknownEntry(
            f"no memory {prefix!r} of user {scope.user!r} in workspace {workspace!r}; "
            f"`memcycle memories --user {scope.user} --all` lists them"
        )
    if len(found) > 1:
        listed = "; ".join(f"{entry.id} {entry.text[:40]!r}" for entry in found[:_LISTED])
        raise BadInput(f"{prefix!r} begins {len(found)} ids, give more letters: {listed}")
    return found[0]


def only_user(memory: "Memory") -> str:
    """The user of a home that has one.

    Raises:
        BadInput: it has several, or none.
    """
    users = memory.bank.users()
    if not users:
        raise UnknownEntry(f"{memory.settings.home} holds no memories yet; `memcycle ingest` puts some there")
    if len(users) > 1:
        raise BadInput(f"whose memory? say it with --user: {', '.join(users[:_LISTED])}")
    return users[0]


ALL = "all"
_KINDS: tuple[str, ...] = get_args(Kind)


class Kept(NamedTuple):
    """What the options say of a run: where it is kept, which one goes on, and the answer to what waits."""

    checkpoints: str | None
    resume: str | None
    approve: str | None
    reject: bool
    approval: Approval | None

    @classmethod
    def of(
        cls,
        checkpoints: str | None,
        resume: str | None,
        approval: Sequence[str] | None,
        approve: str | None,
        *,
        reject: bool,
    ) -> "Kept":
        """These options.

        Raises:
            BadInput: options that do not go together, or a thing to be asked about that is none.
        """
        needs = "--resume" if resume is not None else "--approval" if approval else None
        if needs is not None and checkpoints is None:
            raise BadInput(f"{needs} needs --checkpoints, such as --checkpoints checkpoints.sqlite3")
        if (approve is not None or reject) and resume is None:
            raise BadInput("--approve and --reject answer what a run waits for: name it with --resume THREAD")
        if approve is not None and reject:
            raise BadInput("--approve N rejects the others by itself: leave out --reject")
        wanted = _approval(approval or ())
        if resume is not None and checkpoints is not None and wanted is None:
            wanted = _begun_with(checkpoints, resume)
        return cls(checkpoints, resume, approve, reject, wanted)


def _approval(wanted: Sequence[str]) -> Approval | None:
    unknown = [word for word in wanted if word not in ("delete", "update", *_KINDS)]
    if unknown:
        raise BadInput(f"--approval {unknown[0]}: give delete, update, or a kind ({', '.join(_KINDS)})")
    if not wanted:
        return None
    kinds = tuple(cast("Kind", word) for word in wanted if word in _KINDS)
    return Approval(delete="delete" in wanted, update="update" in wanted, kinds=kinds)


def _begun_with(checkpoints: str, thread_id: str) -> Approval | None:
    """What the run that goes on was to ask about: it asks about that still, without being told again."""
    from memcycle.core.settings import Settings
    from memcycle.core.world import World
    from memcycle.runs import Threads

    threads = Threads.open(checkpoints, World(), Settings())
    try:
        return threads.approval_of(thread_id)
    finally:
        threads.close()


class Person:
    """Answers what waits: once with what the options say, then at the terminal, if anybody sits there."""

    def __init__(self, kept: Kept) -> None:
        self._given = "reject" if kept.reject else kept.approve

    def __call__(self, pending: "PendingApproval") -> "Decisions | None":
        """The decisions; None where there is nobody to decide."""
        if self._given is not None:
            given, self._given = self._given, None
            return _decided(given, pending)
        _show(pending)
        return [_ask(item) for item in pending.items] if is_asked() else None


def one_run(
    memory: "Memory",
    kept: Kept,
    run: Literal["ask", "end_session"],
    begin: "Callable[[str | None], R]",
    *,
    user: str | None = None,
    session: str | None = None,
) -> "R":
    """Begins a run, or goes on with the one that is named; asks what it waits for as long as one answers.

    Args:
        run, session: What the named one must be, so that none is taken for another.
        begin: Begins it on a thread.

    Raises:
        BadInput: the named one is unknown, another user's, finished, or another kind of run.
    """
    if kept.resume is None:
        result = begin(_told(new_thread(memory)))
    else:
        found = memory.thread(kept.resume, user=user)
        _check(found, run, session)
        check_waits(kept, [found])
        result = cast("R", memory.resume(kept.resume, user=user))
    person = Person(kept)
    while result.pending is not None and result.thread_id is not None:
        decisions = person(result.pending)
        if decisions is None:
            break
        result = cast("R", memory.resume(result.thread_id, decisions, user=user))
    return result


def new_thread(memory: "Memory") -> str | None:
    """An id for a run that begins; None where none is kept."""
    return None if memory.threads is None else memory.threads.new_id()


def _told(thread_id: str | None) -> str | None:
    if thread_id is not None:
        note(f"Thread {thread_id}; if it breaks off, go on with --resume {thread_id}")
    return thread_id


def ingest_thread(memory: "Memory", kept: Kept) -> str | None:
    """The thread of a conversation: the one that is named, else a new one, which is told.

    Raises:
        BadInput: the named one is unknown, another user's, or waits for no answer.
    """
    if kept.resume is None:
        return _told(new_thread(memory))
    found = memory.threads_under(kept.resume)
    if not found:
        raise BadInput(
            f"no thread {kept.resume!r} of an ingest: see that the id, --user and --checkpoints are right"
        )
    check_waits(kept, found)
    return kept.resume


def check_waits(kept: Kept, found: "Sequence[ThreadSummary]") -> None:
    """Refuses an answer where nothing waits."""
    if (kept.approve is not None or kept.reject) and all(one.pending is None for one in found):
        raise BadInput(f"thread {kept.resume!r} waits for no approval: leave out --approve and --reject")


def leave_waiting(result: "Outcome") -> None:
    """Ends a command whose run waits for a person, saying how to answer it."""
    if result.pending is not None:
        note(
            f"Nothing of this is written yet. Answer with --resume {result.thread_id} and --approve all, "
            "--approve 1,3 or --reject, or at a terminal.",
            "yellow",
        )
        raise typer.Exit(WAITS)


def _check(found: "ThreadSummary", run: str, session: str | None) -> None:
    if found.run != run:
        other = {"ask": "`memcycle ask`", "end_session": "the end of a session", "add": "`memcycle ingest`"}
        raise BadInput(f"thread {found.thread_id!r} is a run of {other[found.run]}, which resumes it")
    if session is not None and found.session != session:
        raise BadInput(f"thread {found.thread_id!r} is of session {found.session!r}, not {session!r}")


def _decided(given: str, pending: "PendingApproval") -> "Decisions":
    if given == "reject":
        return "reject"
    if given == ALL:
        return "approve"
    there = [item.n for item in pending.items]
    numbers = [int(word) if word.isdecimal() else word for word in given.replace(" ", "").split(",")]
    for number in numbers:
        if number not in there:
            raise BadInput(
                f"--approve {number}: give {ALL}, or numbers of what waits: {', '.join(map(str, there))}"
            )
    return [{"n": number, "decision": "approve"} for number in numbers]


def _show(pending: "PendingApproval") -> None:
    where = f" in session {pending.session}" if pending.session else ""
    note(f"A person is asked{where}:", "bold")
    for item in pending.items:
        note(f"  {item.n}  {item.action}  {item.kind or ''}".rstrip(), "cyan")
        for name, text in (("before", item.before), ("after", item.after), ("why", item.why)):
            if text:
                note(f"     {name + ':':<8}{text}")
        for said in item.said:
            note(f"     {'said:':<8}{said}")


def _ask(item: "PendingItem") -> dict[str, Any]:
    choices = ["approve", "reject", *(["edit"] if item.after is not None else [])]
    decision = ""
    while decision not in choices:
        decision = typer.prompt(f"{item.n} ({'/'.join(choices)})", err=True).strip().casefold()
    text = typer.prompt("its text", err=True) if decision == "edit" else ""
    return {"n": item.n, "decision": decision, "text": text}
