"""One way to write a node: a generator from state to partial state that yields its role calls.

A node that calls no role is a plain function. The same body serves `invoke` and `ainvoke`: under
`ainvoke` each stretch between two yields runs off the event loop and each call is awaited natively.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import ensure_config, merge_configs, set_config_context
from langgraph.config import get_stream_writer
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from pydantic import ValidationError

from memcycle.agents.provider_errors import is_providers
from memcycle.agents.runner import PROMPTS, ModelRole
from memcycle.agents.views import RoleOutput
from memcycle.core.driver import adrive, drive
from memcycle.core.errors import RoleFailed, all_complaints
from memcycle.core.probe import RoleUsage, Usage
from memcycle.graph.budget import Purse

StateT = TypeVar("StateT")
_log = logging.getLogger(__name__)

MOST_TOLD = 5
"""Faults of one reply that are told."""


class Inline(Runnable[StateT, Any]):
    """A function of the state as a runnable, sync and async, that stays on the event loop.

    A plain function is handed to a thread when a graph runs async, which costs more than a route does, and
    waits behind all other threads of a busy process.
    """

    def __init__(self, function: Callable[[StateT], Any]) -> None:
        self.name = getattr(getattr(function, "func", function), "__name__", None)
        self._function = function

    def invoke(self, input: StateT, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """What the function gives."""
        with set_config_context(ensure_config(config)) as context:
            return context.run(self._function, input)

    async def ainvoke(self, input: StateT, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """As `invoke`."""
        return self.invoke(input, config)


@dataclass(frozen=True)
class Call:
    """A role to be run: its name (for accounting), the runnable, its input, and this run's prompts.

    `optional`: the run goes on without it, so that a failure of its provider is one of the role. `output`:
    what it must give, where that is looked at. `shared`: several of them that are yielded together are one
    call of the model. `purse`: what is asked whether it may be made, where that is limited.
    """

    role: str
    runnable: Runnable[Any, Any]
    input: Any
    prompts: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False
    output: type[RoleOutput] | None = None
    shared: bool = False
    purse: Purse | None = None


Step = Generator["Call | Sequence[Call]", Any, dict[str, Any]]


class _Meter(BaseCallbackHandler):
    """Counts the chat calls a role makes and the tokens the provider reports: of all its calls in this node,
    and of this one, in `calls` and `tokens`."""

    run_inline = True
    """It only counts: a thread for each of its events would cost more than a call's own work."""

    @property
    def ignore_chain(self) -> bool:
        """A role's steps are no calls."""
        return True

    @property
    def ignore_chat_model(self) -> bool:
        """A call counts when it ends."""
        return True

    def __init__(self, role: str, into: Usage) -> None:
        self.calls = self.tokens = 0
        self.count = into.setdefault(role, RoleUsage(calls=0, input_tokens=0, output_tokens=0))

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        self._call()
        for generations in response.generations:
            for generation in generations:
                usage = getattr(getattr(generation, "message", None), "usage_metadata", None) or {}
                details = usage.get("input_token_details") or {}
                self._add(usage.get("input_tokens"), usage.get("output_tokens"), details.get("cache_read"))

    def on_llm_error(self, error: BaseException, **_: Any) -> None:
        """A call that failed was a call; the OpenAI SDK raises on a cut reply and hands its usage along."""
        self._call()
        usage = getattr(getattr(error, "completion", None), "usage", None)
        cached = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", 0)
        self._add(getattr(usage, "prompt_tokens", 0), getattr(usage, "completion_tokens", 0), cached)

    def _call(self) -> None:
        self.calls += 1
        self.count["calls"] += 1

    def _add(self, input_tokens: int | None, output_tokens: int | None, cached: int | None) -> None:
        self.tokens += (input_tokens or 0) + (output_tokens or 0)
        self.count["input_tokens"] += input_tokens or 0
        self.count["output_tokens"] += output_tokens or 0
        if cached:
            self.count["cached"] = self.count.get("cached", 0) + cached


@dataclass
class _Account:
    """What the calls of a node used, and what of their replies could not be used, in words."""

    usage: Usage = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def take(self, call: Call, reply: Any) -> Any:
        """The reply, its faults noted."""
        found = faults_of(call.role, reply)
        if found:
            self.faults += found
            _log.warning("role %s: parts of a reply could not be used", call.role)
        return reply


def faults_of(role: str, reply: Any) -> list[str]:
    """What of a role's reply could not be used, as a run tells it."""
    faults = reply.faults[:MOST_TOLD] if isinstance(reply, RoleOutput) else ()
    return (
        [f"role {role!r}: of its reply this could not be used as it is: {'; '.join(faults)}"]
        if faults
        else []
    )


