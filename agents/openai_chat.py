"""`ChatOpenAI` whose completions cost less of its own time: what is asked and told goes as plain JSON."""

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langchain_openai import ChatOpenAI

_PATH = "/chat/completions"
_BY_THE_SDK = {"extra_headers", "extra_query", "timeout"}
"""Arguments of a call that are no part of its body."""


class PlainChatOpenAI(ChatOpenAI):
    """`ChatOpenAI` that takes the shortest way for a completion which is not streamed.

    On its way a request is matched with the type of every kind of message the SDK knows, and a reply is made
    into objects, parsed and taken apart again in a thread: some 5 ms of processor time a call, which is what
    many users at once wait for. Here the SDK sends the body as it is and gives the reply as it came; keys,
    retries, timeouts and errors are the SDK's, and all else (the Responses API, streams, what sets headers of
    its own) goes the usual way.
    """

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        body = self._body(messages, stop, kwargs)
        if body is None:
            return super()._generate(messages, stop, run_manager, **kwargs)
        return self._result(self.root_client.post(_PATH, body=body, cast_to=object))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        body = self._body(messages, stop, kwargs)
        if body is None:
            return await super()._agenerate(messages, stop, run_manager, **kwargs)
        return self._result(await self.root_async_client.post(_PATH, body=body, cast_to=object))

    def _body(
        self, messages: list[BaseMessage], stop: list[str] | None, options: dict[str, Any]
    ) -> dict[str, Any] | None:
        """The request's body, None where it is more than a body."""
        payload = self._get_request_payload(messages, stop=stop, **options)
        plain = (
            not self._use_responses_api(payload)
            and not self.include_response_headers
            and not _BY_THE_SDK & payload.keys()
            and isinstance(payload.get("response_format", {}), dict)
        )
        extra = payload.pop("extra_body", None) or {}
        return {**payload, **extra} if plain else None

    def _result(self, reply: Any) -> ChatResult:
        result = self._create_chat_result(reply)
        for choice, generation in zip(reply["choices"], result.generations, strict=True):
            if refusal := choice["message"].get("refusal"):
                generation.message.additional_kwargs["refusal"] = refusal
        return result
