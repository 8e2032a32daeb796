"""What the nodes decided, as small events for user interfaces: `stream_mode="custom"` gives them.

An event holds ids, counts and fixed words, all JSON, and never a text of a conversation or of a model:
whoever may see texts looks them up by id. Of nested graphs LangGraph gives them with `subgraphs=True`. What a
run wrote and refused is counted from its start, since a user interface may join late.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from typing_extensions import TypedDict

GraphName = Literal["remember", "recall", "session"]

Update = Mapping[str, Any]
"""The partial state a node returned, and under `EDGE` which edge is taken after it."""

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
    forgetting: int
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
    """Ids of the probes that were put to memory, or that the Repairer looked at, in one go."""

    event: Literal["probe_answered", "repair_tried"]
    probes: list[str]


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
"""Any of them; `event` says which."""


def event_of(name: str, update: Update) -> dict[str, Any] | None:
    """The event of this name, of what a node returned; None where there is nothing to tell.

    Which node tells what is written where the graphs are; `graph` and `node` are added there.
    """
    fields = _FIELDS[name](update)
    return None if fields is None else {"event": name, **fields}


def approval_asked(interrupts: Iterable[Any]) -> dict[str, Any] | None:
    """The event of the interrupts of a node that stopped; None where they are not ours."""
    payloads = [interrupt.value for interrupt in interrupts]
    ours = [one for one in payloads if isinstance(one, Mapping) and one.get("type") == APPROVAL]
    items = sum(len(one["items"]) for one in ours)
    return {"event": "approval_asked", "items": items} if ours else None


def _judged(update: Update) -> dict[str, Any]:
    verdict, edge = update["verdict"], update[EDGE]
    return {
        "route": edge.label,
        "why": edge.why,
        "shown": verdict["shown"],
        "relevant": len(verdict["relevant"]),
        "conflicts": len(verdict["conflicts"]),
        "sufficient": verdict["sufficient"],
    }


def _found(update: Update) -> dict[str, Any]:
    """Of one search, or of the searches for all probes."""
    if "candidates" in update:
        return {"candidates": len(update["candidates"])}
    return {"candidates": len({entry for found in update["found"].values() for entry in found})}


def _allowed(update: Update) -> dict[str, Any] | None:
    """Of a chunk's edits, or of the one edit of a repair; None where there was none."""
    if "edits" in update:
        edits, rejected = update["edits"], len(update.get("result", {}).get("rejected", []))
    elif "edit" in update:
        edits = [update["edit"]] if update["edit"] is not None else []
        rejected = 1 - len(edits)
    else:
        return None
    return {"edits": dict(Counter(edit["op"] for edit in edits)), "rejected": rejected}


def _answered(update: Update) -> dict[str, Any]:
    answer = update["answer"]
    fields = _picked(answer, "mode", "answerable", "rounds")
    return {**fields, "evidence": [item["id"] for item in answer["evidence"]]}


def _picked(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: values[name] for name in names}


_FIELDS: Mapping[str, Callable[[Update], dict[str, Any] | None]] = {
    "staged": lambda update: {"turns": update["chunk"]},
    "planned": lambda update: {"searches": dict(Counter(plan["operator"] for plan in update["plans"]))},
    "found": _found,
    "judged": _judged,
    "settled": lambda update: _picked(update, "outdated"),
    "guided": lambda update: {
        name: len(update["guidance"].get(name) or []) for name in ("keep", "redundant", "conflicts")
    },
    "drafted": lambda update: {
        "facts": len(update["drafts"]),
        "unread": len(update["result"]["unextracted"]),
        "uncovered": len(update["result"]["uncovered"]),
    },
    "allowed": _allowed,
    "applied": lambda update: {
        **_picked(update["result"], "facts", "refreshed"),
        "rejected": len(update["result"]["rejected"]),
    },
    "triggered": lambda update: {"episodes": len(update["episodes"])},
    "remembered": lambda update: {
        **update["result"],
        **{name: len(update["result"][name]) for name in ("rejected", "forgetting", "warnings")},
    },
    "thought": lambda update: {"answerable": update["gap"]["answerable"], "route": update[EDGE].label},
    "refined": lambda update: {"new_query": bool(update["plans"])},
    "answered": _answered,
    "opened": lambda update: {"open": update["open"], "waiting": len(update["waiting"])},
    "summarised": lambda update: _picked(update["result"], "episodes"),
    "probed": lambda update: _picked(update, "probes"),
    "probe_answered": lambda update: {"probes": found} if (found := update.get("answered")) else None,
    "graded": lambda update: _picked(update, "passed", "failed"),
    "repair_tried": lambda update: {"probes": found} if (found := update.get("mended")) else None,
    "repair_decided": lambda update: (
        {"probe": update["proposal"], **_picked(update["decision"], "decision", "entry")}
        if update["proposal"] is not None
        else None
    ),
    "repair_written": lambda update: {"entries": update["written"]} if "written" in update else None,
    "rolled_back": lambda update: {"repairs": len(update["warnings"])},
    "maintained": lambda update: update["maintained"],
    "committed": lambda update: _picked(
        update["result"], *(Committed.__annotations__.keys() - {"event", "graph", "node"})
    ),
}
"""What an event holds, by its name; None where there is nothing to tell."""
