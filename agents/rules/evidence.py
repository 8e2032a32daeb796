"""What a question asks, and which sentences of the evidence bear on it: shared by the roles of asking.

A question, code and, unless the question itself supposes, what was only supposed are never looked at, so that
no answer can come from them.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from memcycle.agents.rules.content import content, denies, own_words, reports
from memcycle.agents.rules.slots import SPEAKER, owner_of
from memcycle.agents.rules.statements import FIRST_PERSON, SMALL_TALK, sentences_of, supposes
from memcycle.agents.views import MemoryView, TurnView
from memcycle.core.language.date_forms import Reading
from memcycle.core.language.dates import read_dates
from memcycle.core.language.forget_requests import requests_in
from memcycle.core.language.names import person_names, same_person
from memcycle.core.language.questions import Slot, asked_slot, bare, focus, is_question, question_language
from memcycle.core.language.small_talk import asks
from memcycle.core.language.tokens import per_text, unbroken

ASKING = content(
    "many much long often kind type sort name call talk describe according recently specific particular "
    "likely considered give given know remember recommend suggest advise"
)
"""Words of asking that no answer repeats."""
_HAPPENING = content("happen going do doing been up")
"""What is left of a question that asks for a time alone: "What happened last week?"."""
_FAVOURITE = content("favourite favorite")
_CALLED = re.compile(r"[\"“][^\"”]{2,60}[\"”]|(?<=[a-z,] )(?!I\b)[A-Z][\w'’]+|\b(?:called|named)\b")
_NAMING = re.compile(r"\b(?:names?|called|named)\b", re.IGNORECASE)
_NAMED = re.compile(r"\b(?:names?|called|named)\b.*?(?-i:\b[A-Z\"“])", re.IGNORECASE)
_COUNT = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|once|twice|couple|few|several|every)\b",
    re.IGNORECASE,
)
_ME = re.compile(r"\b(?:I|me|my|mine)\b")
_SELF = re.compile(r"\b(?:I|me|we|us)\b")
_YOU = re.compile(r"\b(?:you|your)\b", re.IGNORECASE)
_OF_ASSISTANT = re.compile(
    r"\b(?:did|have|had) you\b|\byou (?:said|told|wrote|suggested|recommended|mentioned|gave)\b"
    r"|\byour (?:advice|answer|suggestion|recommendation|list|plan)\b",
    re.IGNORECASE,
)
"""How a question asks for what the assistant said."""
_OF_REPORTS = re.compile(
    r"\b(?:t[eo]ld?|sa[iy]d?|says|th(?:ink|ought)|wr[io]te|believe|claim|hear|heard)\b", re.IGNORECASE
)
_OF_TALK = re.compile(r"\b(?:talk|sp[eo]ak|spoke|discuss|chat|convers|session)", re.IGNORECASE)
_TOPICS = re.compile(r"On \d[^.]*? (?:talked|spoke)\b")
"""How an episode opens that was written without a model: with what was asked and wished, too."""
LONGEST = 8_000
"""Characters of a memory that are read."""
MOST_PASSAGES = 2_000
FOCUS = 0.4
WEIGHTS = {
    "search": 5.0, "cover": 0.8, "kind": 0.6, "dated": 0.25, "addressed": -0.6, "denied": -0.5,
    "caption": -0.9,
    "episode": -0.5, "outdated": -2.0,
}  # fmt: skip
"""Of the signals of a passage, each from 0 to 1; fitted by listwise softmax on LoCoMo conversations 1-3."""


@dataclass(frozen=True)
class ParsedQuestion:
    """A question taken apart.

    Attributes:
        words: Its content without names, dates and words of asking; none where it asks for a time alone.
        persons: Persons named in it, as the evidence spells them where it knows them.
        known: Those of them who speak in evidence or window.
        dates: Dates and periods it names.
    """

    question: str
    slot: Slot
    language: str
    words: frozenset[str]
    persons: tuple[str, ...]
    known: tuple[str, ...]
    dates: tuple[Reading, ...]

    @property
    def wants_kind(self) -> bool:
        """Whether it asks for a value that shows on the surface: a time, a number, a name."""
        return self.slot in ("when", "how_long", "how_many") or _NAMING.search(self.question) is not None

    @property
    def supposes(self) -> bool:
        """Whether it asks for what might be."""
        return supposes(self.question)


def speakers_of(evidence: Sequence[MemoryView], window: Sequence[TurnView] = ()) -> list[str]:
    """Names of those who speak, in order of appearance."""
    names = [memory.speaker for memory in evidence if memory.speaker] + [turn.speaker for turn in window]
    return list(dict.fromkeys(names))


def read_question(question: str, speakers: Sequence[str], now: datetime | None = None) -> ParsedQuestion:
    """Takes a question apart; `speakers` are names known to be persons, `now` dates its relative words."""
    question = unbroken(question[:LONGEST])
    persons = tuple(person_names(question, speakers))
    known = tuple(name for name in persons if any(same_person(name, speaker) for speaker in speakers))
    dates = tuple(read_dates(question, now)) if now else ()
    whole = content(bare(question)) - content(" ".join(known))
    words = whole - ASKING or whole
    dated = content(" ".join(one.text for one in dates))
    of_a_time = bool(dates) and not whole - dated - _HAPPENING
    return ParsedQuestion(
        question=question,
        slot=asked_slot(question),
        language=question_language(question),
        words=frozenset() if of_a_time else words - dated or words,
        persons=persons,
        known=known,
        dates=dates,
    )


class Passage(NamedTuple):
    """A sentence of a memory beside how well it fits the question.

    Attributes:
        cover: Share of the question's words that the sentence holds, the rarer the heavier, 0 to 1.
        around: The same for the whole memory.
        person: 1 the asked person says it, 0.8 it speaks of that person, 0.5 nobody is asked for, 0 it
            is another person's.
        kind: Whether it shows a value of the asked kind.
    """

    memory: MemoryView
    text: str
    cover: float
    around: float
    person: float
    kind: bool
    score: float

    @property
    def topic(self) -> float:
        """How much of the question it holds, whoever says it."""
        return self.around + 0.5 * self.cover


def passages(parsed: ParsedQuestion, evidence: Sequence[MemoryView]) -> list[Passage]:
    """The sentences that may answer, best first; ties in the order of the evidence."""
    shown = [memory for memory in evidence if _may_speak(parsed, memory)]
    held = [content(own_words(memory.text[:LONGEST])) for memory in shown]
    weights = _weights(parsed, held)
    best = max((memory.score or 0.0 for memory in shown), default=0.0)
    found: list[Passage] = []
    for memory, words in zip(shown, held, strict=True):
        # When it happened, where that is known; asked for a time alone, nothing else tells.
        then = float(not parsed.words and _lies_in(parsed, memory.event_time or memory.time))
        around = _share(words, weights) or then
        whole = {
            "search": (memory.score or 0.0) / best if best else around,
            "dated": float(_lies_in(parsed, memory.time, memory.event_time)),
            "outdated": float(not memory.current),
            "episode": float(memory.granularity == "episode"),
        }
        for text in _sentences(parsed, memory):
            cover = _share(content(own_words(text)), weights) or then
            kind = holds_kind(parsed, memory, text)
            signals = {
                **whole,
                "cover": cover,
                "kind": float(kind),
                "addressed": float(_YOU.search(text) is not None),
                "denied": float(denies(text) and not denies(parsed.question)),
                "caption": float(text.startswith("[image:")),
            }
            score = sum(WEIGHTS[name] * value for name, value in signals.items())
            found.append(Passage(memory, text, cover, around, _person_fit(parsed, memory, text), kind, score))
        if len(found) >= MOST_PASSAGES:
            break
    return sorted(found, key=lambda one: -one.score)


def _may_speak(parsed: ParsedQuestion, memory: MemoryView) -> bool:
    """Only what people said answers, and what the assistant said where it is asked."""
    return memory.role in (None, "human") or (
        memory.role == "ai" and _OF_ASSISTANT.search(parsed.question) is not None
    )


def _sentences(parsed: ParsedQuestion, memory: MemoryView) -> Iterator[str]:
    for text, wished in _stated(memory.text[:LONGEST]):
        topics = (
            memory.granularity == "episode" and _TOPICS.match(text) and not _OF_TALK.search(parsed.question)
        )
        if not topics and (parsed.supposes or not wished):
            yield text


@per_text(2048)
def _stated(text: str) -> list[tuple[str, bool]]:
    """The sentences of a memory that state something, and whether each only supposes it.

    Cached: one round after another is shown the same memories.
    """
    sentences = [sentence for _, _, sentence in sentences_of(unbroken(text))]
    return [
        (one, supposes(one))
        for one in sentences
        if not (is_question(one) or asks(one) or requests_in(one)) and content(one) - SMALL_TALK
    ]


def _weights(parsed: ParsedQuestion, held: Sequence[frozenset[str]]) -> dict[str, float]:
    """By word of the question how rare it is among the memories.

    The noun it asks for ("which instrument") counts little: who plays the cello need not say that it is one;
    so do "favourite", which a colour may be as well as a food, and the name of whom it is about.
    """
    total = len(held)
    wanted = content(" ".join([focus(parsed.question), *parsed.persons])) | _FAVOURITE
    rare = {word: math.log(1 + (total + 1) / (1 + sum(word in one for one in held))) for word in parsed.words}
    return {
        word: rare[word] * (FOCUS if word in wanted and parsed.words - wanted else 1.0)
        for word in sorted(rare)
    }


def _share(present: frozenset[str], weights: dict[str, float]) -> float:
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in present) / total if total else 0.0


def _person_fit(parsed: ParsedQuestion, memory: MemoryView, text: str) -> float:
    # Who speaks is called by name in passing ("Thanks, Ana!"); of others a whole turn may tell.
    words = content(text if parsed.known else memory.text[:LONGEST])
    named = any(content(name) <= words for name in parsed.persons)
    speaks = any(same_person(name, memory.speaker) for name in parsed.known)
    of_speaker = speaks or (not parsed.persons and _ME.search(parsed.question))
    others = parsed.persons and not speaks
    if others or (of_speaker and _is_of_others(parsed, memory.speaker, text)):
        return 0.8 if named else 0.0
    return 1.0 if speaks else 0.5


def _is_of_others(parsed: ParsedQuestion, speaker: str | None, text: str) -> bool:
    """Whether a sentence is about somebody else than who says it: "Tom lives in Rome", "My sister moved"."""
    owner = owner_of(text, speaker)
    whose, _, noun = owner.partition("'s ")
    if whose not in ("", (speaker or SPEAKER).casefold()) and not FIRST_PERSON.search(text):
        return True
    owned = content(noun)
    if reports(text) and not owned & parsed.words and not _OF_REPORTS.search(parsed.question):
        return True
    return bool(owned) and not owned & parsed.words and not _SELF.search(text)


def holds_kind(parsed: ParsedQuestion, memory: MemoryView, text: str) -> bool:
    """Whether a sentence shows a value of the asked kind, where the surface tells."""
    if _NAMING.search(parsed.question):
        return _NAMED.search(text) is not None
    if memory.granularity == "episode":  # its days are those of the talk
        return False
    if parsed.slot in ("when", "how_long"):
        return memory.event_time is not None or bool(memory.time and read_dates(text, memory.time))
    if parsed.slot == "how_many":
        return _COUNT.search(text) is not None
    return parsed.slot in ("who", "where") and _CALLED.search(text) is not None


def _lies_in(parsed: ParsedQuestion, *times: datetime | None) -> bool:
    """Whether one of the times is in a period that the question names."""
    return any(one.start <= time < one.over for time in times if time for one in parsed.dates)


class Gap(NamedTuple):
    """What the evidence lacks, in words for the next query, and why that blocks."""

    words: str
    why: str


ENOUGH, ENOUGH_UNNAMED = 0.15, 0.4
"""Least share of the words that must be held together; the second for a question that names nobody."""
SWAPPED, SWAPPED_LOOSE = 0.1, 0.3
"""How much more of the question another's words may hold before they are what was really asked about; the
second where several memories make up the answer, or a date or a yes may stand in any of them."""
_LOOSE: frozenset[Slot] = frozenset(("list", "yes_no", "when", "how_many"))


def gap_of(parsed: ParsedQuestion, ranked: Sequence[Passage]) -> Gap | None:
    """The one blocking gap, None where somebody the question is about says what it asks for.

    A question about what another person did or said finds that person's words: a gap, not an answer.
    """
    missing = " ".join([*(f"{name}:" for name in parsed.persons[:1]), *sorted(parsed.words)])
    own = [one for one in ranked if one.person > 0]
    enough = ENOUGH if parsed.persons or not is_question(parsed.question) else ENOUGH_UNNAMED
    if max((one.around for one in own), default=0.0) < enough:
        return Gap(missing, "the evidence does not speak of this")
    margin = SWAPPED_LOOSE if parsed.slot in _LOOSE or len(parsed.known) > 1 else SWAPPED
    others = max((one.topic for one in ranked if one.person == 0), default=0.0)
    if others - max(one.topic for one in own) > margin:
        return Gap(
            missing, f"only others speak of this, not {' and '.join(parsed.persons) or 'who is meant'}"
        )
    return None
