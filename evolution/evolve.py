"""The evolve graph: a configuration in, a better one out (EvolveMem, arXiv 2605.13941, section 3.3)."""

from collections.abc import Callable, Hashable

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memcycle.agents.roles import Roles
from memcycle.evolution.lab import Lab, lab_opener
from memcycle.evolution.theta.nodes import Evolving, after_evaluate, after_guard
from memcycle.evolution.theta.states import EvolveInput, EvolveOutput, EvolveState
from memcycle.graph.node import Inline, Node

EvolveGraph = CompiledStateGraph[EvolveState, None, EvolveInput, EvolveOutput]


def build_evolve(
    roles: Roles | None = None, lab: "Lab | Callable[[EvolveState], Lab] | None" = None
) -> EvolveGraph:
    """The graph that evolves a retrieval configuration by its own failures.

    evaluate -> diagnose -> propose -> guard, and, where the diagnosis names missing coverage, re-extract;
    then the next round. A round evaluates a configuration on the training and on the guard split. The
    Diagnoser reads the training failures alone; the guard decides by the guard split alone: it applies what
    is proposed, reverts to the best where the score dropped by more than tau, and explores with a seeded
    perturbation of the best after two flat rounds (gain below epsilon). It stops after R_max rounds, or when
    the round after an exploration is flat again. The paper stops where it would explore, after two flat
    rounds, and so would never explore; that is done otherwise here. The held-out split is no part of this.

    Compile it with a checkpointer and a run that was killed goes on with the round it was in; a question
    whose record is on disk is not asked again.

    Args:
        roles: Who diagnoses; the rules by default. Who runs recall is the lab's.
        lab: What evaluates configurations, or a callable that opens it; by default from the input's
            `request`, see `memcycle.evolution.task.Request`.
    """
    given = lab or lab_opener()
    opened: Callable[[EvolveState], Lab] = given if callable(given) else (lambda _: given)
    nodes = Evolving(opened, roles or Roles.rules())
    builder = StateGraph(EvolveState, input_schema=EvolveInput, output_schema=EvolveOutput)
    for name in ("evaluate", "diagnose", "propose", "guard", "re_extract"):
        builder.add_node(name, Node(name, getattr(nodes, name)))
    failures: dict[Hashable, str] = {"failures": "diagnose", "last round": "guard"}
    decided: dict[Hashable, str] = {"memory lacks": "re_extract", "next round": "evaluate", "stop": END}
    builder.add_edge(START, "evaluate")
    builder.add_conditional_edges(
        "evaluate", lambda state: after_evaluate(state, opened(state).task), failures
    )
    builder.add_edge("diagnose", "propose")
    builder.add_edge("propose", "guard")
    builder.add_conditional_edges("guard", Inline(after_guard), decided)
    builder.add_edge("re_extract", "evaluate")
    return builder.compile(name="evolve")
