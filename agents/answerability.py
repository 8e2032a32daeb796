"""Answerability: the Meta-Thinker before an answer, whether the evidence suffices (MemMA 3).

Where it fails the search ends, and the Answerer takes what was found.
"""

from pydantic import AwareDatetime, Field

from memcycle.agents.views import MemoryView, RoleInput, RoleOutput, TurnView


class AnswerabilityInput(RoleInput):
    """A bounded view of the evidence for a question."""

    question: str
    evidence: list[MemoryView]
    window: list[TurnView] = []
    tried: list[str] = []
    round: int = 0
    now: AwareDatetime


class AnswerabilityOutput(RoleOutput):
    """Blocking-gap test: only a gap that would change the short answer blocks."""

    answerable: bool
    gap: str = Field("", description="the one missing piece, empty when answerable")
    speaker: str | None = Field(None, description="the person whose words are missing")
    needs_time: bool = Field(False, description="the gap is a date or a time")
    avoid: list[str] = Field([], description="terms that led nowhere")
    why: str = ""
