"""`Memory`: the whole of memcycle behind one object, for scripts, notebooks and services."""

import asyncio
import functools
import inspect
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, Self, TypeVar, get_args

from pydantic import Field, ValidationError

from memcycle.core.arguments import checked_methods
from memcycle.core.edit import Event
from memcycle.core.entry import Entry, Granularity, Kind, Status
from memcycle.core.errors import BadInput, UnknownEntry, first_complaint
from memcycle.core.probe import Probe
from memcycle.core.redaction import Redactor
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.turn import Turn, read_time
from memcycle.core.world import World
from memcycle.graph.context import MAIN_SESSION, Context
from memcycle.results import (
    Added,
    Answer,
    Ended,
    Outcome,
    SessionDetail,
    SessionSummary,
    ThreadSummary,
    UserSummary,
)
from memcycle.runs import Decisions, Run, Runs, Threads

# The store and the models are loaded when a memory is opened, LangGraph when a run begins.
if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from memcycle.agents.pipeline import Pipeline
    from memcycle.agents.roles import Roles
    from memcycle.prompts import PromptSet
    from memcycle.runs import Checkpoints
    from memcycle.stores.bank import Bank
    from memcycle.stores.maintenance import Maintenance

GRAPHS = ("remember", "recall", "session")
_CURRENT: tuple[Status, ...] = ("active", "staged")

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", bound=Outcome)


