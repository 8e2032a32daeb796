"""What counts as a statement, and the Constructor that stores it as it was said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcycle.agents.constructor import ConstructorInput
from memcycle.agents.rules.constructor import constructor
from memcycle.agents.rules.statements import sentences_of, statements_of
from memcycle.agents.views import MemoryView
from tests.agents.conftest import TIME, chunk, said


def stated(text: str) -> list[str]:
    return [one.text for one in statements_of(text)]


def test_what_is_stated_is_kept_as_it_was_said():
    for text in [
        "I teach fencing in Linz.",
        "I never eat meat.",
        "We have two cats, Tom and Ziggy.",
        "Just moved to Linz!",
        "Actually, I work nights.",
        "My sister said she hates jazz.",
        "Remember that I'm allergic to nuts.",
        "don't forget my flight is on 3 May",
        "When I was young, I lived in Graz.",
        "ich wohne in Wien.",
        "我昨天在北京买了一辆自行车。",
    ]:
        assert stated(text) == [text], text


def test_what_states_nothing_is_left_out():
    for text in [
        "Where do I live?",
        "where do i live",
        "whats my favourite food",
        "So what's my name",
        "If I move to Graz, I'll sell the flat.",
        "I might move to Oslo.",
        "I wish I lived in Paris.",
        "I'd love to live in Rome.",
        "Ana asked whether I live in Linz.",
        '"I live in Rome."',
        "> I keep bees",
        "def f(x): return 1",
        "```\nI live in a box.\n```",
        "[image: I live in a box.]",
        "Thanks!",
        "ok, I see",
        "Great!",
        "I agree.",
        "Nice to meet you",
        "You're amazing at this.",
        "Please write me a poem about bees.",
        "I want you to be brief.",
        "can you tell me a joke about geese",
        "Let's talk about Porto.",
        "Forget that I take sugar in my coffee.",
        "I " + "very " * 400 + "much like bees.",
    ]:
        assert stated(text) == [], text


@given(st.text(max_size=200))
def test_a_statement_stands_at_its_place(text):
    for one in (*statements_of(text), *sentences_of(text)):
        assert text[one.begin : one.end] == one.text or "```" in text


def test_a_fact_is_the_sentence_with_its_speaker_time_and_names():
    (fact,) = constructor(chunk("Guess what? I met Tom in Graz yesterday.")).facts
    assert (fact.text, fact.quote, fact.speaker) == ("I met Tom in Graz yesterday.",) * 2 + ("Ana",)
    assert (fact.event_time.date().isoformat(), fact.event_precision) == ("2024-03-11", "day")
    assert (fact.persons, fact.locations, fact.kind) == (["Tom"], ["Graz"], "episodic")


@pytest.mark.parametrize(
    ("text", "kind"),
    [("I love jazz.", "preference"), ("I am a nurse.", "semantic"), ("I'm planting beans.", "episodic")],
)
def test_kinds_follow_the_verb(text, kind):
    assert [fact.kind for fact in constructor(chunk(text)).facts] == [kind]


@pytest.mark.parametrize("role", ["ai", "tool", "system"])
def test_only_what_a_person_said_becomes_a_fact(role):
    assert constructor(ConstructorInput(turns=[said("Ana lives in Graz.", role=role)], now=TIME)).facts == []


def stored(text: str, speaker: str = "Ana") -> MemoryView:
    return MemoryView(n=4, granularity="fact", text=text, speaker=speaker, time=TIME)


def test_a_fact_names_what_it_repeats_or_replaces():
    for text, memory, edit in [
        ("I live in Linz.", stored("I live in Linz"), "NONE"),
        ("I live in Linz.", stored("I live in Linz.", "Ben"), "ADD"),
        ("I moved to Graz.", stored("I live in Linz."), "UPDATE"),
        ("I moved to Graz in 2010.", stored("I live in Linz."), "ADD"),
        ("I visited Graz.", stored("I live in Linz."), "ADD"),
    ]:
        value = ConstructorInput(turns=[said(text)], memories=[memory], now=TIME)
        (fact,) = constructor(value).facts
        assert (fact.edit, fact.target) == (edit, None if edit == "ADD" else 4), text
        assert fact.quote == text, text


def test_a_request_to_forget_what_is_not_known_is_no_fact():
    assert constructor(chunk("Please forget my doctor's number.")).facts == []
