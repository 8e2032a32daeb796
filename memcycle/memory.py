"""`Memory`: the whole of memcycle behind one object, for scripts, notebooks and services."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from memcycle.core.clock import World
from memcycle.core.errors import BadInput
from memcycle.core.settings import Settings
from memcycle.core.turn import Turn
from memcycle.ending import Ending
from memcycle.graph.context import MAIN_SESSION
from memcycle.opening import roles_of, settings_of
from memcycle.results import Added, Answer
from memcycle.runs import Run, awaited, off_loop, runs
from memcycle.stores.bank import Bank
from memcycle.stores.registry import shared_bank

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from memcycle.agents.roles import Roles
    from memcycle.prompts import PromptSet


class Memory(Ending):
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
    ) -> None:
        super().__init__(user, workspace)
        self.settings, self._roles = settings, roles
        self._embeddings, self._world, self._read_only = embeddings, world or World(), read_only
        self.idle = None if read_only else self._idle_sessions(self._world)
        self._opening = threading.RLock()
        self._bank: Bank | None = None
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
            **model_args: More arguments of named models, such as `timeout` or `temperature`.

        Raises:
            ModelUnavailable: unknown model name, or no key for it.
            StoreBusy: another process holds this home. EmbedderMismatch: it was built with another embedder.
            BadInput, PromptError: an argument that cannot be used.
        """
        chosen = settings_of(settings, path, read_only=read_only)
        memory = cls(
            chosen,
            roles
            or roles_of(model, overrides, prompts, {"base_url": base_url, "api_key": api_key, **model_args}),
            embeddings=embeddings,
            user=user,
            workspace=workspace,
            world=world,
            read_only=read_only,
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
        if bank is not None:
            bank.close()

    aclose = off_loop(close)

    @property
    def bank(self) -> Bank:
        """The store, opened if it is not."""
        return self._open()

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

                self._graphs = {
                    "remember": build_remember(self.roles, bank, self.settings),
                    "recall": build_recall(self.roles, bank, self.settings),
                    "session": build_session(self.roles, bank, self.settings),
                }
            return self._graphs

    @runs
    def add(
        self,
        messages: Any,
        *,
        user: str | None = None,
        workspace: str | None = None,
        session: str | None = None,
        now: datetime | str | None = None,
    ) -> Run[Added]:
        """Remembers a chunk of a conversation. What is already stored is not stored again.

        Args:
            messages: One message or several: LangChain messages, OpenAI-style dicts, `(role, text)`
                tuples, text; or `Turn`s as the file readers give them, which keep their places.
            user: Whose memory. workspace: a second wall inside it.
            session: By default that of the turns, else `main`.
            now: Time of messages that carry none, by default the clock.

        Raises:
            BadInput: a message that cannot be read (its number and field), or no user.
        """
        turns = [message for message in messages if isinstance(message, Turn)] if _is_list(messages) else []
        if turns and len(turns) != len(messages):
            raise BadInput("turns and messages cannot be added in one call")
        if len({turn.session for turn in turns}) > 1:
            raise BadInput(
                "turns of several sessions cannot be added in one call: add one session after another"
            )
        named = session or (turns[0].session if turns else MAIN_SESSION)
        value = (
            {"turns": [turn.model_dump(mode="json") for turn in turns]} if turns else {"messages": messages}
        )
        context = self._context(user, workspace, named, now)
        return Run("remember", value, context, self._speaking(context, _added))

    aadd = awaited(add)

    @runs
    def ask(
        self,
        question: str,
        *,
        user: str | None = None,
        workspace: str | None = None,
        session: str | None = None,
        now: datetime | str | None = None,
        k: int | None = None,
        token_budget: int | None = None,
        evidence_only: bool = False,
    ) -> Run[Answer]:
        """Answers a question from memory, or says that memory does not hold the answer.

        Args:
            question: In words.
            user: Whose memory. workspace: a second wall inside it.
            session: The session going on, whose staged memories are searched too.
            now: The time that words such as "last week" in the question count from, by default the clock.
            k: Entries of evidence at most. token_budget: their tokens at most.
            evidence_only: Find the evidence and stop there; `answer` is None.

        Raises:
            BadInput: blank question, or no user. Provider errors are raised as themselves.
        """
        if not isinstance(question, str) or not question.strip():
            raise BadInput("the question is blank")
        context = self._context(
            user,
            workspace,
            session or MAIN_SESSION,
            now,
            k=k,
            token_budget=token_budget,
            evidence_only=evidence_only,
        )
        return Run("recall", {"question": question}, context, _answer)

    aask = awaited(ask)

    def recall(self, question: str, **options: Any) -> Answer:
        """The evidence for a question, without an answer. Options as those of `ask`."""
        return self.ask(question, evidence_only=True, **options)

    async def arecall(self, question: str, **options: Any) -> Answer:
        """Awaitable `recall`."""
        return await self.aask(question, evidence_only=True, **options)

    def _open(self) -> Bank:
        with self._opening:
            if self._bank is None:
                self._bank = (
                    Bank.open(self.settings, embeddings=self._embeddings, world=self._world, read_only=True)
                    if self._read_only
                    else shared_bank(self.settings, embeddings=self._embeddings, world=self._world)
                )
                self._await_silence(self._bank)
            return self._bank


def _added(out: Mapping[str, Any]) -> Added:
    return Added(**out["result"], usage=out.get("usage") or {})


def _answer(out: Mapping[str, Any]) -> Answer:
    return Answer(**out["answer"], usage=out.get("usage") or {})


def _is_list(messages: Any) -> bool:
    return isinstance(messages, Sequence) and not isinstance(messages, str | bytes)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
