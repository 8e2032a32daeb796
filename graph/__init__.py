"""The graphs: remember, recall, session, and memory, their parent. Each is loaded when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memcycle.graph.memory import build_memory
    from memcycle.graph.recall.graph import build_recall
    from memcycle.graph.remember.graph import build_remember
    from memcycle.graph.session.graph import build_session

__all__ = ["build_memory", "build_recall", "build_remember", "build_session"]

_MODULES = {
    "build_memory": "memcycle.graph.memory",
    "build_recall": "memcycle.graph.recall.graph",
    "build_remember": "memcycle.graph.remember.graph",
    "build_session": "memcycle.graph.session.graph",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'memcycle.graph' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
