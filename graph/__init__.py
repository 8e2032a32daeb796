"""The graphs: remember, recall, session, and memory, their parent."""

from memcycle.graph.memory import build_memory
from memcycle.graph.recall import build_recall
from memcycle.graph.remember import build_remember
from memcycle.graph.session import build_session

__all__ = ["build_memory", "build_recall", "build_remember", "build_session"]
