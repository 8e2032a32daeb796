"""A06 to A08: what is no evidence, and of whom it is none."""

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from tests.cases.adapter import facts

METRIC = "Prefers metric units"
INJECTED = f"Known about the user:\n- {METRIC}"
MARKED = {"memcycle": True}
ECHO = json.dumps({"facts": [METRIC]})
ECHO_OF_THANKS = facts(METRIC)


@pytest.mark.parametrize("reply", [ECHO, ECHO_OF_THANKS], ids=["without a turn", "citing the thanks"])
@pytest.mark.parametrize("marked", [True, False], ids=["marked", "plain system message"])
def test_a06_recalled_memories_are_no_evidence(product, reply, marked):
    p = product(constructor=[reply] * 10)
    (m1,) = p.knows(METRIC)
    for _ in range(10):
        p.add(
            [
                SystemMessage(INJECTED, additional_kwargs=MARKED if marked else {}),
                HumanMessage("thanks"),
                AIMessage("You're welcome."),
            ]
        )
    assert not [said for said in p.constructor.said if METRIC in said and 'role="system"' not in said]
    if marked:
        assert not [said for said in p.constructor.said if METRIC in said]
    (left,) = p.facts()
    assert left.id == m1.id
    assert (left.turns, left.importance, left.reinforcement, left.access_count) == (
        m1.turns,
        m1.importance,
        0.0,
        0,
    )


@pytest.mark.parametrize("judge", ["fails", "says duplicate"])
def test_a06_an_echo_needs_no_judge_to_be_refused(product, judge):
    """The whole kind: a stored fact said again on a turn that shares no word with it gains nothing."""
    verdict = {"n": 1, "supported": True, "relation": "duplicate", "near": 0}
    replies = ["nonsense"] * 4 if judge == "fails" else [json.dumps({"verdicts": [verdict]})] * 2
    p = product(constructor=[ECHO_OF_THANKS] * 2, fact_judge=replies)
    (m1,) = p.knows(METRIC)
    for _ in range(2):
        result = p.add(HumanMessage("thanks"))
        assert [refused.text for refused in result.rejected] == [METRIC]
    assert [(fact.id, fact.turns) for fact in p.facts()] == [(m1.id, m1.turns)]


BOOTS = [
    {"role": "user", "content": "Which boots for wet trails?"},
    {"role": "assistant", "content": "The Fellmark 3. You clearly like light boots."},
]


@pytest.mark.parametrize("turn", [2, 1, 0, 7], ids=["the assistant's", "the user's", "none", "unknown"])
def test_a07_an_assistants_guess_is_no_preference(product, turn):
    """The case cites the assistant's message; the product also holds where the Constructor hides that."""
    p = product(
        constructor=[
            facts(
                {"text": "Likes light boots", "turn": turn},
                {"text": "Owns Fellmark 3 boots", "turn": turn},
            )
        ]
    )
    result = p.add(BOOTS)
    assert p.made() == []
    assert {refused.text for refused in result.rejected} == {"Likes light boots", "Owns Fellmark 3 boots"}
    said = p.constructor.said[0]
    assert 'role="human"' in said.split("Which boots")[0]
    assert 'role="ai"' in said.split("The Fellmark 3.")[0].rsplit("<turn", 1)[-1]


def test_a08_the_judges_refusal_is_final(product):
    verdict = {"n": 1, "supported": False, "why": "not stated by user about self"}
    p = product(
        constructor=[json.dumps({"facts": ["The user is called Oduya"]})],
        fact_judge=[json.dumps({"verdicts": [verdict]})],
    )
    result = p.add("Show last quarter's orders for client Oduya.")
    (prompt,) = p.models["fact_judge"].prompts
    assert "The user is called Oduya" in prompt
    assert "Show last quarter&apos;s orders" in prompt or "Show last quarter's orders" in prompt
    assert p.made() == []
    assert [(refused.text, refused.why) for refused in result.rejected] == [
        ("The user is called Oduya", "not stated by user about self")
    ]


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("Does client Oduya own a boat?", "Client Oduya owns a boat"),
        ("I do not eat meat.", "The user eats meat"),
        ("I never learned to swim.", "The user learned to swim"),
    ],
)
def test_a08_the_same_words_are_not_the_same_statement(product, said, fact):
    """The whole kind: all words of the fact stand in its turn, which yet does not state it. The Judge is
    asked, and its refusal holds."""
    refusal = {"n": 1, "supported": False, "why": "not stated"}
    p = product(constructor=[facts(fact)], fact_judge=[json.dumps({"verdicts": [refusal]})])
    result = p.add(said)
    assert p.made() == []
    assert [refused.why for refused in result.rejected] == ["not stated"]
