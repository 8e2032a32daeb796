"""A supervisor of two agents that share what they know of a user and keep a private workspace each.

The desk recalls from the shared workspace, hands the question and that knowledge to one of two agents, and
remembers there what the user said. Each agent has memory middleware over a workspace of its own: what it
said and was told stands there, out of the other's reach. All of it is one home, and one user's.

    pip install 'memcycle[agents]'
    OPENAI_API_KEY=... python examples/supervisor.py ann "I am allergic to nuts." "What can I cook tonight?"
"""

import sys
from dataclasses import dataclass
from typing import Any, Literal

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from memcycle import Memory
from memcycle.graph.memory import embed
from memcycle.graph.node import nested
from memcycle.integrations import MemoryMiddleware

Expert = Literal["travel", "kitchen"]

FOOD = ("cook", "eat", "recipe", "dinner", "lunch", "breakfast", "food", "allerg", "taste")


@dataclass(frozen=True)
class Caller:
    """The context of a run, as this program has it: memcycle learns from it whose memory is meant."""

    customer: str


class Desk(TypedDict, total=False):
    """The desk's own state: neither its keys nor its context are memcycle's."""

    ask: str
    shared: dict[str, Any]
    answer: str


def build_desk(model: BaseChatModel, memory: Memory) -> StateGraph[Desk, Caller, Desk, Desk]:
    """The supervisor's graph, to be compiled with whatever checkpointer is at hand.

    Args:
        model: What both agents speak with.
        memory: One home; the graphs and both agents share its store.
    """
    desk = StateGraph(Desk, context_schema=Caller)
    desk.add_node(
        "recall",
        embed(
            memory.graphs["recall"],
            read={"question": "ask"},
            write={"shared": "answer"},
            scope=lambda caller: {"user": caller.customer, "workspace": "shared"},
            evidence_only=True,
        ),
    )
    desk.add_node("travel", expert("travel", "You plan journeys.", model, memory))
    desk.add_node("kitchen", expert("kitchen", "You plan meals.", model, memory))
    desk.add_node(
        "remember",
        embed(
            memory.graphs["remember"],
            read=lambda state: {"messages": [("user", state["ask"])]},
            write=lambda _: {},
            scope=lambda caller: {"user": caller.customer, "workspace": "shared"},
        ),
    )
    desk.add_edge(START, "recall")
    desk.add_conditional_edges("recall", choose, ["travel", "kitchen"])
    desk.add_edge("travel", "remember")
    desk.add_edge("kitchen", "remember")
    desk.add_edge("remember", END)
    return desk


def choose(state: Desk) -> Expert:
    """Who answers. A model could say; a few words do here."""
    return "kitchen" if any(word in state["ask"].casefold() for word in FOOD) else "travel"


def expert(name: Expert, task: str, model: BaseChatModel, memory: Memory) -> Any:
    """An agent with a private workspace, as a node of the desk."""
    private = MemoryMiddleware(memory, scope=lambda caller: {"user": caller.customer, "workspace": name})
    agent: CompiledStateGraph[Any, Any, Any, Any] = create_agent(
        model, system_prompt=task, middleware=[private], context_schema=Caller, name=name
    )

    def hand_over(state: Desk) -> dict[str, Any]:
        known = [f"- {one['text']}" for one in state["shared"]["evidence"]]
        note = "\n".join(["What the desk knows of this customer:", *(known or ["- nothing yet"])])
        return {"messages": [("system", note), ("user", state["ask"])]}

    return nested(hand_over, agent, lambda out: {"answer": out["messages"][-1].text})


def main(customer: str, *questions: str) -> None:
    """Asks one question after another in one thread; what was said in it is known in the next."""
    with Memory.open("supervisor-home") as memory:
        graph = build_desk(ChatOpenAI(model="gpt-4o-mini"), memory).compile(checkpointer=InMemorySaver())
        for question in questions:
            thread: Any = {"configurable": {"thread_id": "today"}}
            print(graph.invoke({"ask": question}, thread, context=Caller(customer))["answer"])  # noqa: T201


if __name__ == "__main__":
    if len(sys.argv) < 3:  # noqa: PLR2004 - a customer and a question
        sys.exit(__doc__)
    main(*sys.argv[1:])
