"""Episode trigger: where one topic ends and the next begins (AMA 3.1).

Where it fails no episode ends, unless the open turns have become too many.
"""

from typing import Literal

from pydantic import Field
from typing_extensions import override

from memcycle.agents.views import NONE, RoleInput, RoleOutput, TurnView


class EpisodeTriggerInput(RoleInput):
    """The open segment: the turns since the last episode. `new` of them (the last ones) are of this chunk.

    Boundaries may only be put before or inside the new turns.
    """

    turns: list[TurnView]
    new: int

    @override
    def placeholders(self) -> dict[str, str]:
        new = [str(turn.n) for turn in self.turns[len(self.turns) - self.new :]] if self.new else []
        return {**super().placeholders(), "new": ", ".join(new) or NONE}


class Boundary(RoleOutput):
    """An episode ends with turn `after`."""

    after: int = Field(description="number of the last turn of the episode")
    reason: Literal["topic_shift", "request", "saturation", "gap", "farewell"]


class EpisodeTriggerOutput(RoleOutput):
    """Boundaries in order; empty when the topic goes on. When unsure, split."""

    boundaries: list[Boundary]
