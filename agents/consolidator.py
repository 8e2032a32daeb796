"""Consolidator: whether a proposed fact is new, known, or part of a stored one (MemMA 3.4).

Where it fails the fact is inserted, unless it is stored word for word.
"""

from typing import Literal

from pydantic import AwareDatetime, Field
from typing_extensions import override

from memcycle.agents.views import MemoryView, RoleInput, RoleOutput, TurnView, escape, mark, shown, time_text
from memcycle.core.language.date_forms import Precision


class ConsolidatorInput(RoleInput):
    """A proposed fact beside the turn that states it and the stored facts nearest to it.

    Attributes:
        text: The proposal. turn: its source, number 1. event_time: when it happened, where known.
        memories: Nearest stored facts, earlier proposals among them, numbered from 0.
    """

    text: str
    speaker: str | None = None
    turn: TurnView
    event_time: AwareDatetime | None = None
    event_precision: Precision | None = None
    memories: list[MemoryView]
    now: AwareDatetime

    @override
    def placeholders(self) -> dict[str, str]:
        about = {
            "speaker": self.speaker,
            "happened": time_text(self.event_time) if self.event_time else None,
            "precision": self.event_precision,
        }
        return {
            "proposal": mark("proposal", about, escape(self.text)),
            "turn": shown(self.turn),
            "memories": shown(self.memories),
            "now": shown(self.now),
        }


class ConsolidatorOutput(RoleOutput):
    """What to do with the proposal.

    Attributes:
        decision: SKIP: `memory` says all of it. MERGE: it and `memory` become one statement, `text`.
            INSERT: it is another fact, or of another date or occurrence. In doubt INSERT.
    """

    decision: Literal["SKIP", "MERGE", "INSERT"]
    memory: int | None = Field(None, description="number of the stored memory, for SKIP and MERGE")
    text: str = Field("", description="MERGE: one statement that says what both say, nothing twice")
    why: str = ""
