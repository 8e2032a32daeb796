"""Memory as tools that an agent calls. Whose memory it is comes from the run, never from the model."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, BaseToolkit, StructuredTool
from langgraph.prebuilt import ToolRuntime
from pydantic import ConfigDict, Field

from memcycle.core.arguments import checked
from memcycle.core.errors import BadInput, MemcycleError
from memcycle.core.messages import read_messages
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.graph.context import ScopeOf, parent_scope
from memcycle.graph.guards import requested_deletion, stands_in
from memcycle.integrations.background import Failure, Recaller, Recorder
from memcycle.integrations.messages import (
    UNAVAILABLE,
    Recall,
    RecallRequest,
    is_made_up,
    memory_line,
    one_line,
    said_in,
)
from memcycle.memory import Memory
from memcycle.results import Added

Runtime = ToolRuntime[Any, Any]

ASKED_LATELY = 3
"""The user's last messages in which a request to forget may stand: a question back may lie between."""

SEARCH = (
    "Search the user's long-term memory: what they said in this and in earlier conversations. Gives dated "
    "memories with their ids, most important first. Ask for one thing at a time, in a full sentence."
)
REMEMBER = (
    "Keep something in long-term memory. Copy the user's own words exactly, as they stand in their message: "
    "then facts are read from that message. Anything else is kept as the assistant's own note, not as a fact."
)
FORGET = (
    "Erase one memory for good, with everything that holds its words. Only when the user asks for it: quote "
    "their request exactly. The id must be one that search_memory showed in this conversation."
)
HISTORY = (
    "How a memory came to be what it is: each change, when, by whom and why. For 'why do you think that?'."
)

NOTHING_MORE = "Nothing in memory bears on that, beyond what this conversation shows."

Query = Annotated[str, Field(min_length=1, description="What to look for, as a full question or statement.")]
Limit = Annotated[int, Field(ge=1, le=50, description="Memories at most.")]
Words = Annotated[str, Field(min_length=1, description="What to keep: the user's own words, copied exactly.")]
EntryId = Annotated[str, Field(description="Id of a memory, as search_memory shows it in brackets.")]
Quote = Annotated[str, Field(min_length=1, description="The user's words that ask for it, copied exactly.")]


@checked
def memory_tools(
    memory: Memory, *, scope: ScopeOf | None = None, recall_timeout: float = 10.0
) -> list[BaseTool]:
    """The tools `search_memory`, `remember`, `forget_memory` and `memory_history`, sync and async.

    For `create_agent(tools=...)` and for a `ToolNode`. A tool that fails says so to the model and ends no
    run.

    Args:
        memory: Where they look and store.
        scope: Gives the scope, or its fields, from the run's context; see `parent_scope`.
        recall_timeout: Seconds of a search at most.
    """
    acts = _Acts(memory, scope, recall_timeout)
    return [
        StructuredTool.from_function(acts.search, acts.asearch, "search_memory", SEARCH),
        StructuredTool.from_function(acts.remember, acts.aremember, "remember", REMEMBER),
        # Awaited, LangChain runs these two in a thread: they ask no model.
        StructuredTool.from_function(acts.forget, name="forget_memory", description=FORGET),
        StructuredTool.from_function(acts.history, name="memory_history", description=HISTORY),
    ]


