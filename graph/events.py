"""What the nodes decided, as small events for user interfaces: `stream_mode="custom"` gives them.

An event holds ids, counts and fixed words, all JSON, and never a text of a conversation or of a model:
whoever may see texts looks them up by id. Of nested graphs LangGraph gives them with `subgraphs=True`. What a
run wrote and refused is counted from its start, since a user interface may join late.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

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


Event = Mapping[str, Any]
"""An event as it is streamed: `graph`, `node`, `event`, and that event's fields, see docs/how-to/embed.md."""


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
