"""What a node returned becomes an event: a table of pure calls, and what the README says of them."""

import json
import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from langgraph.types import Interrupt

from memcycle.graph.events import INTERRUPT, Event, Route, event_of

ADD, UPDATE = {"op": "ADD"}, {"op": "UPDATE"}
RESULT = {
    "turns": ["D1:1"],
    "facts": ["f"],
    "episodes": ["e"],
    "refreshed": ["old"],
    "unextracted": [],
    "reextracted": ["D1:1"],
    "uncovered": [],
    "rejected": [{"text": "secret", "why": "secret"}],
    "warnings": ["secret"],
}
VERDICT = {
    "relevant": ["f"],
    "conflicts": [{"memory": "f", "turn": "D1:1", "other": None, "why": "secret"}],
    "sufficient": False,
    "missing": "secret",
    "shown": 3,
    "judged": True,
}
COUNTS = {
    "status": "committed", "committed": 4, "probes": 3, "passed_before": 1, "passed_after": 2, "ungraded": 0,
    "repairs": 1, "rolled_back": 0, "merged": 0, "episodes": ["e"],
}  # fmt: skip
TIDIED = {"merged": 1, "reinforced": 2, "expired": 3, "superseded": 4}
ASKED = Interrupt({"type": "memcycle.approval", "items": [{"before": "secret"}, {"after": "secret"}]}, id="i")

TABLE = [
    ("remember", "stage", {"chunk": ["D1:1"]}, {"event": "staged", "turns": ["D1:1"]}),
    (
        "recall",
        "plan",
        {"plans": [{"operator": "raw", "query": "secret"}, {"operator": "raw"}, {"operator": "fact"}]},
        {"event": "planned", "searches": {"raw": 2, "fact": 1}},
    ),
    ("recall", "search", {"candidates": [{}, {}]}, {"event": "found", "candidates": 2}),
    ("recall", "widen", {"candidates": [{}], "round": 1}, {"event": "found", "candidates": 1}),
    ("session", "look_up", {"found": {"p": ["a", "b"], "q": ["b"]}}, {"event": "found", "candidates": 2}),
    (
        "remember",
        "judge",
        {"verdict": VERDICT},
        {
            "event": "judged",
            "route": "Refresh",
            "why": "conflicts",
            "shown": 3,
            "relevant": 1,
            "conflicts": 1,
            "sufficient": False,
        },
    ),
    ("recall", "settle", {"outdated": ["f"]}, {"event": "settled", "outdated": ["f"]}),
    (
        "remember",
        "guide",
        {"guidance": {"keep": ["secret"], "redundant": []}},
        {"event": "guided", "keep": 1, "redundant": 0, "conflicts": 0},
    ),
    ("remember", "guide", {"guidance": {}}, {"event": "guided", "keep": 0, "redundant": 0, "conflicts": 0}),
    (
        "remember",
        "construct",
        {"drafts": [{"text": "secret"}]},
        {"event": "drafted", "facts": 1, "unread": 0, "uncovered": 0},
    ),
    (
        "remember",
        "construct",
        {"drafts": [], "result": {**RESULT, "unextracted": ["D1:1"], "uncovered": ["D1:2", "D1:3"]}},
        {"event": "drafted", "facts": 0, "unread": 1, "uncovered": 2},
    ),
    (
        "remember",
        "check",
        {"edits": [ADD, ADD, UPDATE], "result": RESULT},
        {"event": "allowed", "edits": {"ADD": 2, "UPDATE": 1}, "rejected": 1},
    ),
    ("recall", "refresh", {"edits": [UPDATE]}, {"event": "allowed", "edits": {"UPDATE": 1}, "rejected": 0}),
    (
        "remember",
        "approve",
        {"edits": [], "result": RESULT},
        {"event": "allowed", "edits": {}, "rejected": 1},
    ),
    (
        "session",
        "approve_repair",
        {"edit": {"op": "ADD", "entry": {"text": "secret"}}},
        {"event": "allowed", "edits": {"ADD": 1}, "rejected": 0},
    ),
    (
        "session",
        "approve_repair",
        {"edit": None, "decision": {}},
        {"event": "allowed", "edits": {}, "rejected": 1},
    ),
    ("session", "approve_repair", {}, None),
    ("remember", "approve", {INTERRUPT: (ASKED,)}, {"event": "approval_asked", "items": 2}),
    ("recall", "plan", {INTERRUPT: (Interrupt({"may I": "secret"}, id="i"),)}, None),
    (
        "remember",
        "apply",
        {"result": RESULT},
        {"event": "applied", "facts": ["f"], "refreshed": ["old"], "rejected": 1},
    ),
    ("recall", "apply_refresh", {"edits": []}, None),
    ("remember", "trigger", {"episodes": [{"turns": ["D1:1"]}]}, {"event": "triggered", "episodes": 1}),
    (
        "remember",
        "finish",
        {"result": RESULT},
        {**RESULT, "event": "remembered", "rejected": 1, "warnings": 1},
    ),
    (
        "recall",
        "think",
        {"gap": {"answerable": False, "gap": "secret"}},
        {"event": "thought", "answerable": False, "route": "Refresh"},
    ),
    ("recall", "reflect", {"plans": []}, {"event": "refined", "new_query": False}),
    ("recall", "reason", {"plans": [{"query": "secret"}]}, {"event": "refined", "new_query": True}),
    (
        "recall",
        "answer",
        {
            "answer": {
                "answer": "secret",
                "mode": "answer",
                "answerable": True,
                "confidence": 0.5,
                "rounds": 1,
                "evidence": [{"id": "f", "text": "secret"}],
            }
        },
        {
            "event": "answered",
            "mode": "answer",
            "answerable": True,
            "confidence": 0.5,
            "evidence": ["f"],
            "rounds": 1,
        },
    ),
    (
        "session",
        "find_waiting",
        {"open": True, "waiting": ["D1:1"]},
        {"event": "opened", "open": True, "waiting": 1},
    ),
    (
        "session",
        "apply_episode",
        {"result": {"episodes": ["e"]}, "warnings": []},
        {"event": "summarised", "episodes": ["e"]},
    ),
    ("session", "probe", {"probes": ["p", "q"]}, {"event": "probed", "probes": ["p", "q"]}),
    ("session", "examine", {"answered": ["p"]}, {"event": "probe_answered", "probe": "p"}),
    ("session", "examine", {}, None),
    ("session", "repair", {"mended": ["p"]}, {"event": "repair_tried", "probe": "p"}),
    (
        "session",
        "grade",
        {"passed": ["p"], "failed": ["q"]},
        {"event": "graded", "passed": ["p"], "failed": ["q"]},
    ),
    (
        "session",
        "consolidate",
        {"proposal": "p", "decision": {"decision": "MERGE", "entry": "f", "why": "secret"}},
        {"event": "repair_decided", "probe": "p", "decision": "MERGE", "entry": "f"},
    ),
    ("session", "consolidate", {"proposal": None, "edit": None}, None),
    ("session", "write_repair", {"written": ["f"]}, {"event": "repair_written", "entries": ["f"]}),
    ("session", "write_repair", {"proposal": None}, None),
    ("session", "roll_back", {"warnings": ["secret"]}, {"event": "rolled_back", "repairs": 1}),
    ("session", "maintain", {"maintained": TIDIED}, {"event": "maintained", **TIDIED}),
    (
        "session",
        "commit",
        {"result": {**COUNTS, "session": "1", "reason": "secret", "warnings": ["secret"]}},
        {"event": "committed", **COUNTS},
    ),
    ("recall", "listen", {"plans": []}, None),
    ("remember", "write_episode", {"edits": [ADD]}, None),
    ("session", "close_episode", {"episodes": [{"text": "secret"}]}, None),
]


