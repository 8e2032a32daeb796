"""Whether one statement says all of another: the same words in order, time and person, and no other sense.

Built to say no in doubt: a repetition costs little, and a fact taken for another is lost.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, get_args

from memcycle.agents.rules.claims import parse
from memcycle.agents.rules.content import subject_of
from memcycle.agents.rules.contradiction import contradiction
from memcycle.agents.rules.verbs import is_adverb
from memcycle.agents.views import MemoryView
from memcycle.core.entry import Precision, same_text
from memcycle.core.language.date_forms import Reading
from memcycle.core.language.dates import read_dates
from memcycle.core.language.names import person_names, same_person
from memcycle.core.language.sentences import NEGATION
from memcycle.core.language.tokens import base_stems, per_text, word_set

_TOKEN = re.compile(r"(?P<word>[\w+#]+(?:['’.&/-]+[\w+#]+)*)|(?P<stop>[.,;:!?()–—]+)|(?P<mark>[^\w\s])")
_SILENT = word_set("a an the also just really very so quite actually")
_DETERMINERS = word_set("a an the her his their its my some two three four five six seven eight nine ten")
_OPENING = word_set(
    """
    in at on from with for by during near around since because as after before to about and which who where
    called named while
    """
)
"""Words that open a phrase which adds to what was said before it."""
_TURNING = word_set("if unless except but or though although instead not never until")
"""Words that take back or condition what was said before them."""
_UNREAL = word_set("almost nearly hardly barely supposedly rarely seldom")
_ADJECTIVE = re.compile(
    r"(?:black|white|red|blue|green|gr[ea]y|brown|yellow|orange|pink|purple|golden|big|small|little|large|tiny|huge"
    r"|long|short|tall|old|new|young|great|good|nice|lovely|cute|cool|own|\w+(?:ful|ous|ible|less|ish))$"
)
"""What may stand before a noun and leave it the same thing, as "dog" in "dog house" does not."""
_BEFORE_DATE = re.compile(r"\b(?:on|in|at|during)\s+$", re.IGNORECASE)
_RELATION = re.compile(r"^(?:since|until|till|before|after|by|from|around|early|late|mid)\b", re.IGNORECASE)
LEAST, MOST_ADJECTIVES = 3, 2


class Stated(NamedTuple):
    """A statement, when it was said, and when what it tells happened, where that is known."""

    text: str
    speaker: str | None
    said: datetime | None
    time: datetime | None = None
    precision: Precision | None = None

    @classmethod
    def of(cls, memory: MemoryView) -> "Stated":
        """A stored statement."""
        precision = next((one for one in get_args(Precision) if one == memory.event_precision), None)
        return cls(memory.text, memory.speaker, memory.time, memory.event_time, precision)

    @property
    def readings(self) -> list[Reading]:
        """The times its words name; none where nobody knows when they were said."""
        return read_dates(self.text, self.said) if self.said else []

    @property
    def when(self) -> frozenset[tuple[datetime, Precision]]:
        """The periods it is of: its event time, else those its words name."""
        if self.time is not None and len(self.readings) <= 1:
            return frozenset([(self.time, self.precision or "day")])
        return frozenset((one.start, one.precision) for one in self.readings)


class Piece(NamedTuple):
    """A word of a statement, or a break between its parts (`stem` is '' then)."""

    stem: str
    word: str
    determined: bool


def says_all(whole: Stated, part: Stated) -> bool:
    """Whether a statement says all that another says, of the same occasion and person."""
    if not _same_person(whole, part) or (whole.when and part.when and whole.when != part.when):
        return False
    if same_text(whole.text) == same_text(part.text):
        return True
    return _same_time(whole, part) and _same_sense(whole.text, part.text) and _holds(whole, part)


def _same_person(one: Stated, other: Stated) -> bool:
    """A text that names nobody is about its speaker, as far as anyone can tell."""
    if not one.speaker or not other.speaker or same_person(one.speaker, other.speaker):
        return True
    return subject_of(one.text) is not None or bool(person_names(one.text, [one.speaker, other.speaker]))


def _same_time(whole: Stated, part: Stated) -> bool:
    """Whether they can be of one occasion: the same dates, else a lasting state or told on the same day."""
    if part.when:
        return whole.when == part.when
    one_day = whole.said is not None and part.said is not None and whole.said.date() == part.said.date()
    return one_day or all(sentence.current for text in (whole.text, part.text) for sentence in parse(text))


def _same_sense(one: str, other: str) -> bool:
    """No denial, tense or pattern sets them apart."""
    if (NEGATION.search(one) is not None) != (NEGATION.search(other) is not None):
        return False
    left, right = parse(one), parse(other)
    tense = not left or not right or left[0].current == right[0].current
    return tense and not contradiction(one, other) and not contradiction(other, one)


def _holds(whole: Stated, part: Stated) -> bool:
    big, small = _pieces(whole.text, _cuts(whole)), _pieces(part.text, _cuts(part))
    wanted = [piece for piece in small if piece.stem]
    if [piece.stem for piece in big if piece.stem] == [piece.stem for piece in wanted]:
        return bool(wanted)
    if len(wanted) < LEAST:
        return False
    gap: list[Piece] = []
    for place, piece in enumerate(big):
        if not wanted:
            gap.append(piece)
        elif piece.stem and piece.stem == wanted[0].stem:
            if not _may_stand(gap, piece, first=len(gap) == place):
                return False
            gap, wanted = [], wanted[1:]
        else:
            gap.append(piece)
    return not wanted and _adds(gap)


def _may_stand(gap: Sequence[Piece], following: Piece, *, first: bool) -> bool:
    """Whether the words a statement has more before a shared word leave the sense of that word."""
    words = [piece for piece in gap if piece.stem]
    if all(is_adverb(piece.word) and piece.word not in _UNREAL | _TURNING for piece in words):
        return True
    if first:
        return False
    if following.word in _OPENING and _adds(gap):
        return True
    adjectives = len(words) == len(gap) <= MOST_ADJECTIVES and words[0].determined
    return adjectives and all(_ADJECTIVE.match(piece.word) for piece in words)


def _adds(gap: Sequence[Piece]) -> bool:
    """Whether words that follow a statement only add to it."""
    words = [piece for piece in gap if piece.stem]
    if any(piece.word in _TURNING for piece in words):
        return False
    opens = bool(gap) and (not gap[0].stem or gap[0].word in _OPENING)
    return opens or all(is_adverb(piece.word) and piece.word not in _UNREAL for piece in words)


def _cuts(stated: Stated) -> tuple[tuple[int, int], ...]:
    """The places of time words, which are compared as times."""
    return tuple((one.begin, one.end) for one in stated.readings)


@per_text(2048)
def _pieces(text: str, cuts: tuple[tuple[int, int], ...]) -> tuple[Piece, ...]:
    """The words that carry sense, in order, and the breaks between them."""
    for begin, end in reversed(cuts):
        kept = _RELATION.match(text[begin:end])
        text = f"{_BEFORE_DATE.sub('', text[:begin])} {kept[0] if kept else ''} {text[end:]}"
    found: list[Piece] = []
    determined = False
    for match in _TOKEN.finditer(text):
        word = match[0].casefold().replace("’", "'")
        if match["stop"]:
            found.append(Piece("", word, determined=False))
        elif word not in _SILENT:
            stems = base_stems(word) or ((word,) if match["mark"] else ())
            found += [Piece(stem, word, determined) for stem in stems]
        determined = word in _DETERMINERS or word.endswith(("'s", "s'"))
    while found and not found[-1].stem:
        found.pop()
    return tuple(found)
