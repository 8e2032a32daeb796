"""Persons named in a text, by known names and by how English writes names. No name list, no model."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from memcycle.core.language.date_forms import MONTHS, WEEKDAYS
from memcycle.core.language.tokens import STOPWORDS, distinct_stems, stems, word_set

_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*\.?", re.UNICODE)
_SENTENCE_END = re.compile(r"[.!?…:\n\"“”)\]]\s*$")
_TITLES = word_set("mr mrs ms miss dr prof professor uncle aunt aunty grandma grandpa sir coach")
_PLACE_BEFORE = word_set("in at near around across throughout within of the a an this that our my")
_CALENDAR = frozenset(MONTHS) | frozenset(WEEKDAYS)
_NEVER = _CALENDAR | word_set(
    """
    i i'm i've i'll i'd ok okay yes no hey hi hello wow oh thanks thank sure well god lol omg christmas
    easter thanksgiving halloween hanukkah diwali ramadan eid new year valentine's valentine english
    french german spanish italian chinese japanese korean russian american british european african
    asian indian mexican canadian irish greek swedish dutch portuguese latin arabic turkish australian
    internet google youtube instagram facebook twitter tiktok netflix amazon spotify python java android
    iphone the a an this that these those my your his her our their its it he she we they you who what
    which where when why how and or but if so as at by for from in into of on to with about after before
    during since until while because although though however also then there here is are was were am be
    been being do does did has have had will would can could should may might must let's let just not
    never always maybe really very too mom mum mother dad father sister brother grandma grandpa aunt
    uncle son daughter
    """
)
_PLACE_AFTER = word_set(
    """
    street st road avenue city park lake river mountain mountains island university college school
    hospital beach museum bridge hotel restaurant cafe festival day airport station county valley bay
    club center centre
    """
)
_SUBJECT_BEFORE = word_set(
    """
    did does do has have had is was are were will would could should can might may must and or with by
    for to from about told tell asked ask met meet called named than like met saw see visited visit
    thanks hey hi hello dear
    """
)
_SUBJECT_VERBS = word_set(
    "is was has had will would said says went goes likes loves wants told asked plans lives works got did "
    "does and"
)
_LANDFORMS = word_set("lake mount mt river cape fort port isle island gulf bay")
_ENTITY = re.compile(
    r"[\"“](?P<quoted>[^\"”]{2,60})[\"”]|(?P<span>[A-Z][\w’'+&-]*(?:\s+(?:(?:of|the|de|and"
    r"|for)\s+)?[A-Z0-9][\w’'+&-]*)*)"
)
_PLACE = re.compile(
    r"\b(?:in|at|to|from|near|around)\s+(?:the\s+)?(?P<place>[A-Z][\w’'-]*(?:,?\s+[A-Z][\w’'-]*)*)"
)
MIN_NICKNAME = 3
LONGEST, SHORTEST = 2, 2
"""Words of a name written out in a text; letters of a name."""


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


@lru_cache(maxsize=1024)
def _known_pattern(name: str) -> re.Pattern[str]:
    folded = re.escape(_fold(name).strip())
    spaced = any(unicodedata.east_asian_width(char) in "WF" for char in name)
    return re.compile(folded if spaced else rf"(?<!\w){folded}(?!\w)")


def same_person(left: str | None, right: str | None) -> bool:
    """Whether two names may be of one person: equal, a first name of a full one, or a clear short form.

    A short form is a prefix of at least three letters of the same part ("Alex" and "Alexandra").
    """
    one, other = (_fold(left or "").split(), _fold(right or "").split())
    if not one or not other:
        return False
    if one == other or (1 in (len(one), len(other)) and (one[0] in other or other[0] in one)):
        return True
    if len(one) > 1 and len(other) > 1:
        return False
    short, long = sorted((one[0], other[0]), key=len)
    return len(short) >= MIN_NICKNAME and long.startswith(short)


def person_names(text: str, known: Iterable[str] = ()) -> list[str]:
    """Names of persons in order of appearance, each once, without a possessive ending.

    Args:
        text: Any text; English conventions of capitals are read, other scripts only by `known`.
        known: Names known to be persons (speakers, say). They are found whatever their case, also by
            first name or short form, and are returned as spelled here.
    """
    known_names = [name for name in dict.fromkeys(known) if name.strip()]
    folded = _fold(text)
    found = [(match.start(), name) for name in known_names if (match := _known_pattern(name).search(folded))]
    for start, name in _capitalised(text):
        found.append((start, next((other for other in known_names if same_person(name, other)), name)))
    return list(dict.fromkeys(name for _, name in sorted(found, key=lambda item: item[0])))


def without_possessive(word: str) -> str:
    """A word without its closing 's, apostrophe or full stop."""
    return re.sub(r"(?:['’]s|['’]|\.)$", "", word)


