"""Guide: the Meta-Thinker before construction, what to keep of a chunk (MemMA 3).

Where it fails the Constructor reads the chunk without guidance.
"""

from pydantic import AwareDatetime

from memcycle.agents.views import NONE, MemoryView, RoleInput, RoleOutput, TurnView, shown


class GuideInput(RoleInput):
    """The chunk about to be constructed and what memory holds near it."""

    turns: list[TurnView]
    memories: list[MemoryView] = []
    now: AwareDatetime


class GuideOutput(RoleOutput):
    """Guidance for the Constructor: every fact to keep, what memory already says, what conflicts."""

    keep: list[str] = []
    redundant: list[str] = []
    conflicts: list[str] = []

    def markup(self) -> str:
        """As the Constructor's prompt shows it."""
        parts = (("Keep", self.keep), ("Already stored", self.redundant), ("In conflict", self.conflicts))
        return "\n".join(f"{title}:\n{shown(texts)}" for title, texts in parts if texts) or NONE
