"""What the public face gives back: small models whose `model_dump(mode="json")` is the JSON of the CLI."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from memcycle.core.entry import Granularity
from memcycle.core.language.date_forms import Precision
from memcycle.core.probe import Probe, SessionReport, SessionStatus, Usage
from memcycle.core.turn import MessageType

if TYPE_CHECKING:
    from memcycle.stores.ledger.sessions import SessionInfo


class Refused(BaseModel):
    """A proposal that was not stored: its text, and why."""

    model_config = ConfigDict(extra="ignore")

    text: str
    why: str


class PendingItem(BaseModel):
    """A change that a person is asked about: what holds before it, and what would after it.

    Attributes:
        n: Its number in the answer. action: `ADD`, `UPDATE`, `DELETE` or `MERGE`.
        before, after: Texts; None where there is none.
        said: The turns it rests on, each with its speaker.
    """

    model_config = ConfigDict(extra="ignore")

    n: int
    action: str
    kind: str | None = None
    before: str | None = None
    after: str | None = None
    said: list[str] = []
    why: str = ""


class PendingApproval(BaseModel):
    """What a run waits for: a person's word over changes, none of which is written before it.

    Attributes:
        how: How to answer, in words. problem: what was wrong with the last answer, empty where nothing was.
    """

    model_config = ConfigDict(extra="ignore")

    session: str | None = None
    items: list[PendingItem]
    how: str = ""
    problem: str = ""


class Outcome(BaseModel):
    """What every run gives back.

    Attributes:
        thread_id: The thread its checkpoints are kept under; None where none are kept.
        pending: What it waits for, so that the rest of the result is not final yet; `Memory.resume` goes on.
    """

    # Left out of the JSON where runs are not kept, so that nobody who keeps none meets them.
    thread_id: str | None = Field(None, exclude_if=lambda value: value is None)
    pending: PendingApproval | None = Field(None, exclude_if=lambda value: value is None)


class ThreadSummary(BaseModel):
    """The run of a thread.

    Attributes:
        run: The method that began it. begun: the time it counts from.
        finished: Whether there is nothing left to resume. pending: what it waits for, if it does.
    """

    thread_id: str
    run: Literal["add", "ask", "end_session"]
    session: str | None = None
    begun: AwareDatetime | None = None
    finished: bool = False
    pending: PendingApproval | None = None


class UserSummary(BaseModel):
    """What a home holds of one user in one workspace.

    Attributes:
        sessions, turns: How many there are. facts, episodes: those that recall may find.
        entries: All that it may find: those, and turns as they were said.
        last: When the latest of it was said; None where nothing says so.
    """

    user: str
    workspace: str
    sessions: int
    turns: int
    entries: int
    facts: int
    episodes: int
    last: AwareDatetime | None = None


class Added(Outcome):
    """What one `Memory.add` did.

    Attributes:
        turns: Ids of the turns of the chunk. facts, episodes, refreshed: ids of the entries made, and of
            the stored ones that were updated, superseded or deleted.
        waiting: How many turns wait to be read by a model: once they fill a window (20 turns or 2,000
            tokens), or the session ends. They are found as they were said meanwhile.
        unextracted: Ids of turns whose facts could not be read; the next run tries them again.
        reextracted: Ids of turns read once more, in bulk import, because facts held too little of their
            words. uncovered: those of which they still do.
        rejected: What was proposed and not stored.
        forgetting: What came of each request to forget something: that it is done, or what stands in the way
            and what to call.
        warnings: What did not go as it should, in words.
        usage: Model calls and tokens by role.
    """

    model_config = ConfigDict(extra="ignore")

    turns: list[str] = []
    waiting: int = 0
    facts: list[str] = []
    episodes: list[str] = []
    refreshed: list[str] = []
    unextracted: list[str] = []
    reextracted: list[str] = []
    uncovered: list[str] = []
    rejected: list[Refused] = []
    forgetting: list[str] = []
    warnings: list[str] = []
    usage: Usage = {}

    @classmethod
    def of(cls, out: Mapping[str, Any]) -> Self:
        """From what the remember graph gave, or has so far."""
        return cls(**out.get("result") or {}, usage=out.get("usage") or {})


class Evidence(BaseModel):
    """An entry an answer rests on.

    Attributes:
        turns: Ids of its source turns.
        event_time: When what it says happened.
        score: 0 to 1, higher is better.
        why: The views that found it, each with rank and score.
        speaker: Who said it, role: as what. time: when it was said. current: False where a newer one
            contradicts it, until: since when, where that is known. These are left out of the JSON.
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
    role: MessageType | None = Field(None, exclude=True)
    time: AwareDatetime | None = Field(None, exclude=True)
    event_precision: Precision | None = Field(None, exclude=True)
    current: bool = Field(True, exclude=True)
    until: AwareDatetime | None = Field(None, exclude=True)


