"""Questions about statements that are no plain clause: what was said about a thing, and clozes."""

import re
from collections.abc import Callable, Iterator, Sequence

from memcycle.agents.rules.phrases import (
    LEAST_ANSWER,
    MOST_ANSWER,
    PREPOSITIONS,
    WORD,
    cut,
    dangles,
)
from memcycle.agents.rules.verb_forms import base_form
from memcycle.agents.rules.verbs import AUXILIARIES, BASE, is_adverb, is_finite, is_past
from memcycle.agents.rules.wh_questions import Asked
from memcycle.agents.views import TurnView
from memcycle.core.language.date_forms import MONTH_NAMES
from memcycle.core.language.dates import format_time
from memcycle.core.language.tokens import STOPWORDS, content_stems, word_set

_ARTICLES = word_set("a an the some any another")
_OPENS = _ARTICLES | (PREPOSITIONS - {"to"})
_AFTER_NOUN = PREPOSITIONS | AUXILIARIES | {"", "and", "or"}
_STOPS = word_set("away back together out up off down themself themselves nonstop")
_VAGUE = word_set(
    """
    thing things stuff lot lots bit way ways time times day days week year years everything something anything
    nothing someone everyone people kind sort part one ones chance moment moments yourself life world others
    folks kid favorite favourite impact push ride corner heart favor page hand example blast note reminder
    difference place success joy idea process fun huge big long whole safe great good nice amazing awesome new
    best first last little really real own true
    """
)
_CLAUSE_END = re.compile(
    r"\s*(?:[;(]|\s-+\s|-\s|[—–]|\.{2,}|…|[.!?]\s)|,\s+(?:and|but|so|because|which)\b|\s+but\s+"
)
_TRAILING = re.compile(r"[\s,]+(?:too|though|as\s+well|again|and|or|but|so)$", re.IGNORECASE)
_DATE = re.compile(rf"\d|\b(?:{'|'.join(MONTH_NAMES)})\b")
_UNFINISHED = re.compile(r"^\w+ing\b|\b(?:that|how|what|if|when|because)\b", re.IGNORECASE)
_NO_NOUN = re.compile(r"(?:able|ible|ful|ous|ive|less|ish)$")
MOST_SAID = 14
"""Words of an answer to what was said about a thing."""
LEAST_CLOZE, LEAST_SHOWN, MOST_TOPIC, LEAST_CHARACTERS = 4, 3, 3, 12


def about(
    text: str,
    turn: TurnView,
    names: Sequence[str],
    rarity: Callable[[str], float],
    wanted: frozenset[str] | None,
) -> Asked | None:
    """What a speaker said about the thing that a statement names and few others do.

    Args:
        text: A third-person sentence with its dates written out.
        turn: Who said it and when; the question names the day.
        names: Persons, who are no topics.
        rarity: Higher for topics that fewer statements speak of, negative for those not to ask about.
        wanted: Stems one of which the topic must have, None for any.
    """
    clause = _TRAILING.sub("", text[: match.start()] if (match := _CLAUSE_END.search(text, 20)) else text)
    answer = cut(clause, MOST_SAID)
    if answer is None or len(answer.split()) < LEAST_ANSWER or not _stands(answer):
        return None
    finite = any(is_finite(word.lower()) for word in answer.split()[1:])
    if len(answer) < len(clause.strip(" ,")) and (_UNFINISHED.search(answer) or not finite):
        return None
    topics = [
        (rarity(topic), -place, topic)
        for place, topic in enumerate(_topics(answer, names))
        if wanted is None or wanted & set(content_stems(topic))
    ]
    best = max(topics, default=(-1.0, 0, ""))
    if best[0] < 0:
        return None
    return Asked(
        f"What did {turn.speaker} say about {best[2]} on {format_time(turn.time, 'day')}?",
        answer,
        at_end=False,
    )


def _stands(text: str) -> bool:
    """Whether a sentence has a subject and names what it speaks of."""
    first, *_ = words = text.split()
    subject = " ".join(words[:LEAST_SHOWN])
    lacks = first.lower() in AUXILIARIES or (first.lower().endswith("s") and base_form(first) in BASE)
    return not lacks and not dangles(text, subject)


