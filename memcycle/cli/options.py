"""Options that several commands share, and the memory they open."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memcycle.core.errors import BadInput, StoreError, UnknownEntry

if TYPE_CHECKING:
    from memcycle.core.entry import Entry
    from memcycle.core.settings import Settings
    from memcycle.core.theta import Theta
    from memcycle.memory import Memory

_model = partial(typer.Option, rich_help_panel="Model")
_store = partial(typer.Option, rich_help_panel="Store")
_resume = partial(typer.Option, rich_help_panel="Resume")

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
        metavar="DIR", envvar="MEMCYCLE_HOME", show_default=".memcycle", help="Where the memory lives."
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON value on standard output, messages on standard error.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]

Model = Annotated[str, _model("--model", "-m", metavar="M", help="rules (no model) or openai:NAME.")]
BaseUrl = Annotated[
    str | None,
    _model(
        metavar="URL",
        show_default="OPENAI_BASE_URL",
        help="Any OpenAI-compatible server; the key is read from OPENAI_API_KEY.",
    ),
]
Prompts = Annotated[
    Path | None,
    _model(metavar="DIR", help="Your own prompts, laid over the shipped ones; see `memcycle prompts`."),
]
Embedder = Annotated[
    str | None,
    _store(metavar="E", envvar="MEMCYCLE_EMBEDDER", show_default="wordllama", help="wordllama or minilm."),
]
ChromaUrl = Annotated[
    str | None,
    _store(
        metavar="URL",
        envvar="MEMCYCLE_CHROMA_URL",
        help="A `chroma run` server in place of the embedded index.",
    ),
]
Timezone = Annotated[
    str | None,
    _store(
        metavar="ZONE",
        envvar="MEMCYCLE_TIMEZONE",
        show_default="UTC",
        help="Zone of times that name none, such as Europe/Vienna.",
    ),
]
Redact = Annotated[
    bool | None,
    _store(
        "--redact/--no-redact",
        envvar="MEMCYCLE_REDACT",
        show_default="no-redact",
        help="Take passwords, keys, tokens and card numbers out of all text before it is stored.",
    ),
]
ThetaFile = Annotated[
    Path | None,
    _store(
        "--theta",
        metavar="FILE",
        show_default="as shipped",
        help="How memory is read and searched: a file as `memcycle theta show --json` writes one.",
    ),
]
Checkpoints = Annotated[
    str | None,
    _resume(
        metavar="URL",
        envvar="MEMCYCLE_CHECKPOINTS",
        help="Keep the run here, to resume it: a file, sqlite:///FILE, or postgresql://... "
        "(a password is best given in the variable).",
    ),
]
Resume = Annotated[
    str | None, _resume(metavar="THREAD", help="Go on with a run that broke off, or waits for approval.")
]
AskFirst = Annotated[
    list[str] | None,
    _resume(
        metavar="WHAT",
        help="Ask a person before an update or delete of a fact, or any change of a kind such as preference. "
        "Repeatable.",
    ),
]
Approve = Annotated[
    str | None,
    _resume(
        metavar="N",
        help="With --resume, approve what waits: all, or numbers such as 1,3; the others are rejected.",
    ),
]
Reject = Annotated[bool, _resume("--reject", help="With --resume, reject all that waits.")]


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
    from memcycle.core.settings import Settings

    return Settings.from_env(home=home, **more)


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
    from memcycle.memory import Memory

    if prompts is not None and model == "rules":
        raise BadInput("--prompts needs a model that reads them, such as --model openai:gpt-4o-mini")
    if not new:
        require_home(settings)
    return Memory.open(
        # A command ends the sessions that it is told to end.
        settings=settings.model_copy(update={"idle_after": None}),
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


def find_entry(memory: "Memory", prefix: str, user: str | None, workspace: str) -> "Entry":
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
