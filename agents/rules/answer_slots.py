"""Values of an asked type read from a sentence: dates, durations, numbers, persons, yes and no."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import get_args

from memcycle.agents.rules.grounding import Asked, Passage, stem_set
from memcycle.core.entry import Precision
from memcycle.core.language.dates import format_time, read_dates
from memcycle.core.language.names import person_names, same_person
from memcycle.core.language.sentences import NEGATION

_NUMBER = (
    r"(?:\d[\d,.]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|"
    r"sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|hundred|(?:a )?dozen|"
    r"(?:a )?couple(?: of)?|(?:a )?few|several|many)"
)
_UNIT = r"(?:seconds?|minutes?|mins?|hours?|days?|nights?|weeks?|weekends?|months?|years?|decades?)"
_DURATION = re.compile(
    rf"\b(?:(?:about|around|over|almost|nearly|more than|at least) )?"
    rf"(?:{_NUMBER}|an?)(?:[ -](?:to[ -])?{_NUMBER})?[ -]{_UNIT}(?: ago)?\b",
    re.IGNORECASE,
)
_SINCE = re.compile(r"\bsince (?:i was |the age of )?[\w' ]{1,30}?(?=[,.;!?]|$)", re.IGNORECASE)
_FREQUENCY = re.compile(
    rf"\b(?:(?:once|twice|{_NUMBER} times?) (?:a|per|every|each) \w+|"
    r"every (?:other |single )?\w+|daily|weekly|monthly|yearly)\b",
    re.IGNORECASE,
)
_TIMES = re.compile(rf"\b(?:once|twice|thrice|{_NUMBER} times)\b", re.IGNORECASE)
ORDINALS = {
    "first": "one",
    "second": "two",
    "third": "three",
    "fourth": "four",
    "fifth": "five",
    "sixth": "six",
    "seventh": "seven",
}
"""Number words by ordinal: who won a second time has won two."""
_PERSON_NOUN = re.compile(
    r"\b(?:my|his|her|our|their|the)\s+(?:\w+\s+)?(?:mom|mum|mother|dad|father|parents|sister|brother|siblings|wife|husband|partner|"
    r"boyfriend|girlfriend|son|daughter|kids|children|friends?|family|cousin|aunt|uncle|grand(?:ma|pa|mother|father)|"
    r"niece|nephew|colleagues?|coworkers?|boss|neighbou?rs?|teammates?|coach|teacher|mentor|team|roommate|fianc[eé]e?)s?\b",
    re.IGNORECASE,
)
_CALLED = re.compile(
    r"\b(?:called|named|titled?|names?(?: is| was| are|'s))\s+(?:[\"“]([^\"”]{2,60})[\"”]"
    r"|((?:[A-Z][\w'’-]*|\d+)(?: (?:of |the |and )?(?:[A-Z][\w'’-]*|\d+))*))"
)
NEAR = 40
"""Characters after a number within which the noun it counts must stand."""


def time_of(asked: Asked, ranked: Sequence[Passage]) -> tuple[Passage, str] | None:
    """When the best passage says it happened; the time it was said stands in where no words tell.

    A reading in the sentence itself wins over the entry's event time.
    """
    asks = re.search(r"\b(?:what|which) (year|month)\b", asked.question, re.IGNORECASE)
    wanted = _precision(asks.group(1).casefold()) if asks else None
    for passage in ranked:
        said = passage.memory.time
        if said is not None and (readings := read_dates(passage.text, said)):
            reading = min(readings, key=lambda r: (r.approximate, r.begin))
            return passage, _written(reading.text, reading.start, wanted or reading.precision, said)
        if passage.memory.event_time is not None:
            precision = wanted or _precision(passage.memory.event_precision)
            return passage, format_time(passage.memory.event_time, precision)
    said = ranked[0].memory.time
    return (ranked[0], format_time(said, wanted or "day")) if said is not None else None


def _precision(name: str | None) -> Precision:
    return next((precision for precision in get_args(Precision) if precision == name), "day")


def _written(words: str, start: datetime, precision: Precision, said: datetime) -> str:
    """A reading for people. "Last week" stays a week before the day it was said: nobody said which Monday."""
    unit = re.fullmatch(r"(?:(?:the|this) )?(?:last|past) (week|weekend)", words.casefold().strip())
    if unit and precision == "week":
        return f"the {unit.group(1)} before {format_time(said, 'day')}"
    return format_time(start, precision)


def duration_of(asked: Asked, passage: Passage, _: Sequence[str]) -> str | None:
    """A length of time in the passage, as said."""
    ago = re.search(r"\bago\b", asked.question)
    found = [match.group() for match in _DURATION.finditer(passage.text)]
    if found:
        return next((words for words in found if words.endswith("ago") == bool(ago)), found[0])
    since = _SINCE.search(passage.text)
    return since.group().strip() if since else None


def number_of(asked: Asked, passage: Passage, _: Sequence[str]) -> str | None:
    """A number in the passage that counts what is asked about; near the noun first."""
    question = asked.question.casefold()
    if "how often" in question:
        found = _FREQUENCY.search(passage.text)
        return found.group() if found else None
    if re.search(r"how many times", question) and (times := _TIMES.search(passage.text)):
        return times.group()
    nouns = stem_set(asked.focus)
    numbers = list(re.finditer(rf"\b{_NUMBER}\b", passage.text, re.IGNORECASE))
    for match in numbers:
        if nouns & stem_set(passage.text[match.end() : match.end() + NEAR]):
            return match.group()
    for match in re.finditer(r"\b(\w+)\s+(?:\w+\s+)?(\w+)", passage.text):
        if match.group(1).casefold() in ORDINALS and nouns & stem_set(match.group()):
            return ORDINALS[match.group(1).casefold()]
    return numbers[0].group() if numbers and not nouns else None


def persons_of(asked: Asked, passage: Passage, speakers: Sequence[str]) -> str | None:
    """Persons of the passage whom the question does not name; the speaker where nobody is asked about."""
    named = [
        name
        for name in person_names(passage.text, speakers)
        if not any(same_person(name, other) for other in asked.persons)
        and not same_person(name, passage.memory.speaker)
    ]
    if named:
        return _joined(named, passage.text)
    if kin := _PERSON_NOUN.search(passage.text):
        return kin.group()
    return passage.memory.speaker if not asked.persons else None


def _joined(names: Sequence[str], text: str) -> str:
    """The first name, with those the text joins to it ("Ana and Tom", "Ana, Tom and Lea")."""
    together = [names[0]]
    for name in names[1:]:
        if not re.search(rf"{re.escape(together[-1])}(?:,| and|, and) (?:\w+ )?{re.escape(name)}", text):
            break
        together.append(name)
    return " and ".join(together)


def name_of(asked: Asked, passage: Passage) -> str | None:
    """What something is called, where the passage says so in so many words."""
    called = _CALLED.search(passage.text) if asked.names else None
    return next((name for name in called.groups() if name), None) if called else None


_PRESENT = re.compile(r"\s*(?:does|do|is|are|am|has|have)\b", re.IGNORECASE)


def polarity_of(asked: Asked, passage: Passage, _: Sequence[str]) -> str:
    """Yes or No: No when exactly one of question and passage denies, or what held holds no longer."""
    if not passage.memory.current and _PRESENT.match(asked.question):
        return "No"
    return "No" if (NEGATION.search(passage.text) is not None) != asked.denies else "Yes"
