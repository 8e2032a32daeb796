"""What no model may do, whatever it answers: pure checks in code."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from memcycle.agents.rules.slots import contradiction, lasts
from memcycle.core.entry import Entry
from memcycle.core.language import matter
from memcycle.core.language.date_forms import Reading
from memcycle.core.language.dates import read_dates
from memcycle.core.language.questions import is_question
from memcycle.core.language.sentences import NEGATION, split_sentences
from memcycle.core.language.tokens import content_stems, distinct_stems, per_text, stems
from memcycle.core.turn import Turn

_FORGET = re.compile(
    r"\b(forget|delete|remove|erase|wipe|clear|drop|discard|scrub"
    r"|(do not|don't|stop) (remember|keep|stor|sav)\w*"
    r"|verg(iss|esst|essen)|lösch\w*|entfern\w*|oubli\w*|supprim\w*|efface\w*|olvid\w*|borr\w*|elimin\w*"
    r"|dimentica\w*|cancell\w*|esque[cç]\w*|apag\w*)\b|忘|删|刪|消して|消去|削除|잊어|삭제",
    re.IGNORECASE,
)
_VERB = r"(?:forget|delete|remove|erase|wipe|clear|drop|discard|scrub)"
_NO_REQUEST = re.compile(
    rf"\b(?:not|never|cannot|\w+n't)(?: (?:you|ever|even|just))* {_VERB}\b"
    r"|\b(?:i|we|he|she|they)(?:'ll|'d)?(?: (?:always|often|sometimes|usually|just|even|still|also|will|might"
    rf"|may|must|can|could|do|did|had to|have to|tend to))* (?:{_VERB}|(?:don't|do not) (?:remember|keep))\b"
    r"|\bvergiss\w*(?: \w+)? nicht\b|\bn'oubli\w*|\boubli\w* pas\b|\bno (?:te |me )?olvid\w*"
    r"|\bnon dimentica\w*|\bnão (?:se )?esque\w*|(?:别|別|勿|不要|不会|不能)(?:忘|删|刪)|忘れない|잊지"
)
"""Words of deleting that ask for nothing: "don't forget", "I always forget". For folded text."""

_FAR = timedelta(days=800)
_SPACE = re.compile(r"\s+")


@per_text(256)
def _folded(text: str) -> str:
    # Prompts show "<" of our own marks as "&lt;": a model quotes what it was shown.
    for written, meant in (("’", "'"), ("&lt;", "<"), ("＜", "<"), ("﹤", "<")):
        text = text.replace(written, meant)
    return _SPACE.sub(" ", text.casefold()).strip()


def stands_in(span: str, text: str) -> bool:
    """Whether a quoted span stands in a text, case and spacing aside. A blank span does not."""
    folded = _folded(span)
    return bool(folded) and folded in _folded(text)


def requested_deletion(quote: str, turns: Iterable[Turn]) -> Turn | None:
    """The human turn in which the user asks, in the quoted words, that something be forgotten."""
    if not _FORGET.search(quote):
        return None
    # Words of deleting that ask for nothing are taken out first, so that no quote can rest on them.
    said = ((turn, _NO_REQUEST.sub(" … ", _folded(turn.text))) for turn in turns if turn.is_evidence)
    return next((turn for turn, words in said if stands_in(quote, words)), None)


def same_matter(text: str, speaker: str | None, entry: Entry) -> bool:
    """Whether a new statement speaks of what a stored one speaks of: only then may it take its place.

    Whoever proposed it: a model that sees a conflict between two statements of one flat, a wrong number.
    """
    said = (text, speaker, entry.text, entry.speaker)
    return matter.same_matter(*said) or contradiction(*said) is not None


def excludes(entry: Entry, text: str, speaker: str | None) -> bool:
    """Whether a stored statement ends the state that another one tells of, which was made before it."""
    said = (entry.text, entry.speaker, text, speaker)
    return lasts(text) and (matter.same_slot(*said) or contradiction(*said) is not None)


ANOTHER_MATTER = "it stays: what was to take its place speaks of another matter"


def support(text: str, turn: Turn) -> float:
    """Share of a statement's content stems that its turn holds (0 to 1); the speaker's name is free."""
    wanted = set(content_stems(text)) - distinct_stems(turn.speaker)
    return len(wanted & distinct_stems(turn.text)) / len(wanted) if wanted else 0.0


class _Said(NamedTuple):
    """The sentences of a text, and by stem the places of those that have it."""

    sentences: list[str]
    places: dict[str, list[int]]


@per_text(64)
def _said(text: str) -> _Said:
    """Cached: a turn is asked for one statement after another, and may be a whole document."""
    said = _Said([sentence for _, _, sentence in split_sentences(text)], {})
    for place, sentence in enumerate(said.sentences):
        for stem in set(stems(sentence)):
            said.places.setdefault(stem, []).append(place)
    return said


def plainly_said(text: str, turn: Turn) -> bool:
    """Whether a turn holds every content word of a statement in a sentence that neither asks nor denies
    what the statement does not. All else is for a Judge to say."""
    if support(text, turn) < 1.0:
        return False
    said = _said(turn.text)
    shared = Counter(place for stem in set(content_stems(text)) for place in said.places.get(stem, ()))
    # Of equally near ones the first.
    place = min(shared, key=lambda place: (-shared[place], place), default=0)
    nearest = said.sentences[place] if said.sentences else ""
    return not is_question(nearest) and bool(NEGATION.search(nearest)) == bool(NEGATION.search(text))


def exact(text: str) -> set[str]:
    """Stems of the numbers, and of the names inside a sentence: what no other words stand for."""
    return {stem for word in _EXACT.findall(text) for stem in content_stems(word)}


def best_source(text: str, turns: Sequence[Turn]) -> Turn | None:
    """The human turn that supports a statement best, None where none shares a content word."""
    human = [turn for turn in turns if turn.is_evidence]
    best = max(human, key=lambda turn: support(text, turn), default=None)
    return best if best is not None and support(text, best) > 0 else None


def relative_reading(text: str, said: datetime) -> Reading | None:
    """The one time in a text that depends on the day it was said ("yesterday"), None without or with more."""
    now, later = read_dates(text, said), read_dates(text, said + _FAR)
    alone = len(now) == 1 and len(later) == 1 and now[0].until is None
    return now[0] if alone and now[0].start != later[0].start else None


LEAST_KEYWORDS = 4
"""Keywords below which a turn says too little to be missed ("Sounds great!")."""
_EXACT = re.compile(r"\d+|(?<!^)\b[A-Z]\w+")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_TAG = re.compile(r"\[image: [^\]]*\]")


def uncovered(turns: Sequence[Turn], facts: Iterable[str], share: float) -> list[Turn]:
    """The turns of whose keywords the facts hold less than a share (EvolveMem 3.1, coverage).

    Only what a person said can become a fact, and only a turn that says something can be missed. Names of
    speakers are no keywords: facts hold them instead of pronouns.

    Args:
        facts: Texts of all facts of the chunk.
        share: 0 to 1; at 0 nothing is uncovered.
    """
    held = {stem for text in facts for stem in content_stems(text)}
    names = {stem for turn in turns for stem in content_stems(turn.speaker)}
    return [
        turn
        for turn in turns
        if turn.is_evidence
        and len(words := set(content_stems(_TAG.sub(" ", turn.text))) - names) >= LEAST_KEYWORDS
        and len(words & held) < share * len(words)
    ]


def missing_words(turn: Turn, facts: Iterable[str]) -> list[str]:
    """Words of a turn that carry content and stand in no fact, as said, in order."""
    held = {stem for text in facts for stem in content_stems(text)}
    words = _WORD.findall(_TAG.sub(" ", turn.text))
    return list(dict.fromkeys(word for word in words if set(content_stems(word)) - held))
