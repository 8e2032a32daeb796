"""What the nodes decided, as small events for user interfaces: `stream_mode="custom"` gives them.

An event holds ids, counts and fixed words, all JSON, and never a text of a conversation or of a model:
whoever may see texts looks them up by id. Of nested graphs LangGraph gives them with `subgraphs=True`. What a
run wrote and refused is counted from its start, since a user interface may join late.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, Required

from typing_extensions import TypedDict

from memcycle.core.probe import SessionReport

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


class Event(TypedDict, total=False):
    """An event of any kind: `event` says which, and so which of the other fields it has (see README.md).

    What lies in memory is named by ids in a list, or counted.
    """

    graph: Required[GraphName]
    node: Required[str]
    event: Required[str]
    # How many searches by operator (raw, fact, episode), edits by operation, entries found.
    searches: dict[str, int]
    edits: dict[str, int]
    candidates: int
    # The Judge: the edge with its reason (`routes.JudgeReason`), and what it is computed from.
    route: str
    why: str
    shown: int
    relevant: int
    conflicts: int
    sufficient: bool
    outdated: list[str]
    # The Meta-Thinker: facts to keep, known already; whether a question is answerable.
    keep: int
    redundant: int
    answerable: bool | None
    new_query: bool
    # The run stops: edits that a person must allow.
    items: int
    # What a run did so far: ids, but counts before they are written and of what is refused.
    turns: list[str]
    facts: list[str] | int
    episodes: list[str] | int
    refreshed: list[str]
    unextracted: list[str]
    reextracted: list[str]
    uncovered: list[str] | int
    unread: int
    rejected: int
    forgetting: int
    warnings: int
    # An answer, the ids of the evidence it rests on, and rounds of search.
    mode: str
    evidence: list[str]
    rounds: int
    # A session's end, with the counts of `SessionReport`; what is neither passed nor failed is ungraded.
    open: bool
    waiting: int
    probes: list[str] | int
    passed: list[str]
    failed: list[str]
    probe: str
    decision: str
    entry: str | None
    entries: list[str]
    repairs: int
    rolled_back: int
    merged: int
    reinforced: int
    expired: int
    superseded: int
    status: str
    committed: int
    passed_before: int
    passed_after: int
    ungraded: int


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
        update["result"], "status", "episodes", *(SessionReport.model_fields.keys() - {"usage"})
    ),
}
"""What an event holds, by its name; None where there is nothing to tell."""
