"""The graphs: remember, recall, session, and memory, their parent."""

from importlib import import_module
from typing import Any

_BUILDERS = {
    "build_memory": "memcycle.graph.memory",
    "build_recall": "memcycle.graph.recall.graph",
    "build_remember": "memcycle.graph.remember.graph",
    "build_session": "memcycle.graph.session.graph",
}


def __getattr__(name: str) -> Any:
    # Loaded when named: whoever wants the context of a run alone does without LangGraph.
    if name not in _BUILDERS:
        raise AttributeError(f"module 'memcycle.graph' has no attribute {name!r}")
    return getattr(import_module(_BUILDERS[name]), name)
