"""The program graph: a tree of versions grown from a root (MemPro, arXiv 2606.00619, section 3)."""

from collections.abc import Callable, Hashable

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memcycle.agents.roles import Roles
from memcycle.evolution.lab import Lab, lab_opener
from memcycle.evolution.program.nodes import Growing, ProgramInput, ProgramOutput, ProgramState, after_record
from memcycle.graph.node import Inline, Node

ProgramGraph = CompiledStateGraph[ProgramState, None, ProgramInput, ProgramOutput]


def build_program(
    roles: Roles | None = None, lab: "Lab | Callable[[ProgramState], Lab] | None" = None
) -> ProgramGraph:
    """The graph that grows a tree of runnable versions.

    select -> create -> evaluate -> assess -> record, and again. `select` may go back to any version that was
    not discarded; `create` reads the failures of its training questions alone; whether the child is accepted
    is decided by the guard split. Every version is a folder that anyone can run (`Pipeline`). The held-out
    split is no part of this. Compile it with a checkpointer and a run that was killed goes on where it was;
    a question whose record is on disk is not asked again.

    Args:
        roles: Who diagnoses; the rules by default. lab: as of `build_evolve`.
    """
    given = lab or lab_opener()
    opened: Callable[[ProgramState], Lab] = given if callable(given) else (lambda _: given)
    nodes = Growing(opened, roles or Roles.rules())
    builder = StateGraph(ProgramState, input_schema=ProgramInput, output_schema=ProgramOutput)
    for name in ("plant", "select", "create", "evaluate", "assess", "record"):
        builder.add_node(name, Node(name, getattr(nodes, name)))
    recorded: dict[Hashable, str] = {"next version": "select", "done": END}
    builder.add_edge(START, "plant")
    for one, then in (("plant", "select"), ("select", "create"), ("create", "evaluate")):
        builder.add_edge(one, then)
    builder.add_edge("evaluate", "assess")
    builder.add_edge("assess", "record")
    builder.add_conditional_edges(
        "record", Inline(lambda state: after_record(state, opened(state).task)), recorded
    )
    return builder.compile(name="program")
