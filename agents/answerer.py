"""Answerer: the answer, from the evidence and nothing else.

Where it fails the evidence is given, with a plain sentence that it could not be phrased.
"""

from typing import Literal

from pydantic import AwareDatetime, Field
from pydantic.json_schema import SkipJsonSchema

from memcycle.agents.views import MemoryView, RoleInput, RoleOutput, TurnView
from memcycle.core.theta import AnswerStyle

Style = Literal["short", "sentence"] | AnswerStyle
"""How an answer is phrased: of the settings, or of theta."""


class AnswererInput(RoleInput):
    """The question with its evidence, chronological, numbered from 0."""

    question: str
    evidence: list[MemoryView]
    window: list[TurnView] = []
    style: Style = "short"
    now: AwareDatetime


class AnswererOutput(RoleOutput):
    """The answer.

    Attributes:
        answer: In the language of the question; when abstaining, a sentence that says so.
        answerable: False: the evidence does not hold the answer.
        citations: Numbers of the evidence it rests on, most important first.
        quote: The words it rests on. extractive: True when no model phrased it.
    """

    answer: str
    answerable: bool
    citations: list[int] = []
    confidence: float = Field(0.5, ge=0, le=1)
    quote: str = ""
    extractive: SkipJsonSchema[bool] = False  # for the rules to set; models are not asked
