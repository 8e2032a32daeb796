"""Query-Reasoner: one new query that closes the named gap (MemMA 3).

Where it fails the search ends, and the Answerer takes what was found.
"""

import json

from pydantic import Field
from typing_extensions import override

from memcycle.agents.markup import NONE, escape, list_text, memories_text
from memcycle.agents.views import MemoryView, RoleInput, RoleOutput


class QueryReasonerInput(RoleInput):
    """The gap the Meta-Thinker named, and what was tried."""

    question: str
    gap: str
    tried: list[str]
    evidence: list[MemoryView] = []
    avoid: list[str] = []
    speaker: str | None = None
    needs_time: bool = False

    @override
    def placeholders(self) -> dict[str, str]:
        return {
            "question": escape(self.question),
            "gap": escape(self.gap),
            "memories": memories_text(self.evidence),
            "tried": list_text(self.tried),
            "avoid": list_text(self.avoid),
            "speaker": escape(self.speaker or NONE),
            "time_need": json.dumps(self.needs_time),
        }


class QueryReasonerOutput(RoleOutput):
    """The next query; a repeat of a tried one ends the loop. `query` empty: nothing left to try."""

    query: str
    speaker: str | None = Field(None, description="whose words to look for")
    why: str = ""
