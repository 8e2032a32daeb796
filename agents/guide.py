"""Guide: the Meta-Thinker before construction, what to keep of a chunk (MemMA 3).

Where it fails the Constructor reads the chunk without guidance.
"""

from pydantic import AwareDatetime
from typing_extensions import override

from memcycle.agents.markup import memories_text, time_text, turns_text
from memcycle.agents.views import MemoryView, RoleInput, RoleOutput, TurnView


class GuideInput(RoleInput):
    """The chunk about to be constructed and what memory holds near it."""

    turns: list[TurnView]
    memories: list[MemoryView] = []
    now: AwareDatetime

    @override
    def placeholders(self) -> dict[str, str]:
        return {
            "turns": turns_text(self.turns),
            "memories": memories_text(self.memories),
            "now": time_text(self.now),
        }


class GuideOutput(RoleOutput):
    """Guidance for the Constructor: every fact to keep, what memory already says, what conflicts."""

    keep: list[str] = []
    redundant: list[str] = []
    conflicts: list[str] = []
