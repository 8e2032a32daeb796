"""memcycle: long-term memory for LangGraph agents.

Importing the package loads nothing; each public name is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memcycle.agents.roles import Roles
    from memcycle.checkpoints import checkpointer
    from memcycle.core.errors import MemcycleError
    from memcycle.core.redaction import Redact
    from memcycle.core.scope import Scope
    from memcycle.core.settings import Approval, Budget, Settings, Verification
    from memcycle.core.theta import Theta
    from memcycle.core.turn import Turn
    from memcycle.graph.memory import build_memory, embed
    from memcycle.graph.recall.graph import build_recall
    from memcycle.graph.remember.graph import build_remember
    from memcycle.graph.session.graph import build_session
    from memcycle.memory import Memory
    from memcycle.prompts import PromptSet
    from memcycle.stores.langgraph_store import MemcycleStore

    __version__: str

__all__ = [
    "Approval",
    "Budget",
    "MemcycleError",
    "MemcycleStore",
    "Memory",
    "PromptSet",
    "Redact",
    "Roles",
    "Scope",
    "Settings",
    "Theta",
    "Turn",
    "Verification",
    "__version__",
    "build_memory",
    "build_recall",
    "build_remember",
    "build_session",
    "checkpointer",
    "embed",
]

_HOMES = {
    "Approval": "memcycle.core.settings",
    "Budget": "memcycle.core.settings",
    "Memory": "memcycle.memory",
    "MemcycleStore": "memcycle.stores.langgraph_store",
    "MemcycleError": "memcycle.core.errors",
    "PromptSet": "memcycle.prompts",
    "Redact": "memcycle.core.redaction",
    "Roles": "memcycle.agents.roles",
    "Scope": "memcycle.core.scope",
    "Settings": "memcycle.core.settings",
    "Theta": "memcycle.core.theta",
    "Turn": "memcycle.core.turn",
    "Verification": "memcycle.core.settings",
    "build_memory": "memcycle.graph.memory",
    "build_recall": "memcycle.graph.recall.graph",
    "build_remember": "memcycle.graph.remember.graph",
    "build_session": "memcycle.graph.session.graph",
    "checkpointer": "memcycle.checkpoints",
    "embed": "memcycle.graph.memory",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("memcycle")
    if name not in _HOMES:
        raise AttributeError(f"module 'memcycle' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
