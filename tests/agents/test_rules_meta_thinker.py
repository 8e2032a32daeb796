"""The rules Meta-Thinker: guidance, and the blocking-gap test."""

from datetime import UTC, datetime

from memcycle.agents.answerability import AnswerabilityInput
from memcycle.agents.guide import GuideInput
from memcycle.agents.rules.meta_thinker import answerability, guide
from memcycle.agents.views import MemoryView, TurnView

NOW = datetime(2024, 6, 1, 10, tzinfo=UTC)


def said(text, speaker="Ines", role="human", n=1):
    return TurnView(n=n, speaker=speaker, role=role, text=text, time=NOW)


def memory(n, text, speaker="Ines", granularity="raw"):
    return MemoryView(n=n, granularity=granularity, text=text, speaker=speaker, role="human", time=NOW)


def ask(question, *evidence):
    return answerability(AnswerabilityInput(question=question, evidence=list(evidence), now=NOW))


def test_new_statements_are_kept_and_known_ones_are_redundant():
    output = guide(
        GuideInput(
            turns=[said("I keep two beehives on the roof. I sold the old loom on Monday.")],
            memories=[memory(0, "Ines keeps two beehives on the roof.", granularity="fact")],
            now=NOW,
        )
    )
    assert output.keep == ["Ines: I sold the old loom on Monday."]
    assert output.redundant == ["Ines: I keep two beehives on the roof."]


def test_a_change_is_named_as_a_conflict_and_kept():
    output = guide(
        GuideInput(
            turns=[said("I don't keep beehives on the roof anymore.")],
            memories=[memory(4, "Ines keeps two beehives on the roof.", granularity="fact")],
            now=NOW,
        )
    )
    assert output.keep and "memory 4" in output.conflicts[0]


def test_questions_and_machines_guide_nothing():
    turns = [
        said("Do you keep two beehives on the roof?"),
        said("You keep two beehives there.", "bot", "ai", 2),
    ]
    output = guide(GuideInput(turns=turns, now=NOW))
    assert (output.keep, output.redundant, output.conflicts) == ([], [], [])


def test_answerable_with_predicate_and_person():
    output = ask("Where did Ines sell the loom?", memory(0, "I sold the loom at the market in Graz."))
    assert output.answerable and output.gap == ""


def test_the_gap_names_person_and_predicate():
    output = ask("When did Tomek sell the loom?", memory(0, "I baked bread.", "Tomek"))
    assert not output.answerable
    assert output.gap == "Tomek: loom sell"
    assert (output.speaker, output.needs_time) == ("Tomek", True)


def test_another_persons_words_are_a_gap():
    evidence = [memory(0, "I have been climbing for six years."), memory(1, "I like tea.", "Tomek")]
    output = ask("How long has Tomek been climbing?", *evidence)
    assert not output.answerable and output.speaker == "Tomek"


def test_no_evidence_is_a_gap():
    assert not ask("Where does Ines live?").answerable
