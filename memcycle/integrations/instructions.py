"""Memory for plain chains: the block that goes before a prompt, from whatever the chain passes on."""

from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.runtime import get_runtime

from memcycle.graph.context import ScopeOf
from memcycle.graph.scoping import parent_scope
from memcycle.integrations.asked import Asked, first_text
from memcycle.integrations.block import Recalled, memory_block
from memcycle.integrations.recalling import Recalling
from memcycle.memory import Memory

QUESTION_KEYS = ("question", "input", "query", "messages")


def memory_instructions(
    memory: Memory,
    *,
    scope: ScopeOf | None = None,
    recall_timeout: float = 3.0,
    k: int | None = None,
    token_budget: int | None = None,
) -> Runnable[Any, str]:
    """A runnable from what a chain is asked to the text of what is remembered. Sync and async.

    It takes text, a message, messages, a prompt value, or a dict with `question`, `input`, `query` or
    `messages`. Memory that is slow or fails is told as unavailable, and no error.

    Example:
        >>> chain = RunnablePassthrough.assign(memory=memory_instructions(memory)) | prompt | model
        >>> chain.invoke({"question": "Where do I live?"}, {"configurable": {"user_id": "ann"}})

    Args:
        memory: Where is looked.
        scope: Gives the scope, or its fields, from the context of the graph the chain runs in (None outside
            one); see `parent_scope`.
        recall_timeout: Seconds that are waited at most.
        k: Memories at most. token_budget: their tokens at most.
    """
    recalling = Recalling(memory, limit=recall_timeout, k=k, token_budget=token_budget)

    def asked(value: Any, config: RunnableConfig) -> Asked | None:
        whose = parent_scope(_context(), config, scope, user=memory.user, workspace=memory.workspace)
        question = first_text(value, QUESTION_KEYS)
        return Asked(whose, question) if question else None

    def run(value: Any, config: RunnableConfig) -> str:
        question = asked(value, config)
        return memory_block(recalling.recall(question) if question else Recalled("nothing"))

    async def arun(value: Any, config: RunnableConfig) -> str:
        question = asked(value, config)
        return memory_block(await recalling.arecall(question) if question else Recalled("nothing"))

    return RunnableLambda(run, afunc=arun, name="memory_instructions")


def _context() -> Any:
    """The context of the graph that is running; None outside one."""
    try:
        # Within a chain that runs in no graph there is no runtime: None, though it is typed as one.
        return getattr(get_runtime(), "context", None)
    except RuntimeError:
        return None
