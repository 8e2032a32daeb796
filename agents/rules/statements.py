"""Which sentences of a text state something, as they were said.

A question, code, what somebody else wrote, a supposition, a greeting and an order to the assistant state
nothing about anybody. In doubt a sentence is left out: the turn itself is always kept, while a statement that
was never made is believed.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from memcycle.agents.rules.content import content, numbers
from memcycle.agents.views import MemoryView
from memcycle.core.language.date_forms import Reading
from memcycle.core.language.dates import read_dates
from memcycle.core.language.questions import is_question
from memcycle.core.language.sentences import FENCE, corrects, split_sentences
from memcycle.core.language.small_talk import asks
from memcycle.core.language.tokens import per_text

FIRST_PERSON = re.compile(r"\b(?:I|me|my|mine|myself|we|us|our|ours)\b|\bi\b|\bi['’]", re.IGNORECASE)
_CODE = re.compile(
    r"^\s*(?:[>#|]|\$ |(?:def|class|import|from|return|select|const|let|var|function)\b.*[(){};=*])"
    r"|[{};]\s*$|=>|==|\w\(\)|</?\w+>",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"^\W*[\"“«„][^\"”»“]*[\"”»“]\W*$")
_SUPPOSED = re.compile(
    r"^\W*(?:(?:and|but|so|or|then)\s+)?(?:unless|suppos\w+|imagine"
    r"|assum\w+|let['’]s say|perhaps|maybe"
    r"|hopefully)\b|\b(?:if|would|wouldn|could|couldn|might|should|wish|whether|wishes|hope|hopes|hoping|hoped"
    r"|dream(?:s|ing)? of"
    r"|wonder|wondering|pretend\w*|as though)\b"
    r"|\b(?:i|we|you|he|she|it|they) may\b"
    r"|(?:n['’]t|\bnot|\bno)\s+(?:\w+\s+)?(?:know|idea|sure)\s+(?:where|what|who|when|why|how|which|if)\b"
    r"|['’]d (?:love|like|rather|prefer|be|do|go|say|have|want|never|hate|get|take|buy)\b",
    re.IGNORECASE,
)
_REMEMBER = re.compile(
    r"^\W*(?:please\s+)?(?:remember|note|keep in mind|don['’]?t forget|remind me)\b(?: down)?(?:,|:| that)?",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"^\W*(?:(?:please|just|now|then|and|but|so|ok|okay|also|hey|alright|well)\W+)*"
    r"(?:(?:please|remember|forget|remind|note|keep|tell|show|give|send|write|read|help|make|let|let['’]s|lets|check|look"
    r"|try|find|list|summari[sz]e|explain|translate|describe|suggest|recommend|search|compare|correct|fix|rewrite|answer"
    r"|call|delete|erase|remove|add|set|use|take|go|come|do|don['’]?t|stop|wait|guess|enjoy|say|ask|think|be|have|stay"
    r"|good luck|well done|happy|congrats|congratulations)\b"
    r"|(?:i|we)(?:['’]d)? (?:want|need|would like|like) you to\b)",
    re.IGNORECASE,
)
_TO_YOU = re.compile(
    r"^\W*(?:(?:and|but|so|wow|oh|yeah|yes)\W+)*(?:you|your|yours|you['’]\w+|what an?|how)\b", re.IGNORECASE
)
_YOU = re.compile(r"\b(?:you|your|yours)\b", re.IGNORECASE)
SMALL_TALK = content(
    """
    thank thanks hello hi hey bye goodbye good great nice cool awesome amazing wonderful incredible
    fantastic lovely sound sounds look looks glad happy proud excited hear heard love loved like know think
    thought see sure yes yeah yep nope no ok okay wow oh ah haha lol really sorry congrats congratulations
    welcome please well right agree exactly absolutely totally definitely fun luck care soon later talk day
    night morning evening weekend thing things something anything everything mean means feel feels guess
    true inspiring interesting beautiful impressive best always never also still even lot lots kind way make
    makes made get got take keep idea point wait believe appreciate support same too much here there now
    today one time bit pretty super so hope life people funny
    """
)
MOST = 1_000
"""Characters of the longest sentence that is read as one statement."""


class Statement(NamedTuple):
    """A sentence of a text and its place: `text == whole[begin:end]`."""

    begin: int
    end: int
    text: str


@per_text(2048)
def statements_of(text: str) -> tuple[Statement, ...]:
    """The sentences of a text that state something, in order. Cached: several roles read one turn."""
    return tuple(one for one in sentences_of(text) if states(one.text))


def sentences_of(text: str) -> Iterator[Statement]:
    """The sentences of a text but for code and what stands in fences."""
    plain = FENCE.sub(lambda fence: "\n" * len(fence[0]), text) if "```" in text else text
    for begin, end, sentence in split_sentences(plain):
        if not _CODE.search(sentence[:MOST]):
            yield Statement(begin, end, sentence)


def states(sentence: str) -> bool:
    """Whether a sentence says that something is so."""
    if len(sentence) > MOST or _QUOTED.match(sentence) or sentence.startswith("[image:"):
        return False
    rest = _REMEMBER.sub("", sentence)
    if rest != sentence and not sentence.rstrip().endswith(("?", "？")):
        return FIRST_PERSON.search(rest) is not None and not supposes(rest) and says_something(rest)
    if (
        is_question(sentence)
        or asks(sentence)
        or supposes(sentence)
        or _ORDER.match(sentence)
        or _TO_YOU.match(sentence)
    ):
        return False
    return says_something(sentence) and (
        not _YOU.search(sentence) or FIRST_PERSON.search(sentence) is not None
    )


def supposes(sentence: str) -> bool:
    """Whether a sentence tells of what might be, is wished for or holds on a condition."""
    return _SUPPOSED.search(sentence[:MOST]) is not None


def says_something(sentence: str) -> bool:
    """Whether more than small talk is left of it: two words, or one with a number or of the speaker."""
    left = content(sentence) - SMALL_TALK
    of_somebody = FIRST_PERSON.search(sentence) is not None or bool(numbers(sentence))
    return len(left) > 1 or (len(left) == 1 and of_somebody)


def when_of(sentence: str, said: datetime) -> Reading | None:
    """When what a sentence tells happened: its first exact time expression, else its first one.

    A counted stretch ("in the past 7 days") is not when it happened.
    """
    found = [reading for reading in read_dates(sentence, said) if reading.until is None]
    return next((reading for reading in found if not reading.approximate), found[0] if found else None)


def is_news(sentence: str, said: datetime, memory: MemoryView) -> bool:
    """Whether a sentence said then can speak of a time after that of a memory; a correction always does."""
    known = memory.event_time or memory.time
    if known is None or corrects(sentence):
        return True
    when = when_of(sentence, said)  # "moved in 2010" is no news about a home named in 2020
    return known <= (said if when is None else min(said, when.over))
