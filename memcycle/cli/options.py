"""Options that several commands share, and the memory they open."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, get_type_hints

import typer

from memcycle.core.errors import BadInput, StoreError, UnknownEntry

if TYPE_CHECKING:
    from memcycle.core.entry import Entry
    from memcycle.core.settings import Settings
    from memcycle.core.theta import Theta
    from memcycle.memory import Memory

T = TypeVar("T")
Command = Callable[..., Any]


class Group(NamedTuple):
    """A command that also has subcommands; `alone`: it does something without one."""

    command: Command
    commands: "Mapping[str, Command | Group]"
    alone: bool = True


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

_model = partial(typer.Option, rich_help_panel="Model")
_store = partial(typer.Option, rich_help_panel="Store")
resume_panel = partial(typer.Option, rich_help_panel="Resume")

MODELS = "openai:NAME, or any PROVIDER:NAME of LangChain's init_chat_model"
"""Models by name, as help pages tell them."""
ModelName = Annotated[
    str | None,
    _model("--model", "-m", metavar="M", show_default="rules", help=f"rules (no model), {MODELS}."),
]
BaseUrl = Annotated[
    str | None,
    _model(
        metavar="URL",
        show_default="OPENAI_BASE_URL",
        help="Any OpenAI-compatible server; the key is read from OPENAI_API_KEY.",
    ),
]
Embedder = Annotated[
    str | None,
    _store(metavar="E", envvar="MEMCYCLE_EMBEDDER", show_default="wordllama", help="wordllama or minilm."),
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
    resume_panel(
        metavar="URL",
        envvar="MEMCYCLE_CHECKPOINTS",
        help="Keep the run here, to resume it: a file, sqlite:///FILE, or postgresql://... "
        "(a password is best given in the variable).",
    ),
]
Resume = Annotated[
    str | None, resume_panel(metavar="THREAD", help="Go on with a run that broke off, or waits for approval.")
]


@dataclass(frozen=True)
class Whose:
    """Whose memory, and where it lives; a dataclass as a parameter of a command is an option a field."""

    user: AnyUser = None
    home: Home = None
    workspace: Workspace = "default"


@dataclass(frozen=True)
class Named:
    """As `Whose`, where the user is not guessed: what is read or written may be new."""

    user: User
    home: Home = None
    workspace: Workspace = "default"


@dataclass(frozen=True)
class Model:
    """Who fills the roles."""

    model: ModelName = None
    base_url: BaseUrl = None
    pipeline: Annotated[
        Path | None,
        _model(
            metavar="DIR",
            envvar="MEMCYCLE_PIPELINE",
            help="A version of memcycle's program: its theta, switches, prompts and models.",
        ),
    ] = None
    prompts: Annotated[
        Path | None,
        _model(metavar="DIR", help="Your own prompts, laid over the shipped ones; see `memcycle prompts`."),
    ] = None


@dataclass(frozen=True)
class Index:
    """What makes vectors, and where they are kept."""

    embedder: Embedder = None
    chroma_url: Annotated[
        str | None,
        _store(
            metavar="URL",
            envvar="MEMCYCLE_CHROMA_URL",
            help="A `chroma run` server in place of the embedded index.",
        ),
    ] = None


@dataclass(frozen=True)
class Store(Index):
    """All that may be said of what is stored and how it is found."""

    timezone: Timezone = None
    redact: Redact = None
    theta: ThetaFile = None


def flat(command: Callable[..., T]) -> Callable[..., T]:
    """The command as typer reads it: with an option for each field of the dataclasses it takes."""
    from memcycle.core.entry import Granularity, Kind  # named in quotes by commands that are only listed

    named = {"Granularity": Granularity, "Kind": Kind}
    types = get_type_hints(command, localns=named, include_extras=True)
    taken = {
        name: one.replace(annotation=types[name])
        for name, one in inspect.signature(command).parameters.items()
    }
    fields = {
        name: inspect.signature(one.annotation).parameters
        for name, one in taken.items()
        if isinstance(one.annotation, type) and is_dataclass(one.annotation)
    }

    @functools.wraps(command)
    def run(**given: Any) -> T:
        for name, own in fields.items():
            given[name] = taken[name].annotation(**{each: given.pop(each) for each in own})
        return command(**given)

    options = [each for name, one in taken.items() for each in fields.get(name, {name: one}).values()]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [one.replace(kind=one.KEYWORD_ONLY) for one in options]
    )
    return run


def theta_of(path: Path | None) -> "Theta | None":
    """The configuration in a file, None without one.

    Raises:
        BadInput: the file cannot be read, or does not fit, by name.
    """
    from memcycle.core.theta import Theta

    return None if path is None else Theta.load(path)


def settings_of(home: Path | None, store: Index | None = None, **more: Any) -> "Settings":
    """Settings from options; an option that is not given is left to the environment and the defaults.

    Raises:
        BadInput: a value that cannot be used, by name.
    """
    from memcycle.core.settings import Settings

    given = {} if store is None else vars(store)
    theta = theta_of(given.get("theta"))
    return Settings.from_env(**{**given, "home": home, "theta": theta, **more})


@contextmanager
def open_memory(
    settings: "Settings",
    whose: Whose | Named,
    *,
    model: Model | None = None,
    read_only: bool = False,
    new: bool = False,
    checkpoints: str | None = None,
) -> "Iterator[Memory]":
    """The memory of these settings and this user, so that no call need name either.

    Args:
        whose: Without a user the only one of the home.
        new: A home that is not there yet is made.
        checkpoints: Where its runs are kept; by default nowhere.

    Raises:
        StoreError: there is no memory and none is to be made: likely another folder is meant.
        BadInput: prompts without a model that reads them; nobody named where there are several users.
    """
    from memcycle.memory import Memory

    model = model or Model()
    if model.prompts is not None and model.pipeline is None and model.model in (None, "rules"):
        raise BadInput("--prompts needs a model that reads them, such as --model openai:gpt-4o-mini")
    if not new:
        require_home(settings)
    with Memory.open(
        # A command ends the sessions that it is told to end.
        settings=settings.model_copy(update={"idle_after": None}),
        **vars(model),
        user=whose.user,
        workspace=whose.workspace,
        read_only=read_only,
        checkpoints=checkpoints,
    ) as memory:
        if whose.user is None:
            memory.user = _only_user(memory)
        yield memory


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


def find_entry(memory: "Memory", prefix: str) -> "Entry":
    """The one entry, of any status, whose id begins so.

    Raises:
        BadInput: too few letters, or several such entries (all are named).
        UnknownEntry: no such entry.
    """
    if len(prefix) < LEAST:
        raise BadInput(
            f"{prefix!r} is too short for an id: give {LEAST} letters or more, as `memories` shows them"
        )
    scope = memory.scope()
    found = memory.bank.find(scope, prefix.casefold())
    if not found:
        raise UnknownEntry(
            f"no memory {prefix!r} of user {scope.user!r} in workspace {scope.workspace!r}; "
            f"`memcycle memories --user {scope.user} --all` lists them"
        )
    if len(found) > 1:
        listed = "; ".join(f"{entry.id} {entry.text[:40]!r}" for entry in found[:_LISTED])
        raise BadInput(f"{prefix!r} begins {len(found)} ids, give more letters: {listed}")
    return found[0]


def _only_user(memory: "Memory") -> str:
    users = memory.bank.users()
    if not users:
        raise UnknownEntry(f"{memory.settings.home} holds no memories yet; `memcycle ingest` puts some there")
    if len(users) > 1:
        raise BadInput(f"whose memory? say it with --user: {', '.join(users[:_LISTED])}")
    return users[0]
