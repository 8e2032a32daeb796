"""What a question asks and which sentences of the evidence bear on it: shared by the roles of asking."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from memcycle.agents.views import MemoryView, TurnView
from memcycle.core.language.date_forms import Reading
from memcycle.core.language.dates import read_dates
from memcycle.core.language.names import person_names, same_person
from memcycle.core.language.questions import Slot, asked_slot, focus, is_question, question_language
from memcycle.core.language.sentences import NEGATION, split_sentences
from memcycle.core.language.tokens import STOPWORDS, base_stems, by_concept, tokenize

# Words of asking that no answer repeats.
_ASKING = frozenset(
    base_stems(
        "many much long often kind type sort name call mention say tell talk describe according currently "
        "recently specific particular likely considered"
    )
)
_NAMING = re.compile(r"\b(?:names?|called|named|titled?)\b", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|me|mine|we|we're|we've|our|us)\b", re.IGNORECASE)
_VOCATIVE = re.compile(
    r"\b(?:hey|hi|hello|thanks|thank you|dear|congrats),? +[^\W\d_][\w-]*"
    r"|(?:^|[,.!?] *|\b(?:wow|yeah|yes|oh|so|ok|okay|aww?|well|sorry),? +)[^\W\d_][\w-]*"
    r"(?= *(?:[,.!?:;-]|$))",
    re.IGNORECASE,
)
_CAPITAL = re.compile(r"(?<=[a-z,] )(?!I\b)[A-Z][\w'’]+")
_DIGIT_OR_COUNT = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|once|twice|couple|few|second|third|fourth|every)\b",
    re.IGNORECASE,
)
_DEED = re.compile(r"\b(?:what|how) .*\b(?:do|doing|done)\b|\bactivit|\bplan", re.IGNORECASE)
_DAYS: dict[str, int] = {"minute": 1, "day": 1, "week": 7, "month": 31, "season": 92, "year": 366}
REPLY_GAP = timedelta(minutes=10)
MAX_SENTENCES = 2000
LONG = 20
"""Stems from which on a sentence counts as long."""
MAX_TEXT = 8000
"""Characters of a memory that are read for sentences."""

# Fitted by listwise softmax on tuning conversations; scale free, only ratios matter.
WEIGHTS: dict[str, float] = {
    "cover": 0.4, "around": 1.0, "reply": 1.0, "previous": 0.1, "own": 0.85, "about": 0.2, "question": -0.2,
    "declares": 0.1, "dated": 0.85, "value": 0.4, "focus": 0.05, "length": 0.35, "outdated": -1.0,
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """A question taken apart.

    Attributes:
        stems: Content stems without names and words of asking.
        persons: Persons named in it, as the evidence spells them where it knows them.
        known: Those of them who speak in evidence or window.
        things: Stems of what else it calls by name: places, works, brands.
        dates: Dates and periods it names.
    """

    question: str
    slot: Slot
    language: str
    focus: str
    stems: frozenset[str]
    persons: tuple[str, ...]
    known: tuple[str, ...]
    dates: tuple[Reading, ...] = ()
    things: frozenset[str] = frozenset()

    @cached_property
    def does(self) -> bool:
        """Whether it asks what somebody does, so that the answer is a deed ("What did she do?")."""
        return _DEED.search(self.question) is not None

    @cached_property
    def names(self) -> bool:
        """Whether it asks what somebody or something is called."""
        return _NAMING.search(self.question) is not None

    @cached_property
    def denies(self) -> bool:
        """Whether the question itself holds a negation."""
        return NEGATION.search(self.question) is not None


def stem_set(text: str) -> frozenset[str]:
    """The stems of a text, irregular forms at their base, those of one concept made the same."""
    return by_concept(base_stems(text))


class Passage(NamedTuple):
    """A sentence of a memory beside how well it fits the question.

    Attributes:
        begin: Offset of the sentence in the memory's text.
        cover: Share of the question's idf mass that the sentence holds, 0 to 1.
        around: The same for the whole memory or, in part, the question it replies to.
        person: 1 the asked person says it, 0.8 it is said about that person, 0.5 nobody is asked for,
            0 it is another person's.
    """

    memory: MemoryView
    begin: int
    text: str
    cover: float
    around: float
    person: float
    score: float
    features: dict[str, float]

    @property
    def topic(self) -> float:
        """The score without what it owes to the person."""
        return self.score - sum(WEIGHTS[name] * self.features[name] for name in ("own", "about"))


def known_speakers(evidence: Sequence[MemoryView], window: Sequence[TurnView] = ()) -> list[str]:
    """Names of those who speak, in order of appearance."""
    names = [memory.speaker for memory in evidence if memory.speaker] + [turn.speaker for turn in window]
    return list(dict.fromkeys(names))


def read_question(question: str, speakers: Sequence[str], now: datetime | None = None) -> Asked:
    """Takes a question apart; `speakers` are names known to be persons, `now` dates its relative words."""
    question = question[:MAX_TEXT]
    persons = tuple(person_names(question, speakers))
    known = tuple(name for name in persons if any(same_person(name, speaker) for speaker in speakers))
    name_stems = {stem for name in known for stem in base_stems(name)}
    dates = tuple(read_dates(question, now)) if now else ()
    date_stems = {stem for reading in dates for stem in base_stems(reading.text)}
    content = stem_set(" ".join(word for word in tokenize(question) if word not in STOPWORDS)) - name_stems
    return Asked(
        question=question,
        slot=asked_slot(question),
        language=question_language(question),
        focus=focus(question),
        stems=(content - _ASKING - date_stems) or (content - _ASKING) or content,
        persons=persons,
        known=known,
        dates=dates,
        things=stem_set(" ".join(_CAPITAL.findall(question))) & (content - date_stems),
    )


def passages(asked: Asked, evidence: Sequence[MemoryView]) -> list[Passage]:
    """Every sentence of the evidence, best first; ties in the order of the evidence."""
    sentences = [split_sentences(memory.text[:MAX_TEXT]) for memory in evidence]
    held = [frozenset().union(*(stem_set(text) for _, _, text in parts)) for parts in sentences]
    idf = _idf(asked, held)
    name_stems = frozenset(stem for name in asked.known or asked.persons for stem in base_stems(name))
    found: list[Passage] = []
    for index, memory in enumerate(evidence):
        around = _share(held[index], idf)
        whole = {
            "around": around,
            "reply": _share(_replied_to(evidence, held, index), idf),
            "own": float(any(same_person(name, memory.speaker) for name in asked.known)),
            "dated": _date_fit(asked, memory),
            "outdated": float(not memory.current),
        }
        previous = 0.0
        for begin, _, text in sentences[index]:
            whole["previous"] = previous
            passage = _passage(asked, memory, begin, text, idf=idf, whole=whole, name_stems=name_stems)
            previous = passage.cover
            found.append(passage)
        if len(found) >= MAX_SENTENCES:
            break
    return sorted(found, key=lambda passage: -passage.score)


def _passage(
    asked: Asked,
    memory: MemoryView,
    begin: int,
    text: str,
    *,
    idf: dict[str, float],
    whole: dict[str, float],
    name_stems: frozenset[str],
) -> Passage:
    words = stem_set(text)
    cover = _share(words, idf)
    about = not words.isdisjoint(name_stems) and _spoken_of(memory, text, name_stems)
    features = {
        **whole,
        "cover": cover,
        "about": float(about and not whole["own"]),
        "question": float(is_question(text)),
        "declares": float(memory.granularity != "raw" or _FIRST_PERSON.search(text) is not None),
        "value": float(_has_value(asked.slot, text, memory)),
        "focus": float(bool(asked.focus) and stem_set(asked.focus) <= words),
        "length": min(len(words), LONG) / LONG,
    }
    person = _person_fit(asked, memory, named=about)
    around = max(whole["around"], 0.7 * whole["reply"], cover)
    score = sum(WEIGHTS[name] * value for name, value in features.items())
    return Passage(memory, begin, text, cover, around, person, score, features)


def _spoken_of(memory: MemoryView, text: str, name_stems: frozenset[str]) -> bool:
    """Whether a sentence says something of a person, more than calling them ("Thanks, Ana!")."""
    spoken = _VOCATIVE.sub(" ", text) if memory.granularity == "raw" else text
    return not name_stems.isdisjoint(stem_set(spoken))


def _person_fit(asked: Asked, memory: MemoryView, *, named: bool) -> float:
    """How far a sentence is the asked person's (see `Passage.person`)."""
    if not asked.persons:
        return 0.5
    if any(same_person(name, memory.speaker) for name in asked.known):
        return 1.0
    return 0.8 if named or (memory.speaker is None and bool(asked.known)) else 0.0


