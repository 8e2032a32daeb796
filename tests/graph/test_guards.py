"""What no model may do."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.graph.guards import best_source, requested_deletion, stands_in, support

SCOPE = Scope(user="ana", session="s")


def turn(text: str, role: str = "human", n: int = 1) -> Turn:
    return Turn(
        id=f"Ds:{n}",
        session="s",
        position=n,
        speaker="Ana",
        role=role,
        text=text,
        time=datetime(2024, 5, n, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("span", "text", "stands"),
    [
        ("the red door", "I painted The  red\ndoor.", True),
        ("don’t keep it", "Please don't keep it", True),
        ("&lt;turn> is a tag", "I wrote <turn> is a tag.", True),
        ("", "anything", False),
        ("   ", "anything", False),
        ("the blue door", "I painted the red door", False),
    ],
)
def test_quotes_stand_in_their_text(span, text, stands):
    assert stands_in(span, text) is stands


@given(st.text(), st.text(min_size=1), st.text())
def test_a_part_of_a_text_stands_in_it(before, span, after):
    assert stands_in(span, before + span + after) or not span.strip()


@pytest.mark.parametrize(
    ("quote", "said", "role", "allowed"),
    [
        ("forget my address", "Please forget my address.", "human", True),
        ("vergiss meine Adresse", "Bitte vergiss meine Adresse!", "human", True),
        ("请删除我的地址", "请删除我的地址", "human", True),
        ("forget my address", "Please forget my address.", "ai", False),
        ("forget my address", "Please forget my address.", "tool", False),
        ("forget my address", "My address is Elm Road 4.", "human", False),
        ("my address is", "My address is Elm Road 4.", "human", False),
        ("", "Please forget my address.", "human", False),
    ],
)
def test_deletion_needs_the_users_quoted_request(quote, said, role, allowed):
    assert (requested_deletion(quote, [turn(said, role)]) is not None) is allowed


def test_support_counts_content_words_and_frees_the_speaker():
    said = turn("I bought two canoes in Bergen")
    assert support("Ana bought two canoes in Bergen", said) == 1.0
    assert support("Ana owns a castle", said) < 0.5
    assert support("", said) == 0.0


def test_the_best_source_is_a_human_turn():
    turns = [
        turn("The canoes arrived", "ai", 1),
        turn("My canoes arrived today", "human", 2),
        turn("Nice", "human", 3),
    ]
    assert best_source("The canoes arrived", turns).id == "Ds:2"
    assert best_source("Zebras sleep", turns) is None
