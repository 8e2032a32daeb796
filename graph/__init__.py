"""The graphs: remember, recall, session, and memory, their parent. Each is loaded when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memcycle.graph.memory import build_memory
    from memcycle.graph.recall import build_recall
    from memcycle.graph.remember import build_remember
    from memcycle.graph.session import build_session

__all__ = ["build_memory", "build_recall", "build_remember", "build_session"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'memcycle.graph' has no attribute {name!r}")
    return getattr(import_module(f"memcycle.graph.{name.removeprefix('build_')}"), name)
