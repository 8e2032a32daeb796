"""memcycle for LangChain: middleware and tools for agents, a retriever, instructions for chains.

Each name is loaded when it is first used. `MemoryMiddleware` needs the extra `agents`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memcycle.integrations.middleware import MemoryMiddleware
    from memcycle.integrations.retriever import MemoryRetriever, memory_instructions
    from memcycle.integrations.tools import MemoryToolkit, memory_tools

__all__ = ["MemoryMiddleware", "MemoryRetriever", "MemoryToolkit", "memory_instructions", "memory_tools"]

_HOMES = {
    "MemoryMiddleware": "middleware",
    "MemoryRetriever": "retriever",
    "MemoryToolkit": "tools",
    "memory_instructions": "retriever",
    "memory_tools": "tools",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memcycle.integrations' has no attribute {name!r}")
    return getattr(import_module(f"memcycle.integrations.{_HOMES[name]}"), name)
