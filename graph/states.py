"""States of the graphs: plain data, ids and numbers; texts stay in the ledger."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from memcycle.core.edit import Applied, Edit, Rejected
from memcycle.core.probe import Usage, count_usage
from memcycle.core.theta_space import Category

Counted = Annotated[Usage, count_usage]
"""What a run used so far: each node adds its own, a run's first node starts anew with None."""


def collect(left: list[str] | None, right: list[str] | None) -> list[str]:
    """Reducer of lists that nodes run side by side add to; None starts anew."""
    return [] if right is None else [*(left or []), *right]


Collected = Annotated[list[str], collect]
"""`faults`: what of the replies in a run could not be used, in words, as `graph/node.py` tells it."""


class Planned(TypedDict):
    """The Retriever's plan for item `n`: what to search, where, and how much.

    `kept`: how many of what it finds are kept, where that is not K. `part`: it is of a question in parts,
    whose finds are merged by rank. `nameless`: the names of persons are left out of it.
    """

    n: int
    query: str
    operator: Literal["raw", "fact", "episode"]
    k: int
    speaker: str | None
    kept: NotRequired[int]
    part: NotRequired[bool]
    nameless: NotRequired[bool]


class Candidate(TypedDict):
    """A found entry by id, with its fused score (0 to 1) and the views that found it."""

    id: str
    score: float
    why: list[dict[str, Any]]


class ConflictRef(TypedDict):
    """Entry `memory` contradicts turn `turn` or entry `other`, by id."""

    memory: str
    turn: str | None
    other: str | None
    why: str


class Verdict(TypedDict):
    """The Judge's verdicts, by entry id, on so many candidates `shown`. `judged` False: it was not asked, or
    failed."""

    relevant: list[str]
    conflicts: list[ConflictRef]
    sufficient: bool
    shown: int
    judged: bool


UNJUDGED = Verdict(relevant=[], conflicts=[], sufficient=False, shown=0, judged=False)


class Gap(TypedDict):
    """The Meta-Thinker's verdict on a question."""

    answerable: bool
    gap: str
    speaker: str | None
    needs_time: bool
    avoid: list[str]


NO_GAP = Gap(answerable=True, gap="", speaker=None, needs_time=False, avoid=[])


class EvidenceState(TypedDict, total=False):
    """What the two ways of looking into memory share. `hidden`: ids of entries that are not looked for."""

    plans: list[Planned]
    candidates: list[Candidate]
    round: int
    verdict: Verdict
    edits: list[dict[str, Any]]
    warnings: list[str]
    faults: Collected
    usage: Counted
    hidden: list[str]


class Result(TypedDict):
    """What a remember run did, by id; `rejected` and `warnings` in words.

    `waiting`: how many turns wait until a window is full, and are read then, or when the session ends.
    `reextracted`: turns read once more because facts held too little of them; `uncovered`: those of which
    facts still do. `forgetting`: what came of each request to forget, in words.
    """

    turns: list[str]
    waiting: int
    facts: list[str]
    episodes: list[str]
    refreshed: list[str]
    unextracted: list[str]
    reextracted: list[str]
    uncovered: list[str]
    rejected: list[dict[str, str]]
    forgetting: list[str]
    warnings: list[str]


def added(applied: Applied, edits: Sequence[Edit]) -> list[str]:
    """Ids of the entries that the edits added.

    When a node runs again after its write was kept but its checkpoint was not, the bank finds each entry
    there already, under its own id, and merges it with itself.
    """
    own = {edit.entry.id for edit in edits if edit.op == "ADD" and edit.entry is not None}
    return [*applied.added, *(name for name in applied.merged if name in own)]


def refusals(rejected: Iterable[Rejected]) -> list[dict[str, str]]:
    """What was refused, in words."""
    return [{"text": one.text, "why": one.why} for one in rejected]


def dumped(edits: Iterable[Edit]) -> list[dict[str, Any]]:
    """Edits as a state holds them."""
    return [edit.model_dump(mode="json") for edit in edits]


def edits_of(state: "EvidenceState") -> list[Edit]:
    """The edits that wait to be written."""
    return [Edit.model_validate(edit) for edit in state["edits"]]


class RememberInput(TypedDict, total=False):
    """A chunk: messages in any shape `read_messages` takes, or turns as dicts. Neither: what is waiting."""

    messages: list[Any]
    turns: list[dict[str, Any]]


class CatchUpInput(TypedDict):
    """What waits in the session of a scope; that of the context where it is None."""

    owner: dict[str, Any] | None


class RememberState(RememberInput, CatchUpInput, EvidenceState, total=False):
    """State of the remember graph. `chunk` holds turn ids, `left` those of its next chunks; `seq` tells which
    session they are of: one begun anew under its name after it was forgotten is another. `idle`: whether
    another session of the user has gone idle."""

    seq: int | None
    chunk: list[str]
    left: list[str]
    idle: bool
    extracted: bool
    guidance: dict[str, Any]
    drafts: list[dict[str, Any]]
    supersede: list[ConflictRef]
    episodes: list[dict[str, Any]]
    close_at: int | None
    result: Result


def fresh_remember() -> dict[str, Any]:
    """What a run of remember counts and collects, at its start: a thread's state holds the last run's."""
    result = {name: list[Any]() for name in Result.__annotations__}
    return {"messages": [], "turns": [], "usage": None, "result": result | {"waiting": 0}}