def runs(prepare: "Callable[Concatenate[Memory, P], Run[R]]") -> "Callable[Concatenate[Memory, P], R]":
    """A method that makes the run which `prepare` describes, and gives back what its output is read as."""

    @functools.wraps(prepare)
    def run(self: "Memory", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._runs.invoke(prepare(self, *args, **kwargs))

    (result,) = get_args(inspect.signature(prepare).return_annotation)
    run.__signature__ = inspect.signature(prepare).replace(return_annotation=result)  # type: ignore[attr-defined]
    return run


def awaitable(
    method: "Callable[Concatenate[Memory, P], T]",
) -> "Callable[Concatenate[Memory, P], Coroutine[Any, Any, T]]":
    """The awaitable form of a method: of one made by `runs` prepared off the loop, its models awaited
    natively; of any other the same code, in a thread."""
    prepare: Callable[..., Run[Any]] | None = getattr(method, "__wrapped__", None)

    @functools.wraps(method)
    async def run(self: "Memory", /, *args: P.args, **kwargs: P.kwargs) -> Any:
        if prepare is None:
            return await asyncio.to_thread(method, self, *args, **kwargs)
        runs, made = await asyncio.to_thread(lambda: (self._runs, prepare(self, *args, **kwargs)))
        return await runs.ainvoke(made)

    run.__name__ = f"a{method.__name__}"
    run.__qualname__ = f"Memory.{run.__name__}"
    run.__doc__ = f"Awaitable `{method.__name__}`."
    return run


class _Graphs(dict[str, Any]):
    """Graphs by name, each made when it is first asked for."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> Any:
        if name not in GRAPHS:
            raise KeyError(name)
        return self.setdefault(name, self._make(name))


@checked_methods
class Memory:
    """Long-term memory of one home directory.

    Use it as a context manager, sync or async; every method has an awaitable form with `a` before its
    name. `user` (whose memory) and `workspace` (a second wall inside it) are named with each call, or once
    at `open`; in a method of a run `thread_id`, under checkpoints, is the thread of it, for `resume`: by
    default a new one.

    Example:
        >>> with Memory.open("my-home", user="ann") as memory:
        ...     memory.add("I moved to Graz last week.")
        ...     memory.ask("Where does the user live?").answer

    Attributes:
        settings: As opened with.
        user: Whose memory, for calls that name nobody. workspace: likewise.
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
        self.settings, self._roles = settings, roles
        self.user, self.workspace = user, workspace
        self._embeddings, self._world, self._read_only = embeddings, world or World(), read_only
        self._checkpoints = None if read_only else checkpoints
        self._opening = threading.RLock()
        self._bank: Bank | None = None
        self._threads: Threads | None = None
        self._graphs = _Graphs(self._graph)

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        *,
        model: "str | BaseChatModel | None" = None,
        user: str | None = None,
        workspace: str = "default",
        settings: Settings | None = None,
        pipeline: "Pipeline | Path | str | None" = None,
        embedder: str | None = None,
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
            model: `rules` (no model; default), `openai:NAME` (any OpenAI-compatible server), any other name
                that LangChain's `init_chat_model` takes, such as `anthropic:NAME`, or a chat model.
            user: Whose memory, for calls that name nobody. workspace: likewise.
            settings: Everything else; by default read from `MEMCYCLE_*` variables.
            pipeline: A pipeline, or its folder: its theta and switches in place of those of the settings, and
                its models and prompts where none are given. By default that of `MEMCYCLE_PIPELINE`, where no
                settings are given either.
            embedder: In place of that of `settings`: `wordllama`, `minilm` or `openai:NAME`.
            embeddings: A LangChain embedder in place of the one `settings.embedder` names.
            roles: All roles, made by the caller, in place of `model`, `overrides` and `prompts`.
            overrides: Another model for single roles, by role name.
            prompts: A `PromptSet`, or a dict or folder of texts laid over the shipped ones.
            base_url: Server of named models; of `openai:NAME` by default `OPENAI_BASE_URL`.
            api_key: Their key; by default what the provider's variable holds, such as `OPENAI_API_KEY`.
            world: Clock, ids and waiting.
            read_only: Open the ledger alone: lists, history and export work beside a writing process.
            checkpoints: Where each run is kept under a thread id, so that one that broke off, or waits for a
                person (`settings.approval`), goes on with `resume`: a URL as `memcycle.checkpointer` reads
                it, or a LangGraph saver. By default runs are not kept.
            **model_args: More arguments of named models, such as `timeout` or `temperature`.

        Raises:
            ModelUnavailable: unknown model name, or no key or package for it.
            EmbedderMismatch: the home was built with another embedder. StoreError: it cannot be used.
            BadInput, PromptError: an argument that cannot be used.
        """
        if roles is not None and not hasattr(roles, "by_rules"):
            raise BadInput(f"open: roles must be Roles, not a {type(roles).__name__}")
        chosen = settings_of(settings, path, may_stop=read_only or checkpoints is not None)
        if embedder is not None:
            chosen = chosen.model_copy(update={"embedder": Settings(embedder=embedder).embedder})
        pipeline = pipeline or (os.environ.get("MEMCYCLE_PIPELINE") if settings is None else None)
        if pipeline:
            from memcycle.agents.pipeline import pipeline_of

            program = pipeline_of(pipeline)
            chosen = program.over(chosen)
            model, overrides, prompts = program.filled_in(model, overrides, prompts)
        server = {"base_url": base_url, "api_key": api_key, **model_args}
        memory = cls(
            chosen,
            roles or roles_of(model or "rules", overrides, prompts, server),
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
        """Closes the store; a later call opens it again. A session that nobody ended stays open in it."""
        with self._opening:
            bank, self._bank = self._bank, None
            self._graphs.clear()
            threads, self._threads = self._threads, None
        try:
            if bank is not None:
                bank.close()
        finally:
            if threads is not None:
                threads.close()

    @property
    def bank(self) -> "Bank":
        """The store, opened if it is not."""
        return self._open()

    @property
    def threads(self) -> Threads | None:
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
        """The graphs `remember`, `recall` and `session`, each compiled when it is first asked for."""
        if self._read_only:
            raise BadInput("this memory is open for reading only: open it without read_only")
        return self._graphs

    def _graph(self, name: str) -> Any:
        with self._opening:
            bank = self._open()
            build = getattr(import_module(f"memcycle.graph.{name}.graph"), f"build_{name}")
            saver = {} if self._threads is None else {"checkpointer": self._threads.saver}
            return build(self.roles, bank, self.settings).copy(saver)

    def _open(self) -> "Bank":
        with self._opening:
            if self._bank is None:
                from memcycle.stores.bank import Bank, shared_bank

                if self._checkpoints is not None and self._threads is None:
                    self._threads = Threads.open(self._checkpoints, self._world, self.settings)
                self._bank = (
                    Bank.open(self.settings, embeddings=self._embeddings, world=self._world, read_only=True)
                    if self._read_only
                    else shared_bank(self.settings, embeddings=self._embeddings, world=self._world)
                )
            return self._bank

    # Say and ask

    @runs
    def add(
        self,
        messages: Any,
        *,
        user: str | None = None,
        workspace: str | None = None,
        session: str | None = None,
        now: datetime | str | None = None,
        thread_id: str | None = None,
        bulk: bool = False,
    ) -> Run[Added]:
        """Remembers a chunk of a conversation. What is already stored is not stored again.

        Args:
            messages: One message or several: LangChain messages, OpenAI-style dicts, `(role, text)`
                tuples, text; or `Turn`s as the file readers give them, which keep their places.
            session: By default that of the turns, else `main`.
            now: Time of messages that carry none, by default the clock.
            bulk: Nobody waits: what is read is guarded as `theta.extraction` says.

        Raises:
            BadInput: a message that cannot be read (its number and field), or no user.
        """
        if messages is None:
            raise BadInput("add: messages must be a message or several, not None")
        several = messages if isinstance(messages, Sequence) and not isinstance(messages, str | bytes) else ()
        turns = [message for message in several if isinstance(message, Turn)]
        if turns and len(turns) != len(messages):
            raise BadInput("turns and messages cannot be added in one call")
        if len({turn.session for turn in turns}) > 1:
            raise BadInput(
                "turns of several sessions cannot be added in one call: add one session after another"
            )
        if session is None and turns:
            session = turns[0].session
        value = {"turns": [one.model_dump(mode="json") for one in turns]} if turns else {"messages": messages}
        context = self._context(user, workspace, session, now, bulk=bulk)
        return Run("remember", value, context, Added.of, thread_id)

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
        seen: Sequence[Any] = (),
        thread_id: str | None = None,
    ) -> Run[Answer]:
        """Answers a question from memory, or says that memory does not hold the answer.

        Args:
            question: In words.
            session: The session going on; with `Settings(visibility="session")` what it said is searched too.
            now: The time that words such as "last week" in the question count from, by default the clock.
            k: Entries of evidence at most. token_budget: their tokens at most.
            evidence_only: Find the evidence and stop there; `answer` is None.
            seen: Messages, in the shapes of `add`, that whoever reads the evidence sees anyway: what they say
                is not given back.

        Raises:
            BadInput: blank question, or no user. Errors of the Answerer's provider are raised as themselves.
        """
        more = {"k": k, "token_budget": token_budget, "evidence_only": evidence_only}
        context = self._context(user, workspace, session, now, **more)
        return self._question(question, context, seen, thread_id)

    @runs
    def recall(
        self,
        question: str,
        *,
        user: str | None = None,
        workspace: str | None = None,
        session: str | None = None,
        now: datetime | str | None = None,
        k: int | None = None,
        token_budget: int | None = None,
        seen: Sequence[Any] = (),
        thread_id: str | None = None,
    ) -> Run[Answer]:
        """The evidence for a question, without an answer. Arguments as those of `ask`."""
        more = {"k": k, "token_budget": token_budget, "evidence_only": True}
        context = self._context(user, workspace, session, now, **more)
        return self._question(question, context, seen, thread_id)

    @runs
    def search(
        self,
        query: str,
        *,
        user: str | None = None,
        workspace: str | None = None,
        session: str | None = None,
        now: datetime | str | None = None,
        k: int | None = None,
        token_budget: int | None = None,
    ) -> Run[Answer]:
        """`recall` under the name that other memories have for it; what was found is the result's `evidence`.

        Args:
            query: A question, or words. The others as those of `ask`.
        """
        more = {"k": k, "token_budget": token_budget, "evidence_only": True}
        return self._question(query, self._context(user, workspace, session, now, **more), (), None)

    # What is stored

    def users(self) -> list[UserSummary]:
        """Who has memory in this home, by name, one for each of their workspaces, with counts.

        For whoever administers the home: it tells names of users, which none of them may see of another.
        """
        return [UserSummary.model_validate(dict(row)) for row in self.bank.users_counted()]

    def memories(
        self,
        *,
        user: str | None = None,
        workspace: str | None = None,
        granularity: Granularity | None = None,
        kind: Kind | None = None,
        search: str | None = None,
        statuses: Sequence[Status] = _CURRENT,
        limit: Annotated[int, Field(ge=0)] | None = None,
    ) -> list[Entry]:
        """What is stored, in the order it was said.

        Args:
            granularity: Only `raw`, `fact` or `episode`. kind: only this kind.
            search: Only entries whose text holds these words, case aside.
            statuses: By default what recall may find; add `superseded` or `forgotten` to see more.
            limit: Entries at most.
        """
        return self.bank.by_time(
            self.scope(user, workspace),
            granularity=granularity,
            kind=kind,
            statuses=tuple(statuses),
            words=(search or "").casefold().split(),
            limit=limit,
        )

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
        if not text.strip():
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

    def probes_over(
        self, entries: Sequence[Entry], *, user: str | None = None, workspace: str | None = None
    ) -> list[Probe]:
        """The probes that may hold words of these entries, and are forgotten with them."""
        from memcycle.stores.ledger.probes import refs_of, turns_of

        turns = {turn for entry in entries if entry.granularity == "raw" for turn in entry.turns}
        ids = {entry.id for entry in entries}
        return [
            probe
            for probe in self.bank.probes(self.scope(user, workspace))
            if turns & turns_of(probe) or ids & refs_of(probe)
        ]

    def maintain(
        self, *, user: str | None = None, workspace: str | None = None, dry_run: bool = False
    ) -> "Maintenance":
        """Keeps all of a user's memory in order: unites what is said twice, expires what is past its limit.

        Ending a session does this for what is new; this compares everything committed with everything.
        Nothing is erased: `undo` brings back what left, and what it brought back is left alone from then on.

        Args:
            dry_run: Only say what would be done.
        """
        return self.bank.maintain(self.scope(user, workspace), dry_run=dry_run)

    def forget(
        self,
        entry_id: str,
        *,
        user: str | None = None,
        workspace: str | None = None,
        only: bool = False,
    ) -> list[str]:
        """Erases an entry for good, with what else holds its words unless `only`. Gives the ids erased.

        Where another process has the embedded index, that one takes them out of its files with the next thing
        it does; `bank.operator_note` says so.
        """
        return self.bank.forget(self.scope(user, workspace), entry_id, only=only)

    def forget_user(self, user: str, *, workspace: str | None = None) -> int:
        """Erases all of a user's memory for good, in every workspace unless one is named. Gives how many.

        The checkpoints of that user's runs go with it, where this memory keeps them.
        """
        self.scope(user, workspace)
        if self.threads is not None:
            for thread in self.threads.of(user, workspace):
                self.threads.saver.delete_thread(thread.thread_id)
        return self.bank.forget_user(user, workspace)

    def export(self, *, user: str | None = None, workspace: str | None = None) -> list[dict[str, Any]]:
        """Every entry of a user with all fields and its `log`, as JSON-able dicts that `import_` reads."""
        return list(self.bank.export(self.scope(user, workspace)))

    def import_(
        self, rows: Iterable[Mapping[str, Any]], *, user: str | None = None, workspace: str | None = None
    ) -> int:
        """Stores exported entries as this user's; those already stored stay as they are. Gives how many.

        Raises:
            BadInput: a record that is no entry (its number and field); then nothing is stored.
        """
        return self.bank.import_(self.scope(user, workspace), list(rows))

    # Sessions

    @runs
    def end_session(
        self,
        session: str | None = None,
        *,
        user: str | None = None,
        workspace: str | None = None,
        verify: bool | None = None,
        thread_id: str | None = None,
    ) -> Run[Ended]:
        """Ends a session: its last turns become an episode, all of it is examined, repaired and committed.

        A session that was broken off while it ended is ended by calling this again. A role that fails never
        holds it up: it is then committed unverified, with the reason.

        Args:
            session: By default `main`.
            verify: None examines what is new of it, and does nothing where nothing is. False commits at once,
                unverified. True examines it again although it is committed.

        Raises:
            BadInput: no such session (names those there are), or no user. Where turns wait to be read, errors
                of the Constructor's provider are raised as themselves.
        """
        return self._end_run(self._context(user, workspace, session), thread_id, verify=verify)

    @runs
    def verify_session(
        self,
        session: str,
        *,
        user: str | None = None,
        workspace: str | None = None,
        thread_id: str | None = None,
    ) -> Run[Ended]:
        """Examines a session again, committed or not, as `end_session` with `verify=True`.

        Raises:
            BadInput: no such session.
        """
        return self._end_run(self._context(user, workspace, session), thread_id, verify=True)

    def end_idle(self, *, user: str | None = None, workspace: str | None = None) -> dict[Scope, Ended]:
        """Ends the sessions in which nobody spoke for `settings.idle_after` seconds, one after another.

        For a scheduler, where nobody speaks: each `add` ends one of its user's. One that another process
        ends, or a person is asked about, is left to them. One whose end fails says so in its `warnings`,
        stays open, and is tried again once nothing was done with it for as long again.

        Args:
            user: Whose; by default that of `open`, and everybody's in all workspaces where it names none.
            workspace: a second wall inside that user.

        Returns:
            What was done, by session.
        """
        after, done = self.settings.idle_after, dict[Scope, Ended]()
        if after is None:
            return done
        from memcycle.graph.session.graph import not_ended

        everybody = user is None and self.user is None and workspace is None
        within = None if everybody else self.scope(user, workspace)
        since = self._world.now() - timedelta(seconds=after)
        runs = self._runs
        while (scope := self.bank.take_idle(since, within)) is not None:
            if self._asks_about(scope):
                continue
            session = str(scope.session)
            try:
                context = self._context(scope.user, scope.workspace, session)
                done[scope] = runs.invoke(self._end_run(context, verify=None))
            except Exception as error:  # noqa: BLE001 - told, and the others are ended all the same
                done[scope] = Ended(session=session, status="open", warnings=[not_ended(error)])
        return done

    def sessions(self, *, user: str | None = None, workspace: str | None = None) -> list[SessionSummary]:
        """Every session of a user, as they began: how far it is, and what its examination found."""
        return [SessionSummary.of(info) for info in self.bank.sessions(self.scope(user, workspace))]

    def session(
        self, session: str, *, user: str | None = None, workspace: str | None = None
    ) -> SessionDetail:
        """One session, with each question it was examined with, the answers, and what was repaired.

        Raises:
            BadInput: no such session.
        """
        scope = self.scope(user, workspace, session)
        return SessionDetail.of(self.bank.session(scope), examined=self.bank.probes(scope))

    # Runs

    @runs
    def resume(
        self,
        thread_id: str,
        decisions: "Decisions | None" = None,
        *,
        user: str | None = None,
        workspace: str | None = None,
    ) -> Run[Added | Answer | Ended]:
        """Goes on with a run that broke off, or that waits for a person, where it stopped.

        What its finished nodes did is not done again: no model is asked twice for it, nothing is written
        twice. A node in the middle of which the process died begins anew.

        Args:
            thread_id: As the run's result, or its error, names it.
            decisions: The answer to what waits for approval, as `pending.how` says; without one, a run that
                waits is only shown again.
            user: Whose run. workspace: a second wall inside that user.

        Returns:
            What the method that began the run gives back.

        Raises:
            BadInput: no such thread, another user's, a finished one, one begun with other `approval` or
                `switches`, an answer that nothing waits for or that cannot be read; the run is as it was.
        """
        return self._runs.resumption(thread_id, decisions, self.scope(user, workspace))

    def thread(
        self, thread_id: str, *, user: str | None = None, workspace: str | None = None
    ) -> ThreadSummary:
        """How far the run of a thread is, and what it waits for.

        Raises:
            BadInput: no such thread, or another user's.
        """
        return self._runs.summary(thread_id, self.scope(user, workspace))

    def unfinished(self, *, user: str | None = None, workspace: str | None = None) -> list[ThreadSummary]:
        """The runs that broke off or wait for a person, the last one first; reads all of a user's threads.

        A run that is going on right now, here or in another process, is among them.
        """
        return self._runs.unfinished(self.scope(user, workspace))

    def threads_under(
        self, thread_id: str, *, user: str | None = None, workspace: str | None = None
    ) -> list[ThreadSummary]:
        """The runs of a conversation ingested under this id, finished or not; empty where there are none.

        Raises:
            BadInput: they are another user's.
        """
        return self._runs.under(thread_id, self.scope(user, workspace))

    def delete_thread(self, thread_id: str, *, user: str | None = None, workspace: str | None = None) -> None:
        """Erases the checkpoints of a run, with the words it was given: it cannot go on then.

        Raises:
            BadInput: no such thread, or another user's.
        """
        self._runs.delete(thread_id, self.scope(user, workspace))

    # Awaitable forms

    aadd = awaitable(add)
    aask = awaitable(ask)
    arecall = awaitable(recall)
    asearch = awaitable(search)
    aend_session = awaitable(end_session)
    averify_session = awaitable(verify_session)
    aresume = awaitable(resume)
    aend_idle = awaitable(end_idle)
    ausers = awaitable(users)
    amemories = awaitable(memories)
    aget = awaitable(get)
    aedit = awaitable(edit)
    aundo = awaitable(undo)
    ahistory = awaitable(history)
    aholders = awaitable(holders)
    aprobes_over = awaitable(probes_over)
    amaintain = awaitable(maintain)
    aforget = awaitable(forget)
    aforget_user = awaitable(forget_user)
    aexport = awaitable(export)
    aimport_ = awaitable(import_)
    asessions = awaitable(sessions)
    asession = awaitable(session)
    athread = awaitable(thread)
    aunfinished = awaitable(unfinished)
    athreads_under = awaitable(threads_under)
    adelete_thread = awaitable(delete_thread)
    aclose = awaitable(close)

    # What a call is about

    def scope(
        self, user: str | None = None, workspace: str | None = None, session: str | None = None
    ) -> Scope:
        """The scope of a call; without a session that of all of them.

        Raises:
            BadInput: nobody is named, or with a name that cannot be one.
        """
        named = user if user is not None else self.user
        if named is None:
            raise BadInput("no user is named: pass user=... with the call, or to Memory.open")
        within = self.workspace if workspace is None else workspace
        try:
            return Scope(user=named, workspace=within, session=session)
        except ValidationError as error:
            raise BadInput(first_complaint(error)) from error

    def _context(
        self,
        user: str | None,
        workspace: str | None,
        session: str | None,
        now: datetime | str | None = None,
        **more: Any,
    ) -> Context:
        """What a run of a graph is told; without a session of `main`."""
        session = MAIN_SESSION if session is None else session
        scope = self.scope(user, workspace, session)
        try:
            time = None if now is None else read_time(now, self.settings.zone)
            return Context(user=scope.user, workspace=scope.workspace, session=session, now=time, **more)
        except ValidationError as error:
            raise BadInput(first_complaint(error)) from error
        except ValueError as error:
            raise BadInput(f"now: {error}") from error

    def _question(
        self, question: str, context: Context, seen: Sequence[Any], thread_id: str | None
    ) -> Run[Answer]:
        if not question.strip():
            raise BadInput("the question is blank")
        question = Redactor(self.settings.redact).text(question)
        read = functools.partial(Answer.of, question)
        return Run("recall", {"question": question, "seen": list(seen)}, context, read, thread_id)

    def _end_run(self, context: Context, thread_id: str | None = None, *, verify: bool | None) -> Run[Ended]:
        session = context.session or MAIN_SESSION
        # Before a thread is begun for it.
        self.bank.session(Scope(user=context.user, workspace=context.workspace, session=session))
        read = functools.partial(Ended.of, session)
        return Run("session", {"verify": verify}, context, read, thread_id)

    @property
    def _runs(self) -> Runs:
        return Runs(self.graphs, self.bank, self.threads)

    def _asks_about(self, scope: Scope) -> bool:
        """Whether the end of this session, also one within an `add` to another, waits for a person."""
        if self.threads is None or not self.settings.approval.is_asked:
            return False
        return any(
            one.pending is not None
            and one.pending.session == scope.session
            and (one.run == "end_session" or one.session != scope.session)
            for one in self.unfinished(user=scope.user, workspace=scope.workspace)
        )


def settings_of(settings: Settings | None, path: str | Path | None, *, may_stop: bool) -> Settings:
    """The settings of these arguments.

    Args:
        settings: By default those of the environment. path: the home, in place of theirs.
        may_stop: Whether a run could stop and go on, or none is ever made.

    Raises:
        BadInput: approval is asked for, where nothing could wait for it.
    """
    chosen = settings or Settings.from_env()
    if chosen.approval.is_asked and not may_stop:
        raise BadInput(
            "settings.approval needs runs that can stop and go on: open the memory with checkpoints, such as "
            "Memory.open(checkpoints='checkpoints.sqlite3'), or compile the graphs with a checkpointer"
        )
    return chosen if path is None else chosen.model_copy(update={"home": Settings(home=path).home})


def roles_of(
    model: "str | BaseChatModel",
    overrides: "Mapping[str, str | BaseChatModel] | None",
    prompts: "PromptSet | Mapping[str, str] | str | Path | None",
    model_args: Mapping[str, Any],
) -> "Roles | None":
    """The roles of these arguments, None where they ask for the rules: those are loaded on first use.

    Raises:
        BadInput: model arguments without a model by name.
        ModelUnavailable: unknown model name, or no key for it. PromptError: a prompt that cannot be used.
    """
    given = {key: value for key, value in model_args.items() if value is not None}
    if not isinstance(prompts, str | Path | Mapping | None) and not hasattr(prompts, "overlay"):
        raise BadInput(f"prompts must be a PromptSet, a dict or a folder, not a {type(prompts).__name__}")
    if model == "rules" and not overrides and prompts is None:
        unused = sorted(set(given) - {"base_url", "api_key"})
        if unused:
            raise BadInput(f"unknown argument {', '.join(unused)}: model arguments need a model by name")
        return None
    from memcycle.agents.roles import Roles
    from memcycle.prompts import PromptSet

    overlay = (
        prompts if prompts is None or isinstance(prompts, PromptSet) else PromptSet.shipped().overlay(prompts)
    )
    return Roles.from_model(model, overrides=overrides, prompts=overlay, **given)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
