"""What recall takes for evidence: what tells something, and what the reader does not see anyway."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from memcycle import Memory, build_memory

CONTEXT = {"user": "ana"}


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path / "home", user="ana") as opened:
        yield opened


def texts(memory, question, **options):
    return [one.text for one in memory.recall(question, **options).evidence]


@pytest.mark.parametrize("threads", ["one", "each"])
@pytest.mark.parametrize(
    "asked",
    [
        ["Where do I live?"] * 3,
        ["where do i live", "Hey, where do I live", "Where do I live?"],
        ["What is my favourite food?"] * 2,
        ["Tell me where I live."] * 2,
        ["Wo wohne ich?"] * 3,
        ["wo wohne ich"] * 3,
        ["¿Dónde vivo?", "Dónde vivo"],
        ["我住在哪里？", "我住在哪里"],
        ["Do I like tea or coffee?", "do I like coffee?", "Hey, what do I like?"],
    ],
)
def test_a_question_is_no_evidence_for_itself(memory, asked, threads):
    graph = build_memory(bank=memory.bank)
    for n, question in enumerate(asked):
        session = "t" if threads == "one" else f"t{n}"
        out = graph.invoke({"messages": [("user", question)]}, context={**CONTEXT, "session": session})
        assert out["recalled"]["evidence"] == []
        assert out["recalled"]["answerable"] is False
        if threads == "each":
            memory.end_session(session)
    assert memory.ask(asked[-1]).evidence == []
    assert memory.memories(granularity="fact") == memory.memories(granularity="episode") == []


def test_small_talk_takes_no_place_beside_a_fact(memory):
    memory.add("I teach fencing in Linz.", session="first")
    memory.end_session("first")
    for n in range(4):
        for text in ("Where do I teach?", "ok, I see", "thanks", "Great!"):
            memory.add([("user", text), ("assistant", "You're welcome!")], session=f"s{n}")
        memory.end_session(f"s{n}")
    assert {text for text in texts(memory, "Where do I teach?") if "fencing" not in text} == set()
    assert "I teach fencing in Linz." in texts(memory, "Where do I teach?", k=1)


def test_a_short_reply_is_shown_with_its_question_as_one(memory):
    memory.add([("assistant", "Hello! Have you been to Rome?"), ("user", "Yes, twice.")])
    assert texts(memory, "Was I in Rome?") == ["(assistant asked: Have you been to Rome?) Yes, twice."]
    assert "Yes, twice." in memory.ask("Have I been to Rome?").answer


@pytest.mark.parametrize("by", ["id", "words"])
def test_what_the_reader_sees_anyway_takes_no_place(memory, by):
    memory.add("I keep geese in the garden of my aunt in Steyr.", session="monday")
    memory.end_session("monday")
    own = [HumanMessage(f"I keep geese, and goose number {n} is grey.", id=f"m{n}") for n in range(40)]
    memory.add(own, session="tuesday")
    assert texts(memory, "Where do I keep geese?", session="tuesday", k=2) != [
        "I keep geese in the garden of my aunt in Steyr."
    ]
    seen = own if by == "id" else [("user", one.text) for one in own]
    for asked in (seen, [*seen, ("user", "Where do I keep geese?")]):
        found = texts(memory, "Where do I keep geese?", session="tuesday", k=2, seen=asked)
        assert set(found) == {"I keep geese in the garden of my aunt in Steyr."}


def test_a_correction_of_what_is_seen_is_shown(memory):
    memory.add("I keep two hives.", session="s")
    [fact] = memory.memories(granularity="fact")
    memory.edit(fact.id, "I keep three hives.")
    assert texts(memory, "How many hives do I keep?", session="s", seen=["I keep two hives."]) == [
        "I keep three hives."
    ]


def test_a_reply_that_reads_the_messages_gets_what_is_not_in_them(memory):
    memory.add("I keep geese in Steyr.", session="monday")
    memory.end_session("monday")

    def reply(state):
        return {"messages": [AIMessage(" | ".join(one["text"] for one in state["recalled"]["evidence"]))]}

    said = [("user", "I keep geese in Graz."), ("assistant", "Noted."), ("user", "Where do I keep geese?")]
    memory.add(said[0], session="tuesday")
    context = {**CONTEXT, "session": "tuesday"}
    for graph, expected in (
        (build_memory(bank=memory.bank, reply=reply), {"I keep geese in Steyr."}),
        (
            build_memory(bank=memory.bank),
            {"I keep geese in Graz."},
        ),  # the reply as shipped reads the evidence
    ):
        out = graph.invoke({"messages": said}, context=context)
        assert {one["text"] for one in out["recalled"]["evidence"]} == expected


def test_what_an_assistant_repeats_is_shown_once(memory):
    for n in range(3):
        memory.add([("user", "Where is the key?"), ("assistant", "The key is in the shed.")], session=f"s{n}")
        memory.end_session(f"s{n}")
    found = [one for one in memory.recall("Where is the key?").evidence if one.granularity == "raw"]
    assert [(one.role, one.text) for one in found] == [("ai", "The key is in the shed.")]


def test_since_when_something_is_no_longer_so(memory):
    memory.add("I live in Graz.", now="2025-01-05T10:00:00+00:00", session="a")
    memory.add("I moved to Linz.", now="2025-06-01T10:00:00+00:00", session="a")
    old = next(one for one in memory.recall("Where do I live?", session="a").evidence if not one.current)
    assert (old.text, old.until.date().isoformat()) == ("I live in Graz.", "2025-06-01")
