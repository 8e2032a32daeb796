"""Answerer: the answer, from the evidence and nothing else.

Where it fails the evidence is given, with a plain sentence that it could not be phrased.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import AwareDatetime, Field
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import override

from memcycle.agents.views import MemoryView, RoleInput, RoleOutput, TurnView
from memcycle.core.theta import AnswerStyle

Style = Literal["short", "sentence"] | AnswerStyle
"""How an answer is phrased: of the settings, or of theta."""

STYLES: Mapping[Style, str] = {
    "short": "the shortest phrase that answers completely, in the words of the memory",
    "concise": "the shortest phrase that answers completely",
    "sentence": "one plain sentence",
    "explanatory": "the answer, then in one more sentence the reason in the memories",
    "verifying": "the answer, then who said so and when",
    "strict": 'the bare value: numbers as digits, dates as "5 March 2021", members of a list with commas',
    "inferential": 'the likeliest conclusion ("Likely yes"), with what points to it in a few words',
    "choice": "exactly one of the alternatives that the question offers, in its words",
}
"""What a prompt says of each."""


class AnswererInput(RoleInput):
    """The question with its evidence, chronological, numbered from 0."""

    question: str
    evidence: list[MemoryView]
    window: list[TurnView] = []
    style: Style = "short"
    now: AwareDatetime

    @override
    def placeholders(self) -> dict[str, str]:
        return {**super().placeholders(), "style": STYLES[self.style]}


class AnswererOutput(RoleOutput):
    """The answer.

    Attributes:
        answer: In the language of the question; when abstaining, a sentence that says so.
        answerable: False: the evidence does not hold the answer.
        citations: Numbers of the evidence it rests on, most important first.
        quote: The words it rests on, of rules.
        look_for: Where it is not answerable, what else memory may be searched for.
        extractive: True when no model phrased it.
    """

    answer: str
    answerable: bool
    citations: list[int] = []
    confidence: float = Field(0.5, ge=0, le=1)
    quote: SkipJsonSchema[str] = ""
    look_for: str = Field("", description="not answerable: a search that may find what is missing")
    extractive: SkipJsonSchema[bool] = False  # for the rules to set; models are not asked
