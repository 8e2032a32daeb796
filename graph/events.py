"""What the nodes decided, as small events for user interfaces: `stream_mode="custom"` gives them.

An event holds ids, counts and fixed words, all JSON, and never a text of a conversation or of a model:
whoever may see texts looks them up by id. `telling` makes them. Of nested graphs LangGraph gives them with
`subgraphs=True`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

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


Update = Mapping[str, Any]

INTERRUPT = "__interrupt__"
"""Key under which LangGraph gives the interrupts of a node that stopped, in place of its update."""

APPROVAL = "memcycle.approval"
"""`type` of the payload of an interrupt that asks a person."""


class Route(NamedTuple):
    """Which edge is taken after a node, by its label, and why, in a fixed word or two."""

    taken: str
    why: str = ""


def event_of(graph: GraphName, node: str, update: Update, route: Route | None = None) -> Event | None:
    """The event that tells what a node decided, None for a node that only prepares.

    Args:
        graph: Which of our graphs. node: its node.
        update: The partial state it returned; where it stopped, its interrupts under `INTERRUPT`.
        route: The edge taken after it, for nodes that have a choice a user interface shows.
    """
    decided = DECIDING.get(node) if INTERRUPT not in update else _stopped
    told = decided(update, route or Route("")) if decided is not None else None
    return {"graph": graph, "node": node, **told} if told is not None else None  # type: ignore[return-value]


Told = dict[str, Any] | None


def _stopped(update: Update, _: Route) -> Told:
    payloads = [interrupt.value for interrupt in update[INTERRUPT]]
    ours = [one for one in payloads if isinstance(one, Mapping) and one.get("type") == APPROVAL]
    items = sum(len(one["items"]) for one in ours)
    return {"event": "approval_asked", "items": items} if ours else None


def _staged(update: Update, _: Route) -> Told:
    return {"event": "staged", "turns": update["chunk"]}


def _planned(update: Update, _: Route) -> Told:
    return {"event": "planned", "searches": dict(Counter(plan["operator"] for plan in update["plans"]))}


def _found(update: Update, _: Route) -> Told:
    return {"event": "found", "candidates": len(update["candidates"])}


def _looked_up(update: Update, _: Route) -> Told:
    entries = {entry for found in update["found"].values() for entry in found}
    return {"event": "found", "candidates": len(entries)}


def _judged(update: Update, route: Route) -> Told:
    verdict = update["verdict"]
    return {
        "event": "judged",
        "route": route.taken,
        "why": route.why,
        "shown": verdict["shown"],
        "relevant": len(verdict["relevant"]),
        "conflicts": len(verdict["conflicts"]),
        "sufficient": verdict["sufficient"],
    }


def _settled(update: Update, _: Route) -> Told:
    return {"event": "settled", "outdated": update["outdated"]}


def _guided(update: Update, _: Route) -> Told:
    guidance = update["guidance"]
    return {"event": "guided"} | {
        key: len(guidance.get(key) or []) for key in ("keep", "redundant", "conflicts")
    }


def _drafted(update: Update, _: Route) -> Told:
    result = update.get("result") or {}
    unread, uncovered = (len(result.get(key) or []) for key in ("unextracted", "uncovered"))
    return {"event": "drafted", "facts": len(update["drafts"]), "unread": unread, "uncovered": uncovered}


def _allowed(update: Update, _: Route) -> Told:
    return _edits(update["edits"], update.get("result"))


def _allowed_repair(update: Update, _: Route) -> Told:
    if "edit" not in update:
        return None
    edit = update["edit"]
    return _edits([edit] if edit is not None else [], {"rejected": [] if edit is not None else [None]})


def _edits(edits: Iterable[Mapping[str, Any]], result: Update | None) -> Told:
    counts = dict(Counter(edit["op"] for edit in edits))
    return {"event": "allowed", "edits": counts, "rejected": len((result or {}).get("rejected") or [])}


def _applied(update: Update, _: Route) -> Told:
    result = update.get("result")
    if result is None:
        return None
    return {
        "event": "applied",
        "facts": result["facts"],
        "refreshed": result["refreshed"],
        "rejected": len(result["rejected"]),
    }


def _triggered(update: Update, _: Route) -> Told:
    return {"event": "triggered", "episodes": len(update["episodes"])}


_IDS = ("turns", "facts", "episodes", "refreshed", "unextracted", "reextracted", "uncovered")


def _remembered(update: Update, _: Route) -> Told:
    result = update["result"]
    ids = {key: result[key] for key in _IDS}
    return {"event": "remembered", **ids} | {key: len(result[key]) for key in ("rejected", "warnings")}


def _thought(update: Update, route: Route) -> Told:
    return {"event": "thought", "answerable": update["gap"]["answerable"], "route": route.taken}


def _refined(update: Update, _: Route) -> Told:
    return {"event": "refined", "new_query": bool(update["plans"])}


def _answered(update: Update, _: Route) -> Told:
    answer = update["answer"]
    told = {key: answer[key] for key in ("mode", "answerable", "confidence", "rounds")}
    return {"event": "answered", **told, "evidence": [item["id"] for item in answer["evidence"]]}


def _opened(update: Update, _: Route) -> Told:
    return {"event": "opened", "open": update["open"], "waiting": len(update["waiting"])}


def _summarised(update: Update, _: Route) -> Told:
    return {"event": "summarised", "episodes": update["result"]["episodes"]}


def _probed(update: Update, _: Route) -> Told:
    return {"event": "probed", "probes": update["probes"]}


def _tried(event: str, key: str) -> Callable[[Update, Route], Told]:
    def told(update: Update, _: Route) -> Told:
        return {"event": event, "probe": update[key][0]} if update.get(key) else None

    return told


def _graded(update: Update, _: Route) -> Told:
    return {"event": "graded", "passed": update["passed"], "failed": update["failed"]}


def _decided(update: Update, _: Route) -> Told:
    if update["proposal"] is None:
        return None
    decision = {key: update["decision"][key] for key in ("decision", "entry")}
    return {"event": "repair_decided", "probe": update["proposal"], **decision}


def _written(update: Update, _: Route) -> Told:
    return {"event": "repair_written", "entries": update["written"]} if "written" in update else None


def _rolled_back(update: Update, _: Route) -> Told:
    return {"event": "rolled_back", "repairs": len(update["warnings"])}


def _maintained(update: Update, _: Route) -> Told:
    return {"event": "maintained", **update["maintained"]}


_COMMITTED = (
    "status", "committed", "probes", "passed_before", "passed_after", "ungraded", "repairs", "rolled_back",
    "merged", "episodes",
)  # fmt: skip


def _committed(update: Update, _: Route) -> Told:
    return {"event": "committed"} | {key: update["result"][key] for key in _COMMITTED}


DECIDING: dict[str, Callable[[Update, Route], Told]] = {
    "stage": _staged,
    "plan": _planned,
    "decompose": _planned,
    "swap": _planned,
    "search": _found,
    "widen": _found,
    "judge": _judged,
    "settle": _settled,
    "guide": _guided,
    "construct": _drafted,
    "reextract": _drafted,
    "check": _allowed,
    "refresh": _allowed,
    "approve": _allowed,
    "approve_refresh": _allowed,
    "approve_repair": _allowed_repair,
    "apply": _applied,
    "apply_refresh": _applied,
    "trigger": _triggered,
    "finish": _remembered,
    "think": _thought,
    "reason": _refined,
    "reflect": _refined,
    "answer": _answered,
    "present": _answered,
    "verify": _answered,
    "find_waiting": _opened,
    "apply_episode": _summarised,
    "probe": _probed,
    "look_up": _looked_up,
    "examine": _tried("probe_answered", "answered"),
    "grade": _graded,
    "repair": _tried("repair_tried", "mended"),
    "consolidate": _decided,
    "write_repair": _written,
    "roll_back": _rolled_back,
    "maintain": _maintained,
    "commit": _committed,
}
"""What each node that decides something tells, by its name."""
