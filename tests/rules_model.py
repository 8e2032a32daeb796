"""A chat model without latency, behind the real role runner: it answers each role as the rules would.

A model reads its input from the prompt; this one is handed the input that the prompt was made from, since
reading it back is no part of what is measured. Everything else is real: prompts are rendered, replies are
text that is parsed and validated.
"""

import json
from contextvars import ContextVar
from dataclasses import fields
from threading import Lock
from time import thread_time, time_ns
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from pydantic import PrivateAttr

from memcycle.agents.roles import OUTPUTS, Roles
from memcycle.agents.rules import RULES
from memcycle.agents.runner import ModelRole
from memcycle.agents.schema import strict_schema
from memcycle.core.language.token_count import token_counter
from memcycle.prompts import PromptSet
from tests.loopback_roles import only_asked

_ASKED: ContextVar[tuple[str, Any]] = ContextVar("asked")
"""The role asked now and the input its prompt was made from: each thread and each task has its own."""


class RulesModel(BaseChatModel):
    """Replies with the rules' output to what it is asked for, as JSON; several may ask at the same time.

    Probes are answered with their gold answers but for one in so many (`failing`), and every other question
    is answered (`sure`), or none; left out, as the rules would.
    """

    extra_body: dict[str, Any] | None = None
    """It takes a schema beside the prompt, so that no outline of the reply stands in it."""
    failing: int | None = None
    sure: bool | None = None
    _gold: dict[str, str] = PrivateAttr(default_factory=dict)
    _probes: int = PrivateAttr(0)

    _seconds: float = PrivateAttr(0.0)
    _counting: Lock = PrivateAttr(default_factory=Lock)

    @property
    def seconds(self) -> float:
        """Processor time spent on replies so far: a served model's work, not memcycle's own.

        Threads share the interpreter, so replies made side by side take the sum of their times.
        """
        return self._seconds

    @property
    def _llm_type(self) -> str:
        return "rules"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        started = thread_time()
        role, value = _ASKED.get()
        reply = json.dumps(self._reply(role, value))
        count = token_counter().count
        read, written = sum(count(message.text) for message in messages), count(reply)
        usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
        message = AIMessage(reply, usage_metadata=usage)
        with self._counting:
            self._seconds += thread_time() - started
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _reply(self, role: str, value: Any) -> Any:
        """What a model would say to an input, or to several at once: only what it is asked for."""
        if isinstance(value, list):
            return {"cases": [{"n": n, "reply": self._reply(role, one)} for n, one in enumerate(value, 1)]}
        made = RULES[role](value)
        if role == "prober":
            self._gold |= {probe.question: probe.answer for probe in made.probes}
        if role == "answerer":
            made = made.model_copy(update=self._answered(value.question))
        return only_asked(made.model_dump(mode="json"), strict_schema(OUTPUTS[role], role))

    def _answered(self, question: str) -> dict[str, Any]:
        """What is otherwise in an answer than the rules have it."""
        if self.failing is None or question not in self._gold:
            look_for = "" if self.sure in (None, True) else f"{question} {time_ns()}"
            return {} if self.sure is None else {"answerable": self.sure, "look_for": look_for}
        self._probes += 1
        if self._probes % self.failing == 0:
            return {"answerable": False, "answer": "Not in memory.", "citations": []}
        return {"answerable": True, "answer": self._gold[question]}


class _Asked(ModelRole[Any, Any]):
    """A role on a `RulesModel`, which is told what is asked."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> Any:  # noqa: A002
        token = _ASKED.set((self.role, input))
        try:
            return super().invoke(input, config, **more)
        finally:
            _ASKED.reset(token)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> Any:  # noqa: A002
        token = _ASKED.set((self.role, input))
        try:
            return await super().ainvoke(input, config, **more)
        finally:
            _ASKED.reset(token)

    def together(self, inputs: Any, config: RunnableConfig | None = None) -> Any:
        token = _ASKED.set((self.role, list(inputs)))
        try:
            return super().together(inputs, config)
        finally:
            _ASKED.reset(token)

    async def atogether(self, inputs: Any, config: RunnableConfig | None = None) -> Any:
        token = _ASKED.set((self.role, list(inputs)))
        try:
            return await super().atogether(inputs, config)
        finally:
            _ASKED.reset(token)


def roles_on(model: RulesModel) -> Roles:
    """All roles on this model, with the shipped prompts."""
    prompts = PromptSet.shipped()
    runnables: dict[str, Any] = {
        field.name: _Asked(field.name, OUTPUTS[field.name], model, prompts)
        for field in fields(Roles)
        if field.name in OUTPUTS
    }
    return Roles(**runnables, model_name="rules, asked as a model")
