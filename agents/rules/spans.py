"""Picks the words of a sentence that answer a question: a linear score over candidate spans."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from memcycle.agents.rules.grounding import Asked, Passage, stem_set
from memcycle.agents.rules.verbs import AUXILIARIES, BASE, is_past
from memcycle.core.language.sentences import NEGATION
from memcycle.core.language.tokens import STOPWORDS, base_stems, word_set

_WORD = re.compile(r"[^\W_]+(?:['’\-.&/][^\W_]+)*[+#]*", re.UNICODE)
_BREAK = re.compile(r"[,;:.!?()\[\]\n]|\s[-–—]+\s|—|–")
_PRONOUNS = word_set(
    """
    i i'm i've i'd i'll you he she it we they it's that's he's she's they're we're you're we've
    """
)
_DETERMINERS = word_set(
    """
    a an the my our his her their this that these those some your its
    """
)
_PREPOSITIONS = word_set(
    """
    in at on to from near for with by of about into through during around like as
    """
)
_JOINERS = word_set(
    """
    and but or so because since when while if which who where although though then
    """
)
_DEGREES = word_set(
    """
    so really very feel felt feels feeling was is it's super pretty totally
    """
)
_PLACES = word_set("in at to from near around on into visited visit")
_WORKS = re.compile(
    r"\b(?:book|movie|film|song|show|series|game|novel|album|band|title|name|called|play|poem|story|company|brand)s?\b"
)
_QUOTED = re.compile(r"[\"“]([^\"”]{2,80})[\"”]")
_NEVER_LAST = _DETERMINERS | _PREPOSITIONS | _JOINERS
_SOFT = _JOINERS | _PREPOSITIONS | _PRONOUNS
MAX_WORDS = 12
FAR = 8
"""Content words between the question's words and a span beyond which distance counts no more."""
TWO, THREE = 2, 3
Features = dict[str, float]


class Word(NamedTuple):
    """A word of a sentence with its place; `content`: no function word; `asked`: the question has it too."""

    begin: int
    end: int
    text: str
    folded: str
    stem: str
    content: bool
    verbal: bool
    asked: bool


class Span(NamedTuple):
    """A stretch of a sentence and how likely it is the answer."""

    passage: Passage
    begin: int
    end: int
    text: str
    score: float


# Fitted on tuning conversations to raise the expected token-F1 of the span drawn; only differences matter.
# `denied` is not fitted: what a clause denies is no answer, however rare that is in the data.
WEIGHTS: dict[str, float] = {
    "after": 1.15, "adjacent": 1.55, "distance": -0.2, "first": -0.6, "opens": 0.9, "after_verb": 1.25,
    "determiner": 0.55, "preposition": 0.9, "starts_verb": -0.4, "gerund": 0.6, "denied": -3.0,
    "place_slot": 0.75, "feeling": 0.6, "closes": 1.3, "soft_close": 0.6, "modifies": 0.4,
    "ends_function": -0.5, "asked": -1.6, "one": -1.6, "two": -0.55, "three": 1.1, "long": 1.3,
    "function": -0.25, "verbs": -0.1, "pronoun": -1.6, "inner_break": -0.4, "capital": 3.3,
    "name_slot": 1.2, "place_capital": 1.3, "reason_long": 0.25, "manner_long": 0.2, "deed": 0.4,
    "quoted": 1.55, "quoted_work": 1.6, "rank": -0.4, "margin": -0.85, "cover": 0.7,
}  # fmt: skip