def _topics(text: str, names: Sequence[str]) -> Iterator[str]:
    """Noun phrases of a sentence as far as function words show them: "an old loom", "strength training"."""
    words = list(WORD.finditer(text))
    for place, word in enumerate(words):
        opener = word[0].lower()
        owned = re.search(r"['’]s?$", opener) is not None
        opens = owned or opener in _OPENS
        if not opens and place:
            continue
        start = place + opens
        end = _run(text, words, start, names)
        following = words[end][0].lower() if end < len(words) else ""
        verbal = words[end - 1][0].endswith("ing") and following not in _AFTER_NOUN
        if end == start or verbal or (not opens and not _before_verb(words, end)):
            continue
        phrase = text[words[start].start() : words[end - 1].end()]
        if _speaks(phrase) and not _adjective(text[words[end - 1].end() :], opener):
            led = word[0] if owned else opener if opener in _ARTICLES else ""
            yield f"{led} {phrase}".strip() if opens else _lowered(phrase)


def _speaks(phrase: str) -> bool:
    words = phrase.lower().split()
    return not set(words) <= _VAGUE and words[-1] not in _VAGUE and not _DATE.search(phrase)


def _adjective(after: str, opener: str) -> bool:
    """Whether what looked like a noun is the first of two adjectives: "a safe, bright home"."""
    return (
        opener in _ARTICLES and re.match(r",|\s+(?:and|but|yet)\s+(?!an?\b|the\b|some\b)", after) is not None
    )


def _lowered(phrase: str) -> str:
    first = phrase.split(maxsplit=1)[0]
    return phrase if any(map(str.isupper, first[1:])) else phrase[0].lower() + phrase[1:]


def _before_verb(words: list[re.Match[str]], end: int) -> bool:
    return end < len(words) and words[end][0].lower() in AUXILIARIES


def _run(text: str, words: list[re.Match[str]], start: int, names: Sequence[str]) -> int:
    """End of the run of content words from `start` on; no verb, adjective or person closes it."""
    end = start
    while end < len(words):
        word = words[end][0]
        if word in names:
            return start if end == start else end - 1  # "NAME's words cheer NAME": the last word is a verb
        before = words[end - 1][0] if end > start else ""
        if (before and text[words[end - 1].end() : words[end].start()] != " ") or _breaks(word, before):
            break
        end += 1
    if end - start > MOST_TOPIC or (end < len(words) and re.search(r"\w['’]s$", words[end][0])):
        return start
    of = end < len(words) and words[end][0] == "of"
    while (
        end > start
        and not of
        and (_verb(words[end - 1][0]) or (end - start > 1 and _NO_NOUN.search(words[end - 1][0])))
    ):
        end -= 1
    return end


def _breaks(word: str, before: str) -> bool:
    """Whether a word does not go on with a noun phrase whose last word is given."""
    folded = word.lower()
    function = folded in STOPWORDS | AUXILIARIES | PREPOSITIONS | _STOPS or is_adverb(word)
    after_plural = before.endswith("s") and not before[0].isupper()
    verb = before and (is_past(folded) or after_plural)
    return bool(function or verb or re.search(r"['’]", word) or not re.search(r"[^\W\d_]", word))


def _verb(word: str) -> bool:
    """Whether a word is a finite verb after a singular noun; a bare form there is a noun ("art show")."""
    folded = word.lower()
    return word.islower() and (is_past(folded) or (folded.endswith("s") and base_form(folded) in BASE))


def cloze(text: str, speaker: str, *, anywhere: bool, foreign: bool = False) -> Asked | None:
    """A question that shows how a sentence begins and asks how it goes on.

    Args:
        text: The sentence. speaker: Who said it.
        anywhere: Whether the cut may come before any word, not only before one that opens a phrase. A text
            without spaces is cut in the middle.
        foreign: Whether the sentence is in a language whose pronouns are not known.
    """
    shown, answer = _halves(text, anywhere=anywhere)
    if not shown or (not foreign and not _stands(f"{shown} {answer}")):
        return None
    return Asked(f"What completes what {speaker} said: “{shown} …”?", answer, at_end=False)


def _halves(text: str, *, anywhere: bool) -> tuple[str, str]:
    words = list(re.finditer(r"\S+", text))
    if len(words) < LEAST_SHOWN + LEAST_CLOZE:
        middle = len(text) // 2
        dense = len(words) < LEAST_SHOWN and len(text) >= LEAST_CHARACTERS and not text.isascii()
        return (text[:middle], text[middle:].strip(" 。.！!")) if dense else ("", "")
    places = range(max(LEAST_SHOWN, len(words) - MOST_ANSWER), len(words) - LEAST_CLOZE + 1)
    middle = (places[0] + places[-1]) // 2
    opening = [n for n in places if words[n][0].lower() in _OPENS | {"to"}]
    place = min(places if anywhere else opening, key=lambda n: abs(n - middle), default=0)
    return text[: words[place].start()].strip(" ,"), text[words[place].start() :].strip(" .!…")
