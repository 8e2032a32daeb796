"""What the nodes decided, as small events for user interfaces: `stream_mode="custom"` gives them.

An event holds ids, counts and fixed words, all JSON, and never a text of a conversation or of a model:
whoever may see texts looks them up by id. `telling` makes them. Of nested graphs LangGraph gives them with
`subgraphs=True`.
"""

from typing import Literal

from typing_extensions import TypedDict

GraphName = Literal["remember", "recall", "session"]


class _Event(TypedDict):
    graph: GraphName
    node: str


class Staged(_Event):
    """The chunk: ids of the turns that this run is about."""

    event: Literal["staged"]
    turns: list[str]


class Planned(_Event):
    """Searches by operator (raw, fact, episode)."""

    event: Literal["planned"]
    searches: dict[str, int]


class Found(_Event):
    """Entries found, so far in this run; for all probes together in a session."""

    event: Literal["found"]
    candidates: int


class Judged(_Event):
    """The Judge: the edge taken with its reason (`routes.JudgeReason`), and what it is computed from."""

    event: Literal["judged"]
    route: str
    why: str
    shown: int
    relevant: int
    conflicts: int
    sufficient: bool


class Settled(_Event):
    """Ids of entries that a newer one contradicts."""

    event: Literal["settled"]
    outdated: list[str]


class Guided(_Event):
    """The Meta-Thinker on a chunk: facts to keep, known already, in conflict."""

    event: Literal["guided"]
    keep: int
    redundant: int
    conflicts: int


class Drafted(_Event):
    """The Constructor: facts drafted, turns it could not read, turns of which facts hold too little."""

    event: Literal["drafted"]
    facts: int
    unread: int
    uncovered: int


class ApprovalAsked(_Event):
    """The run stops: edits that a person must allow."""

    event: Literal["approval_asked"]
    items: int


class Allowed(_Event):
    """Edits that the guards, or a person, let through, by operation; refused so far in this run."""

    event: Literal["allowed"]
    edits: dict[str, int]
    rejected: int


class Applied(_Event):
    """Ids of entries written and of those superseded or deleted, and refusals, so far in this run."""

    event: Literal["applied"]
    facts: list[str]
    refreshed: list[str]
    rejected: int


class Triggered(_Event):
    """Episodes that end in this chunk."""

    event: Literal["triggered"]
    episodes: int


class Remembered(_Event):
    """The whole of a remember run, by id; refusals and warnings as counts."""

    event: Literal["remembered"]
    turns: list[str]
    facts: list[str]
    episodes: list[str]
    refreshed: list[str]
    unextracted: list[str]
    reextracted: list[str]
    uncovered: list[str]
    rejected: int
    warnings: int


class Thought(_Event):
    """The Meta-Thinker on a question: its verdict, and the edge taken."""

    event: Literal["thought"]
    answerable: bool
    route: str


class Refined(_Event):
    """Whether the Query-Reasoner found something new to ask, before an answer or after an unsure one."""

    event: Literal["refined"]
    new_query: bool


class Answered(_Event):
    """An answer: ids of the evidence it rests on, rounds of search. The last of a run is its output."""

    event: Literal["answered"]
    mode: str
    answerable: bool | None
    confidence: float | None
    evidence: list[str]
    rounds: int


class Opened(_Event):
    """Whether there is anything to end, and how many turns are still to be read."""

    event: Literal["opened"]
    open: bool
    waiting: int


class Summarised(_Event):
    """Ids of the episodes written of a session's last turns."""

    event: Literal["summarised"]
    episodes: list[str]


class Probed(_Event):
    """Ids of the probes made."""

    event: Literal["probed"]
    probes: list[str]


class ProbeTried(_Event):
    """Id of a probe that was put to memory, or that the Repairer looked at."""

    event: Literal["probe_answered", "repair_tried"]
    probe: str


class Graded(_Event):
    """Ids of the probes that memory answered and did not answer; what is in neither is ungraded."""

    event: Literal["graded"]
    passed: list[str]
    failed: list[str]


class RepairDecided(_Event):
    """The repair of a probe: INSERT, MERGE, SKIP or REFUSED, and id of the stored entry it is like."""

    event: Literal["repair_decided"]
    probe: str
    decision: str
    entry: str | None


class RepairWritten(_Event):
    """Ids of entries that repairs wrote, so far in this run."""

    event: Literal["repair_written"]
    entries: list[str]


class RolledBack(_Event):
    """Repairs taken back: they did not help, or broke a probe that passed."""

    event: Literal["rolled_back"]
    repairs: int


class Maintained(_Event):
    """Entries united, reinforced, expired, and working summaries renewed."""

    event: Literal["maintained"]
    merged: int
    reinforced: int
    expired: int
    superseded: int


class Committed(_Event):
    """How the session stands now, in the counts of `SessionReport`; episodes by id."""

    event: Literal["committed"]
    status: str
    committed: int
    probes: int
    passed_before: int
    passed_after: int
    ungraded: int
    repairs: int
    rolled_back: int
    merged: int
    episodes: list[str]


Event = (
    Staged | Planned | Found | Judged | Settled | Guided | Drafted | Allowed | ApprovalAsked | Applied
    | Triggered | Remembered | Thought | Refined | Answered | Opened | Summarised | Probed | ProbeTried
    | Graded | RepairDecided | RepairWritten | RolledBack | Maintained | Committed
)  # fmt: skip
"""Any of them; `event` says which.

What a run wrote and refused is counted from its start, since a UI may join late.
"""
