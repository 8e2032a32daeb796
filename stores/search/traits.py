"""Traits of a text that ranking weighs besides its words: computed once, when the text is written.

They read English and what is written alike everywhere (question marks, digits, dates); a text of another
language has fewer of them, and is ranked by its words and its vector.
"""

import re
from collections.abc import Iterable
from datetime import datetime

from memcycle.core.language.dates import read_dates
from memcycle.core.language.readings import NUMBERS
from memcycle.core.language.tokens import strip_names, tokenize
from memcycle.core.language.wordlists import word_set

QUESTION, FIRST_PERSON, NUMBER, CAPITAL, TIME = (1 << place for place in range(5))

_I = word_set("i im ive id ill me my mine myself we our ours us weve ourselves")
_COUNTS = frozenset(NUMBERS) - {"a", "an"} | word_set("dozen hundred thousand once twice several few couple")
_ASKS = re.compile(r"[?？؟]\W*(?:\[[^\]]*\]\s*)?\Z")
_CAPITAL = re.compile(r"(?<=[^\W\d_A-Z] )[A-Z][^\W\d_]+|(?<=[,;] )[A-Z][^\W\d_]+")


def of(text: str, time: datetime | None, people: Iterable[str | None]) -> int:
    """The traits of a text, or-ed.

    - QUESTION: it ends by asking (a note in brackets after it, as of an image, does not count).
    - FIRST_PERSON: its speaker tells of themselves.
    - NUMBER: it holds a number, in digits or in words.
    - CAPITAL: it names something inside a sentence, other than these people.
    - TIME: it says when, in a way that can be read; only where `time`, when it was said, is known.
    """
    words = frozenset(tokenize(text))
    nameless = strip_names(text, [name for name in people if name])
    return (
        QUESTION * bool(_ASKS.search(text))
        | FIRST_PERSON * bool(words & _I)
        | NUMBER * (bool(words & _COUNTS) or any(word[0].isdigit() for word in words))
        | CAPITAL * bool(_CAPITAL.search(nameless))
        | TIME * (time is not None and bool(read_dates(text, time)))
    )
