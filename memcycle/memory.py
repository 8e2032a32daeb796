"""`Memory`: the whole of memcycle behind one object, for scripts, notebooks and services."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from memcycle.core.clock import World
from memcycle.core.errors import BadInput
from memcycle.core.settings import Settings
from memcycle.opening import roles_of, settings_of
from memcycle.runs import off_loop
from memcycle.stores.bank import Bank
from memcycle.stores.registry import shared_bank
from memcycle.talking import Talking

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from memcycle.agents.roles import Roles
    from memcycle.prompts import PromptSet
    from memcycle.threads import Checkpoints, Threads


class Memory(Talking):
    """Long-term memory of one home directory.

    Use it as a context manager, sync or async; every method has an awaitable form with `a` before its
    name. A user is named with each call, or once at `open`.

    Example:
        >>> with Memory.open("my-home", user="ann") as memory:
        ...     memory.add("I moved to Graz last week.")
        ...     memory.ask("Where does the user live?").answer
    """

    def __init__(
        self,
        settings: Settings,
        roles: "Roles | None" = None,
        *,
        embeddings: "Embeddings | None" = None,
        user: str | None = None,
        workspace: str = "default",
        world: World | None = None,
        read_only: bool = False,
        checkpoints: "Checkpoints | None" = None,
    ) -> None:
        super().__init__(user, workspace)
        self.settings, self._roles = settings, roles
        self._embeddings, self._world, self._read_only = embeddings, world or World(), read_only
        self._checkpoints = None if read_only else checkpoints
        self.idle = None if read_only else self._idle_sessions(self._world)
        self._opening = threading.RLock()
        self._bank: Bank | None = None
        self._threads: Threads | None = None
        self._graphs: dict[str, Any] = {}

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        *,
        model: "str | BaseChatModel" = "rules",
        user: str | None = None,
        workspace: str = "default",
        settings: Settings | None = None,
        embeddings: "Embeddings | None" = None,
        roles: "Roles | None" = None,
        overrides: "Mapping[str, str | BaseChatModel] | None" = None,
        prompts: "PromptSet | Mapping[str, str] | str | Path | None" = None,
        base_url: str | None = None,
        api_key: str | None = None,
        world: World | None = None,
        read_only: bool = False,
        checkpoints: "Checkpoints | None" = None,
        **model_args: Any,
    ) -> Self:
        """Opens a memory, creating its home where there is none.

        Inside a running event loop the store is opened by `async with` or the first call, off the loop;
        elsewhere at once, so that what is wrong with it is said here.

        Args:
            path: Home directory; by default that of `settings`, else `MEMCYCLE_HOME`, else `.memcycle`.
            model: `rules` (no model), `openai:NAME` (any OpenAI-compatible server) or a chat model.
            user: Whose memory, for calls that name nobody. workspace: likewise.
            settings: Everything else; by default read from `MEMCYCLE_*` variables.
            embeddings: A LangChain embedder in place of the one `settings.embedder` names.
            roles: All roles, made by the caller, in place of `model`, `overrides` and `prompts`.
            overrides: Another model for single roles, by role name.
            prompts: A `PromptSet`, or a dict or folder of texts laid over the shipped ones.
            base_url: Server of named models, by default `OPENAI_BASE_URL`. api_key: `OPENAI_API_KEY`.
            world: Clock, ids and waiting.
            read_only: Open the ledger alone: lists, history and export work beside a writing process.
            checkpoints: Where each run is kept under a thread id, so that one that broke off, or waits for a
                person (`settings.approval`), goes on with `resume`: a URL as `memcycle.checkpointer` reads
                it, or a LangGraph saver. By default runs are not kept.
            **model_args: More arguments of named models, such as `timeout` or `temperature`.

        Raises:
            ModelUnavailable: unknown model name, or no key for it.
            StoreBusy: another process holds this home. EmbedderMismatch: it was built with another embedder.
            BadInput, PromptError: an argument that cannot be used.
        """
        chosen = settings_of(settings, path, may_stop=read_only or checkpoints is not None)
        memory = cls(
            chosen,
            roles
            or roles_of(model, overrides, prompts, {"base_url": base_url, "api_key": api_key, **model_args}),
            embeddings=embeddings,
            user=user,
            workspace=workspace,
            world=world,
            read_only=read_only,
            checkpoints=checkpoints,
        )
        if user is not None:
            memory.scope()
        if not _in_event_loop():
            memory._open()
        return memory

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._open)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def close(self) -> None:
        """Ends the sessions that wait to be idle and closes the store; a later call opens it again."""
        if self.idle is not None:
            idle, self.idle = self.idle, self._idle_sessions(self._world)
            idle.close()
        with self._opening:
            bank, self._bank, self._graphs = self._bank, None, {}
            threads, self._threads = self._threads, None
        try:
            if bank is not None:
                bank.close()
        finally:
            if threads is not None:
                threads.close()

    aclose = off_loop(close)

    @property
    def bank(self) -> Bank:
        """The store, opened if it is not."""
        return self._open()

    @property
    def threads(self) -> "Threads | None":
        """The threads of runs, opened if they are not; None where no checkpoints are kept."""
        self._open()
        return self._threads

    @property
    def roles(self) -> "Roles":
        """What runs each role: the rules, unless the memory was opened with something else."""
        if self._roles is None:
            from memcycle.agents.roles import Roles

            self._roles = Roles.rules()
        return self._roles

    @property
    def graphs(self) -> Mapping[str, Any]:
        """The compiled graphs `remember`, `recall` and `session`."""
        with self._opening:
            bank = self._open()
            if not self._graphs:
                if self._read_only:
                    raise BadInput("this memory is open for reading only: open it without read_only")
                from memcycle.graph import build_recall, build_remember, build_session

                built: Mapping[str, Callable[..., Any]] = {
                    "remember": build_remember,
                    "recall": build_recall,
                    "session": build_session,
                }
                kept = {} if self._threads is None else {"checkpointer": self._threads.saver}
                self._graphs = {
                    name: build(self.roles, bank, self.settings).copy(kept) for name, build in built.items()
                }
            return self._graphs

    def _open(self) -> Bank:
        with self._opening:
            if self._bank is None:
                self._open_threads()
                self._bank = (
                    Bank.open(self.settings, embeddings=self._embeddings, world=self._world, read_only=True)
                    if self._read_only
                    else shared_bank(self.settings, embeddings=self._embeddings, world=self._world)
                )
                self._await_silence(self._bank)
            return self._bank

    def _open_threads(self) -> None:
        if self._checkpoints is not None and self._threads is None:
            from memcycle.threads import Threads

            self._threads = Threads.open(self._checkpoints, self._world, self.settings)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