def _capitalised(text: str) -> list[tuple[int, str]]:
    """Runs of one or two capitalised words that stand where English puts a person."""
    words = list(_WORD.finditer(text))
    found: list[tuple[int, str]] = []
    position = 0
    while position < len(words):
        run = _run(words, position, text)
        if run and _is_person(text, words, position, run):
            name = " ".join(without_possessive(word[0]) for word in words[position : position + run])
            found.append((words[position].start(), name))
        position += max(run, 1)
    return found


def _run(words: list[re.Match[str]], start: int, text: str) -> int:
    """How many capitalised words follow one another from `start` on, joined by single spaces."""
    length = 0
    for index in range(start, len(words)):
        word, bare = words[index][0], without_possessive(words[index][0])
        looks = word[0].isupper() and not (len(bare) > 1 and bare.isupper()) and bare.casefold() not in _NEVER
        if not looks or (length and text[words[index - 1].end() : words[index].start()] != " "):
            break
        length += 1
        if bare != word:
            break
    return length


def _is_person(text: str, words: list[re.Match[str]], start: int, run: int) -> bool:
    word, begin = words[start][0], words[start].start()
    before = without_possessive(words[start - 1][0]).casefold() if start else ""
    after = words[start + run][0].casefold() if start + run < len(words) else ""
    possessive = words[start + run - 1][0].endswith(("'s", "’s"))
    landform = word.casefold() in _LANDFORMS
    if run > LONGEST or len(without_possessive(word)) < SHORTEST or after in _PLACE_AFTER or landform:
        return False
    if before in _PLACE_BEFORE and not possessive:
        return False
    if before in _TITLES or before in _SUBJECT_BEFORE:
        return True
    opens = start == 0 or _SENTENCE_END.search(text[max(0, begin - 3) : begin]) is not None
    # A capital means nothing at the start of a sentence; a possessive or a verb of a person does.
    return not opens or possessive or after in _SUBJECT_VERBS


def entities_of(text: str, persons: Iterable[str] = ()) -> list[str]:
    """Capitalised spans and quoted titles; a sentence's first word only where it is a known person."""
    found = []
    known = {name.casefold() for name in persons}
    for match in _ENTITY.finditer(text):
        name = match["quoted"] or without_possessive(_without_function_words(match["span"]))
        folded = name.casefold()
        opens = match.start() == 0 or text[: match.start()].rstrip().endswith((".", "!", "?", ":"))
        if (
            folded in _CALENDAR | STOPWORDS
            or len(name) == 1
            or (opens and match["span"] and folded not in known and (" " not in name or match.start() > 0))
        ):
            continue
        found.append(name)
    return list(dict.fromkeys(found))


def places_of(text: str, persons: Iterable[str] = ()) -> list[str]:
    """Capitalised names after a preposition of place; no gazetteer, so names of events are among them."""
    known = {part.casefold() for name in persons for part in name.split()} | _CALENDAR | STOPWORDS
    found = [without_possessive(match["place"]) for match in _PLACE.finditer(text)]
    return list(
        dict.fromkeys(place for place in found if place.split()[0].casefold().rstrip(",") not in known)
    )


def _without_function_words(span: str) -> str:
    """ "Since John" is John."""
    words = span.split()
    while len(words) > 1 and words[0].casefold() in STOPWORDS:
        words.pop(0)
    return " ".join(words)


NAMES = ("entities", "persons", "locations", "keywords")
"""The labels of an entry that are taken from words."""


def borne_out(labels: Iterable[str], *said: str) -> tuple[str, ...]:
    """The labels whose words all stand in what is said, in any inflection; each once.

    A label taken from elsewhere, such as another turn or the fact that this one replaces, would outlive the
    words that it comes from when those are forgotten, and be found under a name that it does not speak of.
    """
    held = [distinct_stems(text) for text in said]

    def stands(label: str) -> bool:
        return all(any(stem in words for words in held) for stem in stems(label) or [label])

    return tuple(dict.fromkeys(label for label in labels if stands(label)))