class MemoryToolkit(BaseToolkit):
    """`memory_tools` as a toolkit, for where LangChain wants one.

    Attributes:
        memory: Where the tools look and store.
        scope: Gives the scope, or its fields, from the run's context.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Memory
    scope: ScopeOf | None = None

    def get_tools(self) -> list[BaseTool]:
        """All four."""
        return memory_tools(self.memory, scope=self.scope)


class _Acts:
    """What the tools do; those that ask a model have an awaitable form."""

    def __init__(self, memory: Memory, scope_of: ScopeOf | None, limit: float) -> None:
        self._memory, self._scope_of = memory, scope_of
        self._recaller = Recaller(memory, limit=limit)
        self._recorder = Recorder(memory)

    def search(self, query: Query, runtime: Runtime, limit: Limit = 10) -> ToolMessage | str:
        request = RecallRequest(self._scope(runtime), query, k=limit)
        return self._found(self._recaller.recall(request, self._seen(runtime)), runtime)

    async def asearch(self, query: Query, runtime: Runtime, limit: Limit = 10) -> ToolMessage | str:
        request = RecallRequest(self._scope(runtime), query, k=limit)
        return self._found(await self._recaller.arecall(request, self._seen(runtime)), runtime)

    def remember(self, text: Words, runtime: Runtime) -> ToolMessage | str:
        message = _source(text, runtime)
        scope = self._scope(runtime)
        return self._remembered(self._recorder.now(scope, [message]), message, scope, runtime)

    async def aremember(self, text: Words, runtime: Runtime) -> ToolMessage | str:
        message, scope = _source(text, runtime), self._scope(runtime)
        done = await self._recorder.anow(scope, [message])
        return await asyncio.to_thread(self._remembered, done, message, scope, runtime)

    def forget(self, entry_id: EntryId, quote: Quote, runtime: Runtime) -> ToolMessage | str:
        scope = self._scope(runtime)
        return self._run("forget_memory", runtime, lambda: self._forget(scope, entry_id, quote, runtime))

    def history(self, entry_id: EntryId, runtime: Runtime) -> ToolMessage | str:
        scope = self._scope(runtime)
        return self._run("memory_history", runtime, lambda: self._history(scope, entry_id))

    def _scope(self, runtime: Runtime) -> Scope:
        memory = self._memory
        return parent_scope(
            runtime.context, runtime.config, self._scope_of, user=memory.user, workspace=memory.workspace
        )

    def _seen(self, runtime: Runtime) -> Sequence[BaseMessage]:
        """What the model sees anyway; nothing where the user asks to forget, which needs a memory's id."""
        lately = _by_people(runtime)[-ASKED_LATELY:]
        forgets = any(requested_deletion(turn.text, [turn]) for turn in self._turns(lately, ""))
        return [] if forgets else said_in(_messages(runtime))

    def _turns(self, messages: Sequence[BaseMessage], session: str) -> list[Turn]:
        return read_messages(
            messages, session=session, now=self._memory.bank.world.now(), zone=self._memory.settings.zone
        )

    def _found(self, recalled: Recall, runtime: Runtime) -> ToolMessage | str:
        if recalled.status == "unavailable":
            return _answer("search_memory", UNAVAILABLE, runtime, failed=True)
        lines = [f"[{one.id}] {memory_line(one)}" for one in recalled.evidence]
        return _answer(
            "search_memory",
            "\n".join(lines) or NOTHING_MORE,
            runtime,
        )

    def _remembered(
        self, done: Added | Failure, message: BaseMessage, scope: Scope, runtime: Runtime
    ) -> ToolMessage | str:
        if isinstance(done, Failure):
            return _answer("remember", f"It could not be remembered now: {done.error}", runtime, failed=True)
        facts = [f"[{one.id}] {one_line(one.text)}" for one in self._memory.bank.get(scope, done.facts)]
        known = {turn.message_id for turn in self._memory.bank.turns(scope, done.turns)}
        if not done.turns or (message.id is not None and message.id not in known):
            text = "That message is remembered already."
        elif isinstance(message, AIMessage):
            text = "Kept as the assistant's own note: these are not the user's words, so no fact was read."
        else:
            text = "\n".join(["Remembered the user's message, and read from it:", *(facts or ["no fact"])])
        return _answer("remember", text, runtime)

    def _forget(self, scope: Scope, entry_id: str, quote: str, runtime: Runtime) -> str:
        if not _was_shown(entry_id, runtime):
            raise BadInput("no such id was shown in this conversation; call search_memory and use its id")
        asked = requested_deletion(
            quote, self._turns(_by_people(runtime)[-ASKED_LATELY:], scope.session or "")
        )
        if asked is None:
            raise BadInput("the user did not ask for that in the quoted words; ask them first")
        gone = self._memory.forget(entry_id, user=scope.user, workspace=scope.workspace)
        if not gone:
            raise BadInput("there is no such memory, or none any more")
        # The request names what was erased: it is neither kept nor taken in later.
        self._memory.bank.forget_turns(scope, [asked])
        return (
            f"Erased for good: {len(gone)} entries that held these words, and the request. Do not repeat it."
        )

    def _history(self, scope: Scope, entry_id: str) -> str:
        events = self._memory.history(entry_id, user=scope.user, workspace=scope.workspace)
        lines = []
        for event in events:
            text = (event.after or event.before or {}).get("text")
            parts = [f"{event.at.isoformat(timespec='minutes')} {event.action} by {event.actor}"]
            parts += [one_line(str(text))] if text else []
            parts += [one_line(event.why)] if event.why else []
            lines.append(": ".join(parts))
        return "\n".join(lines)

    def _run(self, tool: str, runtime: Runtime, act: Callable[[], str]) -> ToolMessage | str:
        try:
            text = act()
        except MemcycleError as error:
            return _answer(tool, f"Nothing was done: {error}", runtime, failed=True)
        return _answer(tool, text, runtime)


def _answer(tool: str, text: str, runtime: Runtime, *, failed: bool = False) -> ToolMessage | str:
    """What the model reads: marked as ours, so that it is never remembered as something somebody said."""
    if runtime.tool_call_id is None:
        return text
    return ToolMessage(
        text,
        name=tool,
        tool_call_id=runtime.tool_call_id,
        status="error" if failed else "success",
        additional_kwargs={"memcycle": "shown"},
    )


def _messages(runtime: Runtime) -> Sequence[BaseMessage]:
    state = runtime.state
    found = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    return found or []


def _by_people(runtime: Runtime) -> list[HumanMessage]:
    return [
        message
        for message in _messages(runtime)
        if isinstance(message, HumanMessage) and not is_made_up(message)
    ]


def _source(text: str, runtime: Runtime) -> BaseMessage:
    """The user's message in which these words stand; without one, a note of the assistant."""
    holders = (one for one in reversed(_by_people(runtime)) if stands_in(text, str(one.text)))
    return next(holders, None) or AIMessage(text)


def _was_shown(entry_id: str, runtime: Runtime) -> bool:
    """Whether one of our tools showed this id: no other can have known it, or set our mark."""
    return any(
        isinstance(message, ToolMessage) and is_made_up(message) and f"[{entry_id}]" in str(message.text)
        for message in _messages(runtime)
    )