def _has_value(slot: Slot, text: str, memory: MemoryView) -> bool:
    """Whether a sentence shows a value of the asked type, where surface tells."""
    if slot in ("when", "how_long"):
        return memory.event_time is not None or bool(memory.time and read_dates(text, memory.time))
    if slot == "how_many":
        return _DIGIT_OR_COUNT.search(text) is not None
    return slot in ("who", "where") and _CAPITAL.search(text) is not None


def _date_fit(asked: Asked, memory: MemoryView) -> float:
    """1 where the memory was said or happened in a period the question names, less within ten days of it."""
    best = 0.0
    for reading in asked.dates:
        end = reading.start + timedelta(days=_DAYS[reading.precision])
        for time in (memory.time, memory.event_time):
            if time is not None:
                off = max(reading.start - time, time - end, timedelta(0)).days
                best = max(best, 1.0 if reading.start <= time < end else 0.5 if off <= 10 else 0.0)  # noqa: PLR2004
    return best


def _replied_to(evidence: Sequence[MemoryView], held: Sequence[frozenset[str]], index: int) -> frozenset[str]:
    """Stems of the other speaker's question just before, which a short reply leaves out."""
    if index == 0:
        return frozenset()
    memory, before = evidence[index], evidence[index - 1]
    near = memory.time and before.time and timedelta(0) <= memory.time - before.time <= REPLY_GAP
    if near and before.speaker != memory.speaker and "?" in before.text:
        return held[index - 1]
    return frozenset()


