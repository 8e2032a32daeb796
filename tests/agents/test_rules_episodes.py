"""The rules Episode trigger and writer."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcycle.agents.episode_trigger import EpisodeTriggerInput
from memcycle.agents.episode_writer import EpisodeWriterInput
from memcycle.agents.rules.episodes import episode_trigger, episode_writer
from memcycle.agents.views import TurnView

NOON = datetime(2024, 3, 5, 12, 0, tzinfo=UTC)
BOATS = [
    "I repaired the boat and its sails.",
    "Which sails did the boat need?",
    "The boat needed new sails of linen.",
    "Linen sails make a boat fast.",
    "My boat won the harbour race.",
    "A race for every boat in the harbour!",
]
BREAD = [
    "I bake rye bread from sourdough.",
    "Does sourdough make rye bread heavy?",
    "Rye bread stays moist thanks to sourdough.",
    "My oven bakes bread evenly.",
]


def talk(*texts: str, gaps: dict[int, timedelta] | None = None) -> list[TurnView]:
    """Turns of two people in alternation, a minute apart; `gaps` before the turn of that number."""
    time, turns = NOON, []
    for n, text in enumerate(texts, start=1):
        time += (gaps or {}).get(n, timedelta(minutes=1))
        turns.append(TurnView(n=n, speaker="Ines" if n % 2 else "Tom", role="human", text=text, time=time))
    return turns


def ends(turns: list[TurnView], new: int | None = None) -> list[tuple[int, str]]:
    found = episode_trigger(
        EpisodeTriggerInput(turns=turns, new=len(turns) if new is None else new)
    ).boundaries
    return [(boundary.after, boundary.reason) for boundary in found]


def test_one_topic_is_one_episode() -> None:
    assert ends(talk(*BOATS)) == []


def test_a_long_pause_ends_an_episode() -> None:
    assert ends(talk(*BOATS[:4], gaps={3: timedelta(hours=5)})) == [(2, "gap")]
    assert ends(talk(*BOATS[:4], gaps={3: timedelta(hours=3)})) == []


def test_both_saying_goodbye_ends_it() -> None:
    assert ends(talk(*BOATS[:2], "Talk to you soon!", "Bye, take care!")) == [(4, "farewell")]
    assert ends(talk(*BOATS[:2], "Talk to you soon!")) == []


def test_a_greeting_after_a_farewell_starts_the_next() -> None:
    assert ends(talk(*BOATS[:3], "Good night!", "Hey! The boat again.")) == [(4, "farewell")]


@pytest.mark.parametrize("request_", ["Let's talk about something else.", "New topic: bread."])
def test_asking_for_another_topic_ends_it_before_that_turn(request_: str) -> None:
    assert ends(talk(*BOATS[:3], request_)) == [(3, "request")]


def test_asking_to_remember_ends_it_with_that_turn() -> None:
    assert ends(talk(*BOATS[:3], "Please remember this.")) == [(4, "request")]


def test_other_words_are_another_topic() -> None:
    assert ends(talk(*BOATS, *BREAD)) == [(6, "topic_shift")]


def test_boundaries_stand_before_or_inside_the_new_turns_only() -> None:
    turns = talk(*BOATS, *BREAD)
    assert ends(turns, new=4) == [(6, "topic_shift")]
    assert ends(turns, new=2) == []


def test_a_full_window_ends_it() -> None:
    assert ends(talk(*["The boat needs the boat."] * 21)) == [(20, "saturation")]


def test_the_summary_quotes_statements_with_speakers_dates_and_topics() -> None:
    turns = talk(
        "I repaired the sails of my boat yesterday.",
        "Which boat?",
        "The boat has linen sails, my father built it.",
    )
    found = episode_writer(EpisodeWriterInput(turns=turns))
    assert found.text.startswith("On 5 March 2024, Ines and Tom talked about boat")
    assert "Ines: I repaired the sails of my boat yesterday. (4 March 2024)" in found.text
    assert {"boat", "sails"} <= set(found.topics)
    assert found.persons[:2] == ["Ines", "Tom"]


def test_an_episode_without_statements_quotes_the_first_words_that_tell_something() -> None:
    turns = talk("Hey!", "If I had a boat, I would sail to Rome.")
    text = episode_writer(EpisodeWriterInput(turns=turns)).text
    assert text.endswith("Tom: If I had a boat, I would sail to Rome.")
    assert "Hey" not in text
    small_talk = episode_writer(EpisodeWriterInput(turns=talk("Hey!", "Hi!")))
    assert small_talk.text == "On 5 March 2024, Ines and Tom talked."


def test_what_an_assistant_said_is_not_summed_up_as_fact() -> None:
    turn = TurnView(n=1, speaker="assistant", role="ai", text="Ines lives in Porto since 2010.", time=NOON)
    asked = TurnView(n=2, speaker="Ines", role="human", text="I repaired the boat.", time=NOON)
    assert "Porto" not in episode_writer(EpisodeWriterInput(turns=[turn, asked])).text


@given(st.lists(st.text(max_size=40), min_size=1, max_size=25), st.integers(0, 25))
def test_any_talk(texts: list[str], new: int) -> None:
    turns = talk(*texts)
    last = 0
    for after, _ in ends(turns, min(new, len(turns))):
        assert max(last, len(turns) - max(new, 0) - 1) < after <= len(turns)
        last = after
    found = episode_writer(EpisodeWriterInput(turns=turns))
    assert found.text
    assert found.title
