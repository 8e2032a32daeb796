"""What becomes of a Consolidator's verdict."""

import string
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcycle.agents.consolidator import ConsolidatorOutput
from memcycle.agents.constructor import FactDraft
from memcycle.core.language.tokens import content_stems
from memcycle.core.probe import REPAIRER
from memcycle.graph.environment import Made
from memcycle.graph.facts import Grounded
from memcycle.graph.session.repair import merged_edit, merged_text, says_twice, weigh
from tests.banks import ANN, fact, said

WALNUTS, CASHEWS = "Ana is allergic to walnuts", "Ana is allergic to cashews"
PARAPHRASE = "Ana has a walnut allergy"
MAY, JUNE = datetime(2024, 5, 3, tzinfo=UTC), datetime(2024, 6, 3, tzinfo=UTC)


def item(text: str, *near, **draft) -> Grounded:
    return Grounded(FactDraft(text=text, turn=1, **draft), said(3, text), (), near=near)


def verdict(decision: str, memory: int | None = 0, text: str = "") -> ConsolidatorOutput:
    return ConsolidatorOutput(decision=decision, memory=memory, text=text, why="so it said")


@pytest.mark.parametrize(
    ("proposal", "stored", "output", "decision"),
    [
        pytest.param(WALNUTS, fact(PARAPHRASE, "D1:1"), verdict("SKIP"), "SKIP", id="known"),
        pytest.param(
            WALNUTS, fact(PARAPHRASE, "D1:1"), verdict("MERGE", 0, WALNUTS), "MERGE", id="paraphrase"
        ),
        pytest.param(WALNUTS, fact(CASHEWS, "D1:1"), verdict("INSERT", None), "INSERT", id="another object"),
        pytest.param(
            WALNUTS,
            fact(CASHEWS, "D1:1"),
            verdict("MERGE", 0, WALNUTS),
            "INSERT",
            id="drops the other object",
        ),
        pytest.param(
            WALNUTS,
            fact(CASHEWS, "D1:1"),
            verdict("MERGE", 0, "Ana is allergic to walnuts and cashews"),
            "MERGE",
            id="says both",
        ),
        pytest.param(
            WALNUTS,
            fact(PARAPHRASE, "D1:1", speaker="Bob"),
            verdict("MERGE", 0, WALNUTS),
            "INSERT",
            id="told of another person",
        ),
        pytest.param(
            WALNUTS, fact(PARAPHRASE, "D1:1", speaker="Bob"), verdict("SKIP"), "INSERT", id="known of another"
        ),
        pytest.param(
            WALNUTS,
            fact(PARAPHRASE, "D1:1", speaker="ann"),
            verdict("MERGE", 0, WALNUTS),
            "MERGE",
            id="told of the same person",
        ),
        pytest.param(WALNUTS, fact(CASHEWS, "D1:1"), verdict("MERGE", 4, WALNUTS), "INSERT", id="not shown"),
        pytest.param(WALNUTS, fact(CASHEWS, "D1:1"), verdict("SKIP", None), "INSERT", id="names none"),
        pytest.param(
            WALNUTS,
            fact("Ana is not allergic to walnuts", "D1:1"),
            verdict("SKIP"),
            "INSERT",
            id="denied",
        ),
        pytest.param(
            "Ana rowed in Graz",
            fact("Ana rowed in Graz with Eva", "D1:1"),
            verdict("MERGE", 0, "Ana rowed in Graz"),
            "MERGE",
            id="the fuller one stays",
        ),
    ],
)
def test_decisions(proposal, stored, output, decision):
    assert weigh(output, item(proposal, stored)).decision == decision


def test_another_date_is_another_fact():
    for wanted in ["SKIP", "MERGE"]:
        stored = fact("Ana ran a marathon", "D1:1", event_time=MAY, event_precision="day")
        proposal = item("Ana ran a marathon", stored, event_time=JUNE, event_precision="day")
        assert weigh(verdict(wanted, 0, "Ana ran a marathon"), proposal).decision == "INSERT", wanted


def test_a_merged_text_loses_and_adds_nothing():
    for wanted, proposal, stored, text in [
        ("Ana rows. Ana rows.", "Ana rows", "Ana rows in Graz", "Ana rows in Graz"),
        ("Ana rows in Graz; Ana rows", "Ana rows", "Ana rows in Graz", "Ana rows in Graz"),
        ("Ana rows and sings", "Ana rows", "Ana rows in Graz", "Ana rows in Graz"),
        ("", "Ana rows in Graz", "Ana rows", "Ana rows in Graz"),
        ("Ana bakes", "Ana rows in Graz", "Ana sings at home", None),
        ("Ana owns 3 cats", "Ana owns 3 cats", "Ana keeps 4 cats", None),
        ("Ana met her in Graz", "Ana met Eva in Graz", "Ana met Eva at home", None),
    ]:
        assert merged_text(wanted, proposal, stored) == text, wanted


def test_says_twice():
    for text, twice in [
        ("Ana rows; Ana rows", True),
        ("Ana rows in Graz. Ana rows.", True),
        ("Ana rows in Graz, and Ana rows", True),
        ("Ana rows. Eva sings.", False),
        ("Ana rows", False),
        ("", False),
    ]:
        assert says_twice(text) is twice, text


words = st.lists(st.text(string.ascii_letters, min_size=3, max_size=8), min_size=1, max_size=6).map(" ".join)


@given(wanted=words, proposal=words, stored=words)
def test_a_merged_text_says_only_what_one_of_the_two_says(wanted, proposal, stored):
    text = merged_text(wanted, proposal, stored)
    if text is not None:
        assert set(content_stems(text)) <= set(content_stems(proposal)) | set(content_stems(stored))
        assert text in (wanted, stored, proposal)
        assert not (text == wanted and says_twice(text))


def test_a_merged_entry_rests_on_both_and_keeps_what_either_knew():
    stored = fact("Ana rows", "D1:1", persons=("Ana",), importance=0.9, event_time=MAY, event_precision="day")
    proposal = item("Ana rows with Eva", stored, persons=["Eva"], importance=0.2)
    edit = merged_edit(proposal, weigh(verdict("MERGE"), proposal), Made(ANN, "rules"))
    assert (edit.op, edit.target, edit.actor) == ("UPDATE", stored.id, REPAIRER)
    entry = edit.entry
    assert (entry.text, entry.turns, entry.persons) == ("Ana rows with Eva", ("D1:1", "D1:3"), ("Ana", "Eva"))
    assert (entry.importance, entry.event_time, entry.event_precision) == (0.9, MAY, "day")


def test_a_merge_under_the_stored_text_only_adds_the_turn():
    stored = fact("Ana rows in Graz", "D1:1")
    proposal = item("Ana rows", stored)
    edit = merged_edit(proposal, weigh(verdict("MERGE"), proposal), Made(ANN, "rules"))
    assert (edit.op, edit.target, edit.entry.turns) == ("MERGE", stored.id, ("D1:3",))
