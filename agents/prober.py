"""Prober: questions a session's memory must be able to answer (MemMA 3.4, appendix G).

Where it fails the session is committed, marked unverified.
"""

from pydantic import AwareDatetime, Field

from memcycle.agents.views import MemoryView, RoleInput, RoleOutput, TurnView
from memcycle.core.probe import ProbeKind


class ProberInput(RoleInput):
    """The session's turns, numbered from 1; nothing that was stored of them is shown.

    Attributes:
        memories: What earlier sessions left, numbered from 0, as context for cross-session probes.
        count: How many probes to make (MemMA J).
    """

    turns: list[TurnView]
    memories: list[MemoryView] = []
    count: int = Field(ge=1)
    now: AwareDatetime


class ProbeDraft(RoleOutput):
    """One question with the answer that turn `turn` supports."""

    question: str = Field(description="stands alone: names instead of pronouns, no 'in this conversation'")
    answer: str = Field(description="a clause with the detail asked for, not a keyword; dates absolute")
    turn: int = Field(description="number of the turn that supports the answer")
    kind: ProbeKind = "single-hop"


class ProberOutput(RoleOutput):
    """Probes; none where the session holds nothing worth asking for."""

    probes: list[ProbeDraft]
