"""What the nodes decided, as small events for user interfaces: `stream_mode="custom"` gives them.

An event holds ids, counts and fixed words, all JSON, and never a text of a conversation or of a model:
whoever may see texts looks them up by id. Of nested graphs LangGraph gives them with `subgraphs=True`. What a
run wrote and refused is counted from its start, since a user interface may join late.

Below each type stands what makes it of the partial state that a node returned; which node tells what is
written where the graphs are. `graph` and `node` are added there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from typing_extensions import TypedDict

GraphName = Literal["remember", "recall", "session"]

Update = Mapping[str, Any]
"""The partial state a node returned, and under `EDGE` which edge is taken after it."""

Told = dict[str, Any] | None
"""The fields of an event; None where there is nothing to tell."""

EDGE = "__edge__"

APPROVAL = "memcycle.approval"
"""`type` of the payload of an interrupt that asks a person."""


class Edge(NamedTuple):
    """An edge by its label, and why it is taken, in a fixed word or two; empty where there is no choice."""

    label: str = ""
    why: str = ""


class _Event(TypedDict):
    graph: GraphName
    node: str


class Staged(_Event):
    """The chunk: ids of the turns that this run is about."""

    event: Literal["staged"]
    turns: list[str]


def staged(update: Update) -> Told:
    """The turns of a run that begins."""
    return {"event": "staged", "turns": update["chunk"]}


class Planned(_Event):
    """Searches by operator (raw, fact, episode)."""

    event: Literal["planned"]
    searches: dict[str, int]


def planned(update: Update) -> Told:
    """The searches that are planned."""
    return {"event": "planned", "searches": dict(Counter(plan["operator"] for plan in update["plans"]))}


class Found(_Event):
    """Entries found, so far in this run; for all probes together in a session."""

    event: Literal["found"]
    candidates: int


def found(update: Update) -> Told:
    """What is found so far."""
    return {"event": "found", "candidates": len(update["candidates"])}


def found_for_probes(update: Update) -> Told:
    """What is found for all probes."""
    entries = {entry for found in update["found"].values() for entry in found}
    return {"event": "found", "candidates": len(entries)}


class Judged(_Event):
    """The Judge: the edge taken with its reason (`routes.JudgeReason`), and what it is computed from."""

    event: Literal["judged"]
    route: str
    why: str
    shown: int
    relevant: int
    conflicts: int
    sufficient: bool


def judged(update: Update) -> Told:
    """The verdict and the edge."""
    verdict, edge = update["verdict"], update[EDGE]
    return {
        "event": "judged",
        "route": edge.label,
        "why": edge.why,
        "shown": verdict["shown"],
        "relevant": len(verdict["relevant"]),
        "conflicts": len(verdict["conflicts"]),
        "sufficient": verdict["sufficient"],
    }


class Settled(_Event):
    """Ids of entries that a newer one contradicts."""

    event: Literal["settled"]
    outdated: list[str]


def settled(update: Update) -> Told:
    """What is outdated."""
    return {"event": "settled", "outdated": update["outdated"]}


class Guided(_Event):
    """The Meta-Thinker on a chunk: facts to keep, known already, in conflict."""

    event: Literal["guided"]
    keep: int
    redundant: int
    conflicts: int


def guided(update: Update) -> Told:
    """The guidance in numbers."""
    counts = {key: len(update["guidance"].get(key) or []) for key in ("keep", "redundant", "conflicts")}
    return {"event": "guided", **counts}


class Drafted(_Event):
    """The Constructor: facts drafted, turns it could not read, turns of which facts hold too little."""

    event: Literal["drafted"]
    facts: int
    unread: int
    uncovered: int


def drafted(update: Update) -> Told:
    """The drafts in numbers."""
    result = update["result"]
    return {
        "event": "drafted",
        "facts": len(update["drafts"]),
        "unread": len(result["unextracted"]),
        "uncovered": len(result["uncovered"]),
    }


class ApprovalAsked(_Event):
    """The run stops: edits that a person must allow."""

    event: Literal["approval_asked"]
    items: int


def approval_asked(interrupts: Iterable[Any]) -> Told:
    """Of the interrupts of a node that stopped; None where they are not ours."""
    payloads = [interrupt.value for interrupt in interrupts]
    ours = [one for one in payloads if isinstance(one, Mapping) and one.get("type") == APPROVAL]
    return {"event": "approval_asked", "items": sum(len(one["items"]) for one in ours)} if ours else None


class Allowed(_Event):
    """Edits that the guards, or a person, let through, by operation; refused so far in this run."""

    event: Literal["allowed"]
    edits: dict[str, int]
    rejected: int


def allowed(update: Update) -> Told:
    """The edits by operation."""
    return _allowed(update["edits"], len(update.get("result", {}).get("rejected", [])))


def allowed_repair(update: Update) -> Told:
    """The one edit of a repair; None where there was none."""
    if "edit" not in update:
        return None
    edits = [update["edit"]] if update["edit"] is not None else []
    return _allowed(edits, 1 - len(edits))


def _allowed(edits: Sequence[Mapping[str, Any]], rejected: int) -> Told:
    return {"event": "allowed", "edits": dict(Counter(edit["op"] for edit in edits)), "rejected": rejected}


class Applied(_Event):
    """Ids of entries written and of those superseded or deleted, and refusals, so far in this run."""

    event: Literal["applied"]
    facts: list[str]
    refreshed: list[str]
    rejected: int


def applied(update: Update) -> Told:
    """What is written so far."""
    result = update["result"]
    ids = {key: result[key] for key in ("facts", "refreshed")}
    return {"event": "applied", **ids, "rejected": len(result["rejected"])}


class Triggered(_Event):
    """Episodes that end in this chunk."""

    event: Literal["triggered"]
    episodes: int


def triggered(update: Update) -> Told:
    """The episodes that end."""
    return {"event": "triggered", "episodes": len(update["episodes"])}


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


def remembered(update: Update) -> Told:
    """The result of a run."""
    counts = {key: len(update["result"][key]) for key in ("rejected", "warnings")}
    return {"event": "remembered", **update["result"], **counts}


class Thought(_Event):
    """The Meta-Thinker on a question: its verdict, and the edge taken."""

    event: Literal["thought"]
    answerable: bool
    route: str


def thought(update: Update) -> Told:
    """The verdict and the edge."""
    return {"event": "thought", "answerable": update["gap"]["answerable"], "route": update[EDGE].label}


class Refined(_Event):
    """Whether the Query-Reasoner found something new to ask, before an answer or after an unsure one."""

    event: Literal["refined"]
    new_query: bool


def refined(update: Update) -> Told:
    """Whether there is a new query."""
    return {"event": "refined", "new_query": bool(update["plans"])}


class Answered(_Event):
    """An answer: ids of the evidence it rests on, rounds of search. The last of a run is its output."""

    event: Literal["answered"]
    mode: str
    answerable: bool | None
    confidence: float | None
    evidence: list[str]
    rounds: int


def answered(update: Update) -> Told:
    """The answer without its words."""
    answer = update["answer"]
    fields = {key: answer[key] for key in ("mode", "answerable", "confidence", "rounds")}
    return {"event": "answered", **fields, "evidence": [item["id"] for item in answer["evidence"]]}


class Opened(_Event):
    """Whether there is anything to end, and how many turns are still to be read."""

    event: Literal["opened"]
    open: bool
    waiting: int


def opened(update: Update) -> Told:
    """What there is to end."""
    return {"event": "opened", "open": update["open"], "waiting": len(update["waiting"])}


class Summarised(_Event):
    """Ids of the episodes written of a session's last turns."""

    event: Literal["summarised"]
    episodes: list[str]


