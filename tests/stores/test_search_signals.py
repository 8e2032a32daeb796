"""Each signal through a real search: what it is worth to the entries it is about."""

from datetime import UTC, datetime, timedelta

import pytest

from memcycle.core.edit import Edit
from memcycle.core.entry import new_entry
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.turn import Turn
from memcycle.core.world import World
from memcycle.stores.bank import Bank
from memcycle.stores.search.ranker import NAMES
from memcycle.stores.search.request import Query, SearchRequest

START = datetime(2023, 5, 7, 12, tzinfo=UTC)
NOW = datetime(2023, 7, 6, 12, tzinfo=UTC)
SCOPE = Scope(user="ana")


class Talk:
    """Turns of sessions, and what the signals say about them by turn."""

    def __init__(self, bank):
        self.bank = bank

    def said(self, session, *lines, time=START, apart=timedelta(seconds=30)):
        turns = [
            Turn(
                id=f"D{session}:{n}",
                session=session,
                position=n,
                speaker=who,
                text=text,
                time=time + n * apart,
            )
            for n, (who, text) in enumerate(lines, start=1)
        ]
        self.bank.stage_turns(SCOPE.within(session), turns)
        self.bank.commit_session(SCOPE.within(session))

    def fact(self, session, text, *turns):
        entry = new_entry(SCOPE.within(session), "fact", text, turns, observed_at=START)
        self.bank.apply(SCOPE.within(session), [Edit(op="ADD", entry=entry)])
        self.bank.commit_session(SCOPE.within(session))

    def signal(self, name, question, **fields):
        request = SearchRequest(
            scope=SCOPE, queries=(Query(text=question),), granularities=("raw",), **fields
        )
        [looked] = self.bank.indexes.search.candidates(request)
        entries = self.bank.get(SCOPE, [looked.snapshot.ids[at] for at in looked.places])
        values = looked.measured.values[NAMES.index(name)]
        return {entry.turns[0]: float(value) for entry, value in zip(entries, values, strict=True)}


@pytest.fixture
def talk(tmp_path):
    with Bank.open(Settings(home=tmp_path), world=World(now=lambda: NOW)) as bank:
        yield Talk(bank)


def test_facts_are_projected_onto_the_turns_they_rest_on(talk):
    talk.said("1", ("Ann", "Yes, that one!"), ("Bo", "Great."))
    assert talk.signal("facts", "Who bought a canoe?") == {"D1:1": 0.0, "D1:2": 0.0}
    talk.fact("1", "Ann bought a canoe.", "D1:1")
    found = talk.signal("facts", "Who bought a canoe?")
    assert found["D1:1"] > 0
    assert found["D1:2"] == 0
    assert talk.signal("window", "Who bought a canoe?")["D1:1"] == 0


def test_irregular_forms_meet_their_base(talk):
    talk.said("1", ("Ann", "We went to the lake."), ("Bo", "Nice"))
    assert talk.signal("bm25", "go to the lake")["D1:1"] > talk.signal("bm25", "walk to the lake")["D1:1"]


def test_context_is_the_entry_among_its_near_neighbours(talk):
    lines = (
        ("Ann", "My violin lessons"),
        ("Bo", "Oh really?"),
        ("Ann", "Every week"),
        ("Bo", "The cat sleeps"),
    )
    talk.said("1", *lines)
    talk.said("2", *lines, apart=timedelta(minutes=11))
    near = talk.signal("context", "violin lessons")
    own = talk.signal("dense_nameless", "violin lessons")
    assert near["D1:2"] > own["D1:2"]
    assert near["D2:2"] == pytest.approx(own["D2:2"])  # eleven minutes apart: another stretch of talk


def test_dates_match_what_was_said_then_and_not_what_all_share(talk):
    talk.said("1", ("Ann", "The lake was lovely"))
    assert talk.signal("date", "What was lovely on 7 May 2023?") == {"D1:1": 0.0}
    talk.said("2", ("Ann", "The hill was lovely"), time=START + timedelta(days=40))
    assert talk.signal("date", "What was lovely on 7 May 2023?") == {"D1:1": 1.0, "D2:1": 0.0}
    assert talk.signal("date", "What was lovely in June?") == {"D1:1": 0.0, "D2:1": 1.0}
    assert talk.signal("date", "What was lovely?") == {"D1:1": 0.0, "D2:1": 0.0}


