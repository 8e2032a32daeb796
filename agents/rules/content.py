"""The words of a text that carry what it says: how the rules compare texts."""

import re
from collections.abc import Iterable
from datetime import date, datetime
from typing import NamedTuple

from memcycle.agents.views import MemoryView
from memcycle.core.entry import same_text
from memcycle.core.language.date_forms import NUMBERS
from memcycle.core.language.dates import read_dates
from memcycle.core.language.names import same_person
from memcycle.core.language.restatement import restates
from memcycle.core.language.sentences import NEGATION
from memcycle.core.language.tokens import STOPWORDS, based, by_concept, per_text, stems, tokenize

SHARED = 0.5
"""Share of their words that two wordings of one statement have in common."""
_SPEECH = re.compile(r"[\"“«„][^\"”»“]*\b(?:I|my|me|we|our)\b[^\"”»“]*[\"”»“]")
_SINGLE = re.compile(r"(?<!\w)['‘](?:[^'’]|['’](?=\w))*\b(?:I|my|me|we|our)\b(?:[^'’]|['’](?=\w))*['’](?!\w)")
_SAYS = r"(?:says?|said|writes?|wrote|mention(?:s|ed)|thinks?|thought|believes?|claims?|claimed|heard|hears?)"
_REPORTED = re.compile(
    rf"\b(?:{_SAYS}|according\s+to\s+[^,]{{1,40}},|(?:told|tells|texted)\s+(?:me|us))\s+(?:that\s+)?"
    r"(?:he|she|they|his|her|their|(?-i:[A-Z])[\w-]{2,})\b"
    r"|(?<!\bI )(?<!\bwe )\b(?:thinks?|thought|believes?|claims?|claimed)\s+(?:that\s+)?(?:I|we)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_COUNTS = {word: str(count) for word, count in NUMBERS.items()}
_EMPTY = frozenset(
    based(
        stems(
            "really very just also actually even quite so still now currently recently lately anymore "
            "already yet said say told tell asked mention never none nobody nothing nowhere without "
            "neither hardly longer"
        )
    )
)


COUNTS = frozenset(stems(" ".join(NUMBERS)))
"""Stems of number words, whose digits `numbers` gives."""


@per_text(4096)
def content(text: str) -> frozenset[str]:
    """Stems of the words that carry content, irregular forms at their base, those of one concept made one.

    Cached: what is stored is compared with one new text after another.
    """
    words = " ".join(word for word in tokenize(text) if word not in STOPWORDS)
    return by_concept(based(stems(words))) - _EMPTY


def own_words(text: str) -> str:
    """A text without the speech it quotes: what Tom says of himself is not the speaker's to say."""
    return _SINGLE.sub(" ", _SPEECH.sub(" ", text))


def reports(text: str) -> bool:
    """Whether a sentence passes on what somebody says of themselves, or believes of its speaker."""
    return _REPORTED.search(text) is not None


def share(wanted: Iterable[str], held: frozenset[str]) -> float:
    """Share of the wanted words that are held, 0 to 1; 0 where none is wanted."""
    words = set(wanted)
    return len(words & held) / len(words) if words else 0.0


@per_text(2048)
def numbers(text: str) -> frozenset[str]:
    """Its numbers as digits, counted ones ("three") included; "one" may be anything and is none."""
    digits = {found.replace(",", "") for found in _NUMBER.findall(text)}
    return frozenset(digits | {_COUNTS[word] for word in tokenize(text) if _COUNTS.get(word, "1") != "1"})


def denies(text: str) -> bool:
    """Whether a text holds a word of denying."""
    return NEGATION.search(text) is not None


class Stated(NamedTuple):
    """A statement, who made it and when, and when what it tells happened, where that is known."""

    text: str
    speaker: str | None
    said: datetime | None
    time: datetime | None = None

    @classmethod
    def of(cls, memory: MemoryView) -> "Stated":
        """A stored statement."""
        return cls(memory.text, memory.speaker, memory.time, memory.event_time)

    @property
    def days(self) -> frozenset[date]:
        """The days it is of: of its event time, else those its words name."""
        if self.time is not None:
            return frozenset([self.time.date()])
        return (
            frozenset(one.start.date() for one in read_dates(self.text, self.said))
            if self.said
            else frozenset()
        )


def says_all(whole: Stated, part: Stated) -> bool:
    """Whether a statement says all that another says, of the same person and occasion.

    Built to say no in doubt: a repetition costs little, and a fact taken for another is lost.
    """
    if whole.speaker and part.speaker and not same_person(whole.speaker, part.speaker):
        return False
    if part.days and whole.days != part.days:
        return False
    if same_text(whole.text) == same_text(part.text):
        return True
    if numbers(whole.text) != numbers(part.text) or denies(whole.text) != denies(part.text):
        return False
    return restates(whole.text, part.text, SHARED) in ("same", "more")
