"""The examination without a model: Prober, Grader, Repairer, Consolidator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcycle.agents.answerer import AnswererInput
from memcycle.agents.consolidator import ConsolidatorInput
from memcycle.agents.grader import GradeItem, GraderInput
from memcycle.agents.prober import ProberInput
from memcycle.agents.repairer import RepairerInput
from memcycle.agents.rules import RULES
from memcycle.agents.rules.constructor import constructor
from memcycle.agents.views import MemoryView
from tests.agents.conftest import TIME, chunk, said

CHAT = [
    "I sold the old loom at the market in Graz yesterday.",
    "Who bought it?",
    "My neighbour Ruth keeps four alpacas behind the mill.",
    "Great!",
    "I am learning the cello with a teacher from Porto.",
]


def probes(texts=CHAT, count=3, memories=()):
    value = ProberInput(
        turns=[said(t, n) for n, t in enumerate(texts, 1)], memories=list(memories), count=count, now=TIME
    )
    return RULES["prober"](value).probes


def facts(*texts: str) -> list[MemoryView]:
    drafts = constructor(chunk(*texts)).facts
    return [
        MemoryView(
            n=n, granularity="fact", text=draft.text, speaker="Ana", time=TIME, event_time=draft.event_time
        )
        for n, draft in enumerate(drafts)
    ]


def test_each_probe_asks_for_a_statement_by_some_of_its_words():
    found = probes()
    assert [probe.turn for probe in found] == [1, 3, 5]
    assert [probe.kind for probe in found] == ["temporal", "single-hop", "single-hop"]
    assert found[0].answer == "11 March 2024"
    assert [probe.answer for probe in found[1:]] == [CHAT[2], CHAT[4]]
    assert all("Ana" in probe.question for probe in found)


def test_what_speaks_of_earlier_sessions_is_a_cross_session_probe():
    (probe,) = probes(
        CHAT[2:3], memories=facts("I photographed four alpacas near the mill behind the church.")
    )
    assert probe.kind == "cross-session"


def test_there_is_nothing_to_ask_where_nothing_is_stated():
    assert probes(["Hello!", "How are you?", "Thanks!"]) == []


@pytest.mark.parametrize("text", [*CHAT, "I taught Ruth chess in May 2021, and she won the cup in Oslo."])
def test_a_stored_statement_answers_its_probe_and_a_missing_one_fails_it(text):
    for probe in probes([text], count=5):
        held = answer(probe.question, facts(text, "I bake rye bread."))
        assert grade(probe.question, probe.answer, held)
        assert not grade(probe.question, probe.answer, answer(probe.question, facts("I bake rye bread.")))


def answer(question, evidence):
    value = AnswererInput(question=question, evidence=evidence, style="sentence", now=TIME)
    return RULES["answerer"](value).answer


def grade(question, gold, told) -> bool:
    (found,) = RULES["grader"](
        GraderInput(items=[GradeItem(n=3, question=question, gold=gold, answer=told)])
    ).grades
    assert found.n == 3
    assert found.correct != bool(found.why)
    return found.correct


def test_an_answer_holds_the_golds_words_numbers_and_dates():
    for question, gold, told, correct in [
        ("Where does Ana teach?", "She teaches fencing in Linz.", "Linz", True),
        (
            "Where does Ana teach?",
            "She teaches fencing in Linz.",
            "Ana, 3 May 2024: “I teach fencing in Linz.”",
            True,
        ),
        ("Where does Ana teach?", "She teaches fencing in Linz.", "She teaches fencing in Graz.", False),
        ("When was it?", "11 March 2024", "11 March 2024 (Ana, 12 March 2024: “Yesterday.”)", True),
        ("When was it?", "11 March 2024", "12 March 2024", False),
        ("When was it?", "March 2024", "11 March 2024", True),
        ("When was it?", "11 March 2024", "I do not know.", False),
        ("How many bees?", "four hives", "4 hives", True),
        ("How many bees?", "four hives", "3 hives", False),
        ("Does Ana fence?", "Yes", "Ana, 3 May 2024: “I fence.”", True),
        ("Does Ana fence?", "Yes", "Ana, 3 May 2024: “I do not fence.”", False),
        ("What does Ana do?", "Ana keeps bees", "Ben, 3 May 2024: “I keep bees.”", False),
        ("What does Ana do?", "Ana keeps bees", "Ana keeps no bees", False),
        ("What does Ana do?", "Ana keeps bees", " ", False),
    ]:
        assert grade(question, gold, told) is correct, question


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_answer_is_graded(gold, told):
    grade("What did Ana say?", gold, told)


def repaired(text, memories=(), gold=None, question="What did Ana say about the loom and Graz?"):
    turns = [said("Hm.", 1), said(text, 2)]
    value = RepairerInput(
        question=question,
        gold=gold or text,
        answer="",
        turns=turns,
        source=2,
        memories=list(memories),
        now=TIME,
    )
    return RULES["repairer"](value)


def test_a_missing_statement_is_added_as_it_was_said():
    found = repaired(f"Hello! {CHAT[0]}", gold=CHAT[0])
    assert (found.op, found.cause, found.fact.text, found.fact.quote) == (
        "ADD_FACT",
        "missing",
        CHAT[0],
        CHAT[0],
    )
    assert found.fact.event_time.date().isoformat() == "2024-03-11"


@pytest.mark.parametrize(
    ("text", "memories", "cause"),
    [
        (CHAT[0], facts(CHAT[0]), "hard to find"),
        (
            CHAT[0],
            facts("I sold the loom.", "The old loom went at the market in Graz yesterday."),
            "hard to find",
        ),
        ("Where is Graz?", [], "unknown"),
    ],
)
def test_nothing_is_added_where_it_is_known_or_not_said(text, memories, cause):
    found = repaired(text, memories, gold=CHAT[0])
    assert (found.op, found.cause) == ("NOOP", cause)


def test_what_says_all_of_another_stands_for_it():
    for proposal, stored, decision in [
        ("I keep four alpacas.", "I keep four alpacas", "SKIP"),
        ("I keep four alpacas.", "I keep four alpacas at the mill.", "SKIP"),
        ("I keep four alpacas at the mill.", "I keep four alpacas.", "MERGE"),
        ("I keep five alpacas.", "I keep four alpacas.", "INSERT"),
        ("I keep no alpacas.", "I keep alpacas.", "INSERT"),
        ("I went swimming yesterday.", "I went swimming on 2 March 2024.", "INSERT"),
        ("I bought walnuts.", "I bought cashews.", "INSERT"),
    ]:
        memory = MemoryView(n=7, granularity="fact", text=stored, speaker="Ana", time=TIME)
        value = ConsolidatorInput(
            text=proposal, speaker="Ana", turn=said(proposal), memories=[memory], now=TIME
        )
        found = RULES["consolidator"](value)
        assert (found.decision, found.memory) == (decision, None if decision == "INSERT" else 7), proposal
        other = value.model_copy(update={"speaker": "Ben"})
        assert RULES["consolidator"](other).decision == "INSERT", proposal
