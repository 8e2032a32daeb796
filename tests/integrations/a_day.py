"""A process of one day: through each door a user says something, in that day's thread, and the process ends.

`python -m tests.integrations.a_day HOME MINUTES THREAD TEXT` prints, by door, what the model was sent, and
how far each door's sessions are. Each door has a user of its own.
"""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import END, START, MessagesState, StateGraph

from memcycle import Memory, Settings, build_memory, build_recall, build_remember
from memcycle.core.world import World
from memcycle.graph.memory import embed
from memcycle.integrations import MemoryMiddleware, memory_tools

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


class Noting(BaseChatModel):
    """Says a word, or calls the tools it is told to; notes all it is sent."""

    tools_to_call: list[dict[str, Any]] = []
    sent: list[str] = []

    @property
    def _llm_type(self) -> str:
        return "noting"

    def bind_tools(self, tools: Any, **_: Any) -> "Noting":
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.sent.append("\n".join(str(message.text) for message in messages))
        calls = [self.tools_to_call.pop(0)] if self.tools_to_call else []
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Well.", tool_calls=calls))])


class Plain(MessagesState, total=False):
    """State of a graph of one's own."""

    ask: str
    said: list[AnyMessage]
    known: dict[str, Any]
    done: dict[str, Any]


def main(home: str, minutes: str, thread: str, text: str) -> dict[str, Any]:
    """What the model was sent through each door, and the sessions of its user."""
    world = World(now=lambda: MONDAY + timedelta(minutes=float(minutes)))
    config: Any = {"configurable": {"thread_id": thread}}
    sent: dict[str, str] = {}
    with Memory.open(settings=Settings(home=Path(home), shards=2), world=world) as memory:
        model = Noting(sent=[])
        agent = create_agent(model, middleware=[MemoryMiddleware(memory, recall_timeout=60)])
        agent.invoke({"messages": [("user", text)]}, config, context={"user": "middleware"})
        sent["middleware"] = model.sent[-1]

        model = Noting(
            sent=[], tools_to_call=[call("remember", text=text), call("search_memory", query=text)]
        )
        agent = create_agent(model, tools=memory_tools(memory))
        agent.invoke({"messages": [("user", text)]}, config, context={"user": "tools"})
        sent["tools"] = model.sent[-1]

        parent = StateGraph(MessagesState)
        parent.add_node("memory", build_memory(bank=memory.bank))
        parent.add_edge(START, "memory")
        compiled: Any = parent.compile()
        compiled.invoke({"messages": [("user", text)]}, config, context={"user": "nested", "other": True})
        found = compiled.invoke({"messages": [("user", text)]}, config, context={"user": "nested"})
        sent["nested"] = "\n".join(str(message.text) for message in found["messages"])

        out = plain(memory).invoke({"ask": text, "said": [("user", text)]}, config, context={"user": "plain"})
        sent["plain"] = "\n".join(one["text"] for one in out["known"]["evidence"])
        sessions = {door: {one.session: one.status for one in memory.sessions(user=door)} for door in sent}
    return {"sent": sent, "sessions": sessions}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A call of a tool, as a model makes it."""
    return {"name": name, "args": arguments, "id": f"call-{name}", "type": "tool_call"}


def plain(memory: Memory) -> Any:
    """A graph of one's own, which recalls first and remembers last."""
    graph = StateGraph(Plain)
    recall = build_recall(bank=memory.bank)
    remember = build_remember(bank=memory.bank)
    graph.add_node(
        "recall", embed(recall, read={"question": "ask"}, write={"known": "answer"}, evidence_only=True)
    )
    graph.add_node("remember", embed(remember, read={"messages": "said"}, write={"done": "result"}))
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "remember")
    graph.add_edge("remember", END)
    return graph.compile()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:])))
