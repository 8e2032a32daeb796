"""What a node returned becomes an event: a table of pure calls, and what the page says of them."""

import json
import re
from pathlib import Path

from langgraph.types import Interrupt

from memcycle.graph.events import EDGE, Edge, approval_asked, event_of

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
    "forgetting": ["secret"],
    "warnings": ["secret"],
}
VERDICT = {
    "relevant": ["f"],
    "conflicts": [{"memory": "f", "turn": "D1:1", "other": None, "why": "secret"}],
    "sufficient": False,
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
    ("staged", {"chunk": ["D1:1"]}, {"event": "staged", "turns": ["D1:1"]}),
    (
        "planned",
        {"plans": [{"operator": "raw", "query": "secret"}, {"operator": "raw"}, {"operator": "fact"}]},
        {"event": "planned", "searches": {"raw": 2, "fact": 1}},
    ),
    ("found", {"candidates": [{}, {}]}, {"event": "found", "candidates": 2}),
    ("found", {"found": {"p": ["a", "b"], "q": ["b"]}}, {"event": "found", "candidates": 2}),
    (
        "judged",
        {"verdict": VERDICT, EDGE: Edge("Refresh", "conflicts")},
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
    ("settled", {"outdated": ["f"]}, {"event": "settled", "outdated": ["f"]}),
    (
        "guided",
        {"guidance": {"keep": ["secret"], "redundant": []}},
        {"event": "guided", "keep": 1, "redundant": 0, "conflicts": 0},
    ),
    ("guided", {"guidance": {}}, {"event": "guided", "keep": 0, "redundant": 0, "conflicts": 0}),
    (
        "drafted",
        {"drafts": [{"text": "secret"}], "result": RESULT},
        {"event": "drafted", "facts": 1, "unread": 0, "uncovered": 0},
    ),
    (
        "drafted",
        {"drafts": [], "result": {**RESULT, "unextracted": ["D1:1"], "uncovered": ["D1:2", "D1:3"]}},
        {"event": "drafted", "facts": 0, "unread": 1, "uncovered": 2},
    ),
    (
        "allowed",
        {"edits": [ADD, ADD, UPDATE], "result": RESULT},
        {"event": "allowed", "edits": {"ADD": 2, "UPDATE": 1}, "rejected": 1},
    ),
    ("allowed", {"edits": [UPDATE]}, {"event": "allowed", "edits": {"UPDATE": 1}, "rejected": 0}),
    (
        "allowed",
        {"edits": [], "result": RESULT},
        {"event": "allowed", "edits": {}, "rejected": 1},
    ),
    (
        "allowed",
        {"edit": {"op": "ADD", "entry": {"text": "secret"}}},
        {"event": "allowed", "edits": {"ADD": 1}, "rejected": 0},
    ),
    (
        "allowed",
        {"edit": None, "decision": {}},
        {"event": "allowed", "edits": {}, "rejected": 1},
    ),
    ("allowed", {}, None),
    (
        "applied",
        {"result": RESULT},
        {"event": "applied", "facts": ["f"], "refreshed": ["old"], "rejected": 1},
    ),
    ("triggered", {"episodes": [{"turns": ["D1:1"]}]}, {"event": "triggered", "episodes": 1}),
    (
        "remembered",
        {"result": RESULT},
        {**RESULT, "event": "remembered", "rejected": 1, "forgetting": 1, "warnings": 1},
    ),
    (
        "thought",
        {"gap": {"answerable": False, "gap": "secret"}, EDGE: Edge("not answerable")},
        {"event": "thought", "answerable": False, "route": "not answerable"},
    ),
    ("refined", {"plans": [{"query": "secret"}]}, {"event": "refined", "new_query": True}),
    (
        "answered",
        {
            "answer": {
                "answer": "secret",
                "mode": "answer",
                "answerable": True,
                "rounds": 1,
                "evidence": [{"id": "f", "text": "secret"}],
            }
        },
        {
            "event": "answered",
            "mode": "answer",
            "answerable": True,
            "evidence": ["f"],
            "rounds": 1,
        },
    ),
    (
        "opened",
        {"open": True, "waiting": ["D1:1"]},
        {"event": "opened", "open": True, "waiting": 1},
    ),
    (
        "summarised",
        {"result": {"episodes": ["e"]}, "warnings": []},
        {"event": "summarised", "episodes": ["e"]},
    ),
    ("probed", {"probes": ["p", "q"]}, {"event": "probed", "probes": ["p", "q"]}),
    ("probe_answered", {"answered": ["p"]}, {"event": "probe_answered", "probes": ["p"]}),
    ("probe_answered", {}, None),
    ("repair_tried", {"mended": ["p"]}, {"event": "repair_tried", "probes": ["p"]}),
    (
        "graded",
        {"passed": ["p"], "failed": ["q"]},
        {"event": "graded", "passed": ["p"], "failed": ["q"]},
    ),
    (
        "repair_decided",
        {"proposal": "p", "decision": {"decision": "MERGE", "entry": "f", "why": "secret"}},
        {"event": "repair_decided", "probe": "p", "decision": "MERGE", "entry": "f"},
    ),
    ("repair_decided", {"proposal": None, "edit": None}, None),
    ("repair_written", {"written": ["f"]}, {"event": "repair_written", "entries": ["f"]}),
    ("repair_written", {"proposal": None}, None),
    ("rolled_back", {"warnings": ["secret"]}, {"event": "rolled_back", "repairs": 1}),
    ("maintained", {"maintained": TIDIED}, {"event": "maintained", **TIDIED}),
    (
        "committed",
        {"result": {**COUNTS, "session": "1", "reason": "secret", "warnings": ["secret"]}},
        {"event": "committed", **COUNTS},
    ),
]


def kinds() -> dict[str, set[str]]:
    """Fields by event, as the table has them."""
    told = {name: set(event) - {"event"} for name, _, event in TABLE if event is not None}
    return told | {"approval_asked": {"items"}}


def test_what_a_node_returned_becomes_an_event_of_its_type_that_holds_no_text():
    for name, update, told in TABLE:
        event = event_of(name, update)
        assert event == told, name
        assert json.loads(json.dumps(event)) == event, name
        assert told is None or set(event) - {"event"} == kinds()[event["event"]], name
        assert "secret" not in json.dumps(event), name


def test_an_interrupt_that_asks_a_person_is_told_without_what_it_asks():
    assert approval_asked([ASKED]) == {"event": "approval_asked", "items": 2}
    assert approval_asked([Interrupt({"may I": "secret"}, id="i")]) is None


def test_the_page_lists_every_event_with_its_fields():
    text = (Path(__file__).parents[2] / "docs/how-to/embed.md").read_text("utf-8")
    text = text.partition("## What it decides")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]*) \|$", text, flags=re.MULTILINE)
    assert {name: set(re.findall(r"`(\w+)`", fields)) for name, fields in rows} == kinds()
