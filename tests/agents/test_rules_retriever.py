"""The rules Retriever: intent, K, rewrite and speaker."""

from datetime import UTC, datetime

import pytest

from memcycle.agents.retriever import RetrieverInput, operator
from memcycle.agents.rules.retriever import K_OVERVIEW, K_SINGLE, K_TURN, K_WIDE, retriever
from memcycle.agents.views import TurnView

NOW = datetime(2024, 5, 8, 10, tzinfo=UTC)


def said(text, speaker="user", n=1):
    return TurnView(n=n, speaker=speaker, role="human", text=text, time=NOW)


def plan(text, window=(), purpose="recall", speaker="user"):
    value = RetrieverInput(purpose=purpose, items=[said(text, speaker)], window=list(window), now=NOW)
    return retriever(value).plans[0]


@pytest.mark.parametrize(
    ("question", "granularity"),
    [
        ("Quote exactly what Ines said about the rent", "raw"),
        ('Who said "see you at the mill"?', "raw"),
        ("How many canoes does Tomek own?", "raw"),
        ("What do you know about Ines?", "episode"),
        ("Give me a summary of Tomek's move", "episode"),
        ("What happened at the fair?", "episode"),
        ("Where does Ines live?", "fact"),
        ("When did Ines move in 2021?", "fact"),
    ],
)
def test_intent_routes_to_a_granularity(question, granularity):
    assert operator(plan(question).intent) == granularity


@pytest.mark.parametrize(
    ("question", "k"),
    [
        ("Where does Ines live?", K_SINGLE),
        ("What books has Ines read?", K_WIDE),
        ("How many trips did Ines make?", K_WIDE),
        ("What do you know about Ines?", K_OVERVIEW),
    ],
)
def test_k_follows_the_shape_of_the_question(question, k):
    assert plan(question).k == k


def test_a_pronoun_is_resolved_to_the_only_person_named():
    window = [said("I had tea with Nora today.")]
    found = plan("What did she say about her kiln?", window)
    assert found.query == "What did Nora say about Nora's kiln?"
    assert found.speaker == "Nora"


def test_a_pronoun_stays_where_two_persons_fit():
    window = [said("I had tea with Nora and Maya today.")]
    assert plan("What did she say?", window).query == "What did she say?"


def test_relative_words_get_their_date_beside_them():
    assert plan("Who called yesterday?").query == "Who called yesterday? (7 May 2024)"


def test_a_bare_question_takes_the_last_turn_along():
    assert "kiln" in plan("And when was that?", [said("Where did Nora buy the kiln?")]).query


def test_turns_are_searched_under_their_speaker():
    found = plan("I sold my loom", purpose="remember", speaker="Ines")
    assert (found.query, found.speaker, found.k) == ("Ines: I sold my loom", "Ines", K_TURN)


def test_one_plan_an_item_under_its_number():
    items = [said("I sold my loom", "Ines", 3), said("Oh no!", "Tomek", 4)]
    output = retriever(RetrieverInput(purpose="remember", items=items, now=NOW))
    assert [one.n for one in output.plans] == [3, 4]
    assert retriever(RetrieverInput(purpose="remember", items=[], now=NOW)).plans == []