def kinds() -> dict[str, set[str]]:
    """Fields by event, as they are typed."""
    found: dict[str, set[str]] = {}
    for typed in get_args(Event):
        hints = get_type_hints(typed)
        for name in get_args(hints["event"]):
            found[name] = set(hints) - {"event", "graph", "node"}
    return found


@pytest.mark.parametrize(("graph", "node", "update", "told"), TABLE)
def test_what_a_node_returned_is_told(graph, node, update, told):
    event = event_of(graph, node, update, Route("Refresh", "conflicts"))
    assert event == ({"graph": graph, "node": node, **told} if told is not None else None)


@pytest.mark.parametrize(("graph", "node", "update", "told"), [row for row in TABLE if row[3] is not None])
def test_events_are_json_typed_and_hold_no_text(graph, node, update, told):
    event = event_of(graph, node, update, Route("Refresh", "conflicts"))
    assert json.loads(json.dumps(event)) == event
    assert set(event) - {"event", "graph", "node"} == kinds()[event["event"]]
    assert "secret" not in json.dumps(event)


def test_the_table_above_has_every_event():
    assert {told["event"] for *_, told in TABLE if told is not None} == set(kinds())


def test_the_readme_lists_every_event_with_its_fields():
    text = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]*) \|$", text, flags=re.MULTILINE)
    assert {name: set(re.findall(r"`(\w+)`", fields)) for name, fields in rows if name in kinds()} == kinds()
