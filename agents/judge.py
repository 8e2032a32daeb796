"""Judge: verdicts on what was found (AMA 3.3). Actions are computed from them, not asked.

Where it fails the candidates are passed on, marked unjudged.
"""

from pydantic import AwareDatetime, Field

from memcycle.agents.views import MemoryView, Purpose, RoleInput, RoleOutput, TurnView


class JudgeInput(RoleInput):
    """Candidates found for the items (turns of a chunk, or one question)."""

    purpose: Purpose
    items: list[TurnView]
    queries: list[str] = []
    candidates: list[MemoryView]
    window: list[TurnView] = []
    now: AwareDatetime


class Conflict(RoleOutput):
    """Candidate `memory` says something that `turn` (a new item) or `other` (a candidate) contradicts."""

    memory: int
    turn: int | None = Field(None, description="number of the new turn that contradicts it")
    other: int | None = Field(None, description="number of the other stored memory that contradicts it")
    why: str = ""


class JudgeOutput(RoleOutput):
    """Verdicts.

    Attributes:
        relevant: Numbers of the candidates that bear on an item.
        conflicts: Pairs that cannot both be true now.
        sufficient: For a question: the relevant candidates answer it with the precision it asks for
            (who, where, when, how many; no proxy such as "home country"). For turns: nothing more needed.
        missing: What is missing, in words, empty when sufficient.
    """

    relevant: list[int]
    conflicts: list[Conflict] = []
    sufficient: bool
    missing: str = ""
