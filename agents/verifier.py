"""Verifier: a second look at an unknown or unsure answer (EvolveMem 3.2, answer verification).

Where it fails the first answer stands.
"""

from pydantic import AwareDatetime, Field
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import override

from memcycle.agents.answerer import Style
from memcycle.agents.views import MemoryView, RoleInput, RoleOutput, TurnView


class VerifierInput(RoleInput):
    """The answer with the evidence it was made from, chronological, numbered from 0.

    Attributes:
        answer: What was answered; where not `answerable`, how it abstained.
        candidates: True weighs two or three possible answers against each other, False checks this one.
    """

    question: str
    answer: str
    answerable: bool
    evidence: list[MemoryView]
    window: list[TurnView] = []
    style: Style = "short"
    candidates: bool = False
    now: AwareDatetime

    @override
    def placeholders(self) -> dict[str, str]:
        values = super().placeholders()
        del values["candidates"]
        return {**values, "way": "multi_candidate" if self.candidates else "strict"}


class VerifierOutput(RoleOutput):
    """The answer that stands after the second look: confirmed, corrected, or an abstention.

    Attributes:
        considered: The possible answers that were weighed, before one is chosen.
        answer, answerable, citations, confidence, quote, extractive: As the Answerer's.
    """

    considered: list[str] = []
    answer: str
    answerable: bool
    citations: list[int] = []
    confidence: float = Field(0.5, ge=0, le=1)
    quote: str = ""
    extractive: SkipJsonSchema[bool] = False
