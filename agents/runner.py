"""Running a chat model for a role: a ladder of structured output, one re-ask, typed failure.

The ladder is written once, as a generator of requests, and driven sync and async.
"""

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config
from pydantic import create_model

from memcycle.agents.provider_errors import rejects_budget, rejects_rung, reply_in_error
from memcycle.agents.reply import (
    NoAnswer,
    Unreadable,
    complete_items,
    output_tokens,
    read_reply,
    reply_words,
    was_cut,
)
from memcycle.agents.schema import outline, strict_schema
from memcycle.agents.views import RoleInput, RoleOutput, TurnView, mark
from memcycle.core.driver import adrive, drive
from memcycle.core.errors import PromptError, RoleFailed
from memcycle.prompts import PromptSet

PROMPTS = "memcycle_prompts"
"""Key of `config["configurable"]` for one run's own prompts: text by role name."""

Input = TypeVar("Input", bound=RoleInput)
Output = TypeVar("Output", bound=RoleOutput)
Result = TypeVar("Result")

_CASES = (
    "Several cases follow, each between its own marks. Each is answered on its own, as said in it and from "
    'what stands in it alone, all in one JSON object: {"cases": [{"n": number of the case, "reply": {...}}]}.'
)
_ONE_OBJECT = "one JSON object and nothing else, filled in after this outline:"
_EXCERPT = 200
_SHOWN_BACK = 4000
_MIN_BUDGET = 4096
_BUDGET_FIELDS = ("max_tokens", "max_output_tokens", "num_predict", "max_new_tokens")
_RESPONSES_API = (
    "use_responses_api", "output_version", "reasoning", "include", "truncation", "use_previous_response_id",
)  # fmt: skip
"""Settings of a `ChatOpenAI` by which it may speak OpenAI's Responses API, which takes schemas otherwise."""
_log = logging.getLogger(__name__)


class _Rung(NamedTuple):
    name: str
    runnable: Runnable[Any, Any]


class _Request(NamedTuple):
    runnable: Runnable[Any, Any]
    messages: list[BaseMessage]


class ModelRole(Runnable[Input, Output], Generic[Input, Output]):
    """A role run by a chat model.

    Safe to share between threads and tasks. The rung of the ladder that the model's server accepted is
    remembered, so that a server without structured output is asked for it once.
    """

    def __init__(self, role: str, output: type[Output], model: BaseChatModel, prompts: PromptSet) -> None:
        """A role, by its name in `Roles`, on any chat model."""
        self.role, self.output, self.model, self.prompts = role, output, model, prompts
        self.name = role
        self._asking = _Asking(role, output, model)

    @property
    def rung(self) -> str:
        """The rung asked first now: `json_schema`, `tools` or `text`."""
        return self._asking.rung

    @property
    def model_name(self) -> str:
        """The model's name, as recorded on what it makes."""
        return model_label(self.model)

    def prompt_version(self, config: RunnableConfig | None = None) -> str:
        """Short hash of the prompt in use (of this run, where it brings its own)."""
        return self._prompts_of(config).version(self.role)

    def invoke(self, input: Input, config: RunnableConfig | None = None, **_: Any) -> Output:  # noqa: A002
        """The output for an input.

        Raises:
            RoleFailed: a refusal, an empty reply, or a reply that did not fit twice.
            PromptError: this run's own prompt cannot be used.
            Exception: errors of the provider, as they are.
        """
        return self._drive(self._talk(input, config), config)

    async def ainvoke(self, input: Input, config: RunnableConfig | None = None, **_: Any) -> Output:  # noqa: A002
        """As `invoke`, with the model awaited natively."""
        return await self._adrive(self._talk(input, config), config)

    def together(
        self, inputs: Sequence[Input], config: RunnableConfig | None = None
    ) -> list[Output | RoleFailed]:
        """The outputs for several inputs, asked for in one call; a failure in the place of one left out.

        Raises:
            Exception: as `invoke`, where the whole call failed.
        """
        return self._drive(self._talk_of_all(inputs, config), config)

    async def atogether(
        self, inputs: Sequence[Input], config: RunnableConfig | None = None
    ) -> list[Output | RoleFailed]:
        """Awaitable `together`."""
        return await self._adrive(self._talk_of_all(inputs, config), config)

    def _drive(self, talk: Generator[_Request, Any, Result], config: RunnableConfig | None) -> Result:
        config = ensure_config(config)
        return drive(talk, lambda asked: asked.runnable.invoke(asked.messages, config))

    async def _adrive(self, talk: Generator[_Request, Any, Result], config: RunnableConfig | None) -> Result:
        config = ensure_config(config)
        return await adrive(talk, lambda asked: asked.runnable.ainvoke(asked.messages, config))

    def _talk(self, value: Input, config: RunnableConfig | None) -> Generator[_Request, Any, Output]:
        prompt = self._prompts_of(config).render(self.role, **value.placeholders())
        return (yield from self._asking.talk(prompt, {"zone": _zone(value)}))

    def _talk_of_all(
        self, inputs: Sequence[Input], config: RunnableConfig | None
    ) -> Generator[_Request, Any, list[Output | RoleFailed]]:
        prompts = self._prompts_of(config)
        shown = [prompts.render(self.role, **value.placeholders()) for value in inputs]
        cases = [mark("case", {"n": str(n)}, f"\n{one[-1].text}\n") for n, one in enumerate(shown, 1)]
        told = [*(message.text for message in shown[0][:-1]), _CASES]
        prompt = [SystemMessage("\n\n".join(told)), HumanMessage("\n\n".join(cases))]
        reply = yield from self._asking_all.talk(prompt, {"zone": _zone(inputs[0])})
        given = {case.n: case.reply for case in reply.cases}
        left_out = RoleFailed(self.role, "the reply left this case out", "")
        return [given.get(n, left_out) for n in range(1, len(inputs) + 1)]

    @cached_property
    def _asking_all(self) -> "_Asking[Any]":
        case = create_model("Case", __base__=RoleOutput, n=(int, ...), reply=(self.output, ...))
        cases = create_model(
            "Cases",
            __base__=RoleOutput,
            __doc__=self.output.__doc__,
            cases=(list[case], ...),
        )
        return _Asking(self.role, cases, self.model)

    def _prompts_of(self, config: RunnableConfig | None) -> PromptSet:
        own = ((config or {}).get("configurable") or {}).get(PROMPTS)
        if not own:
            return self.prompts
        if not isinstance(own, Mapping):
            raise PromptError(f"{PROMPTS} must map role names to prompt texts, got {type(own).__name__}")
        return self.prompts.overlay(own)