class Answer(Outcome):
    """An answer and what it rests on.

    Attributes:
        answer: In words; None where only evidence was asked for.
        answerable: False: memory does not hold the answer, and `answer` says so. None: nobody decided.
        mode: `answer`; `extractive` where no model phrased it; `evidence` where there is none.
        evidence: What the answer rests on, or all that was found; most important first.
        tokens: How many the texts of all evidence have that was found and shown; what stands beside them
            in a prompt (numbers, dates, speakers) comes on top.
        tokens_exact: Whether a GPT tokenizer counted them; else it is an estimate.
        rounds: Rounds of search.
        usage: Model calls and tokens by role.
        warnings: What did not go as it should, in words; left out of the JSON.
    """

    model_config = ConfigDict(extra="ignore")

    question: str
    answer: str | None = None
    answerable: bool | None = None
    mode: Literal["answer", "extractive", "evidence"]
    evidence: list[Evidence] = []
    tokens: int = 0
    tokens_exact: bool = False
    rounds: int = 0
    usage: Usage = {}
    warnings: list[str] = Field(default=[], exclude=True)

    @classmethod
    def of(cls, question: str, out: Mapping[str, Any]) -> Self:
        """From what the recall graph gave; one that waits for a person has no answer yet."""
        found = out.get("answer") or {"question": question, "mode": "evidence"}
        return cls(**found, usage=out.get("usage") or {})


class _Session(BaseModel):
    session: str
    status: SessionStatus
    reason: str = ""


class Ended(SessionReport, _Session, Outcome):
    """What `Memory.end_session` did; the counts are those of `SessionReport`, of this run.

    Attributes:
        session: The session that ended.
        status: `committed`, or `committed_unverified` with the `reason` why it was not examined; `open`
            where turns that came meanwhile, or that no budget was left to read, wait for the next end;
            `verifying` while a person is asked, or where the budget was used up on the way.
        episodes: Ids of the episodes its last turns became.
        rejected: What was proposed of turns that had waited to be read, and not stored.
        warnings: What did not go as it should, in words.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    episodes: list[str] = []
    rejected: list[Refused] = []
    warnings: list[str] = []

    @classmethod
    def of(cls, session: str, out: Mapping[str, Any]) -> Self:
        """From what the session graph gave, or has so far."""
        known = {"session": session, "status": "verifying", **(out.get("result") or {})}
        return cls(**{**known, "usage": out.get("usage") or {}})


class _Listed(_Session):
    part: int = 1
    turns: int
    staged: int
    first: AwareDatetime | None = None
    last: AwareDatetime | None = None


class SessionSummary(SessionReport, _Listed):
    """A session in a list; the counts are those of `SessionReport`, summed over its parts.

    Attributes:
        status: `open`, `verifying` (its end is going on or was broken off), `committed`, or
            `committed_unverified` with the `reason` why it was not examined.
        part: 1, and one more each time a late turn reopened it.
        turns: How many it has. staged: entries that wait for its end.
        first, last: Times of its earliest and latest turn.
    """

    @classmethod
    def of(cls, info: "SessionInfo", **more: Any) -> Self:
        """From what the bank says of a session."""
        counts = info.report.model_dump()
        return cls(**info.model_dump(exclude={"report"}), **counts, **more)


class SessionDetail(SessionSummary):
    """A session with what it was examined with.

    Attributes:
        examined: Its probes, with their answers and repairs, by part and number.
    """

    examined: list[Probe] = []


class Ingested(Outcome):
    """What ingesting a conversation did in this run, as counts; a second run of the same counts nothing.

    Where `pending` says that a person is asked, what comes after waits too.

    Attributes:
        reextracted: Turns read once more because facts held too little of their words; uncovered: those of
            which they still do.
        warnings: What did not go as it should, in words; left out of the JSON.
        sessions: How many ended. unverified: those of them that could not be examined.
        probes: Questions they were examined with; passed_before and passed_after, repairs, rolled_back and
            merged are those of `SessionReport`.
        seconds: Wall time.
    """

    turns: int = 0
    sessions: int = 0
    facts: int = 0
    episodes: int = 0
    refreshed: int = 0
    unextracted: int = 0
    reextracted: int = 0
    uncovered: int = 0
    probes: int = 0
    passed_before: int = 0
    passed_after: int = 0
    ungraded: int = 0
    repairs: int = 0
    rolled_back: int = 0
    merged: int = 0
    unverified: list[str] = []
    rejected: list[Refused] = []
    warnings: list[str] = Field(default=[], exclude=True)
    usage: Usage = {}
    seconds: float = 0.0
