"""Which later statements make an earlier one untrue, and all that must be left alone."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcycle.agents.rules.slots import contradiction

# (new, old): the new statement makes the old one untrue.
CONTRADICTIONS = [
    ("Ines moved to Porto last month.", "Ines lives in Vienna."),
    ("Ines relocated to Graz.", "Ines is living in a flat in Linz."),
    ("Ines now lives in Oslo.", "Ines lives in Bergen with two flatmates."),
    ("Ines no longer lives in Oslo.", "Ines lives in Oslo."),
    ("Ines's sister moved to Cairo.", "Ines's sister lives in Tunis."),
    ("Omar quit his job at Siemens.", "Omar works at Siemens as an engineer."),
    ("Omar now works at Bosch.", "Omar works for Siemens."),
    ("Omar joined Bosch.", "Omar works at Siemens."),
    ("Omar got a new job at Lidl.", "Omar works at Aldi."),
    ("Omar was laid off.", "Omar works at Aldi."),
    ("Omar became a teacher.", "Omar works as a plumber."),
    ("Omar no longer works at Aldi.", "Omar works at Aldi."),
    ("Lea is divorced.", "Lea is married."),
    ("Lea got married.", "Lea is single."),
    ("Lea's favourite colour is green.", "Lea's favourite colour is blue."),
    ("Lea's favorite band is Muse now.", "Lea's favorite band is Queen."),
    ("Lea hates olives.", "Lea likes olives."),
    ("Lea doesn't like jazz.", "Lea loves jazz."),
    ("Lea can't stand camping.", "Lea enjoys camping."),
    ("Lea loves horror films.", "Lea dislikes horror films."),
    ("Lea no longer enjoys running.", "Lea enjoys running."),
    ("Kofi stopped smoking.", "Kofi smokes a pack a day."),
    ("Kofi gave up meat.", "Kofi eats meat twice a week."),
    ("Kofi quit the chess club.", "Kofi plays in the chess club on Mondays."),
    ("Kofi doesn't drink coffee anymore.", "Kofi drinks coffee every morning."),
    ("Kofi no longer plays tennis.", "Kofi plays tennis with Tom."),
    ("Kofi cancelled the gym membership.", "Kofi has a gym membership."),
    ("Kofi sold his motorbike.", "Kofi owns a motorbike."),
    ("Kofi got rid of the piano.", "Kofi has a piano."),
    ("Kofi isn't allergic to nuts.", "Kofi is allergic to nuts."),
    ("Kofi doesn't have a car.", "Kofi has a car."),
    ("Kofi is not vegan.", "Kofi is vegan."),
    ("Kofi has three cats.", "Kofi has two cats."),
    ("Kofi is 31 years old.", "Kofi is 30 years old."),
    ("Kofi pays 950 euros rent.", "Kofi pays 800 euros rent."),
    ("Kofi switched from tea to coffee.", "Kofi drinks tea in the morning."),
    ("Kofi switched from Windows to Linux.", "Kofi uses Windows at work."),
    ("Mara moved to Lisbon for a new start.", "Mara lives in Berlin with her cat."),
    ("Mara is now working at Ikea.", "Mara works at the Ritz hotel."),
    ("Mara left her job at Ikea.", "Mara works at Ikea."),
    ("Mara sold her car.", "Mara drives a car to work."),
    ("Mara no longer eats dairy.", "Mara eats dairy every day."),
    ("Mara quit yoga.", "Mara does yoga on Fridays."),
    ("Mara stopped learning Spanish.", "Mara is learning Spanish."),
    ("Mara hates the winter.", "Mara loves the winter."),
    ("Mara has 4 siblings.", "Mara has 3 siblings."),
    ("Mara's favourite food is ramen.", "Mara's favourite food is pizza."),
    ("Mara got divorced.", "Mara is married."),
    ("Mara doesn't live in Rome.", "Mara lives in Rome."),
    ("Mara switched from Python to Rust.", "Mara codes in Python."),
    ("Mara does not play the piano.", "Mara plays the piano."),
    ("Mara gave up her flat.", "Mara has a flat."),
    ("Mara is no longer vegetarian.", "Mara is vegetarian."),
    ("Mara never drinks alcohol.", "Mara drinks alcohol."),
]

# (new, old): both may be true.
COMPATIBLE = [
    ("Ines visited Porto last month.", "Ines lives in Vienna."),
    ("Ines wants to move to Porto.", "Ines lives in Vienna."),
    ("Ines's sister moved to Porto.", "Ines lives in Vienna."),
    ("Tom moved to Porto.", "Ines lives in Vienna."),
    ("Ines lives in Austria.", "Ines lives in Vienna."),
    ("Ines moved to a bigger office.", "Ines lives in Vienna."),
    ("Omar works at Siemens in Munich.", "Omar works as an engineer."),
    ("Omar applied for a job at Bosch.", "Omar works at Siemens."),
    ("Omar volunteers at Caritas.", "Omar works at Siemens."),
    ("Omar is a great supporter of the arts.", "Omar is a teacher."),
    ("Omar left the house early.", "Omar's house has a garden."),
    ("Omar left the party at ten.", "Omar likes the party."),
    ("Omar quit smoking.", "Omar works at Aldi."),
    ("Lea is married.", "Lea got married in 2015."),
    ("Lea is engaged in local politics.", "Lea is single."),
    ("One of Lea's favourite colours is green.", "Lea's favourite colour is blue."),
    ("Lea's favourite book is Emma.", "Lea's favourite film is Alien."),
    ("Lea hates running in the rain.", "Lea loves running."),
    ("Lea likes cashews.", "Lea likes walnuts."),
    ("Lea doesn't like tea with milk.", "Lea likes tea."),
    ("Lea loves jazz.", "Lea loves opera."),
    ("Tom hates olives.", "Lea likes olives."),
    ("Kofi stopped running.", "Kofi runs a bakery."),
    ("Kofi stopped by the chess club.", "Kofi plays in the chess club."),
    ("Kofi stopped drinking coffee.", "Kofi drinks tea."),
    ("Kofi gave up the lead in the race.", "Kofi won the race."),
    ("Kofi doesn't eat meat at home.", "Kofi eats meat."),
    ("Kofi has three cats.", "Kofi has two dogs."),
    ("Kofi ran 10 km yesterday.", "Kofi ran 5 km last week."),
    ("Kofi bought two books.", "Kofi bought three books."),
    ("Kofi has worked there for 5 years.", "Kofi has worked there for 3 years."),
    ("Kofi didn't swim on Monday.", "Kofi swam on Friday."),
    ("Kofi sold his motorbike.", "Kofi repaired a motorbike."),
    ("Kofi sold a painting.", "Kofi has a painting studio."),
    ("Kofi went from Rome to Naples.", "Kofi likes Rome."),
    ("Kofi switched from tea to coffee.", "Kofi bought tea for his mother."),
    ("Kofi went swimming yesterday.", "Kofi went swimming on Sunday."),
    ("Kofi might stop smoking.", "Kofi smokes."),
    ("Kofi said stopping is hard.", "Kofi plays tennis."),
    ("Kofi plays tennis.", "Kofi plays tennis."),
    ("Mara moved to the window.", "Mara lives in Berlin."),
    ("Mara works at home on Fridays.", "Mara works at Ikea."),
    ("Mara left Ikea at noon.", "Mara works at Ikea."),
    ("Mara sold her old car.", "Mara washed a car."),
    ("Mara stopped crying.", "Mara works at Ikea."),
    ("Mara loves winter sports.", "Mara hates the winter."),
    ("Mara has 4 brothers.", "Mara has 3 sisters."),
    ("Mara's sister got divorced.", "Mara is married."),
    ("Mara quit the meeting early.", "Mara has a meeting every Monday."),
    ("Mara now teaches at Oxford.", "Mara works as a teacher."),
    ("Mara joined the Red Cross.", "Mara works at Ikea."),
    ("Mara is now a mother.", "Mara is a nurse."),
    ("Mara became a better swimmer.", "Mara is a teacher."),
    ("Mara doesn't like to cook alone.", "Mara likes to cook."),
    ("Mara no longer needs glasses.", "Mara sells glasses."),
    ("Mara gave up on the puzzle.", "Mara has a puzzle."),
    ("Mara stopped the car.", "Mara has a car."),
]


def speaker(text: str) -> str:
    name = re.match(r"[A-Z]\w+", text)
    return name[0] if name and name[0] in ("Ines", "Omar", "Lea", "Kofi", "Mara", "Tom") else "Zoe"


def why(new: str, old: str) -> str | None:
    return contradiction(new, speaker(new), old, speaker(old))


def as_said(text: str) -> str:
    """The statement as the person itself makes it."""
    own = (
        re.sub(r"^\w+['’]s ", "My ", text) if re.match(r"^\w+['’]s ", text) else re.sub(r"^\w+ ", "I ", text)
    )
    for third, first in (("is", "am"), ("has", "have"), ("doesn't", "don't"), ("does", "do")):
        own = re.sub(rf"^I {third}\b", f"I {first}", own)
    own = re.sub(r"\b(?:his|her|their)\b", "my", own)
    return re.sub(r"^(I (?:no longer |never |now )?)(\w+?)s\b", r"\1\2", own)


def test_the_later_one_wins():
    assert [pair for pair in CONTRADICTIONS if not why(*pair)] == []


def test_both_may_be_true():
    assert [pair for pair in COMPATIBLE if why(*pair)] == []


def test_both_may_be_true_as_they_were_said():
    said = [(as_said(new), as_said(old)) for new, old in COMPATIBLE if speaker(new) == speaker(old)]
    assert [(new, old) for new, old in said if contradiction(new, "Ana", old, "Ana")] == []


def test_the_later_one_wins_as_it_was_said_and_of_its_speaker_only():
    for new, old in [
        ("I moved to Graz.", "I live in Linz."),
        ("I no longer live in Vienna, I moved to Graz.", "I live in Vienna."),
        ("I now work at Bosch.", "I work for Siemens."),
        ("My favourite colour is green.", "My favourite colour is blue."),
        ("I sold my motorbike.", "I have a motorbike."),
        ("I don't drink coffee anymore.", "I drink coffee every morning."),
        ("I'm not vegan.", "I'm vegan."),
        ("We have three cats.", "We have two cats."),
        ("My sister moved to Cairo.", "My sister lives in Tunis."),
        ("I changed my name to Joan.", "My name is John."),
    ]:
        assert contradiction(new, "Ana", old, "Ana"), new
        assert contradiction(new, "Ana", old, "Ben") is None, new
        assert contradiction(new, "Ana", new, "Ana") is None, new


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("She moved to Graz.", "I live in Linz."),
        ("Fact two", "Fact three"),
        ("Owns kite number 1", "Owns kite number 2"),
    ],
)
def test_whom_or_what_it_is_about_must_be_told(new, old):
    assert contradiction(new, "Ana", old, "Ana") is None


@given(st.text(max_size=80), st.text(max_size=80))
def test_never_raises_and_nothing_contradicts_itself(left, right):
    contradiction(left, "Ana", right, None)
    assert contradiction(left, "Ana", left, "Ana") is None
