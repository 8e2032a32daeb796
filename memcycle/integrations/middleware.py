"""Long-term memory for agents made with LangChain's `create_agent`. Needs the extra `agents`."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Self

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime

from memcycle.core.scope import Scope
from memcycle.graph.context import ScopeOf, parent_scope
from memcycle.integrations.background import Failure, Recaller, Recorder
from memcycle.integrations.messages import Recall, RecallRequest, memory_block, question_in, said_in
from memcycle.integrations.tools import memory_tools
from memcycle.memory import Memory
from memcycle.results import Added

Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class MemoryMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Recalls before the model is called, remembers when the agent is done. Sync and async.

    What is said is written down as the run comes to it, so that nothing that happens later costs a word, and
    read when the agent is done. Other middleware has not changed it by then: `Settings(redact=...)` takes
    secrets out.

    What is recalled goes into the request alone, never into the stored messages. The run's context or
    configuration says whose memory it is, never the model; the thread is the session. Each decision is a
    custom event: `{"memcycle": {"event": "recall", "status": "found", ...}}`.

    What a thread says is found from the user's other threads at once.

    Example:
        >>> with Memory.open("home") as memory:
        ...     with MemoryMiddleware(memory, background=True) as remembers:
        ...         agent = create_agent(model, middleware=[remembers])
        ...         agent.invoke({"messages": [("user", "I moved to Graz.")]}, context={"user": "ann"})

    Attributes:
        memory: Where it looks and stores.
        failures: The last failures to remember; each is in the log too.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        scope: ScopeOf | None = None,
        recall: bool = True,
        remember: bool = True,
        background: bool = False,
        recall_timeout: float = 3.0,
        k: int | None = None,
        token_budget: int | None = None,
        place: Literal["system", "message"] = "system",
        reader: Memory | None = None,
        tools: bool = False,
    ) -> None:
        """Opens nothing yet.

        Args:
            memory: An opened `Memory`; it stays yours to close, after this.
            scope: Gives the scope, or its fields, from the run's context (its own type, or None). By default
                `user` or `user_id`, `workspace` and `session` of the context, else of the configurable, else
                the user that `memory` was opened for; see `parent_scope`.
            recall: Whether to look before the model is called. remember: whether to store afterwards.
            background: Remember after the reply is given, in threads; `close` waits for them.
            recall_timeout: Seconds a reply waits for memory at most, over all model calls of a turn.
            k: Memories recalled at most. token_budget: their tokens at most.
            place: At the end of the system prompt; or as a message before the user's last, which keeps the
                beginning of the prompt the same for providers that cache it.
            reader: Another `Memory` of the same home to recall with, such as one opened with `model="rules"`,
                which asks no model, while `memory` reads what was said with one.
            tools: Whether to give the agent the tools of `memory_tools` too.
        """
        super().__init__()
        self.memory = memory
        self._scope_of, self._recall, self._remember = scope, recall, remember
        self._background, self._place = background, place
        self._recaller = Recaller(reader or memory, limit=recall_timeout, k=k, token_budget=token_budget)
        self._recorder = Recorder(memory)
        self.tools = memory_tools(memory, scope=scope) if tools else []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def flush(self, timeout: float | None = None) -> list[Scope]:
        """Waits until what is being remembered in the background is; gives what is not in time."""
        return self._recorder.flush(timeout)

    def close(self, timeout: float = 30.0) -> None:
        """Flushes, and ends the background's threads. The memory stays open."""
        self._recorder.close(timeout)

    async def aflush(self, timeout: float | None = None) -> list[Scope]:  # noqa: ASYNC109 - as `flush`
        """Awaitable `flush`."""
        return await asyncio.to_thread(self.flush, timeout)

    async def aclose(self, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - as `close`
        """Awaitable `close`."""
        await asyncio.to_thread(self.close, timeout)

    @property
    def waiting(self) -> list[Scope]:
        """The conversations of which something waits in the background, or is being remembered now."""
        return self._recorder.waiting

    @property
    def failures(self) -> list[Failure]:
        """The last failures to remember, at once and in the background."""
        return self._recorder.failures

    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Writes down what was said so far: what comes may fail, or take messages out of the thread."""
        if self._remember:
            self._recorder.stage(self._scope(runtime), said_in(state["messages"]))

    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Awaitable `before_agent`."""
        if self._remember:
            scope = self._scope(runtime)
            await asyncio.to_thread(self._recorder.stage, scope, said_in(state["messages"]))

    def after_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """As `before_agent`: a run with tools calls its model many times."""
        self.before_agent(state, runtime)

    async def aafter_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Awaitable `after_model`."""
        await self.abefore_agent(state, runtime)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any]:
        """Puts into the request what memory holds on the user's last words."""
        wanted = self._request(request.messages, request.runtime)
        if wanted is None:
            return handler(request)
        recalled = self._recaller.recall(wanted, said_in(request.messages))
        return handler(self._informed(request, recalled))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: AsyncHandler) -> ModelResponse[Any]:
        """Awaitable `wrap_model_call`."""
        wanted = self._request(request.messages, request.runtime)
        if wanted is None:
            return await handler(request)
        recalled = await self._recaller.arecall(wanted, said_in(request.messages))
        return await handler(self._informed(request, recalled))

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Remembers what was said since the last turn; in the background if so wanted."""
        said, scope = self._end_turn(state, runtime)
        if not self._remember:
            return
        if self._background:
            self._recorder.later(scope, said)
            _emit(runtime, "remember", status="queued")
        else:
            _emit(runtime, "remember", **_outcome(self._recorder.now(scope, said)))

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Awaitable `after_agent`."""
        if self._background or not self._remember:
            self.after_agent(state, runtime)
            return
        said, scope = self._end_turn(state, runtime)
        _emit(runtime, "remember", **_outcome(await self._recorder.anow(scope, said)))

    def _end_turn(self, state: AgentState[Any], runtime: Runtime[Any]) -> tuple[list[Any], Scope]:
        """What was said, and whose it is; the turn's recall is over with it."""
        wanted = self._request(state["messages"], runtime)
        if wanted is not None:
            self._recaller.drop(wanted)
        return said_in(state["messages"]), self._scope(runtime)

    def _scope(self, runtime: Runtime[Any]) -> Scope:
        memory = self.memory
        return parent_scope(
            runtime.context, get_config(), self._scope_of, user=memory.user, workspace=memory.workspace
        )

    def _request(self, messages: list[AnyMessage], runtime: Runtime[Any]) -> RecallRequest | None:
        question, message_id = question_in(messages)
        return (
            RecallRequest(self._scope(runtime), question, message_id) if self._recall and question else None
        )

    def _informed(self, request: ModelRequest[Any], recalled: Recall) -> ModelRequest[Any]:
        _emit(
            request.runtime,
            "recall",
            status=recalled.status,
            why=recalled.why,
            seconds=round(recalled.seconds, 3),
            entries=[one.id for one in recalled.evidence],
        )
        block = memory_block(recalled)
        if self._place == "system":
            return request.override(system_message=_with(request.system_message, block))
        return request.override(messages=_before_last_words(request.messages, block))


def _with(system: SystemMessage | None, block: str) -> SystemMessage:
    """The system message with the block at its end, whatever its content is made of."""
    if system is None:
        return SystemMessage(block)
    if isinstance(system.content, str):
        content: Any = f"{system.content}\n\n{block}"
    else:
        content = [*system.content, {"type": "text", "text": block}]
    return system.model_copy(update={"content": content})


def _before_last_words(messages: list[AnyMessage], block: str) -> list[AnyMessage]:
    """The messages with the block before the last that a person said, marked as nobody's words."""
    last = max(n for n, message in enumerate(messages) if isinstance(message, HumanMessage))
    note = HumanMessage(block, additional_kwargs={"memcycle": "recalled"})
    return [*messages[:last], note, *messages[last:]]


def _outcome(done: Added | Failure) -> Mapping[str, Any]:
    if isinstance(done, Failure):
        return {"status": "failed", "why": done.error}
    return {"status": "remembered", "turns": done.turns, "facts": done.facts}


def _emit(runtime: Runtime[Any], event: str, **what: Any) -> None:
    """A custom event of the agent's stream: ids and counts, no words."""
    runtime.stream_writer({"memcycle": {"event": event, **what}})