class Sentence:
    """A sentence cut into words, and the features of its spans.

    What depends on the first or the last word alone is computed once for it: spans are many.
    """

    def __init__(self, asked: Asked, passage: Passage) -> None:
        self.asked, self.text = asked, passage.text
        named = asked.stems | {stem for name in asked.persons for stem in base_stems(name)}
        self.words = [_word(match, named) for match in _WORD.finditer(passage.text)]
        between = [passage.text[left.end : right.begin] for left, right in pairwise(self.words)]
        # breaks[i]: a clause may end after word i; the last word ends one.
        self.breaks = [_BREAK.search(gap) is not None for gap in between] + [True]
        self.denied = self._denied()
        self.between = self._between()
        self.focus = stem_set(asked.focus)
        work = _WORKS.search(asked.question) is not None
        self.quoted = {match.span(1): 1.0 + work for match in _QUOTED.finditer(passage.text)}

    def _denied(self) -> list[bool]:
        """For every word whether its clause denies before it, where the question does not."""
        denied, found = False, []
        for word, ends in zip(self.words, self.breaks, strict=False):
            found.append(denied)
            denied = not ends and (
                denied or (not self.asked.denies and NEGATION.search(word.text) is not None)
            )
        return found

    def _between(self) -> list[int | None]:
        """For every word how many words with content stand between it and the last asked one before it."""
        between: int | None = None
        found: list[int | None] = []
        for word in self.words:
            found.append(between)
            if word.asked:
                between = 0
            elif between is not None:
                between += word.content
        return found

    def spans(self) -> Iterator[tuple[int, int]]:
        """First and last word of every span worth scoring."""
        for first, word in enumerate(self.words):
            if word.folded in _JOINERS:
                continue
            content = False
            for last in range(first, min(len(self.words), first + MAX_WORDS)):
                content = content or self.words[last].content
                if content and self.words[last].folded not in _NEVER_LAST:
                    yield first, last

    def start(self, first: int) -> Features:
        """Features of where a span starts."""
        word, slot = self.words[first], self.asked.slot
        before = self.words[first - 1] if first else None
        folded = before.folded if before else ""
        between = self.between[first]
        opens = before is None or self.breaks[first - 1]
        return {
            "after": float(between is not None),
            "adjacent": float(between == 0),
            "distance": float(min(between or 0, FAR)),
            "first": float(opens),
            "opens": float(
                opens or (before is not None and (before.asked or before.verbal or not before.content))
            ),
            "after_verb": float(before is not None and before.verbal),
            "determiner": float(word.folded in _DETERMINERS),
            "preposition": float(word.folded in _PREPOSITIONS),
            "starts_verb": float(word.verbal),
            "gerund": float(word.folded.endswith("ing")),
            "denied": float(self.denied[first]),
            "place_slot": float(slot == "where" and folded in _PLACES),
            "feeling": float(slot == "how" and folded in _DEGREES),
        }

    def close(self, last: int) -> Features:
        """Features of where a span ends."""
        after = self.words[last + 1] if last + 1 < len(self.words) else None
        return {
            "closes": float(self.breaks[last]),
            "soft_close": float(after is not None and after.folded in _SOFT),
            "modifies": float(after is not None and after.stem in self.focus),
            "ends_function": float(not self.words[last].content),
        }

    def inside(self, first: int, last: int) -> Features:
        """Features of all words of a span together."""
        words, slot = self.words[first : last + 1], self.asked.slot
        size = sum(word.content for word in words)
        verbs = sum(word.verbal for word in words)
        capital = sum(word.text[0].isupper() for word in (words if first else words[1:])) / len(words)
        quoted = self.quoted.get((words[0].begin, words[-1].end), 0.0)
        return {
            "asked": sum(word.asked for word in words) / size,
            "one": float(size == 1),
            "two": float(size == TWO),
            "three": float(size == THREE),
            "long": float(max(0, size - THREE - 1)),
            "function": float(len(words) - size),
            "verbs": float(verbs),
            "pronoun": float(sum(word.folded in _PRONOUNS for word in words)),
            "inner_break": float(sum(self.breaks[first:last])),
            "capital": capital,
            "name_slot": capital * (slot == "who" or self.asked.names),
            "place_capital": capital * (slot == "where"),
            "reason_long": float(size > THREE and slot == "why"),
            "manner_long": float(size > THREE and slot == "how"),
            "deed": float(verbs > 0 and self.asked.does),
            "quoted": float(quoted > 0),
            "quoted_work": float(quoted > 1),
        }


def _word(match: re.Match[str], named: frozenset[str]) -> Word:
    folded = match.group().casefold().replace("’", "'")
    stem = (base_stems(folded) or (folded,))[0]
    content = folded.replace("'", "") not in STOPWORDS
    return Word(
        match.start(), match.end(), match.group(), folded, stem, content, _verbal(folded), stem in named
    )


def _verbal(word: str) -> bool:
    gerund = word.endswith("ing") and len(word) > len("thing")
    return word in AUXILIARIES or word in BASE or gerund or is_past(word)


def _weigh(features: Features) -> float:
    return sum(WEIGHTS[name] * value for name, value in features.items() if value)


def best_span(asked: Asked, ranked: Sequence[Passage]) -> Span | None:
    """The best span of these passages (best passage first), None where they hold no content word."""
    best: Span | None = None
    for rank, passage in enumerate(ranked):
        sentence = Sentence(asked, passage)
        base = _weigh({"rank": rank, "margin": ranked[0].score - passage.score, "cover": passage.cover})
        starts = [base + _weigh(sentence.start(first)) for first in range(len(sentence.words))]
        closes = [_weigh(sentence.close(last)) for last in range(len(sentence.words))]
        for first, last in sentence.spans():
            score = starts[first] + closes[last] + _weigh(sentence.inside(first, last))
            if best is None or score > best.score:
                begin, end = sentence.words[first].begin, sentence.words[last].end
                best = Span(passage, begin, end, passage.text[begin:end], score)
    return best