class _Asking(Generic[Output]):
    """Asks a model for one kind of output, by the ladder."""

    def __init__(self, role: str, output: type[Output], model: BaseChatModel) -> None:
        self.role, self.output, self.model = role, output, model
        self._schema = strict_schema(output, role)
        self._rungs = _rungs(model, self._schema)
        self._rung = 0

    @property
    def rung(self) -> str:
        return self._rungs[self._rung].name

    def talk(self, prompt: list[BaseMessage], context: Mapping[str, Any]) -> Generator[_Request, Any, Output]:
        """The whole exchange: ask, enlarge the budget if the reply is cut, read, ask once more."""
        excerpt = ""
        try:
            reply = yield from self._whole_reply(prompt)
            excerpt = _excerpt(reply)
            try:
                return self._read(reply, context)
            except Unreadable as error:
                again = [*prompt, *_objection(reply, str(error), self._schema)]
            reply = yield from self._whole_reply(again)
            excerpt = _excerpt(reply)
            return self._read(reply, context)
        except (NoAnswer, Unreadable) as error:
            raise RoleFailed(self.role, str(error), excerpt) from error

    def _read(self, reply: BaseMessage, context: Mapping[str, Any]) -> Output:
        if not was_cut(reply):
            return read_reply(reply, self.output, context=context)
        output = complete_items(reply, self.output, context=context)
        output._cut = True
        _log.warning("role %s: reply cut by the token limit, only its complete items are used", self.role)
        return output

    def _whole_reply(self, messages: list[BaseMessage]) -> Generator[_Request, Any, BaseMessage]:
        """A reply; where the token limit cut it, one more attempt with a larger limit."""
        reply = yield from self._climb(messages)
        larger = _with_larger_budget(self.model, output_tokens(reply)) if was_cut(reply) else None
        if larger is None:
            return reply
        rung = _rungs(larger, self._schema)[self._rung]
        try:
            return (yield from self._ask(rung, messages))
        except Exception as error:
            if not rejects_budget(error):
                raise
            return reply

    def _climb(self, messages: list[BaseMessage]) -> Generator[_Request, Any, BaseMessage]:
        """The reply on the first rung that the server accepts."""
        at = self._rung
        while True:
            rung = self._rungs[at]
            try:
                reply = yield from self._ask(rung, messages)
            except Exception as error:
                if at + 1 == len(self._rungs) or not rejects_rung(error, rung.name):
                    raise
                _log.info("role %s: the server does not take %s, going on without", self.role, rung.name)
                at += 1
            else:
                self._rung = max(self._rung, at)
                return reply

    def _ask(self, rung: _Rung, messages: list[BaseMessage]) -> Generator[_Request, Any, BaseMessage]:
        asked = messages if rung.name != "text" else _with_outline(messages, self._schema)
        try:
            reply = yield _Request(rung.runnable, asked)
        except Exception as error:
            reply = reply_in_error(error)
            if reply is None:
                raise
        raw = reply["raw"] if isinstance(reply, dict) else reply
        if not isinstance(raw, BaseMessage):
            raise Unreadable(f"the model gave a {type(raw).__name__}, not a message")
        return raw