@contextmanager
def _failing_as_role(call: Call) -> Iterator[None]:
    """A failure of the provider becomes one of the role, where the run goes on without that role."""
    try:
        yield
    except Exception as error:
        of_model = isinstance(call.runnable, ModelRole)
        if isinstance(error, RoleFailed) or not (call.optional and is_providers(error, of_model=of_model)):
            raise
        _log.warning("role %s: its provider failed (%s), going on without", call.role, type(error).__name__)
        raise RoleFailed(call.role, f"its provider failed ({type(error).__name__})") from error


def _config(call: Call, config: RunnableConfig, meter: _Meter) -> RunnableConfig:
    """The configuration a role is run with: its name and tag for tracers, a meter, this run's prompts."""
    own = RunnableConfig(run_name=call.role, tags=[f"memcycle:{call.role}"], callbacks=[meter])
    if call.prompts:
        own["configurable"] = {PROMPTS: dict(call.prompts)}
    return merge_configs(config, own)


def _finish(update: dict[str, Any] | None, account: "_Account") -> dict[str, Any]:
    """The partial state with what this node used and was told; the reducers of these sum."""
    counted: Usage = {role: count for role, count in account.usage.items() if count["calls"]}
    own = {"usage": counted, "faults": account.faults}
    return {**(update or {}), **{key: value for key, value in own.items() if value}}


INTERRUPT = "__interrupt__"
"""Key under which LangGraph gives the interrupts of a node that stopped, in place of its update."""


