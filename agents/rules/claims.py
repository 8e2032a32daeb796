"""What a third-person sentence claims about a person's present state: home, job, tastes, ties."""

import re
from typing import NamedTuple

from memcycle.agents.rules.claim_forms import FORMS, Slot
from memcycle.agents.rules.verbs import AUXILIARIES, is_adverb, is_past
from memcycle.core.language.date_forms import MONTHS, NUMBERS, WEEKDAYS
from memcycle.core.language.sentences import split_sentences
from memcycle.core.language.tokens import content_stems, per_text, stems, word_set

_NOW = re.compile(
    r"\b(?:now|these days|new|instead|nowadays|anymore|no longer|currently|since)\b", re.IGNORECASE
)
FILLER = frozenset(
    stems("now anymore any more longer really much all currently still also actually even just")
)
_OCCUPATION = re.compile(
    r"(?:er|or|ist|ian|nurse|chef|cook|pilot|clerk|student|judge|vet|coach|guide|architect"
    r"|accountant|assistant|consultant|agent|intern|analyst)$"
)
_NO_OCCUPATION = word_set(
    """
    swimmer runner reader gamer hiker cyclist drinker eater sleeper listener traveler traveller great
    good big huge best real true proud strong stronger member lover mother father sister brother
    supporter daughter number winner beginner believer outsider better other player owner fighter
    neighbor helper leader partner regular major minor
    """
)  # fmt: skip


class Claim(NamedTuple):
    """One claim. `change`: it says that this is new. `ended`: it says that this holds no more."""

    who: str
    slot: Slot
    value: frozenset[str]
    text: str
    change: bool = False
    ended: bool = False


class Parsed(NamedTuple):
    """A sentence taken apart for comparison.

    Attributes:
        claims: What it claims.
        content: Its content stems without numbers, negation and filler.
        numbers: Its numbers, as digits.
        negated: It denies something.
        current: Its main verb tells of a state or habit, not of a past event.
        subject: Its first name, or ''.
        words: Its words in lower case.
        dated: It names a time or a duration.
    """

    claims: tuple[Claim, ...]
    content: frozenset[str]
    numbers: tuple[str, ...]
    negated: bool
    current: bool
    subject: str
    words: tuple[str, ...]
    dated: bool


_DATED = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|last|next|this\s+(?:week|weekend|month|year"
    r"|morning)|(?:19|20)\d\d"
    r"|for\s+\S+\s+\w+|" + "|".join(sorted({*MONTHS, *WEEKDAYS} - {"may", "sun", "sat", "mar"})) + r")\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:not|never|no|cannot|without)\b|n['’]t\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_COUNTS = {word: str(count) for word, count in NUMBERS.items() if count > 1}
NEGATORS = frozenset(
    stems(
        "not never no cannot without don't doesn't isn't aren't wasn't didn't hasn't haven't "
        "can't won't no longer"
    )
)
MAX_SENTENCES, MOST_TITLE_WORDS = 4, 4
_STATES = word_set("married divorced engaged based allergic interested put read cut")
_NOT_NOW = word_set("was were had did will would might could wants hopes plans")
_STARTED = word_set("started began joined became got")


@per_text(2048)
def parse(text: str) -> tuple[Parsed, ...]:
    """The first sentences of a third-person text taken apart.

    Cached, since every new statement meets many stored ones.
    """
    return tuple(_parse(sentence) for _, _, sentence in split_sentences(text)[:MAX_SENTENCES])


def _parse(sentence: str) -> Parsed:
    words = tuple(re.findall(r"[\w'’]+", sentence.lower()))
    numbers = [match.replace(",", "") for match in _NUMBER.findall(sentence)]
    numbers += [_COUNTS[word] for word in words if word in _COUNTS]
    content = {
        s
        for s in content_stems(sentence)
        if s not in FILLER | NEGATORS and not s[0].isdigit() and s not in _COUNTS
    }
    who = re.match(r"[A-Z][\w-]*", sentence)
    return Parsed(
        claims=tuple(_claims(sentence)),
        content=frozenset(content),
        numbers=tuple(sorted(numbers)),
        negated=_NEGATION.search(sentence) is not None,
        current=_is_current(words),
        subject=who[0] if who else "",
        words=words,
        dated=_DATED.search(sentence) is not None,
    )


def _claims(sentence: str) -> list[Claim]:
    now = _NOW.search(sentence) is not None
    found = []
    for slot, pattern, change, ended in FORMS:
        for match in pattern.finditer(sentence):
            value = match["value"] or ""
            if slot == "occupation" and not _names_occupation(value):
                continue
            held = frozenset(content_stems(value)) - FILLER
            if held or (ended and slot in ("employer", "tie")):
                found.append(Claim(_owner(match["who"]), slot, held, value, change or now, ended))
    return found


def _owner(who: str) -> str:
    return re.sub(r"\s+", " ", who).casefold().replace("’", "'")


def _names_occupation(value: str) -> bool:
    """ "a nurse at the clinic", not "a great supporter"."""
    head = re.split(r"\s+(?:at|in|for|of|with|on|who|that)\b", value)[0].split()
    return (
        0 < len(head) <= MOST_TITLE_WORDS
        and not {head[0], head[-1]} & _NO_OCCUPATION
        and bool(_OCCUPATION.search(head[-1]))
    )


def _is_current(words: tuple[str, ...]) -> bool:
    for word in words[1:]:
        if word in _NOT_NOW:
            return False
        if word in _STARTED:
            return True
        if word in AUXILIARIES or is_adverb(word):
            continue
        if is_past(word) and word not in _STATES:
            return "has" in words[: words.index(word)] or "is" in words[: words.index(word)]
        if word.endswith("s") or word.endswith("ing"):
            return True
    return True
