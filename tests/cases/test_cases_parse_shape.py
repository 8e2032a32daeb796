"""A11 to A15: replies that are hard to read, and messages of odd shapes."""

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from memcycle import build_memory
from tests.cases.adapter import facts


def test_a11_fence_preamble_and_trailing_commas(product):
    p = product(
        constructor=['Sure, here you go:\n```json\n{"facts": ["Repairs accordions",],}\n```\nAnything else?']
    )
    result = p.add("I repair accordions.")
    assert p.texts() == ["Repairs accordions"]
    assert len(p.constructor.prompts) == 1
    assert (result.warnings, result.unextracted) == ([], [])


NARROWBOAT = '{"facts":["Lives on a narrowboat"]}'


@pytest.mark.parametrize(
    "reply",
    [
        f'<think>maybe {{"facts":["WRONG"]}}? no</think>\n{NARROWBOAT}',
        f'maybe ["WRONG"]</think>{NARROWBOAT}',
    ],
)
def test_a12_only_what_follows_the_thinking_counts(product, reply):
    p = product(constructor=[reply])
    result = p.add("We moved onto a narrowboat.")
    assert p.texts() == ["Lives on a narrowboat"]
    assert not any(word in f"{result}{p.stored()}" for word in ("WRONG", "think"))


ANSWERS = {
    "retriever": ({"plans": []}, {"plans": [{"n": 1, "query": "WRONG", "intent": {}, "k": 9}]}),
    "judge": (
        {"relevant": [0], "sufficient": True},
        {"relevant": [], "sufficient": True, "missing": "WRONG"},
    ),
    "answerer": (
        {"answer": "On a narrowboat", "answerable": True, "citations": [0], "confidence": 0.9},
        {"answer": "WRONG", "answerable": True, "citations": [0], "confidence": 0.9},
    ),
}


@pytest.mark.parametrize("opening", ["<think>", ""])
@pytest.mark.parametrize("role", ANSWERS)
def test_a12_in_every_role_that_answers(product, role, opening):
    true, decoy = (json.dumps(answer) for answer in ANSWERS[role])
    p = product(**{role: [f"{opening}maybe {decoy}? no</think>\n{true}"]})
    p.knows("Lives on a narrowboat")
    answer = p.memory.ask("Where does the user live?", user="u1")
    assert len(p.models[role].prompts) == 1
    assert "WRONG" not in str(answer.model_dump())
    assert "think" not in str(answer.model_dump())


ECHO = '{"$defs":{},"properties":{"facts":{"type":"array"}},"required":["facts"]}'


def test_a13_an_echoed_schema_is_asked_about_once(product):
    p = product(constructor=[ECHO, '{"facts":["Grows saffron"]}'])
    p.add("I grow saffron.")
    assert p.texts() == ["Grows saffron"]
    first, second = p.constructor.prompts
    objection = second.removeprefix(first.split("\n\n")[0])
    assert "missing: facts" in objection
    assert "missing: facts" not in first


def test_a13_twice_is_an_explicit_failure_and_the_graph_answers(product):
    """`status == "extraction_failed"` is `unextracted` here: ids of turns that wait for the next run."""
    p = product(constructor=[ECHO, ECHO, facts("Grows saffron")])
    graph = build_memory(p.memory.roles, p.memory.bank)
    context = {"user": "u1", "session": "s"}
    out = graph.invoke({"messages": [HumanMessage("I grow saffron.")]}, context=context)
    assert out["remembered"]["unextracted"] == ["Ds:1", "Ds:2"]
    assert any("'constructor' failed" in warning for warning in out["remembered"]["warnings"])
    assert p.made() == []
    assert out["messages"][-1].content == "Noted."
    p.add("That is all.", session="s")
    assert p.texts() == ["Grows saffron"]


CALL = {"name": "book", "args": {"room": "loom"}, "id": "call_1"}
BOOKED = '{"ok":true,"room":"L2"}'
VARIANTS = {
    "langchain": [
        HumanMessage("Book the loom room"),
        AIMessage("", tool_calls=[CALL]),
        ToolMessage(BOOKED, tool_call_id="call_1"),
        AIMessage("Booked L2."),
    ],
    "no content": [
        {"role": "user", "content": "Book the loom room"},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "content": BOOKED, "tool_call_id": "call_1"},
        {"role": "assistant", "content": "Booked L2."},
    ],
    "content None": [
        {"role": "user", "content": "Book the loom room"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": BOOKED, "tool_call_id": "call_1"},
        {"role": "assistant", "content": "Booked L2."},
    ],
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a14_tool_calls(product, variant):
    p = product(constructor=['{"facts":[]}'])
    p.add(VARIANTS[variant])
    said = p.constructor.said[0]
    assert "Book the loom room" in said
    roles = [line.split('role="')[1].split('"')[0] for line in said.splitlines() if BOOKED in line]
    assert roles in ([], ["tool"])
    assert p.made() == []


@pytest.mark.parametrize("turn", [2, 3])
def test_a14_tool_output_backs_no_fact(product, turn):
    p = product(constructor=[facts({"text": "Has booked room L2", "turn": turn})])
    result = p.add(VARIANTS["langchain"])
    assert p.made() == []
    assert [refused.text for refused in result.rejected] == ["Has booked room L2"]


def test_a15_image_bytes_go_nowhere(product, caplog):
    caplog.set_level(0)
    p = product(constructor=['{"facts":["Has a new greenhouse"]}'])
    url = "data:image/png;base64," + "A" * 200000
    blocks = [
        {"type": "text", "text": "This is my new greenhouse"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    p.add(HumanMessage(blocks))
    assert p.texts() == ["Has a new greenhouse"]
    (prompt,) = p.constructor.prompts
    assert "This is my new greenhouse" in prompt
    assert len(prompt) < 8000
    p.memory.end_session("main", user="u1")
    p.recall("What is new?")
    p.close()
    assert b"AAAA" not in p.files()
    assert "AAAA" not in str(p.embeddings.calls)
    assert "AAAA" not in caplog.text


def test_a15_a_huge_message_is_kept_whole(product):
    """Text is never cut in the store, and reading it by rules stays linear, or this would not end."""
    for part in "I keep bees. ", "bees\n", "bees", "🐝 bees ", "e.g. ", "?! ", "(((", "蜜蜂", "[image: ":
        huge = part * (20_000 // len(part))
        p = product()
        result = p.add(huge)
        (raw,) = p.stored(granularity="raw")
        assert raw.text == huge.strip(), part
        assert result.unextracted == [], part