def fresh_chunk(chunk: list[str], left: list[str], result: dict[str, Any]) -> dict[str, Any]:
    """The same of each chunk that a run reads; its turns are added to the run's result."""
    empty = ("candidates", "edits", "drafts", "supersede", "episodes", "warnings")
    return {name: list[Any]() for name in empty} | {
        "chunk": chunk,
        "left": left,
        "round": 0,
        "close_at": None,
        "guidance": {},
        "faults": None,
        "result": {**result, "turns": [*result["turns"], *chunk]},
    }


class RememberOutput(TypedDict):
    """Output of the remember graph."""

    result: Result
    usage: Usage


class RecallInput(TypedDict):
    """A question in words.

    `seen`: messages, in any shape that remember takes, that whoever reads the evidence sees anyway. Their
    turns and what rests on these alone are not given back.
    """

    question: str
    seen: NotRequired[list[Any]]


class RecallState(RecallInput, EvidenceState, total=False):
    """State of the recall graph. `outdated` holds ids of entries a newer one contradicts, `parts` the
    sub-questions of a question that has several; `refinements` and `reflections` count further searches
    before an answer, and after an unsure one."""

    category: Category
    parts: list[str]
    outdated: list[str]
    tried: list[str]
    refinements: int
    reflections: int
    gap: Gap
    answer: dict[str, Any]


def fresh_recall() -> dict[str, Any]:
    """As `fresh_remember`, of recall."""
    empty = ("seen", "hidden", "plans", "parts", "candidates", "outdated", "tried", "warnings")
    return {name: list[Any]() for name in empty} | {
        "round": 0,
        "refinements": 0,
        "reflections": 0,
        "verdict": UNJUDGED,
        "gap": NO_GAP,
        "answer": {},
        "faults": None,
        "usage": None,
    }


class RecallOutput(TypedDict):
    """Output of the recall graph."""

    answer: dict[str, Any]
    usage: Usage


class SessionInput(TypedDict, total=False):
    """The context names the session that ends.

    `verify` True examines it again although it is committed; False commits it at once, unverified; left
    out, what is new of it is examined and committed.

    `idle` True ends another session instead, one in which nothing was said for `idle_after` seconds, if there
    is one: of the context's user, or of anybody where no user is named. It is for runs by the clock.
    """

    verify: bool | None
    idle: bool


class SessionState(SessionInput, total=False):
    """State of the session graph; probes, answers and repairs stand in the ledger.

    Attributes:
        open: Whether there is anything to end. waiting: ids of turns not yet remembered.
        until: The last place that this run ends; what is said later waits for the next.
        owner: Scope of the session that ends, where the context does not name it.
        part: Which stretch of the session this is, from 1. seq: which session, as in `RememberState`.
        probes: Ids of the probes. asked: those to ask next, found: by id the entries that hold their
            answer, round: 0 before repair, 1 after it. passed, failed: ids of those that memory answered,
            and did not answer, when last asked.
        answered, mended: Ids of probes as they were answered, and repaired, side by side.
        proposal: Id of the probe whose repair is decided, with the decision and the edit to be written.
        written: Ids of entries that repairs wrote. maintained: counts of what maintenance did.
        unverified: Why the session could not be verified, empty if it could.
        rejected: What was proposed of the turns that waited, and not stored.
    """

    open: bool
    owner: dict[str, Any] | None
    waiting: list[str]
    until: int
    part: int
    seq: int
    episodes: list[dict[str, Any]]
    close_at: int | None
    probes: list[str]
    asked: list[str]
    found: dict[str, list[str]]
    round: int
    passed: list[str]
    failed: list[str]
    answered: Collected
    mended: Collected
    proposal: str | None
    edit: dict[str, Any] | None
    decision: dict[str, Any] | None
    written: list[str]
    maintained: dict[str, int]
    unverified: str
    rejected: list[dict[str, str]]
    result: dict[str, Any]
    warnings: Collected
    faults: Collected
    usage: Counted


class ProbeState(TypedDict):
    """What one of several nodes run side by side is sent: probes by id, what was found for each, and
    the run that they belong to."""

    owner: dict[str, Any] | None
    probes: list[str]
    found: dict[str, list[str]]
    round: int
    part: int


def fresh_session() -> dict[str, Any]:
    """As `fresh_remember`, of session."""
    empty = ("waiting", "episodes", "probes", "asked", "passed", "failed", "written", "rejected")
    unset = ("owner", "proposal", "edit", "decision", "answered", "mended", "warnings", "faults", "usage")
    fresh = {"idle": False, "found": {}, "round": 0, "maintained": {}, "unverified": ""}
    return {**{name: list[Any]() for name in empty}, **dict.fromkeys(unset), **fresh}


class SessionOutput(TypedDict):
    """Output of the session graph."""

    result: dict[str, Any]
    usage: Usage


class MemoryInput(TypedDict, total=False):
    """A chat turn; `end_session` True ends the session after it."""

    messages: Annotated[list[AnyMessage], add_messages]
    end_session: bool


class MemoryState(MemoryInput, total=False):
    """State of the parent graph: what each nested graph gave back."""

    recalled: dict[str, Any]
    remembered: dict[str, Any]
    ended: dict[str, Any]
