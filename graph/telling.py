"""From what a node returned to the event that tells it: pure functions, nothing is looked up."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from memcycle.graph.events import Event, GraphName

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