class Node(Runnable[Any, dict[str, Any]]):
    """A graph node, sync and async, from one body `body(state)` or `body(state, run(config, state))`.

    The body returns a partial state, or is a generator (`Step`) that yields `Call`s (one, or several to
    be run together) and is sent their outputs; an error of a call is raised at its yield. Of several, a
    `RoleFailed` takes its output's place, so that one failure does not cost the others.

    LangGraph makes a run of each node and hands its config on, so that nothing of that is done again here.
    """

    name: str

    def __init__(
        self,
        name: str,
        body: Callable[..., Any],
        *,
        run: Callable[[RunnableConfig, Any], Any] | None = None,
        event: Callable[[Any, Mapping[str, Any]], Any] | None = None,
        failed: Callable[[Any, Any], str] | None = None,
    ) -> None:
        """Runs nothing yet.

        Args:
            run: Makes the body's second argument of the run's configuration and the state; by default it is
                the configuration.
            event: From the state it was given and the partial state it returned, or its interrupts under
                `INTERRUPT` where it stopped: what is streamed of that (`stream_mode="custom"`).
            failed: Called with state and run where it raises; gives what the error is to say besides.
        """
        self.name, self._body, self._run_of, self._event, self._failed = name, body, run, event, failed
        self._takes_two = len(inspect.signature(body).parameters) > 1
        self._is_plain = not inspect.isgeneratorfunction(body)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002
        """The partial state of a state."""
        try:
            update = self._drive(input, ensure_config(config))
        except GraphInterrupt as stopped:
            self._stream(input, {INTERRUPT: stopped.args[0]})
            raise
        except Exception as error:
            self._fail(input, ensure_config(config), error)
            raise
        self._stream(input, update)
        return update

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002
        """As `invoke`, with role calls awaited natively."""
        try:
            update = await self._adrive(input, ensure_config(config))
        except GraphInterrupt as stopped:
            self._stream(input, {INTERRUPT: stopped.args[0]})
            raise
        except Exception as error:
            await asyncio.to_thread(self._fail, input, ensure_config(config), error)
            raise
        self._stream(input, update)
        return update

    def _fail(self, state: Any, config: RunnableConfig, error: Exception) -> None:
        if self._failed is None:
            return
        note = self._failed(state, self._run_of(config, state) if self._run_of is not None else config)
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)

    def _stream(self, state: Any, update: Mapping[str, Any]) -> None:
        event = self._event(state, update) if self._event is not None else None
        if event is not None:
            get_stream_writer()(event)

    def _drive(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        account = _Account()
        update = self._start(state, config)
        if not self._is_plain:
            update = drive(update, lambda calls: _invoke(calls, config, account))
        return _finish(update, account)

    async def _adrive(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        account = _Account()
        if self._is_plain:
            return _finish(await asyncio.to_thread(self._start, state, config), account)
        step: Step = self._start(state, config)  # runs nothing of it yet
        update = await adrive(step, lambda calls: _ainvoke(calls, config, account), in_thread=True)
        return _finish(update, account)

    def _start(self, state: Any, config: RunnableConfig) -> Any:
        if not self._takes_two:
            return self._body(state)
        return self._body(state, self._run_of(config, state) if self._run_of is not None else config)


def nested(
    read: Callable[[Any], dict[str, Any]],
    graph: Runnable[Any, Any],
    write: Callable[[dict[str, Any]], dict[str, Any]],
    failed: Callable[[Any, Exception], dict[str, Any]] | None = None,
) -> Runnable[Any, dict[str, Any]]:
    """A graph as a node: `read` maps the parent's state to its input, `write` its output to a partial state.

    No state key is shared by accident, and the graph is drawn and streamed as nested.

    Args:
        failed: Gives the partial state where the graph fails, of the parent's state and the error, if that
            is to fail no parent; it may raise.
    """
    whole = Inline(read) | graph | Inline(write)
    if failed is None:
        return whole

    def run(state: Any, config: RunnableConfig) -> dict[str, Any]:
        try:
            done: dict[str, Any] = whole.invoke(state, config)
        except GraphBubbleUp:  # it waits for a person
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, `failed` knows what becomes of it
            return failed(state, error)
        return done

    async def arun(state: Any, config: RunnableConfig) -> dict[str, Any]:
        try:
            done: dict[str, Any] = await whole.ainvoke(state, config)
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001
            return failed(state, error)
        return done

    return RunnableLambda(run, afunc=arun, name=graph.name)


def _output(call: Call, reply: Any) -> Any:
    """The reply as the role's output, which a runnable of the caller's own may give as a plain dict."""
    if call.output is None or isinstance(reply, call.output):
        return reply
    try:
        return call.output.model_validate(reply)
    except ValidationError as error:
        given, wanted = type(reply).__name__, call.output.__name__
        why = f"its runnable gave a {given}, not a {wanted}: {all_complaints(error)}"
        raise RoleFailed(call.role, why) from None


def _shared(calls: Sequence[Call]) -> ModelRole[Any, Any] | None:
    """The role that all of these are asked of in one call, if so."""
    first = calls[0].runnable if len(calls) > 1 and all(call.shared for call in calls) else None
    same = all(call.runnable is first for call in calls)
    return first if isinstance(first, ModelRole) and same else None


def _asked(call: Call, ask: Callable[[RunnableConfig], Any], config: RunnableConfig, usage: Usage) -> Any:
    """What a role says, where the budget lets it be asked."""
    meter = _Meter(call.role, usage)
    with _failing_as_role(call):
        if call.purse is None:
            return ask(_config(call, config, meter))
        call.purse.take(call.role)
        try:
            return ask(_config(call, config, meter))
        finally:
            call.purse.settle(meter.calls, meter.tokens)


async def _aasked(
    call: Call, ask: Callable[[RunnableConfig], Awaitable[Any]], config: RunnableConfig, usage: Usage
) -> Any:
    meter = _Meter(call.role, usage)
    with _failing_as_role(call):
        if call.purse is None:
            return await ask(_config(call, config, meter))
        await asyncio.to_thread(call.purse.take, call.role)
        try:
            return await ask(_config(call, config, meter))
        finally:
            await asyncio.to_thread(call.purse.settle, meter.calls, meter.tokens)


def _invoke(calls: "Call | Sequence[Call]", config: RunnableConfig, account: _Account) -> Any:
    if isinstance(calls, Call):
        reply = _asked(calls, partial(calls.runnable.invoke, calls.input), config, account.usage)
        return account.take(calls, _output(calls, reply))
    replies: list[Any] = []
    if (role := _shared(calls)) is not None:
        inputs = [call.input for call in calls]
        try:
            found = _asked(calls[0], partial(role.together, inputs), config, account.usage)
        except RoleFailed as failed:
            return [failed for _ in calls]
        return [account.take(calls[0], reply) for reply in found]
    for call in calls:
        try:
            replies.append(_invoke(call, config, account))
        except RoleFailed as failed:
            replies.append(failed)
    return replies


async def _ainvoke(calls: "Call | Sequence[Call]", config: RunnableConfig, account: _Account) -> Any:
    if isinstance(calls, Call):
        reply = await _aasked(calls, partial(calls.runnable.ainvoke, calls.input), config, account.usage)
        return account.take(calls, _output(calls, reply))
    if (role := _shared(calls)) is not None:
        inputs = [call.input for call in calls]
        try:
            found = await _aasked(calls[0], partial(role.atogether, inputs), config, account.usage)
        except RoleFailed as failed:
            return [failed for _ in calls]
        return [account.take(calls[0], reply) for reply in found]
    asked = (_ainvoke(call, config, account) for call in calls)
    replies = await asyncio.gather(*asked, return_exceptions=True)
    for reply in replies:
        if isinstance(reply, BaseException) and not isinstance(reply, RoleFailed):
            raise reply
    return replies
