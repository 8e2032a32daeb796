"""How a graph of ours is written down: each node once, with its event, and where each label leads."""

import inspect
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memcycle.graph.context import Context
from memcycle.graph.environment import Env
from memcycle.graph.events import EDGE, Edge, GraphName, Update, approval_asked, event_of
from memcycle.graph.node import INTERRUPT, Inline, Node

Route = Callable[..., Any]
"""`route(state)` or `route(state, policy)`: the label of the edge taken after a node. Pure."""


class Wiring:
    """A graph that is being put together; the first node added is the one it starts with."""

    def __init__(
        self,
        name: GraphName,
        env: Env,
        state: type,
        *,
        takes: type,
        gives: type,
        failed: Callable[[Any, Any], str] | None = None,
    ) -> None:
        """No node yet.

        Args:
            takes, gives: Types of its input and its output.
            failed: Of each node but the first, see `Node`.
        """
        self._name, self._env, self._failed = name, env, failed
        self._builder = StateGraph[Any, Context, Any, Any](
            state, context_schema=Context, input_schema=takes, output_schema=gives
        )
        self._edges: list[tuple[str, str | Mapping[str, str], Callable[[Any], Any]]] = []

    def add(
        self,
        name: str,
        body: Callable[..., Any] | Runnable[Any, Any],
        event: str | None = None,
        *,
        to: str | Mapping[str, str],
        route: Route | None = None,
        why: Route | None = None,
        state: type | None = None,
    ) -> None:
        """A node and the edges from it.

        Args:
            name: As it is drawn.
            body: `body(state, run)`, see `memcycle.graph.node`; or a runnable, which is taken as it is.
            event: Name of the event that is streamed of it; see `memcycle.graph.events`.
            to: The next node; with a route the next nodes by label. A node that is not added, since a switch
                leaves it out, is no edge's end.
            route: Which of the labels. why: the reason of that, for the event.
            state: Of a node that is sent something else than the graph's state.
        """
        taken, reason = self._of_state(route), self._of_state(why)
        if not isinstance(body, Runnable):
            made = self._event_of(name, event, taken, reason) if event is not None else None
            failed = self._failed if self._edges else None
            body = Node(name, body, run=self._env.run, event=made, failed=failed)
        self._builder.add_node(name, body, input_schema=state)
        self._edges.append((name, to, taken))

    def compile(self) -> CompiledStateGraph[Any, Context, Any, Any]:
        """The graph, without a checkpointer: a parent's is inherited."""
        self._builder.add_edge(START, self._edges[0][0])
        there = {END, *self._builder.nodes}
        for name, to, taken in self._edges:
            if isinstance(to, str):
                self._builder.add_edge(name, to)
            else:
                ends: dict[Hashable, str] = {label: end for label, end in to.items() if end in there}
                self._builder.add_conditional_edges(name, Inline(taken), ends)
        return self._builder.compile(name=self._name)

    def _of_state(self, route: Route | None) -> Callable[[Any], Any]:
        """A route as a function of the state alone; an empty label where there is none."""
        if route is None:
            return lambda _: ""
        if len(inspect.signature(route).parameters) == 1:
            return route

        def taken(state: Any) -> Any:
            return route(state, self._env.run(RunnableConfig()).policy(state.get("category")))

        taken.__name__ = route.__name__
        return taken

    def _event_of(
        self,
        name: str,
        event: str,
        taken: Callable[[Any], Any],
        reason: Callable[[Any], Any],
    ) -> Callable[[Any, Update], dict[str, Any] | None]:
        def made(state: Any, update: Update) -> dict[str, Any] | None:
            if INTERRUPT in update:
                fields = approval_asked(update[INTERRUPT])
            else:
                after = {**state, **update}
                fields = event_of(event, {**update, EDGE: Edge(taken(after), reason(after))})
            return {"graph": self._name, "node": name, **fields} if fields is not None else None

        return made