def summarised(update: Update) -> Told:
    """The episodes written."""
    return {"event": "summarised", "episodes": update["result"]["episodes"]}


class Probed(_Event):
    """Ids of the probes made."""

    event: Literal["probed"]
    probes: list[str]


def probed(update: Update) -> Told:
    """The probes made."""
    return {"event": "probed", "probes": update["probes"]}


class ProbeTried(_Event):
    """Id of a probe that was put to memory, or that the Repairer looked at."""

    event: Literal["probe_answered", "repair_tried"]
    probe: str


def probe_answered(update: Update) -> Told:
    """The probe; None where it is forgotten."""
    return {"event": "probe_answered", "probe": update["answered"][0]} if "answered" in update else None


def repair_tried(update: Update) -> Told:
    """The probe; None where it is forgotten."""
    return {"event": "repair_tried", "probe": update["mended"][0]} if "mended" in update else None


class Graded(_Event):
    """Ids of the probes that memory answered and did not answer; what is in neither is ungraded."""

    event: Literal["graded"]
    passed: list[str]
    failed: list[str]


def graded(update: Update) -> Told:
    """The probes by verdict."""
    return {"event": "graded", "passed": update["passed"], "failed": update["failed"]}


class RepairDecided(_Event):
    """The repair of a probe: INSERT, MERGE, SKIP or REFUSED, and id of the stored entry it is like."""

    event: Literal["repair_decided"]
    probe: str
    decision: str
    entry: str | None


def repair_decided(update: Update) -> Told:
    """The decision; None where no proposal is left."""
    if update["proposal"] is None:
        return None
    decision = {key: update["decision"][key] for key in ("decision", "entry")}
    return {"event": "repair_decided", "probe": update["proposal"], **decision}


class RepairWritten(_Event):
    """Ids of entries that repairs wrote, so far in this run."""

    event: Literal["repair_written"]
    entries: list[str]


def repair_written(update: Update) -> Told:
    """The entries; None where nothing was decided."""
    return {"event": "repair_written", "entries": update["written"]} if "written" in update else None


class RolledBack(_Event):
    """Repairs taken back: they did not help, or broke a probe that passed."""

    event: Literal["rolled_back"]
    repairs: int


def rolled_back(update: Update) -> Told:
    """The repairs taken back: each is a warning."""
    return {"event": "rolled_back", "repairs": len(update["warnings"])}


class Maintained(_Event):
    """Entries united, reinforced, expired, and working summaries renewed."""

    event: Literal["maintained"]
    merged: int
    reinforced: int
    expired: int
    superseded: int


def maintained(update: Update) -> Told:
    """The counts."""
    return {"event": "maintained", **update["maintained"]}


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


_COMMITTED = (
    "status", "committed", "probes", "passed_before", "passed_after", "ungraded", "repairs", "rolled_back",
    "merged", "episodes",
)  # fmt: skip


def committed(update: Update) -> Told:
    """The result of a run."""
    return {"event": "committed"} | {key: update["result"][key] for key in _COMMITTED}


Event = (
    Staged | Planned | Found | Judged | Settled | Guided | Drafted | Allowed | ApprovalAsked | Applied
    | Triggered | Remembered | Thought | Refined | Answered | Opened | Summarised | Probed | ProbeTried
    | Graded | RepairDecided | RepairWritten | RolledBack | Maintained | Committed
)  # fmt: skip
"""Any of them; `event` says which."""
