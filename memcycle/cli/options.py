"""Options that several commands share, and the memory they open."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from memcycle.core.settings import Settings
    from memcycle.core.theta import Theta
    from memcycle.memory import Memory

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
