"""`Memory`: the whole of memcycle behind one object, for scripts, notebooks and services."""

import asyncio
import functools
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from memcycle.agents.roles import Roles
from memcycle.core.clock import World
from memcycle.core.edit import Event
from memcycle.core.entry import Entry, Granularity, Kind, Status
from memcycle.core.errors import BadInput, UnknownEntry
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.timestamps import read_time
from memcycle.core.turn import Turn
from memcycle.graph.context import MAIN_SESSION, Context
from memcycle.graph.recall import build_recall
from memcycle.graph.remember import build_remember
from memcycle.graph.session import build_session
from memcycle.prompts import PromptSet
from memcycle.results import Added, Answer, Ended
from memcycle.runs import Run, awaited, off_loop, runs
from memcycle.stores.bank import Bank
from memcycle.stores.registry import shared_bank

_CURRENT: tuple[Status, ...] = ("active", "staged")
_NEVER = datetime.max.replace(tzinfo=UTC)


class Memory:
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
        roles: Roles,
        *,
        embeddings: Embeddings | None = None,
        user: str | None = None,
        workspace: str = "default",
        world: World | None = None,
        read_only: bool = False,
    ) -> None:
        self.settings, self.roles = settings, roles
        self.user, self.workspace = user, workspace
        self._embeddings, self._world, self._read_only = embeddings, world or World(), read_only
        self._opening = threading.RLock()
        self._bank: Bank | None = None
        self._graphs: dict[str, Any] = {}

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        *,
        model: str | BaseChatModel = "rules",
        user: str | None = None,
        workspace: str = "default",
        settings: Settings | None = None,
        embeddings: Embeddings | None = None,
        roles: Roles | None = None,
        overrides: Mapping[str, str | BaseChatModel] | None = None,
        prompts: PromptSet | Mapping[str, str] | str | Path | None = None,
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
        chosen = settings or Settings.from_env()
        if path is not None:
            chosen = chosen.model_copy(update={"home": Path(path)})
        memory = cls(
            chosen,
            roles
            or _roles(model, overrides, prompts, {"base_url": base_url, "api_key": api_key, **model_args}),
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
        """Closes the store; a later call opens it again."""
        with self._opening:
            bank, self._bank, self._graphs = self._bank, None, {}
        if bank is not None:
            bank.close()

    @property
    def bank(self) -> Bank:
        """The store, opened if it is not."""
        return self._open()

    @property
    def graphs(self) -> Mapping[str, Any]:
        """The compiled graphs `remember`, `recall` and `session`."""
        with self._opening:
            bank = self._open()
            if not self._graphs:
                if self._read_only:
                    raise BadInput("this memory is open for reading only: open it without read_only")
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
        return Run(
            "remember", value, context, lambda out: Added(**out["result"], usage=out.get("usage") or {})
        )

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

    @runs
    def end_session(
        self, session: str | None = None, *, user: str | None = None, workspace: str | None = None
    ) -> Run[Ended]:
        """Ends a session, `main` by default: its last turns become an episode, all of it is committed."""
        named = session or MAIN_SESSION
        read = functools.partial(_ended, named)
        return Run("session", {}, self._context(user, workspace, named, None), read)

    aend_session = awaited(end_session)

    def memories(
        self,
        *,
        user: str | None = None,
        workspace: str | None = None,
        granularity: Granularity | None = None,
        kind: Kind | None = None,
        search: str | None = None,
        statuses: Sequence[Status] = _CURRENT,
        limit: int | None = None,
    ) -> list[Entry]:
        """What is stored, in the order it was said.

        Args:
            user: Whose memory. workspace: a second wall inside it.
            granularity: Only `raw`, `fact` or `episode`. kind: only this kind.
            search: Only entries whose text holds these words, case aside.
            statuses: By default what recall may find; add `superseded` or `forgotten` to see more.
            limit: Entries at most.
        """
        found = self.bank.entries(
            self.scope(user, workspace), granularity=granularity, kind=kind, statuses=tuple(statuses)
        )
        words = (search or "").casefold().split()
        held = [entry for entry in found if all(word in entry.text.casefold() for word in words)]
        # The bank lists session after session by name; people read by time.
        return sorted(held, key=lambda entry: entry.observed_at or _NEVER)[:limit]

    def get(self, entry_id: str, *, user: str | None = None, workspace: str | None = None) -> Entry:
        """One entry.

        Raises:
            UnknownEntry: no such entry in this user's memory.
        """
        found = self.bank.get(self.scope(user, workspace), [entry_id])
        if not found:
            raise UnknownEntry(f"no memory {entry_id!r} of this user and workspace")
        return found[0]

    def edit(
        self,
        entry_id: str,
        text: str,
        *,
        user: str | None = None,
        workspace: str | None = None,
        why: str = "",
    ) -> Entry:
        """Corrects an entry: a successor with the new text takes its place; the old text stays in history."""
        if not isinstance(text, str) or not text.strip():
            raise BadInput("the new text is blank; to remove a memory, forget it")
        return self.bank.edit(self.scope(user, workspace), entry_id, text.strip(), why=why)

    def undo(self, entry_id: str, *, user: str | None = None, workspace: str | None = None) -> Entry:
        """Takes back the last change of an entry and gives the entry that holds again."""
        return self.bank.undo(self.scope(user, workspace), entry_id)

    def history(self, entry_id: str, *, user: str | None = None, workspace: str | None = None) -> list[Event]:
        """Every change of an entry, its predecessors and successors: when, by whom, before, after, why."""
        return self.bank.history(self.scope(user, workspace), entry_id)

    def holders(self, entry_id: str, *, user: str | None = None, workspace: str | None = None) -> list[Entry]:
        """What else holds the words of an entry, and would be forgotten with it."""
        return self.bank.holders(self.scope(user, workspace), entry_id)

    def forget(
        self,
        entry_id: str,
        *,
        user: str | None = None,
        workspace: str | None = None,
        only: bool = False,
    ) -> list[str]:
        """Erases an entry for good, with what else holds its words unless `only`. Gives the ids erased."""
        return self.bank.forget(self.scope(user, workspace), entry_id, only=only)

    def forget_user(self, user: str, *, workspace: str | None = None) -> int:
        """Erases all of a user's memory for good, in every workspace unless one is named. Gives how many."""
        self.scope(user, workspace)
        return self.bank.forget_user(user, workspace)

    def export(self, *, user: str | None = None, workspace: str | None = None) -> list[dict[str, Any]]:
        """Every entry of a user with all fields, as JSON-able dicts that `import_` reads."""
        return list(self.bank.export(self.scope(user, workspace)))

    def import_(
        self, rows: Iterable[Mapping[str, Any]], *, user: str | None = None, workspace: str | None = None
    ) -> int:
        """Stores exported entries as this user's; those already stored stay as they are. Gives how many.

        Raises:
            BadInput: a record that is no entry (its number and field); then nothing is stored.
        """
        return self.bank.import_(self.scope(user, workspace), [dict(row) for row in rows])

    aclose = off_loop(close)
    amemories = off_loop(memories)
    aget = off_loop(get)
    aedit = off_loop(edit)
    aundo = off_loop(undo)
    ahistory = off_loop(history)
    aholders = off_loop(holders)
    aforget = off_loop(forget)
    aforget_user = off_loop(forget_user)
    aexport = off_loop(export)
    aimport_ = off_loop(import_)

    def scope(self, user: str | None = None, workspace: str | None = None) -> Scope:
        """The scope of a call.

        Raises:
            BadInput: nobody is named, or with a name that cannot be one.
        """
        named = user if user is not None else self.user
        if named is None:
            raise BadInput("no user is named: pass user=... with the call, or to Memory.open")
        try:
            return Scope(user=named, workspace=self.workspace if workspace is None else workspace)
        except ValidationError as error:
            raise BadInput(_first(error)) from error

    def _context(
        self,
        user: str | None,
        workspace: str | None,
        session: str,
        now: datetime | str | None,
        **more: Any,
    ) -> Context:
        scope = self.scope(user, workspace)
        try:
            scope.within(session)
            time = None if now is None else read_time(now, self.settings.zone)
            return Context(user=scope.user, workspace=scope.workspace, session=session, now=time, **more)
        except ValidationError as error:
            raise BadInput(_first(error)) from error
        except ValueError as error:
            raise BadInput(f"now: {error}") from error

    def _open(self) -> Bank:
        with self._opening:
            if self._bank is None:
                self._bank = (
                    Bank.open(self.settings, embeddings=self._embeddings, world=self._world, read_only=True)
                    if self._read_only
                    else shared_bank(self.settings, embeddings=self._embeddings, world=self._world)
                )
            return self._bank


def _roles(
    model: str | BaseChatModel,
    overrides: Mapping[str, str | BaseChatModel] | None,
    prompts: PromptSet | Mapping[str, str] | str | Path | None,
    model_args: Mapping[str, Any],
) -> Roles:
    overlay = (
        prompts if prompts is None or isinstance(prompts, PromptSet) else PromptSet.shipped().overlay(prompts)
    )
    given = {key: value for key, value in model_args.items() if value is not None}
    return Roles.from_model(model, overrides=overrides, prompts=overlay, **given)


def _added(out: Mapping[str, Any]) -> Added:
    return Added(**out["result"], usage=out.get("usage") or {})


def _ended(session: str, out: Mapping[str, Any]) -> Ended:
    return Ended(session=session, **out["result"], usage=out.get("usage") or {})


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


def _first(error: ValidationError) -> str:
    """The first complaint of a validation, in one line."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    message = first["msg"].removeprefix("Value error, ")
    return message if place and message.startswith(place) else f"{place}: {message}"