@pytest.mark.parametrize(
    ("name", "question", "other"),
    [
        ("time_expression", "When did Ann see it?", "What did Ann see?"),
        ("number", "How many did Ann see?", "What did Ann see?"),
        ("capital", "Where did Ann see it?", "When did Ann see it?"),
    ],
)
def test_what_a_question_asks_for_lifts_entries_that_hold_such(talk, name, question, other):
    talk.said("1", ("Ann", "Yesterday we saw three of them in Lisbon"), ("Bo", "Thanks, Ann, so kind"))
    assert talk.signal(name, question) == {"D1:1": 1.0, "D1:2": 0.0}
    assert set(talk.signal(name, other).values()) == {0.0}


def test_statements_first_person_and_telling_words(talk):
    talk.said(
        "1", ("Ann", "Did you see the heron?"), ("Bo", "I photographed a heron by the weir"), ("Ann", "Wow")
    )
    assert talk.signal("statement", "heron") == {"D1:1": 0.0, "D1:2": 1.0, "D1:3": 1.0}
    assert talk.signal("first_person", "heron") == {"D1:1": 0.0, "D1:2": 1.0, "D1:3": 0.0}
    mass = talk.signal("idf_mass", "heron")
    assert 1 > mass["D1:2"] > mass["D1:1"] > mass["D1:3"] > 0


def test_an_answer_follows_a_matching_question_of_somebody_else(talk):
    talk.said("1", ("Ann", "Did you see the heron?"), ("Bo", "The heron, yes"), ("Bo", "A heron again"))
    talk.said("2", ("Ann", "Did you see the heron?"), ("Ann", "The heron, yes"))
    found = talk.signal("answer", "heron")
    assert found["D1:2"] > 0
    assert {found[turn] for turn in ("D1:1", "D1:3", "D2:1", "D2:2")} == {0.0}


def test_the_best_of_a_session_lift_the_others_of_it(talk):
    talk.said("1", ("Ann", "the heron"), ("Bo", "a heron"), ("Ann", "heron by the weir"), ("Bo", "Mhm"))
    talk.said("2", ("Ann", "my taxes"), ("Bo", "Mhm"))
    found = talk.signal("session", "heron weir")
    assert len({found[f"D1:{n}"] for n in range(1, 5)}) == 1
    assert found["D1:4"] > found["D2:2"]


def test_neighbours_match_for_the_turn_between(talk):
    talk.said("1", ("Ann", "the heron"), ("Bo", "Mhm"), ("Ann", "Bye"), ("Bo", "See you"))
    found = talk.signal("neighbours", "heron")
    assert found["D1:2"] == max(found.values()) > found["D1:4"]


def test_recency_halves_with_its_half_life(talk):
    talk.said("1", ("Ann", "the heron"), apart=timedelta(0))
    found = talk.signal("recency", "heron")
    assert found["D1:1"] == pytest.approx(0.25)  # sixty days, half-life thirty


def test_importance_and_reinforcement_are_those_of_the_entry(talk):
    talk.said("1", ("Ann", "the heron"))
    assert talk.signal("importance", "heron") == {"D1:1": 0.5}
    assert talk.signal("reinforcement", "heron") == {"D1:1": 0.0}


def test_the_speaker_is_whom_the_question_names(talk):
    talk.said("1", ("Ann", "the heron"), ("Bo", "the heron"), ("Cy", "the heron"))
    assert talk.signal("speaker", "What did Bo and Cy see?") == {"D1:1": 0.0, "D1:2": 1.0, "D1:3": 1.0}


@pytest.mark.parametrize(
    "question", ["", "?", "¿Cuándo vio Ana la garza?", "いつサギを見ましたか", "🦩" * 500]
)
def test_no_question_breaks_a_signal(talk, question):
    talk.said("1", ("Ana", "La garza, ayer, 3 veces"), ("Bo", "昨日サギを見た"))
    for name in NAMES:
        assert all(0 <= value <= 1 for value in talk.signal(name, question).values())
