"""Which turns facts say too little of."""

import pytest

from memcycle.graph.guards import missing_words, uncovered
from tests.banks import said

TURN = said(1, "I sold the old loom to a museum in Graz last March")
SHORT = said(2, "Sounds great, Ann!")
BOT = said(3, "The museum in Graz opens at nine on weekdays and Sundays", speaker="Bot", role="ai")


@pytest.mark.parametrize(
    ("facts", "share", "missed"),
    [
        ([], 0.25, [TURN]),
        (["Ann sold the old loom to a museum in Graz"], 0.25, []),
        (["Ann sold the old loom to a museum in Graz"], 1.0, [TURN]),
        (["Ann sold something"], 0.25, [TURN]),
        ([], 0.0, []),
    ],
)
def test_a_turn_is_uncovered_where_facts_hold_too_few_of_its_keywords(facts, share, missed):
    assert uncovered([TURN, SHORT, BOT], facts, share) == missed


def test_missing_words_are_named_as_said():
    assert missing_words(TURN, ["Ann sold a loom"]) == ["old", "museum", "Graz", "last", "March"]
