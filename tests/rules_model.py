"""A chat model without latency, behind the real role runner: it answers each role as the rules would.

A model reads its input from the prompt; this one is handed the input that the prompt was made from, since
reading it back is no part of what is measured. Everything else is real: prompts are rendered, replies are
text that is parsed and validated. It offers neither structured output nor tools, so the outline of the reply
stands in the prompt and is counted.
"""

from contextvars import ContextVar
from dataclasses import fields
from threading import Lock
from time import thread_time
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
from memcycle.core.language.tokens import approx_tokens
from memcycle.prompts import PromptSet

_ASKED: ContextVar[tuple[str, Any]] = ContextVar("asked")
"""The role asked now and the input its prompt was made from: each thread and each task has its own."""


class RulesModel(BaseChatModel):
    """Replies with the rules' output to what it is asked for, as JSON; several may ask at the same time.

    Tokens are counted approximately, see `approx_tokens`.
    """

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
        reply = RULES[role](value).model_dump_json()
        read, written = sum(approx_tokens(message.text) for message in messages), approx_tokens(reply)
        usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
        message = AIMessage(reply, usage_metadata=usage)
        with self._counting:
            self._seconds += thread_time() - started
        return ChatResult(generations=[ChatGeneration(message=message)])


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


def roles_on(model: RulesModel) -> Roles:
    """All roles on this model, with the shipped prompts."""
    prompts = PromptSet.shipped()
    runnables: dict[str, Any] = {
        field.name: _Asked(field.name, OUTPUTS[field.name], model, prompts)
        for field in fields(Roles)
        if field.name in OUTPUTS
    }
    return Roles(**runnables, model_name="rules, asked as a model")
