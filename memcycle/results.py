"""What the public face gives back: small models whose `model_dump(mode="json")` is the JSON of the CLI."""

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from memcycle.core.entry import Granularity
from memcycle.core.usage import Usage


class Refused(BaseModel):
    """A proposal that was not stored: its text, and why."""

    model_config = ConfigDict(extra="ignore")

    text: str
    why: str


class Added(BaseModel):
    """What one `Memory.add` did.

    Attributes:
        turns: Ids of the turns of the chunk. facts, episodes, refreshed: ids of the entries made, and of
            the stored ones that were updated, superseded or deleted.
        unextracted: Ids of turns whose facts could not be read; the next run tries them again.
        rejected: What was proposed and not stored.
        warnings: What did not go as it should, in words.
        usage: Model calls and tokens by role.
    """

    model_config = ConfigDict(extra="ignore")

    turns: list[str] = []
    facts: list[str] = []
    episodes: list[str] = []
    refreshed: list[str] = []
    unextracted: list[str] = []
    rejected: list[Refused] = []
    warnings: list[str] = []
    usage: Usage = {}


class Evidence(BaseModel):
    """An entry an answer rests on.

    Attributes:
        turns: Ids of its source turns.
        event_time: When what it says happened.
        score: 0 to 1, higher is better.
        why: The views that found it, each with rank and score.
        speaker: Who said it. time: when it was said. Both are left out of the JSON.
    """

    model_config = ConfigDict(extra="ignore")

    id: str
    granularity: Granularity
    text: str
    turns: list[str] = []
    event_time: AwareDatetime | None = None
    score: float = 0.0
    why: list[dict[str, Any]] = []
    speaker: str | None = Field(None, exclude=True)
    time: AwareDatetime | None = Field(None, exclude=True)


class Answer(BaseModel):
    """An answer and what it rests on.

    Attributes:
        answer: In words; None where only evidence was asked for.
        answerable: False: memory does not hold the answer, and `answer` says so. None: nobody decided.
        confidence: 0 to 1, None where nothing was answered.
        mode: `answer`; `extractive` where no model phrased it; `evidence` where there is none.
        evidence: What the answer rests on, or all that was found; most important first.
        rounds: Rounds of search.
        usage: Model calls and tokens by role.
        warnings: What did not go as it should, in words; left out of the JSON.
    """

    model_config = ConfigDict(extra="ignore")

    question: str
    answer: str | None = None
    answerable: bool | None = None
    confidence: float | None = None
    mode: Literal["answer", "extractive", "evidence"]
    evidence: list[Evidence] = []
    rounds: int = 0
    usage: Usage = {}
    warnings: list[str] = Field(default=[], exclude=True)


class Ended(BaseModel):
    """What `Memory.end_session` did.

    Attributes:
        session: The session that ended.
        episodes: Ids of the episodes its last turns became.
        committed: Entries that became active.
    """

    model_config = ConfigDict(extra="ignore")

    session: str
    episodes: list[str] = []
    committed: int = 0
    warnings: list[str] = []
    usage: Usage = {}


class Ingested(BaseModel):
    """What ingesting a conversation did in this run, as counts; a second run of the same counts nothing.

    Attributes:
        seconds: Wall time.
    """

    turns: int = 0
    sessions: int = 0
    facts: int = 0
    episodes: int = 0
    refreshed: int = 0
    unextracted: int = 0
    rejected: list[Refused] = []
    usage: Usage = {}
    seconds: float = 0.0
