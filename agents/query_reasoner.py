"""Query-Reasoner: one new query that closes the named gap (MemMA 3).

Where it fails the search ends, and the Answerer takes what was found.
"""

from pydantic import Field
from typing_extensions import override

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
        values = super().placeholders()
        values["time_need"] = values.pop("needs_time")
        return values


class QueryReasonerOutput(RoleOutput):
    """The next query; a repeat of a tried one ends the loop. `query` empty: nothing left to try."""

    query: str
    speaker: str | None = Field(None, description="whose words to look for")
    why: str = ""
