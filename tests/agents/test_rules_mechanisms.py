"""What the rules do for theta's mechanisms: answer styles, sub-questions, the second look."""

from datetime import UTC, datetime

import pytest

from memcycle.agents.answerer import AnswererInput
from memcycle.agents.retriever import RetrieverInput
from memcycle.agents.rules.answerer import answerer
from memcycle.agents.rules.decomposition import sub_questions
from memcycle.agents.rules.retriever import retriever
from memcycle.agents.rules.verifier import verifier
from memcycle.agents.verifier import VerifierInput
from memcycle.agents.views import MemoryView, TurnView

NOW = datetime(2024, 9, 1, 10, tzinfo=UTC)


def memory(n, speaker, text, day):
    time = datetime(2024, 5, day, 10, tzinfo=UTC)
    return MemoryView(n=n, granularity="raw", text=text, speaker=speaker, role="human", time=time)


CHAT = [
    memory(0, "Ines", "I moved to Graz in 2021 and work as a nurse at the city clinic.", 2),
    memory(1, "Tomek", "We own three canoes and paddle every weekend on the Drau.", 6),
    memory(2, "Tomek", "I am not vegetarian any more.", 11),
]


def answered(question, style):
    return answerer(AnswererInput(question=question, evidence=CHAT, style=style, now=NOW)).answer


@pytest.mark.parametrize(
    ("question", "style", "answer"),
    [
        ("How many canoes does Tomek own?", "short", "three"),
        ("How many canoes does Tomek own?", "concise", "three"),
        ("How many canoes does Tomek own?", "strict", "3"),
        ("How many canoes does Tomek own?", "verifying", "three (Tomek, 2024-05-06)"),
        (
            "How many canoes does Tomek own?",
            "explanatory",
            "three, since Tomek: We own three canoes and paddle every weekend on the Drau.",
        ),
        ("Is Tomek vegetarian?", "inferential", "Likely no, since Tomek: I am not vegetarian any more."),
        ("Does Tomek own canoes or kayaks?", "choice", "canoes"),
    ],
)
def test_each_style_phrases_what_was_found(question, style, answer):
    assert answered(question, style) == answer


@pytest.mark.parametrize(
    ("question", "persons", "parts"),
    [
        (
            "Where does Ines work and when did Tomek buy a canoe?",
            ["Ines", "Tomek"],
            ["Where does Ines work", "when did Tomek buy a canoe"],
        ),
        ("Who sold the loom and when was it?", [], ["Who sold the loom", "when was it (sold loom)"]),
        (
            "Do Ines and Tomek both paddle?",
            ["Ines", "Tomek"],
            ["Ines Do both paddle?", "Tomek Do both paddle?"],
        ),
        ("Does Ines like tea or coffee?", ["Ines"], ["Does Ines like tea?", "Does Ines like coffee?"]),
        ("Where does Ines live?", ["Ines"], []),
        ("", [], []),
    ],
)
def test_a_question_for_several_things_is_taken_apart(question, persons, parts):
    assert sub_questions(question, persons, 3) == parts


def test_parts_are_limited_and_only_made_where_asked_for():
    item = TurnView(n=1, speaker="user", role="human", text="Does Ann like tea or coffee?", time=NOW)

    def parts(most):
        return retriever(RetrieverInput(purpose="recall", items=[item], parts=most, now=NOW)).plans[0].parts

    assert parts(0) == []
    assert len(parts(2)) == 2
    assert len(sub_questions("Who and what? Where was it? When was it?", [], 2)) == 2


def second_look(question, answer, *, answerable=True, candidates=False, evidence=CHAT):
    return verifier(
        VerifierInput(
            question=question,
            answer=answer,
            answerable=answerable,
            evidence=evidence,
            candidates=candidates,
            now=NOW,
        )
    )


def test_an_answer_that_evidence_holds_is_kept_with_what_it_rests_on():
    out = second_look("Where does Ines work?", "city clinic")
    assert (out.answer, out.answerable, out.citations) == ("city clinic", True, [0])


def test_an_answer_that_the_rules_give_too_is_kept():
    out = second_look("Is Tomek vegetarian?", "No")
    assert (out.answer, out.answerable, out.citations) == ("No", True, [2])


@pytest.mark.parametrize("answer", ["the harbour bakery", "canoes"])
def test_an_answer_that_nothing_of_the_asked_person_holds_is_not(answer):
    out = second_look("Where does Ines work?", answer)
    assert (out.answerable, out.citations) == (False, [])


def test_an_abstention_stays_one():
    out = second_look("Where does Ines ski?", "No idea.", answerable=False)
    assert (out.answer, out.answerable) == ("No idea.", False)


def test_of_several_answers_the_one_most_memories_hold_is_taken():
    evidence = [
        memory(0, "Ines", "I keep my loom in the attic.", 1),
        memory(1, "Ines", "The loom is in the cellar.", 2),
        memory(2, "Ines", "My loom in the cellar is dusty.", 3),
    ]
    out = second_look("Where is the loom of Ines?", "attic", candidates=True, evidence=evidence)
    assert "attic" in out.considered
    assert len(out.considered) > 1
    assert "cellar" in out.answer