def _idf(asked: Asked, held: Sequence[frozenset[str]]) -> dict[str, float]:
    total = len(held)
    return {
        stem: math.log(1 + (total + 1) / (1 + sum(stem in words for words in held)))
        for stem in sorted(asked.stems)
    }


def _share(present: frozenset[str], idf: dict[str, float]) -> float:
    total = sum(idf.values())
    return sum(weight for stem, weight in idf.items() if stem in present) / total if total else 0.0


class Gap(NamedTuple):
    """What the evidence lacks, in words for the next query, and why that blocks."""

    words: str
    why: str


def about_things(asked: Asked, ranked: Sequence[Passage]) -> list[Passage]:
    """The passages whose memory names what the question names, best first; all, where none names it."""
    held = [passage for passage in ranked if asked.things & stem_set(passage.memory.text)]
    return held or list(ranked)


ENOUGH = 0.2
"""Least share of the question's idf mass that a memory of the asked person must hold."""
SWAPPED, SWAPPED_LOOSE = 0.1, 0.4
"""How much better another's words may fit before they are what was really asked about; the second where
several memories make up the answer, or a date or a yes may stand in any of them."""
_LOOSE: frozenset[Slot] = frozenset(("list", "yes_no", "when", "how_many"))


def gap_of(asked: Asked, ranked: Sequence[Passage]) -> Gap | None:
    """The one blocking gap, None when predicate and person stand together in the evidence.

    A question about what another person did or said finds that person's words: a gap, not an answer.
    """
    missing = " ".join(sorted(asked.stems))
    subject = f"{asked.persons[0]}: " if asked.persons else ""
    own = [passage for passage in ranked if passage.person > 0]
    others = [passage for passage in ranked if passage.person == 0 and not passage.features["question"]]
    if max((passage.around for passage in own), default=0.0) < ENOUGH:
        return Gap(f"{subject}{missing}", "the evidence does not speak of this")
    margin = SWAPPED_LOOSE if asked.slot in _LOOSE or len(asked.known) > 1 else SWAPPED
    if others and max(passage.topic for passage in others) - max(passage.topic for passage in own) > margin:
        return Gap(f"{subject}{missing}", f"only others speak of this, not {' and '.join(asked.persons)}")
    return None