def model_label(model: BaseChatModel) -> str:
    """The name a chat model goes by, else its class."""
    named = getattr(model, "model_name", None) or getattr(model, "model", None)
    return named if isinstance(named, str) else type(model).__name__


def _rungs(model: BaseChatModel, schema: dict[str, Any]) -> list[_Rung]:
    """The rungs this model class offers, best first. What its server accepts shows when it is asked."""
    rungs: list[_Rung] = []
    bindings: dict[str, Callable[[], Runnable[Any, Any]]] = {
        "json_schema": lambda: _with_schema(model, schema),
        "tools": lambda: model.bind_tools([schema], tool_choice=schema["title"]),
    }
    for name, bind in bindings.items():
        try:
            rungs.append(_Rung(name, bind()))
        except (NotImplementedError, TypeError, ValueError) as error:
            _log.debug("%s offers no %s: %s", type(model).__name__, name, error)
    return [*rungs, _Rung("text", model)]


def _with_schema(model: BaseChatModel, schema: dict[str, Any]) -> Runnable[Any, Any]:
    """The model with replies after the schema.

    On OpenAI's chat completions the schema is a plain part of the request: the client would copy it each
    time and read each reply twice, which costs as much again as all the rest of a call.
    """
    if not hasattr(model, "extra_body") or any(getattr(model, name, None) for name in _RESPONSES_API):
        # A dict schema: with a pydantic one the SDK validates, and raises even with include_raw.
        return model.with_structured_output(schema, method="json_schema", strict=True, include_raw=True)
    named = {"name": schema["title"], "schema": schema, "strict": True}
    wanted = {"response_format": {"type": "json_schema", "json_schema": named}}
    return model.bind(extra_body={**(model.extra_body or {}), **wanted})


def _with_larger_budget(model: BaseChatModel, used: int) -> BaseChatModel | None:
    """The model with at least twice the output tokens, None where it has no such setting."""
    for name in _BUDGET_FIELDS:
        if name in type(model).model_fields:
            budget = max(_MIN_BUDGET, 2 * max(used, getattr(model, name) or 0))
            return model.model_copy(update={name: budget})
    return None


def _with_outline(messages: list[BaseMessage], schema: dict[str, Any]) -> list[BaseMessage]:
    """The messages with the output's outline after the instructions, where it keeps their prefix stable."""
    wanted = f"Reply with {_ONE_OBJECT}\n{outline(schema)}"
    if isinstance(messages[0], SystemMessage):
        return [SystemMessage(f"{messages[0].text}\n\n{wanted}"), *messages[1:]]
    return [SystemMessage(wanted), *messages]


def _objection(reply: BaseMessage, why: str, schema: dict[str, Any]) -> list[BaseMessage]:
    """What is added to ask once more: the reply, and what is wrong with it."""
    said = reply_words(reply)[:_SHOWN_BACK]
    objection = HumanMessage(
        f"This reply cannot be used: {why}\nReply again, with {_ONE_OBJECT}\n{outline(schema)}"
    )
    return [AIMessage(said), objection] if said else [objection]


def _excerpt(reply: BaseMessage) -> str:
    return reply_words(reply)[:_EXCERPT]


def _zone(value: RoleInput) -> Any:
    """The zone of the conversation: that of its turns, else of the present moment."""
    for name in ("turns", "items", "window"):
        turns = [view for view in getattr(value, name, []) if isinstance(view, TurnView)]
        if turns:
            return turns[0].time.tzinfo
    now = getattr(value, "now", None)
    return now.tzinfo if now else None
