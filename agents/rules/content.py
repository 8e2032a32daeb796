"""The words of a text that carry what it says, its numbers and its subject, for comparing texts."""

import re
from typing import NamedTuple

from memcycle.agents.rules.answer_slots import ORDINALS
from memcycle.agents.rules.claims import FILLER, NEGATORS
from memcycle.agents.rules.judge import WORDING
from memcycle.agents.rules.verbs import is_adverb, is_finite
from memcycle.core.language.date_forms import NUMBERS, count_of
from memcycle.core.language.names import without_possessive
from memcycle.core.language.sentences import NEGATION
from memcycle.core.language.tokens import STOPWORDS, base_stems, per_text, stems, tokenize, word_set

_CHUNK = re.compile(r"\S+")
_OPENS = re.compile(r"(?:^|[.!?…:(\"“”)\]])\s*[\"“(\[]*$")
_HEAD = re.compile(r"[\w'’-]+:?")
_EMPTY = FILLER | NEGATORS | WORDING | {stem for word in WORDING for stem in base_stems(word)}
_NO_NAMES = word_set(
    """
    last next another some every many most all both one two three first second today yesterday tomorrow maybe
    perhaps people everyone everybody somebody someone nothing everything life
    """
)
"""Words that open a sentence with a capital before its subject, or as one that is nobody."""
_TIMES = frozenset(stems("day week weekend month year time morning evening night life"))
"""What is a person's without being somebody: "Ana's week was busy" is about Ana."""
COUNTED_NEAR, MOST_SUBJECT = 3, 6


class Word(NamedTuple):
    """A content word at its base form. `verb`: it reads as one. `name`: a capital inside a sentence."""

    stem: str
    verb: bool
    name: bool


class Count(NamedTuple):
    """A number with the stem of what it counts, '' where nothing near it says."""

    number: str
    noun: str


class Subject(NamedTuple):
    """Whom a sentence is about: a name, the noun that is theirs ("Ana's brother"), and the verb."""

    name: str
    noun: str
    verb: str


@per_text(4096)
def words_of(text: str) -> tuple[Word, ...]:
    """The content words in order, without numbers, negation and words of telling.

    These come too where there are no others, function words never.
    """
    found = _words(text, _EMPTY)
    return found or _words(text, frozenset())


def stems_of(text: str) -> frozenset[str]:
    """The stems of `words_of`."""
    return frozenset(word.stem for word in words_of(text))


def _words(text: str, empty: frozenset[str]) -> tuple[Word, ...]:
    found: list[Word] = []
    for match in _CHUNK.finditer(text):
        tokens = [token for token in tokenize(match[0]) if token not in STOPWORDS and not _is_number(token)]
        if not tokens:
            continue
        opens = _OPENS.search(text[max(0, match.start() - 4) : match.start()]) is not None
        letter = next((char for char in match[0] if char.isalpha()), "")
        name = letter.isupper() and not opens
        for token in tokens:
            found += [Word(stem, is_finite(token), name) for stem in base_stems(token) if stem not in empty]
    return tuple(found)


def _is_number(token: str) -> bool:
    return token in NUMBERS or token.replace(".", "").isdecimal()


def counts_of(text: str, *, ones: bool = False) -> frozenset[Count]:
    """The numbers of a text as digits, each with what it counts; "one" and ordinals only where asked for."""
    chunks = [match[0].strip(".,;:!?()\"“”'’$€£%") for match in _CHUNK.finditer(text)]
    found = set[Count]()
    for place, chunk in enumerate(chunks):
        for number in _numbers(chunk, ones=ones):
            near = chunks[place + 1 : place + 1 + COUNTED_NEAR]
            nouns = [word.stem for other in near for word in words_of(other)]
            found.add(Count(number, nouns[0] if nouns else ""))
    return frozenset(found)


def _numbers(chunk: str, *, ones: bool) -> list[str]:
    folded = chunk.casefold()
    if folded in ("a", "an") or (folded in ("one", "1") and not ones):
        return []
    counted = count_of(ORDINALS.get(folded, folded) if ones else folded) if chunk else None
    if counted is not None:
        return [] if counted[1] else [str(counted[0])]
    return [token for token in tokenize(chunk) if token.replace(".", "").isdecimal()]


def subject_of(text: str) -> Subject | None:
    """Whom a sentence is about, where it opens with a name ("Ana sold", "Ana's brother sold", "Ana: ...")."""
    heads = _HEAD.findall(text[:200])[:MOST_SUBJECT]
    if not heads or not heads[0][0].isupper():
        return None
    name = without_possessive(heads[0].rstrip(":"))
    folded = name.casefold().replace("’", "'").split("'")[0]
    if folded in STOPWORDS | _NO_NAMES or is_adverb(folded) or name.endswith("ing"):
        return None
    if heads[0].endswith(":"):
        return Subject(name, "", "")
    owned = name != heads[0]
    for place, word in enumerate(heads[1:], 1):
        folded = word.casefold().replace("’", "'")
        if is_finite(folded) or folded.endswith("n't"):
            between = [other for other in heads[1:place] if not is_adverb(other)]
            if owned:
                noun = next(iter(stems(between[-1])), "") if between else ""
                return Subject(name, noun, folded) if noun and noun not in _TIMES else None
            joined = all(other[0].isupper() or other in ("and", "others") for other in between)
            return Subject(name, "", folded) if joined else None
    return None


_CLAUSE_END = re.compile(
    r"[,;:.!?()\n]|\s[-–—]+\s|\b(?:but|so|because|although|though|while)\b", re.IGNORECASE
)


def denies(text: str, matter: frozenset[str]) -> bool:
    """Whether a text denies something that holds one of these stems.

    What is denied stands after the negation, up to the end of its clause: "can't wait" denies nothing else.
    """
    for match in NEGATION.finditer(text):
        ends = [end.start() for end in _CLAUSE_END.finditer(text, match.end())] + [len(text)]
        scopes = (stems_of(text[match.end() : end]) for end in ends[:2])
        if next((scope for scope in scopes if scope), frozenset()) & matter:
            return True
    return False
