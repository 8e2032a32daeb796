"""Memory as a LangChain retriever: documents with what they rest on in their metadata."""

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.runtime import get_runtime
from pydantic import ConfigDict, Field

from memcycle.core.arguments import checked
from memcycle.graph.context import ScopeOf, parent_scope
from memcycle.integrations.background import Recaller, call_detached, task_detached
from memcycle.integrations.messages import Recall, RecallRequest, first_text, memory_block
from memcycle.memory import Memory
from memcycle.results import Evidence


class MemoryRetriever(BaseRetriever):
    """Memories as documents, most important first. Sync and async.

    A document's id is the entry's id. Its metadata: `granularity` (raw, fact or episode), `turns` (ids),
    `score` (0 to 1), `speaker`, `time` (when it was said) and `event_time` (when it happened), both as ISO
    text or None.

    What fails is raised, as retrievers do. For many users, let each run name its own:
    `retriever.configurable_fields(user=ConfigurableField(id="user_id"))`.

    Example:
        >>> MemoryRetriever(memory=memory, user="ann", k=5).invoke("Where does she live?")

    Attributes:
        memory: Where it looks.
        user: Whose memory, by default the one `memory` was opened for. workspace: likewise.
        session: The session going on; with `Settings(visibility="session")` what it said is found too.
        k: Documents at most. token_budget: their tokens at most.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Memory
    user: str | None = None
    workspace: str | None = None
    session: str | None = None
    k: int | None = Field(default=None, ge=1, le=200)
    token_budget: int | None = Field(default=None, ge=50)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - the base class's signature
    ) -> list[Document]:
        found = call_detached(self.memory.recall, query, **self._options())
        return [document(one) for one in found.evidence]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002 - the base class's signature
    ) -> list[Document]:
        found = await task_detached(self.memory.arecall(query, **self._options()))
        return [document(one) for one in found.evidence]

    def _options(self) -> dict[str, Any]:
        names = ("user", "workspace", "session", "k", "token_budget")
        return {name: getattr(self, name) for name in names}


def document(one: Evidence) -> Document:
    """A memory as a document; its metadata is plain JSON."""
    about = one.model_dump(mode="json", include={"granularity", "turns", "score", "event_time"})
    time = one.time.isoformat() if one.time else None
    return Document(
        page_content=one.text, id=one.id, metadata={**about, "speaker": one.speaker, "time": time}
    )


QUESTION_KEYS = ("question", "input", "query", "messages")


@checked
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
    recaller = Recaller(memory, limit=recall_timeout, k=k, token_budget=token_budget)

    def request(value: Any, config: RunnableConfig) -> RecallRequest | None:
        whose = parent_scope(_context(), config, scope, user=memory.user, workspace=memory.workspace)
        question = first_text(value, QUESTION_KEYS)
        return RecallRequest(whose, question) if question else None

    def run(value: Any, config: RunnableConfig) -> str:
        wanted = request(value, config)
        return memory_block(recaller.recall(wanted) if wanted else Recall("nothing"))

    async def arun(value: Any, config: RunnableConfig) -> str:
        wanted = request(value, config)
        return memory_block(await recaller.arecall(wanted) if wanted else Recall("nothing"))

    return RunnableLambda(run, afunc=arun, name="memory_instructions")


def _context() -> Any:
    """The context of the graph that is running; None outside one."""
    try:
        # Within a chain that runs in no graph there is no runtime: None, though it is typed as one.
        return getattr(get_runtime(), "context", None)
    except RuntimeError:
        return None
